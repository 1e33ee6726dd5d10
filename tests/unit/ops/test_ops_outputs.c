/* Strategies that are chosen with the moves of their outputs, and limits of the search. */
#include "plan/plan.h"
#include "support/op_costs.h"
#include "support/ops.h"
#include "support/random.h"
#include "support/suite.h"

TEST(partial_outputs_have_a_price)
{
    weft_op_options options = {.struct_size = sizeof options, .flags = WEFT_OP_FLAG_PRICE_PARTIALS};
    op_text o;

    /* c is larger than a: its reduction takes longer than the move of a */
    op_begin(&o, "mm", "4", "f32[4096,64] S(1) ; f32[64,4096] R", "", NULL);
    ck_assert_str_eq(op_answer(weft_op_propose, &o, NULL, false), "S(1) ; S(0) -> P(sum)");
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "S(0) ; R -> S(0)");
    op_text_release(&o);
    /* c is smaller */
    op_begin(&o, "mm", "4", "f32[64,65536] S(1) ; f32[65536,64] R", "", NULL);
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "S(1) ; S(0) -> P(sum)");
    op_text_release(&o);
}

TEST(wanted_layouts_have_a_price)
{
    weft_op_options options = {.struct_size = sizeof options};
    const weft_spec *wanted[1] = {NULL};
    OWNED(weft_spec) *other = NULL;
    OWNED(weft_spec) *target = NULL;
    weft_op_choice *choice = NULL;
    weft_op_choice_info info = {.struct_size = sizeof info};
    OWNED(op_text) o;

    op_begin(&o, "relu", "4", "f32[4096,4096] S(0)", "", NULL);
    ck_assert(weft_spec_with(o.inputs[0], "S(1)", &target) == WEFT_OK);
    ck_assert(weft_spec_parse(o.mesh, "f32[4096] R", &other) == WEFT_OK);
    wanted[0] = target;
    options.wanted_outputs = wanted;
    ck_assert(weft_op_propose(&o.call, &options, &choice) == WEFT_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(weft_last_error(),
                                 "weft_op_options.wanted_outputs has 0 entries "
                                 "(wanted_output_count), and the call has 1 output"));
    options.wanted_output_count = 1;
    ck_assert(weft_op_propose(&o.call, &options, &choice) == WEFT_OK);
    ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
    ck_assert_uint_gt(info.cost_ns + info.output_ns, 0);
    ck_assert_uint_eq(info.cost_ns, 0); /* the output is moved, and the input is not */
    weft_op_choice_release(&choice);
    wanted[0] = other;
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, &options, false),
                                 "the spec that is wanted of output 0 is f32[4096] on a mesh of 4 "
                                 "ranks, and the output is f32[4096,4096] on a mesh of 4 ranks"));
}

/* The time to move OUTPUT to WANTED, or to the cheapest of R and parts of one dimension. */
static uint64_t price_of(const weft_spec *output, const weft_spec *wanted)
{
    uint64_t least = UINT64_MAX;
    bool partial = false;

    for (int32_t dim = -1; dim < weft_spec_dims(output); dim++) {
        struct wf_text text = {0};
        OWNED(weft_spec) *goal = NULL;
        OWNED(weft_plan) *plan = NULL;
        for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(output)); a++) {
            const weft_placement *p = &weft_spec_placements(output)[a];
            partial = partial || p->kind == WEFT_PLACE_PARTIAL;
            wf_text_add(&text, "%s", a > 0 ? "," : "");
            if (p->kind != WEFT_PLACE_PARTIAL)
                wf_text_add(&text, p->kind == WEFT_PLACE_SHARD ? "S(%d)" : "R", p->dim);
            else
                wf_text_add(&text, dim < 0 ? "R" : "S(%d)", dim);
        }
        if (wanted != NULL)
            goal = weft_spec_retain(wanted);
        else
            ck_assert(weft_spec_with(output, text.data, &goal) == WEFT_OK);
        if (weft_plan_create(output, goal, NULL, &plan) == WEFT_OK && plan->cost_ns < least)
            least = plan->cost_ns;
        wf_text_free(&text);
    }
    return partial || wanted != NULL ? least : 0;
}

/* Where the cheapest total of the list lies, by trying all of it.  MAY_DEFER: parts may become
 * contributions. */
static uint64_t least_total(op_text *o, const weft_spec *wanted, bool may_defer)
{
    uint64_t least = UINT64_MAX;
    weft_op_list *list = NULL;

    ck_assert(weft_op_list_create(&o->call, NULL, &list) == WEFT_OK);
    for (uint32_t i = 0; i < weft_op_list_count(list); i++) {
        const weft_op_choice *choice = weft_op_list_choice(list, i);
        uint64_t cost = price_of(weft_op_choice_output(choice, 0), wanted);
        uint64_t moves = op_inputs_cost(o, choice, may_defer);

        if (cost == UINT64_MAX || moves == UINT64_MAX) continue;
        cost += moves;
        if (cost < least) least = cost;
    }
    weft_op_list_release(&list);
    return least;
}

