#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

static uint32_t kinds_of(const weft_plan *plan, uint32_t *kinds, uint32_t most)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint32_t count = 0;

    for (; weft_plan_step_get(plan, count, &step) == WEFT_OK && count < most; count++)
        kinds[count] = step.kind;
    return count;
}

TEST(one_exchange_goes_between_the_meshes)
{
    OWNED_PAIR pair = {0};
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert(weft_plan_step_get(plan, 0, &step) == WEFT_OK);
    ck_assert_uint_eq(step.kind, WEFT_STEP_EXCHANGE);
    ck_assert_uint_eq(step.axes, 0);
    ck_assert_uint_eq(step.bytes_received, 128);
    ck_assert(weft_plan_step_get(plan, 1, &step) != WEFT_OK);
}

TEST(many_copies_of_a_large_tensor_pass_it_on_among_themselves)
{
    uint32_t kinds[4];
    struct pair pair;
    weft_plan *plan;

    /* Between hosts the single sender would send everything eight times. */
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

TEST(partials_of_a_large_tensor_are_reduced_before_they_travel)
{
    uint32_t kinds[4];
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "8@0-7/8", "8@8-15/8", "16777216", "P", "S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert_uint_eq(kinds_of(plan, kinds, 4), 2);
    ck_assert_uint_eq(kinds[0], WEFT_STEP_REDUCE_SCATTER);
    ck_assert_uint_eq(kinds[1], WEFT_STEP_EXCHANGE);
}

TEST(an_impossible_memory_limit_is_refused_with_the_least_possible)
{
    weft_plan_options options = {.struct_size = sizeof options, .memory_limit = 1};
    unsigned long long least = 0;
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED_PAIR pair = {0};
    weft_plan *plan = NULL;
    const char *said;

    open_pair(&pair, "2@0-1", "2@2-3", "64", "P", "R");
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
    ck_assert_ptr_null(plan);
    said = strstr(weft_last_error(), "scratch; ");
    ck_assert_ptr_nonnull(said);
    ck_assert_int_eq(sscanf(said, "scratch; the minimum is %llu", &least), 1);
    options.memory_limit = least;
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.peak_bytes, least);
    weft_plan_release(&plan);
    options.memory_limit = least - 1;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan), WEFT_ERR_INVALID);
}

TEST(the_runner_up_is_another_plan_or_none)
{
    weft_plan_options options = {.struct_size = sizeof options};
    weft_plan_info best = {.struct_size = sizeof best}, other = {.struct_size = sizeof other};
    struct pair pair;
    weft_plan *plan, *second = NULL;

    open_pair(&pair, "1@0/8", "8@8-15/8", "16777216", "R", "R");
    plan = plan_pair(&pair, NULL);
    ck_assert_int_eq(wf_plan_cross_runner_up(pair.from, pair.to, &options, &second), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &best), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(second, &other), WEFT_OK);
    ck_assert_uint_ne(best.digest, other.digest);
    ck_assert_uint_ge(other.cost_ns, best.cost_ns);
    weft_plan_release(&plan);
    weft_plan_release(&second);
    close_pair(&pair);
    open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "S(0)");
    ck_assert_int_eq(wf_plan_cross_runner_up(pair.from, pair.to, &options, &second),
                     WEFT_ERR_NOT_FOUND);
    close_pair(&pair);
}

TEST(what_a_rank_sends_is_shared_by_the_copies)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "4@0-3", "4@4-7", "64", "R", "S(0)");
    plan = plan_pair(&pair, NULL);
    ck_assert(weft_plan_step_get(plan, 0, &step) == WEFT_OK);
    ck_assert_uint_eq(step.bytes_sent, 64);
    ck_assert_uint_eq(step.bytes_received, 64);
}

TEST(the_exchange_planner_takes_one_step_between_two_meshes)
{
    weft_plan_options options = {.struct_size = sizeof options, .planner = WEFT_PLANNER_EXCHANGE};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "R");
    plan = plan_pair(&pair, &options);
    ck_assert_uint_eq(plan->step_count, 1);
}

/* An exchange adds and averages integers at once, so no reducing step is needed before it. */
TEST(integers_are_added_and_averaged_between_meshes_without_other_reductions)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_ALL_REDUCE |
                                            UINT32_C(1) << WEFT_STEP_REDUCE_SCATTER};
    OWNED(weft_mesh) *from_mesh = NULL, *to_mesh = NULL;
    OWNED(weft_spec) *from = NULL, *to = NULL;
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_mesh_parse("2x2@0-3", &from_mesh), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse("2@4-5", &to_mesh), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(from_mesh, "i32[64] P(sum),P(avg)", &from), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(to_mesh, "i32[64] R", &to), WEFT_OK);
    for (uint64_t limit = 0; limit < 2; limit++) {
        options.memory_limit = limit;
        ck_assert_int_eq(weft_plan_create(from, to, &options, &plan),
                         limit == 0 ? WEFT_OK : WEFT_ERR_INVALID);
        if (limit == 0) ck_assert_uint_eq(plan->step_count, 1);
        if (limit > 0) ck_assert_ptr_null(strstr(weft_last_error(), "EiB"));
        weft_plan_release(&plan);
    }
}

