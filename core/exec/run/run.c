/* run.c - runs a bound plan, without allocation and without locks. */
#include "run.h"

#include "exec/context/kept.h"

static weft_status run_pull(const struct weft_bound *bound, const struct wf_action *action,
                            const void *in, void *out, weft_stream *stream)
{
    weft_pull_args args = {.struct_size = sizeof args,
                           .dtype = action->kind.dtype,
                           .reduction = action->kind.reduction,
                           .holders = action->kind.holders,
                           .regions = action->regions,
                           .sources = action->sources,
                           .readers = action->readers,
                           .reader_count = action->reader_count,
                           .send = in,
                           .send_bytes = action->input_bytes,
                           .recv = out,
                           .stream = stream,
                           .plan = bound->plan->digest,
                           .binding = bound->binding,
                           .step = action->number,
                           .divisor = wf_divisor_of(&action->kind),
                           .served = action->served};

    if (__builtin_expect(action->from != action->to, 0)) args.dtype = action->from;
    return wf_comm_pull(action->comm, &args, action->to, action->elements);
}

static WF_HOT weft_status run_collective(const struct weft_bound *bound,
                                         const struct wf_action *action, const void *in, void *out,
                                         weft_stream *stream)
{
    weft_collective_args args = action->collective;

    args.send = in;
    args.recv = out;
    args.stream = stream;
    args.plan = bound->plan->digest;
    args.binding = bound->binding;
    args.step = action->number;
    return wf_comm_collective_step(action->comm, &args);
}

static weft_status run_packed(const struct weft_bound *bound, const struct wf_action *action,
                              const void *in, void *out, weft_stream *stream)
{
    const struct wf_packing *p = &action->packing;
    const void *sent = p->out.list != NULL ? p->out.staging : in;
    void *received = p->in.list != NULL ? p->in.staging : out;

    if (p->out.list != NULL && action->from != action->kind.dtype)
        WF_TRY(bound->kernel->regions_cast(p->out.list, action->from, action->kind.dtype, &in,
                                           &p->out.staging, stream));
    else if (p->out.list != NULL)
        WF_TRY(bound->kernel->regions_copy(p->out.list, &in, &p->out.staging, stream));
    WF_TRY(run_collective(bound, action, sent, received, stream));
    if (p->in.list == NULL) return WEFT_OK;
    return wf_arrivals_unpack(
        bound,
        &(struct wf_arrivals){p->in.list, p->arrivals, p->in.staging, p->average, action->to},
        &p->kind, &out, stream);
}

static WF_HOT weft_status run_action(const struct weft_bound *bound, const struct wf_action *action,
                                     const void *in, void *out, weft_stream *stream)
{
    if (action->filled && action->elements > 0)
        WF_TRY(bound->kernel->fill(bound->kernel_device, action->to, action->elements,
                                   action->identity, out, stream));
    if (action->type == WF_ACTION_PULL || action->type == WF_ACTION_EXCHANGE)
        WF_TRY(run_pull(bound, action, in, out, stream));
    else if (action->type == WF_ACTION_COLLECTIVE)
        WF_TRY(run_collective(bound, action, in, out, stream));
    else if (action->type == WF_ACTION_PACKED)
        WF_TRY(run_packed(bound, action, in, out, stream));
    else if (action->type == WF_ACTION_COPY && action->from != action->to)
        WF_TRY(wf_cast_run(bound, action, in, out, stream));
    else if (action->type == WF_ACTION_COPY && action->regions != NULL)
        WF_TRY(bound->kernel->regions_copy(action->regions, &in, &out, stream));
    return WEFT_OK;
}

static inline WF_HOT weft_status run_step(const struct weft_bound *bound,
                                          const struct wf_action *action, const void *source,
                                          void *target, weft_stream *stream)
{
    wf_runs_step(bound->runs, action->number, action->comm);
    return run_action(bound, action, action->from_source ? source : action->in_scratch,
                      action->to_target ? target : action->out_scratch, stream);
}

