/* written.c - gradients by an operator NAME_bwd that the program registered.
 *
 * Its inputs have the names of NAME's inputs and outputs, `g` for the gradient of the first output,
 * or `dY` for that of output Y; its outputs are `dX` for the gradient of input X. */
#include "backward.h"

#include <string.h>

/* The rule of NAME_bwd, with a reference for the caller; NULL if it has none. */
static weft_status find_rule(const struct wf_derivation *d, const char *name, struct wf_rule **out)
{
    const struct wf_op_entry *entry;
    uint32_t ticket;

    *out = NULL;
    WF_TRY(wf_op_enter(&ticket));
    entry = wf_op_find(name);
    for (uint32_t i = 0; entry != NULL && !wf_op_is_chain(entry) && i < entry->rule_count; i++)
        if (*out == NULL && wf_attr_guards_hold(entry->rules[i], d->forward))
            *out = wf_rule_retain(entry->rules[i]);
    wf_op_leave(ticket);
    return WEFT_OK;
}

/* The tensors that slot SLOT of RULE reads. */
static weft_status add_operands(struct wf_derivation *d, const struct wf_rule *rule, int slot,
                                struct wf_operands *out)
{
    struct wf_word word = rule->slots[slot].name;
    const char *name = rule->text + word.at;
    int found = wf_derive_find(d, name, word.length), of = -1;

    if (found >= 0) return wf_derive_slot(d, (uint32_t)found, false, out);
    if (word.length == 1 && name[0] == 'g')
        return wf_derive_slot(d, d->rule->input_count, true, out);
    if (name[0] == 'd') of = wf_derive_find(d, name + 1, word.length - 1u);
    if (of >= d->rule->input_count) return wf_derive_slot(d, (uint32_t)of, true, out);
    if (!rule->slots[slot].optional)
        return wf_fail(
            WEFT_ERR_UNSUPPORTED,
            "operator %.100s_bwd: input %.*s is neither a tensor of operator %.100s nor a "
            "gradient of its outputs",
            d->forward->name, WF_WORD(rule, word), d->forward->name);
    out->list[out->count++] = (weft_op_operand){WEFT_OP_FROM_NOTHING, 0};
    return WEFT_OK;
}

static weft_status set_gradients(struct wf_derivation *d, const struct wf_rule *rule,
                                 weft_op_operand result)
{
    size_t room = d->backward->info.inputs;
    struct wf_operands inputs = {wf_backward_room(d->backward, room, sizeof *inputs.list), 0, room};

    if (inputs.list == NULL) return wf_fail_memory(room * sizeof *inputs.list);
    for (int i = 0; i < rule->output_count; i++) {
        const struct wf_slot *output = &rule->slots[rule->input_count + i];
        const char *name = rule->text + output->name.at;
        int slot = name[0] == 'd' ? wf_derive_find(d, name + 1, output->name.length - 1u) : -1;
        bool is_gradient = slot >= 0 && slot < d->rule->input_count;

        if (output->list && (!is_gradient || !d->rule->slots[slot].list))
            return wf_fail(
                WEFT_ERR_UNSUPPORTED,
                "operator %.100s_bwd: output %.*s is a list, but not of the gradients of "
                "a list of operator %.100s",
                d->forward->name, WF_WORD(rule, output->name), d->forward->name);
        inputs.count = 0;
        if (is_gradient && output->list == d->rule->slots[slot].list)
            WF_TRY(wf_derive_slot(d, (uint32_t)slot, false, &inputs));
        for (uint32_t k = 0; k < (output->list ? inputs.count : 1); k++, result.index++)
            if (k < inputs.count && inputs.list[k].source == WEFT_OP_FROM_INPUT)
                WF_TRY(wf_derive_set(d, inputs.list[k].index, result));
    }
    return WEFT_OK;
}

static weft_status evaluate(struct wf_derivation *d, const char *name, const struct wf_rule *rule)
{
    size_t room = d->backward->info.inputs + d->backward->info.outputs + WF_RULE_TENSORS;
    struct wf_operands operands = {wf_backward_room(d->backward, room, sizeof *operands.list), 0,
                                   room};
    weft_op_operand result;
    weft_op_call call;

    if (operands.list == NULL) return wf_fail_memory(room * sizeof *operands.list);
    for (int i = 0; i < rule->input_count; i++)
        WF_TRY(add_operands(d, rule, i, &operands));
    WF_TRY(wf_step_begin(d, name, strlen(name), &call));
    WF_TRY(wf_value_add_known(d, &call));
    WF_TRY(wf_step_add(d, &call, &operands, &result));
    return set_gradients(d, rule, result);
}

weft_status wf_written_evaluate(struct wf_derivation *d, bool *found)
{
    struct wf_rule *rule = NULL;
    struct wf_text name = {0};
    weft_status status;

    *found = false;
    wf_text_add(&name, "%s_bwd", d->forward->name);
    status = wf_text_status(&name);
    if (status == WEFT_OK) status = find_rule(d, name.data, &rule);
    *found = rule != NULL;
    if (rule != NULL) status = evaluate(d, name.data, rule);
    wf_rule_drop(rule);
    wf_text_free(&name);
    return status;
}
