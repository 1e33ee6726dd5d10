/* steps.c - the list of calls, with the layouts of their results. */
#include "backward.h"

#include <string.h>

static const char function[] = "weft_op_backward_create";

/* ---- memory ---- */

void *wf_backward_room(weft_op_backward *backward, size_t count, size_t bytes)
{
    struct wf_piece *piece = wf_calloc(1, sizeof *piece + count * bytes);

    if (piece == NULL) return NULL;
    piece->next = backward->pieces;
    backward->pieces = piece;
    return piece->data;
}

char *wf_backward_text(weft_op_backward *backward, const char *text, size_t length)
{
    char *copy = wf_backward_room(backward, length + 1, 1);

    if (copy != NULL) memcpy(copy, text, length);
    return copy;
}

/* ---- tensors ---- */

const weft_spec *wf_backward_spec(const weft_op_backward *backward, weft_op_operand operand)
{
    const weft_op_backward_info *info = &backward->info;

    switch (operand.source) {
    case WEFT_OP_FROM_INPUT:
        return operand.index < info->inputs ? backward->inputs[operand.index] : NULL;
    case WEFT_OP_FROM_OUTPUT:
        return weft_op_choice_output(backward->forward, operand.index);
    case WEFT_OP_FROM_GRADIENT:
        return operand.index < info->outputs ? backward->gradients[operand.index] : NULL;
    case WEFT_OP_FROM_RESULT:
        return operand.index < info->results ? backward->results[operand.index] : NULL;
    default:
        return NULL;
    }
}

int wf_derive_find(const struct wf_derivation *d, const char *name, size_t length)
{
    const struct wf_rule *rule = d->rule;

    for (int i = 0; i < rule->input_count + rule->output_count; i++) {
        struct wf_word word = rule->slots[i].name;

        if (word.length == length && memcmp(rule->text + word.at, name, length) == 0) return i;
    }
    return -1;
}

/* How many tensors slot SLOT has: a list has what the other slots of its side leave. */
static uint32_t slot_count(const struct wf_derivation *d, uint32_t slot)
{
    const struct wf_rule *rule = d->rule;
    bool output = slot >= rule->input_count;
    uint32_t slots = output ? rule->output_count : rule->input_count;
    size_t tensors = output ? d->backward->info.outputs : d->backward->info.inputs;

    if (!rule->slots[slot].list) return 1;
    return tensors >= slots - 1 ? (uint32_t)tensors - (slots - 1) : 0;
}

weft_status wf_derive_slot(struct wf_derivation *d, uint32_t slot, bool gradient,
                           struct wf_operands *out)
{
    const struct wf_rule *rule = d->rule;
    bool output = slot >= rule->input_count;
    uint32_t index = 0, count = slot_count(d, slot);

    for (uint32_t i = output ? rule->input_count : 0; i < slot; i++)
        index += slot_count(d, i);
    if (out->room - out->count < count)
        return wf_fail(WEFT_ERR_INTERNAL, "a gradient of operator %.100s has too many tensors",
                       d->forward->name);
    for (uint32_t i = 0; i < count; i++, index++) {
        weft_op_operand operand = {gradient ? WEFT_OP_FROM_GRADIENT
                                   : output ? WEFT_OP_FROM_OUTPUT
                                            : WEFT_OP_FROM_INPUT,
                                   index};

        if (wf_backward_spec(d->backward, operand) == NULL) {
            if (gradient)
                return wf_fail(WEFT_ERR_UNSUPPORTED,
                               "operator %.100s: output %u has no gradient, since it is not of a "
                               "floating-point dtype",
                               d->forward->name, index);
            operand = (weft_op_operand){WEFT_OP_FROM_NOTHING, 0};
        }
        out->list[out->count++] = operand;
    }
    return WEFT_OK;
}

/* ---- calls ---- */

weft_status wf_step_begin(struct wf_derivation *d, const char *name, size_t length,
                          weft_op_call *out)
{
    char *text = wf_backward_text(d->backward, name, length);
    weft_op_attr *attrs = wf_backward_room(d->backward, WF_STEP_ATTRS, sizeof *attrs);

    if (text == NULL || attrs == NULL) return wf_fail_memory(length);
    *out = (weft_op_call){.struct_size = sizeof *out,
                          .name = text,
                          .attr_size = sizeof *attrs,
                          .attrs = attrs,
                          .flags = d->forward->flags};
    return WEFT_OK;
}

