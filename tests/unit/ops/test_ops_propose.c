/* The cheapest strategy with its moves, lists of strategies, and the options of both. */
#include "plan/plan.h"
#include "support/op_costs.h"
#include "support/ops.h"
#include "support/random.h"
#include "support/suite.h"

TEST(no_move_where_none_is_needed)
{
    ck_assert_str_eq(op_propose("mm", "4", "f32[64,32] S(1) ; f32[32,16] S(0)", ""),
                     "S(1) ; S(0) -> P(sum)");
    ck_assert_str_eq(op_propose("add", "4", "f32[8] R ; f32[8] R", ""), "R ; R -> R");
    ck_assert_str_eq(op_propose("zeros", "4", "", "shape=4,4 dtype=f32"), "-> R");
}

TEST(the_cheaper_input_moves)
{
    /* the smaller tensor is moved to the larger one */
    ck_assert_str_eq(op_propose("mm", "4", "f32[4096,4096] S(1) ; f32[4096,16] S(1)", ""),
                     "S(1) ; S(0) -> P(sum)");
    ck_assert_str_eq(op_propose("mm", "4", "f32[16,4096] S(0) ; f32[4096,4096] S(1)", ""),
                     "R ; S(1) -> S(1)");
    ck_assert_str_eq(op_propose("softmax", "4", "f32[4096,64] S(1)", "dim=1"), "S(0) -> S(0)");
    ck_assert_str_eq(op_propose("exp", "4", "f32[64,64] P(sum)", ""), "S(0) -> S(0)");
    /* nothing is sent of a tensor without elements */
    ck_assert_str_eq(op_propose("mm", "2x2", "f32[0,6] P(avg),R ; f32[6,4] S(1),S(0)", ""),
                     "R,S(1) ; S(1),S(0) -> S(1),P(sum)");
    /* a part does not become a contribution */
    ck_assert_str_eq(op_propose("reshape", "4", "f32[12,8192] S(1)", "shape=16,6144"),
                     "S(0) -> S(0)");
    ck_assert_str_eq(op_propose("reshape", "4", "f32[3,8] S(1)", "shape=8,3"), "R -> R");
    /* unless there is no other way */
    ck_assert_str_eq(op_propose("add_", "2", "f32[5,7] P(sum) ; f32[5,7] S(0)", ""),
                     "P(sum) ; P(sum) -> P(sum)");
    /* what is written in place has the shape of its memory */
    ck_assert_ptr_nonnull(strstr(op_propose("mm_", "4", "f32[8,6] S(0) ; f32[6,4] R", ""),
                                 "the memory of c is f32[8,6] on a mesh of 4 ranks, and c is "
                                 "f32[8,4] on a mesh of 4 ranks"));
    /* what is written in place stays */
    ck_assert_str_eq(op_propose("add_", "4", "f32[64] S(0) ; f32[64] P(sum)", ""),
                     "S(0) ; S(0) -> S(0)");
}

/* The cheapest strategy by trying all of the list. */
static uint64_t least_cost(op_text *o)
{
    uint64_t least = UINT64_MAX;
    weft_op_list *list = NULL;

    ck_assert(weft_op_list_create(&o->call, NULL, &list) == WEFT_OK);
    for (uint32_t i = 0; i < weft_op_list_count(list); i++) {
        uint64_t cost = op_inputs_cost(o, weft_op_list_choice(list, i), false);

        if (cost < least) least = cost;
    }
    weft_op_list_release(&list);
    return least;
}

