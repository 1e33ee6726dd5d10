/* plan.c - the plan object. */
#include "plan/figures/figures.h"
#include "plan.h"

#include <string.h>

static void free_plan(weft_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        weft_spec_release(&plan->steps[i].from);
        weft_spec_release(&plan->steps[i].to);
    }
    for (uint32_t i = 0; i < plan->member_count; i++) {
        weft_spec_release(&plan->members[i].from);
        weft_spec_release(&plan->members[i].to);
        weft_plan_release(&plan->members[i].alone);
        weft_plan_release(&plan->members[i].spare);
    }
    weft_spec_release(&plan->from);
    weft_spec_release(&plan->to);
    weft_cost_table_release(&plan->costs);
    wf_free(plan->members);
    plan->made = wf_released(WF_KIND_PLAN);
    wf_free(plan);
}

void wf_plan_add_up(weft_plan *plan)
{
    /* so that equal specs do not cancel out */
    uint64_t h = wf_hash_mix(1, weft_spec_hash(plan->from));

    h = wf_hash_mix(h, weft_spec_hash(plan->to));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        plan->cost_ns = wf_add_capped(plan->cost_ns, step->cost_ns);
        plan->received = wf_add_capped(plan->received, step->received);
        if (step->scratch > plan->peak) plan->peak = step->scratch;
        h = wf_hash_mix(wf_hash_mix(h, step->kind), step->axes);
        h = wf_hash_mix(h, weft_spec_hash(step->to));
    }
    if (plan->living != 0) h = wf_hash_mix(h, (uint64_t)plan->living);
    plan->digest = h;
}

weft_status wf_plan_make(const weft_spec *from, const weft_spec *to, uint32_t steps,
                         weft_plan **out)
{
    size_t bytes = sizeof(weft_plan) + steps * sizeof(struct wf_step);
    weft_plan *plan = wf_calloc(1, bytes);

    if (plan == NULL) return wf_fail_memory(bytes);
    plan->made = WF_OF_KIND(WF_KIND_PLAN);
    atomic_init(&plan->references, 1);
    atomic_init(&plan->scratch, UINT64_MAX);
    atomic_init(&plan->scratch_exact, false);
    plan->from = weft_spec_retain(from);
    plan->to = weft_spec_retain(to);
    *out = plan;
    return WEFT_OK;
}

void wf_plan_set_costs(weft_plan *plan, const weft_cost_table *costs)
{
    weft_cost_table_release(&plan->costs);
    plan->costs = weft_cost_table_retain(costs != NULL ? costs : wf_cost_default());
}

weft_status wf_plan_finish_take(weft_plan *plan, weft_plan **out)
{
    weft_status status = wf_plan_count(plan);

    if (status != WEFT_OK) {
        free_plan(plan);
        return status;
    }
    plan->exact = plan->exact && plan->received != UINT64_MAX; /* as many bytes, or more */
    *out = plan;
    return WEFT_OK;
}

weft_status wf_plan_from_path(const struct wf_problem *problem, const struct wf_path *path,
                              weft_plan **out)
{
    weft_plan *plan = NULL;
    const weft_spec *at = problem->from;

    WF_TRY(wf_plan_make(problem->from, problem->to, path->count, &plan));
    plan->least = path->least;
    for (uint32_t i = 0; i < path->count; i++) {
        struct wf_step *step = &plan->steps[i];
        const struct wf_price *price = &path->prices[i];
        weft_status status = wf_problem_spec(problem, &path->edges[i].to, &step->to);
        if (status != WEFT_OK) {
            free_plan(plan);
            return status;
        }
        step->from = weft_spec_retain(at);
        step->kind = path->edges[i].kind;
        step->axes = wf_problem_mesh_axes(problem, path->edges[i].axes);
        step->sent = price->sent;
        step->received = price->received;
        step->scratch = price->scratch;
        step->cost_ns = price->ns;
        plan->step_count++;
        at = step->to;
    }
    wf_plan_add_up(plan);
    WF_TRY(wf_plan_finish_take(plan, out));
    if (problem->minimize == WEFT_MINIMIZE_BYTES && !(*out)->exact) (*out)->least = false;
    return WEFT_OK;
}

