/* align.c - the other inputs of an operator in the layout that the main one determines. */
#include "phases.h"

#include "plan/plan.h"

/* The plan from TENSOR to SPEC communicates: refuse it or, if it is permitted, show it. */
static weft_status consider(const struct wf_phases *p, uint32_t input, const weft_tensor *tensor,
                            const weft_plan *plan)
{
    enum weft_op_moves moves = wf_apply_state(p->context)->moves;
    char from[256] = "", to[256] = "";
    struct wf_text price = {0};
    weft_status status = WEFT_OK;

    if (moves == WEFT_OP_MOVES_MADE || wf_plan_is_local(plan)) return WEFT_OK;
    (void)!weft_spec_print(tensor->spec, from, sizeof from, NULL);
    (void)!weft_spec_print(plan->to, to, sizeof to, NULL);
    wf_text_time(&price, plan->cost_ns);
    if (wf_text_status(&price) != WEFT_OK)
        status = wf_phases_give_up(p, WEFT_ERR_NO_MEMORY);
    else if (moves == WEFT_OP_MOVES_REFUSED)
        status = wf_phases_refuse(
            p, wf_fail(WEFT_ERR_MISMATCH,
                       "input %u has the layout %s; the operator needs %s; move it before, which "
                       "takes %s, or permit moves with weft_op_moves_set",
                       input, from, to, price.data));
    else
        wf_log(WF_LOG_NOTICE,
               "%s: operator %.100s moves input %u%s%.100s from %s to %s, which takes %s",
               WF_PHASES_FUNCTION, p->call.name, input, tensor->name != NULL ? ", " : "",
               tensor->name != NULL ? tensor->name : "", from, to, price.data);
    wf_text_free(&price);
    return status;
}

/* Move input INPUT to SPEC, which has its dtype. */
static weft_status move(struct wf_phases *p, uint32_t input, const weft_spec *spec)
{
    bool *implicit = &wf_exec_state(p->context)->moves.implicit;
    weft_tensor *tensor = p->inputs[input], *moved = NULL;
    weft_plan *plan = NULL;
    weft_status status;

    status = weft_context_plan(p->context, tensor->spec, spec, NULL, &plan);
    if (status != WEFT_OK) return wf_phases_refuse(p, status);
    status = consider(p, input, tensor, plan);
    weft_plan_release(&plan);
    WF_TRY(status);
    status = wf_tensor_make(p->context, spec, tensor->name, p->stream, WF_PHASES_FUNCTION, &moved);
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    wf_phases_hold(p, moved);
    *implicit = true;
    status = wf_tensor_move_into(tensor, moved, p->stream, NULL, WF_PHASES_FUNCTION);
    *implicit = false;
    if (status != WEFT_OK) return wf_phases_refuse(p, status);
    p->inputs[input] = moved;
    return WEFT_OK;
}

static weft_status check_shape(const struct wf_phases *p, uint32_t input, const weft_spec *want)
{
    const struct wf_layout *have = &p->inputs[input]->spec->layout, *need = &want->layout;
    bool same = have->dims == need->dims;
    struct wf_text text = {0};
    weft_status status;

    for (int32_t d = 0; same && d < have->dims; d++)
        same = have->shape[d] == need->shape[d];
    if (same) return WEFT_OK;
    wf_text_add(&text, "input %u has the shape ", input);
    wf_shape_add_text(have->dims, have->shape, &text);
    wf_text_add(&text, "; expected ");
    wf_shape_add_text(need->dims, need->shape, &text);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_INVALID, "%s", text.data);
    wf_text_free(&text);
    return wf_phases_refuse(p, status);
}

weft_status wf_phases_align(struct wf_phases *p, uint32_t input, weft_spec *spec)
{
    weft_tensor *tensor = p->inputs[input];
    weft_spec *wanted = NULL;
    weft_status status = WEFT_OK;

    if (tensor != NULL) status = check_shape(p, input, spec);
    if (tensor != NULL && status == WEFT_OK) {
        status = weft_spec_with_dtype(spec, (enum weft_dtype)tensor->spec->layout.dtype, &wanted);
        if (status != WEFT_OK) status = wf_phases_give_up(p, status);
    }
    if (wanted != NULL && tensor->spec != wanted) status = move(p, input, wanted);
    weft_spec_release(&wanted);
    weft_spec_release(&spec);
    return status;
}

weft_status wf_phases_align_rows(struct wf_phases *p, uint32_t input, bool keep)
{
    weft_spec *rows = NULL;
    weft_status status =
        wf_rows_spec(p->x, p->reduced, keep, WEFT_REDUCE_COUNT, p->x->layout.dtype, &rows);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phases_align(p, input, rows);
}

weft_status wf_phases_align_columns(struct wf_phases *p, uint32_t input)
{
    weft_spec *columns = NULL;
    weft_status status =
        wf_columns_spec(p->x, p->reduced, WEFT_REDUCE_COUNT, p->x->layout.dtype, &columns);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phases_align(p, input, columns);
}
