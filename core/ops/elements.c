/* elements.c - the form of an operator on lists: each element is a call of the operator itself. */
#include "solve.h"

#include <string.h>

bool wf_is_foreach(const char *name)
{
    return strncmp(name, "foreach_", 8) == 0 && wf_op_find(name) == NULL;
}

/* A call has one list for each input of the first rule that applies; a last input may stand beside
 * the lists. */
weft_status wf_element_begin(const char *function, const struct wf_op_entry *entry,
                             const weft_op_call *call, struct wf_element *out)
{
    uint32_t lists = 0;

    *out = (struct wf_element){.call = *call, .members = 1};
    out->call.name = call->name + 8;
    for (uint32_t i = 0; i < entry->rule_count && lists == 0; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) lists = entry->rules[i]->input_count;
    if (lists > 0 && call->input_count > 0 && call->input_count % lists == 0) {
        out->members = call->input_count / lists;
    } else if (lists > 1 && call->input_count > 1 && (call->input_count - 1) % (lists - 1) == 0) {
        out->members = (call->input_count - 1) / (lists - 1);
        out->has_shared = true;
    } else {
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: operator %.100s: the call has %u input%s, and each element takes %u",
                       function, call->name, call->input_count, call->input_count == 1 ? "" : "s",
                       lists);
    }
    out->call.inputs = out->inputs;
    out->call.input_count = lists;
    out->call.output_count = 0;
    return WEFT_OK;
}

void wf_element_set(struct wf_element *e, const weft_op_call *call, uint32_t at)
{
    for (uint32_t i = 0; i < e->call.input_count; i++)
        e->inputs[i] = e->has_shared && i + 1 == e->call.input_count
                           ? call->inputs[call->input_count - 1]
                           : call->inputs[i * e->members + at];
}
