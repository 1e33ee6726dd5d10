/* path.c - the best path of a problem, by what is minimized. */
#include "plan/figures/figures.h"
#include "plan.h"

/* The kinds of step of a one-step plan. */
#define EXCHANGES (UINT32_C(1) << WEFT_STEP_EXCHANGE | UINT32_C(1) << WEFT_STEP_PERMUTE)

static weft_status rate_path(const struct wf_problem *problem, const struct wf_path *path,
                             uint64_t *received, uint64_t *ns)
{
    weft_plan *plan = NULL;

    WF_TRY(wf_plan_from_path(problem, path, &plan));
    *received = plan->received;
    *ns = plan->cost_ns;
    weft_plan_release(&plan);
    return WEFT_OK;
}

static weft_status rate_scratch(const struct wf_problem *problem, const struct wf_path *path,
                                uint64_t *scratch, uint64_t *ns)
{
    weft_plan *plan = NULL;
    weft_status status;
    bool exact;

    WF_TRY(wf_plan_from_path(problem, path, &plan));
    status = wf_plan_scratch(plan, scratch, &exact);
    *ns = plan->cost_ns;
    weft_plan_release(&plan);
    return status;
}

/* Replace PATH by the fastest one if RATE finds that better. */
static weft_status try_fastest(const struct wf_problem *problem, wf_path_rate *rate,
                               struct wf_path *path)
{
    struct wf_problem by_time = *problem;
    struct wf_path fastest;
    uint64_t quantity[2], ns[2];

    by_time.minimize = WEFT_MINIMIZE_TIME;
    WF_TRY(wf_search(&by_time, &fastest));
    WF_TRY(rate(problem, path, &quantity[0], &ns[0]));
    WF_TRY(rate(problem, &fastest, &quantity[1], &ns[1]));
    if (quantity[1] < quantity[0] || (quantity[1] == quantity[0] && ns[1] < ns[0])) *path = fastest;
    path->least = false;
    return WEFT_OK;
}

static weft_status search_path_by_bytes(const struct wf_problem *problem, struct wf_path *out)
{
    WF_TRY(wf_search_bytes(problem, rate_path, out));
    if (out->count > 0) return out->least ? WEFT_OK : try_fastest(problem, rate_path, out);
    WF_TRY(wf_search(problem, out));
    out->least = false;
    return WEFT_OK;
}

static weft_status search_path(const struct wf_problem *problem, struct wf_path *out)
{
    if (problem->minimize == WEFT_MINIMIZE_BYTES) return search_path_by_bytes(problem, out);
    WF_TRY(wf_search(problem, out));
    if (problem->minimize == WEFT_MINIMIZE_TIME || wf_problem_counts(problem)) return WEFT_OK;
    return try_fastest(problem, rate_scratch, out); /* the search has compared estimates */
}

/* Replace PATH, which is long and not shown to be the best, by one of at most six steps, if there
 * is one. */
static weft_status try_short(struct wf_problem *problem, struct wf_path *path)
{
    struct wf_path brief;
    weft_status status;

    problem->steps_max = WF_STEPS_MAX;
    status = search_path(problem, &brief);
    problem->steps_max = WF_PATH_MAX;
    if (status == WEFT_ERR_INVALID || status == WEFT_ERR_UNSUPPORTED) return WEFT_OK;
    if (status != WEFT_OK) return status;
    *path = brief;
    path->least = false;
    return WEFT_OK;
}

weft_status wf_path_find(struct wf_problem *problem, uint32_t planner, struct wf_path *out)
{
    uint32_t allowed = EXCHANGES;

    if (planner == WEFT_PLANNER_EXCHANGE) {
        if (!wf_may_exchange(problem, &problem->source)) /* integers averaged along some axes */
            allowed |= UINT32_C(1) << WEFT_STEP_ALL_REDUCE;
        problem->without |= ~allowed;
    }
    WF_TRY(search_path(problem, out));
    return out->least || out->count <= WF_STEPS_MAX ? WEFT_OK : try_short(problem, out);
}
