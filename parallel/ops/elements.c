/* elements.c - the form of an operator on lists: each element is a call of the operator itself. */
#include "solve.h"

#include <string.h>

bool wf_is_foreach(const char *name)
{
    return strncmp(name, "foreach_", 8) == 0 && wf_op_find(name) == NULL;
}

/* Lists have one form besides: in place. */
static weft_status check_form(const char *function, const struct wf_op_entry *entry,
                              const weft_op_call *call)
{
    const char *base = call->name + 8;

    if (strncmp(base, "foreach_", 8) == 0 && wf_is_foreach(base))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: operator %.100s: lists of lists do not exist; write %.100s", function,
                       call->name, base);
    if (!wf_is_out(base, entry)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: operator %.100s: lists have no form .out; write foreach_%.*s, which makes "
                   "its outputs, foreach_%.*s_, which writes to its first list, or %.100s for each "
                   "element",
                   function, call->name, (int)entry->length, entry->name, (int)entry->length,
                   entry->name, base);
}

/* LISTS is 0 if no rule applies. */
static weft_status refuse_count(const char *function, const weft_op_call *call, uint32_t lists)
{
    weft_status status;

    if (lists == 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: operator %.100s: no rule applies to these attributes",
                       function, call->name);
    if (lists == 1)
        status = wf_fail(WEFT_ERR_INVALID, "the inputs must be one list");
    else
        status = wf_fail(WEFT_ERR_INVALID,
                         "the inputs must be %u lists of one length, or %u list%s and a last input "
                         "without dimensions",
                         lists, lists - 1, lists == 2 ? "" : "s of one length");
    return wf_fail_context(
        status, "%s: operator %.100s: the call has %zu input%s, and each element takes %u",
        function, call->name, call->input_count, WF_PLURAL(call->input_count), lists);
}

/* True if the last input of CALL is a number for all elements. */
static bool is_shared(const weft_op_call *call)
{
    const weft_spec *last = call->inputs[call->input_count - 1];

    return weft_spec_mesh(last) != NULL && weft_spec_dims(last) == 0;
}

/* A call has one list for each input of the first rule that applies; a last input without
 * dimensions may stand beside the lists. */
weft_status wf_element_begin(const char *function, const struct wf_op_entry *entry,
                             const weft_op_call *call, struct wf_element *out)
{
    const struct wf_rule *rule = NULL;
    uint32_t lists;

    WF_TRY(check_form(function, entry, call));
    *out = (struct wf_element){.call = *call, .members = 1};
    out->call.name = call->name + 8;
    for (uint32_t i = 0; i < entry->rule_count && rule == NULL; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) rule = entry->rules[i];
    lists = rule != NULL ? rule->input_count : 0;
    if (lists > 0 && call->input_count > 0 && call->input_count % lists == 0) {
        out->members = (uint32_t)call->input_count / lists;
    } else if (lists > 1 && call->input_count > 1 && (call->input_count - 1) % (lists - 1) == 0 &&
               is_shared(call)) {
        out->members = ((uint32_t)call->input_count - 1) / (lists - 1);
        out->has_shared = true;
    } else {
        return refuse_count(function, call, lists);
    }
    if (call->output_count > 0 && call->output_count != out->members * rule->output_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: operator %.100s: weft_op_call.output_count is %zu, but the lists have "
                       "%u elements with %u outputs in all",
                       function, call->name, call->output_count, out->members,
                       out->members * rule->output_count);
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
