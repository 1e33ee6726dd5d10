#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

START_TEST(placements_that_cannot_be_are_refused_with_place_and_reason)
{
    static const struct {
        const char *mesh, *text, *error;
    } cases[] = {
        {"2x2x2", "f32[8] P,R,P(max)",
         "placement 2, P(max): it cannot be combined with P(sum) on axis 0"},
        {"2x2", "f32[8] P(min),P(prod)",
         "placement 1, P(prod): it cannot be combined with P(min) on axis 0"},
        {"2", "f32[8] S(1)", "placement 0, S(1): the tensor has 1 dimension"},
        {"2", "f32[] S(0)", "placement 0, S(0): the tensor has 0 dimensions"},
        {"2", "f32[8] SS(0,0)", "placement 0, SS(0,0): the factor must be at least 1"},
        {"2", "f32[8] P(bor)",
         "placement 0, P(bor): the reductions are sum, avg, min, max and prod"},
        {"2", "c64[8] P(max)", "placement 0, P(max): max is not defined for c64"},
        {"2", "bool[8] P(avg)", "placement 0, P(avg): avg is not defined for bool"},
        {"2x2", "f32[8] S(0)[0],S(0)[0]",
         "placement 1, S(0): it has the same turn as axis 0; turns must differ"},
        {"2x2", "f32[8] S(0)[0],S(0)",
         "placement 1, S(0): axes that split dimension 0 must all give a turn; only axis 0 does "
         "(weft_placement.turn counts from 1; 0 means none)"},
        {"2x2", "f32[8] S(0),SS(0,2)[1]",
         "placement 1, SS(0,2): axes that split dimension 0 must all give a turn; only axis 1 "
         "does"},
    };
    weft_spec *spec = NULL;

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_mesh *mesh = mesh_of(cases[i].mesh);
        check_refused(weft_spec_parse(mesh, cases[i].text, &spec), WEFT_ERR_INVALID,
                      cases[i].error);
        weft_mesh_release(&mesh);
    }
    ck_assert_ptr_null(spec);
    ck_assert_int_eq(wf_mem_live(), 0);
}
END_TEST

START_TEST(sum_and_avg_mix)
{
    weft_spec *spec = spec_of("2x2x2", "f32[8] P(avg),P(avg),P(sum)");

    weft_spec_release(&spec);
}
END_TEST

START_TEST(wrong_fields_are_refused)
{
    static const struct {
        weft_placement placement;
        const char *error;
    } cases[] = {
        {{.kind = 4}, "placement 0: kind 4 is not known"},
        {{.kind = WEFT_PLACE_SHARD, .dim = -1}, "placement 0, S(-1): the tensor has 1 dimension"},
        {{.kind = WEFT_PLACE_SHARD, .turn = -1},
         "placement 0, S(0): turn is -1; it must not be negative"},
        {{.kind = WEFT_PLACE_STRIDED, .factor = -2}, "placement 0, SS(0,-2): the factor"},
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
END_TEST

START_TEST(placements_have_one_form)
{
    static const weft_placement loose[] = {
        {.kind = WEFT_PLACE_STRIDED, .dim = 0, .turn = 9, .factor = 1, .reduction = 3},
        {.kind = WEFT_PLACE_SHARD, .dim = 0, .turn = 4, .factor = 7},
        {.kind = WEFT_PLACE_REPLICATE, .dim = 5, .turn = 2, .reduction = 1},
        {.kind = WEFT_PLACE_PARTIAL, .dim = 1, .factor = 3},
    };
    weft_spec *want = spec_of("2x2x2x2", "f32[8] S(0)[1],S(0)[0],R,P"), *have;

    ck_assert_int_eq(weft_spec_create(weft_spec_mesh(want), WEFT_DTYPE_F32, 1, (const int64_t[]){8},
                                      loose, &have),
                     WEFT_OK);
    ck_assert_ptr_eq(have, want);
    ck_assert_int_eq(weft_spec_placements(have)[0].turn, 2);
    ck_assert_int_eq(weft_spec_placements(have)[1].turn, 1);
    weft_spec_release(&have);
    weft_spec_release(&want);
}
END_TEST

START_TEST(splits_come_by_dimension_and_turn)
{
    weft_spec *spec = spec_of("2x2x2x2", "f32[8,8] S(1),S(0)[2],SS(0,2)[0],S(0)[1]");
    static const int32_t want[][2] = {{0, 2}, {0, 3}, {0, 1}, {1, 0}};

    ck_assert_int_eq(spec->layout.split_count, 4);
    for (int32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(spec->layout.splits[i].dim, want[i][0]);
        ck_assert_int_eq(spec->layout.splits[i].axis, want[i][1]);
    }
    ck_assert_int_eq(spec->layout.splits[0].factor, 2);
    ck_assert_int_eq(spec->layout.splits[1].factor, 1);
    weft_spec_release(&spec);
}
END_TEST

START_TEST(codes_are_different_and_ordered)
{
    weft_spec *spec =
        spec_of("2x2x2x2x2x2x2x2", "f32[8,8] R,S(0),S(0),S(1),SS(0,2),SS(1,3),P(sum),P(avg)");
    const weft_placement *p = weft_spec_placements(spec);

    for (int32_t i = 1; i < 8; i++)
        ck_assert_uint_lt(wf_placement_code(&p[i - 1]), wf_placement_code(&p[i]));
    weft_spec_release(&spec);
}
END_TEST

static weft_status refused(void *mesh)
{
    weft_spec *spec;
    weft_status status = weft_spec_parse(*(weft_mesh **)mesh, "f32[8] P,P(max)", &spec);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

START_TEST(even_the_complaint_survives_allocation_failure)
{
    weft_mesh *mesh = mesh_of("2x2");

    check_allocation_failures(refused, NULL, &mesh);
    weft_mesh_release(&mesh);
}
END_TEST

SUITE(shard_placement, placements_that_cannot_be_are_refused_with_place_and_reason, sum_and_avg_mix,
      wrong_fields_are_refused, placements_have_one_form, splits_come_by_dimension_and_turn,
      codes_are_different_and_ordered, even_the_complaint_survives_allocation_failure)
