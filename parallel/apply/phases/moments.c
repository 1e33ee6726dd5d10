/* moments.c - mean and variance: a sum, then the sum of squares about the mean. */
#include "phases.h"

#include <string.h>

weft_status wf_phases_var(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[2] = {p->inputs[0], NULL}, *sums[2];
    uint32_t count = strstr(p->op->name, "_mean") != NULL ? 2 : 1;

    WF_TRY(wf_phase_reduce(p, "sum", WEFT_REDUCE_SUM, 1, in, &sums[0]));
    in[1] = sums[0];
    WF_TRY(wf_phase_reduce(p, "squares", WEFT_REDUCE_SUM, 2, in, &sums[1]));
    return wf_phase_finish_rows(p, weft_spec_dtype(p->x), 2, sums, count, outputs);
}

/* The gradient g of one value of each row, x, and that value: nothing is communicated. */
weft_status wf_phases_rows_bwd(struct wf_phases *p, weft_tensor **outputs)
{
    WF_TRY(wf_phases_align_rows(p, 0, p->keepdim));
    WF_TRY(wf_phases_align_rows(p, 2, p->keepdim));
    return wf_phase_finish(p, 3, p->inputs, outputs);
}
