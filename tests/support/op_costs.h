/* op_costs.h - what strategies of an operator cost. */
#ifndef WEFT_TESTS_OP_COSTS_H
#define WEFT_TESTS_OP_COSTS_H

#include "plan/plan.h"
#include "support/ops.h"
#include "support/suite.h"

/* The time to move the inputs of O to those of CHOICE; UINT64_MAX if an input cannot be moved, or
 * if a split input would become partial and MAY_DEFER is false. */
static inline uint64_t op_inputs_cost(const op_text *o, const weft_op_choice *choice,
                                      bool may_defer)
{
    uint64_t cost = 0;

    for (uint32_t i = 0; i < o->call.input_count; i++) {
        const weft_spec *to = weft_op_choice_input(choice, i);
        OWNED(weft_plan) *plan = NULL;
        bool defers = false;

        for (int32_t a = 0; a < weft_mesh_axes(o->mesh); a++)
            defers = defers || (wf_placement_splits(&o->inputs[i]->layout.placements[a]) &&
                                to->layout.placements[a].kind == WEFT_PLACE_PARTIAL);
        if ((defers && !may_defer) || weft_plan_create(o->inputs[i], to, NULL, &plan) != WEFT_OK)
            return UINT64_MAX;
        cost += plan->cost_ns;
    }
    return cost;
}

#endif
