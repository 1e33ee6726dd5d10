/* forms.c - calls that no rule describes as they are: the form `NAME.out`, whose last inputs are
 * the memory of the outputs, and operators without a rule, whose tensors are all replicated. */
#include "ops.h"
#include "solve.h"

#include "weft/extend.h"

#include <string.h>

weft_status wf_call_check_flags(const char *function, const weft_op_call *call)
{
    if ((call->flags & ~(uint32_t)WEFT_OP_CALL_MIXED_DTYPES) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.flags has unknown bits: 0x%x", function,
                   call->flags);
}

weft_status wf_call_check_counts(const char *function, const weft_op_call *call)
{
    const char *list = call->input_count > INT32_MAX    ? "input_count"
                       : call->attr_count > INT32_MAX   ? "attr_count"
                       : call->output_count > INT32_MAX ? "output_count"
                                                        : NULL;

    if (list == NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.%s is larger than %d", function, list,
                   INT32_MAX);
}

/* The shapes and dtypes of outputs that CALL states. */
static weft_status check_outputs(const char *function, const weft_op_call *call)
{
    if (call->output_count == 0) return WEFT_OK;
    if (call->outputs == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_op_call.outputs is NULL, and output_count is %zu", function,
                       call->output_count);
    WF_TRY(wf_call_check_size(function, "output_size", call->output_size, "weft_op_tensor",
                              sizeof *call->outputs));
    for (size_t i = 0; i < call->output_count; i++)
        WF_TRY(wf_fail_named(
            wf_shape_check(call->outputs[i].dims, call->outputs[i].shape, call->outputs[i].dtype),
            function));
    return WEFT_OK;
}

weft_status wf_call_read(const char *function, const weft_op_call *given,
                         const weft_op_options *options, weft_op_call *call, weft_op_options *read)
{
    if (given == NULL) return wf_fail(WEFT_ERR_INVALID, "%s: call is NULL", function);
    if (given->struct_size == sizeof *given) { /* a caller of this version */
        *call = *given;
    } else {
        *call = (weft_op_call){0};
        WF_TRY(wf_fail_named(wf_options_read("weft_op_call", given, call, sizeof *call), function));
    }
    *read = (weft_op_options){0};
    if (options != NULL && options->struct_size == sizeof *options)
        *read = *options;
    else
        WF_TRY(wf_fail_named(wf_options_read("weft_op_options", options, read, sizeof *read),
                             function));
    if (call->name == NULL || (call->inputs == NULL && call->input_count > 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_call.%s is NULL", function,
                       call->name == NULL ? "name" : "inputs");
    WF_TRY(wf_call_check_counts(function, call));
    WF_TRY(wf_call_check_flags(function, call));
    if ((read->flags &
         ~(uint32_t)(WEFT_OP_FLAG_EXACT | WEFT_OP_FLAG_NO_MOVES | WEFT_OP_FLAG_NO_PARTIALS |
                     WEFT_OP_FLAG_FALLBACK | WEFT_OP_FLAG_PRICE_PARTIALS)) != 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_op_options.flags has unknown bits: 0x%x",
                       function, read->flags);
    if (read->fixed_inputs != NULL && read->fixed_input_count != call->input_count)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: weft_op_options.fixed_inputs has %zu entries (fixed_input_count), and "
                       "the call has %zu input%s",
                       function, read->fixed_input_count, call->input_count,
                       WF_PLURAL(call->input_count));
    WF_TRY(wf_attrs_check(function, call));
    WF_TRY(check_outputs(function, call));
    if (call->mesh == NULL || weft_mesh_axes(call->mesh) > 0) return WEFT_OK;
    return weft_object_check(call->mesh, "weft_mesh", function, "weft_op_call.mesh");
}

/* ---- NAME.out ---- */

bool wf_is_out(const char *name, const struct wf_op_entry *entry)
{
    size_t length = strlen(name);

    return length == entry->length + 4u && strcmp(name + length - 4, ".out") == 0;
}

