#include "support/layout.h"
#include "support/planning.h"
#include "support/suite.h"
#include "weft/exec.h"

#include <string.h>

enum { MOST = 100 };

/* COUNT copies of one tensor. */
static weft_plan *plan_many(const struct pair *pair, uint32_t count,
                            const weft_plan_options *options)
{
    const weft_spec *from[MOST], *to[MOST];
    weft_plan *plan = NULL;

    for (uint32_t i = 0; i < count; i++) {
        from[i] = pair->from;
        to[i] = pair->to;
    }
    ck_assert_msg(weft_plan_create_batch(count, from, to, options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    return plan;
}

static weft_plan_info info_of(const weft_plan *plan)
{
    weft_plan_info info = {.struct_size = sizeof info};

    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    return info;
}

TEST(small_tensors_travel_together_in_one_exchange)
{
    OWNED(weft_plan) *alone = NULL, *plan = NULL;
    weft_plan_info one = {.struct_size = sizeof one}, all = {.struct_size = sizeof all};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};

    open_pair(&pair, "8", NULL, "64,64", "S(0)", "S(1)");
    alone = plan_pair(&pair, NULL);
    plan = plan_many(&pair, 100, NULL);
    one = info_of(alone);
    all = info_of(plan);
    ck_assert_uint_eq(all.tensors, 100);
    ck_assert_uint_eq(all.together, 100);
    ck_assert_uint_eq(all.steps, 1);
    ck_assert_uint_lt(all.cost_ns, 100 * one.cost_ns / 4);
    ck_assert_uint_eq(all.bytes_received_max, 100 * one.bytes_received_max);
    ck_assert(weft_plan_step_get(plan, 0, &step) == WEFT_OK);
    ck_assert_ptr_null(step.from);
    ck_assert_uint_eq(step.kind, WEFT_STEP_EXCHANGE);
    ck_assert(weft_plan_step_get(plan, 1, &step) != WEFT_OK);
}

static weft_plan *plan_two(weft_spec *const *from, weft_spec *const *to, uint32_t copies)
{
    const weft_spec *sources[MOST], *targets[MOST];
    weft_plan *plan = NULL;

    for (uint32_t i = 0; i < 2 * copies; i++) {
        sources[i] = from[i % 2];
        targets[i] = to[i % 2];
    }
    ck_assert_msg(weft_plan_create_batch(2 * copies, sources, targets, NULL, &plan) == WEFT_OK,
                  "%s", weft_last_error());
    return plan;
}

/* In both directions, the narrower dtype travels.  A sum is narrowed after it is reduced. */
TEST(tensors_that_cast_travel_together_unless_they_reduce)
{
    weft_spec *from[] = {spec_of("8", "f32[64,64] S(0)"), spec_of("8", "bf16[64,64] S(0)")};
    weft_spec *to[] = {spec_of("8", "bf16[64,64] S(1)"), spec_of("8", "f32[64,64] S(1)")};
    weft_spec *sums[] = {spec_of("8", "f32[64,64] P"), spec_of("8", "f32[64,64] P")};
    weft_spec *parts[] = {spec_of("8", "bf16[64,64] S(0)"), spec_of("8", "f32[64,64] S(0)")};
    OWNED(weft_plan) *plan = plan_two(from, to, 20), *reduced = plan_two(sums, parts, 20);
    uint64_t received = 0, total = 0;

    ck_assert_uint_eq(info_of(plan).together, 40);
    ck_assert_uint_eq(info_of(plan).steps, 1);
    ck_assert_uint_eq(info_of(plan).bytes_received_max, 40 * 7 * 64 * 2);
    ck_assert_int_eq(weft_plan_measure(plan, &received, &total), WEFT_OK);
    ck_assert_uint_eq(received, 40 * 7 * 64 * 2);
    ck_assert_uint_eq(total, 8 * received);
    ck_assert_uint_eq(info_of(reduced).together, 20);
    for (int i = 0; i < 2; i++) {
        weft_spec_release(&from[i]);
        weft_spec_release(&to[i]);
        weft_spec_release(&sums[i]);
        weft_spec_release(&parts[i]);
    }
}

TEST(large_tensors_keep_the_steps_of_their_own_plans)
{
    weft_plan_tensor_info tensor = {.struct_size = sizeof tensor};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "8", NULL, "8192,8192", "P", "R");
    plan = plan_many(&pair, 3, NULL);
    ck_assert_uint_eq(info_of(plan).together, 0);
    ck_assert_uint_eq(info_of(plan).steps, 3);
    ck_assert(weft_plan_step_get(plan, 2, &step) == WEFT_OK);
    ck_assert_uint_eq(step.kind, WEFT_STEP_ALL_REDUCE);
    ck_assert_uint_eq(step.tensor, 2);
    ck_assert(weft_plan_tensor_get(plan, 2, &tensor) == WEFT_OK);
    ck_assert_ptr_eq(tensor.from, pair.from);
    ck_assert_ptr_nonnull(tensor.alone);
    ck_assert(weft_plan_tensor_get(plan, 3, &tensor) != WEFT_OK);
}

TEST(independent_tensors_stay_separate_with_shared_memory)
{
    weft_plan_options options = {.struct_size = sizeof options};
    OWNED(weft_cost_table) *costs = NULL;
    OWNED_PAIR pair = {0};
    weft_plan *plan;

    ck_assert_int_eq(weft_cost_table_open("cpu", &costs), WEFT_OK);
    open_pair(&pair, "8", NULL, "64,64", "R", "S(1)");
    plan = plan_many(&pair, 100, &options); /* a hundred launches against one message */
    ck_assert_uint_eq(info_of(plan).together, 100);
    weft_plan_release(&plan);
    options.costs = costs;
    plan = plan_many(&pair, 100, &options);
    ck_assert_uint_eq(info_of(plan).together, 0);
    weft_plan_release(&plan);
}

