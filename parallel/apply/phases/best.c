/* best.c - the largest or smallest elements of each row with their global indices: each rank finds
 * its candidates, and every rank picks among those of all. */
#include "phases.h"

#include "ops/bind/attrs.h"

#include <string.h>

weft_status wf_phase_candidates(struct wf_phases *p, const char *phase, int64_t slots,
                                uint32_t dtype, weft_tensor **pairs)
{
    const uint32_t dtypes[2] = {dtype, WEFT_DTYPE_I64};
    weft_spec *parts[2] = {NULL}, *whole[2] = {NULL};
    weft_status status = WEFT_OK;

    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        status = wf_candidates_spec(p->x, p->reduced, slots, true, dtypes[i], &parts[i]);
        if (status == WEFT_OK)
            status = wf_candidates_spec(p->x, p->reduced, slots, false, dtypes[i], &whole[i]);
    }
    if (status == WEFT_OK) {
        status = wf_phase(p, phase, 1, p->inputs, 2, parts, pairs);
        if (status == WEFT_OK) return wf_phases_move(p, 2, pairs, whole);
    } else {
        status = wf_phases_give_up(p, status);
    }
    for (int i = 0; i < 2; i++) {
        weft_spec_release(&parts[i]);
        weft_spec_release(&whole[i]);
    }
    return status;
}

static bool has_values(const struct wf_phases *p)
{
    return strncmp(p->op->name, "arg", 3) != 0;
}

/* The phase "pick": the outputs have the layouts SPECS, of the values and of the indices. */
static weft_status pick(struct wf_phases *p, weft_tensor **pairs, weft_status status,
                        weft_spec **specs, weft_tensor **outputs)
{
    uint32_t first = has_values(p) ? 0 : 1;

    if (first == 1 || status != WEFT_OK) weft_spec_release(&specs[0]);
    if (status == WEFT_OK) return wf_phase(p, "pick", 2, pairs, 2 - first, specs + first, outputs);
    weft_spec_release(&specs[1]);
    return wf_phases_give_up(p, status);
}

weft_status wf_phases_best(struct wf_phases *p, weft_tensor **outputs)
{
    weft_spec *specs[2] = {NULL};
    weft_tensor *pairs[2];
    weft_status status;

    if (wf_rows_length(p->x, p->reduced) == 0)
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID, "its rows have no elements"));
    WF_TRY(wf_phase_candidates(p, "candidates", 1, weft_spec_dtype(p->x), pairs));
    status = wf_rows_spec(p->x, p->reduced, p->keepdim, WEFT_REDUCE_COUNT, weft_spec_dtype(p->x),
                          &specs[0]);
    if (status == WEFT_OK)
        status = wf_rows_spec(p->x, p->reduced, p->keepdim, WEFT_REDUCE_COUNT, WEFT_DTYPE_I64,
                              &specs[1]);
    return pick(p, pairs, status, specs, outputs);
}

weft_status wf_phases_topk(struct wf_phases *p, weft_tensor **outputs)
{
    int32_t dim = __builtin_ctz(p->reduced);
    int64_t k = -1, size = weft_spec_shape(p->x)[dim], most = wf_largest_part(p->x, dim);
    weft_spec *specs[2] = {NULL};
    weft_tensor *pairs[2];
    weft_status status;

    if (wf_attr_int(&p->call, "k", &k) && (k < 0 || k > size))
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                           "attribute k is %lld; it must be from 0 to %lld",
                                           (long long)k, (long long)size));
    if (k < 0)
        return wf_phases_refuse(p, wf_fail(WEFT_ERR_INVALID,
                                           "it needs the attribute k, an integer from 0 to %lld",
                                           (long long)size));
    WF_TRY(wf_phase_candidates(p, "candidates", k < most ? k : most, weft_spec_dtype(p->x), pairs));
    status = wf_resized_spec(p->x, dim, k, weft_spec_dtype(p->x), &specs[0]);
    if (status == WEFT_OK) status = wf_resized_spec(p->x, dim, k, WEFT_DTYPE_I64, &specs[1]);
    return pick(p, pairs, status, specs, outputs);
}
