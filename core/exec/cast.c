/* cast.c - a step that casts, as two steps: one that casts and one that moves.
 *
 * Backends that cannot cast while they move data run both, with scratch between them.  So does the
 * simulator, which is the reference. */
#include "plan/figures/figures.h"
#include "bound.h"

#include "exec/host/host.h"

weft_status wf_cast_split(const struct wf_step *step, struct wf_cast_steps *out)
{
    bool before = wf_step_cast(step) == WEFT_CAST_BEFORE;
    const weft_spec *same = before ? step->from : step->to;

    WF_TRY(weft_spec_with_dtype(same, wf_step_dtype(step), &out->between));
    out->steps[0] = out->steps[1] = *step;
    out->steps[0].to = out->steps[1].from = out->between;
    /* A step between specs that differ in dtype only is the cast. */
    out->steps[before ? 0 : 1].kind = WEFT_STEP_SLICE;
    out->steps[before ? 0 : 1].axes = 0;
    if (!before) out->steps[1].created = wf_step_created_partials(step);
    return WEFT_OK;
}

void wf_cast_clear(struct wf_cast_steps *steps)
{
    weft_spec_release(&steps->between);
}

bool wf_step_only_casts(const struct wf_step *step)
{
    return step->kind == WEFT_STEP_SLICE && step->axes == 0 &&
           step->from->layout.dtype != step->to->layout.dtype;
}

/* ---- the steps of a bound plan ---- */

/* Ask the backend with an empty list. */
static weft_status find_regions_cast(const weft_comm *comm, uint32_t from, uint32_t to, bool *out)
{
    const weft_kernel_table *kernel = wf_kernels_of(comm->context);
    const void *source = NULL;
    void *list = NULL, *target = NULL;

    *out = false;
    if (!WF_HAS(kernel, regions_cast)) return WEFT_OK;
    WF_TRY(kernel->regions_create(wf_kernels_device(comm->context), (uint32_t)wf_dtype_bytes(from),
                                  0, NULL, &list));
    *out = kernel->regions_cast(list, from, to, &source, &target, NULL) != WEFT_ERR_UNSUPPORTED;
    kernel->regions_destroy(list);
    return WEFT_OK;
}

/* Without regions, the call is a question, as for `pull`. */
static bool has_pull_cast(const weft_comm *comm, uint32_t from, uint32_t to)
{
    weft_pull_args question = {.struct_size = sizeof question, .dtype = from};

    return WF_HAS(comm->table, pull_cast) &&
           comm->table->pull_cast(comm->handle, &question, to) != WEFT_ERR_UNSUPPORTED;
}

weft_status wf_casts_find(const weft_plan *plan, const weft_comm *comm, uint32_t *casts)
{
    uint32_t all = WF_CASTS_REGIONS | WF_CASTS_PULLS;

    for (uint32_t i = 0; i < (plan->members != NULL ? plan->member_count : 1); i++) {
        uint32_t from = (plan->members != NULL ? plan->members[i].from : plan->from)->layout.dtype;
        uint32_t to = (plan->members != NULL ? plan->members[i].to : plan->to)->layout.dtype;
        bool regions = true;

        if (from == to) continue;
        if ((all & WF_CASTS_REGIONS) != 0) WF_TRY(find_regions_cast(comm, from, to, &regions));
        if (!regions) all &= ~(uint32_t)WF_CASTS_REGIONS;
        if (!has_pull_cast(comm, from, to)) all &= ~(uint32_t)WF_CASTS_PULLS;
    }
    *casts = all;
    return WEFT_OK;
}

bool wf_cast_is_dense(uint32_t casts, const struct wf_step *step)
{
    return wf_step_only_casts(step) && (casts & WF_CASTS_REGIONS) == 0;
}

/* True if the backend can run STEP, which casts, as one action. */
static bool is_fused(const weft_comm *comm, bool packed, uint32_t casts, const struct wf_step *step)
{
    uint32_t cast = wf_step_cast(step), dtype = wf_step_dtype(step);
    bool reduces = wf_step_reduces(step), regions = (casts & WF_CASTS_REGIONS) != 0;

    if (wf_step_only_casts(step)) return true;
    if (wf_step_is_local(step)) return regions;
    if (!wf_cast_fuses(step->kind, cast, reduces)) return false;
    if (!packed)
        return (casts & WF_CASTS_PULLS) != 0 && (!reduces || (comm->averages >> dtype & 1));
    if (step->kind == WEFT_STEP_BROADCAST) return false; /* the backend's, on whole buffers */
    /* Messages to several ranks would be cast and stored once for each of them. */
    return regions && !reduces && (cast == WEFT_CAST_AFTER || !wf_step_sends_copies(step));
}

weft_status wf_bound_steps_set(const weft_plan *plan, const weft_comm *comm, bool packed,
                               uint32_t casts, struct wf_bound_steps *out)
{
    *out = (struct wf_bound_steps){.count = plan->step_count};
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct wf_step *step = &plan->steps[i];
        if (wf_step_cast(step) == WEFT_CAST_NONE || is_fused(comm, packed, casts, step)) continue;
        WF_TRY(wf_cast_split(step, &out->cast));
        out->is_split = true;
        out->split = i;
        out->count++;
    }
    return WEFT_OK;
}

void wf_bound_steps_clear(struct wf_bound_steps *steps)
{
    wf_cast_clear(&steps->cast);
}

const struct wf_step *wf_bound_step(const weft_plan *plan, const struct wf_bound_steps *steps,
                                    uint32_t index, uint32_t *number)
{
    uint32_t of_plan = index - (steps->is_split && index > steps->split);

    if (number != NULL) *number = of_plan + 1;
    if (steps->is_split && of_plan == steps->split) return &steps->cast.steps[index - steps->split];
    return &plan->steps[of_plan];
}

/* The backend may have no kernel for this cast.  Casts are local, so each rank may do it on its
 * host. */
static weft_status cast_on_host(const struct weft_bound *bound, const struct wf_action *action,
                                const void *in, void *out, weft_stream *stream)
{
    wf_host_log_casts(bound->context);
    return wf_host_cast(bound->context, action->from, action->to, action->elements, in, out,
                        stream);
}

weft_status wf_cast_run(const struct weft_bound *bound, const struct wf_action *action,
                        const void *in, void *out, weft_stream *stream)
{
    weft_status status = WEFT_ERR_UNSUPPORTED;

    if (action->regions != NULL)
        return bound->kernel->regions_cast(action->regions, action->from, action->to, &in, &out,
                                           stream);
    if (action->elements == 0 || action->filled || !wf_cast_is_dense(bound->casts, action->step))
        return WEFT_OK;
    if (WF_HAS(bound->kernel, cast))
        status = bound->kernel->cast(bound->kernel_device, action->from, action->to,
                                     action->elements, in, out, stream);
    return status != WEFT_ERR_UNSUPPORTED ? status : cast_on_host(bound, action, in, out, stream);
}
