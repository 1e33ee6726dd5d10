#include "base/base.h"
#include "support/suite.h"

TEST(results_that_fit_are_exact)
{
    int64_t out = 0;

    ck_assert(wf_mul_i64(INT64_C(3037000499), 3037000499, &out));
    ck_assert_int_eq(out, INT64_C(9223372030926249001));
    ck_assert(wf_add_i64(INT64_MAX - 1, 1, &out));
    ck_assert_int_eq(out, INT64_MAX);
    ck_assert(wf_mul_i64(INT64_MIN, 1, &out));
    ck_assert_int_eq(out, INT64_MIN);
}

TEST(results_that_do_not_fit_leave_the_output_alone)
{
    int64_t out = 42;

    ck_assert(!wf_mul_i64(INT64_C(3037000500), 3037000500, &out));
    ck_assert(!wf_mul_i64(INT64_MIN, -1, &out));
    ck_assert(!wf_add_i64(INT64_MAX, 1, &out));
    ck_assert(!wf_add_i64(INT64_MIN, -1, &out));
    ck_assert_int_eq(out, 42);
}

TEST(the_output_may_be_an_input)
{
    int64_t value = 6;

    ck_assert(wf_mul_i64(value, 7, &value));
    ck_assert_int_eq(value, 42);
}

TEST(min_and_max_choose)
{
    ck_assert_int_eq(wf_min_i64(-1, 2), -1);
    ck_assert_int_eq(wf_max_i64(-1, 2), 2);
    ck_assert_int_eq(wf_max_i64(INT64_MIN, INT64_MAX), INT64_MAX);
}

TEST(capped_results_are_the_largest_number_where_they_would_wrap)
{
    ck_assert_uint_eq(wf_mul_capped(3, 5), 15);
    ck_assert_uint_eq(wf_mul_capped(UINT64_MAX / 3, 3), UINT64_MAX);
    ck_assert_uint_eq(wf_mul_capped(UINT64_MAX / 3, 4), UINT64_MAX);
    ck_assert_uint_eq(wf_add_capped(3, 5), 8);
    ck_assert_uint_eq(wf_add_capped(UINT64_MAX - 1, 1), UINT64_MAX);
    ck_assert_uint_eq(wf_add_capped(UINT64_MAX, 2), UINT64_MAX);
    ck_assert_uint_eq(wf_sub_capped(7, 2), 5);
    ck_assert_uint_eq(wf_sub_capped(UINT64_MAX, 2), UINT64_MAX);
}
