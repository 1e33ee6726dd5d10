#include "support/fake_world.h"
#include "support/layout.h"
#include "support/suite.h"

static struct world_rank ranks[WORLD_MAX];

static void find_axes(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context);
    weft_comm *dp = NULL, *tp = NULL, *again = NULL, *all = NULL, *turned = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL, &dp) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "tp", NULL, &tp) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "1", NULL, &again) == WEFT_OK);
    HOLDS(tp == again && dp != tp);
    HOLDS(weft_comm_size(dp) == 2 && weft_comm_rank(dp) == self->rank / 2);
    HOLDS(weft_comm_size(tp) == 2 && weft_comm_rank(tp) == self->rank % 2);
    HOLDS(weft_comm_world_rank(dp, 0) == self->rank % 2);
    HOLDS(weft_comm_along(world, mesh, "dp,tp", NULL, &all) == WEFT_OK && all == world);
    HOLDS(weft_comm_along(world, mesh, "tp,dp", NULL, &turned) == WEFT_OK);
    HOLDS(weft_comm_world_rank(turned, 1) == 2);
    HOLDS(strncmp(weft_comm_name(dp), "dp#", 3) == 0);
    HOLDS(strncmp(weft_comm_name(turned), "tp,dp#", 6) == 0);
    again = tp;
    weft_comm_release(&again); /* it is the world's */
    HOLDS(weft_comm_along(world, mesh, "tp", NULL, &again) == WEFT_OK && again == tp);
}

static void give_options(struct world_rank *self)
{
    weft_subcomm_options options = {
        .struct_size = sizeof options, .name = "rows", .timeout_ns = 5000000000};
    weft_comm *world = weft_world(self->context), *dp = NULL, *again = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "dp", &options, &dp) == WEFT_OK);
    HOLDS(strncmp(weft_comm_name(dp), "rows#", 5) == 0 && dp->timeout_ns == 5000000000);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL, &again) == WEFT_OK && again == dp);
    options.native = world;
    HOLDS(weft_comm_along(world, mesh, "tp", &options, &again) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "weft_comm_along: weft_subcomm_options.native") != NULL);
}

TEST(options_are_those_of_the_call_that_creates)
{
    fake_reset();
    world_run(ranks, 4, give_options, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
}

TEST(each_rank_gets_its_group_of_an_axis)
{
    fake_reset();
    world_run(ranks, 4, find_axes, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

static void name_axes(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *first = NULL, *turned = NULL, *lengthy = NULL;
    OWNED(weft_mesh) *plain = NULL, *named = NULL;

    HOLDS(weft_mesh_parse("2x2", &plain) == WEFT_OK);
    HOLDS(weft_mesh_parse("an_axis_with_a_lengthy_name_0=2,an_axis_with_a_lengthy_name_1=1,"
                          "an_axis_with_a_lengthy_name_2=1",
                          &named) == WEFT_OK);
    HOLDS(weft_comm_along(world, plain, "0", NULL, &first) == WEFT_OK);
    HOLDS(strncmp(weft_comm_name(first), "axis 0#", 7) == 0);
    HOLDS(weft_comm_along(world, plain, "1,0", NULL, &turned) == WEFT_OK);
    HOLDS(strncmp(weft_comm_name(turned), "axis 1,0#", 9) == 0);
    HOLDS(weft_comm_along(world, named, "0,1,2", NULL, &lengthy) == WEFT_OK);
    HOLDS(self->rank >= 2 || strncmp(weft_comm_name(lengthy), "an_axis_with", 12) == 0);
}

TEST(groups_are_named_by_their_axes)
{
    fake_reset();
    world_run(ranks, 4, name_axes, NULL);
}

/* The group of a communicator that is released refuses calls. */
static void release_parent(struct world_rank *self)
{
    weft_comm *parent = NULL, *dp = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_split(weft_world(self->context), 0, 0, NULL, &parent) == WEFT_OK);
    HOLDS(weft_comm_along(parent, mesh, "dp", NULL, &dp) == WEFT_OK);
    weft_comm_release(&parent);
    HOLDS(weft_barrier(dp, NULL) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(), "weft_barrier") != NULL);
    HOLDS(strstr(weft_last_error(), "released") != NULL);
    HOLDS(weft_comm_size(dp) == 0);
}

TEST(a_group_ends_with_its_parent)
{
    fake_reset();
    world_run(ranks, 4, release_parent, NULL);
    all_saw(ranks, 4, WEFT_OK, "");
    ck_assert_int_eq(fake.prepared, fake.destroyed);
}

static pthread_barrier_t meeting;

/* Rank 1 detects a mismatch in the group of ranks 1 and 3, before ranks 0 and 2 use theirs. */
static void fail_one_group(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *dp = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2,tp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL, &dp) == WEFT_OK);
    if (self->rank == 1) HOLDS(weft_barrier(dp, NULL) == WEFT_ERR_MISMATCH);
    pthread_barrier_wait(&meeting);
    if (self->rank % 2 == 0) HOLDS(weft_barrier(dp, NULL) == WEFT_OK);
    HOLDS(weft_comm_async_error(world) == WEFT_OK);
    pthread_barrier_wait(&meeting);
    if (self->rank == 0) weft_comm_abort(world);
    if (self->rank == 0) HOLDS(weft_comm_async_error(dp) == WEFT_OK);
    pthread_barrier_wait(&meeting);
}

