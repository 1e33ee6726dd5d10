/* evaluate.c - a formula becomes calls. */
#include "backward.h"

#include <string.h>

enum { TARGETS = 8 };

struct evaluation {
    struct wf_derivation *d;
    struct wf_scan scan;
    uint32_t depth;
};

static weft_status evaluate(struct evaluation *e, struct wf_operands *out) WF_NODISCARD;

static weft_status fail(const struct evaluation *e, const char *expected)
{
    return wf_scan_fail(&e->scan, "gradient", "expected %s", expected);
}

static bool is_word(const char *name, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(name, word, length) == 0;
}

static weft_status make_room(struct evaluation *e, struct wf_operands *out)
{
    const weft_op_backward_info *info = &e->d->backward->info;

    out->count = 0;
    out->room = info->inputs + info->outputs + TARGETS;
    out->list = wf_backward_room(e->d->backward, out->room, sizeof *out->list);
    return out->list != NULL ? WEFT_OK : wf_fail_memory(out->room * sizeof *out->list);
}

/* A tensor of the forward call, or `g`, the gradients of its first output slot.  `w?` is absent if
 * the rule of the forward call has no such slot. */
static weft_status add_tensor(struct evaluation *e, const char *name, size_t length,
                              struct wf_operands *out)
{
    int slot = wf_derive_find(e->d, name, length);

    (void)wf_scan_char(&e->scan, '*');
    if (wf_scan_char(&e->scan, '?') && slot < 0) {
        out->list[out->count++] = (weft_op_operand){WEFT_OP_FROM_NOTHING, 0};
        return WEFT_OK;
    }
    if (slot >= 0) return wf_derive_slot(e->d, (uint32_t)slot, false, out);
    if (is_word(name, length, "g")) return wf_derive_slot(e->d, e->d->rule->input_count, true, out);
    return fail(e, "a tensor of the rule");
}

/* A reshape to the shape that the tensor has is left out. */
static bool changes_nothing(const struct evaluation *e, const weft_op_call *call,
                            const struct wf_operands *operands)
{
    const weft_spec *from;

    if (strcmp(call->name, "reshape") != 0 || operands->count != 1 || call->attr_count != 1)
        return false;
    from = wf_backward_spec(e->d->backward, operands->list[0]);
    return (uint32_t)weft_spec_dims(from) == call->attrs[0].count &&
           memcmp(weft_spec_shape(from), call->attrs[0].list,
                  call->attrs[0].count * sizeof(int64_t)) == 0;
}

/* The arguments of a call, from behind the parenthesis. */
static weft_status read_arguments(struct evaluation *e, struct wf_operands *operands,
                                  weft_op_call *call)
{
    const char *name;
    size_t length, before;

    do {
        wf_scan_space(&e->scan);
        if (wf_scan_char(&e->scan, '*')) {
            WF_TRY(wf_value_add_known(e->d, call));
            continue;
        }
        before = e->scan.at;
        if (!wf_scan_name(&e->scan, &name, &length)) return fail(e, "an argument");
        if (wf_scan_peek(&e->scan) == '=') {
            WF_TRY(wf_value_read(e->d, &e->scan, name, length, call));
            continue;
        }
        e->scan.at = before;
        WF_TRY(evaluate(e, operands));
    } while (wf_scan_char(&e->scan, ','));
    return wf_scan_char(&e->scan, ')') ? WEFT_OK : fail(e, "')'");
}

/* "scaled(e, attribute)": e times the attribute of the forward call, if it has it. */
static weft_status add_scaled(struct evaluation *e, struct wf_operands *out)
{
    const weft_op_attr *attr;
    struct wf_operands inner;
    weft_op_operand result;
    weft_op_call call;
    const char *name;
    size_t length;

    WF_TRY(make_room(e, &inner));
    WF_TRY(evaluate(e, &inner));
    if (!wf_scan_char(&e->scan, ',')) return fail(e, "','");
    wf_scan_space(&e->scan);
    if (!wf_scan_name(&e->scan, &name, &length) || !wf_scan_char(&e->scan, ')'))
        return fail(e, "an attribute and ')'");
    attr = wf_attr_find(e->d->forward, name, length);
    result = inner.list[0];
    if (attr != NULL) {
        WF_TRY(wf_step_begin(e->d, "mul_scalar", 10, &call));
        WF_TRY(wf_value_add(e->d, "s", attr, &call));
        WF_TRY(wf_step_add(e->d, &call, &inner, &result));
    }
    out->list[out->count++] = result;
    return WEFT_OK;
}

/* "abn,abk->nk" for tensors of DIMS dimensions. */
static weft_status write_equation(int32_t dims, struct wf_text *out)
{
    static const char letters[] = "abcdefgh";

    wf_text_add(out, "%.*sn,%.*sk->nk", dims - 1, letters, dims - 1, letters);
    return wf_text_status(out);
}

