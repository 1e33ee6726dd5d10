/* steps.c - steps of one axis, as DTensor takes them. */
#include "steps.h"

/* The kind of step that takes an axis from one code to another. */
static uint32_t step_kind(struct wf_code from, struct wf_code to)
{
    if (to.kind == WF_CODE_PARTIAL) return WEFT_STEP_PARTIAL;
    if (from.kind == WF_CODE_REPLICATE) return WEFT_STEP_SLICE;
    if (from.kind == WF_CODE_PARTIAL)
        return to.kind == WF_CODE_REPLICATE ? WEFT_STEP_ALL_REDUCE : WEFT_STEP_REDUCE_SCATTER;
    return to.kind == WF_CODE_REPLICATE ? WEFT_STEP_ALL_GATHER : WEFT_STEP_ALL_TO_ALL;
}

struct wf_state dtensor_moved(const struct wf_problem *problem, const struct wf_state *state,
                              int32_t axis, struct wf_code to)
{
    struct wf_state moved = *state;
    struct wf_code left = state->axis[axis];

    moved.axis[axis] = (struct wf_code){0};
    if (wf_code_splits(left))
        for (int32_t i = 0; i < problem->axes; i++)
            if (wf_code_splits(moved.axis[i]) && moved.axis[i].value == left.value &&
                moved.axis[i].turn > left.turn)
                moved.axis[i].turn--;
    if (wf_code_splits(to)) {
        to.turn = 1;
        for (int32_t i = 0; i < problem->axes; i++)
            if (wf_code_splits(moved.axis[i]) && moved.axis[i].value == to.value) to.turn++;
    }
    moved.axis[axis] = to;
    return moved;
}

bool dtensor_may_spread(const struct wf_problem *problem, const struct wf_state *state,
                        int32_t axis, struct wf_code to)
{
    struct wf_code code = state->axis[axis];
    struct wf_orders orders;

    if (code.kind != WF_CODE_SHARD || to.kind != WF_CODE_PARTIAL || to.value != WEFT_REDUCE_SUM)
        return false;
    wf_state_orders(state, problem->axes, &orders);
    return code.turn == orders.count[code.value] &&
           wf_state_takes_partial(problem, state, WEFT_REDUCE_SUM);
}

weft_status dtensor_step(const struct wf_problem *problem, struct wf_state *at, int32_t axis,
                         struct wf_code to, struct wf_path *path)
{
    struct wf_edge *edge = &path->edges[path->count];

    if (path->count == WF_PATH_MAX)
        return wf_fail(WEFT_ERR_INTERNAL, "a plan of more than %d steps", WF_PATH_MAX);
    edge->kind = step_kind(at->axis[axis], to);
    edge->axes = UINT32_C(1) << axis;
    edge->to = dtensor_moved(problem, at, axis, to);
    wf_price_edge(problem, at, edge, &path->prices[path->count]);
    *at = edge->to;
    path->count++;
    return WEFT_OK;
}

void dtensor_begin(const struct wf_problem *problem, struct wf_state *at, struct wf_path *path)
{
    struct wf_edge *edge = &path->edges[0];
    uint32_t partial = 0, reduced = 0;

    *at = problem->source;
    path->count = 0;
    for (int32_t i = 0; i < problem->axes; i++) {
        if (problem->source.axis[i].kind != WF_CODE_PARTIAL) continue;
        partial |= UINT32_C(1) << i;
        if (problem->target.axis[i].kind != WF_CODE_PARTIAL) reduced |= UINT32_C(1) << i;
    }
    if (reduced == 0 || (partial & (partial - 1)) == 0 ||
        wf_state_reduces(problem, at, partial & (UINT32_C(0) - partial)))
        return;
    *edge = (struct wf_edge){WEFT_STEP_ALL_REDUCE, partial, *at};
    for (int32_t i = 0; i < problem->axes; i++)
        if (partial >> i & 1) edge->to.axis[i] = (struct wf_code){0};
    wf_price_edge(problem, at, edge, &path->prices[0]);
    *at = edge->to;
    path->count = 1;
}
