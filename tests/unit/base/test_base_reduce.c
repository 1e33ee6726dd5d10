#include "base/number.h"
#include "support/suite.h"

#include <float.h>
#include <math.h>

static struct wf_number integer(int64_t value)
{
    return (struct wf_number){.integer = (uint64_t)value};
}

static struct wf_number real(double value)
{
    return (struct wf_number){.re = value};
}

static int64_t of_integers(uint32_t dtype, uint32_t reduction, int64_t a, int64_t b)
{
    struct wf_number values[] = {integer(a), integer(b)};

    return (int64_t)wf_number_reduce(dtype, reduction, values, 2).integer;
}

static double of_reals(uint32_t reduction, double a, double b)
{
    struct wf_number values[] = {real(a), real(b)};

    return wf_number_reduce(WEFT_DTYPE_F32, reduction, values, 2).re;
}

TEST(averages_of_integers_are_exact)
{
    ck_assert_int_eq(of_integers(WEFT_DTYPE_U8, WEFT_REDUCE_AVG, 200, 200), 200);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I8, WEFT_REDUCE_AVG, 100, 100), 100);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I8, WEFT_REDUCE_AVG, -128, -127), -127);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I64, WEFT_REDUCE_AVG, INT64_MIN, INT64_MIN), INT64_MIN);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I64, WEFT_REDUCE_AVG, INT64_MIN, INT64_MAX), 0);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_U64, WEFT_REDUCE_AVG, -1, -1), -1);
}

TEST(an_average_by_less_than_its_holders_wraps_at_the_end)
{
    struct wf_number values[] = {integer(100), integer(100), integer(101), integer(-2)};
    int8_t out;

    wf_number_store_reduced(WEFT_DTYPE_I8, WEFT_REDUCE_AVG, values, 4, 2, &out);
    ck_assert_int_eq(out, 299 / 2 - 256);
}

TEST(averages_of_floats_are_finite_where_the_mean_is)
{
    struct wf_number large[] = {real(DBL_MAX), real(DBL_MAX)};

    ck_assert(wf_number_reduce(WEFT_DTYPE_F64, WEFT_REDUCE_AVG, large, 2).re == DBL_MAX);
}

TEST(infinities_of_f8e5m2_stay_infinities)
{
    struct wf_number values[] = {real(1), real(-INFINITY), real(INFINITY), real(57344),
                                 real(57344)};
    uint8_t out;

    wf_number_store_reduced(WEFT_DTYPE_F8E5M2, WEFT_REDUCE_MIN, values, 3, 1, &out);
    ck_assert_uint_eq(out, 0xfc);
    wf_number_store_reduced(WEFT_DTYPE_F8E5M2, WEFT_REDUCE_MAX, values, 3, 1, &out);
    ck_assert_uint_eq(out, 0x7c);
    wf_number_store_reduced(WEFT_DTYPE_F8E5M2, WEFT_REDUCE_SUM, &values[2], 2, 1, &out);
    ck_assert_uint_eq(out, 0x7c);
    wf_number_store_reduced(WEFT_DTYPE_F8E5M2, WEFT_REDUCE_SUM, &values[3], 2, 1, &out);
    ck_assert_uint_eq(out, 0x7b); /* finite numbers saturate */
}

TEST(integers_reduce_as_their_sign_says)
{
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_SUM, -7, 3), -4);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_PROD, -7, 3), -21);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_MIN, -7, 3), -7);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_MAX, -7, 3), 3);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_U64, WEFT_REDUCE_MAX, -7, 3), -7);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_AVG, -7, 4), -1);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_BAND, 6, 3), 2);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_BOR, 6, 3), 7);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_BXOR, 6, 3), 5);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_I32, WEFT_REDUCE_PREMUL_SUM, 6, 3), 9);
}

TEST(bools_reduce_as_logic)
{
    ck_assert_int_eq(of_integers(WEFT_DTYPE_BOOL, WEFT_REDUCE_SUM, 1, 1), 1);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_BOOL, WEFT_REDUCE_PROD, 1, 0), 0);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_BOOL, WEFT_REDUCE_MIN, 1, 0), 0);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_BOOL, WEFT_REDUCE_MAX, 1, 0), 1);
    ck_assert_int_eq(of_integers(WEFT_DTYPE_BOOL, WEFT_REDUCE_BXOR, 1, 1), 0);
}

TEST(floats_reduce_and_nan_wins)
{
    ck_assert(of_reals(WEFT_REDUCE_SUM, 1.5, 2) == 3.5);
    ck_assert(of_reals(WEFT_REDUCE_AVG, 1.5, 2) == 1.75);
    ck_assert(of_reals(WEFT_REDUCE_MIN, -1.5, 2) == -1.5);
    ck_assert(of_reals(WEFT_REDUCE_PREMUL_SUM, 1.5, 2) == 3.5);
    ck_assert(isnan(of_reals(WEFT_REDUCE_MAX, (double)NAN, 2)));
    ck_assert(isnan(of_reals(WEFT_REDUCE_MIN, 2, (double)NAN)));
}

TEST(complex_products_mix_their_parts)
{
    struct wf_number a = {.re = 1, .im = 2}, b = {.re = 3, .im = -1};
    struct wf_number product = wf_number_combine(WEFT_DTYPE_C64, WEFT_REDUCE_PROD, a, b);

    ck_assert(product.re == 5 && product.im == 5);
}
