#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

struct refused {
    const char *mesh, *text, *error;
};

static void check_all_refused(const struct refused *cases, size_t count)
{
    weft_spec *spec = NULL;

    for (size_t i = 0; i < count; i++) {
        OWNED(weft_mesh) *mesh = mesh_of(cases[i].mesh);
        check_refused(weft_spec_parse(mesh, cases[i].text, &spec), WEFT_ERR_INVALID,
                      cases[i].error);
    }
    ck_assert_ptr_null(spec);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(placements_that_cannot_be_are_refused_with_place_and_reason)
{
    static const struct refused cases[] = {
        {"2x2x2", "f32[8] P,R,P(max)",
         "placement 2, P(max): it cannot be combined with P(sum) on axis 0"},
        {"2x2", "f32[8] P(min),P(prod)",
         "placement 1, P(prod): it cannot be combined with P(min) on axis 0"},
        {"2", "f32[8] S(1)", "placement 0, S(1): the tensor has 1 dimension; its dimension is 0"},
        {"2", "f32[] S(0)", "placement 0, S(0): the tensor has 0 dimensions"},
        {"2", "f32[8] SS(0,0)", "placement 0, SS(0,0): the factor must be at least 1"},
        {"2", "f32[8] P(bor)",
         "placement 0, P(bor): the reductions are sum, avg, min, max and prod"},
        {"2", "c64[8] P(max)", "placement 0, P(max): max is not defined for c64"},
        {"2", "bool[8] P(avg)", "placement 0, P(avg): avg is not defined for bool"},
    };

    check_all_refused(cases, WF_COUNT(cases));
}

TEST(sizes_and_owners_that_cannot_be_are_refused)
{
    static const struct refused cases[] = {
        {"2", "f32[8] B(0;4,3)",
         "placement 0, B(0;4,3): the sizes add up to 7, but there are 8 indices of dimension 0"},
        {"4", "f32[8] G(0;3,3,1,0)",
         "placement 0, G(0;3,3,1,0): the sizes add up to 7, but there are 8 indices"},
        {"2x2", "f32[8] S(0),B(0;3,2)",
         "placement 1, B(0;3,2): the sizes add up to 5, but the axes before it leave 4 indices of "
         "dimension 0"},
        {"2x2", "f32[8] B(0;3,2)[1],S(0)[0]",
         "the sizes add up to 5, but the axes before it leave 4"},
        {"2x2", "f32[7] S(0),B(0;3,1)",
         "placement 1, B(0;3,1): the axes before it leave 4 indices of dimension 0 on some ranks "
         "and 3 on others; listed sizes need the same number on all ranks"},
        {"2x2", "f32[8] G(0;5,3),G(0;3,2)",
         "the axes before it leave 5 indices of dimension 0 on some ranks and 3 on others"},
        {"2x2", "f32[8] B(0;5,3),G(0;3,2)",
         "the axes before it leave 5 indices of dimension 0 on some ranks and 3 on others"},
        {"4", "f32[8] G(0;4,4)",
         "placement 0, G(0;4,4): it has 2 sizes, and the axis has 4 ranks; give one size for each "
         "rank"},
        {"2", "f32[8] B(0;9223372036854775807,1)", "the sizes add up beyond 2^63 - 1"},
        {"2", "f32[8] G(1;4,4)", "placement 0, G(1;4,4): the tensor has 1 dimension"},
        {"2x4", "f32[8] R,O(4)",
         "placement 1, O(4): the owner is coordinate 4, and the axis has 4 ranks; the owner is "
         "from 0 to 3"},
        {"70000", "f32[2] G(0;1,1)", "the axis has 70000 ranks; G may have at most 65536 sizes"},
        {"2", "f32[10] B(0;1,1,1,1,1,1,1,1,1)", "placement 0, B(0;1,1,1,1,1,1,1,1,...): the sizes"},
    };

    check_all_refused(cases, WF_COUNT(cases));
}

TEST(sum_and_avg_mix)
{
    OWNED(weft_spec) *spec = spec_of("2x2x2", "f32[8] P(avg),P(avg),P(sum)");
    ck_assert_ptr_nonnull(spec);
}

TEST(wrong_fields_are_refused)
{
    static const int64_t negative[65] = {9, -1};
    static const struct {
        weft_placement placement;
        const char *error;
    } cases[] = {
        {{.kind = 7}, "placement 0: kind 7 is not known"},
        {{.kind = WEFT_PLACE_SHARD, .dim = -1}, "placement 0, S(-1): the tensor has 1 dimension"},
        {{.kind = WEFT_PLACE_SHARD, .turn = -1},
         "placement 0, S(0): turn is -1; it must not be negative"},
        {{.kind = WEFT_PLACE_STRIDED, .factor = -2}, "placement 0, SS(0,-2): the factor"},
        {{.kind = WEFT_PLACE_PARTS, .size_count = 2},
         "placement 0, B: weft_placement.sizes is NULL; it must point to 2 sizes"},
        {{.kind = WEFT_PLACE_SIZES},
         "placement 0, G: weft_placement.sizes is NULL and size_count is 0; it needs a list of "
         "sizes, and weft_placements_free clears it"},
        {{.kind = WEFT_PLACE_PARTS, .sizes = negative, .size_count = 2},
         "placement 0, B(0;9,-1): size 1 is -1; a size must not be negative"},
        {{.kind = WEFT_PLACE_SIZES, .sizes = negative, .size_count = 2},
         "placement 0, G(0;9,-1): size 1 is -1; a size must not be negative"},
        {{.kind = WEFT_PLACE_PARTS, .sizes = negative, .size_count = 0},
         "it has 0 parts; the number of parts is from 1 to 64"},
        {{.kind = WEFT_PLACE_PARTS, .sizes = negative, .size_count = 65},
         "it has 65 parts; the number of parts is from 1 to 64"},
        {{.kind = WEFT_PLACE_SIZES, .sizes = negative, .size_count = 1}, "it has 1 size, and"},
        {{.kind = WEFT_PLACE_OWNER, .owner = -1}, "placement 0, O(-1): the owner is coordinate -1"},
        {{.kind = WEFT_PLACE_PARTIAL, .reduction = 99}, "placement 0, P(?): the reductions are"},
    };
    weft_mesh *mesh = mesh_of("2");
    weft_spec *spec = NULL;

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, (const int64_t[]){8},
                                       &cases[i].placement, &spec),
                      WEFT_ERR_INVALID, cases[i].error);
    ck_assert_ptr_null(spec);
    weft_mesh_release(&mesh);
}

