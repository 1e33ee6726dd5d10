#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

static void check_slice(const char *mesh_text, const char *axes, int32_t rank, const char *want)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text), *slice = NULL;

    ck_assert_msg(weft_mesh_slice(mesh, axes, rank, &slice) == WEFT_OK, "%s", weft_last_error());
    check_mesh_is(slice, want);
}

TEST(a_slice_keeps_axes_and_goes_through_its_rank)
{
    check_slice("dp=2,cp=2,tp=2", "dp", 0, "dp=2@0,4");
    check_slice("dp=2,cp=2,tp=2", "dp", 3, "dp=2@3,7");
    check_slice("dp=2,cp=2,tp=2", "dp,tp", 0, "dp=2,tp=2@0,1,4,5");
    check_slice("dp=2,cp=2,tp=2", "dp,tp", 2, "dp=2,tp=2@2,3,6,7");
    check_slice("dp=2,cp=2,tp=2", "tp,dp", 0, "tp=2,dp=2@0,4,1,5");
    check_slice("dp=2,cp=2,tp=2", "dp,cp,tp", 5, "dp=2,cp=2,tp=2");
    check_slice("2x4@0,2,4,6,1,3,5,7/4", "1", 3, "4@1-7:2/4");
    check_slice("2x2@0,5,3,9", "0", 9, "2@5,9");
}

static void check_flat(const char *mesh_text, const char *axes, const char *name, const char *want)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text), *flat = NULL;

    ck_assert_msg(weft_mesh_flatten(mesh, axes, name, &flat) == WEFT_OK, "%s", weft_last_error());
    check_mesh_is(flat, want);
}

TEST(flattened_axes_become_one)
{
    check_flat("2x4", NULL, NULL, "8");
    check_flat("2x4", NULL, "all", "all=8");
    check_flat("dp=2,tp=4", NULL, NULL, "dp_tp=8");
    check_flat("dp=2,cp=2,tp=2", "dp,cp", NULL, "dp_cp=4,tp=2");
    check_flat("dp=2,cp=2,tp=2", "cp,dp", "x", "x=4,tp=2@0,1,4,5,2,3,6,7");
    check_flat("dp=2,cp=2,tp=2", "dp,tp", "x", "x=4,cp=2@0,2,1,3,4,6,5,7");
    check_flat("2x2@0,5,3,9", "1,0", NULL, "4@0,3,5,9");
    check_flat("2x2@0,5,3,9", "0", NULL, "2x2@0,5,3,9");
}

TEST(groups_of_a_flattened_axis_are_where_they_should)
{
    weft_mesh *mesh = mesh_of("dp=2,cp=2,tp=2"), *flat, *group;

    ck_assert_int_eq(weft_mesh_flatten(mesh, "dp,cp", "dp_cp", &flat), WEFT_OK);
    ck_assert_int_eq(weft_mesh_slice(flat, "dp_cp", 0, &group), WEFT_OK);
    check_mesh_is(group, "dp_cp=4@0-6:2");
    weft_mesh_release(&group);
    ck_assert_int_eq(weft_mesh_slice(flat, "dp_cp", 1, &group), WEFT_OK);
    check_mesh_is(group, "dp_cp=4@1-7:2");
    weft_mesh_release(&group);
    weft_mesh_release(&flat);
    weft_mesh_release(&mesh);

    mesh = mesh_of("replicate=2,shard=2,cp=2,tp=1");
    ck_assert_int_eq(weft_mesh_flatten(mesh, "shard,cp", NULL, &flat), WEFT_OK);
    ck_assert_int_eq(weft_mesh_slice(flat, "replicate,shard_cp", 7, &group), WEFT_OK);
    check_mesh_is(group, "replicate=2,shard_cp=4");
    weft_mesh_release(&group);
    weft_mesh_release(&flat);
    weft_mesh_release(&mesh);
}

static void check_unflat(const char *mesh_text, int32_t axis, int32_t count, const int32_t *sizes,
                         const char *const *names, const char *want)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text), *out = NULL;

    ck_assert_msg(weft_mesh_unflatten(mesh, axis, (size_t)count, sizes, names, &out) == WEFT_OK,
                  "%s", weft_last_error());
    check_mesh_is(out, want);
}

TEST(an_axis_is_taken_apart)
{
    static const char *const names[] = {"a", "b", "c"};
    static const int32_t twos[] = {2, 2, 2}, six[] = {3, 2}, ones[] = {1, 8, 1};

    check_unflat("8", 0, 3, twos, NULL, "2x2x2");
    check_unflat("w=8,t=2", 0, 3, twos, names, "a=2,b=2,c=2,t=2");
    check_unflat("t=2,w=8@0-30:2", 1, 3, twos, names, "t=2,a=2,b=2,c=2@0-30:2");
    check_unflat("8", 0, 3, ones, NULL, "1x8x1");
    check_unflat("6@0-2,8-10", 0, 2, six, NULL, "3x2@0-2,8-10"); /* through a stride: a list */
    check_unflat("6@5,0,1,2,3,4", 0, 2, six, NULL, "3x2@5,0-4");
}

