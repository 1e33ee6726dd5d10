#include "support/fake_world.h"
#include "support/suite.h"

#include <sched.h>

static struct world_rank ranks[WORLD_MAX];

static void reduce_once(struct world_rank *self)
{
    float x = 1, y;

    note_seen(&self->seen, weft_all_reduce(weft_world(self->context), &x, &y, 1, WEFT_DTYPE_F32,
                                           WEFT_REDUCE_SUM, NULL));
}

/* The world of one rank, whose collectives fail. */
static weft_comm *failing_world(weft_status status, weft_context **context)
{
    fake_reset();
    *context = world_alone();
    fake.collective_fails = 0;
    fake.collective_status = status;
    return weft_world(*context);
}

TEST(an_error_that_cannot_pass_sticks_with_its_words)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_ERR_DEVICE, &context);

    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "barrier on world: scripted: collective fails");
    fake.collective_fails = NOBODY;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "barrier on world: scripted: collective fails");
    ck_assert_int_eq(weft_comm_async_error(world), WEFT_ERR_DEVICE);
    ck_assert_int_eq(weft_group_begin(world), WEFT_ERR_DEVICE);
    ck_assert_int_eq(fake.collectives, 1);
}

TEST(the_cause_names_the_library_of_the_vendor)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_OK, &context);
    int64_t code = 0;

    wf_fail_vendor(WEFT_ERR_DEVICE, "NCCL", 5, "it broke");
    ck_assert_int_eq(wf_comm_fault(world, WEFT_ERR_DEVICE, "barrier"), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error_vendor(&code), "NCCL");
    ck_assert_int_eq(code, 5);
    wf_fail(WEFT_ERR_INVALID, "something else");
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "barrier on world: it broke");
    ck_assert_str_eq(weft_last_error_vendor(&code), "NCCL");
    ck_assert_int_eq(code, 5);
}

TEST(a_lost_rank_is_not_the_fault_of_a_library)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_OK, &context);

    wf_fail_vendor(WEFT_ERR_PEER, "NCCL", 6, "remote process exited");
    ck_assert_int_eq(wf_comm_fault(world, WEFT_ERR_PEER, "barrier"), WEFT_ERR_PEER);
    ck_assert_ptr_null(weft_last_error_vendor(NULL));
}

TEST(a_communicator_that_failed_on_another_rank_has_failed)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_OK, &context);

    fake.collective_fails = NOBODY;
    ck_assert_int_eq(weft_comm_async_error(world), WEFT_OK);
    strcpy(world->limit_text, "rank 1 makes another call");
    atomic_store(&world->limit, WEFT_ERR_MISMATCH); /* as its report does */
    ck_assert_int_eq(weft_comm_async_error(world), WEFT_ERR_MISMATCH);
    ck_assert_str_eq(weft_last_error(), "rank 1 makes another call");
}

TEST(an_error_that_passes_does_not_stick)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_ERR_UNSUPPORTED, &context);

    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_UNSUPPORTED);
    ck_assert_uint_eq(world->collectives, 0);
    fake.collective_fails = NOBODY;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    ck_assert_uint_eq(world->collectives, 1);
}

/* Before the operation has started, or in the middle of it, as the backend reports. */
TEST(missing_memory_sticks_if_the_backend_is_stuck_with_it)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world = failing_world(WEFT_ERR_NO_MEMORY, &context);

    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_NO_MEMORY);
    fake.collective_fails = NOBODY;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_OK);
    fake.collective_fails = 0;
    fake.async_status = WEFT_ERR_NO_MEMORY;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_NO_MEMORY);
    fake.collective_fails = NOBODY;
    fake.async_status = WEFT_OK;
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_NO_MEMORY);
    ck_assert_int_eq(fake.collectives, 3);
}

TEST(an_abort_ends_later_calls)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world;

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    weft_comm_abort(world);
    weft_comm_abort(world);
    weft_comm_abort(NULL);
    ck_assert_int_eq(weft_barrier(world, NULL), WEFT_ERR_ABORTED);
    ck_assert_str_eq(weft_last_error(), "world was aborted by rank 0");
    ck_assert_int_eq(weft_comm_async_error(world), WEFT_ERR_ABORTED);
}

