/* batch.c - a batch of tensors bound and run: the common exchange, then the other tensors one by
 * one, all in the same scratch. */
#include "bound.h"

#include <stdio.h>
#include <string.h>

static weft_status check_options(const weft_plan *plan, const weft_bind_options *given)
{
    if (given->source_strides != NULL || given->target_strides != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_plan_bind: for a batch of %u tensors, set batch_source_strides and "
                       "batch_target_strides, not source_strides and target_strides",
                       plan->member_count);
    return WEFT_OK;
}

static const int64_t *strides_of(const int64_t *const *list, uint32_t tensor)
{
    return list != NULL ? list[tensor] : NULL;
}

static weft_status check_strides(const weft_plan *plan, int32_t rank,
                                 const weft_bind_options *given)
{
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        char name[64];
        snprintf(name, sizeof name, "weft_bind_options.batch_source_strides[%u]", i);
        WF_TRY(wf_strides_check(name, member->from, rank,
                                strides_of(given->batch_source_strides, i), false));
        snprintf(name, sizeof name, "weft_bind_options.batch_target_strides[%u]", i);
        WF_TRY(wf_strides_check(name, member->to, rank, strides_of(given->batch_target_strides, i),
                                true));
    }
    return WEFT_OK;
}

static weft_status make_bound(const weft_plan *plan, weft_comm *comm,
                              const weft_bind_options *given, weft_bound **out)
{
    struct weft_bound *bound = wf_calloc(1, sizeof *bound);

    if (bound == NULL) return wf_fail_memory(sizeof *bound);
    wf_bound_begin(bound, plan, comm, given);
    *out = bound;
    bound->batch = wf_calloc(1, sizeof *bound->batch);
    if (bound->batch == NULL) return wf_fail_memory(sizeof *bound->batch);
    bound->batch->alone = wf_calloc(plan->member_count, sizeof *bound->batch->alone);
    bound->batch->memory = wf_calloc(plan->member_count, sizeof *bound->batch->memory);
    if (bound->batch->alone == NULL || bound->batch->memory == NULL)
        return wf_fail_memory(plan->member_count * sizeof *bound->batch->memory);
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_memory *memory = &bound->batch->memory[i];
        wf_buffers_measure(member->from, comm->rank, strides_of(given->batch_source_strides, i),
                           &memory->source);
        wf_buffers_measure(member->to, comm->rank, strides_of(given->batch_target_strides, i),
                           &memory->target);
    }
    return WEFT_OK;
}

static weft_status bind_alone(struct weft_bound *bound, const weft_bind_options *given,
                              uint32_t tensor)
{
    weft_bind_options mine = *given;

    if (given->batch_source_strides != NULL)
        mine.source_strides = given->batch_source_strides[tensor];
    if (given->batch_target_strides != NULL)
        mine.target_strides = given->batch_target_strides[tensor];
    return wf_bind(bound->plan->members[tensor].alone, bound->parent, &mine, true,
                   &bound->batch->alone[tensor]);
}

static weft_status bind_all_alone(struct weft_bound *bound, const weft_bind_options *given)
{
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        if (bound->plan->members[i].alone != NULL) WF_TRY(bind_alone(bound, given, i));
    return WEFT_OK;
}

/* One piece of scratch for all tensors, because they run one after the other. */
static weft_status give_scratch(struct weft_bound *bound)
{
    uint64_t most = wf_fused_bytes(&bound->batch->fused);

    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        const struct weft_bound *alone = bound->batch->alone[i];
        uint64_t bytes = alone != NULL ? wf_scratch_bytes(alone) : 0;
        if (bytes > most) most = bytes;
    }
    WF_TRY(wf_scratch_make(bound, most));
    wf_fused_assign(&bound->batch->fused, bound->scratch);
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        if (bound->batch->alone[i] != NULL)
            wf_scratch_assign(bound->batch->alone[i], bound->scratch);
    return WEFT_OK;
}