TEST(a_failure_of_one_group_does_not_reach_another)
{
    fake_reset();
    fake.collective_fails = 1;
    fake.collective_status = WEFT_ERR_MISMATCH;
    pthread_barrier_init(&meeting, NULL, 4);
    world_run(ranks, 4, fail_one_group, NULL);
    pthread_barrier_destroy(&meeting);
}

static void refuse_axes(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *out = NULL;
    OWNED(weft_mesh) *mesh = NULL, *large = NULL;

    HOLDS(weft_mesh_parse("dp=2", &mesh) == WEFT_OK);
    HOLDS(weft_mesh_parse("4", &large) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, "pd", NULL, &out) == WEFT_ERR_NOT_FOUND);
    HOLDS(strstr(weft_last_error(), "weft_comm_along") != NULL);
    HOLDS(strstr(weft_last_error(), "dp") != NULL);
    HOLDS(weft_comm_along(world, large, "0", NULL, &out) == WEFT_ERR_INVALID);
    HOLDS(strstr(weft_last_error(),
                 "ranks up to 3 and needs 4 ranks; world has 3: start more (`weft "
                 "run -n 4`), or use a smaller mesh") != NULL);
    HOLDS(weft_comm_along(NULL, mesh, "dp", NULL, &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, NULL, "dp", NULL, &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, mesh, NULL, NULL, &out) == WEFT_ERR_INVALID);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL, NULL) == WEFT_ERR_INVALID);
    HOLDS(out == NULL);
    HOLDS(weft_comm_along(world, mesh, "dp", NULL, &out) == WEFT_OK);
    HOLDS((out == NULL) == (self->rank == 2));
    if (self->rank == 2) HOLDS(weft_barrier(out, NULL) == WEFT_ERR_INVALID);
    if (self->rank == 2)
        HOLDS(strstr(weft_last_error(), "weft_barrier: comm is NULL: a rank outside a communicator "
                                        "gets NULL from weft_comm_along") != NULL);
}

TEST(misspelt_axes_and_foreign_ranks_are_refused)
{
    fake_reset();
    world_run(ranks, 3, refuse_axes, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}

static bool says(const char *text)
{
    return strstr(weft_last_error(), text) != NULL;
}

static void differ(struct world_rank *self)
{
    weft_comm *world = weft_world(self->context), *out = NULL;
    OWNED(weft_mesh) *mesh = NULL, *turned = NULL;

    HOLDS(weft_mesh_parse("a=2,b=1", &mesh) == WEFT_OK);
    HOLDS(weft_mesh_parse(self->rank == 0 ? "a=2@0,1" : "a=2@1,0", &turned) == WEFT_OK);
    if (self->rank < 2) {
        HOLDS(weft_comm_along(world, mesh, self->rank == 0 ? "a" : "a,b", NULL, &out) ==
              WEFT_ERR_MISMATCH);
        HOLDS(says("rank 0 is at weft_comm_along of a of mesh a=2,b=1 on world"));
        HOLDS(says("rank 1 is at weft_comm_along of a,b of mesh a=2,b=1 on world"));
        HOLDS(weft_comm_along(world, turned, "a", NULL, &out) == WEFT_ERR_MISMATCH);
        HOLDS(says("rank 0 is at weft_comm_along of a of mesh a=2 on world"));
        HOLDS(says("rank 1 is at weft_comm_along of a of mesh a=2@1,0 on world"));
        HOLDS(says("all ranks of a mesh must pass the same mesh and axes"));
    }
    HOLDS(out == NULL);
}

TEST(ranks_that_name_different_axes_are_named)
{
    fake_reset();
    world_run(ranks, 3, differ, NULL);
    all_saw(ranks, 3, WEFT_OK, "");
}

/* Rank 1 passes another mesh of the same ranks. */
struct meshes {
    const char *first, *second, *axis;
    const char *parts[2]; /* of the error */
};

static void pass_two_meshes(struct world_rank *self)
{
    const struct meshes *meshes = self->argument;
    weft_comm *world = weft_world(self->context), *out = NULL;
    OWNED(weft_mesh) *mesh = NULL, *same = NULL;

    HOLDS(weft_mesh_parse(self->rank == 1 ? meshes->second : meshes->first, &mesh) == WEFT_OK);
    HOLDS(weft_mesh_parse(meshes->first, &same) == WEFT_OK);
    HOLDS(weft_comm_along(world, mesh, meshes->axis, NULL, &out) == WEFT_ERR_MISMATCH &&
          out == NULL);
    HOLDS(says(meshes->parts[0]) && says(meshes->parts[1]));
    HOLDS(weft_comm_along(world, same, meshes->axis, NULL, &out) == WEFT_OK && out != NULL);
}

TEST(ranks_that_pass_different_meshes_are_named)
{
#define LENGTHY "an_axis_with_a_lengthy_name=4,another_such_axis=1"
    static const struct meshes all[] = {
        /* the groups of rank 1 are the parent, or one rank */
        {"a=2,b=2", "a=4", "a", {"of a of mesh a=2,b=2 on world", "of a of mesh a=4 on world"}},
        {"a=2,b=2", "a=1,b=4", "a", {"of mesh a=2,b=2 on world", "of mesh a=1,b=4 on world"}},
        {"a=2,b=2", "a=2,b=2/2", "a", {"of mesh a=2,b=2 on world", "of mesh a=2,b=2/2 on world"}},
        /* those of all ranks are */
        {"a=4", "a=4@1,0,2,3", "0", {"of mesh a=4 on world", "of mesh a=4@1,0,2,3 on world"}},
        {"a=1,b=4", "b=4,a=1", "a", {"of mesh a=1,b=4 on world", "of mesh b=4,a=1 on world"}},
        /* the text shows a part of them */
        {LENGTHY ",c=1",
         LENGTHY ",d=1",
         "0",
         {"rank 1 is at", "=4,another_such_axis=... (digest "}},
    };

    for (size_t i = 0; i < WF_COUNT(all); i++) {
        fake_reset();
        world_run(ranks, 4, pass_two_meshes, (void *)(uintptr_t)&all[i]);
        all_saw(ranks, 4, WEFT_OK, "");
    }
}

/* The meshes have different ranks, so the calls do not meet. */
static void pass_other_ranks(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = WF_SECOND_NS / 2};
    weft_comm *comm = NULL, *out = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse(self->rank == 0 ? "a=2" : "a=3", &mesh) == WEFT_OK);
    HOLDS(weft_comm_split(weft_world(self->context), 0, 0, &options, &comm) == WEFT_OK);
    HOLDS(weft_comm_along(comm, mesh, "a", NULL, &out) == WEFT_ERR_TIMEOUT);
    HOLDS(says("of a of mesh a=2 on ") && says("of a of mesh a=3 on "));
    pthread_barrier_wait(&meeting);
    weft_comm_release(&comm);
}