/* A product over all dimensions but the last ones: mm of matrices, otherwise einsum. */
static weft_status contract(struct evaluation *e, struct wf_operands *pair, weft_op_operand *result)
{
    int32_t dims = weft_spec_dims(wf_backward_spec(e->d->backward, pair->list[0]));
    static const int64_t swap[] = {0, 1};
    struct wf_operands first = {pair->list, 1, 1};
    struct wf_text equation = {0};
    weft_op_attr eq = {.name = "eq", .kind = WEFT_ATTR_TEXT};
    weft_status status;
    weft_op_call call;

    if (dims == 2) {
        WF_TRY(wf_step_begin(e->d, "transpose", 9, &call));
        WF_TRY(wf_value_add_list(e->d, "dims", swap, 2, &call));
        WF_TRY(wf_step_add(e->d, &call, &first, result));
        pair->list[0] = *result;
        WF_TRY(wf_step_begin(e->d, "mm", 2, &call));
        return wf_step_add(e->d, &call, pair, result);
    }
    WF_TRY(wf_step_begin(e->d, "einsum", 6, &call));
    status = write_equation(dims, &equation);
    eq.text = equation.data;
    if (status == WEFT_OK) status = wf_value_add(e->d, "eq", &eq, &call);
    wf_text_free(&equation);
    return status == WEFT_OK ? wf_step_add(e->d, &call, pair, result) : status;
}

static weft_status add_contraction(struct evaluation *e, struct wf_operands *out)
{
    weft_op_operand result = {0, 0};
    struct wf_operands pair;
    weft_op_call none;

    WF_TRY(make_room(e, &pair));
    WF_TRY(wf_step_begin(e->d, "", 0, &none));
    WF_TRY(read_arguments(e, &pair, &none));
    if (pair.count != 2) return fail(e, "two tensors");
    WF_TRY(contract(e, &pair, &result));
    out->list[out->count++] = result;
    return WEFT_OK;
}

/* A call, from behind the parenthesis; its results are appended to OUT. */
static weft_status add_call(struct evaluation *e, const char *name, size_t length,
                            struct wf_operands *out)
{
    struct wf_operands operands;
    weft_op_operand result;
    weft_op_call call;

    if (is_word(name, length, "scaled")) return add_scaled(e, out);
    if (is_word(name, length, "contract")) return add_contraction(e, out);
    WF_TRY(make_room(e, &operands));
    WF_TRY(wf_step_begin(e->d, name, length, &call));
    WF_TRY(read_arguments(e, &operands, &call));
    if (changes_nothing(e, &call, &operands)) {
        out->list[out->count++] = operands.list[0];
        return WEFT_OK;
    }
    WF_TRY(wf_step_add(e->d, &call, &operands, &result));
    if (e->depth > 1) { /* another call reads the first result only */
        out->list[out->count++] = result;
        return WEFT_OK;
    }
    for (; result.index < e->d->backward->info.results && out->count < out->room; result.index++)
        out->list[out->count++] = result;
    return WEFT_OK;
}

static weft_status evaluate(struct evaluation *e, struct wf_operands *out)
{
    weft_status status;
    const char *name;
    size_t length;

    wf_scan_space(&e->scan);
    if (!wf_scan_name(&e->scan, &name, &length)) return fail(e, "a tensor or an operator");
    e->depth++;
    status = wf_scan_char(&e->scan, '(') ? add_call(e, name, length, out)
                                         : add_tensor(e, name, length, out);
    e->depth--;
    return status;
}

/* ---- gradients ---- */

/* "x w b" or "x*": the inputs whose gradients follow. */
static weft_status read_targets(struct evaluation *e, struct wf_operands *out)
{
    const char *name;
    size_t length;
    int slot;

    wf_scan_space(&e->scan);
    while (!wf_scan_char(&e->scan, '=')) {
        if (!wf_scan_name(&e->scan, &name, &length)) return fail(e, "an input");
        slot = wf_derive_find(e->d, name, length);
        if (slot < 0 || slot >= e->d->rule->input_count) return fail(e, "an input of the rule");
        (void)wf_scan_char(&e->scan, '*');
        WF_TRY(wf_derive_slot(e->d, (uint32_t)slot, false, out));
        wf_scan_space(&e->scan);
    }
    return WEFT_OK;
}

static bool wants_any(const struct evaluation *e, const struct wf_operands *targets)
{
    for (uint32_t i = 0; i < targets->count; i++)
        if (targets->list[i].source == WEFT_OP_FROM_INPUT &&
            wf_derive_wants(e->d, targets->list[i].index))
            return true;
    return false;
}

static weft_status add_gradients(struct evaluation *e)
{
    struct wf_operands targets, found;

    WF_TRY(make_room(e, &targets));
    WF_TRY(read_targets(e, &targets));
    if (!wants_any(e, &targets)) {
        e->scan.at += strcspn(e->scan.text + e->scan.at, ";");
        return WEFT_OK;
    }
    WF_TRY(make_room(e, &found));
    WF_TRY(evaluate(e, &found));
    for (uint32_t i = 0; i < targets.count && i < found.count; i++)
        if (targets.list[i].source == WEFT_OP_FROM_INPUT)
            WF_TRY(wf_derive_set(e->d, targets.list[i].index, found.list[i]));
    return WEFT_OK;
}

weft_status wf_formula_evaluate(struct wf_derivation *d, const char *formula)
{
    struct evaluation e = {d, {formula, 0}, 0};

    do
        WF_TRY(add_gradients(&e));
    while (wf_scan_char(&e.scan, ';'));
    return wf_scan_end(&e.scan) ? WEFT_OK : fail(&e, "';' or the end");
}
