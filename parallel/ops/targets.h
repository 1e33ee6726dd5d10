/* targets.h - the layouts that strategies want of one tensor, and the time to move it.
 *
 * Many strategies want the same of a tensor.  What the rows of all axes say about it is a target;
 * each target is priced at most once.  An input is moved to its target.  An output is moved from
 * there to the layout that the caller wants, or to one without partials, if the options price
 * that. */
#ifndef WEFT_OPS_TARGETS_H
#define WEFT_OPS_TARGETS_H

#include "solve.h"

struct wf_target {
    uint64_t bound, cost; /* ns; UINT64_MAX: impossible; cost: also until it is priced */
    bool known;           /* bound and same are set */
    bool same;            /* the tensor need not be moved */
    weft_plan *move;      /* of an input, if it is priced */
};

/* The targets of one tensor. */
struct wf_targets {
    uint32_t offset[WEFT_MAX_AXES][WF_ROWS]; /* the target is the sum of the rows' offsets */
    uint32_t count;
    struct wf_target *targets; /* NULL: the tensor is absent, or its moves are not priced */
};

struct wf_pricing {
    struct wf_solver *solver;
    struct wf_strategy strategy;
    uint32_t rows[WEFT_MAX_AXES]; /* their number, per axis */
    struct wf_targets *tensors;   /* inputs, then outputs */
    uint32_t tensor_count;
    bool may_defer; /* a part may become a contribution */
};

/* Begin the targets of all tensors whose moves are priced. */
weft_status wf_pricing_begin(struct wf_pricing *p) WF_NODISCARD;
void wf_pricing_end(struct wf_pricing *p);

/* The target of TENSOR under the rows AT. */
static inline struct wf_target *wf_target_of(const struct wf_pricing *p, uint32_t tensor,
                                             const uint32_t *at)
{
    const struct wf_targets *t = &p->tensors[tensor];
    uint32_t index = 0;

    for (int32_t a = 0; a < p->solver->op.axes; a++)
        index += t->offset[a][at[a]];
    return &t->targets[index];
}

/* Set the bound of the target of TENSOR under the rows of the strategy. */
weft_status wf_target_set(struct wf_pricing *p, uint32_t tensor, struct wf_target *t) WF_NODISCARD;
/* Price the target of TENSOR under the rows of the strategy. */
weft_status wf_target_price(const struct wf_pricing *p, uint32_t tensor,
                            struct wf_target *t) WF_NODISCARD;

#endif