/* Room for one more call with COUNT results. */
static weft_status grow(weft_op_backward *b, size_t count)
{
    WF_TRY(wf_grow(&b->calls, sizeof *b->calls, b->info.calls, &b->call_room));
    if (b->result_room - b->info.results < count) {
        size_t room = 2 * b->result_room + count + 4;
        weft_spec **results = wf_realloc(b->results, room * sizeof *results);

        if (results == NULL) return wf_fail_memory(room * sizeof *results);
        b->results = results;
        b->result_room = room;
    }
    return WEFT_OK;
}

static weft_status keep_call(weft_op_backward *b, const weft_op_call *call,
                             const weft_op_operand *operands, const weft_op_choice *choice)
{
    weft_op_choice_info info = {.struct_size = sizeof info};
    weft_op_call *kept = wf_backward_room(b, 1, sizeof *kept);

    if (kept == NULL) return wf_fail_memory(sizeof *kept);
    WF_TRY(weft_op_choice_get(choice, &info));
    WF_TRY(grow(b, info.outputs));
    *kept = *call;
    b->calls[b->info.calls++] = (weft_op_gradient_call){.call = kept,
                                                        .operand_count = call->input_count,
                                                        .operand_size = sizeof *operands,
                                                        .operands = operands,
                                                        .first_result = b->info.results,
                                                        .result_count = info.outputs};
    for (uint32_t i = 0; i < info.outputs; i++)
        b->results[b->info.results++] = weft_spec_retain(weft_op_choice_output(choice, i));
    if (!info.local) b->info.local = false;
    b->info.cost_ns = wf_add_capped(b->info.cost_ns, info.cost_ns);
    return WEFT_OK;
}

static bool same_call(const weft_op_gradient_call *known, const weft_op_call *call,
                      const struct wf_operands *operands)
{
    if (strcmp(known->call->name, call->name) != 0 || known->call->input_count != operands->count ||
        known->call->attr_count != call->attr_count)
        return false;
    for (uint32_t i = 0; i < operands->count; i++)
        if (known->operands[i].source != operands->list[i].source ||
            known->operands[i].index != operands->list[i].index)
            return false;
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (strcmp(known->call->attrs[i].name, call->attrs[i].name) != 0 ||
            !wf_attr_same_value(&known->call->attrs[i], &call->attrs[i]))
            return false;
    return true;
}

/* True if a call before is the same: *RESULT is its first result. */
static bool is_known(const weft_op_backward *b, const weft_op_call *call,
                     const struct wf_operands *operands, weft_op_operand *result)
{
    for (uint32_t i = 0; i < b->info.calls; i++)
        if (b->calls[i].result_count == 1 && same_call(&b->calls[i], call, operands)) {
            *result = (weft_op_operand){WEFT_OP_FROM_RESULT, b->calls[i].first_result};
            return true;
        }
    return false;
}

weft_status wf_step_add(struct wf_derivation *d, weft_op_call *call,
                        const struct wf_operands *operands, weft_op_operand *result)
{
    weft_op_backward *b = d->backward;
    const weft_spec **specs = wf_backward_room(b, operands->count, sizeof *specs);
    weft_op_operand *list = wf_backward_room(b, operands->count, sizeof *list);
    weft_op_choice *choice = NULL;
    weft_status status;

    if (is_known(b, call, operands, result)) return WEFT_OK;
    if (specs == NULL || list == NULL) return wf_fail_memory(operands->count * sizeof *list);
    call->inputs = specs;
    call->input_count = operands->count;
    for (uint32_t i = 0; i < operands->count; i++) {
        list[i] = operands->list[i];
        specs[i] = wf_backward_spec(b, list[i]);
    }
    *result = (weft_op_operand){WEFT_OP_FROM_RESULT, b->info.results};
    status = wf_op_answer(function, true, call, d->options, &choice);
    if (status == WEFT_OK) status = keep_call(b, call, list, choice);
    weft_op_choice_release(&choice);
    return status;
}

