/* phase.c - one phase of an operator: its outputs, the kernel on each shard, and the move of its
 * statistics over the axes. */
#include "phases.h"

#include "base/number.h"
#include "ops/bind/specs.h"

#include <stdio.h>
#include <string.h>

weft_status wf_phases_refuse(const struct wf_phases *p, weft_status status)
{
    return wf_fail_context(status, "%s: operator %.100s", WF_PHASES_FUNCTION, p->call.name);
}

weft_status wf_phases_give_up(const struct wf_phases *p, weft_status status)
{
    status = wf_fail_context(status, "operator %.100s", p->call.name);
    return weft_comm_fail(weft_world(p->context), WF_PHASES_FUNCTION, status);
}

void wf_phases_hold(struct wf_phases *p, weft_tensor *tensor)
{
    p->held[p->held_count++] = tensor;
}

static void release_specs(uint32_t count, weft_spec **specs)
{
    for (uint32_t i = 0; i < count; i++)
        weft_spec_release(&specs[i]);
}

/* Make tensors of the layouts SPECS. */
static weft_status make(struct wf_phases *p, uint32_t count, weft_spec **specs, weft_tensor **out)
{
    for (uint32_t i = 0; i < count; i++) {
        weft_status status = wf_tensor_new(p->context, specs[i], "", p->stream, &out[i]);

        if (status != WEFT_OK) return wf_phases_give_up(p, status);
        wf_phases_hold(p, out[i]);
    }
    return WEFT_OK;
}

/* ---- the kernel ---- */

/* What a rank without elements contributes to SPEC: the identity of a partial, or candidates that
 * are none. */
static void absent_element(const weft_spec *spec, unsigned char element[16])
{
    const weft_placement *placements = weft_spec_placements(spec);
    enum weft_dtype dtype = weft_spec_dtype(spec);

    memset(element, dtype == WEFT_DTYPE_I64 ? 0xff : 0, 16);
    for (int32_t a = 0; a < wf_spec_axes(spec); a++)
        if (placements[a].kind == WEFT_PLACE_PARTIAL)
            wf_element_identity(dtype, placements[a].reduction, element);
}

static weft_status fill_absent(struct wf_phases *p, int32_t rank, uint32_t outputs,
                               weft_tensor **out)
{
    for (uint32_t i = 0; i < outputs; i++) {
        _Alignas(16) unsigned char element[16];

        absent_element(weft_tensor_spec(out[i]), element);
        WF_TRY(wf_shard_fill(out[i], rank, element, p->stream));
    }
    return WEFT_OK;
}

/* The tensors of one phase: inputs, then outputs. */
struct tensors {
    uint32_t inputs, outputs;
    weft_tensor *all[WF_PHASE_INPUTS + WF_PHASE_OUTPUTS];
};

static weft_status call_kernel(struct wf_phases *p, const char *phase, int32_t rank,
                               const struct tensors *t, const weft_tensor_local *locals)
{
    char name[128], where[32] = "";
    weft_op_run run = {.struct_size = sizeof run,
                       .name = name,
                       .context = p->context,
                       .stream = p->stream,
                       .rank = rank,
                       .input_count = t->inputs,
                       .output_count = t->outputs,
                       .local_size = sizeof *locals,
                       .attr_size = sizeof(weft_op_attr),
                       .attr_count = p->call.attr_count,
                       .inputs = locals,
                       .outputs = locals + t->inputs,
                       .attrs = p->call.attrs,
                       .count = (double)wf_rows_length(p->x, p->reduced)};
    uint64_t failures = wf_failure_count();
    weft_status status;

    snprintf(name, sizeof name, "%s.%s", p->op->name, phase);
    status = p->kernel(p->user, &run);
    if (status == WEFT_OK) return WEFT_OK;
    if (p->state->is_simulated) snprintf(where, sizeof where, " on rank %d", rank);
    snprintf(name, sizeof name, "phase %s: the kernel%s", phase, where);
    return wf_fail_callback(status, failures, name);
}

static weft_status compute(struct wf_phases *p, const char *phase, int32_t rank, struct tensors *t)
{
    weft_tensor_local locals[WF_PHASE_INPUTS + WF_PHASE_OUTPUTS];
    bool wanted = false;

    WF_TRY(weft_tensors_lend(p->context, rank, t->inputs + t->outputs, t->all, t->inputs, p->stream,
                             locals, sizeof locals[0]));
    for (uint32_t i = 0; i < t->outputs; i++)
        wanted = wanted || locals[t->inputs + i].shard->elements > 0;
    if (!wanted) return WEFT_OK;
    if (locals[0].shard->elements == 0) return fill_absent(p, rank, t->outputs, t->all + t->inputs);
    return call_kernel(p, phase, rank, t, locals);
}

/* Call the kernel for the tensors OUT. */
static weft_status run_kernel(struct wf_phases *p, const char *phase, uint32_t inputs,
                              weft_tensor *const *in, uint32_t outputs, weft_tensor **out)
{
    struct tensors t = {.inputs = inputs, .outputs = outputs};

    memcpy(t.all, in, inputs * sizeof *in);
    memcpy(t.all + inputs, out, outputs * sizeof *out);
    for (int32_t rank = p->state->first_rank; rank < p->state->last_rank; rank++) {
        weft_status status = compute(p, phase, rank, &t);

        if (status != WEFT_OK) return wf_phases_give_up(p, status);
    }
    return WEFT_OK;
}

