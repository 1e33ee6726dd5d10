/* Streams and events. */
#include "stream/cpu_stream.h"

#include "support/suite.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static void append(void *argument)
{
    char *text = *(char **)argument;

    *(char **)argument = text + 1;
    *text = '.';
}

static void nap(void *argument)
{
    nanosleep(&(struct timespec){.tv_nsec = *(long *)argument}, NULL);
}

/* Work that lasts until the test opens it. */
static void hold(void *open)
{
    while (!*(atomic_bool *)open)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void mark(void *argument)
{
    atomic_store((_Atomic(int) *)argument, 1);
}

static void fail_work(void *argument, struct cpu_error *error)
{
    error->status = WEFT_ERR_PEER;
    snprintf(error->text, sizeof error->text, "number %d", *(int *)argument);
}

static void *open_stream(void)
{
    void *stream = NULL;

    ck_assert_int_eq(cpu_stream_create(NULL, &stream), WEFT_OK);
    return stream;
}

TEST(work_on_no_stream_is_done_at_once)
{
    char text[4] = "", *at = text;

    ck_assert_int_eq(cpu_stream_call(NULL, NULL, append, &at), WEFT_OK);
    ck_assert_str_eq(text, ".");
    ck_assert_int_eq(cpu_stream_query(NULL, NULL), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait(NULL, NULL, 0), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, NULL, NULL, NULL), WEFT_ERR_INVALID);
}

static void check_order(void *argument, struct cpu_error *error)
{
    static int expected;
    int number = *(int *)argument;

    if (number == 0) expected = 0;
    if (number != expected++) fail_work(argument, error);
}

TEST(work_on_a_stream_is_done_in_order)
{
    void *stream = open_stream();

    for (int i = 0; i < 10000; i++)
        ck_assert_int_eq(cpu_stream_run(stream, check_order, &i, sizeof i), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, WEFT_FOREVER), WEFT_OK);
    cpu_stream_destroy(NULL, stream);
}

TEST(a_stream_says_when_it_is_not_done)
{
    void *stream = open_stream();
    atomic_bool open = false;

    ck_assert_int_eq(cpu_stream_call(NULL, stream, hold, &open), WEFT_OK);
    ck_assert_int_eq(cpu_stream_query(NULL, stream), WEFT_IN_PROGRESS);
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, 1000000), WEFT_ERR_TIMEOUT);
    open = true;
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(cpu_stream_query(NULL, stream), WEFT_OK);
    cpu_stream_destroy(NULL, stream);
}

TEST(destroying_a_stream_finishes_its_work)
{
    void *stream = open_stream();
    long time_ns = 20000000;
    _Atomic(int) done = 0;

    ck_assert_int_eq(cpu_stream_call(NULL, stream, nap, &time_ns), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, stream, mark, (void *)&done), WEFT_OK);
    cpu_stream_destroy(NULL, stream);
    ck_assert_int_eq(atomic_load(&done), 1);
}

TEST(the_first_failure_stays_and_later_work_still_runs)
{
    void *stream = open_stream(), *event = NULL;
    _Atomic(int) done = 0;
    int number = 7;

    ck_assert_int_eq(cpu_stream_run(stream, fail_work, &number, sizeof number), WEFT_OK);
    number = 8;
    ck_assert_int_eq(cpu_stream_run(stream, fail_work, &number, sizeof number), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, stream, mark, (void *)&done), WEFT_OK);
    ck_assert_int_eq(cpu_event_create(NULL, &event), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, event, stream), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, WEFT_FOREVER), WEFT_ERR_PEER);
    ck_assert_str_eq(plug_last_text(), "number 7");
    ck_assert_int_eq(atomic_load(&done), 1);
    ck_assert_int_eq(cpu_event_wait(NULL, event, WEFT_FOREVER), WEFT_ERR_PEER);
    cpu_event_destroy(NULL, event);
    cpu_stream_destroy(NULL, stream);
}

TEST(a_failed_stream_reports_its_failure_after_all_its_work)
{
    void *stream = open_stream();
    atomic_bool open = false;
    int number = 1;

    ck_assert_int_eq(cpu_stream_run(stream, fail_work, &number, sizeof number), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, WEFT_FOREVER), WEFT_ERR_PEER);
    ck_assert_int_eq(cpu_stream_call(NULL, stream, hold, &open), WEFT_OK);
    ck_assert_int_eq(cpu_stream_query(NULL, stream), WEFT_IN_PROGRESS);
    atomic_store(&open, true);
    ck_assert_int_eq(cpu_stream_wait(NULL, stream, WEFT_FOREVER), WEFT_ERR_PEER);
    ck_assert_int_eq(cpu_stream_query(NULL, stream), WEFT_ERR_PEER);
    cpu_stream_destroy(NULL, stream);
}

