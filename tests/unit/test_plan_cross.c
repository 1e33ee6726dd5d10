#include "support/planning.h"
#include "support/suite.h"

static uint32_t kinds_of(const weft_plan *plan, uint32_t *kinds, uint32_t most)
{
    weft_step_info step;
    uint32_t count = 0;

    for (; weft_plan_step(plan, count, &step) && count < most; count++)
        kinds[count] = step.kind;
    return count;
}

START_TEST(one_exchange_goes_between_the_meshes)
{
    struct pair pair;
    weft_step_info step;
    weft_plan *plan;

    open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert(weft_plan_step(plan, 0, &step));
    ck_assert_uint_eq(step.kind, WEFT_STEP_EXCHANGE);
    ck_assert_uint_eq(step.axes, 0);
    ck_assert_uint_eq(step.bytes_received, 128);
    ck_assert(!weft_plan_step(plan, 1, &step));
    weft_plan_release(&plan);
    close_pair(&pair);
}
END_TEST

START_TEST(many_copies_of_a_large_tensor_pass_it_on_among_themselves)
{
    uint32_t kinds[4];
    struct pair pair;
    weft_plan *plan;

    /* Across hosts the one sender would send everything eight times. */
    open_pair(&pair, "1@0/8", "8@8-15/8", "16777216", "R", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_eq(kinds_of(plan, kinds, 4), 2);
    ck_assert_uint_eq(kinds[0], WEFT_STEP_EXCHANGE);
    ck_assert_uint_eq(kinds[1], WEFT_STEP_ALL_GATHER);
    weft_plan_release(&plan);
    close_pair(&pair);
    open_pair(&pair, "1@0/8", "8@8-15/8", "16", "R", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_eq(kinds_of(plan, kinds, 4), 1);
    weft_plan_release(&plan);
    close_pair(&pair);
}
END_TEST

START_TEST(partials_of_a_large_tensor_are_reduced_before_they_travel)
{
    uint32_t kinds[4];
    struct pair pair;
    weft_plan *plan;

    open_pair(&pair, "8@0-7/8", "8@8-15/8", "16777216", "P", "S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_eq(kinds_of(plan, kinds, 4), 2);
    ck_assert_uint_eq(kinds[0], WEFT_STEP_REDUCE_SCATTER);
    ck_assert_uint_eq(kinds[1], WEFT_STEP_EXCHANGE);
    weft_plan_release(&plan);
    close_pair(&pair);
}
END_TEST

START_TEST(an_impossible_memory_limit_is_refused)
{
    weft_plan_options options = {.struct_size = sizeof options, .memory_limit = 1};
    struct pair pair;
    weft_plan *plan = NULL;

    open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
    close_pair(&pair);
}
END_TEST

SUITE(plan_cross, one_exchange_goes_between_the_meshes,
      many_copies_of_a_large_tensor_pass_it_on_among_themselves,
      partials_of_a_large_tensor_are_reduced_before_they_travel,
      an_impossible_memory_limit_is_refused)
