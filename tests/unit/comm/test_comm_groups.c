#include "support/fake_world.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

static void make_groups(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *first = NULL, *again = NULL, *all = NULL;
    int32_t pair[2] = {self->rank & ~1, self->rank | 1}, everyone[] = {0, 1, 2, 3};

    HOLDS(wf_comm_group(world, "x", pair, 2, WEFT_OK, &first) == WEFT_OK);
    HOLDS(wf_comm_group(world, "x", pair, 2, WEFT_OK, &again) == WEFT_OK);
    HOLDS(first == again && weft_comm_size(first) == 2);
    HOLDS(wf_comm_group(world, "x", everyone, 4, WEFT_OK, &all) == WEFT_OK);
    HOLDS(all == world);
}

START_TEST(groups_are_made_once_and_kept)
{
    fake_reset();
    world_run(ranks, 4, make_groups, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
    ck_assert_int_eq(fake.prepared, 8);
    ck_assert_int_eq(fake.destroyed, 8);
}
END_TEST

static void one_declines(struct world_rank *self)
{
    weft_comm *group = NULL;
    int32_t pair[2] = {1, 0};
    weft_status status = self->rank == 1 ? wf_fail(WEFT_ERR_DEVICE, "not now") : WEFT_OK;

    note_seen(&self->seen, wf_comm_group(weft_world(self->context), "x", pair, 2, status, &group));
    HOLDS(group == NULL);
}

START_TEST(a_rank_that_declines_is_heard_by_all)
{
    fake_reset();
    world_begin(ranks, 2, one_declines, NULL);
    world_go(ranks, 2);
    all_saw(ranks, 2, WEFT_ERR_DEVICE, "not now");
}
END_TEST

SUITE(comm_groups, groups_are_made_once_and_kept, a_rank_that_declines_is_heard_by_all)
