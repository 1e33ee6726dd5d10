#include "exec/bound.h"
#include "support/layout.h"
#include "support/suite.h"

static weft_status check_on(const char *layout, int32_t rank, int64_t outer, int64_t inner,
                            bool written)
{
    const int64_t strides[] = {outer, inner};
    OWNED(weft_spec) *spec = spec_of("4", layout);
    weft_status status = wf_strides_check("strides", spec, rank, strides, written);

    return status;
}

TEST(strides_in_any_order_and_with_gaps_are_fine)
{
    ck_assert_int_eq(check_on("f32[8,8] R", 0, 8, 1, true), WEFT_OK);
    ck_assert_int_eq(check_on("f32[8,8] R", 0, 1, 8, true), WEFT_OK);
    ck_assert_int_eq(check_on("f32[8,8] R", 0, 100, 3, true), WEFT_OK);
}

TEST(only_a_source_may_stand_still)
{
    ck_assert_int_eq(check_on("f32[8,8] R", 0, 0, 1, false), WEFT_OK);
    check_refused(check_on("f32[8,8] R", 0, 8, 0, true), WEFT_ERR_INVALID,
                  "strides: dimension 1 has 8 elements at stride 0; a target stride of 0 would");
}

TEST(no_stride_goes_backward)
{
    check_refused(check_on("f32[8,8] R", 0, -8, 1, false), WEFT_ERR_INVALID, "at stride -8");
    check_refused(check_on("f32[8,8] R", 0, 8, INT64_MIN, true), WEFT_ERR_INVALID,
                  "must not be negative");
}

TEST(the_last_element_ends_before_two_to_the_63_bytes)
{
    const int64_t most = (INT64_MAX - 4 - 7 * 4) / 7 / 4;

    ck_assert_int_eq(check_on("f32[8,8] R", 0, most, 1, true), WEFT_OK);
    check_refused(check_on("f32[8,8] R", 0, most + 1, 1, true), WEFT_ERR_INVALID, "beyond 2^63");
    check_refused(check_on("f32[8,8] R", 0, INT64_MAX, 1, true), WEFT_ERR_INVALID, "beyond 2^63");
    check_refused(check_on("f32[8,8] R", 0, INT64_MAX / 8, INT64_MAX / 8, false), WEFT_ERR_INVALID,
                  "beyond 2^63");
}

TEST(strides_of_single_elements_and_of_nothing_do_not_matter)
{
    ck_assert_int_eq(check_on("f32[4,8] S(0)", 0, INT64_MAX, 1, true), WEFT_OK);
    ck_assert_int_eq(check_on("f32[1,8] R", 0, -1, 1, true), WEFT_OK);
    ck_assert_int_eq(check_on("f32[2,8] S(0)", 3, 0, INT64_MIN, true), WEFT_OK);
    ck_assert_int_eq(check_on("f32[8,8] R", 9, 0, -1, true), WEFT_OK);
}
