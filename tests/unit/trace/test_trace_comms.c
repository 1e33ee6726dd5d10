#include "support/suite.h"
#include "support/trace.h"

static struct wf_segment_comm *find(const struct wf_trace *trace, uint64_t number)
{
    for (size_t i = 0; i < WF_SEGMENT_COMMS; i++)
        if (trace->segment->comms[i].number == number) return &trace->segment->comms[i];
    return NULL;
}

TEST(a_communicator_is_listed_until_it_ends)
{
    struct wf_trace *trace = test_trace_begin(64);
    uint32_t name = wf_trace_intern(trace, "tp");
    struct wf_segment_comm *comm;

    wf_trace_add_comm(trace, 9, name, (int32_t[]){0, 1, 2, 5, 7, 8}, 6, 3);
    comm = find(trace, 9);
    ck_assert_ptr_nonnull(comm);
    ck_assert_str_eq(wf_trace_text(trace, comm->name), "tp");
    ck_assert_str_eq(wf_trace_text(trace, comm->ranks), "0-2,5,7-8");
    ck_assert(comm->rank == 3 && comm->size == 6 && comm->failed == WEFT_OK);
    ck_assert_int_eq(comm->waits_for, -1);
    ck_assert_uint_eq(comm->carrier, 0);
    wf_trace_set_carrier(trace, 9, wf_trace_intern(trace, "pigeons"));
    wf_trace_set_carrier(trace, 8, name);
    ck_assert_str_eq(wf_trace_text(trace, comm->carrier), "pigeons");
    wf_trace_set_wait(trace, 9, 0, 5);
    wf_trace_fail_comm(trace, 9, WEFT_ERR_TIMEOUT, "late");
    ck_assert_int_eq(wf_trace_failure_of(trace, 9), WEFT_ERR_TIMEOUT);
    ck_assert_int_eq(wf_trace_wait_of(trace, 9), 5);
    wf_trace_remove_comm(trace, 9);
    ck_assert_ptr_null(find(trace, 9));
    ck_assert_int_eq(wf_trace_failure_of(trace, 9), WEFT_OK);
    ck_assert_int_eq(wf_trace_wait_of(trace, 0), -1);
    test_trace_end(trace);
}

TEST(a_list_of_many_ranks_ends_after_a_whole_rank)
{
    struct wf_trace *trace = test_trace_begin(64);
    int32_t ranks[1000];
    const char *list;

    for (int32_t i = 0; i < 1000; i++)
        ranks[i] = 2 * i;
    wf_trace_add_comm(trace, 9, 0, ranks, 1000, 0);
    list = wf_trace_text(trace, find(trace, 9)->ranks);
    ck_assert_uint_le(strlen(list), 2047);
    ck_assert_str_eq(list + strlen(list) - 9, ",1036,...");
    test_trace_end(trace);
}

TEST(communicators_beyond_the_list_are_not_listed)
{
    struct wf_trace *trace = test_trace_begin(64);

    for (uint64_t number = 1; number <= WF_SEGMENT_COMMS + 1; number++)
        wf_trace_add_comm(trace, number, 0, (int32_t[]){0}, 1, 0);
    ck_assert_ptr_nonnull(find(trace, WF_SEGMENT_COMMS));
    ck_assert_ptr_null(find(trace, WF_SEGMENT_COMMS + 1));
    wf_trace_fail_comm(trace, WF_SEGMENT_COMMS + 1, WEFT_ERR_PEER, "lost");
    wf_trace_remove_comm(trace, WF_SEGMENT_COMMS + 1);
    test_trace_end(trace);
}

TEST(a_wait_is_noted_in_an_operation_that_has_not_ended)
{
    struct wf_trace *trace = test_trace_begin(64);
    struct wf_submitted open = test_submit(trace, 9, 0), done = test_submit(trace, 9, 0);

    wf_trace_finish(trace, done);
    wf_trace_set_wait(trace, 9, open.id, 4);
    wf_trace_set_wait(trace, 9, done.id, 4);
    ck_assert_int_eq(test_read(trace, open.id).waits_for, 4);
    ck_assert_int_eq(test_read(trace, done.id).waits_for, -1);
    test_trace_end(trace);
}
