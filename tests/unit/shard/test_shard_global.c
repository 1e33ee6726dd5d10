#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

static weft_status shape_of(const char *mesh_text, const char *placements_text, int32_t dims,
                            const int64_t *shards, int64_t *shape)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text);
    weft_placement placements[WEFT_MAX_AXES];
    weft_status status;

    ck_assert_int_eq(weft_placements_parse(placements_text, weft_mesh_axes(mesh), placements),
                     WEFT_OK);
    status = weft_shape_from_shards(mesh, dims, placements, shards, shape);
    weft_placements_free(weft_mesh_axes(mesh), placements);
    return status;
}

static weft_status spec_from(const char *mesh_text, const char *placements_text, int32_t dims,
                             const int64_t *shards, weft_spec **out)
{
    OWNED(weft_mesh) *mesh = mesh_of(mesh_text);
    weft_placement placements[WEFT_MAX_AXES];
    weft_status status;

    ck_assert_int_eq(weft_placements_parse(placements_text, weft_mesh_axes(mesh), placements),
                     WEFT_OK);
    status = weft_spec_from_shards(mesh, WEFT_DTYPE_F32, dims, placements, shards, out);
    weft_placements_free(weft_mesh_axes(mesh), placements);
    return status;
}

TEST(uneven_shards_add_up)
{
    static const int64_t sizes[] = {2, 7, 2, 7, 1, 7, 0, 7};
    int64_t shape[2];

    ck_assert_int_eq(shape_of("4", "S(0)", 2, sizes, shape), WEFT_OK);
    ck_assert_int_eq(shape[0], 5);
    ck_assert_int_eq(shape[1], 7);
}

TEST(three_axes_of_three_dimensions_multiply)
{
    int64_t sizes[24 * 3], shape[3];

    for (int i = 0; i < 24; i++)
        memcpy(&sizes[i * 3], (const int64_t[]){2, 3, 1}, 3 * sizeof *sizes);
    ck_assert_int_eq(shape_of("2x3x4", "S(0),S(1),S(2)", 3, sizes, shape), WEFT_OK);
    ck_assert(shape[0] == 4 && shape[1] == 9 && shape[2] == 4);
}

TEST(a_scalar_has_no_shape_to_agree_on)
{
    int64_t nothing[1] = {0};

    ck_assert_int_eq(shape_of("2x2", "R,P", 0, nothing, nothing), WEFT_OK);
}

TEST(ranks_that_disagree_are_named)
{
    static const struct {
        const char *mesh, *placements;
        int32_t dims;
        int64_t sizes[8];
        const char *error;
    } cases[] = {
        {"2x2@4-7",
         "R,S(0)",
         1,
         {3, 2, 3, 3},
         "ranks 5 and 7 hold the same part of dimension 0, but their shards have sizes 2 and 3 "
         "there"},
        {"4",
         "S(0)",
         2,
         {2, 7, 2, 7, 2, 8, 2, 7},
         "ranks 0 and 2 hold the same part of dimension 1, but their shards have sizes 7 and 8 "
         "there"},
        {"4",
         "S(0)",
         1,
         {1, 2, 2, 1},
         "dimension 0 has 6 indices in all, so the shard of rank 0 must have 2, but has 1, and the "
         "shard of rank 3 must have 0, but has 1"},
        {"2", "P", 1, {4, 5}, "ranks 0 and 1 hold the same part of dimension 0"},
    };
    int64_t shape[2] = {-7, -7};

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(
            shape_of(cases[i].mesh, cases[i].placements, cases[i].dims, cases[i].sizes, shape),
            WEFT_ERR_MISMATCH, cases[i].error);
    ck_assert_int_eq(shape[0], -7);
}

TEST(sizes_that_cannot_be_are_refused)
{
    int64_t shape[1] = {-7};

    check_refused(shape_of("2@3-4", "S(0)", 1, (const int64_t[]){1, -1}, shape), WEFT_ERR_INVALID,
                  "the shard of rank 4 has size -1 in dimension 0");
    check_refused(shape_of("2", "S(0)", 1, (const int64_t[]){INT64_MAX, 1}, shape),
                  WEFT_ERR_INVALID, "dimension 0: the local sizes add up beyond 2^63 - 1");
    check_refused(shape_of("2", "S(1)", 1, (const int64_t[]){1, 1}, shape), WEFT_ERR_INVALID,
                  "placement 0, S(1): the tensor has 1 dimension");
    check_refused(shape_of("2", "R", 9, (const int64_t[]){1, 1}, shape), WEFT_ERR_INVALID,
                  "the tensor has 9 dimensions");
    ck_assert_int_eq(shape[0], -7);
}

