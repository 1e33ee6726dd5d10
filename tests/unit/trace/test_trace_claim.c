/* Numbers of records: each is given out once, whichever threads ask for them and when. */
#include "support/suite.h"
#include "support/trace.h"

#include <pthread.h>

TEST(one_thread_counts)
{
    struct wf_trace *trace;

    wf_claims_prepare();
    trace = test_trace_begin(64);
    for (uint64_t id = 1; id <= 200; id++)
        ck_assert_uint_eq(wf_trace_claim(trace).id, id);
    ck_assert_uint_eq(atomic_load(&trace->segment->next), 200);
    ck_assert(!atomic_load(&trace->claiming));
    test_trace_end(trace);
}

#define LATER 3
#define FIRST 200000 /* ids of the first thread */
#define OTHER 20000  /* of each other thread */

static struct wf_trace *claimed;
static atomic_uchar seen[FIRST + LATER * OTHER + 1];
static atomic_bool may_begin;

static void claim(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t id = wf_trace_claim(claimed).id;

        if (id < sizeof seen) atomic_fetch_add(&seen[id], 1);
    }
}

static void *claim_later(void *argument)
{
    while (!atomic_load(&may_begin))
        continue;
    claim(OTHER);
    return argument;
}

/* The first thread is busy when the others begin. */
static void check_threads(void)
{
    pthread_t threads[LATER];

    atomic_store(&may_begin, false);
    for (size_t id = 0; id < sizeof seen; id++)
        atomic_store(&seen[id], 0);
    claimed = test_trace_begin(64);
    for (int i = 0; i < LATER; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, claim_later, NULL), 0);
    claim(FIRST / 4);
    atomic_store(&may_begin, true);
    claim(FIRST - FIRST / 4);
    for (int i = 0; i < LATER; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&claimed->segment->next), sizeof seen - 1);
    for (size_t id = 1; id < sizeof seen; id++)
        if (atomic_load(&seen[id]) != 1)
            ck_abort_msg("id %zu was given out %d times", id, atomic_load(&seen[id]));
    test_trace_end(claimed);
}

TEST(threads_that_begin_later_count_with_the_first)
{
    wf_claims_prepare(); /* this process has one thread */
    check_threads();
}

TEST(threads_count_without_preparation)
{
    check_threads();
}
