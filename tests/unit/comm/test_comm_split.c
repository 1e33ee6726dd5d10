#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

/* Even ranks in descending order, odd ranks in ascending, rank 4 in none. */
static void split_by_parity(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *part = (void *)self;
    bool even = self->rank % 2 == 0;
    int32_t colour = self->rank == 4 ? WEFT_NO_COLOR : even ? 7 : 0;

    note_seen(&self->seen, weft_comm_split(world, colour, even ? -self->rank : 5, NULL, &part));
    if (self->seen.status != WEFT_OK) return;
    if (self->rank == 4) {
        HOLDS(part == NULL);
        return;
    }
    HOLDS(weft_comm_size(part) == (3));
    if (even) HOLDS(weft_comm_rank(part) == (self->rank == 6 ? 0 : self->rank == 2 ? 1 : 2));
    if (!even) HOLDS(weft_comm_rank(part) == (self->rank / 2));
    weft_comm_release(&part);
}

TEST(colours_part_and_keys_order)
{
    fake_reset();
    fake.exchanges = 1;
    world_run(ranks, 7, split_by_parity, NULL);
    all_saw(ranks, 7, WEFT_OK, "");
}

static void wrap_or_not(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *comm = NULL;
    bool wraps = self->rank != *(int *)self->argument;
    weft_subcomm_options options = {.struct_size = sizeof options,
                                    .native = wraps ? &options : NULL};
    int32_t list[] = {0, 1, 2};

    HOLDS(weft_comm_split(world, 0, 0, &options, &comm) == WEFT_ERR_INVALID);
    note_seen(&self->seen, weft_comm_create(world, 3, list, &options, &comm));
}

TEST(a_vendors_communicator_is_wrapped_by_all_or_none)
{
    int nobody = -1, second = 1;

    fake_reset();
    fake.exchanges = 1;
    world_run(ranks, 3, wrap_or_not, &nobody);
    all_saw(ranks, 3, WEFT_ERR_UNSUPPORTED, "does not support vendor communicators");
    fake_reset();
    fake.exchanges = 1;
    world_run(ranks, 3, wrap_or_not, &second);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "weft_comm_create on world");
    for (int i = 0; i < 3; i++)
        ck_assert_msg(strstr(ranks[i].seen.text, "wraps a vendor communicator, rank 1 does not") ||
                          strstr(ranks[i].seen.text,
                                 "rank 1 does not wrap a vendor communicator, rank 0 does"),
                      "%s", ranks[i].seen.text);
}

static void fail_then_split(struct world_rank *self)
{
    HOLDS(weft_barrier(weft_world(self->context), NULL) == WEFT_OK);
    *(atomic_int *)self->argument = 3;
    split_by_parity(self);
}

TEST(a_split_makes_all_parts_or_none)
{
    fake_reset();
    fake.exchanges = 2;
    world_run(ranks, 7, fail_then_split, &fake.commit_fails);
    /* A barrier of the fake plugin does not wait, so some ranks may still have failed in
     * weft_init. */
    all_saw(ranks, 7, WEFT_ERR_SYSTEM, "rank 3: ");
    all_saw(ranks, 7, WEFT_ERR_SYSTEM, "scripted: commit fails");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

static void split_again_and_again(struct world_rank *self)
{
    weft_comm *comm = weft_world(self->context), *held[8];
    int depth = 0;

    while (weft_comm_size(comm) > 1 && self->seen.status == WEFT_OK) {
        int32_t half = weft_comm_rank(comm) < weft_comm_size(comm) / 2;

        note_seen(&self->seen, weft_comm_split(comm, half, 0, NULL, &held[depth]));
        if (self->seen.status == WEFT_OK) comm = held[depth++];
    }
    HOLDS(depth == (3));
    HOLDS(weft_comm_world_rank(comm, 0) == (self->rank));
    while (depth > 0)
        weft_comm_release(&held[--depth]);
}

TEST(parts_can_be_split_again)
{
    fake_reset();
    world_run(ranks, 8, split_again_and_again, NULL);
    all_saw(ranks, 8, WEFT_OK, "");
}

static void make_of_list(struct world_rank *self)
{
    static const int32_t list[] = {5, 0, 3};
    weft_comm *comm = (void *)self;

    note_seen(&self->seen, weft_comm_create(weft_world(self->context), 3, list, NULL, &comm));
    if (self->rank != 5 && self->rank != 0 && self->rank != 3) {
        HOLDS(comm == NULL);
        return;
    }
    HOLDS(weft_comm_rank(comm) == (self->rank == 5 ? 0 : self->rank == 0 ? 1 : 2));
    HOLDS(weft_comm_find_rank(comm, 3) == (2));
    HOLDS(weft_comm_find_rank(comm, 1) == (-1));
    weft_comm_release(&comm);
}

TEST(a_lists_order_is_the_users_and_others_get_null)
{
    fake_reset();
    world_run(ranks, 6, make_of_list, NULL);
    all_saw(ranks, 6, WEFT_OK, "");
}

static void members_alone_call(struct world_rank *self)
{
    if (self->rank % 2 == 0) make_of_list(self);
    if (self->rank == 3 || self->rank == 5) make_of_list(self);
}

TEST(ranks_outside_the_list_need_not_call)
{
    fake_reset();
    world_run(ranks, 6, members_alone_call, NULL);
    all_saw(ranks, 6, WEFT_OK, "");
}

static void in_another_order(struct world_rank *self)
{
    static const int32_t lists[3][2] = {{0, 1}, {1, 2}, {2, 0}};

    self->timeout_ns = 0;
    for (int i = 0; i < 3; i++) {
        weft_comm *comm;

        note_seen(&self->seen,
                  weft_comm_create(weft_world(self->context), 2, lists[i], NULL, &comm));
        if (self->seen.status != WEFT_OK) return;
        weft_comm_release(&comm);
    }
}

TEST(overlapping_lists_need_no_counter_in_common)
{
    fake_reset();
    world_run(ranks, 3, in_another_order, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}

static void differ_in_name(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options,
                                    .name = self->rank == 1 ? "tp" : "dp"};
    weft_comm *part;

    note_seen(&self->seen, weft_comm_split(weft_world(self->context), 0, 0, &options, &part));
}

TEST(different_requests_are_named_on_all)
{
    fake_reset();
    world_run(ranks, 3, differ_in_name, NULL);
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "\"dp\" and");
    all_saw(ranks, 3, WEFT_ERR_MISMATCH, "\"tp\" and");
}

