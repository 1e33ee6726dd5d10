/* choice.c - the object that tells a caller how to run an operator. */
#include "cache.h"
#include "solve.h"

#include <string.h>

struct weft_op_choice {
    _Atomic(int64_t) references;
    weft_op_choice_info info;
    struct wf_rule *rule;
    uint32_t added_inputs, added_outputs;
    /* inputs, outputs, gradients of inputs, gradients of outputs */
    weft_spec **specs;
    weft_plan **moves;
};

weft_status wf_choice_make(const struct wf_rule *rule, uint32_t inputs, uint32_t outputs,
                           weft_op_choice **out)
{
    size_t tensors = (size_t)inputs + outputs;
    size_t bytes = sizeof(weft_op_choice) + (3 * tensors) * sizeof(void *);
    weft_op_choice *choice = wf_calloc(1, bytes);

    if (choice == NULL) return wf_fail_memory(bytes);
    atomic_init(&choice->references, 1);
    choice->rule = wf_rule_retain((struct wf_rule *)(uintptr_t)rule);
    choice->info = (weft_op_choice_info){.struct_size = sizeof choice->info,
                                         .rule = rule->text,
                                         .inputs = inputs,
                                         .outputs = outputs,
                                         .local = 1};
    choice->specs = (weft_spec **)(void *)(choice + 1);
    choice->moves = (weft_plan **)(void *)(choice->specs + 2 * tensors);
    *out = choice;
    return WEFT_OK;
}

static bool has_gradient(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && dtype < WEFT_DTYPE_COUNT;
}

/* Only sums of contributions pass gradients on as they are. */
static bool is_differentiable(const struct wf_op *op, const struct wf_solution *solution)
{
    for (uint32_t i = op->input_count; i < solution->count; i++)
        for (int32_t a = 0; a < op->mesh->axes; a++) {
            const weft_placement *p = &solution->specs[i]->layout.placements[a];
            if (p->kind == WEFT_PLACE_PARTIAL && p->reduction != WEFT_REDUCE_SUM) return false;
        }
    return true;
}

/* The layout of the gradient of TENSOR.  Every rank differentiates what it computes: the gradient
 * of a part is a part, that of a contribution to a sum is the whole gradient, and that of a replica
 * that the ranks use for different parts is a contribution. */
static weft_status make_gradient(const struct wf_op *op, const struct wf_solution *solution,
                                 uint32_t tensor, weft_spec **out)
{
    struct wf_layout layout;
    bool input = tensor < op->input_count, differs = false;

    if (solution->specs[tensor] == NULL || !has_gradient(op->tensors[tensor].dtype) ||
        !is_differentiable(op, solution))
        return WEFT_OK;
    if (input && op->rule->slots[op->tensors[tensor].slot].shape_only) return WEFT_OK;
    layout = solution->specs[tensor]->layout;
    for (int32_t a = 0; a < op->mesh->axes; a++) {
        weft_placement *p = &layout.placements[a];
        if (p->kind == WEFT_PLACE_PARTIAL) {
            if (p->reduction != WEFT_REDUCE_SUM) return WEFT_OK;
            *p = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
            differs = true;
        } else if (p->kind == WEFT_PLACE_REPLICATE && input &&
                   solution->rows[a]->kind != WF_ROW_WHOLE && op->mesh->axis[a].size > 1) {
            *p = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = WEFT_REDUCE_SUM};
            differs = true;
        }
    }
    if (differs) return wf_spec_intern(&layout, out);
    *out = weft_spec_retain(solution->specs[tensor]);
    return WEFT_OK;
}

/* Where tensor I of SOLVER belongs in the lists of CHOICE; UINT32_MAX: the call does not have it.
 */
static uint32_t place_of(const weft_op_choice *choice, const struct wf_solver *solver, uint32_t i)
{
    uint32_t at = wf_solver_position(solver, i);

    if (i >= solver->op.input_count) return choice->info.inputs + at;
    return at < choice->info.inputs ? at : UINT32_MAX;
}

