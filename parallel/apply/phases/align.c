/* align.c - the other inputs of an operator in the layout that the main one determines. */
#include "phases.h"

#include <string.h>

/* The plan from TENSOR to SPEC communicates: refuse it or, if it is permitted, show it. */
static weft_status consider(const struct wf_phases *p, uint32_t input, const weft_tensor *tensor,
                            const weft_spec *spec, const weft_plan *plan)
{
    enum weft_op_moves moves = p->options.moves;
    char from[256] = "", to[256] = "";
    struct wf_text price = {0};
    weft_status status;

    if (moves == WEFT_OP_MOVES_MADE || !weft_plan_communicates(plan)) return WEFT_OK;
    if (moves == WEFT_OP_MOVES_SHOWN) {
        wf_move_show(WF_PHASES_FUNCTION, p->call.name, input, tensor, spec, plan);
        return WEFT_OK;
    }
    (void)!weft_spec_print(weft_tensor_spec(tensor), from, sizeof from, NULL);
    (void)!weft_spec_print(spec, to, sizeof to, NULL);
    wf_text_time(&price, weft_plan_cost_ns(plan));
    if (wf_text_status(&price) != WEFT_OK)
        status = wf_phases_give_up(p, WEFT_ERR_NO_MEMORY);
    else
        status = wf_phases_refuse(
            p, wf_fail(WEFT_ERR_MISMATCH,
                       "input %u has the layout %s; the operator needs %s; move it before, which "
                       "takes %s, or permit moves (weft_op_apply_options.moves)",
                       input, from, to, price.data));
    wf_text_free(&price);
    return status;
}

/* Move input INPUT to SPEC, which has its dtype. */
static weft_status move(struct wf_phases *p, uint32_t input, const weft_spec *spec)
{
    const weft_move_options implicit = {
        .struct_size = sizeof implicit, .implicit = true, .made_for = p->call.name};
    const weft_plan_options other = {.struct_size = sizeof other,
                                     .costs = p->options.strategy.costs};
    weft_tensor *tensor = p->inputs[input], *moved = NULL;
    weft_plan *plan = NULL;
    weft_status status;

    status = weft_context_plan(p->context, weft_tensor_spec(tensor), spec,
                               p->options.has_strategy ? &other : NULL, &plan);
    if (status != WEFT_OK) return wf_phases_refuse(p, status);
    status = consider(p, input, tensor, spec, plan);
    weft_plan_release(&plan);
    WF_TRY(status);
    status = wf_tensor_new(p->context, spec, weft_tensor_name(tensor), p->stream, &moved);
    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    wf_phases_hold(p, moved);
    status = weft_tensors_move_into(1, &tensor, &moved, &implicit, p->stream, NULL);
    if (status != WEFT_OK) return wf_move_refuse(status, WF_PHASES_FUNCTION, p->call.name);
    p->inputs[input] = moved;
    return WEFT_OK;
}

static weft_status check_shape(const struct wf_phases *p, uint32_t input, const weft_spec *want)
{
    const weft_spec *have = weft_tensor_spec(p->inputs[input]);
    const int64_t *shape = weft_spec_shape(have), *wanted = weft_spec_shape(want);
    int32_t dims = weft_spec_dims(have), wanted_dims = weft_spec_dims(want);
    struct wf_text text = {0};
    weft_status status;

    if (dims == wanted_dims && memcmp(shape, wanted, (size_t)dims * sizeof *shape) == 0)
        return WEFT_OK;
    wf_text_add(&text, "input %u has the shape ", input);
    wf_shape_add_text(dims, shape, &text);
    wf_text_add(&text, "; expected ");
    wf_shape_add_text(wanted_dims, wanted, &text);
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
        status = weft_spec_with_dtype(spec, weft_spec_dtype(weft_tensor_spec(tensor)), &wanted);
        if (status != WEFT_OK) status = wf_phases_give_up(p, status);
    }
    if (wanted != NULL && weft_tensor_spec(tensor) != wanted) status = move(p, input, wanted);
    weft_spec_release(&wanted);
    weft_spec_release(&spec);
    return status;
}

weft_status wf_phases_align_rows(struct wf_phases *p, uint32_t input, bool keep)
{
    weft_spec *rows = NULL;
    weft_status status =
        wf_rows_spec(p->x, p->reduced, keep, WEFT_REDUCE_COUNT, weft_spec_dtype(p->x), &rows);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phases_align(p, input, rows);
}

weft_status wf_phases_align_columns(struct wf_phases *p, uint32_t input)
{
    weft_spec *columns = NULL;
    weft_status status =
        wf_columns_spec(p->x, p->reduced, WEFT_REDUCE_COUNT, weft_spec_dtype(p->x), &columns);

    if (status != WEFT_OK) return wf_phases_give_up(p, status);
    return wf_phases_align(p, input, columns);
}