static void differ_in_call(struct world_rank *self)
{
    static const int32_t all[] = {0, 1};
    weft_comm *world = weft_world(self->context), *comm;

    note_seen(&self->seen, self->rank == 0 ? weft_comm_split(world, 0, 0, NULL, &comm)
                                           : weft_comm_create(world, 2, all, NULL, &comm));
}

TEST(different_calls_are_named_on_all)
{
    fake_reset();
    world_run(ranks, 2, differ_in_call, NULL);
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "weft_comm_split on world");
    all_saw(ranks, 2, WEFT_ERR_MISMATCH, "weft_comm_create on world");
}

static void one_is_mistaken(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *part = NULL;
    weft_status first = weft_comm_split(world, 0, 0, NULL, self->rank == 2 ? NULL : &part);

    note_seen(&self->seen, weft_comm_split(world, self->rank == 1 ? -7 : 0, 0, NULL, &part));
    HOLDS(first == WEFT_ERR_INVALID && part == NULL);
    HOLDS(weft_comm_split(world, 0, 0, NULL, &part) == WEFT_OK);
    weft_comm_release(&part);
}

TEST(one_ranks_mistake_is_reported_to_all_and_they_continue)
{
    fake_reset();
    world_run(ranks, 3, one_is_mistaken, NULL);
    all_saw(ranks, 3, WEFT_ERR_INVALID, "colour is -7");
}

/* Rank 1 passes wrong options: too small, of a newer weft, and no place for the result. */
static void one_lists_wrongly(struct world_rank *self)
{
    struct {
        weft_subcomm_options options;
        uint64_t more;
    } newer = {.options = {.struct_size = sizeof newer}, .more = 1};
    weft_subcomm_options small = {0};
    static const int32_t list[] = {2, 0, 1};
    weft_comm *world = weft_world(self->context), *part = NULL;
    bool wrong = self->rank == 1;

    note_seen(&self->seen, weft_comm_create(world, 3, list, wrong ? &small : NULL, &part));
    HOLDS(weft_comm_create(world, 3, list, wrong ? &newer.options : NULL, &part) != WEFT_OK);
    HOLDS(weft_comm_create(world, 3, list, NULL, wrong ? NULL : &part) == WEFT_ERR_INVALID);
    HOLDS(part == NULL);
    HOLDS(weft_comm_create(world, 3, list, NULL, &part) == WEFT_OK);
    HOLDS(part != NULL && weft_comm_size(part) == 3);
    weft_comm_release(&part);
}

TEST(wrong_options_of_a_list_are_reported_to_all_and_they_continue)
{
    fake_reset();
    world_run(ranks, 3, one_lists_wrongly, NULL);
    all_saw(ranks, 3, WEFT_ERR_INVALID, "weft_subcomm_options");
}

static atomic_int given_up;

/* Rank 2 arrives after the others have timed out. */
static void one_does_not_come(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = 2 * WF_SECOND_NS};
    weft_comm *part;

    while (self->rank == 2 && given_up < 3)
        fake_sleep_ms(1);
    note_seen(&self->seen, weft_comm_split(weft_world(self->context), 0, 0, &options, &part));
    given_up++;
}

TEST(a_missing_rank_is_named_and_gets_the_error)
{
    fake_reset();
    given_up = 0;
    world_run(ranks, 4, one_does_not_come, NULL);
    all_saw(ranks, 4, WEFT_ERR_TIMEOUT, "rank 2 of 4 did not reach weft_comm_split on world");
}

TEST(arguments_are_checked)
{
    OWNED(weft_context) *context = NULL;
    weft_comm *world, *out;
    weft_subcomm_options options = {.struct_size = sizeof options};

    fake_reset();
    context = world_alone();
    world = weft_world(context);
    ck_assert_int_eq(weft_comm_split(NULL, 0, 0, NULL, &out), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_split(world, 0, 0, NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_split(world, -2, 0, NULL, &out), WEFT_ERR_INVALID);
    options.timeout_ns = -2;
    ck_assert_int_eq(weft_comm_split(world, 0, 0, &options, &out), WEFT_ERR_INVALID);
    options = (weft_subcomm_options){.struct_size = 1};
    ck_assert_int_eq(weft_comm_split(world, 0, 0, &options, &out), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_create(world, 0, (int32_t[]){0}, NULL, &out), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "count is 0; it must be from 1 to 1, the number of ranks of "));
    ck_assert_int_eq(weft_comm_create(world, 2, (int32_t[]){0, 0}, NULL, &out), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_comm_create(world, 1, (int32_t[]){1}, NULL, &out), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "ranks[0] is 1; the ranks of world are 0 to 0"));
}