TEST(fields_that_the_kind_does_not_use_are_refused)
{
    static const int64_t sizes[2] = {5, 3};
    static const struct {
        weft_placement placement;
        const char *error;
    } cases[] = {
        {{.kind = WEFT_PLACE_SHARD, .sizes = sizes, .size_count = 2},
         "weft_spec_create: placement 0, S(0): weft_placement.sizes is set, but only "
         "WEFT_PLACE_PARTS and SIZES use it; change the kind, or set the field to 0"},
        {{.kind = WEFT_PLACE_SHARD, .size_count = 2}, "S(0): weft_placement.size_count is set"},
        {{.kind = WEFT_PLACE_SHARD, .owner = 1},
         "S(0): weft_placement.owner is set, but only WEFT_PLACE_OWNER uses it"},
        {{.kind = WEFT_PLACE_SHARD, .factor = 2},
         "S(0): weft_placement.factor is set, but only WEFT_PLACE_STRIDED uses it"},
        {{.kind = WEFT_PLACE_STRIDED, .factor = 2, .reduction = WEFT_REDUCE_MAX},
         "SS(0,2): weft_placement.reduction is set, but only WEFT_PLACE_PARTIAL uses it"},
        {{.kind = WEFT_PLACE_PARTS, .sizes = sizes, .size_count = 2, .owner = -1},
         "B(0;5,3): weft_placement.owner is set"},
        {{.kind = WEFT_PLACE_OWNER, .owner = 1, .turn = 1},
         "O(1): weft_placement.turn is set, but only WEFT_PLACE_SHARD, STRIDED, PARTS and SIZES "
         "use it"},
        {{.kind = WEFT_PLACE_REPLICATE, .dim = 1}, "R: weft_placement.dim is set"},
        {{.kind = WEFT_PLACE_PARTIAL, .sizes = sizes}, "P(sum): weft_placement.sizes is set"},
    };
    weft_mesh *mesh = mesh_of("2");
    weft_spec *spec = NULL;
    int64_t shape[1] = {-7};

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, (const int64_t[]){8},
                                       &cases[i].placement, &spec),
                      WEFT_ERR_INVALID, cases[i].error);
    check_refused(
        weft_shape_from_shards(mesh, 1, &cases[2].placement, (const int64_t[]){4, 4}, shape),
        WEFT_ERR_INVALID, "weft_shape_from_shards: placement 0, S(0): weft_placement.own");
    check_refused(weft_spec_from_shards(mesh, WEFT_DTYPE_F32, 1, &cases[2].placement,
                                        (const int64_t[]){4, 4}, &spec),
                  WEFT_ERR_INVALID, "weft_spec_from_shards: placement 0, S(0): weft_placement.own");
    ck_assert(spec == NULL && shape[0] == -7);
    weft_mesh_release(&mesh);
}

