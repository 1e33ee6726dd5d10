/* batch.c - a batch of tensors bound and run: the common exchange, then the other tensors one by
 * one, all in the same scratch. */
#include "exec/context/kept.h"
#include "exec/run/run.h"

#include <stdio.h>
#include <string.h>

static weft_status check_options(const weft_plan *plan, const struct wf_bind_call *call)
{
    if (call->given.source_strides != NULL || call->given.target_strides != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: for a batch of %u tensors, set batch_source_strides and "
                       "batch_target_strides, not source_strides and target_strides",
                       call->function, plan->member_count);
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

static weft_status make_bound(const weft_plan *plan, const struct wf_bind_call *call,
                              weft_bound **out)
{
    struct weft_bound *bound = wf_calloc(1, sizeof *bound);
    const weft_bind_options *given = &call->given;
    int32_t rank = call->parent->rank;

    if (bound == NULL) return wf_fail_memory(sizeof *bound);
    wf_bound_begin(bound, plan, call);
    *out = bound;
    bound->batch = wf_calloc(1, sizeof *bound->batch);
    if (bound->batch == NULL) return wf_fail_memory(sizeof *bound->batch);
    bound->batch->alone = wf_calloc(plan->member_count, sizeof *bound->batch->alone);
    bound->batch->memory = wf_calloc(plan->member_count, sizeof *bound->batch->memory);
    bound->batch->passed = wf_calloc(2 * (size_t)plan->member_count, sizeof *bound->batch->passed);
    bound->batch->frees = UINT64_MAX;
    if (bound->batch->alone == NULL || bound->batch->memory == NULL || bound->batch->passed == NULL)
        return wf_fail_memory(plan->member_count * sizeof *bound->batch->memory);
    for (uint32_t i = 0; i < plan->member_count; i++) {
        const struct wf_member *member = &plan->members[i];
        struct wf_memory *memory = &bound->batch->memory[i];
        wf_buffers_measure(member->from, rank, strides_of(given->batch_source_strides, i),
                           &memory->source);
        wf_buffers_measure(member->to, rank, strides_of(given->batch_target_strides, i),
                           &memory->target);
        if (wf_member_plan(member, call->casts) == NULL) bound->batch->together++;
    }
    return WEFT_OK;
}

/* CALL for one tensor of a batch. */
static struct wf_bind_call call_for(const struct wf_bind_call *call, uint32_t tensor)
{
    struct wf_bind_call mine = *call;

    mine.given.source_strides = strides_of(call->given.batch_source_strides, tensor);
    mine.given.target_strides = strides_of(call->given.batch_target_strides, tensor);
    return mine;
}

static weft_status bind_all_alone(struct weft_bound *bound, const struct wf_bind_call *call)
{
    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        struct wf_bind_call mine = call_for(call, i);
        const weft_plan *plan = wf_member_plan(&bound->plan->members[i], call->casts);

        if (plan != NULL) WF_TRY(wf_bind(plan, &mine, true, &bound->batch->alone[i]));
    }
    return WEFT_OK;
}

/* One piece of scratch serves all tensors, because they run one after the other. */
static weft_status set_scratch(struct weft_bound *bound, const struct wf_bind_call *call)
{
    uint64_t most = wf_fused_bytes(&bound->batch->fused);

    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        const struct weft_bound *alone = bound->batch->alone[i];
        uint64_t bytes = alone != NULL ? wf_scratch_bytes(alone) : 0;

        if (bytes > most) most = bytes;
        if (alone != NULL && alone->averages_on_host) bound->averages_on_host = true;
    }
    return wf_bound_set_scratch(bound, call, most);
}