weft_status wf_batch_bind(const weft_plan *plan, weft_comm *comm, const weft_bind_options *given,
                          weft_bound **out)
{
    weft_bound *bound = NULL;
    uint32_t binding = 0;
    weft_status status = check_options(plan, given);

    if (status == WEFT_OK) status = check_strides(plan, comm->rank, given);
    if (status == WEFT_OK) status = make_bound(plan, comm, given, &bound);
    status = wf_bind_agree(comm, "preparing", status, plan, given, NULL);
    if (status == WEFT_OK) status = bind_all_alone(bound, given);
    if (status != WEFT_OK) goto failed; /* the same on all ranks */
    if (plan->together > 0) status = wf_fused_set(bound, given, status, &bound->batch->fused);
    if (status == WEFT_OK) status = give_scratch(bound);
    status = wf_bind_agree(comm, "binding", status, plan, given, &binding);
    if (status != WEFT_OK) goto failed;
    bound->binding = binding;
    for (uint32_t i = 0; i < plan->member_count; i++)
        if (bound->batch->alone[i] != NULL) bound->batch->alone[i]->runs = bound->runs;
    *out = bound;
    return WEFT_OK;
failed:
    wf_bound_free(bound);
    return status;
}

void wf_batch_clear(struct weft_bound *bound)
{
    if (bound->batch == NULL) return;
    for (uint32_t i = 0; bound->batch->alone != NULL && i < bound->plan->member_count; i++)
        wf_bound_free(bound->batch->alone[i]);
    wf_fused_clear(bound, &bound->batch->fused);
    wf_free(bound->batch->alone);
    wf_free(bound->batch->memory);
    wf_free(bound->batch);
    bound->batch = NULL;
}

/* Does the memory of every tensor pass the fast check? */
static bool memory_fits(const weft_bound *bound, const void *const *sources, void *const *targets)
{
    uint32_t count = bound->batch != NULL ? bound->plan->member_count : 1;

    if (bound->checked) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!wf_buffers_fit(wf_bound_memory(bound, i), sources[i], targets[i], bound->in_place))
            return false;
    return true;
}

static weft_status run_batch(const weft_bound *bound, const void *const *sources,
                             void *const *targets, weft_stream *stream)
{
    struct wf_batch *batch = bound->batch;

    if (bound->plan->together > 0) {
        weft_status status;

        wf_runs_step(bound->runs, 1, batch->fused.comm);
        status = wf_fused_run(bound, &batch->fused, sources, targets, stream);

        if (status != WEFT_OK)
            return wf_fail_context(status, "the exchange of %u tensors", batch->fused.count);
    }
    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        weft_status status = batch->alone[i] == NULL
                                 ? WEFT_OK
                                 : wf_run(batch->alone[i], sources[i], targets[i], stream);

        if (status != WEFT_OK)
            return wf_fail_context(status, "tensor %u of %u", i, bound->plan->member_count);
    }
    return WEFT_OK;
}

weft_status weft_redistribute_batch(weft_bound *bound, const void *const *sources,
                                    void *const *targets, weft_stream *stream, weft_work **work)
{
    static const char what[] = "weft_redistribute_batch";
    weft_status status;
    uint64_t last;

    if (bound == NULL || !wf_is_usable(bound->made, WF_KIND_BOUND))
        return wf_bound_refuse(bound, what);
    if (sources == NULL || targets == NULL)
        return wf_fail_null(what, sources == NULL ? "sources" : "targets");
    if (!memory_fits(bound, sources, targets))
        WF_TRY(wf_buffers_check(what, bound, sources, targets));
    WF_TRY(wf_stream_check(bound->context, stream, what));
    last = atomic_load_explicit(&bound->runs->last, memory_order_relaxed);
    wf_runs_begin(&bound->parent->runs, bound->runs,
                  atomic_load_explicit(&bound->parent->collectives, memory_order_relaxed));
    status = bound->batch == NULL ? wf_run(bound, sources[0], targets[0], stream)
                                  : run_batch(bound, sources, targets, stream);
    if (status != WEFT_OK) return wf_run_failed(bound, last, status, what);
    if (wf_comm_is_inline(bound->parent, stream)) wf_runs_end(&bound->parent->runs);
    return work != NULL ? wf_work_record(bound->context, stream, what, work) : WEFT_OK;
}