static WF_HOT weft_status run_recorded(const weft_bound *bound, const void *source, void *target,
                                       weft_stream *stream, struct wf_trace *trace)
{
    for (uint32_t i = 0; i < bound->action_count; i++) {
        const struct wf_action *action = &bound->actions[i];
        struct wf_submitted record;
        weft_status status;

        if (action->type == WF_ACTION_NONE) continue;
        record = wf_record_step(trace, bound, &action->draft, action->comm, stream);
        status = run_step(bound, action, source, target, stream);
        wf_trace_return(trace);
        if (__builtin_expect(status != WEFT_OK, 0)) {
            (void)wf_trace_fail(trace, record, status);
            return wf_step_failed(bound, action, status);
        }
        wf_record_posted(trace, bound->team, stream, record);
    }
    return WEFT_OK;
}

WF_HOT weft_status wf_run(const weft_bound *bound, const void *source, void *target,
                          weft_stream *stream)
{
    struct wf_trace *trace = wf_tracing(bound);
    weft_status status;

    if (trace != NULL) return run_recorded(bound, source, target, stream, trace);
    for (uint32_t i = 0; i < bound->action_count; i++) {
        const struct wf_action *action = &bound->actions[i];
        if (action->type == WF_ACTION_NONE) continue;
        status = run_step(bound, action, source, target, stream);
        if (__builtin_expect(status != WEFT_OK, 0)) return wf_step_failed(bound, action, status);
    }
    return WEFT_OK;
}

/* True if the target is the source, bit for bit. */
static bool changes_nothing(const weft_bound *bound)
{
    const weft_plan *plan = bound->plan;

    return plan->step_count == 0 && plan->from->layout.dtype == plan->to->layout.dtype;
}

uint64_t wf_run_room(const weft_bound *bound, const void *source, const void *target)
{
    if (source != target || bound->in_place || bound->memory.target.elements == 0 ||
        bound->may_alias || changes_nothing(bound))
        return 0;
    return bound->memory.source.bytes;
}

weft_status wf_run_aliased(const weft_bound *bound, const void *source, void *target, void *room,
                           weft_stream *stream)
{
    uint64_t bytes = wf_run_room(bound, source, target);

    if (source == target && !bound->in_place && changes_nothing(bound)) return WEFT_OK;
    if (bytes == 0) return wf_run(bound, source, target, stream);
    WF_TRY(bound->device_table->copy(bound->device, room, source, bytes, stream));
    return wf_run(bound, room, target, stream);
}

WF_HOT weft_status wf_run_recorded(const weft_bound *bound, const void *source, void *target,
                                   void *room, weft_stream *stream, const char *function)
{
    struct wf_trace *trace = bound->context->trace;
    struct wf_submitted record = wf_record_run(trace, bound, stream);
    weft_status status = wf_run_unrecorded(bound, source, target, room, stream, function);

    wf_trace_return(trace);
    if (__builtin_expect(status != WEFT_OK, 0)) return wf_trace_fail(trace, record, status);
    if (wf_comm_is_inline(bound->team, stream)) wf_trace_finish(trace, record);
    return WEFT_OK;
}

static inline weft_status redistribute(weft_bound *bound, const void *source, void *target,
                                       weft_stream *stream, weft_work **work)
{
    weft_status status;

    if (bound->batch != NULL)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_redistribute: the plan is a batch of %u tensors; call weft_redistribute_batch",
            bound->plan->member_count);
    if (bound->examined ||
        !wf_buffers_fit(bound->parent, &bound->memory, source, target, bound->in_place))
        WF_TRY(wf_buffers_accept("weft_redistribute", bound, &source, &target));
    WF_TRY(wf_stream_check(bound->context, stream, "weft_redistribute"));
    WF_TRY(wf_scratch_enter(bound, stream, 0, "weft_redistribute"));
    status = wf_run_one(bound, source, target, NULL, stream, work, "weft_redistribute");
    wf_scratch_leave(bound);
    return status;
}

WF_HOT weft_status weft_redistribute(weft_bound *bound, const void *source, void *target,
                                     weft_stream *stream, weft_work **work)
{
    weft_status status;

    if (bound == NULL || !wf_is_usable(bound->made, WF_KIND_BOUND))
        return wf_bound_refuse(bound, "weft_redistribute");
    status = redistribute(bound, source, target, stream, work);
    if (__builtin_expect(status == WEFT_OK, 1)) return WEFT_OK;
    return wf_fail_tensor(status, "weft_redistribute", "tensor", wf_bound_name(bound));
}
