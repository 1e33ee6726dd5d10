#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

TEST(a_list_of_one_agrees_with_itself)
{
    OWNED(weft_context) *context = NULL;
    struct wf_gathered first, second;
    int32_t me = 0;
    struct wf_agreement alone = {.ranks = &me, .count = 1, .label = "x"};

    fake_reset();
    context = world_alone();
    ck_assert_int_eq(wf_agree(context, &alone, WEFT_OK, (weft_blob){"abc", 3}, &first), WEFT_OK);
    ck_assert_int_eq(first.count, 1);
    ck_assert_uint_eq(first.blobs[0].bytes, 3);
    ck_assert_mem_eq(first.blobs[0].data, "abc", 3);
    ck_assert_int_eq(wf_agree(context, &alone, WEFT_OK, (weft_blob){"", 0}, &second), WEFT_OK);
    ck_assert_uint_ne(first.serial, second.serial);
    wf_gathered_free(&first);
    wf_gathered_free(&second);
    ck_assert_int_eq(
        wf_agree(context, &alone, wf_fail(WEFT_ERR_DEVICE, "no"), (weft_blob){"", 0}, &first),
        WEFT_ERR_DEVICE);
    ck_assert_str_eq(weft_last_error(), "no");
}

/* Rank 1 has failed.  All ranks get its text. */
static void one_failed(struct world_rank *self)
{
    weft_status status = self->rank == 1 ? wf_fail(WEFT_ERR_DEVICE, "too warm") : WEFT_OK;
    struct wf_gathered got;

    note_seen(&self->seen,
              wf_comm_agree(weft_world(self->context), "a step", status, (weft_blob){"", 0}, &got));
}

TEST(a_failure_is_everyones)
{
    fake_reset();
    world_run(ranks, 3, one_failed, NULL);
    all_saw(ranks, 3, WEFT_ERR_DEVICE, "rank 1: too warm");
}

static pthread_barrier_t together;

/* Three ranks run BODY and see STATUS with a text that has PART. */
static void check_three(void (*body)(struct world_rank *), weft_status status, const char *part)
{
    fake_reset();
    fake.exchanges = 1;
    pthread_barrier_init(&together, NULL, 3);
    world_run(ranks, 3, body, NULL);
    pthread_barrier_destroy(&together);
    all_saw(ranks, 3, status, part);
}

/* Rank 0 is in a step of COMM that the others do not enter. */
static void wait_alone(struct world_rank *self)
{
    weft_subcomm_options options = {
        .struct_size = sizeof options, .name = "dp", .timeout_ns = WF_SECOND_NS / 2};
    weft_comm *world = weft_world(self->context), *comm = NULL, *part = NULL;
    struct wf_gathered got;

    HOLDS(weft_comm_create(world, 3, (int32_t[]){0, 1, 2}, &options, &comm) == WEFT_OK);
    if (self->rank == 0)
        HOLDS(wf_comm_agree(comm, "binding a plan on dp", WEFT_OK, (weft_blob){"", 0}, &got) ==
              WEFT_ERR_TIMEOUT);
    if (self->rank == 0) {
        note_seen(&self->seen, WEFT_ERR_TIMEOUT);
        comm->timeout_ns = 300 * WF_SECOND_NS; /* the time that another step would take */
        HOLDS(wf_comm_agree(comm, "a next step", WEFT_OK, (weft_blob){"", 0}, &got) ==
              WEFT_ERR_TIMEOUT);
    }
    pthread_barrier_wait(&together);
    if (self->rank != 0) { /* it gets the error at any time, and then from every call */
        wf_comm_wait_cause(comm, 60 * WF_SECOND_NS);
        note_seen(&self->seen, weft_comm_split(comm, 0, 0, NULL, &part));
    }
    HOLDS(weft_barrier(comm, NULL) == WEFT_ERR_TIMEOUT);
    for (int i = 0; i < 3;
         i++) { /* calls of the same ranks on another communicator pair as before */
        HOLDS(weft_comm_split(world, 0, 0, NULL, &part) == WEFT_OK);
        weft_comm_release(&part);
        HOLDS(weft_comm_create(world, 3, (int32_t[]){0, 1, 2}, NULL, &part) == WEFT_OK);
        weft_comm_release(&part);
    }
    weft_comm_release(&comm);
}

TEST(a_step_that_not_all_come_to_fails_its_communicator_on_all_ranks)
{
    check_three(wait_alone, WEFT_ERR_TIMEOUT,
                "ranks 1 and 2 of 3 did not reach binding a plan on dp within 500.0 ms");
}

/* Rank 0 times out while the others wait for it without a limit. */
static void wait_for_the_end(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = WEFT_FOREVER};
    weft_comm *world = weft_world(self->context), *comm = NULL, *part = NULL;

    HOLDS(weft_comm_create(world, 3, (int32_t[]){0, 1, 2}, &options, &comm) == WEFT_OK);
    if (self->rank == 0)
        HOLDS(wf_comm_fault(comm, wf_fail(WEFT_ERR_TIMEOUT, "too late"), "barrier") ==
              WEFT_ERR_TIMEOUT);
    else
        HOLDS(weft_comm_split(comm, 0, 0, NULL, &part) == WEFT_ERR_TIMEOUT);
    note_seen(&self->seen, weft_barrier(comm, NULL));
    pthread_barrier_wait(&together); /* no rank leaves earlier */
    weft_comm_release(&comm);
}

TEST(a_step_ends_when_time_runs_out_on_another_rank)
{
    check_three(wait_for_the_end, WEFT_ERR_TIMEOUT, "too late");
}

