/* dtensor_planner.c - plans by DTensor's planners. */
#include "dtensor_planner.h"

#include "steps.h"

#include <string.h>

const char *dtensor_planner_name(uint32_t planner)
{
    switch (planner) {
    case DTENSOR_GREEDY:
        return "dtensor-greedy";
    case DTENSOR_GRAPH:
        return "dtensor-graph";
    default:
        return planner == WEFT_PLANNER_EXCHANGE ? "exchange" : "search";
    }
}

static weft_status check_pair(const weft_spec *from, const weft_spec *to)
{
    const struct wf_layout *a = &from->layout, *b = &to->layout;

    if (a->mesh != b->mesh)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "DTensor's planners plan on one mesh only");
    if (a->dtype != b->dtype || a->dims != b->dims ||
        memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]) != 0)
        return wf_fail(WEFT_ERR_INVALID, "the source and the target differ in shape or dtype");
    for (int32_t i = 0; i < a->mesh->axes; i++)
        if (a->placements[i].kind >= WEFT_PLACE_PARTS || b->placements[i].kind >= WEFT_PLACE_PARTS)
            return wf_fail(WEFT_ERR_UNSUPPORTED, "DTensor has no placements B, G and O");
    return WEFT_OK;
}

weft_status dtensor_plan_create(const weft_spec *from, const weft_spec *to,
                                const weft_plan_options *options, weft_plan **out)
{
    struct wf_problem problem;
    struct wf_path path;

    if (options->planner != DTENSOR_GREEDY && options->planner != DTENSOR_GRAPH)
        return weft_plan_create(from, to, options, out);
    WF_TRY(check_pair(from, to));
    WF_TRY(wf_problem_set(&problem, from, to, options));
    path.count = 0;
    path.least = false;
    if (from->elements != 0 && !wf_state_same(&problem.source, &problem.target))
        WF_TRY(options->planner == DTENSOR_GREEDY ? dtensor_greedy(&problem, &path)
                                                  : dtensor_graph(&problem, &path));
    WF_TRY(wf_plan_from_path(&problem, &path, out));
    wf_plan_set_costs(*out, options->costs);
    return WEFT_OK;
}