static weft_status refuse_shapes(const struct wf_layout *a, const struct wf_layout *b)
{
    struct wf_text shapes = {0};

    wf_text_add(&shapes, "the source is ");
    wf_shape_add_text(a->dims, a->shape, &shapes);
    wf_text_add(&shapes, ", the target ");
    wf_shape_add_text(b->dims, b->shape, &shapes);
    return wf_fail_text(WEFT_ERR_INVALID, &shapes, "%s; the shapes must be equal", shapes.data);
}

weft_status wf_plan_check_choice(const char *options, uint32_t minimize, uint32_t planner)
{
    if (minimize > WEFT_MINIMIZE_MEMORY)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s.minimize is %u; expected WEFT_MINIMIZE_TIME (0), WEFT_MINIMIZE_BYTES "
                       "(1) or WEFT_MINIMIZE_MEMORY (2)",
                       options, minimize);
    if (planner > WEFT_PLANNER_EXCHANGE)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s.planner is %u; expected WEFT_PLANNER_SEARCH (0) or "
                       "WEFT_PLANNER_EXCHANGE (1)",
                       options, planner);
    return WEFT_OK;
}

static weft_status check_request(const weft_spec *from, const weft_spec *to,
                                 const weft_plan_options *given)
{
    const struct wf_layout *a = &from->layout, *b = &to->layout;

    if (wf_cast_kind(a->dtype, b->dtype) == WF_CAST_REFUSED)
        return wf_cast_refuse(a->dtype, b->dtype);
    if (a->dims != b->dims || memcmp(a->shape, b->shape, (size_t)a->dims * sizeof(int64_t)) != 0)
        return refuse_shapes(a, b);
    return wf_plan_check_choice("weft_plan_options", given->minimize, given->planner);
}

/* The one step of a plan that changes nothing but the dtype. */
static void set_cast(const struct wf_problem *problem, struct wf_path *out)
{
    out->count = 1;
    out->edges[0] = (struct wf_edge){.kind = WEFT_STEP_SLICE, .to = problem->target};
    wf_price_edge(problem, &problem->source, &out->edges[0], &out->prices[0]);
}

static weft_status find_plan(const weft_spec *from, const weft_spec *to,
                             const weft_plan_options *given, weft_plan **out)
{
    struct wf_problem problem;
    struct wf_path path;

    if (from->layout.mesh != to->layout.mesh) return wf_plan_cross(from, to, given, out);
    WF_TRY(wf_problem_set(&problem, from, to, given));
    path.count = 0;
    path.least = true;
    if (from->elements > 0 && !wf_state_same(&problem.source, &problem.target)) {
        if (wf_state_same_codes(&problem, &problem.source, &problem.target))
            set_cast(&problem, &path);
        else
            WF_TRY(wf_path_find(&problem, given->planner, &path));
    }
    return wf_plan_from_path(&problem, &path, out);
}

/* As find_plan, from the ranks that GIVEN->holders names. */
static weft_status find_plan_of_holders(const weft_spec *from, const weft_spec *to,
                                        const weft_plan_options *given, weft_plan **out)
{
    weft_plan_options rest = *given;
    weft_spec *source = NULL;
    weft_status status;
    int32_t living;

    rest.holder_count = 0;
    rest.holders = NULL;
    WF_TRY(wf_plan_source(from, to, given, &living, &source));
    status = living == 0 ? find_plan(source, to, &rest, out)
                         : wf_plan_exchange(source, to, living, &rest, out);
    weft_spec_release(&source);
    return status;
}