weft_status wf_batch_bind(const weft_plan *plan, const struct wf_bind_call *call, weft_bound **out)
{
    weft_bound *bound = NULL;
    struct wf_bind_outcome outcome;
    weft_status status = check_options(plan, call);

    if (status == WEFT_OK) status = check_strides(plan, call->parent->rank, &call->given);
    if (status == WEFT_OK) status = make_bound(plan, call, &bound);
    status = wf_bind_agree(call, "preparing", status, plan, &outcome);
    if (status == WEFT_OK) status = bind_all_alone(bound, call);
    if (status != WEFT_OK) goto failed; /* the same on all ranks */
    if (bound->batch->together > 0)
        status = wf_fused_set(bound, &call->given, call->room, status, &bound->batch->fused);
    if (status == WEFT_OK) status = set_scratch(bound, call);
    status = wf_bind_agree(call, "binding", status, plan, &outcome);
    if (status != WEFT_OK) goto failed;
    bound->binding = call->team->bindings = outcome.binding;
    for (uint32_t i = 0; i < plan->member_count; i++)
        if (bound->batch->alone[i] != NULL) bound->batch->alone[i]->runs = bound->runs;
    *out = bound;
    return WEFT_OK;
failed:
    wf_bound_free(bound);
    return status;
}

weft_status wf_batch_size(const weft_plan *plan, const struct wf_bind_call *call, uint64_t *bytes)
{
    weft_bound *bound = NULL;
    uint64_t most = 0;
    weft_status status = check_options(plan, call);

    if (status == WEFT_OK) status = check_strides(plan, call->parent->rank, &call->given);
    if (status == WEFT_OK) status = make_bound(plan, call, &bound);
    if (status == WEFT_OK && bound->batch->together > 0)
        status = wf_fused_set(bound, &call->given, call->room, status, &bound->batch->fused);
    if (status == WEFT_OK) most = wf_fused_bytes(&bound->batch->fused);
    for (uint32_t i = 0; i < plan->member_count && status == WEFT_OK; i++) {
        struct wf_bind_call mine = call_for(call, i);
        const weft_plan *alone = wf_member_plan(&plan->members[i], call->casts);
        uint64_t own = 0;

        if (alone != NULL) status = wf_bind_size(alone, &mine, &own);
        if (own > most) most = own;
    }
    if (status == WEFT_OK) *bytes = most;
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
    wf_free(bound->batch->passed);
    wf_free(bound->batch);
    bound->batch = NULL;
}

/* Nothing was freed since these addresses passed, so they still do. */
static bool have_passed(const struct wf_batch *batch, uint32_t count, const void *const *sources,
                        void *const *targets, uint64_t frees)
{
    size_t bytes = count * sizeof *sources;

    return batch->frees == frees && memcmp(batch->passed, sources, bytes) == 0 &&
           memcmp(batch->passed + count, targets, bytes) == 0;
}

bool wf_batch_fits(weft_bound *bound, const void *const *sources, void *const *targets,
                   bool in_place)
{
    uint64_t frees = atomic_load_explicit(&bound->context->ledger.frees, memory_order_relaxed);
    struct wf_batch *batch = bound->batch;
    uint32_t count = batch != NULL ? bound->plan->member_count : 1;

    if (bound->examined) return false;
    if (batch != NULL && have_passed(batch, count, sources, targets, frees)) return true;
    for (uint32_t i = 0; i < count; i++)
        if (!wf_buffers_fit(bound->parent, wf_bound_memory(bound, i), sources[i], targets[i],
                            in_place))
            return false;
    if (batch == NULL) return true;
    memcpy(batch->passed, sources, count * sizeof *sources);
    memcpy(batch->passed + count, targets, count * sizeof *targets);
    batch->frees = frees;
    return true;
}

static weft_status tensor_failed(const weft_bound *bound, uint32_t tensor, weft_status status)
{
    const weft_move_item *named = bound->batch->named;

    if (named != NULL && named[tensor].name != NULL)
        return wf_fail_context(status, "tensor %s", named[tensor].name);
    return wf_fail_context(status, "tensor %u of %u", tensor, bound->plan->member_count);
}

