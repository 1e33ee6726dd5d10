/* Plans from and to the placements B, G and O. */
#include "plan/plan.h"
#include "support/costs.h"
#include "support/exhaustive.h"
#include "support/layout.h"
#include "support/random_layout.h"
#include "support/suite.h"

enum { SEARCHED_RANKS = 12 }; /* more would take minutes by exhaustive search */

/* The kinds of the steps of the plan, "broadcast, slice". */
static void check_steps(const char *from_mesh, const char *from_text, const char *to_mesh,
                        const char *to_text, const char *want)
{
    OWNED(weft_spec) *from = spec_of(from_mesh, from_text), *to = spec_of(to_mesh, to_text);
    struct wf_text steps = {0};
    OWNED(weft_plan) *plan = NULL;

    ck_assert_msg(weft_plan_create(from, to, NULL, &plan) == WEFT_OK, "%s", weft_last_error());
    for (uint32_t i = 0; i < plan->step_count; i++)
        wf_text_add(&steps, "%s%s", i > 0 ? ", " : "", weft_step_name(plan->steps[i].kind));
    ck_assert_msg(strcmp(steps.data != NULL ? steps.data : "", want) == 0, "%s -> %s: %s, not %s",
                  from_text, to_text, steps.data, want);
    wf_text_free(&steps);
}

