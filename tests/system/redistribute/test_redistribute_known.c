/* Redistributions that other systems do wrongly or inefficiently, each with its name. */
#include "system/redistribute/pairs.h"
#include "support/layout.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"

static struct pair pair_of(const char *mesh, const char *from, const char *to_mesh, const char *to)
{
    struct pair pair = {
        .from = spec_of(mesh, from), .to = spec_of(to_mesh, to), .costs = "default"};

    pair.options.struct_size = sizeof pair.options;
    ck_assert_int_eq(weft_cost_table_open(pair.costs, &pair.cost_table), WEFT_OK);
    pair.options.costs = pair.cost_table;
    return pair;
}

static void simulate(const struct pair *pair)
{
    struct values values = values_between(pair->from, pair->to);
    struct shards source = shards_of(pair->from), target = shards_of(pair->to);
    weft_plan *plan = NULL;

    ck_assert_msg(dtensor_plan_create(pair->from, pair->to, &pair->options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    shards_fill(&values, pair->from, &source);
    ck_assert_int_eq(simulate_one(plan, (const void *const *)source.at, target.at), WEFT_OK);
    ck_assert_msg(values_check(&values, pair->to, (const void *const *)target.at) == WEFT_OK,
                  "%s\n%s", weft_last_error(), pair_command(pair, "sim"));
    weft_plan_release(&plan);
    shards_free(pair->from, &source);
    shards_free(pair->to, &target);
}

/* Check every plan that the options select.  ONE_STEP: also a single exchange. */
static void arrives_by_all_plans(const char *mesh, const char *from, const char *to_mesh,
                                 const char *to, bool one_step)
{
    OWNED_PAIR pair = pair_of(mesh, from, to_mesh, to);

    for (uint32_t minimize = 0; minimize < 3; minimize++) {
        pair.options.minimize = minimize;
        pair.options.without = 0;
        simulate(&pair);
        if (pair.from->layout.mesh != pair.to->layout.mesh) continue;
        pair.options.without = 1u << WEFT_STEP_EXCHANGE | 1u << WEFT_STEP_PERMUTE;
        simulate(&pair);
    }
    pair.options.without = 0;
    pair.options.planner = WEFT_PLANNER_EXCHANGE;
    if (one_step) simulate(&pair);
}

static void arrives(const char *mesh, const char *from, const char *to_mesh, const char *to)
{
    arrives_by_all_plans(mesh, from, to_mesh, to, true);
}

static void arrives_at_sizes(const char *mesh, const char *from, const char *to, const int *sizes,
                             size_t count)
{
    char source[64], target[64];

    for (size_t i = 0; i < count; i++) {
        snprintf(source, sizeof source, "f32[%d] %s", sizes[i], from);
        snprintf(target, sizeof target, "f32[%d] %s", sizes[i], to);
        arrives(mesh, source, mesh, target);
    }
}

/* D1: nested chunks are not the chunks of the flattened axes. */
TEST(uneven_nested_shards_gather_over_both_axes_at_once)
{
    static const int on_2x2[] = {1, 2, 3, 5, 6, 7, 9, 10, 13, 14},
                     on_2x3[] = {2, 3, 4, 7, 8, 9, 10};

    arrives_at_sizes("2x2", "S(0),S(0)", "R,R", on_2x2, WF_COUNT(on_2x2));
    arrives_at_sizes("2x3", "S(0),S(0)", "R,R", on_2x3, WF_COUNT(on_2x3));
}

TEST(uneven_strided_shards_gather)
{
    static const int on_2x2[] = {5, 7, 9}, on_3x2[] = {7, 13};

    arrives_at_sizes("2x2", "SS(0,2),S(0)", "R,R", on_2x2, WF_COUNT(on_2x2));
    arrives_at_sizes("3x2", "SS(0,2),S(0)", "R,R", on_3x2, WF_COUNT(on_3x2));
}

TEST(tensors_move_between_meshes_without_a_common_rank)
{
    arrives("2", "f32[8,3] S(0)", "2@2-3", "f32[8,3] S(0)");
    arrives("2", "f32[8,3] S(0)", "2@2-3", "f32[8,3] R");
    arrives("2", "f32[8,3] P", "3@2-4", "f32[8,3] S(1)");
    arrives("2x2", "f32[7,3] R,S(0)", "3@4-6", "f32[7,3] S(0)");
}

/* D2: an order of splits and strides are different layouts if sizes are uneven. */
TEST(orders_stay_orders_and_strides_stay_strides)
{
    static const int on_3x2[] = {7, 13}, on_4x2[] = {9, 17, 25}, on_8x2[] = {17, 33};

    arrives_at_sizes("3x2", "S(0)[1],S(0)[0]", "R,R", on_3x2, WF_COUNT(on_3x2));
    arrives_at_sizes("3x2", "S(0)[1],S(0)[0]", "SS(0,2),S(0)", on_3x2, WF_COUNT(on_3x2));
    arrives_at_sizes("4x2", "SS(0,2),S(0)", "S(0)[1],S(0)[0]", on_4x2, WF_COUNT(on_4x2));
    arrives_at_sizes("8x2", "S(0)[1],S(0)[0]", "SS(0,2),S(0)", on_8x2, WF_COUNT(on_8x2));
}

/* D4, D8: strided shards cost the bytes they move, and move without a full replica on any rank. */
TEST(strided_shards_go_straight_to_other_shards)
{
    struct pair pair = pair_of("4", "f32[64,64] SS(0,2)", "4", "f32[64,64] S(1)");
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan_step_info step = {.struct_size = sizeof step};
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &pair.options, &plan), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.steps, 1);
    ck_assert_uint_gt(info.cost_ns, 0);
    ck_assert_uint_le(info.bytes_received_max, 64 * 64);
    ck_assert(weft_plan_step_get(plan, 0, &step) == WEFT_OK);
    ck_assert_ptr_eq(step.to, pair.to);
    weft_plan_release(&plan);
    pair_release(&pair);
    arrives("4", "f32[10,7] SS(0,2)", "4", "f32[10,7] S(1)");
}

