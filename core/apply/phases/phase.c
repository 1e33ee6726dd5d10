/* phase.c - one phase of an operator: its outputs, the kernel on each shard, and the move of its
 * statistics over the axes. */
#include "phases.h"

#include "exec/bound.h"

#include <stdio.h>
#include <string.h>

weft_status wf_phases_refuse(const struct wf_phases *p, weft_status status)
{
    return wf_fail_context(status, "%s: operator %.100s", WF_PHASES_FUNCTION, p->call.name);
}

weft_status wf_phases_give_up(const struct wf_phases *p, weft_status status)
{
    status = wf_fail_context(status, "operator %.100s", p->call.name);
    return wf_carrier_of(p->context)->give_up(p->context, status, WF_PHASES_FUNCTION);
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
        weft_status status =
            wf_tensor_make(p->context, specs[i], NULL, p->stream, WF_PHASES_FUNCTION, &out[i]);

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
    const struct wf_layout *layout = &spec->layout;

    memset(element, layout->dtype == WEFT_DTYPE_I64 ? 0xff : 0, 16);
    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_PARTIAL)
            wf_element_identity(layout->dtype, layout->placements[a].reduction, element);
}

static weft_status fill_absent(struct wf_phases *p, int32_t local, uint32_t outputs,
                               weft_tensor **out)
{
    for (uint32_t i = 0; i < outputs; i++) {
        _Alignas(16) unsigned char element[16];

        absent_element(out[i]->spec, element);
        WF_TRY(wf_local_fill(out[i], &out[i]->locals[local], element, p->stream));
    }
    return WEFT_OK;
}

static weft_op_local local_of(const weft_tensor *tensor, int32_t local, bool is_written)
{
    const struct wf_local *one;

    if (tensor == NULL) return (weft_op_local){0};
    one = &tensor->locals[local];
    return (weft_op_local){tensor->spec, &one->shard, one->strides, one->memory, is_written};
}

static weft_status call_kernel(struct wf_phases *p, const char *phase, int32_t local,
                               uint32_t inputs, weft_tensor *const *in, uint32_t outputs,
                               weft_tensor **out)
{
    weft_op_local locals[WF_PHASE_INPUTS + WF_PHASE_OUTPUTS];
    char name[128], rank[32] = "";
    weft_op_run run = {.struct_size = sizeof run,
                       .name = name,
                       .context = p->context,
                       .stream = p->stream,
                       .rank = out[0]->locals[local].rank,
                       .input_count = inputs,
                       .output_count = outputs,
                       .attr_count = p->call.attr_count,
                       .inputs = locals,
                       .outputs = locals + inputs,
                       .attrs = p->call.attrs,
                       .count = (double)wf_rows_length(p->x, p->reduced)};
    uint64_t failures = wf_failure_count();
    weft_status status;

    snprintf(name, sizeof name, "%s.%s", p->op->name, phase);
    for (uint32_t i = 0; i < inputs; i++)
        locals[i] = local_of(in[i], local, false);
    for (uint32_t i = 0; i < outputs; i++)
        locals[inputs + i] = local_of(out[i], local, true);
    status = p->kernel(p->user, &run);
    if (status == WEFT_OK) return WEFT_OK;
    if (p->context->is_simulated) snprintf(rank, sizeof rank, " on rank %d", run.rank);
    snprintf(name, sizeof name, "phase %s: the kernel%s", phase, rank);
    return wf_fail_callback(status, failures, name);
}

static weft_status compute(struct wf_phases *p, const char *phase, int32_t local, uint32_t inputs,
                           weft_tensor *const *in, uint32_t outputs, weft_tensor **out)
{
    bool wanted = false;

    for (uint32_t i = 0; i < outputs; i++)
        wanted = wanted || out[i]->locals[local].shard.elements > 0;
    if (!wanted) return WEFT_OK;
    if (in[0]->locals[local].shard.elements == 0) return fill_absent(p, local, outputs, out);
    return call_kernel(p, phase, local, inputs, in, outputs, out);
}

/* Call the kernel for the tensors OUT. */
static weft_status run_kernel(struct wf_phases *p, const char *phase, uint32_t inputs,
                              weft_tensor *const *in, uint32_t outputs, weft_tensor **out)
{
    for (uint32_t i = 0; i < inputs; i++)
        if (in[i] != NULL) wf_tensor_use(in[i], p->stream);
    for (int32_t i = 0; i < out[0]->local_count; i++) {
        weft_status status = compute(p, phase, i, inputs, in, outputs, out);

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

    if (specs[0] == tensors[0]->spec) { /* nothing is reduced */
        release_specs(count, specs);
        return WEFT_OK;
    }
    status = make(p, count, specs, targets);
    release_specs(count, specs);
    WF_TRY(status);
    status = wf_tensors_move_into(count, tensors, targets, p->stream, NULL, WF_PHASES_FUNCTION);
    if (status != WEFT_OK) return wf_phases_refuse(p, status);
    memcpy(tensors, targets, count * sizeof *tensors);
    return WEFT_OK;
}

weft_status wf_phases_complete(struct wf_phases *p, uint32_t count, weft_tensor **tensors)
{
    weft_spec *specs[WF_PHASE_OUTPUTS] = {NULL};

    for (uint32_t i = 0; i < count; i++) {
        weft_status status = wf_complete_spec(tensors[i]->spec, &specs[i]);

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
    const struct wf_layout *layout = &stack->spec->layout;

    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *slice = NULL;
        weft_status status = weft_tensor_narrow(stack, 0, i, 1, &slice);

        if (status == WEFT_OK)
            status = weft_tensor_reshape(slice, layout->dims - 1, layout->shape + 1, &out[i]);
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