TEST(owners_have_steps_of_their_own)
{
    static const struct {
        const char *mesh, *from, *to, *steps;
    } cases[] = {
        {"4", "f32[16,8] O(1)", "f32[16,8] R", "broadcast"},
        {"4", "f32[16,8] P", "f32[16,8] O(2)", "reduce"},
        {"4", "f32[16,8] P(max)", "f32[16,8] O(2)", "reduce"},
        {"4", "f32[16,8] R", "f32[16,8] O(2)", "slice"},
        {"4", "f32[16,8] O(2)", "f32[16,8] P", "partial"},
        {"4", "f32[16,8] O(2)", "f32[16,8] P(max)", "exchange"},
        {"4", "f32[16,8] S(1)", "f32[16,8] O(2)", "exchange"},
        {"4", "f32[16,8] O(2)", "f32[16,8] S(1)", "exchange"},
        {"4", "f32[16,8] O(2)", "f32[16,8] O(1)", "exchange"},
        {"4", "f32[16,8] O(2)", "f32[16,8] O(2)", ""},
        {"2x4", "f32[16,8] O(1),O(2)", "f32[16,8] R,R", "broadcast"},
        {"2x4", "f32[16,8] P,P", "f32[16,8] O(1),O(2)", "reduce"},
        {"2x4", "f32[16,8] R,R", "f32[16,8] O(1),O(2)", "slice"},
        {"2x4", "f32[16,8] S(0),O(2)", "f32[16,8] S(0),R", "broadcast"},
        {"4", "f32[] P", "f32[] O(2)", "reduce"},
        {"4", "f32[] O(2)", "f32[] R", "broadcast"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_steps(cases[i].mesh, cases[i].from, cases[i].mesh, cases[i].to, cases[i].steps);
}

TEST(listed_sizes_have_the_steps_of_shards)
{
    static const struct {
        const char *mesh, *from, *to, *steps;
    } cases[] = {
        {"4", "f32[16,8] B(0;9,7)", "f32[16,8] R", "all-gather"},
        {"4", "f32[16,8] G(0;9,2,5,0)", "f32[16,8] R", "all-gather"},
        {"4", "f32[16,8] R", "f32[16,8] B(0;9,7)", "slice"},
        {"4", "f32[16,8] P", "f32[16,8] G(0;9,2,5,0)", "reduce-scatter"},
        {"4", "f32[16,8] G(0;9,2,5,0)", "f32[16,8] S(1)", "all-to-all"},
        {"4", "f32[16,8] S(1)", "f32[16,8] B(0;9,7)", "all-to-all"},
        {"4", "f32[16,8] B(0;9,7)", "f32[16,8] P", "partial"},
        {"2x2", "f32[16] R,R", "f32[16] S(0),B(0;5,3)", "slice"},
        {"2x2", "f32[16] S(0),P", "f32[16] S(0),G(0;5,3)", "reduce-scatter"},
        {"2x2", "f32[16] S(0),G(0;5,3)", "f32[16] S(0),R", "all-gather"},
        /* the axes of a permutation have equal shards, those of a G do not */
        {"2x2x2", "f32[16] G(0;4,12)[0],S(0)[1],S(0)[2]", "f32[16] G(0;4,12)[0],S(0)[2],S(0)[1]",
         "exchange"},
    };

    for (size_t i = 0; i < WF_COUNT(cases); i++)
        check_steps(cases[i].mesh, cases[i].from, cases[i].mesh, cases[i].to, cases[i].steps);
}

TEST(an_owner_of_a_reshaped_mesh_is_found)
{
    check_steps("8", "f32[16] O(5)", "2x4", "f32[16] R,R", "broadcast");
    check_steps("8", "f32[16] O(5)", "2x4", "f32[16] O(1),O(1)", "");
    check_steps("2x4", "f32[16] O(1),O(1)", "8", "f32[16] O(5)", "");
    check_steps("2x4", "f32[16] O(1),R", "8", "f32[16] O(5)", "slice");
}

TEST(other_meshes_are_reached_by_an_exchange)
{
    check_steps("4", "f32[16] O(1)", "2@4-5", "f32[16] O(1)", "exchange");
    check_steps("4", "f32[16] G(0;9,2,5,0)", "3", "f32[16] B(0;7,9)", "exchange");
}

/* True if no sequence of steps has less of what is minimised. */
static bool is_least(const struct wf_problem *problem, const weft_plan_options *options)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = NULL;

    if (weft_plan_create(problem->from, problem->to, options, &plan) != WEFT_OK) return false;
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    weft_plan_release(&plan);
    if (options->minimize == WEFT_MINIMIZE_BYTES)
        return !exhaustive_beats(problem, info.bytes_received_max);
    return (options->minimize == WEFT_MINIMIZE_MEMORY ? info.peak_bytes : info.cost_ns) ==
           exhaustive_least(problem);
}

/* The bounds that the search uses hold for the new placements and steps too. */
TEST(the_search_finds_what_exhaustive_search_finds)
{
    static const char *const tables[] = {"dtensor", "default", "cpu", "domains"};
    static const char *const wishes[] = {"time", "bytes", "memory"};
    struct random r = random_begin("the_search_finds_what_exhaustive_search_finds");
    int compared = 0;

    for (int cases = test_cases(1500); cases > 0; cases--) {
        OWNED(weft_mesh) *mesh = random_mesh(&r);
        int64_t shape[WEFT_MAX_DIMS];
        int32_t dims = random_shape(&r, shape);
        OWNED(weft_spec) *from = random_spec(&r, mesh, dims, shape);
        OWNED(weft_spec) *to = random_spec(&r, mesh, dims, shape);
        OWNED(weft_cost_table) *costs = NULL;
        weft_plan_options options = {.struct_size = sizeof options};
        struct wf_problem problem;
        open_costs(tables[random_in(&r, 0, 3)], &costs);
        options.costs = costs;
        options.minimize = (uint32_t)random_in(&r, 0, 2);
        if ((has_new_kinds(from) || has_new_kinds(to)) && weft_mesh_axes(mesh) <= 3 &&
            weft_mesh_size(mesh) <= SEARCHED_RANKS && weft_spec_elements(from) > 0 &&
            wf_problem_set(&problem, from, to, &options) == WEFT_OK) {
            char text[256] = "";
            ck_assert_int_eq(weft_spec_print(to, text, sizeof text, NULL), WEFT_OK);
            ck_assert_msg(is_least(&problem, &options),
                          "WEFT_TEST_SEED=%llu\n%s\nto %s, minimize %s (last error: %s)",
                          (unsigned long long)r.seed, as_command(from), text,
                          wishes[options.minimize], weft_last_error());
            compared++;
        }
    }
    printf("%d plans compared\n", compared);
    ck_assert_int_ge(compared, test_cases(1500) / 50);
    ck_assert_int_eq(wf_mem_live(), 0);
}
