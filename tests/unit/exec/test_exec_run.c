/* Refusals of running; tests/system/redistribute tests it on ranks. */
#include "support/lone_rank.h"
#include "support/suite.h"

START_TEST(null_is_not_a_bound_plan)
{
    check_refused(weft_redistribute(NULL, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID, "bound");
    check_refused(weft_redistribute_batch(NULL, NULL, NULL, NULL, NULL), WEFT_ERR_INVALID, "bound");
}
END_TEST

START_TEST(a_rank_without_a_part_does_nothing)
{
    struct lone_rank lone;

    lone_begin(&lone, 0, 1);
    ck_assert_int_eq(weft_redistribute(lone.bound, NULL, NULL, NULL, NULL), WEFT_OK);
    ck_assert_int_eq(fake.collectives, 0);
    lone_end(&lone);
}
END_TEST

SUITE(exec_run, null_is_not_a_bound_plan, a_rank_without_a_part_does_nothing)
