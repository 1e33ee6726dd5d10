#include "support/fake_world.h"
#include "support/suite.h"
#include "weft/extend.h"

#include <string.h>

static struct world_rank ranks[WORLD_MAX];

static void make_groups(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *first = NULL, *again = NULL, *all = NULL;
    int32_t pair[2] = {self->rank & ~1, self->rank | 1}, everyone[] = {0, 1, 2, 3};

    HOLDS(wf_comm_group(world, "x", pair, 2, WEFT_OK, false, &first) == WEFT_OK);
    HOLDS(wf_comm_group(world, "x", pair, 2, WEFT_OK, false, &again) == WEFT_OK);
    HOLDS(first == again && weft_comm_size(first) == 2);
    HOLDS(wf_comm_group(world, "x", everyone, 4, WEFT_OK, false, &all) == WEFT_OK);
    HOLDS(all == world);
}

TEST(groups_are_made_once_and_kept)
{
    fake_reset();
    world_run(ranks, 4, make_groups, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
    ck_assert_int_eq(fake.prepared, 8);
    ck_assert_int_eq(fake.destroyed, 8);
}

static void one_declines(struct world_rank *self)
{
    weft_comm *group = NULL;
    int32_t pair[2] = {1, 0};
    weft_status status = self->rank == 1 ? wf_fail(WEFT_ERR_DEVICE, "not now") : WEFT_OK;

    note_seen(&self->seen,
              wf_comm_group(weft_world(self->context), "x", pair, 2, status, false, &group));
    HOLDS(group == NULL);
}

TEST(a_rank_that_declines_is_heard_by_all)
{
    fake_reset();
    world_begin(ranks, 2, one_declines, NULL);
    world_go(ranks, 2);
    all_saw(ranks, 2, WEFT_ERR_DEVICE, "not now");
}

/* ---- tied communicators ---- */

static const weft_subcomm_options tied = {.struct_size = sizeof tied, .fails_with_parent = true};

/* A communicator of the pair of ranks with this one, tied to the world.  All ranks have theirs
 * then. */
static weft_comm *tie_pair(struct world_rank *self)
{
    const int32_t pair[2] = {self->rank & ~1, self->rank | 1};
    weft_comm *made = NULL, *world = weft_world(self->context);
    weft_answers *answers = NULL;

    HOLDS(weft_comm_create(world, 2, pair, &tied, &made) == WEFT_OK);
    HOLDS(weft_agree(world, "all are tied", WEFT_OK, NULL, 0, NULL, &answers) == WEFT_OK);
    weft_answers_release(&answers);
    return made;
}

/* Rank 0 aborts its pair, or the world.  The others wait for a rank that does not come: rank 2 on
 * its pair, ranks 1 and 3 on the world. */
static void fail_together(struct world_rank *self)
{
    const bool *fails_world = self->argument;
    weft_comm *pair = tie_pair(self), *world = weft_world(self->context);
    weft_answers *answers = NULL;
    weft_status status;

    if (self->rank == 0) {
        weft_comm_abort(*fails_world ? world : pair);
        HOLDS(weft_comm_async_error(pair) == WEFT_ERR_ABORTED);
        HOLDS(weft_comm_async_error(world) == WEFT_ERR_ABORTED);
    } else {
        status =
            weft_agree(self->rank == 2 ? pair : world, "my_step", WEFT_OK, NULL, 0, NULL, &answers);
        HOLDS(status == WEFT_ERR_ABORTED);
        HOLDS(strstr(weft_last_error(), "was aborted by rank 0") != NULL);
        HOLDS(weft_comm_async_error(pair) == WEFT_ERR_ABORTED);
        HOLDS(weft_comm_async_error(world) == WEFT_ERR_ABORTED);
    }
    weft_comm_release(&pair);
}

TEST(tied_communicators_fail_together)
{
    bool fails_world[] = {true, false};

    for (size_t i = 0; i < WF_COUNT(fails_world); i++) {
        fake_reset();
        world_run(ranks, 4, fail_together, &fails_world[i]);
        ck_assert_int_eq(fake.destroyed, fake.prepared);
    }
}

static void live_apart(struct world_rank *self)
{
    const int32_t all[] = {0, 1, 2, 3}, pair[2] = {self->rank & ~1, self->rank | 1};
    weft_comm *parent = NULL, *first = NULL, *second = NULL, *group = NULL, *other = NULL;

    HOLDS(weft_comm_create(weft_world(self->context), 4, all, NULL, &parent) == WEFT_OK);
    HOLDS(weft_comm_create(parent, 2, pair, &tied, &first) == WEFT_OK);
    HOLDS(weft_comm_create(parent, 2, pair, &tied, &second) == WEFT_OK);
    /* Bound plans do not use a communicator of the program. */
    HOLDS(wf_comm_group(parent, "x", pair, 2, WEFT_OK, false, &group) == WEFT_OK);
    HOLDS(group != first && group != second && first != second);
    weft_comm_release(&first);
    HOLDS(first == NULL);
    weft_comm_release(&parent);
    /* The tie ends with the parent, and the communicator can still be used. */
    HOLDS(weft_comm_create(second, 2, (const int32_t[]){1, 0}, NULL, &other) == WEFT_OK);
    weft_comm_release(&other);
    weft_comm_release(&second);
}

TEST(a_tied_communicator_is_released_by_the_program)
{
    fake_reset();
    world_run(ranks, 4, live_apart, NULL);
    ck_assert_int_eq(fake.destroyed, fake.prepared);
}

static void differ(struct world_rank *self)
{
    const int32_t pair[2] = {0, 1};
    weft_comm *world = weft_world(self->context), *made = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_comm_create(world, 2, pair, self->rank == 0 ? &tied : NULL, &made) ==
          WEFT_ERR_MISMATCH);
    HOLDS(strstr(weft_last_error(), "fails_with_parent is ") != NULL);
    HOLDS(weft_comm_split(world, 0, 0, &tied, &made) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "weft_subcomm_options.fails_with_parent is set") != NULL);
    HOLDS(weft_mesh_parse("2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "0", &tied, &made) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "weft_subcomm_options.fails_with_parent is set") != NULL);
}

TEST(a_tie_is_the_same_on_all_ranks)
{
    fake_reset();
    world_run(ranks, 2, differ, NULL);
}