/* Rank 1 hangs in a collective; rank 0 aborts. */
static void abort_elsewhere(struct world_rank *self)
{
    if (self->rank == 0) {
        fake_sleep_ms(50);
        weft_comm_abort(weft_world(self->context));
    }
    reduce_once(self);
}

TEST(an_abort_reaches_the_other_ranks)
{
    fake_reset();
    fake.hangs = 1;
    world_run(ranks, 2, abort_elsewhere, NULL);
    all_saw(ranks, 2, WEFT_ERR_ABORTED, "world was aborted by rank 0");
}

/* Rank 1 hangs in a collective of the world; rank 0 aborts its context, which has two
 * communicators. */
static void abort_all_elsewhere(struct world_rank *self)
{
    weft_comm *part = NULL;

    ck_assert_int_eq(weft_comm_split(weft_world(self->context), 0, 0, NULL, &part), WEFT_OK);
    if (self->rank == 0) {
        fake_sleep_ms(50);
        weft_context_abort(self->context);
        ck_assert_int_eq(weft_comm_async_error(part), WEFT_ERR_ABORTED);
    }
    reduce_once(self);
    while (weft_comm_async_error(part) == WEFT_OK)
        fake_sleep_ms(1);
    ck_assert_int_eq(weft_comm_async_error(part), WEFT_ERR_ABORTED);
    weft_comm_release(&part);
}

TEST(an_abort_of_a_context_ends_all_its_communicators)
{
    fake_reset();
    fake.hangs = 1;
    world_run(ranks, 2, abort_all_elsewhere, NULL);
    all_saw(ranks, 2, WEFT_ERR_ABORTED, "world was aborted by rank 0");
    weft_context_abort(NULL);
}

/* Rank 1 detects a mismatch while rank 0 waits, then leaves. */
TEST(a_mismatch_reaches_the_other_ranks)
{
    fake_reset();
    fake.hangs = 0;
    fake.collective_fails = 1;
    fake.collective_status = WEFT_ERR_MISMATCH;
    world_run(ranks, 2, reduce_once, NULL);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "all_reduce on world: scripted: collective fails");
    ck_assert_ptr_nonnull(strstr(ranks[0].seen.text, "(reported by rank 1)"));
}

/* ---- earlier collectives of slower ranks ---- */

static weft_comm *slow_world; /* of rank 1 */
static atomic_bool is_late;   /* rank 1 is past its first collective */

/* The report of rank 0 has arrived at rank 1. */
static bool has_report(void)
{
    return atomic_load(&slow_world->may_post) != UINT64_MAX;
}

/* Rank 0 detects a mismatch in collective 2 while rank 1 is in collective 1, and rank 2 in none. */
static void finish_late(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    struct seen first;

    if (self->rank == 2) {
        while (!wf_comm_has_failed(world))
            fake_sleep_ms(1);
        note_seen(&self->seen, weft_send(world, NULL, 0, WEFT_DTYPE_U8, 0, 0, NULL));
    } else {
        if (self->rank == 1) slow_world = world;
        reduce_once(self);
        HOLDS(self->seen.status == WEFT_OK);
        if (self->rank == 1) is_late = true;
        while (self->rank == 0 && fake.collectives < 2)
            fake_sleep_ms(1);
        if (self->rank == 0) fake.collective_fails = 0;
        reduce_once(self);
    }
    first = self->seen;
    reduce_once(self);
    HOLDS(self->seen.status == first.status && strcmp(self->seen.text, first.text) == 0);
    note_seen(&self->seen, weft_comm_async_error(world));
    HOLDS(self->seen.status == first.status && strcmp(self->seen.text, first.text) == 0);
    while (!is_late) /* rank 2 took part in no collective: its departure would end the first */
        fake_sleep_ms(1);
}

TEST(a_mismatch_does_not_end_an_earlier_collective)
{
    fake_reset();
    fake.collective_status = WEFT_ERR_MISMATCH;
    fake.lingers = 1;
    is_late = false;
    fake.may_return = has_report;
    world_run(ranks, 3, finish_late, NULL);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "all_reduce on world: scripted: collective fails");
    ck_assert_ptr_nonnull(strstr(ranks[1].seen.text, "(reported by rank 0)"));
}

