#include "support/planning.h"
#include "support/suite.h"

#include <string.h>

TEST(axes_of_size_one_do_not_matter)
{
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_problem(&problem, &pair, "1x4x1", "64,64", "S(1),S(0),P", "R,S(0),R");
    ck_assert_int_eq(problem.axes, 1);
    ck_assert_int_eq(problem.mesh_axis[0], 1);
    ck_assert(wf_state_same(&problem.source, &problem.target));
}

TEST(an_order_is_kept_as_turns)
{
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_problem(&problem, &pair, "2x2", "64", "S(0)[1],S(0)[0]", "S(0),S(0)");
    ck_assert_uint_eq(problem.source.axis[0].turn, 2);
    ck_assert_uint_eq(problem.source.axis[1].turn, 1);
    ck_assert_uint_eq(problem.target.axis[0].turn, 1);
}

TEST(strides_are_one_place_where_source_and_target_agree)
{
    struct wf_problem problem;
    struct pair pair;

    open_problem(&problem, &pair, "2x2", "64", "SS(0,2),R", "SS(0,2),R");
    ck_assert(wf_state_same(&problem.source, &problem.target));
    close_pair(&pair);
    open_problem(&problem, &pair, "2x2", "64", "SS(0,2),R", "SS(0,4),R");
    ck_assert(!wf_state_same(&problem.source, &problem.target));
    close_pair(&pair);
}

TEST(states_lead_back_to_their_specs)
{
    struct wf_problem problem;
    struct wf_state state = {0};
    OWNED_PAIR pair = {0};
    weft_spec *spec;
    char text[64];

    open_problem(&problem, &pair, "2x1x4", "64,64", "S(0),S(1),SS(1,2)", "R,R,P");
    ck_assert_int_eq(wf_problem_spec(&problem, &problem.source, &spec), WEFT_OK);
    ck_assert_ptr_eq(spec, pair.from);
    weft_spec_release(&spec);
    ck_assert_int_eq(wf_problem_spec(&problem, &problem.target, &spec), WEFT_OK);
    ck_assert_ptr_eq(spec, pair.to);
    weft_spec_release(&spec);
    state.axis[1] = problem.source.axis[1];
    ck_assert_int_eq(wf_problem_spec(&problem, &state, &spec), WEFT_OK);
    ck_assert_int_eq(weft_spec_print(spec, text, sizeof text, NULL), WEFT_OK);
    ck_assert_str_eq(text, "f32[64,64] R,R,SS(1,2)");
    weft_spec_release(&spec);
    ck_assert_uint_eq(wf_problem_mesh_axes(&problem, 3), 5);
}

TEST(a_partial_cannot_become_another_kind)
{
    weft_plan_options options = {.struct_size = sizeof options};
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_pair(&pair, "2x2", NULL, "64", "R,P(max)", "R,P(sum)");
    ck_assert_int_eq(wf_problem_set(&problem, pair.from, pair.to, &options), WEFT_ERR_UNSUPPORTED);
    ck_assert_str_eq(weft_last_error(),
                     "axis 1: P(max) cannot become P(sum); go through R or a shard");
}

TEST(axes_that_cross_hosts_are_slow)
{
    struct wf_problem problem;
    OWNED_PAIR pair = {0};

    open_problem(&problem, &pair, "4x8/8", "64", "S(0),R", "R,S(0)");
    ck_assert_uint_eq(problem.link[0], WF_BETWEEN_HOSTS);
    ck_assert_uint_eq(problem.link[1], WF_WITHIN_HOST);
}