/* Random layouts: no strategy of the list is cheaper, unless nothing had to be communicated. */
TEST(no_strategy_of_the_list_is_cheaper)
{
    static const char *const placements[] = {"R", "S(0)", "S(1)", "P(sum)", "P(max)"};
    struct random r = random_begin("no_strategy_of_the_list_is_cheaper");
    int cases = test_cases(60);

    for (int i = 0; i < cases; i++) {
        char inputs[200];
        OWNED(op_text) o;
        OWNED(weft_op_choice) *choice = NULL;
        weft_op_choice_info info = {.struct_size = sizeof info};
        const char *name = i % 2 == 0 ? "mm" : "add", *p[4];
        for (int k = 0; k < 4; k++)
            p[k] = placements[random_in(&r, 0, k % 2 == 0 ? 2 : 3)];
        snprintf(inputs, sizeof inputs, "f32[24,24] %s,%s ; f32[24,24] %s,%s", p[0], p[1], p[2],
                 p[3]);
        op_begin(&o, name, "2x3", inputs, "", NULL);
        ck_assert(weft_op_propose(&o.call, NULL, &choice) == WEFT_OK);
        ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
        if (info.local == 0)
            ck_assert_msg(info.cost_ns == least_cost(&o), "%s %s: %llu", name, inputs,
                          (unsigned long long)info.cost_ns);
    }
}

static bool refuse_second(void *user, bool is_output, size_t index, const weft_spec *spec)
{
    const weft_spec *forbidden = user;

    return is_output || index != 1 || spec != forbidden;
}

TEST(callers_fix_and_forbid_layouts)
{
    weft_op_options options = {.struct_size = sizeof options};
    const weft_spec *fixed[2] = {NULL, NULL};
    OWNED(weft_spec) *split = NULL;
    OWNED(weft_spec) *replicated = NULL;
    OWNED(op_text) o;

    op_begin(&o, "mm", "4", "f32[64,32] S(1) ; f32[32,16] S(1)", "", NULL);
    ck_assert(weft_spec_with(o.inputs[1], "R", &replicated) == WEFT_OK);
    ck_assert(weft_spec_with(o.inputs[1], "S(0)", &split) == WEFT_OK);
    fixed[1] = replicated;
    options.fixed_inputs = fixed;
    options.fixed_input_count = 1;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "weft_op_options.fixed_inputs has 1 entries (fixed_input_count), "
                                 "and the call has 2 inputs"));
    options.fixed_input_count = 2;
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "S(0) ; R -> S(0)");
    options.fixed_inputs = NULL;
    options.allow = refuse_second;
    options.user = split;
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "R ; S(1) -> S(1)");
    options.allow = NULL;
    options.flags = WEFT_OP_FLAG_NO_PARTIALS;
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "R ; S(1) -> S(1)");
    options.flags = WEFT_OP_FLAG_NO_MOVES;
    ck_assert_ptr_nonnull(
        strstr(op_answer(weft_op_propose, &o, &options, false), "b must be S(0)"));
    options.flags = 0;
    options.memory_limit = 100;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "b must be S(0); no strategy is left: memory_limit is 100 bytes"));
    options.memory_limit = 0;
    options.flags = 0x80;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "weft_op_options.flags has unknown bits: 0x80"));
    options.flags = 0;
    options.fixed_outputs = fixed;
    options.fixed_output_count = 2;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "weft_op_options.fixed_outputs has 2 entries "
                                 "(fixed_output_count), and the call has 1 output"));
    options.fixed_output_count = 1;
    fixed[0] = split;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "the spec that is fixed for c is f32[32,16] on a mesh of 4 ranks, "
                                 "and c is f32[64,16] on a mesh of 4 ranks"));
    ck_assert_ptr_nonnull(strstr(op_propose("relu_", "2", "f32[8] P(sum)", ""),
                                 "output b is written in place of a, which is never moved"));
}

TEST(outputs_without_inputs_follow_the_caller)
{
    weft_op_options options = {.struct_size = sizeof options};
    const weft_spec *fixed[1];
    OWNED(weft_spec) *split = NULL;
    OWNED(op_text) o;

    op_begin(&o, "zeros", "2x2", "", "shape=4,6 dtype=f32", NULL);
    ck_assert(weft_spec_parse(o.mesh, "f32[4,6] S(1),S(0)", &split) == WEFT_OK);
    fixed[0] = split;
    options.fixed_outputs = fixed;
    options.fixed_output_count = 1;
    ck_assert_str_eq(op_answer(weft_op_check, &o, &options, false), "-> S(1),S(0)");
}

