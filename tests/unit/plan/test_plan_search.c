#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

static weft_plan_info plan_info(const struct pair *pair, const weft_plan_options *options)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = plan_pair(pair, options);

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    weft_plan_release(&plan);
    return info;
}

START_TEST(a_memory_limit_changes_the_plan_or_says_the_least_possible)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan *plan = NULL;
    struct pair pair;
    uint64_t fast, lean;

    open_pair(&pair, "2x4", NULL, "1024,1024", "S(0),S(1)", "S(1),S(0)");
    fast = plan_info(&pair, &options).peak_bytes;
    options.minimize = WEFT_MINIMIZE_MEMORY;
    lean = plan_info(&pair, &options).peak_bytes;
    ck_assert_uint_le(lean, fast);
    options = (weft_plan_options){.struct_size = sizeof options, .memory_limit = lean};
    ck_assert_uint_le(plan_info(&pair, &options).peak_bytes, lean);
    options.memory_limit = lean - 1;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "the minimum is"));
    close_pair(&pair);
}
END_TEST

START_TEST(planning_does_not_depend_on_the_number_of_ranks)
{
    struct pair small, large;
    weft_plan *a, *b;
    uint64_t made;

    open_pair(&small, "2x2x2", NULL, "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R");
    open_pair(&large, "64x128x128", NULL, "8192,8192,64", "S(0),S(1),S(0)", "S(1),S(0),R");
    wf_mem_fail_at(0);
    ck_assert_int_eq(weft_plan_create(small.from, small.to, NULL, &a), WEFT_OK);
    made = wf_mem_made();
    wf_mem_fail_at(0);
    ck_assert_int_eq(weft_plan_create(large.from, large.to, NULL, &b), WEFT_OK);
    ck_assert_uint_le(wf_mem_made(), made + 16);
    weft_plan_release(&a);
    weft_plan_release(&b);
    close_pair(&small);
    close_pair(&large);
}
END_TEST

START_TEST(excluded_kinds_are_not_used)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_ALL_GATHER |
                                            UINT32_C(1) << WEFT_STEP_EXCHANGE};
    weft_step_info step = {.struct_size = sizeof step};
    struct pair pair;
    weft_plan *plan = NULL;

    open_pair(&pair, "4", NULL, "64,64", "S(0)", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_UNSUPPORTED);
    ck_assert_ptr_null(plan);
    ck_assert_ptr_nonnull(
        strstr(weft_last_error(), "without the excluded step kinds: all-gather, exchange"));
    options.without = UINT32_C(1) << WEFT_STEP_ALL_GATHER;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_OK);
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        ck_assert_uint_ne(step.kind, WEFT_STEP_ALL_GATHER);
    weft_plan_release(&plan);
    close_pair(&pair);
}
END_TEST

SUITE(plan_search, a_memory_limit_changes_the_plan_or_says_the_least_possible,
      planning_does_not_depend_on_the_number_of_ranks, excluded_kinds_are_not_used)
