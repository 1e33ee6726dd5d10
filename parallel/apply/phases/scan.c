/* scan.c - sums up to each element: the ranks exchange the sum of each run of indices they have. */
#include "phases.h"

#include "base/number.h"

weft_status wf_phases_cumsum(struct wf_phases *p, weft_tensor **outputs)
{
    uint32_t dtype = weft_spec_dtype(p->x);
    bool is_float = wf_dtype_is_float(dtype);
    int32_t dim = __builtin_ctz(p->reduced);
    weft_tensor *in[3] = {p->inputs[0], NULL, NULL};
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(wf_phase_candidates(p, "totals", wf_most_runs(p->x, dim),
                               is_float ? p->statistic : WEFT_DTYPE_I64, in + 1));
    status = weft_spec_with_dtype(p->x, is_float ? (enum weft_dtype)dtype : WEFT_DTYPE_I64, &spec);
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phase(p, "finish", 3, in, 1, &spec, outputs);
}
