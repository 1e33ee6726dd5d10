#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

/* All ranks create a communicator of all ranks in reverse order. */
static void make_reversed(struct world_rank *self)
{
    int32_t list[WORLD_MAX];
    weft_comm *comm = NULL;

    for (int32_t i = 0; i < self->size; i++)
        list[i] = self->size - 1 - i;
    note_seen(&self->seen,
              weft_comm_create(weft_world(self->context), (size_t)self->size, list, NULL, &comm));
    if (self->seen.status != WEFT_OK) {
        HOLDS(comm == NULL);
        return;
    }
    HOLDS(weft_comm_rank(comm) == (self->size - 1 - self->rank));
    HOLDS(weft_comm_world_rank(comm, 0) == (self->size - 1));
    weft_comm_release(&comm);
}

static void fail_later(struct world_rank *self)
{
    make_reversed(self);
    HOLDS(self->seen.status == WEFT_OK);
    *(atomic_int *)self->argument = 2;
    make_reversed(self);
}

/* Rank 0 creates a communicator, and rank 1 does not take part. */
static void make_alone(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *comm = NULL;
    struct wf_comm_request request = {.origin = world,
                                      .agree = world->world_ranks,
                                      .ranks = world->world_ranks,
                                      .agree_count = 2,
                                      .count = 2,
                                      .number = 99,
                                      .name = "late#99",
                                      .what = "late#99",
                                      .timeout_ns = 300 * WF_SECOND_NS,
                                      .deadline_ns = wf_deadline(WF_SECOND_NS / 10)};

    if (self->rank == 0)
        note_seen(&self->seen, wf_comm_make(self->context, &request, &comm));
    else
        wf_comm_wait_cause(world, 60 * WF_SECOND_NS);
    if (self->rank == 1) note_seen(&self->seen, weft_barrier(world, NULL));
}

TEST(the_time_limit_is_of_all_steps_together_and_fails_the_origin)
{
    fake_reset();
    world_run(ranks, 2, make_alone, NULL);
    all_saw(ranks, 2, WEFT_ERR_TIMEOUT, "rank 1 of 2 did not reach the preparation of late#99");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

TEST(the_plugin_gets_addresses_in_the_users_order)
{
    fake_reset();
    fake.exchanges = 2;
    world_run(ranks, 5, make_reversed, NULL);
    all_saw(ranks, 5, WEFT_OK, "");
    ck_assert_int_eq(fake.committed, 10);
    ck_assert_int_eq(fake.destroyed, 10);
    ck_assert_int_eq(fake.devices, 0);
}

TEST(a_prepare_that_fails_is_the_same_error_on_all)
{
    fake_reset();
    fake.prepare_fails = 2;
    world_run(ranks, 4, NULL, NULL);
    all_saw(ranks, 4, WEFT_ERR_SYSTEM, "rank 2: scripted: prepare fails for world");
    ck_assert_int_eq(fake.prepared, 3);
    ck_assert_int_eq(fake.destroyed, 3);
    ck_assert_int_eq(fake.committed, 0);
    ck_assert_int_eq(fake.devices, 0);
}

TEST(a_commit_that_fails_is_the_same_error_on_all)
{
    fake_reset();
    fake.commit_fails = 1;
    world_run(ranks, 4, NULL, NULL);
    all_saw(ranks, 4, WEFT_ERR_SYSTEM, "rank 1: scripted: commit fails");
    ck_assert_int_eq(fake.destroyed, 4);
}

TEST(a_commit_that_fails_frees_ranks_in_the_exchange)
{
    fake_reset();
    fake.exchanges = 3;
    fake.commit_fails = 0;
    world_run(ranks, 4, NULL, NULL);
    all_saw(ranks, 4, WEFT_ERR_SYSTEM, "rank 0: scripted: commit fails");
    ck_assert_int_eq(fake.destroyed, 4);
}

TEST(a_commit_that_fails_while_the_others_wait_for_it_says_why)
{
    fake_reset();
    fake.commit_fails = 1;
    fake.awaited = true;
    world_begin(ranks, 3, NULL, NULL);
    for (int i = 0; i < 3; i++)
        ranks[i].timeout_ns = 4 * WF_SECOND_NS; /* expires */
    world_go(ranks, 3);
    ck_assert_int_eq(ranks[1].seen.status, WEFT_ERR_SYSTEM);
    ck_assert_str_eq(ranks[1].seen.text, "scripted: commit fails");
    ck_assert_int_ne(ranks[0].seen.status, WEFT_OK);
    ck_assert_int_eq(fake.destroyed, 3);
}

TEST(a_slow_rank_is_waited_for)
{
    fake_reset();
    fake.slow_commit = 3;
    fake.exchanges = 1;
    world_run(ranks, 4, make_reversed, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
}

TEST(a_device_that_does_not_open_is_the_same_error_on_all)
{
    fake_reset();
    fake.open_fails = 3;
    world_run(ranks, 4, NULL, NULL);
    all_saw(ranks, 4, WEFT_ERR_NO_DEVICE, "rank 3: scripted: device does not open");
    ck_assert_int_eq(fake.prepared, 3);
    ck_assert_int_eq(fake.destroyed, 3);
    ck_assert_int_eq(fake.devices, 0);
}

TEST(later_communicators_fail_as_the_first_would)
{
    fake_reset();
    fake.exchanges = 2;
    world_run(ranks, 4, fail_later, &fake.prepare_fails);
    all_saw(ranks, 4, WEFT_ERR_SYSTEM, "rank 2: scripted: prepare fails for comm#");
    fake_reset();
    fake.exchanges = 2;
    world_run(ranks, 4, fail_later, &fake.commit_fails);
    all_saw(ranks, 4, WEFT_ERR_SYSTEM, "rank 2: scripted: commit fails");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

static void make_many(struct world_rank *self)
{
    int64_t live = 0;

    for (int i = 0; i < 300 && self->seen.status == WEFT_OK; i++) {
        make_reversed(self);
        if (i == 50) live = wf_mem_live();
    }
    note_seen(&self->seen, weft_barrier(weft_world(self->context), NULL));
    /* Ranks may be at different points, so a few blocks more or less are allocated. */
    HOLDS(wf_mem_live() < live + 100);
}

TEST(many_communicators_leave_nothing_behind)
{
    int64_t live;

    fake_reset();
    live = wf_mem_live();
    world_run(ranks, 3, make_many, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
    ck_assert_int_eq(wf_mem_live(), live);
    ck_assert_int_eq(fake.prepared, 3 * 301);
    ck_assert_int_eq(fake.destroyed, 3 * 301);
}

TEST(an_exchange_of_unequal_sizes_is_named)
{
    fake_reset();
    fake.exchanges = 1;
    fake.uneven_exchange = true;
    world_run(ranks, 2, NULL, NULL);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "contributed a different number of bytes");
}
