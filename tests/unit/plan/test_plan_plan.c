#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

TEST(equal_layouts_need_no_steps)
{
    OWNED_PAIR pair = {0};
    weft_plan *plan;
    weft_plan_info info = {.struct_size = sizeof info};

    open_pair(&pair, "1x4", NULL, "8,8", "S(0),R", "P,R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.steps, 0);
    ck_assert_uint_eq(info.cost_ns, 0);
    weft_plan_release(&plan);
    ck_assert_ptr_null(plan);
}

TEST(empty_tensors_need_no_steps)
{
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;
    weft_plan_info info = {.struct_size = sizeof info};

    open_pair(&pair, "2x2", NULL, "0,8", "S(0),R", "R,S(1)");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.steps, 0);
}

/* 4 EiB from each of a million ranks: the exchange must not become cheap because its bytes
 * overflow. */
TEST(what_is_too_much_stays_too_much)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE};
    OWNED_PAIR pair = {0};
    weft_plan *plan;
    weft_plan_info best = {.struct_size = sizeof best}, exchange = {.struct_size = sizeof exchange};

    open_pair(&pair, "1024x1024", NULL, "1152921504606846975", "P,P", "R,R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, &best), WEFT_OK);
    weft_plan_release(&plan);
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &exchange), WEFT_OK);
    ck_assert_uint_gt(exchange.cost_ns, best.cost_ns);
    ck_assert_uint_eq(exchange.bytes_received_max, UINT64_MAX);
    ck_assert_uint_eq(exchange.peak_bytes, UINT64_MAX);
    weft_plan_release(&plan);
    options.memory_limit = 1024;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "at least 2^64 - 1 bytes"));
}

TEST(steps_lead_from_the_source_to_the_target)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_EXCHANGE};
    weft_plan_step_info step = {.struct_size = sizeof step};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;
    const weft_spec *at;
    uint64_t cost = 0, received = 0, peak = 0;

    open_pair(&pair, "2x4", NULL, "64,64", "P,S(0)", "S(1),R");
    plan = plan_pair(&pair, &options);
    at = pair.from;
    for (uint32_t i = 0; weft_plan_step_get(plan, i, &step) == WEFT_OK; i++) {
        ck_assert_ptr_eq(step.from, at);
        ck_assert_uint_ne(step.axes, 0);
        at = step.to;
        cost += step.cost_ns;
        received += step.bytes_received;
        if (step.scratch_bytes > peak) peak = step.scratch_bytes;
    }
    ck_assert_ptr_eq(at, pair.to);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.cost_ns, cost);
    ck_assert_uint_eq(info.bytes_received_max, received);
    ck_assert_uint_eq(info.peak_bytes, peak);
}

