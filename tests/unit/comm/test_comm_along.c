#include "support/fake_world.h"
#include "support/layout.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

static void find_axes(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_comm *dp = NULL, *tp = NULL, *again = NULL, *all = NULL, *turned = NULL;
    weft_mesh *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "dp", &dp) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "tp", &tp) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "1", &again) == WEFT_OK);
    HOLDS(tp == again && dp != tp);
    HOLDS(weft_comm_size(dp) == 2 && weft_comm_rank(dp) == self->rank / 2);
    HOLDS(weft_comm_size(tp) == 2 && weft_comm_rank(tp) == self->rank % 2);
    HOLDS(weft_comm_world_rank(dp, 0) == self->rank % 2);
    HOLDS(weft_comm_along(world, mesh, "dp,tp", &all) == WEFT_OK && all == world);
    HOLDS(weft_comm_along(world, mesh, "tp,dp", &turned) == WEFT_OK);
    HOLDS(weft_comm_world_rank(turned, 1) == 2);
    again = tp;
    weft_comm_release(&again); /* it is the world's */
    HOLDS(weft_comm_along(world, mesh, "tp", &again) == WEFT_OK && again == tp);
    weft_mesh_release(&mesh);
}

START_TEST(each_rank_gets_its_group_of_an_axis)
{
    fake_reset();
    world_run(ranks, 4, find_axes, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}
END_TEST

static void refuse_axes(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *out = NULL;
    weft_mesh *mesh = NULL, *large = NULL;

    HOLDS(weft_mesh_parse("dp=2", &mesh) == WEFT_OK);
    HOLDS(weft_mesh_parse("4", &large) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "pd", &out) == WEFT_ERR_NOT_FOUND);
    HOLDS(strstr(weft_last_error(), "weft_comm_along") != NULL);
    HOLDS(strstr(weft_last_error(), "dp") != NULL);
    HOLDS(weft_comm_along(world, large, "0", &out) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "the mesh has rank 3") != NULL);
    HOLDS(weft_comm_along(NULL, mesh, "dp", &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, NULL, "dp", &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, mesh, NULL, &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL) == WEFT_ERR_INVALID);
    HOLDS(out == NULL);
    HOLDS(weft_comm_along(world, mesh, "dp", &out) == WEFT_OK);
    HOLDS((out == NULL) == (self->rank == 2));
    weft_mesh_release(&mesh);
    weft_mesh_release(&large);
}

START_TEST(misspelt_axes_and_foreign_ranks_are_refused)
{
    fake_reset();
    world_run(ranks, 3, refuse_axes, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}
END_TEST

SUITE(comm_along, each_rank_gets_its_group_of_an_axis, misspelt_axes_and_foreign_ranks_are_refused)
