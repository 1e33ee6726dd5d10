/* softmax.c - softmax and its relatives: a maximum and a sum of each row. */
#include "phases.h"

/* Set MAX_SUM to the maximum of each row and to the sum of exponentials of the differences. */
static weft_status max_and_sum(struct wf_phases *p, weft_tensor **max_sum)
{
    weft_tensor *in[2] = {p->inputs[0], NULL};

    WF_TRY(wf_phase_reduce(p, "max", WEFT_REDUCE_MAX, 1, in, &max_sum[0]));
    in[1] = max_sum[0];
    return wf_phase_reduce(p, "sum_exp", WEFT_REDUCE_SUM, 2, in, &max_sum[1]);
}

weft_status wf_phases_softmax(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[3] = {p->inputs[0], NULL, NULL};

    WF_TRY(max_and_sum(p, in + 1));
    return wf_phase_finish(p, 3, in, outputs);
}

weft_status wf_phases_softmax_bwd(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *in[3] = {NULL};

    WF_TRY(wf_phases_align(p, 1 - p->main, weft_spec_retain(p->x)));
    in[0] = p->inputs[0];
    in[1] = p->inputs[1];
    WF_TRY(wf_phase_reduce(p, "dot", WEFT_REDUCE_SUM, 2, in, &in[2]));
    return wf_phase_finish(p, 3, in, outputs);
}

weft_status wf_phases_logsumexp(struct wf_phases *p, weft_tensor **outputs)
{
    weft_tensor *max_sum[2];

    WF_TRY(max_and_sum(p, max_sum));
    return wf_phase_finish_rows(p, weft_spec_dtype(p->x), 2, max_sum, 1, outputs);
}
