#include "base/number.h"
#include "support/suite.h"

#include <float.h>
#include <math.h>

/* SOURCES: SIZE elements one after the other. */
static void reduce(uint32_t dtype, uint32_t reduction, uint32_t size, uint32_t divisor,
                   const void *elements, void *out)
{
    struct wf_reduction r = {dtype, reduction, size, divisor};
    const void *sources[8];

    for (uint32_t k = 0; k < size; k++)
        sources[k] = (const char *)elements + k * wf_dtype_bytes(dtype);
    wf_elements_reduce(&r, sources, out, 1);
}

TEST(f32_is_computed_in_f32)
{
    float sum[] = {0x1p24f, 1, 1}, third[] = {1, 5, 0x1.8p-3f}, out;
    volatile float wanted = third[0] / 3; /* each operation is rounded separately */

    reduce(WEFT_DTYPE_F32, WEFT_REDUCE_SUM, 3, 0, sum, &out);
    ck_assert(out == 0x1p24f);
    for (int k = 1; k < 3; k++) {
        volatile float part = third[k] / 3;
        wanted = wanted + part;
    }
    reduce(WEFT_DTYPE_F32, WEFT_REDUCE_AVG, 3, 0, third, &out);
    ck_assert(out == wanted);
}

TEST(products_of_c64_overflow_in_f32)
{
    float values[] = {1e30f, 1e30f, 1e30f, 1e30f}, out[2];

    reduce(WEFT_DTYPE_C64, WEFT_REDUCE_PROD, 2, 0, values, out);
    ck_assert(isnan(out[0]) && isinf(out[1]));
}

/* 1 and twice half of the last bit of 1, which would be lost in bf16 one after the other. */
TEST(small_floats_round_once)
{
    uint16_t values[] = {0x3f80, 0x3b80, 0x3b80}, out;

    reduce(WEFT_DTYPE_BF16, WEFT_REDUCE_SUM, 3, 0, values, &out);
    ck_assert_uint_eq(out, 0x3f81);
}

TEST(averages_are_finite_where_the_mean_is)
{
    double large[] = {DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX}, out;

    reduce(WEFT_DTYPE_F64, WEFT_REDUCE_AVG, 3, 0, large, &out);
    ck_assert(out == DBL_MAX);
    reduce(WEFT_DTYPE_F64, WEFT_REDUCE_AVG, 4, 2, large, &out); /* beside a sum */
    ck_assert(isinf(out));
}

TEST(infinities_of_f8e5m2_stay_infinities)
{
    uint8_t values[] = {0x7c, 0x80, 0x3c}, out;

    reduce(WEFT_DTYPE_F8E5M2, WEFT_REDUCE_SUM, 3, 0, values, &out);
    ck_assert_uint_eq(out, 0x7c);
}

TEST(the_later_of_equal_numbers_is_taken)
{
    float values[] = {0.0f, -0.0f}, out;

    for (uint32_t reduction = WEFT_REDUCE_MIN; reduction <= WEFT_REDUCE_MAX; reduction++) {
        reduce(WEFT_DTYPE_F32, reduction, 2, 0, values, &out);
        ck_assert(signbit(out));
    }
}

TEST(averages_of_integers_wrap_at_the_end)
{
    int8_t values[] = {100, 100, 101, -2}, out;

    reduce(WEFT_DTYPE_I8, WEFT_REDUCE_AVG, 4, 2, values, &out);
    ck_assert_int_eq(out, 299 / 2 - 256);
}