weft_status wf_phase(struct wf_phases *p, const char *phase, uint32_t inputs,
                     weft_tensor *const *in, uint32_t outputs, weft_spec **specs, weft_tensor **out)
{
    weft_status status = make(p, outputs, specs, out);

    release_specs(outputs, specs);
    WF_TRY(status);
    return run_kernel(p, phase, inputs, in, outputs, out);
}

/* ---- moves ---- */

weft_status wf_phases_move(struct wf_phases *p, uint32_t count, weft_tensor **tensors,
                           weft_spec **specs)
{
    weft_tensor *targets[WF_PHASE_OUTPUTS];
    weft_status status = WEFT_OK;

    if (specs[0] == weft_tensor_spec(tensors[0])) { /* nothing is reduced */
        release_specs(count, specs);
        return WEFT_OK;
    }
    status = make(p, count, specs, targets);
    release_specs(count, specs);
    WF_TRY(status);
    status = weft_tensors_move_into(count, tensors, targets, NULL, p->stream, NULL);
    if (status != WEFT_OK) return wf_move_refuse(status, WF_PHASES_FUNCTION, p->call.name);
    memcpy(tensors, targets, count * sizeof *tensors);
    return WEFT_OK;
}

weft_status wf_phases_complete(struct wf_phases *p, uint32_t count, weft_tensor **tensors)
{
    weft_spec *specs[WF_PHASE_OUTPUTS] = {NULL};

    for (uint32_t i = 0; i < count; i++) {
        weft_status status = wf_complete_spec(weft_tensor_spec(tensors[i]), &specs[i]);

        if (status == WEFT_OK) continue;
        release_specs(i, specs);
        return wf_phases_give_up(p, status);
    }
    return wf_phases_move(p, count, tensors, specs);
}

/* ---- phases of a kind ---- */

/* COUNT specs of the rows of x. */
static weft_status rows_specs(struct wf_phases *p, bool keep, uint32_t reduction, uint32_t dtype,
                              uint32_t count, weft_spec **specs)
{
    weft_status status = wf_rows_spec(p->x, p->reduced, keep, reduction, dtype, &specs[0]);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    for (uint32_t i = 1; i < count; i++)
        specs[i] = weft_spec_retain(specs[0]);
    return WEFT_OK;
}

/* Set OUT to the COUNT statistics in STACK: views of its first dimension. */
static weft_status unstack(struct wf_phases *p, weft_tensor *stack, uint32_t count,
                           weft_tensor **out)
{
    const weft_spec *spec = weft_tensor_spec(stack);

    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *slice = NULL;
        weft_status status = weft_tensor_narrow(stack, 0, i, 1, &slice);

        if (status == WEFT_OK)
            status = weft_tensor_reshape(slice, weft_spec_dims(spec) - 1, weft_spec_shape(spec) + 1,
                                         &out[i]);
        weft_tensor_release(&slice);
        if (status != WEFT_OK) return wf_phases_give_up(p, status);
        wf_phases_hold(p, out[i]);
    }
    return WEFT_OK;
}

weft_status wf_phase_statistics(struct wf_phases *p, const char *phase, weft_spec *spec,
                                uint32_t inputs, weft_tensor *const *in, uint32_t outputs,
                                weft_tensor **out)
{
    weft_tensor *stack = NULL;
    weft_spec *stacked = NULL;
    weft_status status = wf_stacked_spec(spec, outputs, &stacked);

    weft_spec_release(&spec);
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    status = make(p, 1, &stacked, &stack);
    weft_spec_release(&stacked);
    WF_TRY(status);
    WF_TRY(unstack(p, stack, outputs, out));
    WF_TRY(run_kernel(p, phase, inputs, in, outputs, out));
    WF_TRY(wf_phases_complete(p, 1, &stack));
    return unstack(p, stack, outputs, out);
}

weft_status wf_phase_reduce(struct wf_phases *p, const char *phase, uint32_t reduction,
                            uint32_t inputs, weft_tensor *const *in, weft_tensor **out)
{
    weft_spec *spec;

    WF_TRY(rows_specs(p, false, reduction, p->statistic, 1, &spec));
    WF_TRY(wf_phase(p, phase, inputs, in, 1, &spec, out));
    return wf_phases_complete(p, 1, out);
}

weft_status wf_phase_finish(struct wf_phases *p, uint32_t inputs, weft_tensor *const *in,
                            weft_tensor **out)
{
    weft_spec *spec = weft_spec_retain(p->x);

    return wf_phase(p, "finish", inputs, in, 1, &spec, out);
}

weft_status wf_phase_finish_rows(struct wf_phases *p, uint32_t dtype, uint32_t inputs,
                                 weft_tensor *const *in, uint32_t outputs, weft_tensor **out)
{
    weft_spec *specs[WF_PHASE_OUTPUTS];

    WF_TRY(rows_specs(p, p->keepdim, WEFT_REDUCE_COUNT, dtype, outputs, specs));
    return wf_phase(p, "finish", inputs, in, outputs, specs, out);
}