/* RULE takes INPUTS tensors, besides the memory of its outputs. */
static weft_status check_count(const char *function, const weft_op_call *call,
                               const struct wf_rule *rule, uint32_t inputs)
{
    uint32_t least = rule->input_count, memory = rule->output_count;

    for (uint32_t i = 0; i < rule->input_count; i++)
        if (rule->slots[i].list) return WEFT_OK; /* their number is checked later */
    while (least > 0 && rule->slots[least - 1].optional)
        least--;
    if (inputs >= least && inputs <= rule->input_count) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "%s: operator %.100s: the call has %zu input%s; the rule takes %u%s%.*u, and the "
        "memory of %u output%s",
        function, call->name, call->input_count, WF_PLURAL(call->input_count), least,
        least < rule->input_count ? " to " : "", least < rule->input_count ? 1 : 0,
        least < rule->input_count ? rule->input_count : 0, memory, WF_PLURAL(memory));
}

weft_status wf_out_begin(const char *function, const struct wf_op_entry *entry,
                         const weft_op_call *call, const weft_op_options *options,
                         struct wf_out *out)
{
    const struct wf_rule *rule = NULL;

    for (uint32_t i = 0; i < entry->rule_count && rule == NULL; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) rule = entry->rules[i];
    *out = (struct wf_out){.call = *call, .options = *options};
    out->count = rule != NULL ? rule->output_count : 0;
    for (uint32_t i = 0; i < out->count; i++)
        if (rule->slots[rule->input_count + i].list) out->count = 0;
    if (out->count == 0 || call->input_count < out->count || options->fixed_outputs != NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: operator %.100s: the last inputs must be the memory of the outputs, of "
                       "which the rule has %u; weft_op_options.fixed_outputs must be NULL",
                       function, call->name, out->count);
    out->call.input_count -= out->count;
    WF_TRY(check_count(function, call, rule, (uint32_t)out->call.input_count));
    for (uint32_t i = 0; i < out->count; i++)
        if (call->inputs[out->call.input_count + i] == NULL)
            return wf_fail(WEFT_ERR_INVALID, "%s: operator %.100s: the memory of output %u is NULL",
                           function, call->name, i);
    memcpy(out->name, entry->name, entry->length < sizeof out->name ? entry->length : 0);
    out->call.name = out->name;
    out->options.fixed_outputs = call->inputs + out->call.input_count;
    out->options.fixed_output_count = out->count;
    return WEFT_OK;
}

/* ---- operators without a rule ---- */

static _Atomic(uint64_t) fallbacks;

uint64_t weft_op_fallback_count(void)
{
    return atomic_load_explicit(&fallbacks, memory_order_relaxed);
}

/* "replicated: i0[A0..] -> o0[B0..]; whole A0.. B0.." */
static void write_rule(const weft_op_call *call, struct wf_text *out)
{
    wf_text_add(out, "replicated:");
    for (uint32_t i = 0; i < call->input_count; i++)
        wf_text_add(out, " i%u%s[A%u..]", i, call->inputs[i] == NULL ? "?" : "", i);
    wf_text_add(out, " ->");
    for (uint32_t i = 0; i < call->output_count; i++)
        wf_text_add(out, " o%u[B%u..]", i, i);
    for (uint32_t i = 0; i < call->input_count; i++)
        wf_text_add(out, "; whole A%u..", i);
    for (uint32_t i = 0; i < call->output_count; i++)
        wf_text_add(out, "; whole B%u..", i);
}

weft_status wf_fallback_begin(const char *function, const weft_op_call *call,
                              struct wf_op_entry *out)
{
    struct wf_text text = {0};
    weft_status status;
    size_t at = 0;

    *out = (struct wf_op_entry){.name = call->name, .rule_count = 1, .takes_any = true};
    out->length = (uint16_t)wf_min_i64((int64_t)strlen(call->name), UINT16_MAX);
    WF_TRY(wf_name_check(function, "weft_op_call.name", call->name));
    if (call->output_count == 0)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s: operator %.100s has no rule: weft_op_call.outputs must state its outputs",
            function, call->name);
    write_rule(call, &text);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_rule_read(text.data, &at, &out->rules[0]);
    if (status == WEFT_OK)
        out->digest = wf_hash(out->rules[0]->hash, call->name, strlen(call->name));
    if (status == WEFT_OK) atomic_fetch_add_explicit(&fallbacks, 1, memory_order_relaxed);
    wf_text_free(&text);
    return status;
}

void wf_fallback_end(struct wf_op_entry *entry)
{
    wf_rule_drop(entry->rules[0]);
}