TEST(turns_differ_or_are_all_0)
{
    weft_placement p[3] = {{.kind = WEFT_PLACE_SHARD},
                           {.kind = WEFT_PLACE_SHARD},
                           {.kind = WEFT_PLACE_SHARD, .dim = 1, .turn = 0}};
    const int64_t shape[] = {8, 8};
    weft_spec *spec = NULL, *want = spec_of("2x2x2", "f32[8,8] S(0)[1],S(0)[0],S(1)");
    const weft_mesh *mesh = weft_spec_mesh(want);

    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, p, &spec), WEFT_OK);
    ck_assert_int_eq(weft_spec_placements(spec)[0].turn, 0);
    ck_assert_int_eq(weft_spec_placements(spec)[1].turn, 1);
    weft_spec_release(&spec);
    p[0].turn = 1;
    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, p, &spec), WEFT_OK);
    ck_assert_ptr_eq(spec, want);
    weft_spec_release(&spec);
    p[1].turn = 1;
    check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, p, &spec), WEFT_ERR_INVALID,
                  "placement 1, S(0): it has the same turn as axis 0, 1; the turns of dimension 0 "
                  "must differ, or all be 0");
    p[0].turn = p[1].turn = 0;
    p[2] = (weft_placement){.kind = WEFT_PLACE_SHARD, .turn = 1};
    check_refused(weft_spec_create(mesh, WEFT_DTYPE_F32, 2, shape, p, &spec), WEFT_ERR_INVALID,
                  "placement 1, S(0): it has the same turn as axis 0, 0; the turns of dimension 0");
    weft_spec_release(&want);
}

TEST(placements_have_one_form)
{
    static const weft_placement loose[] = {
        {.kind = WEFT_PLACE_STRIDED, .dim = 0, .turn = 9, .factor = 1},
        {.kind = WEFT_PLACE_SHARD, .dim = 0, .turn = 4},
        {.kind = WEFT_PLACE_REPLICATE},
        {.kind = WEFT_PLACE_PARTIAL},
    };
    weft_spec *want = spec_of("2x2x2x2", "f32[8] S(0)[1],S(0)[0],R,P"), *have;

    ck_assert_int_eq(weft_spec_create(weft_spec_mesh(want), WEFT_DTYPE_F32, 1, (const int64_t[]){8},
                                      loose, &have),
                     WEFT_OK);
    ck_assert_ptr_eq(have, want);
    ck_assert_int_eq(weft_spec_placements(have)[0].turn, 1);
    ck_assert_int_eq(weft_spec_placements(have)[1].turn, 0);
    weft_spec_release(&have);
    weft_spec_release(&want);
}

