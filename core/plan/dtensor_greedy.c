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

weft_status wf_dtensor_greedy(const struct wf_problem *problem, struct wf_path *out)
{
    struct wf_state at = problem->source;
    bool split = false;

    out->count = 0;
    for (int32_t i = 0; i < problem->axes; i++)
        split = split || wf_code_splits(at.axis[i]);
    for (int32_t i = problem->axes - 1; split && problem->axes > 1 && i >= 0; i--) {
        struct wf_code to = problem->target.axis[i];
        if (wf_code_splits(to) && !same_outer_axes(problem, &at, i, to.value))
            to = (struct wf_code){0};
        if (!same_place(at.axis[i], to)) WF_TRY(wf_dtensor_step(problem, &at, i, to, out));
    }
    for (int32_t i = 0; i < problem->axes; i++)
        if (!same_place(at.axis[i], problem->target.axis[i]))
            WF_TRY(wf_dtensor_step(problem, &at, i, problem->target.axis[i], out));
    if (!wf_state_same(&at, &problem->target))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "DTensor's greedy planner knows no other order than that of the axes");
    return WEFT_OK;
}
