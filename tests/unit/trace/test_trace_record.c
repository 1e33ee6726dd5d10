#include "support/trace.h"
#include "support/suite.h"

#include <pthread.h>

TEST(a_record_has_what_was_submitted)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted submitted = test_submit(trace, 5, 0);
    weft_record r = test_read(trace, submitted.id);

    ck_assert_uint_eq(r.id, 1);
    ck_assert(r.comm == 5 && r.sequence == 7 && r.sent == 8 && r.received == 16 && r.plan == 99);
    ck_assert(r.submitted > 0 && r.started == r.submitted && r.finished == 0 && r.stream == 0);
    ck_assert(r.binding == 1 && r.step == 2 && r.operation == WEFT_RECORD_ALL_GATHER);
    ck_assert(r.step_kind == WEFT_NO_STEP_KIND && r.dtype == WEFT_DTYPE_F32 && r.reduction == 1);
    ck_assert(r.state == WEFT_RECORD_SUBMITTED && r.flags == WEFT_RECORD_IMPLICIT);
    ck_assert(r.peer == -1 && r.waits_for == -1 && r.comm_name == 11 && r.axes == 12);
    ck_assert(r.label == 13 && r.status == WEFT_OK && r.parent == 14);
    test_trace_end(trace);
}

TEST(the_start_of_a_record_on_a_stream_is_not_known)
{
    struct wf_trace *trace = test_trace_begin(64);
    uint64_t earlier = test_submit(trace, 5, 0).id; /* leaves a start in no later record */
    weft_record r;

    for (int i = 0; i < 64; i++)
        r = test_read(trace, test_submit(trace, 5, 4096).id);
    ck_assert_uint_eq(r.id, earlier + 64);
    ck_assert(r.submitted > 0 && r.started == 0 && r.finished == 0 && r.stream == 4096);
    test_trace_end(trace);
}

TEST(a_finished_record_has_times_in_order)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted submitted = test_submit(trace, 5, 0);
    weft_record r;

    wf_trace_finish(trace, submitted);
    r = test_read(trace, submitted.id);
    ck_assert_int_eq(r.state, WEFT_RECORD_FINISHED);
    ck_assert(r.submitted <= r.started && r.started <= r.finished);
    test_trace_end(trace);
}

TEST(a_failed_record_has_the_status_and_no_end)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted submitted = test_submit(trace, 5, 0);
    weft_record r;

    ck_assert_int_eq(wf_trace_fail(trace, submitted, WEFT_ERR_TIMEOUT), WEFT_ERR_TIMEOUT);
    r = test_read(trace, submitted.id);
    ck_assert(r.state == WEFT_RECORD_FAILED && r.status == WEFT_ERR_TIMEOUT && r.finished == 0);
    test_trace_end(trace);
}

TEST(the_end_of_a_record_that_was_replaced_changes_nothing)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted first = test_submit(trace, 1, 0), last = first;
    weft_record r;

    for (int i = 0; i < 64; i++)
        last = test_submit(trace, 2, 0);
    ck_assert_ptr_eq(last.record, first.record);
    wf_trace_finish(trace, first);
    (void)wf_trace_fail(trace, first, WEFT_ERR_PEER);
    wf_trace_start(trace, first);
    ck_assert(!wf_trace_read(trace, first.id, &r));
    r = test_read(trace, last.id);
    ck_assert(r.state == WEFT_RECORD_SUBMITTED && r.started == r.submitted && r.finished == 0);
    test_trace_end(trace);
}

TEST(a_thread_gives_up_a_place_that_another_writes_or_has_taken)
{
    struct wf_trace *trace = test_trace_begin(64);
    weft_record *place = &trace->records[1], r;
    struct wf_submitted mine;

    place->id = WF_WRITING;
    mine = test_submit(trace, 1, 16);
    ck_assert_uint_eq(place->id, WF_WRITING);
    ck_assert(!wf_trace_read(trace, mine.id, &r));
    wf_trace_finish(trace, mine);
    ck_assert_uint_eq(place->state, 0);
    place = &trace->records[2];
    place->id = 66; /* one recorder later */
    (void)test_submit(trace, 1, 0);
    ck_assert_uint_eq(place->id, 66);
    ck_assert_uint_eq(place->comm, 0);
    test_trace_end(trace);
}