TEST(meshes_of_different_ranks_are_named_at_the_time_limit)
{
    fake_reset();
    pthread_barrier_init(&meeting, NULL, 3);
    world_run(ranks, 3, pass_other_ranks, NULL);
    pthread_barrier_destroy(&meeting);
}

/* Allocation N of rank 1 fails: all ranks get the error, and may call again. */
static void lack_memory(struct world_rank *self)
{
    uint64_t n = *(const uint64_t *)self->argument;
    weft_comm *world = weft_world(self->context), *out = NULL;
    OWNED(weft_mesh) *mesh = NULL;
    weft_status status;

    HOLDS(weft_mesh_parse("a=2,b=2", &mesh) == WEFT_OK);
    if (self->rank == 1) wf_mem_fail_at(n);
    status = weft_comm_along(world, mesh, "a", NULL, &out);
    wf_mem_fail_at(0);
    HOLDS(status == WEFT_ERR_NO_MEMORY && says("rank 1: "));
    HOLDS(weft_comm_along(world, mesh, "a", NULL, &out) == WEFT_OK && weft_comm_size(out) == 2);
}

TEST(a_rank_without_memory_does_not_keep_others_waiting)
{
    for (uint64_t n = 1; n <= 4; n++) {
        fake_reset();
        world_run(ranks, 4, lack_memory, &n);
    }
}

/* Rank 1 does not call. */
static void miss_one(struct world_rank *self)
{
    weft_subcomm_options options = {.struct_size = sizeof options, .timeout_ns = WF_SECOND_NS / 2};
    weft_comm *comm = NULL, *out = NULL;
    OWNED(weft_mesh) *mesh = NULL;

    HOLDS(weft_mesh_parse("dp=2", &mesh) == WEFT_OK);
    HOLDS(weft_comm_split(weft_world(self->context), 0, 0, &options, &comm) == WEFT_OK);
    if (self->rank == 0) {
        HOLDS(weft_comm_along(comm, mesh, "dp", NULL, &out) == WEFT_ERR_TIMEOUT);
        HOLDS(says("rank 1 of 2 did not reach weft_comm_along of dp of mesh dp=2 on "));
    }
    pthread_barrier_wait(&meeting);
    weft_comm_release(&comm);
}

TEST(a_missing_rank_is_named_with_the_function)
{
    fake_reset();
    pthread_barrier_init(&meeting, NULL, 3);
    world_run(ranks, 3, miss_one, NULL);
    pthread_barrier_destroy(&meeting);
}