TEST(an_event_is_reached_when_the_work_before_it_is_done)
{
    void *stream = open_stream(), *first = NULL, *second = NULL;
    long time_ns = 30000000;
    atomic_bool open = false;
    int64_t elapsed = 0;

    ck_assert_int_eq(cpu_event_create(NULL, &first), WEFT_OK);
    ck_assert_int_eq(cpu_event_create(NULL, &second), WEFT_OK);
    ck_assert_int_eq(cpu_event_query(NULL, first), WEFT_OK); /* never recorded */
    ck_assert_int_eq(cpu_event_elapsed(NULL, first, second, &elapsed), WEFT_ERR_INVALID);
    ck_assert_int_eq(cpu_event_record(NULL, first, stream), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, stream, hold, &open), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, stream, nap, &time_ns), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, second, stream), WEFT_OK);
    ck_assert_int_eq(cpu_event_query(NULL, second), WEFT_IN_PROGRESS);
    ck_assert_int_eq(cpu_event_wait(NULL, second, 1000), WEFT_ERR_TIMEOUT);
    open = true;
    ck_assert_int_eq(cpu_event_wait(NULL, second, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(cpu_event_elapsed(NULL, first, second, &elapsed), WEFT_OK);
    ck_assert_int_ge(elapsed, time_ns);
    cpu_event_destroy(NULL, first);
    cpu_event_destroy(NULL, second);
    cpu_stream_destroy(NULL, stream);
}

TEST(one_stream_waits_for_another)
{
    void *slow = open_stream(), *fast = open_stream(), *event = NULL;
    long time_ns = 30000000;
    _Atomic(int) done = 0, seen = 0;

    ck_assert_int_eq(cpu_event_create(NULL, &event), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, slow, nap, &time_ns), WEFT_OK);
    ck_assert_int_eq(cpu_stream_call(NULL, slow, mark, (void *)&done), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, event, slow), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait_event(NULL, fast, event), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait_event(NULL, NULL, event), WEFT_OK);
    ck_assert_int_eq(atomic_load(&done), 1); /* stream NULL waited */
    ck_assert_int_eq(cpu_stream_call(NULL, fast, mark, (void *)&seen), WEFT_OK);
    cpu_event_destroy(NULL, event); /* while a wait for it may be pending */
    ck_assert_int_eq(cpu_stream_wait(NULL, fast, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(atomic_load(&seen), 1);
    cpu_stream_destroy(NULL, slow);
    cpu_stream_destroy(NULL, fast);
}

struct sum {
    const int *numbers;
    const long *more;
    int count, expected;
};

static void check_sum(void *argument, struct cpu_error *error)
{
    const struct sum *sum = argument;
    long total = sum->more != NULL ? sum->more[0] : 0;

    for (int i = 0; i < sum->count; i++)
        total += sum->numbers[i];
    if (total == sum->expected) return;
    error->status = WEFT_ERR_INTERNAL;
    snprintf(error->text, sizeof error->text, "%ld is not %d", total, sum->expected);
}

TEST(arrays_are_copied_along)
{
    void *stream = open_stream();
    long time_ns = 20000000, more;
    int numbers[300];

    ck_assert_int_eq(cpu_stream_call(NULL, stream, nap, &time_ns), WEFT_OK);
    for (int count = 0; count <= 300; count += 50) {
        struct sum sum = {numbers, &more, count, 2 * count + 7};
        struct cpu_lent lent[] = {{offsetof(struct sum, numbers), (size_t)count * sizeof *numbers},
                                  {offsetof(struct sum, more), sizeof more}};

        for (int i = 0; i < count; i++)
            numbers[i] = 2;
        more = 7;
        ck_assert_int_eq(cpu_stream_run_lent(stream, check_sum, &sum, sizeof sum, lent, 2),
                         WEFT_OK);
        memset(numbers, 1, sizeof numbers);
        more = 0;
    }
    ck_assert_msg(cpu_stream_wait(NULL, stream, WEFT_FOREVER) == WEFT_OK, "%s", plug_last_text());
    cpu_stream_destroy(NULL, stream);
}

TEST(an_event_recorded_again_is_its_newest_mark)
{
    void *slow = open_stream(), *failed = open_stream(), *event = NULL;
    atomic_bool open = false;
    int number = 1;

    ck_assert_int_eq(cpu_event_create(NULL, &event), WEFT_OK);
    ck_assert_int_eq(cpu_stream_run(failed, fail_work, &number, sizeof number), WEFT_OK);
    ck_assert_int_eq(cpu_stream_wait(NULL, failed, WEFT_FOREVER), WEFT_ERR_PEER);
    ck_assert_int_eq(cpu_stream_call(NULL, slow, hold, &open), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, event, slow), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, event, failed), WEFT_OK);
    ck_assert_int_eq(cpu_event_wait(NULL, event, WEFT_FOREVER), WEFT_ERR_PEER);
    ck_assert_int_eq(cpu_stream_query(NULL, slow), WEFT_IN_PROGRESS);
    ck_assert_int_eq(cpu_event_record(NULL, event, slow), WEFT_OK);
    ck_assert_int_eq(cpu_event_query(NULL, event), WEFT_IN_PROGRESS);
    open = true;
    ck_assert_int_eq(cpu_event_wait(NULL, event, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(cpu_event_record(NULL, event, NULL), WEFT_OK);
    ck_assert_int_eq(cpu_event_query(NULL, event), WEFT_OK);
    cpu_event_destroy(NULL, event);
    cpu_stream_destroy(NULL, slow);
    cpu_stream_destroy(NULL, failed);
}
