#include "comm/recording.h"
#include "support/fake_world.h"
#include "support/suite.h"

static weft_context *context;
static weft_comm *world;
static char buffer[256];

static void begin(void)
{
    fake_reset();
    context = world_alone();
    world = weft_world(context);
}

/* The record that is BACK before the newest. */
static weft_record newest(uint64_t back)
{
    weft_record record;

    ck_assert(
        wf_trace_read(context->trace, atomic_load(&context->trace->segment->next) - back, &record));
    return record;
}

static weft_status all_reduce(weft_stream *stream)
{
    return weft_all_reduce(world, buffer, buffer + 8, 2, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, stream);
}

TEST(a_collective_is_recorded)
{
    weft_record r;

    begin();
    ck_assert_int_eq(all_reduce(NULL), WEFT_OK);
    r = newest(0);
    ck_assert(r.id == 1 && r.comm == world->number && r.sequence == 1);
    ck_assert(r.operation == WEFT_RECORD_ALL_REDUCE && r.dtype == WEFT_DTYPE_F32);
    ck_assert(r.reduction == WEFT_REDUCE_MAX && r.sent == 8 && r.received == 8);
    ck_assert(r.state == WEFT_RECORD_FINISHED && r.peer == -1 && r.flags == 0 && r.step == 0);
    ck_assert_int_eq(r.step_kind, WEFT_NO_STEP_KIND);
    ck_assert_str_eq(weft_trace_text(context, r.comm_name), "world");
    ck_assert_int_eq(weft_broadcast(world, buffer, buffer, 3, WEFT_DTYPE_I64, 0, NULL), WEFT_OK);
    r = newest(0);
    ck_assert(r.operation == WEFT_RECORD_BROADCAST && r.sequence == 2 && r.peer == 0);
    weft_context_release(&context);
}

/* The struct of weft_collective may have any value in a field that the collective does not use. */
TEST(unused_fields_of_a_collective_are_not_read)
{
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_BARRIER,
                                 .dtype = 12345678,
                                 .reduction = 99,
                                 .root = 1 << 30,
                                 .count = UINT64_MAX};
    weft_record r;

    begin();
    ck_assert_int_eq(weft_collective(world, &args), WEFT_OK);
    r = newest(0);
    ck_assert(r.operation == WEFT_RECORD_BARRIER && r.peer == -1 && r.sent == 0 && r.received == 0);
    args = (weft_collective_args){.struct_size = sizeof args,
                                  .collective = WEFT_COLL_ALL_GATHER,
                                  .root = 1 << 30,
                                  .count = 1,
                                  .send = buffer,
                                  .recv = buffer + 8};
    ck_assert_int_eq(weft_collective(world, &args), WEFT_OK);
    ck_assert_int_eq(newest(0).peer, -1);
    weft_context_release(&context);
}

