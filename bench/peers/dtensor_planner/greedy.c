/* greedy.c - DTensor's default planner: from the innermost axis outwards it undoes splits that are
 * nested in the wrong order, then it sets every axis from the outermost inwards. */
#include "steps.h"

/* Do the same axes before AXIS split DIM in STATE and in the target? */
static bool same_outer_axes(const struct wf_problem *problem, const struct wf_state *state,
                            int32_t axis, uint8_t dim)
{
    for (int32_t i = 0; i < axis; i++) {
        struct wf_code now = state->axis[i], wanted = problem->target.axis[i];
        bool splits = wf_code_splits(now) && now.value == dim;
        if (splits != (wf_code_splits(wanted) && wanted.value == dim)) return false;
    }
    return true;
}

static bool same_kind(struct wf_code a, struct wf_code b)
{
    return a.kind == b.kind && a.value == b.value;
}

/* The first step on the way of *AXIS to TO: the axis that moves, in *AXIS, and its new code.  If
 * *AXIS is not the innermost split of its dimension, the innermost one is gathered first.  A shard
 * that cannot become the partial TO in one step is gathered too. */
static struct wf_code first_move(const struct wf_problem *problem, const struct wf_state *at,
                                 int32_t *axis, struct wf_code to)
{
    struct wf_code code = at->axis[*axis];
    struct wf_orders orders;
    int32_t innermost;

    if (!wf_code_splits(code)) return to;
    wf_state_orders(at, problem->axes, &orders);
    innermost = orders.axis[code.value][orders.count[code.value] - 1];
    if (innermost != *axis) {
        *axis = innermost;
        return (struct wf_code){0};
    }
    if (to.kind == WF_CODE_PARTIAL && !dtensor_may_spread(problem, at, *axis, to))
        return (struct wf_code){0};
    return to;
}

/* Give AXIS the code TO.  Does nothing if TO is a partial that does not mix with one in AT. */
static weft_status move_axis(const struct wf_problem *problem, struct wf_state *at, int32_t axis,
                             struct wf_code to, struct wf_path *out)
{
    if (to.kind == WF_CODE_PARTIAL && !wf_state_takes_partial(problem, at, to.value))
        return WEFT_OK;
    while (!same_kind(at->axis[axis], to)) {
        int32_t moved = axis;
        struct wf_code first = first_move(problem, at, &moved, to);
        WF_TRY(dtensor_step(problem, at, moved, first, out));
    }
    return WEFT_OK;
}

weft_status dtensor_greedy(const struct wf_problem *problem, struct wf_path *out)
{
    struct wf_state at;
    bool split = false;

    dtensor_begin(problem, &at, out);
    for (int32_t i = 0; i < problem->axes; i++)
        split = split || wf_code_splits(at.axis[i]);
    for (int32_t i = problem->axes - 1; split && problem->axes > 1 && i >= 0; i--) {
        struct wf_code to = problem->target.axis[i];
        if (wf_code_splits(to) && !same_outer_axes(problem, &at, i, to.value))
            to = (struct wf_code){0};
        WF_TRY(move_axis(problem, &at, i, to, out));
    }
    for (int round = 0; round < 2; round++) /* the second for partials that did not mix at first */
        for (int32_t i = 0; i < problem->axes; i++)
            WF_TRY(move_axis(problem, &at, i, problem->target.axis[i], out));
    if (!wf_state_same(&at, &problem->target))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "DTensor's greedy planner nests splits in the order of the mesh axes only");
    return WEFT_OK;
}