static const int32_t all[] = {0, 1, 2};

/* A communicator without a time limit.  Its steps end only if it fails. */
static weft_comm *make_patient(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = WEFT_FOREVER};
    weft_comm *comm = NULL;

    HOLDS(weft_comm_create(weft_world(self->context), 3, all, &options, &comm) == WEFT_OK);
    return comm;
}

/* Every call that needs the other ranks returns the cause of COMM. */
static void call_all(struct world_rank *self, weft_comm *comm, weft_status cause)
{
    int32_t next = (self->rank + 1) % 3;
    struct wf_gathered got;
    weft_comm *part = NULL;

    HOLDS(weft_comm_split(comm, 0, 0, NULL, &part) == cause);
    HOLDS(wf_comm_agree(comm, "binding a plan", WEFT_OK, (weft_blob){"", 0}, &got) == cause);
    if (cause == WEFT_ERR_PEER) return;
    HOLDS(weft_comm_create(comm, 3, all, NULL, &part) == cause);
    HOLDS(weft_comm_create(comm, 1, &self->rank, NULL, &part) == cause);
    HOLDS(weft_comm_create(comm, 1, &next, NULL, &part) == cause);
}

/* The other ranks are in a step or enter it. */
static void abort_steps(struct world_rank *self)
{
    weft_comm *comms[3], *part = NULL;
    struct wf_gathered got;

    for (int i = 0; i < 3; i++) {
        comms[i] = make_patient(self);
        if (self->rank == 0)
            weft_comm_abort(comms[i]);
        else if (i == 0)
            HOLDS(weft_comm_split(comms[i], 0, 0, NULL, &part) == WEFT_ERR_ABORTED);
        else if (i == 1)
            HOLDS(wf_comm_agree(comms[i], "binding a plan", WEFT_OK, (weft_blob){"", 0}, &got) ==
                  WEFT_ERR_ABORTED);
        else
            HOLDS(weft_comm_create(comms[i], 3, all, NULL, &part) == WEFT_ERR_ABORTED);
        call_all(self, comms[i], WEFT_ERR_ABORTED);
    }
    note_seen(&self->seen, weft_comm_async_error(comms[2]));
    pthread_barrier_wait(&together); /* no rank leaves earlier */
    for (int i = 0; i < 3; i++)
        weft_comm_release(&comms[i]);
}

TEST(an_abort_ends_steps_of_other_ranks)
{
    check_three(abort_steps, WEFT_ERR_ABORTED, "was aborted by rank 0");
}

/* COMM fails on rank 1 only, which then makes the calls in which the others wait. */
static void fail_on_one_rank(struct world_rank *self)
{
    weft_comm *differs = make_patient(self), *breaks = make_patient(self);

    if (self->rank == 1)
        HOLDS(wf_comm_fault(differs, wf_fail(WEFT_ERR_MISMATCH, "calls differ"), "barrier") ==
              WEFT_ERR_MISMATCH);
    call_all(self, differs, WEFT_ERR_MISMATCH);
    note_seen(&self->seen, weft_comm_async_error(differs));
    if (self->rank == 1)
        HOLDS(wf_comm_fault(breaks, wf_fail(WEFT_ERR_DEVICE, "it broke"), "barrier") ==
              WEFT_ERR_DEVICE);
    call_all(self, breaks, self->rank == 1 ? WEFT_ERR_DEVICE : WEFT_ERR_PEER);
    HOLDS(weft_comm_async_error(breaks) != WEFT_OK &&
          strstr(weft_last_error(), "it broke") != NULL);
    pthread_barrier_wait(&together);
    weft_comm_release(&breaks);
    weft_comm_release(&differs);
}

TEST(a_cause_that_one_rank_knows_ends_the_steps_of_all)
{
    check_three(fail_on_one_rank, WEFT_ERR_MISMATCH, "calls differ");
}

/* The remaining ranks create a communicator of their own. */
static void go_on(struct world_rank *self)
{
    weft_comm *comm = make_patient(self), *rest = NULL;

    wf_comm_fail(comm, WEFT_ERR_PEER, "rank 7 is gone");
    HOLDS(weft_comm_create(comm, 3, all, NULL, &rest) == WEFT_OK);
    HOLDS(weft_barrier(rest, NULL) == WEFT_OK);
    call_all(self, comm, WEFT_ERR_PEER);
    note_seen(&self->seen, weft_comm_async_error(comm));
    weft_comm_release(&rest);
    weft_comm_release(&comm);
}

TEST(remaining_ranks_make_a_communicator)
{
    fake_reset();
    fake.exchanges = 1;
    world_run(ranks, 3, go_on, NULL);
    all_saw(ranks, 3, WEFT_ERR_PEER, "rank 7 is gone");
}

/* Rank 1 makes its first call after the others' calls have timed out. */
static void come_late(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = WF_SECOND_NS / 2};
    weft_comm *comm = make_patient(self), *part = NULL;

    if (self->rank != 1) HOLDS(weft_comm_create(comm, 3, all, &options, &part) == WEFT_ERR_TIMEOUT);
    pthread_barrier_wait(&together);
    note_seen(&self->seen, weft_comm_create(comm, 3, all, NULL, &part));
    HOLDS(part == NULL);
    pthread_barrier_wait(&together);
    weft_comm_release(&comm);
}

TEST(a_late_call_does_not_pair_with_the_next_one)
{
    check_three(come_late, WEFT_ERR_TIMEOUT, "rank 1 of 3 did not reach weft_comm_create");
}