TEST(equal_layouts_are_one_spec)
{
    static const struct {
        const char *mesh, *text, *form;
    } cases[] = {
        {"2", "f32[8] B(0;8)", "f32[8] S(0)"},
        {"2", "f32[8] B(0;0,8,0)", "f32[8] S(0)"},
        {"2", "f32[0] B(0;0,0)", "f32[0] S(0)"},
        {"2", "f32[8] B(0;4,4)", "f32[8] SS(0,2)"},
        {"2", "f32[8] B(0;3,3,2)", "f32[8] SS(0,3)"},
        {"2", "f32[8] B(0;0,3,0,3,2)", "f32[8] SS(0,3)"},
        {"2", "f32[8] B(0;2,3,0,3)", "f32[8] B(0;2,3,3)"},
        {"2", "f32[41] B(0;10,10,10,10,1)", "f32[41] B(0;10,10,10,10,1)"},
        {"4", "f32[8] G(0;2,2,2,2)", "f32[8] S(0)"},
        {"4", "f32[5] G(0;2,2,1,0)", "f32[5] S(0)"},
        {"4", "f32[5] G(0;1,2,1,1)", "f32[5] G(0;1,2,1,1)"},
        {"1", "f32[5] G(0;5)", "f32[5] S(0)"},
        {"2x1", "f32[5] R,O(0)", "f32[5] R,R"},
        {"2", "f32[8] SS(0,1)", "f32[8] S(0)"},
        {"2x2", "f32[8] B(0;4)[1],G(0;4,4)[0]", "f32[8] S(0)[1],S(0)[0]"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        OWNED(weft_spec) *a = spec_of(cases[i].mesh, cases[i].text);
        OWNED(weft_spec) *b = spec_of(cases[i].mesh, cases[i].form);
        char text[64];
        ck_assert_int_eq(weft_spec_print(a, text, sizeof text, NULL), WEFT_OK);
        ck_assert_str_eq(text, cases[i].form);
        ck_assert_ptr_eq(a, b);
    }
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(a_spec_keeps_its_own_sizes)
{
    int64_t sizes[] = {0, 5, 0, 3};
    weft_placement p = {.kind = WEFT_PLACE_PARTS, .sizes = sizes, .size_count = 4};
    OWNED(weft_mesh) *mesh = mesh_of("2");
    OWNED(weft_spec) *spec = NULL, *again = NULL;

    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, (const int64_t[]){8}, &p, &spec),
                     WEFT_OK);
    sizes[1] = 7;
    ck_assert_uint_eq(weft_spec_placements(spec)->size_count, 2);
    ck_assert_int_eq(weft_spec_placements(spec)->sizes[0], 5);
    ck_assert_int_eq(weft_spec_placements(spec)->sizes[1], 3);
    sizes[1] = 5;
    ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, (const int64_t[]){8}, &p, &again),
                     WEFT_OK);
    ck_assert_ptr_eq(spec, again);
}

/* Lists of all ranks would take gigabytes. */
TEST(sizes_and_owners_do_not_depend_on_the_number_of_ranks)
{
    OWNED(weft_spec) *sizes = spec_of("4x500000000", "u8[7,3] G(0;3,3,1,0),R");
    OWNED(weft_spec) *owner = spec_of("4x500000000", "u8[7,3] B(0;4,3),O(499999999)");
    weft_shard shard;

    weft_spec_shard(sizes, 1499999999, &shard); /* the last one of row 2 */
    ck_assert(shard.shape[0] == 1 && shard.offset[0] == 6);
    weft_spec_shard(sizes, 1999999999, &shard);
    ck_assert(shard.shape[0] == 0 && shard.offset[0] == 7);
    weft_spec_shard(owner, 1499999999, &shard); /* piece 2 of each part */
    ck_assert(shard.shape[0] == 2 && shard.offset[0] == 2);
    weft_spec_shard(owner, 1499999998, &shard);
    ck_assert_int_eq(shard.shape[0], 0);
}

TEST(splits_come_by_dimension_and_turn)
{
    OWNED(weft_spec) *spec = spec_of("2x2x2x2", "f32[8,8] S(1),S(0)[2],SS(0,2)[0],S(0)[1]");
    static const int32_t want[][2] = {{0, 2}, {0, 3}, {0, 1}, {1, 0}};

    ck_assert_int_eq(spec->layout.split_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(spec->layout.splits[i].dim, want[i][0]);
        ck_assert_int_eq(spec->layout.splits[i].axis, want[i][1]);
    }
    ck_assert_int_eq(spec->layout.splits[0].factor, 2);
    ck_assert_int_eq(spec->layout.splits[1].factor, 1);
}

TEST(codes_are_different_and_ordered)
{
    OWNED(weft_spec) *spec =
        spec_of("2x2x2x2x2x2x2x2", "f32[8,8] R,S(0),S(0),S(1),SS(0,2),SS(1,3),P(sum),P(avg)");
    const weft_placement *p = weft_spec_placements(spec);

    for (int32_t i = 1; i < 8; i++)
        ck_assert_uint_lt(wf_placement_code(&p[i - 1]), wf_placement_code(&p[i]));
}

static weft_status refused(void *mesh)
{
    weft_spec *spec;
    weft_status status = weft_spec_parse(*(weft_mesh **)mesh, "f32[8] P,P(max)", &spec);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

TEST(even_the_complaint_survives_allocation_failure)
{
    OWNED(weft_mesh) *mesh = mesh_of("2x2");

    ALLOCATIONS_FAIL(refused(&mesh), (void)0);
}