TEST(one_tensor_is_not_fused)
{
    weft_plan_tensor_info tensor = {.struct_size = sizeof tensor};
    OWNED_PAIR pair = {0};
    weft_plan *plan;

    open_pair(&pair, "8", NULL, "64,64", "S(0)", "S(1)");
    plan = plan_many(&pair, 1, NULL);
    ck_assert_uint_eq(info_of(plan).together, 0);
    ck_assert_uint_eq(info_of(plan).tensors, 1);
    weft_plan_release(&plan);
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_eq(info_of(plan).tensors, 1);
    ck_assert(weft_plan_tensor_get(plan, 0, &tensor) == WEFT_OK);
    ck_assert_ptr_eq(tensor.alone, plan);
    ck_assert(weft_plan_tensor_get(plan, 1, &tensor) != WEFT_OK);
    weft_plan_release(&plan);
}

TEST(a_batch_never_costs_more_than_its_tensors_one_by_one)
{
    static const char *const layouts[][2] = {{"S(0),R", "R,S(1)"}, {"P,S(0)", "R,R"},
                                             {"R,R", "S(0),S(1)"}, {"S(0),S(0)", "R,R"},
                                             {"P,P", "S(0),S(1)"}, {"R,R", "P,P"}};
    const weft_spec *from[WF_COUNT(layouts)], *to[WF_COUNT(layouts)];
    struct pair pairs[WF_COUNT(layouts)];
    uint64_t sum = 0;
    weft_plan *plan;

    for (size_t i = 0; i < WF_COUNT(layouts); i++) {
        OWNED(weft_plan) *alone = NULL;
        open_pair(&pairs[i], "2x4", NULL, i % 2 == 0 ? "64,64" : "4096,4096", layouts[i][0],
                  layouts[i][1]);
        from[i] = pairs[i].from;
        to[i] = pairs[i].to;
        alone = plan_pair(&pairs[i], NULL);
        sum += info_of(alone).cost_ns;
    }
    ck_assert_int_eq(weft_plan_create_batch(WF_COUNT(layouts), from, to, NULL, &plan), WEFT_OK);
    ck_assert_uint_le(info_of(plan).cost_ns, sum);
    weft_plan_release(&plan);
    for (size_t i = 0; i < WF_COUNT(layouts); i++)
        close_pair(&pairs[i]);
}

TEST(a_memory_limit_keeps_messages_small)
{
    weft_plan_options options = {.struct_size = sizeof options, .memory_limit = 40000};
    const weft_spec *from, *to;
    OWNED_PAIR pair = {0};
    weft_plan *plan;

    open_pair(&pair, "8", NULL, "64,64", "S(0)", "S(1)");
    plan = plan_many(&pair, 100, &options);
    ck_assert_uint_gt(info_of(plan).together, 1);
    ck_assert_uint_lt(info_of(plan).together, 100);
    ck_assert_uint_le(info_of(plan).peak_bytes, 40000);
    weft_plan_release(&plan);
    options.memory_limit = 1;
    from = pair.from;
    to = pair.to;
    ck_assert_int_eq(weft_plan_create_batch(1, &from, &to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "tensor 0"));
    ck_assert_ptr_nonnull(strstr(weft_last_error(), "the minimum is"));
}

TEST(allocation_failure_is_an_error_without_a_leak)
{
    const weft_spec *from[5], *to[5];
    weft_status status = WEFT_ERR_NO_MEMORY;
    weft_plan *plan = NULL;
    struct pair pair;

    open_pair(&pair, "2x2", NULL, "64,64", "S(0),P", "S(1),R");
    for (int i = 0; i < 5; i++) {
        from[i] = pair.from;
        to[i] = pair.to;
    }
    for (uint64_t n = 1; status != WEFT_OK; n++) {
        wf_mem_fail_at(n);
        status = weft_plan_create_batch(5, from, to, NULL, &plan);
        wf_mem_fail_at(0);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        ck_assert_uint_lt(n, 1000);
    }
    weft_plan_release(&plan);
    close_pair(&pair);
    ck_assert_int_eq(wf_mem_live(), 0);
}

TEST(the_digest_tells_batches_apart)
{
    struct pair a, b;
    weft_plan *first, *second, *third;

    open_pair(&a, "8", NULL, "64,64", "S(0)", "S(1)");
    open_pair(&b, "8", NULL, "64,64", "S(1)", "S(0)");
    first = plan_many(&a, 4, NULL);
    second = plan_many(&a, 4, NULL);
    third = plan_many(&b, 4, NULL);
    ck_assert_uint_eq(info_of(first).digest, info_of(second).digest);
    ck_assert_uint_ne(info_of(first).digest, info_of(third).digest);
    weft_plan_release(&first);
    weft_plan_release(&second);
    weft_plan_release(&third);
    close_pair(&a);
    close_pair(&b);
}

TEST(a_batch_prints_itself)
{
    char text[1024];
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "8", NULL, "64,64", "S(0)", "S(1)");
    plan = plan_many(&pair, 5, NULL);
    ck_assert_int_eq(weft_plan_print(plan, text, sizeof text, NULL), WEFT_OK);
    ck_assert_ptr_nonnull(
        strstr(text, "1. exchange of 5 tensors together: a rank receives at most"));
}

TEST(wrong_arguments_are_refused)
{
    const weft_spec *none = NULL;
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_plan_create_batch(0, &none, &none, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_create_batch(1, NULL, &none, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_plan_create_batch(1, &none, &none, NULL, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
}
