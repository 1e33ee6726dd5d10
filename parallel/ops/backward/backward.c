/* backward.c - the public functions on the calls of gradients. */
#include "backward.h"

#include "base/number.h"

#include <string.h>

static const char function[] = "weft_op_backward_create";

static weft_status make_tensors(weft_op_backward *b, const weft_op_call *call)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    WF_TRY(weft_op_choice_get(b->forward, &info));
    b->info.inputs = info.inputs;
    b->info.outputs = info.outputs;
    b->inputs = wf_backward_room(b, info.inputs, sizeof *b->inputs);
    b->gradients = wf_backward_room(b, info.outputs, sizeof *b->gradients);
    b->found = wf_backward_room(b, info.inputs, sizeof *b->found);
    if (b->inputs == NULL || b->gradients == NULL || b->found == NULL)
        return wf_fail_memory(info.inputs * sizeof *b->inputs);
    for (uint32_t i = 0; i < info.inputs; i++) {
        b->inputs[i] = call->inputs[i] != NULL ? weft_spec_retain(call->inputs[i]) : NULL;
        b->found[i] = (weft_op_operand){WEFT_OP_FROM_NOTHING, 0};
    }
    for (uint32_t i = 0; i < info.outputs; i++) {
        const weft_spec *spec = weft_op_choice_output(b->forward, i);

        if (wf_choice_has_gradient(weft_spec_dtype(spec)))
            WF_TRY(weft_spec_gradient(spec, &b->gradients[i]));
    }
    return WEFT_OK;
}

/* The rule of the operator that applies to CALL, with a reference for the caller. */
static weft_status find_rule(const weft_op_call *call, bool *is_registered, struct wf_rule **out)
{
    const struct wf_op_entry *entry;
    weft_status status = WEFT_OK;
    uint32_t ticket;

    *out = NULL;
    WF_TRY(wf_op_enter(&ticket));
    entry = wf_op_find(call->name);
    if (entry == NULL || wf_op_is_chain(entry))
        status = wf_fail(WEFT_ERR_UNSUPPORTED,
                         "operator %.100s: gradients are known of operators with rules of their "
                         "own, not of forms in place or on lists or of operators made of others",
                         call->name);
    for (uint32_t i = 0; status == WEFT_OK && *out == NULL && i < entry->rule_count; i++)
        if (wf_attr_guards_hold(entry->rules[i], call)) *out = wf_rule_retain(entry->rules[i]);
    *is_registered = entry != NULL && entry->registered;
    wf_op_leave(ticket);
    if (status == WEFT_OK && *out == NULL)
        status = wf_fail(WEFT_ERR_INTERNAL, "operator %.100s: no rule applies", call->name);
    return status;
}

/* True if the operator rounds its result, which then has no gradient. */
static bool is_rounded(const weft_op_call *call)
{
    const weft_op_attr *mode = wf_attr_find(call, "rounding_mode", 13);

    return mode != NULL && mode->kind == WEFT_ATTR_TEXT && strcmp(mode->text, "none") != 0;
}

/* True if CALL reads the values of OPERAND, and not its shape alone. */
static bool reads_values(const weft_op_call *call, uint32_t operand)
{
    return !(operand == 0 &&
             (strcmp(call->name, "copy") == 0 || strcmp(call->name, "zeros_like") == 0));
}

/* A product with a complex tensor would need its conjugate, which the formulas lack. */
static weft_status check_complex(const struct wf_derivation *d)
{
    const weft_op_backward *b = d->backward;

    for (uint32_t i = 0; i < b->info.calls; i++)
        for (uint32_t k = 0; k < b->calls[i].call->input_count; k++) {
            weft_op_operand operand = b->calls[i].operands[k];
            const weft_spec *spec = wf_backward_spec(b, operand);

            if (spec != NULL && operand.source <= WEFT_OP_FROM_OUTPUT &&
                wf_dtype_is_complex(weft_spec_dtype(spec)) && reads_values(b->calls[i].call, k))
                return wf_fail(WEFT_ERR_UNSUPPORTED,
                               "operator %.100s: its gradients are known for real numbers only",
                               d->forward->name);
        }
    return WEFT_OK;
}

static weft_status derive(struct wf_derivation *d)
{
    const char *formula = d->is_registered ? NULL : wf_formula_find(d->forward);
    bool found = false;

    if (is_rounded(d->forward))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "operator %.100s: a rounded result has no gradient",
                       d->forward->name);
    if (formula != NULL || (!d->is_registered && strcmp(d->forward->name, "einsum") == 0)) {
        WF_TRY(formula != NULL ? wf_formula_evaluate(d, formula) : wf_einsum_evaluate(d));
        return check_complex(d);
    }
    WF_TRY(wf_written_evaluate(d, &found));
    if (found) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "operator %.100s: its gradients are not known; register an operator %.100s_bwd",
                   d->forward->name, d->forward->name);
}