/* ---- the cause on other ranks ---- */

/* A time limit passes in work of rank 1, which does not look.  Rank 0 sees that rank 1 failed. */
static void look_first(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);

    if (self->rank == 1) wf_comm_wait_cause(world, 60 * WF_SECOND_NS);
    if (self->rank == 0) {
        reduce_once(self);
        HOLDS(self->seen.status == WEFT_ERR_TIMEOUT);
    }
    note_seen(&self->seen, weft_comm_async_error(world));
}

TEST(a_time_out_that_a_rank_has_not_seen_is_the_cause_on_all_ranks)
{
    fake_reset();
    fake.collective_fails = 0;
    fake.collective_status = WEFT_ERR_PEER;
    fake.async_rank = 1;
    fake.async_status = WEFT_ERR_TIMEOUT;
    world_run(ranks, 2, look_first, NULL);
    all_saw(ranks, 2, WEFT_ERR_TIMEOUT, "all_reduce on world: rank 1 failed: scripted: async");
}

/* This rank and a peer detect the same mismatch, and the peer's report arrives first. */
static void detect_second(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    struct seen first;

    if (self->rank == 1) wf_comm_wait_cause(world, 60 * WF_SECOND_NS);
    note_seen(&self->seen,
              wf_comm_fault(world, wf_fail(WEFT_ERR_MISMATCH, "as rank %d sees it", self->rank),
                            "barrier"));
    first = self->seen;
    note_seen(&self->seen, weft_barrier(world, NULL));
    HOLDS(self->seen.status == first.status && strcmp(self->seen.text, first.text) == 0);
}

TEST(a_rank_has_one_text_of_a_mismatch)
{
    fake_reset();
    world_run(ranks, 2, detect_second, NULL);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "barrier on world: as rank 0 sees it");
}

static struct {
    struct seen seen[3];
    weft_context *leaked;
} shared;

