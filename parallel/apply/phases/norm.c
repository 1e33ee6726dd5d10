/* norm.c - layer norm and rms norm: sums of each row, and of each column for the gradients of the
 * weights. */
#include "phases.h"

/* The weights of a row belong to its last dimensions. */
static weft_status check_dims(const struct wf_phases *p)
{
    uint32_t all = (1u << weft_spec_dims(p->x)) - 1, kept = all & ~p->reduced;

    if (p->reduced != 0 && (kept & (kept + 1)) == 0) return WEFT_OK;
    return wf_phases_refuse(
        p, wf_fail(WEFT_ERR_INVALID, "the attribute dims must list the last dimensions of x"));
}

/* COUNT specs of the rows of x with size 1 in the reduced dimensions. */
static weft_status kept_rows(struct wf_phases *p, uint32_t count, weft_spec **specs)
{
    weft_status status =
        wf_rows_spec(p->x, p->reduced, true, WEFT_REDUCE_COUNT, weft_spec_dtype(p->x), &specs[0]);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    for (uint32_t i = 1; i < count; i++)
        specs[i] = weft_spec_retain(specs[0]);
    return WEFT_OK;
}

weft_status wf_phases_layer_norm(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[5] = {p->inputs[0]};
    weft_spec *specs[2];

    WF_TRY(check_dims(p));
    WF_TRY(wf_phases_align_columns(p, 1));
    WF_TRY(wf_phases_align_columns(p, 2));
    in[3] = p->inputs[1];
    in[4] = p->inputs[2];
    WF_TRY(wf_phase_reduce(p, "sum", WEFT_REDUCE_SUM, 1, in, &in[1]));
    WF_TRY(wf_phase_reduce(p, "squares", WEFT_REDUCE_SUM, 2, in, &in[2]));
    WF_TRY(kept_rows(p, 2, specs));
    WF_TRY(wf_phase(p, "moments", 2, in + 1, 2, specs, outputs + 1));
    return wf_phase_finish(p, 5, in, outputs);
}

weft_status wf_phases_rms_norm(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[3] = {p->inputs[0]};
    weft_spec *spec;

    WF_TRY(check_dims(p));
    WF_TRY(wf_phases_align_columns(p, 1));
    in[2] = p->inputs[1];
    WF_TRY(wf_phase_reduce(p, "sum_squares", WEFT_REDUCE_SUM, 1, in, &in[1]));
    WF_TRY(kept_rows(p, 1, &spec));
    WF_TRY(wf_phase(p, "moments", 1, in + 1, 1, &spec, outputs + 1));
    return wf_phase_finish(p, 3, in, outputs);
}

/* ---- backward ---- */

/* Inputs g and x in one layout, COUNT moments of the rows behind them, then the weights. */
static weft_status align_bwd(struct wf_phases *p, uint32_t count)
{
    WF_TRY(check_dims(p));
    WF_TRY(wf_phases_align(p, 1 - p->main, weft_spec_retain(p->x)));
    for (uint32_t i = 0; i < count; i++)
        WF_TRY(wf_phases_align_rows(p, 2 + i, true));
    return wf_phases_align_columns(p, 2 + count);
}

/* COUNT sums of each column, which are the gradients of weights. */
static weft_status sum_columns(struct wf_phases *p, uint32_t inputs, uint32_t count,
                               weft_tensor **out)
{
    weft_spec *specs[WF_PHASE_OUTPUTS];
    weft_status status =
        wf_columns_spec(p->x, p->reduced, WEFT_REDUCE_SUM,
                        weft_spec_dtype(weft_tensor_spec(p->inputs[0])), &specs[0]);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    for (uint32_t i = 1; i < count; i++)
        specs[i] = weft_spec_retain(specs[0]);
    WF_TRY(wf_phase(p, "weights", inputs, p->inputs, count, specs, out));
    return wf_phases_complete(p, count, out);
}

weft_status wf_phases_layer_norm_bwd(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[7];
    weft_spec *rows = NULL;
    weft_status status;

    WF_TRY(align_bwd(p, 2));
    for (int i = 0; i < 5; i++)
        in[i] = p->inputs[i];
    status = wf_rows_spec(p->x, p->reduced, false, WEFT_REDUCE_SUM, p->statistic, &rows);
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    WF_TRY(wf_phase_statistics(p, "dot", rows, 5, in, 2, in + 5));
    WF_TRY(sum_columns(p, 4, 2, outputs + 1));
    return wf_phase_finish(p, 7, in, outputs);
}

weft_status wf_phases_rms_norm_bwd(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[5];

    WF_TRY(align_bwd(p, 1));
    for (int i = 0; i < 4; i++)
        in[i] = p->inputs[i];
    WF_TRY(wf_phase_reduce(p, "dot", WEFT_REDUCE_SUM, 4, in, &in[4]));
    WF_TRY(sum_columns(p, 3, 1, outputs + 1));
    return wf_phase_finish(p, 5, in, outputs);
}