TEST(no_strategy_of_the_list_is_cheaper_with_its_outputs)
{
    static const char *const placements[] = {"R", "S(0)", "S(1)", "P(sum)"};
    struct random r = random_begin("no_strategy_of_the_list_is_cheaper_with_its_outputs");
    int cases = test_cases(80);

    for (int i = 0; i < cases; i++) {
        char inputs[200], layout[32];
        weft_op_options options = {.struct_size = sizeof options};
        weft_op_choice_info info = {.struct_size = sizeof info};
        const weft_spec *wanted[1] = {NULL};
        OWNED(weft_spec) *target = NULL;
        OWNED(weft_op_choice) *choice = NULL;
        const char *name = i % 2 == 0 ? "mm" : "add", *p[6];
        OWNED(op_text) o;
        for (int k = 0; k < 6; k++)
            p[k] = placements[random_in(&r, 0, k % 2 == 0 ? 2 : 3)];
        snprintf(inputs, sizeof inputs, "f32[24,24] %s,%s ; f32[24,24] %s,%s", p[0], p[1], p[2],
                 p[3]);
        snprintf(layout, sizeof layout, "%s,%s", p[4], p[4]);
        op_begin(&o, name, "2x3", inputs, "", NULL);
        options.flags = WEFT_OP_FLAG_PRICE_PARTIALS;
        if (random_in(&r, 0, 1) == 1) {
            ck_assert(weft_spec_with(o.inputs[0], layout, &target) == WEFT_OK);
            wanted[0] = target;
            options.wanted_outputs = wanted;
            options.wanted_output_count = 1;
        }
        ck_assert(weft_op_propose(&o.call, &options, &choice) == WEFT_OK);
        ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
        ck_assert_uint_eq(info.output_ns, price_of(weft_op_choice_output(choice, 0), target));
        if (info.local == 0 || info.output_ns > 0)
            ck_assert_msg(info.cost_ns + info.output_ns == least_total(&o, target, false),
                          "%s %s to %s: %llu and %llu", name, inputs,
                          target != NULL ? layout : "any", (unsigned long long)info.cost_ns,
                          (unsigned long long)info.output_ns);
    }
}

TEST(parts_of_a_chain_have_prices_too)
{
    weft_op_options options = {.struct_size = sizeof options, .flags = WEFT_OP_FLAG_PRICE_PARTIALS};
    op_text o;

    ck_assert(weft_op_register("mm_neg is mm; neg") == WEFT_OK);
    op_begin(&o, "mm_neg", "4", "f32[4096,64] S(1) ; f32[64,4096] R", "", NULL);
    ck_assert_str_eq(op_answer(weft_op_propose, &o, NULL, false), "S(1) ; S(0) -> P(sum)");
    ck_assert_str_eq(op_answer(weft_op_propose, &o, &options, false), "S(0) ; R -> S(0)");
    op_text_release(&o);
    ck_assert(weft_op_remove("mm_neg") == WEFT_OK);
}

TEST(no_strategy_of_a_chain_is_cheaper)
{
    static const char *const placements[] = {"R", "S(0)", "S(1)", "P(sum)"};
    struct random r = random_begin("no_strategy_of_a_chain_is_cheaper");
    int cases = test_cases(10);

    ck_assert(weft_op_register("mm_mm is mm; mm") == WEFT_OK);
    for (int i = 0; i < cases; i++) {
        weft_op_options options = {.struct_size = sizeof options,
                                   .flags = WEFT_OP_FLAG_PRICE_PARTIALS};
        weft_op_choice_info info = {.struct_size = sizeof info};
        OWNED(weft_op_choice) *choice = NULL;
        const char *p[6];
        char inputs[200];
        OWNED(op_text) o;
        for (int k = 0; k < 6; k++)
            p[k] = placements[random_in(&r, 0, k % 2 == 0 ? 2 : 3)];
        snprintf(inputs, sizeof inputs, "f32[24,24] %s,%s ; f32[24,24] %s,%s ; f32[24,24] %s,%s",
                 p[0], p[1], p[2], p[3], p[4], p[5]);
        op_begin(&o, "mm_mm", "2x3", inputs, "", NULL);
        ck_assert(weft_op_propose(&o.call, &options, &choice) == WEFT_OK);
        ck_assert(weft_op_choice_get(choice, &info) == WEFT_OK);
        if (info.local == 0 || info.output_ns > 0)
            ck_assert_msg(info.cost_ns + info.output_ns == least_total(&o, NULL, true),
                          "mm_mm %s: %llu and %llu", inputs, (unsigned long long)info.cost_ns,
                          (unsigned long long)info.output_ns);
    }
    ck_assert(weft_op_remove("mm_mm") == WEFT_OK);
}

TEST(too_many_combinations_are_refused)
{
    op_text o;
    weft_op_list *list = NULL;

    op_begin(&o, "mm", "2x2x2x2x2x2x2x2",
             "f32[256,256] S(0),S(0),S(0),S(0),S(0),S(0),S(0),S(0) ; "
             "f32[256,256] S(1),S(0),S(1),S(0),S(1),S(0),S(1),S(0)",
             "", NULL);
    ck_assert_ptr_nonnull(
        strstr(op_answer(weft_op_propose, &o, NULL, false),
               "16777216 combinations of what the ranks along 8 axes may do are more than the "
               "262144 that weft compares; merge axes of the mesh"));
    ck_assert(weft_op_list_create(&o.call, NULL, &list) == WEFT_ERR_UNSUPPORTED);
    /* what is wrong is told all the same */
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_check, &o, NULL, false), "on axis 0, input "));
    op_text_release(&o);
    /* a match needs no comparison */
    op_begin(&o, "mm", "2x2x2x2x2x2x2x2",
             "f32[256,256] S(0),S(0),S(0),S(0),S(0),S(0),S(0),S(0) ; f32[256,256] R,R,R,R,R,R,R,R",
             "", NULL);
    ck_assert_ptr_nonnull(strstr(op_answer(weft_op_propose, &o, NULL, false), "-> S(0),S(0)"));
    op_text_release(&o);
}