static void check_reshaped(const char *text, int32_t axes, const int32_t *sizes,
                           const char *const *names, const char *want)
{
    OWNED(weft_mesh) *mesh = mesh_of(text), *out = NULL;

    ck_assert_int_eq(wf_mesh_reshape(mesh, axes, sizes, names, &out), WEFT_OK);
    check_mesh_is(out, want);
}

TEST(the_same_ranks_are_counted_in_another_way)
{
    static const int32_t sizes[] = {2, 2, 3};
    static const char *const names[] = {"a", "b", "c"};

    check_reshaped("4x3", 3, sizes, NULL, "2x2x3");
    check_reshaped("dp=12/4", 3, sizes, names, "a=2,b=2,c=3/4");
    check_reshaped("dp=2,tp=6", 3, sizes, NULL, "2x2x3");
    check_reshaped("2x2@3,1,0,2", 2, sizes, NULL, "2x2@3,1,0,2");
    check_reshaped("4@3,1,0,2", 2, sizes, NULL, "2x2@3,1,0,2");
}

TEST(what_cannot_be_derived_is_refused)
{
    static const char *const names[] = {"a", "b"};
    static const int32_t two_two[] = {2, 2}, two_zero[] = {2, 0};
    static const int32_t huge[] = {INT32_MAX, INT32_MAX};
    weft_mesh *mesh = mesh_of("dp=2,tp=4"), *plain = mesh_of("2x4"), *out = NULL;
    OWNED(weft_mesh) *eight = mesh_of("1x1x1x1x1x1x1x1");

    check_refused(weft_mesh_slice(mesh, "dp", 8, &out), WEFT_ERR_NOT_FOUND,
                  "weft_mesh_slice: rank 8 is not in the mesh");
    check_refused(weft_mesh_slice(mesh, "pp", 0, &out), WEFT_ERR_NOT_FOUND, "no axis \"pp\"");
    check_refused(weft_mesh_flatten(mesh, "dp,dp", NULL, &out), WEFT_ERR_INVALID, "listed twice");
    check_refused(weft_mesh_flatten(mesh, "dp", "tp", &out), WEFT_ERR_INVALID, "both named \"tp\"");
    check_refused(weft_mesh_flatten(plain, "0", "x", &out), WEFT_ERR_INVALID,
                  "the other axes of the mesh have no names");
    check_refused(weft_mesh_unflatten(mesh, 2, 2, two_two, names, &out), WEFT_ERR_INVALID,
                  "axis is 2; the mesh has 2 axes");
    check_refused(weft_mesh_unflatten(mesh, 0, 2, two_two, names, &out), WEFT_ERR_INVALID,
                  "axis 0 has size 2, but the new sizes multiply to 4");
    check_refused(weft_mesh_unflatten(mesh, 0, 2, two_zero, names, &out), WEFT_ERR_INVALID,
                  "multiply to 0");
    check_refused(weft_mesh_unflatten(mesh, 0, 2, huge, names, &out), WEFT_ERR_INVALID,
                  "multiply to");
    check_refused(weft_mesh_unflatten(mesh, 1, 2, two_two, NULL, &out), WEFT_ERR_INVALID,
                  "the mesh's axes have names");
    check_refused(weft_mesh_unflatten(plain, 1, 2, two_two, names, &out), WEFT_ERR_INVALID,
                  "the mesh's axes have no names");
    check_refused(weft_mesh_unflatten(eight, 1, 2, two_two, NULL, &out), WEFT_ERR_INVALID,
                  "the mesh would have 9 axes");
    check_refused(weft_mesh_unflatten(plain, 1, 0, two_two, NULL, &out), WEFT_ERR_INVALID,
                  "axis 1 into 0");
    ck_assert_ptr_null(out);
    weft_mesh_release(&mesh);
    weft_mesh_release(&plain);
}

/* ---- without memory ---- */

TEST(derivations_survive_every_allocation_failure)
{
    static const char *const meshes[] = {"2x3", "2x3@5,3,0,9,1,2"};
    static const int32_t sizes[] = {2, 1};

    for (size_t i = 0; i < WF_COUNT(meshes); i++) {
        OWNED(weft_mesh) *mesh = mesh_of(meshes[i]), *out = NULL;

        ALLOCATIONS_FAIL(weft_mesh_slice(mesh, "1", 5, &out), weft_mesh_release(&out));
        ALLOCATIONS_FAIL(weft_mesh_flatten(mesh, "1,0", NULL, &out), weft_mesh_release(&out));
        ALLOCATIONS_FAIL(weft_mesh_unflatten(mesh, 0, 2, sizes, NULL, &out),
                         weft_mesh_release(&out));
    }
}