TEST(owners_hold_the_tensor_and_others_nothing)
{
    int64_t shape[2] = {0, 0};

    ck_assert_int_eq(shape_of("2", "O(1)", 2, (const int64_t[]){0, 7, 5, 7}, shape), WEFT_OK);
    ck_assert(shape[0] == 5 && shape[1] == 7);
    check_refused(shape_of("2", "O(1)", 1, (const int64_t[]){5, 5}, shape), WEFT_ERR_MISMATCH,
                  "rank 0 is not the owner, so its shard must have size 0 in dimension 0, but has "
                  "5");
    check_refused(shape_of("2", "O(1)", 2, (const int64_t[]){0, 6, 5, 7}, shape), WEFT_ERR_MISMATCH,
                  "ranks 1 and 0 hold the same part of dimension 1");
}

TEST(a_spec_has_the_sizes_of_its_shards)
{
    static const struct {
        const char *mesh, *placements;
        int32_t dims;
        int64_t sizes[12];
        const char *text;
    } cases[] = {
        {"4", "S(0)", 1, {3, 3, 1, 0}, "f32[7] G(0;3,3,1,0)"},
        {"4", "S(0)", 1, {2, 2, 2, 1}, "f32[7] S(0)"},
        {"4", "G(0;1,1,1,4)", 1, {1, 1, 1, 4}, "f32[7] G(0;1,1,1,4)"},
        {"2", "B(0;3,1)", 1, {3, 1}, "f32[4] B(0;3,1)"},
        {"2x2", "S(0),S(0)", 1, {3, 1, 3, 1}, "f32[8] S(0),G(0;3,1)"},
        {"2x2", "S(0)[1],S(0)[0]", 1, {3, 3, 1, 1}, "f32[8] G(0;3,1)[1],S(0)[0]"},
        {"2x2", "S(0),S(0)", 1, {3, 2, 1, 0}, "f32[6] G(0;5,1),S(0)"},
        {"2x2", "S(1),O(1)", 2, {0, 3, 7, 3, 0, 1, 7, 1}, "f32[7,4] G(1;3,1),O(1)"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_spec) *spec = NULL;
        char text[64];
        ck_assert_msg(spec_from(cases[i].mesh, cases[i].placements, cases[i].dims, cases[i].sizes,
                                &spec) == WEFT_OK,
                      "%s: %s", cases[i].text, weft_last_error());
        ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
        ck_assert_str_eq(text, cases[i].text);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(many_shards_make_one_list)
{
    int64_t *shards = calloc(WEFT_MAX_SIZES + 1, sizeof *shards);
    weft_spec *spec = NULL;
    weft_shard last;

    ck_assert_ptr_nonnull(shards);
    for (int32_t i = 0; i <= WEFT_MAX_SIZES; i++)
        shards[i] = i % 2;
    ck_assert_int_eq(spec_from("65536", "S(0)", 1, shards, &spec), WEFT_OK);
    weft_spec_shard(spec, WEFT_MAX_SIZES - 1, &last);
    ck_assert_int_eq(last.offset[0], WEFT_MAX_SIZES / 2 - 1);
    weft_spec_release(&spec);
    check_refused(spec_from("65537", "S(0)", 1, shards, &spec), WEFT_ERR_MISMATCH,
                  "weft_spec_from_shards: dimension 0 has 32768 indices in all");
    check_refused(spec_from("65537", "S(0)", 1, shards, &spec), WEFT_ERR_MISMATCH,
                  "only S(d) on an axis of at most 65536 ranks accepts sizes that are not chunks");
    free(shards);
}

TEST(shards_of_no_spec_are_refused)
{
    weft_spec *spec = NULL;

    check_refused(spec_from("2x2", "R,S(0)", 1, (const int64_t[]){3, 1, 3, 2}, &spec),
                  WEFT_ERR_MISMATCH, "ranks 1 and 3 hold the same part of dimension 0");
    check_refused(
        spec_from("2x2", "S(0),S(0)", 1, (const int64_t[]){3, 1, 1, 3}, &spec), WEFT_ERR_MISMATCH,
        "weft_spec_from_shards: dimension 0: the groups of axis 1 differ: coordinate 0 "
        "holds 3 indices in the group of rank 0, but 1 in the group of rank 2; sizes that "
        "are not chunks must be the same in all groups of an axis");
    check_refused(
        spec_from("dp=2,tp=3@3-8", "S(0),S(0)", 1, (const int64_t[]){3, 1, 0, 3, 0, 1}, &spec),
        WEFT_ERR_MISMATCH,
        "the groups of axis tp differ: coordinate 1 holds 1 index in the group of rank "
        "4, but 0 in the group of rank 7");
    check_refused(spec_from("2x2", "S(0),S(0)", 1, (const int64_t[]){2, 2, 3, 1}, &spec),
                  WEFT_ERR_MISMATCH, "the groups of axis 1 differ: coordinate 0 holds 2 indices");
    check_refused(spec_from("2x2", "S(0),S(0)", 1, (const int64_t[]){3, 1, 1, 1}, &spec),
                  WEFT_ERR_INVALID,
                  "weft_spec_from_shards: the local sizes are not chunks, so the shards need the "
                  "placements G(0;4,2),G(0;3,1): placement 1, G(0;3,1): the axes before it leave 4 "
                  "indices of dimension 0 on some");
    check_refused(spec_from("2", "B(0;3,1)", 1, (const int64_t[]){2, 2}, &spec), WEFT_ERR_MISMATCH,
                  "the shard of rank 0 must have 3, but has 2");
    check_refused(spec_from("2", "S(0)", 1, (const int64_t[]){2, -2}, &spec), WEFT_ERR_INVALID,
                  "weft_spec_from_shards: the shard of rank 1 has size -2 in dimension 0");
    ck_assert_ptr_null(spec);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_listed_g_is_not_replaced)
{
    static const weft_placement empty = {.kind = WEFT_PLACE_SIZES};
    weft_mesh *mesh = mesh_of("4");
    weft_spec *spec = NULL;
    int64_t shape[1] = {-7};

    /* the sizes of this G are chunks, so its form is S(0) */
    check_refused(
        spec_from("4", "G(0;2,2,2,1)", 1, (const int64_t[]){3, 3, 1, 0}, &spec), WEFT_ERR_MISMATCH,
        "weft_spec_from_shards: rank 0 is to hold 2 indices of dimension 0 by "
        "G(0;2,2,2,1), but its shard has 3; to take the sizes from the shards, pass S(0)");
    check_refused(spec_from("4", "G(0;3,3,1,0)", 1, (const int64_t[]){3, 2, 1, 1}, &spec),
                  WEFT_ERR_MISMATCH,
                  "rank 1 is to hold 3 indices of dimension 0 by G(0;3,3,1,0), ");
    check_refused(shape_of("4", "G(0;2,2,2,1)", 1, (const int64_t[]){3, 3, 1, 0}, shape),
                  WEFT_ERR_MISMATCH,
                  "weft_shape_from_shards: rank 0 is to hold 2 indices of dimension 0 by "
                  "G(0;2,2,2,1), but its shard has 3; weft_spec_from_shards takes the sizes from "
                  "the shards for S(0)");
    check_refused(spec_from("4", "G(0;2,2,2,1)", 1, (const int64_t[]){9, 9, 9, 9}, &spec),
                  WEFT_ERR_INVALID,
                  "weft_spec_from_shards: placement 0, G(0;2,2,2,1): the sizes add up to 7, but");
    check_refused(weft_spec_from_shards(mesh, WEFT_DTYPE_F32, 1, &empty,
                                        (const int64_t[]){3, 3, 1, 0}, &spec),
                  WEFT_ERR_INVALID,
                  "weft_spec_from_shards: placement 0, G: weft_placement.sizes is NULL; pass S(0), "
                  "and the sizes come from the shards");
    check_refused(spec_from("4", "B(0;7)", 1, (const int64_t[]){3, 3, 1, 0}, &spec),
                  WEFT_ERR_MISMATCH, "the shard of rank 0 must have 2, but has 3");
    ck_assert(spec == NULL && shape[0] == -7);
    weft_mesh_release(&mesh);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(the_number_of_sizes_is_checked)
{
    static const int64_t sizes[] = {5, 4, 1, 4, 2, 4};
    OWNED(weft_spec) *want = spec_of("3", "f32[8,4] G(0;5,1,2)"), *out = NULL;
    OWNED(weft_mesh) *mesh = mesh_of("3");

    ck_assert_int_eq(weft_spec_parse_shards(mesh, WEFT_DTYPE_F32, "S(0)", 2, 6, sizes, &out),
                     WEFT_OK);
    ck_assert_ptr_eq(out, want);
    check_refused(weft_spec_parse_shards(mesh, WEFT_DTYPE_F32, "S(0)", 2, 5, sizes, &out),
                  WEFT_ERR_INVALID, "shards has 5 sizes; expected 2 for each of 3 ranks");
    check_refused(weft_spec_parse_shards(mesh, WEFT_DTYPE_F32, "S(0)", -2, 6, sizes, &out),
                  WEFT_ERR_INVALID, "shards has 6 sizes");
    check_refused(weft_spec_parse_shards(mesh, WEFT_DTYPE_F32, "S(0", 2, 6, sizes, &out),
                  WEFT_ERR_PARSE, "S(0");
}

TEST(a_spec_from_shards_survives_every_allocation_failure)
{
    static const weft_placement p = {.kind = WEFT_PLACE_SHARD};
    static const int64_t sizes[] = {3, 1};
    OWNED(weft_mesh) *mesh = mesh_of("2");
    weft_spec *spec = NULL;

    ck_assert_uint_ge(
        ALLOCATIONS_FAIL(weft_spec_from_shards(mesh, WEFT_DTYPE_F32, 1, &p, sizes, &spec),
                         weft_spec_release(&spec)),
        2);
}