TEST(lists_have_every_strategy_in_order)
{
    static const char *const rows[] = {
        "R ; R -> R",           "S(0) ; R -> S(0)",     "S(1) ; S(0) -> P(sum)",
        "R ; S(1) -> S(1)",     "P(sum) ; R -> P(sum)", "P(avg) ; R -> P(avg)",
        "R ; P(sum) -> P(sum)", "R ; P(avg) -> P(avg)"};
    weft_op_options options = {.struct_size = sizeof options, .flags = WEFT_OP_FLAG_NO_PARTIALS};
    weft_op_list *list = NULL;
    op_text o;

    op_begin(&o, "mm", "4", "f32[8,8] R ; f32[8,8] R", "", NULL);
    ck_assert(weft_op_list_create(&o.call, NULL, &list) == WEFT_OK);
    ck_assert_uint_eq(weft_op_list_count(list), WF_COUNT(rows));
    for (uint32_t i = 0; i < WF_COUNT(rows); i++)
        ck_assert_str_eq(op_choice_text(weft_op_list_choice(list, i), false), rows[i]);
    ck_assert_ptr_null(weft_op_list_choice(list, WF_COUNT(rows)));
    weft_op_list_release(&list);
    ck_assert(weft_op_list_create(&o.call, &options, &list) == WEFT_OK);
    ck_assert_uint_eq(weft_op_list_count(list), 3);
    weft_op_list_release(&list);
    op_text_release(&o);
    op_begin(&o, "mm", "2x3", "f32[8,8] R,R ; f32[8,8] R,R", "", NULL);
    ck_assert(weft_op_list_create(&o.call, NULL, &list) == WEFT_OK);
    ck_assert_uint_eq(weft_op_list_count(list), 64);
    weft_op_list_release(&list);
    op_text_release(&o);
    /* only the shape of the input is used: R, S(0), P of five kinds; the output R or S(0) */
    op_begin(&o, "zeros_like", "2", "f32[8] R", "", NULL);
    ck_assert(weft_op_list_create(&o.call, NULL, &list) == WEFT_OK);
    ck_assert_uint_eq(weft_op_list_count(list), 14);
    weft_op_list_release(&list);
    weft_op_list_release(&list);
    ck_assert_uint_eq(weft_op_list_count(NULL), 0);
    op_text_release(&o);
}

TEST(aligned_parts_only)
{
    OWNED(op_text) o;

    ck_assert(weft_op_register("even_op: a[i] -> b[i]; even i\nstep_op: a[i] -> b[i]; step i 4") ==
              WEFT_OK);
    ck_assert_str_eq(op_check("even_op", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    ck_assert_int_eq(op_check("even_op", "2", "f32[7] S(0)", "")[0], '!');
    ck_assert_str_eq(op_check("step_op", "2", "f32[8] S(0)", ""), "S(0) -> S(0)");
    ck_assert_int_eq(op_check("step_op", "2", "f32[12] S(0)", "")[0], '!');
    ck_assert_str_eq(op_propose("step_op", "2", "f32[12] S(0)", ""), "R -> R");
    ck_assert(weft_op_remove("even_op") == WEFT_OK && weft_op_remove("step_op") == WEFT_OK);
    op_begin(&o, "even_op", "2", "f32[8] S(0)", "", NULL);
    ck_assert_int_eq(op_answer(weft_op_check, &o, NULL, false)[0], '!');
}

/* Each input has 9^4 layouts. */
TEST(four_axes_and_four_dimensions_are_searched)
{
    ck_assert_str_eq(op_propose("add", "2x2x2x2",
                                "f32[8,8,8,8] S(0),S(1),S(2),S(3) ; f32[8,8,8,8] S(0),S(1),S(2),R",
                                ""),
                     "S(0),S(1),S(2),S(3) ; S(0),S(1),S(2),S(3) -> S(0),S(1),S(2),S(3)");
    ck_assert_str_eq(
        op_propose("add", "2x2x2x2",
                   "f32[8,8,8,8] S(0),S(1),S(2),S(3) ; f32[8,8,8,8] S(0),S(1),S(2),S(0)",
                   "")[0] == '!'
            ? weft_last_error()
            : "found",
        "found");
}
