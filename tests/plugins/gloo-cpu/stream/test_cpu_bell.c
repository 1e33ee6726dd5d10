/* Threads that wait for one another. */
#include "stream/cpu_bell.h"

#include "support/suite.h"

#include <pthread.h>

struct door {
    struct cpu_bell bell;
    _Atomic(uint64_t) opened, passed;
};

struct visit {
    struct door *door;
    uint64_t number;
};

static bool is_open(const void *argument)
{
    const struct visit *visit = argument;

    return atomic_load(&visit->door->opened) >= visit->number;
}

TEST(what_is_ready_is_not_waited_for)
{
    struct door door = {.opened = 1};
    struct visit visit = {&door, 1};

    ck_assert(cpu_bell_wait(&door.bell, is_open, &visit, 0));
    ck_assert(cpu_bell_wait(&door.bell, is_open, &visit, UINT64_MAX));
}

TEST(a_deadline_ends_a_wait)
{
    struct door door = {.opened = 0};
    struct visit visit = {&door, 1};
    uint64_t begin = plug_now();

    ck_assert(!cpu_bell_wait(&door.bell, is_open, &visit, cpu_deadline(20000000)));
    ck_assert_uint_ge(plug_now() - begin, 20000000);
    ck_assert(!cpu_bell_wait(&door.bell, is_open, &visit, cpu_deadline(0)));
    ck_assert_uint_eq(atomic_load(&door.bell.sleepers), 0);
}

TEST(deadlines_beyond_the_clock_are_for_ever)
{
    ck_assert_uint_eq(cpu_deadline(-1), UINT64_MAX);
    ck_assert_uint_lt(cpu_deadline(INT64_MAX), UINT64_MAX);
    ck_assert_uint_ge(cpu_deadline(INT64_MAX), (uint64_t)INT64_MAX);
}

static void *go_through_all(void *argument)
{
    struct door *door = argument;

    for (uint64_t i = 1; i <= 20000; i++) {
        struct visit visit = {door, i};

        if (!cpu_bell_wait(&door->bell, is_open, &visit, cpu_deadline(60000000000)))
            return (void *)"a stroke was lost";
        if (atomic_fetch_add(&door->passed, 1) % 3 == 2) cpu_bell_ring(&door->bell);
    }
    return NULL;
}

/* True if every thread has passed the doors opened so far. */
static bool is_empty(const void *argument)
{
    const struct door *door = argument;

    return atomic_load(&door->passed) >= 3 * atomic_load(&door->opened);
}

TEST(no_stroke_is_lost)
{
    struct door door = {.opened = 0};
    pthread_t threads[3];
    void *fault = NULL;

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, go_through_all, &door), 0);
    for (int i = 0; i < 20000; i++) {
        atomic_fetch_add(&door.opened, 1);
        cpu_bell_ring(&door.bell);
        ck_assert(cpu_bell_wait(&door.bell, is_empty, &door, cpu_deadline(60000000000)));
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &fault), 0);
        ck_assert_ptr_null(fault);
    }
}
