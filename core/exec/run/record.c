/* record.c - runs of bound plans and their steps as records of the trace.  What is constant in them
 * is set when the plan is bound. */
#include "comm/recording.h"
#include "exec/context/kept.h"

#include <stdio.h>
#include <string.h>

/* "tp", "dp,tp"; an axis without a name is its number. */
static uint32_t intern_axes(struct wf_trace *trace, const struct wf_step *step)
{
    const weft_mesh *mesh = step->from->layout.mesh;
    char text[256] = "";
    size_t used = 0;

    for (int32_t axis = 0; axis < mesh->axes && used < sizeof text; axis++) {
        const char *name = weft_mesh_axis_name(mesh, axis), *comma = used > 0 ? "," : "";
        char number[12];

        if ((step->axes >> axis & 1) == 0) continue;
        snprintf(number, sizeof number, "%d", axis);
        if (name == NULL || name[0] == '\0') name = number;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", comma, name);
    }
    return wf_trace_intern(trace, text);
}

/* The operation that a step is for the backend. */
static enum weft_record_operation operation_of(const struct wf_action *action)
{
    switch (action->type) {
    case WF_ACTION_PULL:
    case WF_ACTION_EXCHANGE:
        return WEFT_RECORD_PULL;
    case WF_ACTION_COLLECTIVE:
        return (enum weft_record_operation)action->collective.collective;
    case WF_ACTION_PACKED:
        return (enum weft_record_operation)action->packing.collective;
    default:
        return WEFT_RECORD_COPY;
    }
}

static void set_step(const struct weft_bound *bound, struct wf_action *action, uint32_t label)
{
    struct wf_trace *trace = bound->context->trace;
    weft_comm *comm = action->comm;

    if (trace->export != NULL && action->number > 0)
        wf_export_predict(trace->export, bound->plan->digest, action->number,
                          action->step->cost_ns);
    action->draft = (weft_record){
        .comm = comm != NULL ? comm->number : 0,
        .sent = action->input_bytes,
        .received = action->elements * wf_dtype_bytes(action->to),
        .plan = bound->plan->digest,
        .binding = bound->binding,
        .step = (uint16_t)action->number,
        .operation = (uint8_t)operation_of(action),
        .step_kind = action->number > 0 ? (uint8_t)action->step->kind : WEFT_NO_STEP_KIND,
        .dtype = (uint8_t)action->kind.dtype,
        .reduction = (uint8_t)action->kind.reduction,
        .peer = -1,
        .comm_name = comm != NULL ? comm->name_text : 0,
        .axes = intern_axes(trace, action->step),
        .label = label,
    };
}

static void set_steps(struct weft_bound *bound, uint32_t label)
{
    for (uint32_t i = 0; i < bound->action_count; i++)
        if (bound->actions[i].type != WF_ACTION_NONE) set_step(bound, &bound->actions[i], label);
}

static void set_exchange(const struct weft_bound *bound, struct wf_fused *fused, uint32_t label)
{
    struct wf_export *export = bound->context->trace->export;

    if (!fused->member || fused->comm == NULL) return;
    if (export != NULL)
        wf_export_predict(export, bound->plan->digest, 1, bound->plan->steps[0].cost_ns);
    fused->draft = (weft_record){
        .comm = fused->comm->number,
        .sent = fused->send_bytes,
        .received = fused->receive_bytes,
        .plan = bound->plan->digest,
        .binding = bound->binding,
        .step = 1,
        .operation = WEFT_RECORD_ALL_TO_ALL_V,
        .step_kind = WEFT_STEP_EXCHANGE,
        .dtype = WEFT_DTYPE_U8,
        .peer = -1,
        .comm_name = fused->comm->name_text,
        .label = label,
    };
}

/* Bytes of all tensors of BOUND on this rank. */
static void add_bytes(const struct weft_bound *bound, weft_record *draft)
{
    uint32_t count = bound->batch != NULL ? bound->plan->member_count : 1;

    for (uint32_t i = 0; i < count; i++) {
        const struct wf_memory *memory = wf_bound_memory(bound, i);

        draft->sent += memory->source.elements * wf_dtype_bytes(memory->source.dtype);
        draft->received += memory->target.elements * wf_dtype_bytes(memory->target.dtype);
    }
}

void wf_drafts_set(struct weft_bound *bound, const char *name)
{
    struct wf_trace *trace = bound->context->trace;
    uint32_t label = wf_trace_intern(trace, name);
    char text[WF_RUNS_TEXT];

    wf_plan_name(bound->plan, false, text, sizeof text);
    bound->draft = (weft_record){
        .comm = bound->team->number,
        .plan = bound->plan->digest,
        .binding = bound->binding,
        .operation = WEFT_RECORD_REDISTRIBUTE,
        .step_kind = WEFT_NO_STEP_KIND,
        .peer = -1,
        .comm_name = bound->team->name_text,
    };
    bound->label = bound->draft.label = label != 0 ? label : wf_trace_intern(trace, text);
    bound->is_named = label != 0;
    add_bytes(bound, &bound->draft);
    if (trace->export != NULL)
        wf_export_predict(trace->export, bound->plan->digest, 0, bound->plan->cost_ns);
    if (bound->batch == NULL) {
        set_steps(bound, label);
        return;
    }
    set_exchange(bound, &bound->batch->fused, label);
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        if (bound->batch->alone[i] != NULL) set_steps(bound->batch->alone[i], label);
}

/* ---- labels of moves ---- */

