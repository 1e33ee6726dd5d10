#include "base/number.h"
#include "support/suite.h"

#include <math.h>
#include <string.h>

TEST(an_identity_changes_nothing_it_is_combined_with)
{
    static const uint32_t reductions[] = {WEFT_REDUCE_SUM, WEFT_REDUCE_MIN, WEFT_REDUCE_MAX,
                                          WEFT_REDUCE_PROD};

    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < WF_COUNT(reductions); i++) {
            _Alignas(16) char identity[16], element[16], result[16];
            if (!wf_reduction_defined(reductions[i], dtype)) continue;
            wf_element_identity(dtype, reductions[i], identity);
            for (int value = 0; value < 3; value++) {
                /* the last is -0.0, in a sum of floats also in the imaginary part */
                struct wf_number number = {(uint64_t)value % 2, value == 2 ? -0.0 : value,
                                           value == 2 ? -0.0 : 0};
                struct wf_number both[2] = {wf_number_load(dtype, identity)};
                if (value == 2 && reductions[i] != WEFT_REDUCE_SUM) continue;
                wf_number_store(dtype, number, element);
                both[1] = wf_number_load(dtype, element);
                wf_number_store_reduced(dtype, reductions[i], both, 2, 1, result);
                ck_assert_msg(memcmp(result, element, wf_dtype_bytes(dtype)) == 0, "%s of %s",
                              wf_reduction_name(reductions[i]), wf_dtype_name(dtype));
            }
        }
}

TEST(infinities_are_kept_where_a_dtype_has_them)
{
    static const uint32_t dtypes[] = {WEFT_DTYPE_F16, WEFT_DTYPE_BF16, WEFT_DTYPE_F32,
                                      WEFT_DTYPE_F64, WEFT_DTYPE_F8E5M2};

    for (size_t i = 0; i < WF_COUNT(dtypes); i++) {
        _Alignas(16) char identity[16];
        wf_element_identity(dtypes[i], WEFT_REDUCE_MIN, identity);
        ck_assert(wf_number_load(dtypes[i], identity).re == INFINITY);
        wf_element_identity(dtypes[i], WEFT_REDUCE_MAX, identity);
        ck_assert(wf_number_load(dtypes[i], identity).re == -INFINITY);
    }
}

TEST(integers_have_their_extremes)
{
    int8_t small;
    uint32_t large;

    wf_element_identity(WEFT_DTYPE_I8, WEFT_REDUCE_MIN, &small);
    ck_assert_int_eq(small, INT8_MAX);
    wf_element_identity(WEFT_DTYPE_I8, WEFT_REDUCE_MAX, &small);
    ck_assert_int_eq(small, INT8_MIN);
    wf_element_identity(WEFT_DTYPE_U32, WEFT_REDUCE_MIN, &large);
    ck_assert_uint_eq(large, UINT32_MAX);
}