/* D9: the position in a group is the coordinate, independent of the ranks' numbers. */
TEST(ranks_in_any_order_hold_their_coordinates_shard)
{
    arrives("2x2@3,1,2,0", "f32[5,6] S(0),S(1)", "2x2@3,1,2,0", "f32[5,6] R,R");
    arrives("2x2@3,1,2,0", "f32[5,6] P,S(1)", "2x2@3,1,2,0", "f32[5,6] S(0),R");
    arrives("4@2,0,3,1", "f32[5,6] S(0)", "4@2,0,3,1", "f32[5,6] S(1)");
}

/* D16: equal placements in another order are a different layout. */
TEST(another_order_of_the_same_placements_moves_data)
{
    struct pair pair = pair_of("2x3", "f32[12] S(0),S(0)", "2x3", "f32[12] S(0)[1],S(0)[0]");
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = NULL;

    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &pair.options, &plan), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_gt(info.steps, 0);
    ck_assert_uint_gt(info.bytes_received_max, 0);
    weft_plan_release(&plan);
    pair_release(&pair);
    arrives("2x3", "f32[13] S(0),S(0)", "2x3", "f32[13] S(0)[1],S(0)[0]");
}

/* D21: shards of an inner dimension are gathered in place, without a second copy. */
TEST(gathering_an_inner_dimension_needs_no_scratch_where_memory_is_shared)
{
    OWNED_PAIR pair = pair_of("4", "f32[64,65] S(1)", "4", "f32[64,65] R");
    weft_plan_info info = {.struct_size = sizeof info};
    OWNED(weft_plan) *plan = NULL;

    weft_cost_table_release(&pair.cost_table);
    ck_assert_int_eq(weft_cost_table_open("cpu", &pair.cost_table), WEFT_OK);
    pair.options.costs = pair.cost_table;
    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &pair.options, &plan), WEFT_OK);
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    ck_assert_uint_eq(info.peak_bytes, 0);
}