TEST(an_excluded_exchange_is_refused)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_EXCHANGE |
                                            UINT32_C(1) << WEFT_STEP_PERMUTE};
    struct pair pair;
    weft_plan *plan = NULL;

    for (options.planner = 0; options.planner <= WEFT_PLANNER_EXCHANGE; options.planner++) {
        open_pair(&pair, "2@0-1", "2@2-3", "64", "S(0)", "S(0)");
        ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan),
                         WEFT_ERR_UNSUPPORTED);
        ck_assert_msg(strstr(weft_last_error(), "exclude: permute, exchange; do not") != NULL, "%s",
                      weft_last_error());
        close_pair(&pair);
        /* Also on one mesh, with the planner that has no other step. */
        open_pair(&pair, "2@0-1", "2@0-1", "64,64", "S(0)", "S(1)");
        ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &options, &plan),
                         options.planner == 0 ? WEFT_OK : WEFT_ERR_UNSUPPORTED);
        weft_plan_release(&plan);
        close_pair(&pair);
    }
}

/* Meshes that only reshape the same ranks need no exchange. */
TEST(an_excluded_exchange_is_not_missed_between_ways_of_counting_ranks)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .without = UINT32_C(1) << WEFT_STEP_EXCHANGE};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "4", "2x2", "64", "S(0)", "S(0),R");
    ck_assert_msg(weft_plan_create(pair.from, pair.to, &options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_uint_eq(plan->step_count, 1);
    ck_assert_uint_eq(plan->steps[0].kind, WEFT_STEP_ALL_GATHER);
}

TEST(the_planner_exchange_uses_one_exchange_also_for_memory)
{
    weft_plan_options options = {.struct_size = sizeof options,
                                 .planner = WEFT_PLANNER_EXCHANGE,
                                 .minimize = WEFT_MINIMIZE_MEMORY};
    OWNED_PAIR pair = {0};
    OWNED(weft_plan) *plan = NULL;

    open_pair(&pair, "2", "4@1-4", "4,9", "S(1)", "R");
    plan = plan_pair(&pair, &options);
    ck_assert_uint_eq(plan->step_count, 1);
}

/* ---- bytes and scratch ---- */

/* A request between two meshes, in the syntax of specs. */
struct request {
    const char *mesh, *to_mesh, *from, *to;
    uint32_t minimize;
    uint64_t most;    /* bytes received, or of scratch */
    uint64_t ns_most; /* of a plan with so many */
};

static void check_request(const struct request *q)
{
    weft_plan_options options = {.struct_size = sizeof options, .minimize = q->minimize};
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *plan = NULL;
    OWNED_PAIR pair = {0};
    uint64_t bytes;

    ck_assert_int_eq(weft_mesh_parse(q->mesh, &pair.mesh), WEFT_OK);
    ck_assert_int_eq(weft_mesh_parse(q->to_mesh, &pair.to_mesh), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(pair.mesh, q->from, &pair.from), WEFT_OK);
    ck_assert_int_eq(weft_spec_parse(pair.to_mesh, q->to, &pair.to), WEFT_OK);
    plan = plan_pair(&pair, &options);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    bytes = q->minimize == WEFT_MINIMIZE_BYTES ? info.bytes_received_max : info.peak_bytes;
    ck_assert_msg(bytes <= q->most, "%s -> %s: %llu bytes", q->from, q->to,
                  (unsigned long long)bytes);
    ck_assert_msg(bytes < q->most || info.cost_ns <= q->ns_most, "%s -> %s: %llu ns", q->from,
                  q->to, (unsigned long long)info.cost_ns);
    ck_assert_uint_le(info.steps, 6);
}

/* The plans that were found before the parts were planned in several ways had more bytes and eight
 * steps, or were slower in the same scratch. */
TEST(the_parts_of_a_plan_are_chosen_together)
{
    static const struct request requests[] = {
        {"2x3x1x2", "2@1,2", "u8[7,11] G(1;11,0),P(sum),B(0;0,0,7,0),O(0)", "i32[7,11] SS(1,4)",
         WEFT_MINIMIZE_BYTES, 308, 17700},
        {"5x2x1x2", "1", "i64[13,13] P(sum),O(1),SS(0,3)[1],B(0;3,4,6,0,0)[0]", "i64[13,13] S(1)",
         WEFT_MINIMIZE_MEMORY, 1536, 18300},
        {"2x5", "6", "i64[1,7,23] P(min),SS(2,2)", "i64[1,7,23] P(min)", WEFT_MINIMIZE_MEMORY, 1792,
         19500},
        {"3x7", "2x3", "f32[31] P(avg),P(avg)", "f64[31] S(0),S(0)", WEFT_MINIMIZE_MEMORY, 512,
         39000},
    };

    for (size_t i = 0; i < WF_COUNT(requests); i++)
        check_request(&requests[i]);
}