TEST(a_refused_call_has_no_record)
{
    begin();
    ck_assert_int_eq(weft_all_reduce(world, NULL, buffer, 2, WEFT_DTYPE_F32, WEFT_REDUCE_MAX, NULL),
                     WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_send(world, buffer, 1, WEFT_DTYPE_F32, 5, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_uint_eq(atomic_load(&context->trace->segment->next), 0);
    weft_context_release(&context);
}

TEST(a_call_that_the_backend_refuses_has_failed)
{
    begin();
    fake.collective_fails = 0;
    fake.collective_status = WEFT_ERR_UNSUPPORTED;
    ck_assert_int_eq(all_reduce(NULL), WEFT_ERR_UNSUPPORTED);
    ck_assert_int_eq(newest(0).state, WEFT_RECORD_FAILED);
    ck_assert_int_eq(newest(0).status, WEFT_ERR_UNSUPPORTED);
    fake.collective_fails = NOBODY;
    ck_assert_int_eq(all_reduce(NULL), WEFT_OK);
    ck_assert(newest(0).state == WEFT_RECORD_FINISHED && newest(0).sequence == 1);
    weft_context_release(&context);
}

TEST(messages_are_counted_for_each_peer)
{
    begin();
    for (uint64_t i = 1; i <= 2; i++) {
        ck_assert_int_eq(weft_send(world, buffer, 3, WEFT_DTYPE_I16, 0, 0, NULL), WEFT_OK);
        ck_assert(newest(0).operation == WEFT_RECORD_SEND && newest(0).sequence == i);
        ck_assert(newest(0).sent == 6 && newest(0).received == 0 && newest(0).peer == 0);
    }
    ck_assert_int_eq(weft_receive(world, buffer, 3, WEFT_DTYPE_I16, 0, 0, NULL), WEFT_OK);
    ck_assert(newest(0).operation == WEFT_RECORD_RECEIVE && newest(0).sequence == 1);
    ck_assert(newest(0).sent == 0 && newest(0).received == 6);
    weft_context_release(&context);
}

static void count_start(void *user, const weft_record *record)
{
    *(int *)user += record->state == WEFT_RECORD_SUBMITTED && record->started >= record->submitted;
}

TEST(the_operations_of_a_group_start_and_end_with_it)
{
    int starts = 0;
    weft_observer observer = {
        .struct_size = sizeof observer, .user = &starts, .started = count_start};
    weft_observation *observation;

    begin();
    ck_assert_int_eq(weft_observe(context, &observer, &observation), WEFT_OK);
    ck_assert_int_eq(all_reduce(NULL), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(weft_send(world, buffer, 1, WEFT_DTYPE_F32, 0, 0, NULL), WEFT_OK);
    ck_assert_int_eq(weft_receive(world, buffer, 1, WEFT_DTYPE_F32, 0, 0, NULL), WEFT_OK);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert(newest(0).state == WEFT_RECORD_SUBMITTED && newest(0).started == 0 && starts == 0);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert(newest(0).state == WEFT_RECORD_FINISHED && newest(1).state == WEFT_RECORD_FINISHED);
    ck_assert(newest(1).started >= newest(0).submitted);
    ck_assert_int_eq(starts, 2);
    weft_observation_release(&observation);
    weft_context_release(&context);
}

TEST(the_operations_of_a_failed_group_have_failed)
{
    weft_stream *stream;

    begin();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(all_reduce(stream), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(all_reduce(NULL), WEFT_OK);
    ck_assert_int_eq(all_reduce(stream), WEFT_OK);
    ck_assert_int_eq(weft_send(world, buffer, 1, WEFT_DTYPE_F32, 5, 0, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_group_end(world), WEFT_ERR_INVALID);
    for (uint64_t back = 0; back < 2; back++) {
        ck_assert_int_eq(newest(back).state, WEFT_RECORD_FAILED);
        ck_assert_int_eq(newest(back).status, WEFT_ERR_INVALID);
    }
    ck_assert_int_eq(newest(2).state, WEFT_RECORD_SUBMITTED); /* before the group */
    ck_assert_int_eq(weft_group_begin(world), WEFT_OK);
    ck_assert_int_eq(all_reduce(NULL), WEFT_OK);
    ck_assert_int_eq(weft_group_end(world), WEFT_OK);
    ck_assert_int_eq(newest(0).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(newest(1).state, WEFT_RECORD_FAILED);
    ck_assert_int_eq(weft_context_wait(context, stream, WEFT_FOREVER), WEFT_OK);
    ck_assert_int_eq(newest(1).state, WEFT_RECORD_FAILED);
    ck_assert_int_eq(newest(3).state, WEFT_RECORD_FINISHED);
    weft_stream_release(&stream);
    weft_context_release(&context);
}

TEST(an_open_group_of_a_released_communicator_has_failed)
{
    weft_comm *comm;

    begin();
    ck_assert_int_eq(weft_comm_split(world, 0, 0, NULL, &comm), WEFT_OK);
    ck_assert_int_eq(weft_group_begin(comm), WEFT_OK);
    ck_assert_int_eq(weft_barrier(comm, NULL), WEFT_OK);
    wf_log_set_level(WF_LOG_ERROR);
    weft_comm_release(&comm);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert(newest(0).state == WEFT_RECORD_FAILED && newest(0).status == WEFT_ERR_ABORTED);
    weft_context_release(&context);
}

TEST(work_on_a_stream_ends_when_the_host_notices)
{
    weft_stream *stream;
    weft_work *work;

    begin();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(all_reduce(stream), WEFT_OK);
    ck_assert_int_eq(weft_work_record(context, stream, &work), WEFT_OK);
    ck_assert_int_eq(all_reduce(stream), WEFT_OK);
    ck_assert(newest(0).flags == WEFT_RECORD_ON_STREAM && newest(0).stream == 1);
    atomic_store((atomic_int *)(void *)stream, 1);
    ck_assert_int_eq(weft_work_test(work), WEFT_IN_PROGRESS);
    ck_assert_int_eq(newest(1).state, WEFT_RECORD_SUBMITTED);
    atomic_store((atomic_int *)(void *)stream, 0);
    ck_assert_int_eq(weft_work_test(work), WEFT_OK);
    ck_assert_int_eq(newest(1).state, WEFT_RECORD_FINISHED);
    ck_assert_int_eq(newest(0).state, WEFT_RECORD_SUBMITTED);
    ck_assert_int_eq(weft_stream_test(stream), WEFT_OK);
    ck_assert_int_eq(newest(0).state, WEFT_RECORD_FINISHED);
    weft_work_release(&work);
    weft_stream_release(&stream);
    weft_context_release(&context);
}

/* The backend may give a stream the address of a released one. */
TEST(streams_have_numbers_of_their_own)
{
    weft_stream *stream, *other;

    begin();
    for (uint64_t number = 1; number <= 20; number += 2) {
        ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
        ck_assert_int_eq(weft_stream_create(context, &other), WEFT_OK);
        ck_assert_int_eq(weft_stream_set_name(context, stream, "copies"), WEFT_OK);
        ck_assert_int_eq(all_reduce(stream), WEFT_OK);
        ck_assert_uint_eq(newest(0).stream, number);
        ck_assert_str_eq(wf_trace_stream_name(context->trace, number), "copies");
        ck_assert_int_eq(all_reduce(other), WEFT_OK);
        ck_assert_uint_eq(newest(0).stream, number + 1);
        ck_assert_str_eq(wf_trace_stream_name(context->trace, number + 1), "");
        ck_assert_int_eq(weft_stream_test(other), WEFT_OK);
        ck_assert_int_eq(newest(0).state, WEFT_RECORD_FINISHED);
        ck_assert_int_eq(newest(1).state, WEFT_RECORD_SUBMITTED);
        weft_stream_release(&stream);
        weft_stream_release(&other);
    }
    weft_context_release(&context);
}

TEST(work_of_a_failed_communicator_has_failed)
{
    weft_stream *stream;
    weft_comm *other;

    begin();
    ck_assert_int_eq(weft_comm_split(world, 0, 0, NULL, &other), WEFT_OK);
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(all_reduce(stream), WEFT_OK);
    ck_assert_int_eq(weft_barrier(other, stream), WEFT_OK);
    weft_comm_abort(other);
    ck_assert_int_eq(weft_context_wait(context, stream, WEFT_FOREVER), WEFT_ERR_ABORTED);
    ck_assert(newest(0).state == WEFT_RECORD_FAILED && newest(0).status == WEFT_ERR_ABORTED);
    ck_assert_int_eq(newest(1).state, WEFT_RECORD_SUBMITTED);
    weft_stream_release(&stream);
    weft_comm_release(&other);
    weft_context_release(&context);
}

/* ---- several ranks ---- */

static struct world_rank ranks[WORLD_MAX];

/* Rank 0 waits in a barrier that rank 1 does not call. */
static void wait_for_rank_1(struct world_rank *self)
{
    weft_comm *comm = weft_world(self->context);
    weft_record r;

    if (self->rank == 1) {
        while (!wf_comm_has_failed(comm))
            fake_sleep_ms(5);
        return;
    }
    ((struct fake_comm *)comm->handle)->timeout_ns = 1000000;
    note_seen(&self->seen, weft_barrier(comm, NULL));
    HOLDS(wf_trace_read(self->context->trace, 1, &r) && r.state == WEFT_RECORD_FAILED);
    HOLDS(r.status == WEFT_ERR_TIMEOUT && r.waits_for == 1);
    HOLDS(wf_trace_wait_of(self->context->trace, comm->number) == 1);
    HOLDS(wf_trace_failure_of(self->context->trace, comm->number) == WEFT_ERR_TIMEOUT);
}

TEST(a_time_out_names_the_rank_that_is_behind)
{
    fake_reset();
    fake.hangs = 0;
    world_begin(ranks, 2, wait_for_rank_1, NULL);
    wf_log_set_level(WF_LOG_ERROR);
    world_go(ranks, 2);
    wf_log_set_level(WF_LOG_NOTICE);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_ERR_TIMEOUT);
}