/* D3: a split inside a stride has the length of the strided part. */
TEST(plain_shards_inside_strided_ones_keep_their_lengths)
{
    static const int on_2x2x2[] = {5, 7, 9, 13, 17}, on_2x3[] = {7, 10, 11};

    arrives_at_sizes("2x2x2", "SS(0,2),S(0),S(0)", "S(0),R,R", on_2x2x2, WF_COUNT(on_2x2x2));
    arrives_at_sizes("2x3", "SS(0,3),S(0)", "R,S(0)", on_2x3, WF_COUNT(on_2x3));
    arrives_at_sizes("2x3", "R,S(0)", "SS(0,2),S(0)", on_2x3, WF_COUNT(on_2x3));
}

static weft_plan_info plan_info_of(const char *mesh, const char *from, const char *to)
{
    OWNED_PAIR pair = pair_of(mesh, from, mesh, to);
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = NULL;

    ck_assert_msg(weft_plan_create(pair.from, pair.to, &pair.options, &plan) == WEFT_OK, "%s",
                  weft_last_error());
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    weft_plan_release(&plan);
    return info;
}

/* D5, D14: a plan depends on the request only, not on earlier requests, addresses or the order of a
 * hash table. */
TEST(the_same_question_has_the_same_answer)
{
    static const char *const layouts[] = {"SS(0,2),S(0),R", "S(1),P,S(0)", "R,R,P",
                                          "S(0),S(0),S(1)", "SS(1,3),R,R", "S(0)[1],S(0)[0],R"};
    uint64_t digests[WF_COUNT(layouts)][WF_COUNT(layouts)];
    char from[64], to[64];

    for (int again = 0; again < 3; again++)
        for (size_t i = 0; i < WF_COUNT(layouts); i++)
            for (size_t j = 0; j < WF_COUNT(layouts); j++) {
                size_t a = again == 1 ? WF_COUNT(layouts) - 1 - i : i; /* another order */
                snprintf(from, sizeof from, "f32[13,24] %s", layouts[a]);
                snprintf(to, sizeof to, "f32[13,24] %s", layouts[j]);
                if (again == 0)
                    digests[a][j] = plan_info_of("2x3x2", from, to).digest;
                else
                    ck_assert_uint_eq(plan_info_of("2x3x2", from, to).digest, digests[a][j]);
            }
}

/* D6: an order of splits is a regular layout with a price. */
TEST(orders_of_splits_have_a_price)
{
    weft_plan_info there = plan_info_of("2x3", "f32[36,4] S(0)[1],S(0)[0]", "f32[36,4] S(0),R");
    weft_plan_info back = plan_info_of("2x3", "f32[36,4] S(0),R", "f32[36,4] S(0)[1],S(0)[0]");

    ck_assert_uint_gt(there.cost_ns, 0);
    ck_assert_uint_lt(there.cost_ns, 1000000);
    ck_assert_uint_gt(back.cost_ns, 0);
    ck_assert_uint_lt(back.cost_ns, 1000000);
}

/* D7: merged steps are priced as one step, including its scratch. */
TEST(merged_steps_are_priced_as_they_run)
{
    OWNED_PAIR pair = pair_of("2x4", "f32[4096,64] S(0),S(0)", "2x4", "f32[4096,64] R,R");
    weft_plan_step_info step = {.struct_size = sizeof step};
    OWNED(weft_plan) *plan = NULL;

    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, &pair.options, &plan), WEFT_OK);
    ck_assert(weft_plan_step_get(plan, 0, &step) == WEFT_OK);
    ck_assert_uint_eq(step.kind, WEFT_STEP_ALL_GATHER);
    ck_assert_uint_eq(step.axes, 3);
    ck_assert_uint_eq(step.bytes_received, 4096 * 64 * 4 / 8 * 7);
    ck_assert_uint_eq(step.scratch_bytes, 0);
    ck_assert(weft_plan_step_get(plan, 1, &step) != WEFT_OK);
}