static weft_status run_exchange(const weft_bound *bound, const void *const *sources,
                                void *const *targets, weft_stream *stream)
{
    struct wf_fused *fused = &bound->batch->fused;
    struct wf_trace *trace = fused->member ? wf_tracing(bound) : NULL;
    struct wf_submitted record = {NULL, 0};
    weft_status status;

    if (trace != NULL) record = wf_record_step(trace, bound, &fused->draft, fused->comm, stream);
    status = wf_fused_run(bound, fused, sources, targets, stream);
    if (trace == NULL) return status;
    wf_trace_return(trace);
    if (status != WEFT_OK) return wf_trace_fail(trace, record, status);
    wf_record_posted(trace, bound->team, stream, record);
    return WEFT_OK;
}

static weft_status run_batch(const weft_bound *bound, const void *const *sources,
                             void *const *targets, void *room, weft_stream *stream)
{
    struct wf_batch *batch = bound->batch;

    if (batch->together > 0) {
        weft_status status;

        wf_runs_step(bound->runs, 1, batch->fused.comm);
        status = run_exchange(bound, sources, targets, stream);
        if (status != WEFT_OK)
            return wf_fail_context(status, "the exchange of %u tensors", batch->fused.count);
    }
    for (uint32_t i = 0; i < bound->plan->member_count; i++) {
        weft_status status = batch->alone[i] == NULL ? WEFT_OK
                                                     : wf_run_aliased(batch->alone[i], sources[i],
                                                                      targets[i], room, stream);

        if (status != WEFT_OK) return tensor_failed(bound, i, status);
    }
    return WEFT_OK;
}

weft_status wf_batch_run(weft_bound *bound, const void *const *sources, void *const *targets,
                         void *room, weft_stream *stream, weft_work **work, const char *function)
{
    uint64_t last = atomic_load_explicit(&bound->runs->last, memory_order_relaxed);
    struct wf_trace *trace = wf_tracing(bound);
    struct wf_submitted record = {NULL, 0};
    weft_status status;

    if (bound->batch == NULL)
        return wf_run_one(bound, sources[0], targets[0], room, stream, work, function);
    if (bound->team->group_depth > 0) return wf_run_refuse_group(bound, function);
    if (trace != NULL) {
        wf_drafts_label_batch(trace, bound);
        record = wf_record_run(trace, bound, stream);
    }
    wf_runs_begin(&bound->team->runs, bound->runs,
                  atomic_load_explicit(&bound->team->collectives, memory_order_relaxed));
    status = run_batch(bound, sources, targets, room, stream);
    if (trace != NULL) wf_trace_return(trace);
    if (status != WEFT_OK) {
        status = wf_run_failed(bound, last, status, function);
        return trace != NULL ? wf_trace_fail(trace, record, status) : status;
    }
    if (wf_comm_is_inline(bound->team, stream)) {
        wf_runs_end(&bound->team->runs);
        if (trace != NULL) wf_trace_finish(trace, record);
    }
    return work != NULL ? wf_work_record(bound->context, stream, function, work) : WEFT_OK;
}

static const char what[] = "weft_redistribute_batch";

static weft_status redistribute(weft_bound *bound, const void *const *sources, void *const *targets,
                                weft_stream *stream, weft_work **work)
{
    weft_status status;

    if (sources == NULL || targets == NULL)
        return wf_fail_null(what, sources == NULL ? "sources" : "targets");
    if (!wf_batch_fits(bound, sources, targets, bound->in_place))
        WF_TRY(wf_buffers_accept(what, bound, sources, targets));
    WF_TRY(wf_stream_check(bound->context, stream, what));
    WF_TRY(wf_scratch_enter(bound, stream, 0, what));
    status = wf_batch_run(bound, sources, targets, NULL, stream, work, what);
    wf_scratch_leave(bound);
    return status;
}

weft_status weft_redistribute_batch(weft_bound *bound, const void *const *sources,
                                    void *const *targets, weft_stream *stream, weft_work **work)
{
    weft_status status;

    if (bound == NULL || !wf_is_usable(bound->made, WF_KIND_BOUND))
        return wf_bound_refuse(bound, what);
    status = redistribute(bound, sources, targets, stream, work);
    if (status == WEFT_OK) return WEFT_OK;
    return wf_fail_tensor(status, what, bound->batch != NULL ? "batch" : "tensor",
                          wf_bound_name(bound));
}
