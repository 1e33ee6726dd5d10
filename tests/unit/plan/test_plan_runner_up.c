#include "support/planning.h"
#include "support/suite.h"

/* The runner-up of the best plan, with OPTIONS for both. */
static weft_plan *runner_up(const struct pair *pair, const weft_plan_options *options)
{
    weft_plan *best = plan_pair(pair, options), *other = NULL;
    weft_status status = weft_plan_create_runner_up(best, options, &other);

    ck_assert_msg(status == WEFT_OK, "%s", weft_last_error());
    ck_assert_uint_ge(other->cost_ns, best->cost_ns);
    weft_plan_release(&best);
    return other;
}

TEST(it_does_without_the_dearest_kind_of_step)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *other = NULL;

    open_pair(&pair, "2x4", NULL, "4096,4096", "S(0),R", "R,S(1)");
    other = runner_up(&pair, NULL);
    for (uint32_t i = 0; i < other->step_count; i++)
        ck_assert_uint_ne(other->steps[i].kind, WEFT_STEP_ALL_GATHER);
}

TEST(between_two_meshes_it_is_the_next_best)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *other = NULL;

    open_pair(&pair, "2", "2@2-3", "64,64", "S(0)", "R");
    other = runner_up(&pair, NULL);
    ck_assert_uint_gt(other->step_count, 0);
}

TEST(it_is_priced_as_the_plan_and_has_no_memory_limit)
{
    weft_plan_options options = {.struct_size = sizeof options, .memory_limit = 8 << 20};
    weft_cost_table *costs;
    struct pair pair;
    weft_plan *best, *other;

    ck_assert_int_eq(weft_cost_table_open("cpu", &costs), WEFT_OK);
    options.costs = costs;
    open_pair(&pair, "2x4", NULL, "4096,4096", "S(0),R", "R,S(1)");
    best = plan_pair(&pair, &options);
    ck_assert_ptr_eq(weft_plan_costs(best), costs);
    options.costs = NULL;
    ck_assert_int_eq(weft_plan_create_runner_up(best, &options, &other), WEFT_OK);
    ck_assert_ptr_eq(weft_plan_costs(other), costs);
    weft_plan_release(&other);
    weft_plan_release(&best);
    weft_cost_table_release(&costs);
    close_pair(&pair);
    ck_assert_ptr_null(weft_plan_costs(NULL));
}

TEST(where_there_is_none_the_error_says_why)
{
    weft_plan_options exchange = {.struct_size = sizeof exchange, .planner = WEFT_PLANNER_EXCHANGE};
    weft_plan *nothing, *batch, *other = NULL;
    OWNED_PAIR pair = {0};

    open_pair(&pair, "4", NULL, "64", "R", "R");
    nothing = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_create_runner_up(nothing, NULL, &other), WEFT_ERR_NOT_FOUND);
    ck_assert_int_eq(weft_plan_create_runner_up(nothing, &exchange, &other), WEFT_ERR_NOT_FOUND);
    ck_assert_int_eq(weft_plan_create_batch(1, (const weft_spec *const[]){pair.from},
                                            (const weft_spec *const[]){pair.to}, NULL, &batch),
                     WEFT_OK);
    ck_assert_int_eq(weft_plan_create_runner_up(batch, NULL, &other), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(weft_plan_costs(batch));
    ck_assert_int_eq(weft_plan_create_runner_up(NULL, NULL, &other), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_create_runner_up(nothing, NULL, NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(other);
    weft_plan_release(&batch);
    weft_plan_release(&nothing);
}