weft_status wf_plan_create(const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options, weft_plan **out)
{
    weft_plan_options given = {0};

    WF_TRY(wf_options_read("weft_plan_options", options, &given, sizeof given));
    given.struct_size = sizeof given;
    WF_TRY(check_request(from, to, &given));
    if (given.holder_count > 0)
        WF_TRY(find_plan_of_holders(from, to, &given, out));
    else
        WF_TRY(find_plan(from, to, &given, out));
    wf_plan_set_costs(*out, given.costs);
    return WEFT_OK;
}

weft_status weft_plan_create(const weft_spec *from, const weft_spec *to,
                             const weft_plan_options *options, weft_plan **out)
{
    WF_TRY(wf_require_kind(from, WF_KIND_SPEC, "weft_plan_create: from"));
    WF_TRY(wf_require_kind(to, WF_KIND_SPEC, "weft_plan_create: to"));
    WF_TRY(wf_require(out, "weft_plan_create: out"));
    return wf_fail_named(wf_plan_create(from, to, options, out), "weft_plan_create");
}

const weft_cost_table *weft_plan_costs(const weft_plan *plan)
{
    return wf_is_kind(plan, WF_KIND_PLAN) ? plan->costs : NULL;
}

weft_plan *weft_plan_retain(const weft_plan *plan)
{
    weft_plan *mine = (weft_plan *)(uintptr_t)plan; /* only its reference count changes */

    if (!wf_is_kind(plan, WF_KIND_PLAN)) return NULL;
    atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void weft_plan_release(weft_plan **plan)
{
    weft_plan *mine = wf_take(plan, WF_KIND_PLAN, "weft_plan_release");

    if (mine == NULL) return;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) == 1) free_plan(mine);
}

/* ---- scratch ---- */

/* Step INDEX of a batch. */
static weft_status batch_step_scratch(const weft_plan *plan, uint32_t index, uint64_t *bytes,
                                      bool *exact)
{
    const struct wf_step *step = &plan->steps[index];
    uint32_t first = index;

    if (step->from == NULL)
        return wf_batch_scratch(plan->members, plan->member_count, NULL, bytes, exact);
    while (first > 0 && plan->steps[first - 1].from != NULL &&
           plan->steps[first - 1].tensor == step->tensor)
        first--;
    return wf_plan_step_scratch(plan->members[step->tensor].alone, index - first, bytes, exact);
}

weft_status wf_plan_step_scratch(const weft_plan *plan, uint32_t index, uint64_t *bytes,
                                 bool *exact)
{
    const struct wf_step *step = &plan->steps[index];
    int64_t messages;

    *bytes = step->scratch;
    if (plan->members != NULL) return batch_step_scratch(plan, index, bytes, exact);
    WF_TRY(wf_step_scratch(step, plan->costs != NULL && plan->costs->one_sided, index == 0,
                           index + 1 == plan->step_count, bytes, &messages, exact));
    if (!*exact) *bytes = wf_scratch_align(*bytes);
    return WEFT_OK;
}

weft_status wf_plan_scratch(const weft_plan *plan, uint64_t *bytes, bool *exact)
{
    weft_plan *mine = (weft_plan *)(uintptr_t)plan; /* only what was counted changes */
    uint64_t most = atomic_load_explicit(&mine->scratch, memory_order_acquire), own;
    bool counted = true, one;

    if (most == UINT64_MAX) {
        most = 0;
        for (uint32_t i = 0; i < plan->step_count; i++) {
            WF_TRY(wf_plan_step_scratch(plan, i, &own, &one));
            if (own > most) most = own;
            counted = counted && one;
        }
        atomic_store_explicit(&mine->scratch_exact, counted, memory_order_relaxed);
        atomic_store_explicit(&mine->scratch, most, memory_order_release);
    }
    *bytes = most;
    *exact = atomic_load_explicit(&mine->scratch_exact, memory_order_relaxed);
    return WEFT_OK;
}

/* ---- properties ---- */