/* True if no step of PLAN communicates. */
static bool is_local(const weft_plan *plan)
{
    for (uint32_t i = 0; plan != NULL && i < plan->step_count; i++)
        if (plan->steps[i].kind != WEFT_STEP_SLICE && plan->steps[i].kind != WEFT_STEP_PARTIAL)
            return false;
    return true;
}

weft_status wf_choice_add(weft_op_choice *choice, const struct wf_solver *solver,
                          struct wf_solution *solution)
{
    uint32_t tensors = choice->info.inputs + choice->info.outputs;

    for (uint32_t i = 0; i < solution->count; i++) {
        uint32_t at = place_of(choice, solver, i);
        if (at != UINT32_MAX && choice->specs[tensors + at] == NULL)
            WF_TRY(make_gradient(&solver->op, solution, i, &choice->specs[tensors + at]));
    }
    for (uint32_t i = 0; i < solution->count; i++) {
        uint32_t at = place_of(choice, solver, i);
        if (at == UINT32_MAX || choice->specs[at] != NULL) continue;
        choice->specs[at] = solution->specs[i];
        solution->specs[i] = NULL;
        if (i >= solver->op.input_count) continue;
        choice->moves[at] = solution->moves[i];
        solution->moves[i] = NULL;
        choice->info.moves += choice->moves[at] != NULL;
        if (!is_local(choice->moves[at])) choice->info.local = 0;
    }
    choice->info.cost_ns = wf_add_capped(choice->info.cost_ns, solution->cost_ns);
    return WEFT_OK;
}

weft_op_choice *wf_choice_retain(weft_op_choice *choice)
{
    atomic_fetch_add_explicit(&choice->references, 1, memory_order_relaxed);
    return choice;
}

weft_op_choice *weft_op_choice_retain(const weft_op_choice *choice)
{
    return choice != NULL ? wf_choice_retain((weft_op_choice *)(uintptr_t)choice) : NULL;
}

void weft_op_choice_release(weft_op_choice **choice)
{
    weft_op_choice *mine;
    uint32_t tensors;

    if (choice == NULL || *choice == NULL) return;
    mine = *choice;
    *choice = NULL;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) != 1) return;
    tensors = mine->info.inputs + mine->info.outputs;
    for (uint32_t i = 0; i < 2 * tensors; i++)
        weft_spec_release(&mine->specs[i]);
    for (uint32_t i = 0; i < tensors; i++)
        weft_plan_release(&mine->moves[i]);
    wf_rule_drop(mine->rule);
    wf_free(mine);
}

weft_status weft_op_choice_get(const weft_op_choice *choice, weft_op_choice_info *out)
{
    WF_TRY(wf_require(choice, "weft_op_choice_get: choice"));
    WF_TRY(wf_require(out, "weft_op_choice_get: out"));
    return wf_info_write("weft_op_choice_info", &choice->info, sizeof choice->info, out);
}

const weft_spec *weft_op_choice_input(const weft_op_choice *choice, uint32_t index)
{
    return choice != NULL && index < choice->info.inputs ? choice->specs[index] : NULL;
}

const weft_spec *weft_op_choice_output(const weft_op_choice *choice, uint32_t index)
{
    if (choice == NULL || index >= choice->info.outputs) return NULL;
    return choice->specs[choice->info.inputs + index];
}

const weft_plan *weft_op_choice_move(const weft_op_choice *choice, uint32_t index)
{
    return choice != NULL && index < choice->info.inputs ? choice->moves[index] : NULL;
}

const weft_spec *weft_op_choice_gradient(const weft_op_choice *choice, uint32_t index)
{
    if (choice == NULL || index >= choice->info.inputs) return NULL;
    return choice->specs[choice->info.inputs + choice->info.outputs + index];
}

const weft_spec *weft_op_choice_output_gradient(const weft_op_choice *choice, uint32_t index)
{
    if (choice == NULL || index >= choice->info.outputs) return NULL;
    return choice->specs[2 * choice->info.inputs + choice->info.outputs + index];
}