TEST(shapes_must_agree)
{
    struct pair pair, other;
    weft_plan *plan = NULL;
    weft_spec *half;

    open_pair(&pair, "4", NULL, "8", "S(0)", "R");
    open_pair(&other, "4", NULL, "9", "S(0)", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, other.to, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_spec_parse(pair.mesh, "f16[8] R", &half), WEFT_OK);
    ck_assert_int_eq(weft_plan_create(NULL, half, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
    weft_spec_release(&half);
    close_pair(&pair);
    close_pair(&other);
}

TEST(allocation_failure_is_an_error_without_a_leak)
{
    OWNED_PAIR pair = {0};
    weft_plan *plan = NULL;
    int64_t live;

    open_pair(&pair, "2x2x2", NULL, "8,8", "S(0),P,S(1)", "S(1),S(0),R");
    live = wf_mem_live();
    for (uint64_t n = 1; plan == NULL; n++) {
        weft_status status;
        wf_mem_fail_at(n);
        status = weft_plan_create(pair.from, pair.to, NULL, &plan);
        wf_mem_fail_at(0);
        if (status == WEFT_OK) break;
        ck_assert_int_eq(status, WEFT_ERR_NO_MEMORY);
        ck_assert_int_eq(wf_mem_live(), live);
    }
    weft_plan_release(&plan);
    ck_assert_int_eq(wf_mem_live(), live);
}

TEST(digests_tell_plans_apart)
{
    weft_plan_options exchange = {.struct_size = sizeof exchange, .planner = WEFT_PLANNER_EXCHANGE};
    struct pair pair;
    weft_plan *a, *b, *c;

    open_pair(&pair, "2x4", NULL, "64,64", "S(0),R", "R,S(1)");
    a = plan_pair(&pair, NULL);
    b = plan_pair(&pair, NULL);
    c = plan_pair(&pair, &exchange);
    ck_assert_uint_eq(a->digest, b->digest);
    ck_assert_uint_ne(a->digest, c->digest);
    weft_plan_release(&a);
    weft_plan_release(&b);
    weft_plan_release(&c);
    close_pair(&pair);
    open_pair(&pair, "4", NULL, "8", "R", "R"); /* also for plans without steps */
    a = plan_pair(&pair, NULL);
    close_pair(&pair);
    open_pair(&pair, "4", NULL, "9", "S(0)", "S(0)");
    b = plan_pair(&pair, NULL);
    ck_assert_uint_ne(a->digest, b->digest);
    weft_plan_release(&a);
    weft_plan_release(&b);
    close_pair(&pair);
}

TEST(every_planner_keeps_to_the_memory_limit)
{
    for (uint32_t planner = 0; planner <= WEFT_PLANNER_EXCHANGE; planner++) {
        weft_plan_options options = {.struct_size = sizeof options, .planner = planner};
        weft_plan_info info = {.struct_size = sizeof info};
        struct pair pair;
        weft_plan *plan;

        open_pair(&pair, "2x4", NULL, "64,64", "S(0),S(0)", "S(1),R");
        options.minimize = WEFT_MINIMIZE_MEMORY;
        plan = plan_pair(&pair, &options);
        ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
        ck_assert_uint_gt(info.peak_bytes, 1);
        weft_plan_release(&plan);
        options.memory_limit = info.peak_bytes;
        plan = plan_pair(&pair, &options);
        weft_plan_release(&plan);
        options.memory_limit = info.peak_bytes - 1;
        ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(weft_last_error(), "the minimum is"));
        close_pair(&pair);
    }
}

TEST(unknown_planners_are_refused)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .planner = WEFT_PLANNER_EXCHANGE + 1};
    OWNED_PAIR pair = {0};
    weft_plan *plan = NULL;

    open_pair(&pair, "2", NULL, "8", "S(0)", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_plan_create: weft_plan_options.planner is 2; expected "
                     "WEFT_PLANNER_SEARCH (0) or WEFT_PLANNER_EXCHANGE (1)");
}

TEST(null_is_refused_by_every_accessor)
{
    weft_plan_info info = {.steps = 7};
    weft_plan_step_info step = {.struct_size = sizeof step};
    weft_plan_tensor_info tensor = {.struct_size = sizeof tensor};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    ck_assert_int_eq(weft_plan_get(NULL, &info), WEFT_ERR_INVALID);
    ck_assert_uint_eq(info.steps, 7);
    ck_assert(weft_plan_step_get(NULL, 0, &step) != WEFT_OK);
    ck_assert(weft_plan_tensor_get(NULL, 0, &tensor) != WEFT_OK);
    ck_assert_ptr_null(weft_plan_retain(NULL));
    open_pair(&pair, "2", NULL, "8", "S(0)", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(weft_plan_get(plan, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_ERR_INVALID);
    ck_assert_str_eq(weft_last_error(),
                     "weft_plan_info.struct_size is 0; set it to sizeof(weft_plan_info)");
    ck_assert(weft_plan_step_get(plan, 0, NULL) != WEFT_OK);
    ck_assert(weft_plan_tensor_get(plan, 0, NULL) != WEFT_OK);
    ck_assert_int_eq(weft_plan_print(plan, NULL, 8, NULL), WEFT_ERR_INVALID);
}
