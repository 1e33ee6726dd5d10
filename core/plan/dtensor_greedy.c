/* dtensor_greedy.c - DTensor's default: undo what is nested wrongly from the innermost axis on,
 * then do the rest from the outermost. */
#include "dtensor.h"

/* Do the axes before AXIS split DIM in STATE exactly where they do in the target? */
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

static bool same_place(struct wf_code a, struct wf_code b)
{
    return a.place == b.place && a.value == b.value;
}

/* What AXIS does first, on its way to TO.  A shard that is not the innermost of its dimension waits
 * for those inside of it to be gathered, here *AXIS; one that cannot become the partial asked for
 * is gathered itself. */
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
    if (to.place == WF_PARTIAL && !wf_dtensor_spreads(problem, at, *axis, to))
        return (struct wf_code){0};
    return to;
}

/* Give AXIS the code TO; a partial that does not go with one still there stays for later. */
static weft_status bring(const struct wf_problem *problem, struct wf_state *at, int32_t axis,
                         struct wf_code to, struct wf_path *out)
{
    if (to.place == WF_PARTIAL && !wf_state_takes_partial(problem, at, to.value)) return WEFT_OK;
    while (!same_place(at->axis[axis], to)) {
        int32_t moved = axis;
        struct wf_code first = first_move(problem, at, &moved, to);
        WF_TRY(wf_dtensor_step(problem, at, moved, first, out));
    }
    return WEFT_OK;
}

weft_status wf_dtensor_greedy(const struct wf_problem *problem, struct wf_path *out)
{
    struct wf_state at;
    bool split = false;

    wf_dtensor_begin(problem, &at, out);
    for (int32_t i = 0; i < problem->axes; i++)
        split = split || wf_code_splits(at.axis[i]);
    for (int32_t i = problem->axes - 1; split && problem->axes > 1 && i >= 0; i--) {
        struct wf_code to = problem->target.axis[i];
        if (wf_code_splits(to) && !same_outer_axes(problem, &at, i, to.value))
            to = (struct wf_code){0};
        WF_TRY(bring(problem, &at, i, to, out));
    }
    for (int round = 0; round < 2; round++) /* the second for what the first had to leave */
        for (int32_t i = 0; i < problem->axes; i++)
            WF_TRY(bring(problem, &at, i, problem->target.axis[i], out));
    if (!wf_state_same(&at, &problem->target))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "DTensor's greedy planner knows no other order than that of the axes");
    return WEFT_OK;
}
