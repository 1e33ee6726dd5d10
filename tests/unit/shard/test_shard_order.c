#include "support/allocfail.h"
#include "support/layout.h"
#include "support/suite.h"

static void check_conversion(weft_status (*convert)(const weft_spec *, weft_spec **),
                             const char *mesh, const char *from, const char *want)
{
    OWNED(weft_spec) *spec = spec_of(mesh, from), *out = NULL;
    char text[128];

    ck_assert_msg(convert(spec, &out) == WEFT_OK, "%s on %s: %s", from, mesh, weft_last_error());
    ck_assert_int_eq(weft_spec_print(out, text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, want);
}

static void check_both(const char *mesh, const char *ordered, const char *strided)
{
    check_conversion(weft_spec_order_to_strides, mesh, ordered, strided);
    check_conversion(weft_spec_strides_to_order, mesh, strided, ordered);
}

TEST(an_even_order_has_a_strided_form)
{
    check_both("2x4", "f32[8,8] S(0)[1],S(0)[0]", "f32[8,8] SS(0,4),S(0)");
    check_both("4x3x2", "f32[24] S(0)[1],S(0)[2],S(0)[0]", "f32[24] SS(0,2),SS(0,2),S(0)");
    check_both("2x2x2", "f32[8,8] S(1),S(0)[1],S(0)[0]", "f32[8,8] S(1),SS(0,2),S(0)");
    check_both("2x4", "f32[8,8] S(0),S(0)", "f32[8,8] S(0),S(0)");
    check_both("2x4", "f32[7,8] P(max),S(0)", "f32[7,8] P(max),S(0)");
    check_both("2x4", "f32[] R,R", "f32[] R,R");
}

TEST(listed_sizes_convert_only_in_the_default_order)
{
    weft_spec *ordered = spec_of("2x2", "f32[8] S(0)[1],G(0;5,3)[0]"), *out = NULL;
    OWNED(weft_spec) *strided = spec_of("2x2", "f32[8] SS(0,2),B(0;3,1)");

    check_both("2x2", "f32[8] S(0),G(0;3,1)", "f32[8] S(0),G(0;3,1)");
    check_both("2x2", "f32[8] B(0;5,3),O(1)", "f32[8] B(0;5,3),O(1)");
    check_refused(weft_spec_order_to_strides(ordered, &out), WEFT_ERR_UNSUPPORTED,
                  "weft_spec_order_to_strides: dimension 0 has a B or a G, which have no strided "
                  "form; split the dimension in the default order, without SS");
    check_refused(weft_spec_strides_to_order(strided, &out), WEFT_ERR_UNSUPPORTED,
                  "weft_spec_strides_to_order: dimension 0 has a B or a G, which have no strided ");
    weft_spec_release(&ordered);
}

TEST(mildly_uneven_orders_convert_too)
{
    check_both("2x3", "f32[7] S(0)[1],S(0)[0]", "f32[7] SS(0,3),S(0)");
    check_both("4x2", "f32[7] S(0)[1],S(0)[0]", "f32[7] SS(0,2),S(0)");
}

TEST(uneven_orders_that_strides_would_move_are_refused)
{
    static const struct {
        const char *mesh, *ordered, *strided, *error;
    } cases[] = {
        {"3x2", "f32[7] S(0)[1],S(0)[0]", "f32[7] SS(0,2),S(0)",
         "dimension 0, of size 7, is not split evenly, and the shard of rank 4 would have size 0 "
         "and begin at 7 by order, but size 1 and begin at 6 by strides"},
        {"4x2", "f32[9] S(0)[1],S(0)[0]", "f32[9] SS(0,2),S(0)", "dimension 0, of size 9"},
        {"3x2x2", "f32[7] S(0)[1],S(0)[0],O(1)", "f32[7] SS(0,2),S(0),O(1)",
         "the shard of rank 9 would have size 0"},
        {"8x2", "f32[5,17] S(1)[1],S(1)[0]", "f32[5,17] SS(1,2),S(1)", "dimension 1, of size 17"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_spec *ordered = spec_of(cases[i].mesh, cases[i].ordered), *out = NULL;
        OWNED(weft_spec) *strided = spec_of(cases[i].mesh, cases[i].strided);
        check_refused(weft_spec_order_to_strides(ordered, &out), WEFT_ERR_UNSUPPORTED,
                      cases[i].error);
        check_refused(weft_spec_strides_to_order(strided, &out), WEFT_ERR_UNSUPPORTED,
                      cases[i].error);
        ck_assert_ptr_null(out);
        weft_spec_release(&ordered);
    }
}

TEST(strides_that_mean_no_order_are_refused)
{
    static const struct {
        const char *mesh, *text, *error;
    } cases[] = {
        {"4x8", "f32[64,64] SS(0,2),SS(1,2)", "placement 1, SS(1,2): no later axes"},
        {"4x8", "f32[64,64] SS(0,2),S(1)", "placement 0, SS(0,2): no later axes"},
        {"4x8", "f32[64,64] SS(1,16),S(1)",
         "placement 0, SS(1,16): no later axes that split "
         "dimension 1 have sizes that multiply to 16"},
        {"4x8", "f32[64] SS(0,8)[1],S(0)[0]", "dimension 0 has an order already"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++) {
        weft_spec *spec = spec_of(cases[i].mesh, cases[i].text), *out = NULL;
        check_refused(weft_spec_strides_to_order(spec, &out), WEFT_ERR_UNSUPPORTED, cases[i].error);
        check_refused(weft_spec_order_to_strides(spec, &out), WEFT_ERR_UNSUPPORTED,
                      "is strided already");
        ck_assert_ptr_null(out);
        weft_spec_release(&spec);
    }
}

TEST(every_order_of_even_splits_comes_back)
{
    static const int32_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    OWNED(weft_mesh) *mesh = mesh_of("2x3x4");

    for (size_t i = 0; i < WF_COUNT(orders); i++) {
        weft_placement p[3];
        OWNED(weft_spec) *spec = NULL, *strided = NULL, *back = NULL;
        for (int32_t j = 0; j < 3; j++)
            p[j] = (weft_placement){.kind = WEFT_PLACE_SHARD, .turn = orders[i][j]};
        ck_assert_int_eq(weft_spec_create(mesh, WEFT_DTYPE_F32, 1, (const int64_t[]){48}, p, &spec),
                         WEFT_OK);
        ck_assert_int_eq(weft_spec_order_to_strides(spec, &strided), WEFT_OK);
        ck_assert_int_eq(weft_spec_strides_to_order(strided, &back), WEFT_OK);
        ck_assert_ptr_eq(back, spec);
    }
}

TEST(conversion_survives_every_allocation_failure)
{
    OWNED(weft_spec) *there = spec_of("2x4", "f32[8] S(0)[1],S(0)[0]"),
                     *back = spec_of("2x4", "f32[8] SS(0,4),S(0)"), *out = NULL;

    ALLOCATIONS_FAIL(weft_spec_order_to_strides(there, &out), weft_spec_release(&out));
    ALLOCATIONS_FAIL(weft_spec_strides_to_order(back, &out), weft_spec_release(&out));
}