TEST(a_wait_finishes_the_records_of_its_stream)
{
    struct wf_trace *trace = test_trace_begin(64);
    uint64_t a = 5, b = a + WF_CHAINS; /* of one chain */
    uint64_t ids[4];

    ck_assert_ptr_eq(wf_trace_chain(trace, a), wf_trace_chain(trace, b));
    ids[0] = test_submit(trace, 1, a).id;
    ids[1] = test_submit(trace, 1, b).id;
    ids[2] = test_submit(trace, 1, a).id;
    ids[3] = test_submit(trace, 1, a).id;
    wf_trace_finish_chain(trace, ids[2], a, false);
    ck_assert_int_eq(test_read(trace, ids[0]).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(test_read(trace, ids[1]).state, WEFT_RECORD_SUBMITTED);
    ck_assert_int_eq(test_read(trace, ids[2]).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(test_read(trace, ids[3]).state, WEFT_RECORD_SUBMITTED);
    wf_trace_finish_chain(trace, ids[3], 0, true);
    for (int i = 0; i < 4; i += 3) /* the walk ends at ids[2] */
        ck_assert_int_eq(test_read(trace, ids[i]).state, WEFT_RECORD_FINISHED);
    test_trace_end(trace);
}

TEST(a_failed_record_does_not_hide_those_before_it)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted first = test_submit(trace, 1, 64), refused = test_submit(trace, 1, 64);

    (void)wf_trace_fail(trace, refused, WEFT_ERR_INVALID);
    wf_trace_finish_chain(trace, refused.id, 64, false);
    ck_assert_int_eq(test_read(trace, first.id).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(test_read(trace, refused.id).state, WEFT_RECORD_FAILED);
    test_trace_end(trace);
}

TEST(a_failed_wait_fails_the_records_of_failed_communicators)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted good, bad;
    weft_record r;

    wf_trace_add_comm(trace, 21, 0, (int32_t[]){0, 1}, 2, 0);
    wf_trace_add_comm(trace, 22, 0, (int32_t[]){0, 1}, 2, 0);
    good = test_submit(trace, 21, 64);
    bad = test_submit(trace, 22, 64);
    wf_trace_set_wait(trace, 22, 0, 1);
    wf_trace_fail_comm(trace, 22, WEFT_ERR_PEER, "lost");
    wf_trace_fail_chain(trace, bad.id, 64);
    r = test_read(trace, bad.id);
    ck_assert(r.state == WEFT_RECORD_FAILED && r.status == WEFT_ERR_PEER && r.waits_for == 1);
    ck_assert_int_eq(test_read(trace, good.id).state, WEFT_RECORD_SUBMITTED);
    wf_trace_finish_chain(trace, bad.id, 64, false);
    ck_assert_int_eq(test_read(trace, good.id).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(test_read(trace, bad.id).state, WEFT_RECORD_FAILED);
    test_trace_end(trace);
}

TEST(operations_since_a_record_fail_together)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted before = test_submit(trace, 1, 0), mine, other, done;

    mine = test_submit(trace, 1, 64);
    other = test_submit(trace, 2, 0);
    done = test_submit(trace, 1, 0);
    wf_trace_finish(trace, done);
    wf_trace_fail_since(trace, before.id, 1, WEFT_ERR_ABORTED);
    ck_assert_int_eq(test_read(trace, before.id).state, WEFT_RECORD_SUBMITTED);
    ck_assert_int_eq(test_read(trace, mine.id).status, WEFT_ERR_ABORTED);
    ck_assert_int_eq(test_read(trace, other.id).state, WEFT_RECORD_SUBMITTED);
    ck_assert_int_eq(test_read(trace, done.id).state, WEFT_RECORD_FINISHED);
    for (int i = 0; i < 200; i++)
        mine = test_submit(trace, 3, 0);
    wf_trace_fail_since(trace, 0, 3, WEFT_ERR_ABORTED); /* only what the recorder has */
    ck_assert_int_eq(test_read(trace, mine.id - 63).state, WEFT_RECORD_FAILED);
    wf_trace_fail_since(trace, UINT64_MAX, 3, WEFT_ERR_PEER);
    test_trace_end(trace);
}

/* ---- many threads ---- */

#define WRITERS 3
#define EACH    20000

static void *write_records(void *argument)
{
    struct wf_trace *trace = argument;

    for (uint64_t i = 1; i <= EACH; i++) {
        weft_record draft = {
            .comm = i, .sequence = i, .sent = i, .stream = i, .parent = (uint32_t)i};

        wf_trace_finish(trace, wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED, &draft));
    }
    return NULL;
}

TEST(a_copy_is_whole_while_other_threads_write)
{
    struct wf_trace *trace = test_trace_begin(WF_RECORDS_MOST);
    pthread_t threads[WRITERS];
    uint64_t last = 0, read = 0;
    weft_record r;

    for (int i = 0; i < WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_records, trace), 0);
    while (last < WRITERS * EACH) {
        last = atomic_load(&trace->segment->next);
        if (last == 0 || !wf_trace_read(trace, last, &r)) continue;
        read++;
        ck_assert(r.comm == r.sequence && r.comm == r.sent && r.comm == r.stream);
        ck_assert(r.comm == r.parent && r.id == last);
        if (r.state == WEFT_RECORD_FINISHED) ck_assert_uint_ge(r.finished, r.submitted);
        if (r.state == WEFT_RECORD_SUBMITTED) ck_assert_uint_eq(r.finished, 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    for (uint64_t id = 1; id <= WRITERS * EACH; id++, read++)
        ck_assert_int_eq(test_read(trace, id).state, WEFT_RECORD_FINISHED);
    ck_assert_uint_ge(read, WRITERS * EACH);
    test_trace_end(trace);
}