weft_status weft_plan_get(const weft_plan *plan, weft_plan_info *out)
{
    weft_plan_info info;
    uint64_t scratch;
    bool scratch_exact;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_get: plan"));
    WF_TRY(wf_require(out, "weft_plan_get: out"));
    WF_TRY(wf_plan_scratch(plan, &scratch, &scratch_exact));
    info = (weft_plan_info){.from = plan->from,
                            .to = plan->to,
                            .steps = plan->step_count,
                            .cost_ns = plan->cost_ns,
                            .bytes_received_max = plan->received,
                            .peak_bytes = scratch,
                            .digest = plan->digest,
                            .tensors = plan->members != NULL ? plan->member_count : 1,
                            .together = plan->together,
                            .exact = plan->exact,
                            .scratch_exact = scratch_exact,
                            .least = plan->least};
    return wf_info_write("weft_plan_info", &info, sizeof info, out);
}

uint64_t weft_plan_cost_ns(const weft_plan *plan)
{
    return wf_is_kind(plan, WF_KIND_PLAN) ? plan->cost_ns : 0;
}

bool weft_plan_communicates(const weft_plan *plan)
{
    if (!wf_is_kind(plan, WF_KIND_PLAN)) return false;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind != WEFT_STEP_SLICE && plan->steps[i].kind != WEFT_STEP_PARTIAL)
            return true;
    return false;
}

/* The bytes sent in STEP of PLAN, which may be the common exchange of a batch. */
static weft_status find_sent(const weft_plan *plan, const struct wf_step *step, uint64_t *bytes,
                             bool *exact)
{
    *bytes = step->sent;
    return step->from != NULL ? wf_step_sent(step, bytes, exact)
                              : wf_batch_sent(plan, bytes, exact);
}

weft_status weft_plan_step_get(const weft_plan *plan, size_t index, weft_plan_step_info *out)
{
    const struct wf_step *step;
    weft_plan_step_info info;
    uint64_t sent, scratch;
    bool exact, scratch_exact;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_step_get: plan"));
    WF_TRY(wf_require(out, "weft_plan_step_get: out"));
    if (index >= plan->step_count)
        return wf_fail(WEFT_ERR_INVALID, "weft_plan_step_get: index is %zu; the plan has %u step%s",
                       index, plan->step_count, WF_PLURAL(plan->step_count));
    step = &plan->steps[index];
    WF_TRY(find_sent(plan, step, &sent, &exact));
    WF_TRY(wf_plan_step_scratch(plan, (uint32_t)index, &scratch, &scratch_exact));
    info = (weft_plan_step_info){.kind = step->kind,
                                 .axes = step->axes,
                                 .from = step->from,
                                 .to = step->to,
                                 .bytes_sent = sent,
                                 .bytes_received = step->received,
                                 .scratch_bytes = scratch,
                                 .cost_ns = step->cost_ns,
                                 .tensor = step->tensor,
                                 .cast = wf_step_cast(step),
                                 .exact = plan->exact && exact && sent != UINT64_MAX &&
                                          step->received != UINT64_MAX,
                                 .scratch_exact = scratch_exact};
    return wf_info_write("weft_plan_step_info", &info, sizeof info, out);
}

weft_status weft_plan_tensor_get(const weft_plan *plan, size_t index, weft_plan_tensor_info *out)
{
    weft_plan_tensor_info info;
    uint32_t count;

    WF_TRY(wf_require_kind(plan, WF_KIND_PLAN, "weft_plan_tensor_get: plan"));
    WF_TRY(wf_require(out, "weft_plan_tensor_get: out"));
    count = plan->members != NULL ? plan->member_count : 1;
    if (index >= count)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_plan_tensor_get: index is %zu; the plan has %u tensor%s", index, count,
                       WF_PLURAL(count));
    info = (weft_plan_tensor_info){.from = plan->from, .to = plan->to, .alone = plan};
    if (plan->members != NULL)
        info = (weft_plan_tensor_info){.from = plan->members[index].from,
                                       .to = plan->members[index].to,
                                       .alone = plan->members[index].alone};
    return wf_info_write("weft_plan_tensor_info", &info, sizeof info, out);
}