/* ---- gradients of inputs ---- */

bool wf_derive_wants(const struct wf_derivation *d, size_t index)
{
    const weft_spec *spec = index < d->backward->info.inputs ? d->backward->inputs[index] : NULL;

    return spec != NULL && (d->wanted == NULL || d->wanted[index]) &&
           wf_choice_has_gradient(weft_spec_dtype(spec));
}

/* Sum *OPERAND over the dimensions of DIMS. */
static weft_status add_sum(struct wf_derivation *d, const int64_t *dims, uint32_t count,
                           bool keepdim, weft_op_operand *operand)
{
    struct wf_operands operands = {operand, 1, 1};
    weft_op_operand result;
    weft_op_call call;

    if (count == 0) return WEFT_OK;
    WF_TRY(wf_step_begin(d, "sum", 3, &call));
    WF_TRY(wf_value_add_list(d, "dims", dims, count, &call));
    if (keepdim) WF_TRY(wf_value_add_int(d, "keepdim", 1, &call));
    WF_TRY(wf_step_add(d, &call, &operands, &result));
    *operand = result;
    return WEFT_OK;
}

/* Sum a gradient over the dimensions in which INPUT broadcasts: those that it lacks, and those in
 * which its size is 1. */
static weft_status sum_broadcast(struct wf_derivation *d, const weft_spec *input,
                                 weft_op_operand *operand)
{
    const weft_spec *gradient = wf_backward_spec(d->backward, *operand);
    const int64_t *from = weft_spec_shape(gradient), *to = weft_spec_shape(input);
    int32_t from_dims = weft_spec_dims(gradient), to_dims = weft_spec_dims(input);
    int64_t lacking[WEFT_MAX_DIMS], single[WEFT_MAX_DIMS];
    int32_t missing = from_dims - to_dims;
    uint32_t singles = 0;

    if (missing < 0) missing = 0;
    for (int32_t i = 0; i < missing; i++)
        lacking[i] = i;
    for (int32_t i = 0; i < to_dims && from_dims - missing == to_dims; i++)
        if (to[i] == 1 && from[missing + i] != 1) single[singles++] = i;
    WF_TRY(add_sum(d, lacking, (uint32_t)missing, false, operand));
    return add_sum(d, single, singles, true, operand);
}

static weft_status cast_to(struct wf_derivation *d, uint32_t dtype, weft_op_operand *operand)
{
    const char *name = weft_dtype_name(dtype);
    weft_op_attr to = {.name = "to", .kind = WEFT_ATTR_TEXT, .text = name};
    struct wf_operands operands = {operand, 1, 1};
    weft_op_operand result;
    weft_op_call call;

    WF_TRY(wf_step_begin(d, "cast", 4, &call));
    WF_TRY(wf_value_add(d, "to", &to, &call));
    WF_TRY(wf_step_add(d, &call, &operands, &result));
    *operand = result;
    return WEFT_OK;
}

static bool same_shape(const weft_spec *a, const weft_spec *b)
{
    return weft_spec_dims(a) == weft_spec_dims(b) &&
           memcmp(weft_spec_shape(a), weft_spec_shape(b),
                  (size_t)weft_spec_dims(a) * sizeof(int64_t)) == 0;
}

weft_status wf_derive_set(struct wf_derivation *d, size_t index, weft_op_operand operand)
{
    const weft_spec *input = d->backward->inputs[index];

    if (!wf_derive_wants(d, index)) return WEFT_OK;
    WF_TRY(sum_broadcast(d, input, &operand));
    if (!same_shape(wf_backward_spec(d->backward, operand), input))
        return wf_fail(
            WEFT_ERR_UNSUPPORTED,
            "operator %.100s: the gradient of input %zu has another shape than the input",
            d->forward->name, index);
    if (weft_spec_dtype(wf_backward_spec(d->backward, operand)) != weft_spec_dtype(input))
        WF_TRY(cast_to(d, weft_spec_dtype(input), &operand));
    d->backward->found[index] = operand;
    return WEFT_OK;
}
