/* runner_up.c - the best plan besides the chosen one. */
#include "plan.h"

/* The kind of the step that costs most. */
static uint32_t costliest_kind(const weft_plan *plan)
{
    const struct wf_step *most = &plan->steps[0];

    for (uint32_t i = 1; i < plan->step_count; i++)
        if (plan->steps[i].cost_ns > most->cost_ns) most = &plan->steps[i];
    return most->kind;
}

static bool crosses_meshes(const weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].from->layout.mesh != plan->steps[i].to->layout.mesh) return true;
    return false;
}

weft_status weft_plan_create_runner_up(const weft_plan *plan, const weft_plan_options *options,
                                       weft_plan **out)
{
    weft_plan_options given = {0};
    weft_status status;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_create_runner_up: plan"));
    WF_TRY(wf_require(out, "weft_plan_create_runner_up: out"));
    WF_TRY(wf_options_read("weft_plan_options", options, &given, sizeof given));
    WF_TRY(wf_plan_refuse_holders("weft_plan_create_runner_up", &given));
    if (plan->members != NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_plan_create_runner_up: PLAN is a batch; ask for the "
                                         "runner-up of one tensor's plan (weft_plan_tensor_get)");
    if (plan->step_count == 1 && plan->steps[0].kind == WEFT_STEP_SLICE && plan->steps[0].axes == 0)
        return wf_fail(WEFT_ERR_NOT_FOUND, "the plan only casts, and no other does less");
    if (plan->step_count == 0 || given.planner != WEFT_PLANNER_SEARCH)
        return wf_fail(WEFT_ERR_NOT_FOUND, plan->step_count == 0
                                               ? "the plan has no steps, so no other is worth "
                                                 "comparing"
                                               : "only the planner `search` compares plans");
    if (plan->living != 0)
        return wf_fail(WEFT_ERR_NOT_FOUND, "ranks are lost, so there is no plan but one exchange");
    given.struct_size = sizeof given;
    given.memory_limit = 0;
    if (given.costs == NULL) given.costs = plan->costs;
    if (crosses_meshes(plan)) {
        WF_TRY(wf_plan_cross_runner_up(plan->from, plan->to, &given, out));
        wf_plan_set_costs(*out, given.costs);
        return WEFT_OK;
    }
    given.without |= UINT32_C(1) << costliest_kind(plan);
    status = wf_plan_create(plan->from, plan->to, &given, out);
    if (status != WEFT_ERR_UNSUPPORTED) return status;
    return wf_fail(WEFT_ERR_NOT_FOUND, "no plan exists without %s",
                   weft_step_name(costliest_kind(plan)));
}