/* True if LABEL is what wf_label_intern makes of MADE_FOR and NAME. */
static bool is_label(const char *label, const char *made_for, const char *name)
{
    if (made_for != NULL) {
        size_t length = strlen(made_for);

        if (strncmp(label, made_for, length) != 0) return false;
        label += length;
        if (name == NULL || name[0] == '\0') return label[0] == '\0';
        if (label[0] != ':' || label[1] != ' ') return false;
        label += 2;
    }
    return strcmp(label, name != NULL ? name : "") == 0;
}

uint32_t wf_label_intern(struct wf_trace *trace, const char *made_for, const char *name)
{
    bool has_name = name != NULL && name[0] != '\0';
    char text[512];

    if (made_for == NULL) return wf_trace_intern(trace, name);
    snprintf(text, sizeof text, "%.127s%s%s", made_for, has_name ? ": " : "", has_name ? name : "");
    return wf_trace_intern(trace, text);
}

/* In the steady state the label is that of the run before, and nothing is locked. */
static void relabel_steps(struct wf_trace *trace, struct weft_bound *bound, const char *made_for,
                          const char *name)
{
    uint32_t label;

    if (bound == NULL || bound->action_count == 0) return;
    if (is_label(wf_trace_text(trace, bound->actions[0].draft.label), made_for, name)) return;
    label = wf_label_intern(trace, made_for, name);
    for (uint32_t i = 0; i < bound->action_count; i++)
        bound->actions[i].draft.label = label;
}

void wf_drafts_label(struct wf_trace *trace, struct weft_bound *bound, const char *made_for,
                     const char *name)
{
    bool is_own = made_for == NULL && (name == NULL || name[0] == '\0');

    relabel_steps(trace, bound, made_for, name);
    if (is_own)
        bound->draft.label = bound->label;
    else if (!is_label(wf_trace_text(trace, bound->draft.label), made_for, name))
        bound->draft.label = wf_label_intern(trace, made_for, name);
    bound->is_labelled = !is_own;
}

void wf_drafts_label_batch(struct wf_trace *trace, struct weft_bound *bound)
{
    struct wf_batch *batch = bound->batch;
    const weft_move_item *named = batch->named;

    if (named == NULL || batch->is_labelled) return;
    for (uint32_t i = 0; i < bound->plan->member_count; i++)
        relabel_steps(trace, batch->alone[i], batch->made_for, named[i].name);
    if (batch->made_for == NULL)
        bound->draft.label = bound->label;
    else if (!is_label(wf_trace_text(trace, bound->draft.label), batch->made_for, NULL))
        bound->draft.label = wf_label_intern(trace, batch->made_for, NULL);
    if (batch->fused.member && batch->fused.comm != NULL)
        batch->fused.draft.label = batch->made_for != NULL ? bound->draft.label : 0;
    batch->is_labelled = batch->made_for == NULL;
}

/* ---- runs and steps ---- */

static void place(weft_record *draft, const weft_bound *bound, const void *stream)
{
    draft->stream = wf_stream_number(bound->context, stream);
    if (!bound->team->done_on_return || stream != NULL)
        draft->flags = (uint8_t)(draft->flags | WEFT_RECORD_ON_STREAM);
}

struct wf_submitted wf_record_bind(struct wf_trace *trace, const weft_plan *plan,
                                   const struct wf_bind_call *call)
{
    bool is_one = call->named != NULL && plan != NULL && plan->members == NULL;
    const char *name = is_one ? call->named[0].name : call->given.name;

    if (name == NULL) name = call->function;

    return wf_trace_submit(trace, NULL, WF_CALL_PLANNED,
                           &(weft_record){
                               .comm = call->team->number,
                               .plan = plan != NULL ? plan->digest : 0,
                               .operation = WEFT_RECORD_PLAN,
                               .step_kind = WEFT_NO_STEP_KIND,
                               .flags = call->is_cached ? WEFT_RECORD_CACHED : 0,
                               .peer = -1,
                               .comm_name = call->team->name_text,
                               .label = wf_trace_intern(trace, name),
                           });
}

WF_HOT struct wf_submitted wf_record_run(struct wf_trace *trace, const weft_bound *bound,
                                         const void *stream)
{
    weft_record draft = bound->draft;
    struct wf_submitted submitted;

    if (bound->is_cached && atomic_load_explicit(&bound->runs->begun, memory_order_relaxed) > 0)
        draft.flags = WEFT_RECORD_CACHED;
    if (wf_exec_state(bound->context)->moves.implicit)
        draft.flags = (uint8_t)(draft.flags | WEFT_RECORD_IMPLICIT);
    place(&draft, bound, stream);
    submitted = wf_trace_submit(trace, wf_record_chain(trace, bound->team, stream, draft.stream),
                                WF_CALL_REDISTRIBUTES, &draft);
    bound->runs->record = (uint32_t)submitted.id;
    if ((draft.flags & WEFT_RECORD_ON_STREAM) != 0 &&
        __builtin_expect(bound->context->timing != NULL, 0))
        wf_timing_contain(bound->context->timing, stream, submitted);
    return submitted;
}

WF_HOT struct wf_submitted wf_record_step(struct wf_trace *trace, const weft_bound *bound,
                                          const weft_record *constant, weft_comm *comm,
                                          const void *stream)
{
    weft_record draft = *constant;

    draft.parent = bound->runs->record;
    place(&draft, bound, stream);
    if (comm == NULL) {
        struct wf_submitted submitted =
            wf_trace_submit(trace, wf_record_chain(trace, bound->team, stream, draft.stream),
                            WF_CALL_SUBMITTED, &draft);

        if ((draft.flags & WEFT_RECORD_ON_STREAM) != 0 &&
            __builtin_expect(bound->context->timing != NULL, 0))
            wf_timing_submit(bound->context->timing, NULL, stream, submitted);
        return submitted;
    }
    draft.sequence = atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1;
    return wf_record_submit(trace, comm, stream, &draft);
}
