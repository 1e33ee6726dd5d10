/* chain.h - a call of an operator that is made of others, while it is solved. */
#ifndef WEFT_OPS_CHAIN_H
#define WEFT_OPS_CHAIN_H

#include "solve.h"

struct wf_chain {
    const weft_op_call *call;
    const weft_op_options *options;
    weft_plan_options plan; /* of the moves that are allowed */
    struct wf_op_step steps[WF_OP_STEPS];
    uint32_t step_count;
    const struct wf_rule *rule;
};

/* One strategy of each part, and the time of the moves. */
struct wf_chain_best {
    bool found;
    weft_op_choice *parts[WF_OP_STEPS];
    uint64_t cost_ns, output_ns; /* of all moves, and of those of outputs */
};

/* The time to move input INDEX of the call to SPEC; UINT64_MAX: that is not allowed. */
weft_status wf_chain_price(const struct wf_chain *c, uint32_t index, const weft_spec *spec,
                           uint64_t *ns) WF_NODISCARD;
/* All strategies of STEP that read BEFORE, the result of the step before, as it is.  NEXT: the
 * first input of the call that the step reads. */
weft_status wf_chain_list_step(const struct wf_chain *c, uint32_t step, const weft_spec *before,
                               uint32_t next, weft_op_list **out) WF_NODISCARD;
/* The time of the moves of outputs of strategy LAST of the last part; UINT64_MAX: the options
 * exclude them. */
weft_status wf_chain_price_outputs(const struct wf_chain *c, const weft_op_choice *last,
                                   uint64_t *ns) WF_NODISCARD;

/* ---- chain_search.c ---- */

/* Find the cheapest strategies of all parts.  The caller ends *OUT, also after a failure. */
weft_status wf_chain_search(const struct wf_chain *c, struct wf_chain_best *out) WF_NODISCARD;
void wf_chain_best_end(struct wf_chain_best *best);

#endif