static weft_status leave_without_goodbye(void *argument)
{
    weft_context *context;
    weft_init_options options = {.struct_size = sizeof options, .timeout_ns = 300 * WF_SECOND_NS};
    int32_t rank;
    float x = 1, y;
    weft_status status;

    (void)argument;
    (void)wf_threads_current(&rank);
    WF_TRY(wf_context_create(&options, fake_plugin(), &context));
    if (rank == 2) {
        status = wf_fail(WEFT_ERR_INTERNAL, "rank 2 had enough");
        /* The context is leaked on purpose.  The test releases it. */
        shared.leaked = context;
        return status;
    }
    status = weft_all_reduce(weft_world(context), &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
    note_seen(&shared.seen[rank], status);
    weft_context_release(&context);
    return WEFT_OK;
}

TEST(a_rank_that_fails_ends_what_the_others_wait_for)
{
    fake_reset();
    fake.hangs = 0;
    ck_assert_int_eq(weft_threads_run(3, leave_without_goodbye, NULL), WEFT_ERR_INTERNAL);
    ck_assert_str_eq(weft_last_error(), "rank 2: rank 2 had enough");
    ck_assert_int_eq(shared.seen[0].status, WEFT_ERR_PEER);
    ck_assert_ptr_nonnull(
        strstr(shared.seen[0].text, "rank 2 is gone: it returned an error: rank 2 had enough"));
    weft_context_release(&shared.leaked);
}

static void reduce_until_failed(struct world_rank *self)
{
    do {
        fake_sleep_ms(1);
        reduce_once(self);
    } while (self->seen.status == WEFT_OK);
}

static atomic_int knows_of_loss;

/* Rank 2 closes its connection.  The communicator of 0 and 1 is not affected. */
static void lose_one(struct world_rank *self)
{
    weft_comm *pair = NULL;
    float x = 1, y;
    weft_status status;

    status = weft_comm_create(weft_world(self->context), 2, (int32_t[]){0, 1}, NULL, &pair);
    HOLDS(status == WEFT_OK);
    if (self->rank == 2) {
        note_seen(&self->seen, WEFT_OK);
        wf_server_report_gone(self->threads->server, 2, "is gone: says the test");
        while (knows_of_loss < 2) /* its departure must not arrive first */
            fake_sleep_ms(1);
        return;
    }
    reduce_until_failed(self);
    knows_of_loss++;
    HOLDS(weft_all_reduce(pair, &x, &y, 1, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL) == WEFT_OK);
    weft_comm_release(&pair);
    /* The remaining ranks can still create communicators.  A communicator with the lost rank fails
     * at once. */
    status = weft_comm_create(weft_world(self->context), 2, (int32_t[]){1, 0}, NULL, &pair);
    HOLDS(status == WEFT_OK);
    weft_comm_release(&pair);
    note_seen(&self->seen,
              weft_comm_create(weft_world(self->context), 3, (int32_t[]){2, 1, 0}, NULL, &pair));
}

TEST(remaining_ranks_continue_without_the_lost_rank)
{
    fake_reset();
    knows_of_loss = 0;
    world_run(ranks, 3, lose_one, NULL);
    all_saw(ranks, 2, WEFT_ERR_PEER, "rank 2 is gone: says the test");
}

/* ---- two threads of a rank ---- */

static weft_comm *comm_of_step; /* of rank 0 */

/* A collective of rank 0 fails while a step of rank 0 waits. */
static void *fail_beside(void *argument)
{
    struct world_rank *self = argument;

    fake_sleep_ms(100);
    HOLDS(weft_barrier(comm_of_step, NULL) == WEFT_ERR_DEVICE);
    return NULL;
}

/* Rank 1 does not come to the step. */
static void wait_beside(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = 60 * WF_SECOND_NS};
    weft_comm *comm = NULL, *part = NULL;
    uint64_t begin_ns;
    pthread_t beside;

    HOLDS(weft_comm_split(weft_world(self->context), 0, 0, &options, &comm) == WEFT_OK);
    if (self->rank == 0) {
        comm_of_step = comm;
        begin_ns = wf_now_ns();
        HOLDS(pthread_create(&beside, NULL, fail_beside, self) == 0);
        note_seen(&self->seen, weft_comm_split(comm, 0, 0, NULL, &part));
        HOLDS(wf_now_ns() - begin_ns < 30 * (uint64_t)WF_SECOND_NS);
        pthread_join(beside, NULL);
    } else {
        wf_comm_wait_cause(comm, 60 * WF_SECOND_NS);
        note_seen(&self->seen, weft_comm_async_error(comm));
    }
    weft_comm_release(&comm);
}

TEST(a_failure_ends_a_step_of_another_thread)
{
    fake_reset();
    fake.collective_fails = 0;
    fake.collective_status = WEFT_ERR_DEVICE;
    world_run(ranks, 2, wait_beside, NULL);
    ck_assert_int_eq(ranks[0].seen.status, WEFT_ERR_DEVICE);
    ck_assert_int_eq(ranks[1].seen.status, WEFT_ERR_PEER);
    ck_assert_ptr_nonnull(strstr(ranks[1].seen.text, "(reported by rank 0)"));
}

/* A bound plan is freed after the error that ended its binding: the caller gets that error. */
TEST(waiting_for_failed_work_keeps_the_error_of_the_thread)
{
    OWNED(weft_context) *context = NULL;
    weft_stream *stream;

    fake_reset();
    fake.inlined = false;
    context = world_alone();
    ck_assert_int_eq(weft_stream_create(context, &stream), WEFT_OK);
    ck_assert_int_eq(weft_barrier(weft_world(context), stream), WEFT_OK);
    *(atomic_int *)(void *)stream = 1; /* its work is pending */
    weft_comm_abort(weft_world(context));
    (void)wf_fail(WEFT_ERR_PEER, "rank 3 is gone");
    ck_assert(!wf_posts_drain(weft_world(context))); /* the wait fails with another text */
    ck_assert_str_eq(weft_last_error(), "rank 3 is gone");
    *(atomic_int *)(void *)stream = 0;
    ck_assert(wf_posts_drain(weft_world(context)));
    ck_assert_str_eq(weft_last_error(), "rank 3 is gone");
    weft_stream_release(&stream);
}