static weft_status build(weft_op_backward *b, const weft_op_call *call, const bool *wanted,
                         const weft_op_options *options)
{
    struct wf_derivation d = {b, call, wanted, options, NULL, false};
    weft_status status;

    WF_TRY(wf_op_answer(function, true, call, options, &b->forward));
    WF_TRY(make_tensors(b, call));
    WF_TRY(find_rule(call, &d.is_registered, &d.rule));
    status = derive(&d);
    wf_rule_drop(d.rule);
    return status;
}

/* The options of the backward of a call with INPUTS inputs. */
static weft_status read_options(const weft_op_backward_options *given, size_t inputs,
                                weft_op_backward_options *out)
{
    WF_TRY(wf_fail_named(wf_options_read("weft_op_backward_options", given, out, sizeof *out),
                         function));
    if (out->wanted == NULL || out->wanted_count == inputs) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: weft_op_backward_options.wanted has %zu entries (wanted_count), and the "
                   "call has %zu input%s",
                   function, out->wanted_count, inputs, WF_PLURAL(inputs));
}

weft_status weft_op_backward_create(const weft_op_call *call,
                                    const weft_op_backward_options *options, weft_op_backward **out)
{
    weft_op_backward_options how = {0};
    weft_op_options strategy;
    weft_op_backward *b;
    weft_op_call read;
    weft_status status;

    if (out == NULL) return wf_fail(WEFT_ERR_INVALID, "%s: out is NULL", function);
    WF_TRY(wf_call_read(function, call, NULL, &read, &strategy));
    WF_TRY(read_options(options, read.input_count, &how));
    strategy.struct_size = sizeof strategy;
    if (how.costs != NULL) strategy.costs = how.costs;
    b = wf_calloc(1, sizeof *b);
    if (b == NULL) return wf_fail_memory(sizeof *b);
    b->info.struct_size = sizeof b->info;
    b->info.local = true;
    read.struct_size = sizeof read;
    status = build(b, &read, how.wanted, &strategy);
    if (status == WEFT_OK)
        *out = b;
    else
        weft_op_backward_release(&b);
    return wf_fail_named(status, function);
}

static void release_specs(weft_spec **specs, size_t count)
{
    for (size_t i = 0; specs != NULL && i < count; i++)
        weft_spec_release(&specs[i]);
}

void weft_op_backward_release(weft_op_backward **backward)
{
    weft_op_backward *b;

    if (backward == NULL || *backward == NULL) return;
    b = *backward;
    *backward = NULL;
    release_specs(b->results, b->info.results);
    release_specs(b->inputs, b->info.inputs);
    release_specs(b->gradients, b->info.outputs);
    weft_op_choice_release(&b->forward);
    for (struct wf_piece *piece = b->pieces, *next; piece != NULL; piece = next) {
        next = piece->next;
        wf_free(piece);
    }
    wf_free(b->calls);
    wf_free(b->results);
    wf_free(b);
}

weft_status weft_op_backward_get(const weft_op_backward *backward, weft_op_backward_info *out)
{
    WF_TRY(wf_require(backward, "weft_op_backward_get: backward"));
    WF_TRY(wf_require(out, "weft_op_backward_get: out"));
    return wf_info_write("weft_op_backward_info", &backward->info, sizeof backward->info, out);
}

size_t weft_op_backward_inputs(const weft_op_backward *backward)
{
    return backward != NULL ? backward->info.inputs : 0;
}

size_t weft_op_backward_outputs(const weft_op_backward *backward)
{
    return backward != NULL ? backward->info.outputs : 0;
}

const weft_op_gradient_call *weft_op_backward_call(const weft_op_backward *backward, size_t index)
{
    return backward != NULL && index < backward->info.calls ? &backward->calls[index] : NULL;
}

const weft_op_operand *weft_op_backward_gradient(const weft_op_backward *backward, size_t input)
{
    if (backward == NULL || input >= backward->info.inputs ||
        backward->found[input].source == WEFT_OP_FROM_NOTHING)
        return NULL;
    return &backward->found[input];
}

const weft_spec *weft_op_backward_spec(const weft_op_backward *backward,
                                       const weft_op_operand *operand)
{
    if (backward == NULL || operand == NULL) return NULL;
    return wf_backward_spec(backward, *operand);
}
