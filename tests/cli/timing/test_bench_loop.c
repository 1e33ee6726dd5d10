#include "support/suite.h"

#include "timing/loop.h"

#include <stdbool.h>
#include <time.h>

/* One rank that others are imagined beside: they are SLOWER nanoseconds slower in every sample. */
struct imagined {
    uint64_t slower;
    int barriers, calls, fail_at;
    long nap_ns, barrier_nap_ns;
};

static int barrier(void *self)
{
    struct imagined *ranks = self;
    struct timespec nap = {.tv_nsec = ranks->barrier_nap_ns};

    if (ranks->barrier_nap_ns > 0) nanosleep(&nap, NULL);
    ranks->barriers++;
    return 0;
}

static int maximum(void *self, uint64_t *values, size_t count)
{
    const struct imagined *ranks = self;

    for (size_t i = 0; i < count; i++)
        values[i] += ranks->slower;
    return 0;
}

static int operation(void *argument)
{
    struct imagined *ranks = argument;
    struct timespec nap = {.tv_nsec = ranks->nap_ns};

    if (ranks->nap_ns > 0) nanosleep(&nap, NULL);
    ranks->calls++;
    return ranks->fail_at > 0 && ranks->calls >= ranks->fail_at ? 42 : 0;
}

static struct bench_ranks ranks_of(struct imagined *imagined)
{
    return (struct bench_ranks){
        .rank = 0, .size = 1, .self = imagined, .barrier = barrier, .maximum = maximum};
}

TEST(times_are_in_order_and_samples_begin_with_a_barrier)
{
    struct imagined imagined = {0};
    struct bench_ranks ranks = ranks_of(&imagined);
    struct bench_times times;

    ck_assert_int_eq(bench_time(&ranks, operation, &imagined, 2000000, &times), 0);
    ck_assert_uint_le(times.min_ns, times.median_ns);
    ck_assert_uint_le(times.median_ns, times.p99_ns);
    ck_assert_uint_ge(times.samples, 3);
    ck_assert_uint_ge(times.calls, 1);
    ck_assert_uint_ge((uint64_t)imagined.barriers, times.samples);
}

TEST(the_slowest_rank_counts)
{
    struct imagined imagined = {.slower = 50000000};
    struct bench_ranks ranks = ranks_of(&imagined);
    struct bench_times times;

    ck_assert_int_eq(bench_time(&ranks, operation, &imagined, 1000000, &times), 0);
    ck_assert_uint_eq(times.calls, 1);
    ck_assert_uint_ge(times.min_ns, 50000000);
}

TEST(slow_operations_get_a_few_samples_and_no_more)
{
    struct imagined imagined = {.nap_ns = 20000000};
    struct bench_ranks ranks = ranks_of(&imagined);
    struct bench_times times;

    ck_assert_int_eq(bench_time(&ranks, operation, &imagined, 1000000, &times), 0);
    ck_assert_uint_eq(times.samples, 3);
    ck_assert_uint_ge(times.min_ns, 20000000);
}

TEST(barriers_count_against_the_budget)
{
    struct imagined imagined = {.barrier_nap_ns = 10000000};
    struct bench_ranks ranks = ranks_of(&imagined);
    struct bench_times times;

    ck_assert_int_eq(bench_time(&ranks, operation, &imagined, 50000000, &times), 0);
    ck_assert_uint_ge(times.samples, 3);
    ck_assert_uint_le(times.samples, 6);
}

TEST(a_failure_ends_it_with_its_code)
{
    for (int at = 1; at < 40; at++) {
        struct imagined imagined = {.fail_at = at};
        struct bench_ranks ranks = ranks_of(&imagined);
        struct bench_times times = {.samples = 99};

        ck_assert_int_eq(bench_time(&ranks, operation, &imagined, 1000000, &times), 42);
        ck_assert_uint_eq(times.samples, 99);
    }
}

TEST(memcpy_has_a_speed_at_every_size)
{
    static const size_t sizes[] = {1, 8, 4095, 4096, 1 << 20};
    struct imagined imagined = {0};
    struct bench_ranks ranks = ranks_of(&imagined);

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double gbps = 0;

        ck_assert_int_eq(bench_memcpy(&ranks, sizes[i], 1000000, &gbps), 0);
        ck_assert(gbps > 0 && gbps < 100000);
    }
}

/* The milliseconds of one measurement of 2^20 ranks, far more than there are cores. */
static double crowded_copy_ms(void)
{
    struct imagined imagined = {0};
    struct bench_ranks ranks = ranks_of(&imagined);
    struct timespec begin, end;
    double gbps = 0;

    ranks.size = 1 << 20;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    ck_assert_int_eq(bench_memcpy(&ranks, 4096, 1000000, &gbps), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-6;
}

/* A machine that slows down while the copies are counted ends them early, so one of a few tries
 * has to last for three calls of 20 ms. */
TEST(ranks_that_share_a_core_copy_for_several_turns)
{
    double longest = 0;

    for (int i = 0; i < 5 && longest < 50; i++) {
        double ms = crowded_copy_ms();
        if (ms > longest) longest = ms;
    }
    ck_assert_msg(longest >= 50, "%.1f ms", longest);
}