/* D20: a non-member of both meshes has no shard and needs no memory. */
TEST(ranks_outside_both_meshes_have_no_share)
{
    OWNED(weft_spec) *from = spec_of("2", "f32[8] S(0)"), *to = spec_of("2@2-3", "f32[8] R");
    weft_shard shard;

    weft_spec_shard(from, 5, &shard);
    ck_assert_int_eq(shard.elements, 0);
    weft_spec_shard(to, 5, &shard);
    ck_assert_int_eq(shard.elements, 0);
}

TEST(integers_are_added_and_averaged_one_after_the_other)
{
    arrives_by_all_plans("2x2", "i32[10] P(sum),P(avg)", "2x2", "i32[10] R,R", false);
    arrives_by_all_plans("2x2", "i16[10] P(avg),P(sum)", "2x2", "i16[10] S(0),R", false);
    arrives_by_all_plans("2x2", "u8[10] P(avg),P(sum)", "4@4-7", "u8[10] S(0)", false);
}

TEST(thousands_of_ranks_are_simulated)
{
    arrives("64x32", "f32[130,70] S(0),S(1)", "64x32", "f32[130,70] S(1),S(0)");
    arrives("64x32", "bf16[256] S(0),S(0)", "64x32", "bf16[256] S(0)[1],S(0)[0]");
}

static void arrives_by_planner(uint32_t planner, const char *mesh, const char *from, const char *to)
{
    OWNED_PAIR pair = pair_of(mesh, from, mesh, to);

    pair.options.planner = planner;
    simulate(&pair);
}

static void arrives_by_both_dtensor_planners(const char *mesh, const char *from, const char *to)
{
    arrives_by_planner(DTENSOR_GREEDY, mesh, from, to);
    arrives_by_planner(DTENSOR_GRAPH, mesh, from, to);
}

TEST(shards_become_averages_through_copies)
{
    arrives_by_both_dtensor_planners("4", "f32[16] S(0)", "f32[16] P(avg)");
    arrives_by_both_dtensor_planners("4", "f32[16] S(0)", "f32[16] P(max)");
    arrives_by_both_dtensor_planners("2x3", "f32[16] S(0),S(0)", "f32[16] P(avg),P(sum)");
}

TEST(an_outer_split_becomes_partial_after_those_inside_of_it)
{
    arrives_by_both_dtensor_planners("2x3", "i64[7] S(0)[1],S(0)[0]", "i64[7] R,P(sum)");
    arrives_by_both_dtensor_planners("2x3", "i64[7] S(0)[1],S(0)[0]", "i64[7] P(sum),P(sum)");
    arrives_by_both_dtensor_planners("2x3", "i64[7,5] S(0)[1],S(0)[0]", "i64[7,5] S(0),S(1)");
}

TEST(partials_that_do_not_mix_come_one_after_the_other)
{
    arrives_by_both_dtensor_planners("2x2", "f32[9] P(max),S(0)", "f32[9] R,P(sum)");
    arrives_by_both_dtensor_planners("2x2", "f32[9] R,P(max)", "f32[9] P(sum),R");
}

TEST(wrong_arguments_are_refused)
{
    OWNED_PAIR pair = pair_of("2", "f32[4] S(0)", "2", "f32[4] R");
    OWNED(weft_plan) *plan = NULL;
    void *none[2] = {NULL, NULL};

    ck_assert_int_eq(weft_plan_create(pair.from, pair.to, NULL, &plan), WEFT_OK);
    check_refused(simulate_one(NULL, (const void *const *)none, none), WEFT_ERR_INVALID, "plan");
    check_refused(simulate_one(plan, NULL, none), WEFT_ERR_INVALID, "sources");
}
