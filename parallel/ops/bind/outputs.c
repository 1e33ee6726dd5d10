/* outputs.c - the shapes and dtypes of the outputs of a call. */
#include "op.h"

#include <string.h>

static weft_status refuse_unknown(const struct wf_op *op, const struct wf_op_tensor *tensor,
                                  const struct wf_op_factor *f)
{
    const struct wf_rule *rule = op->rule;
    const struct wf_symbol *s = &rule->symbols[f->symbol];
    int attr = s->size_attr - 1;
    char name[40];

    wf_op_name_factor(op, f, name, sizeof name);
    for (int i = 0; i < rule->attr_count && attr < 0; i++)
        if (wf_words_same(rule, rule->attrs[i].name, s->name)) attr = i;
    if (attr < 0)
        return wf_op_refuse(op,
                            "the size of factor %s of output %.*s is not known; state the shape of "
                            "the output, or add a clause size to the rule",
                            name, WF_WORD(rule, wf_op_name(op, tensor)));
    return wf_op_refuse(op,
                        "the size of factor %s of output %.*s is not known; set the attribute %.*s "
                        "or weft_op_call.outputs",
                        name, WF_WORD(rule, wf_op_name(op, tensor)),
                        WF_WORD(rule, rule->attrs[attr].name));
}

/* The size of dimension DIM of an output from its factors. */
static weft_status size_output(struct wf_op *op, struct wf_op_tensor *tensor, int dim,
                               const weft_op_tensor *given)
{
    const struct wf_op_dim *d = &tensor->dim[dim];
    bool stated = given != NULL && dim < given->dims, learned = false;
    int64_t size = 1;

    if (stated && d->count > 0) {
        tensor->shape[dim] = given->shape[dim];
        if (d->count == 1 && op->factors[d->factor[0]].size < 0)
            op->factors[d->factor[0]].size = given->shape[dim];
        if (d->count > 1) WF_TRY(wf_op_learn_product(op, tensor, dim, &learned));
    }
    for (int i = 0; i < d->count; i++) {
        const struct wf_op_factor *f = &op->factors[d->factor[i]];
        if (f->size < 0) return refuse_unknown(op, tensor, f);
        if (!wf_mul_i64(size, f->size, &size))
            return wf_op_refuse(op, "dimension %d of output %.*s is larger than 2^63", dim,
                                WF_WORD(op->rule, wf_op_name(op, tensor)));
    }
    tensor->shape[dim] = size;
    return WEFT_OK;
}

/* Dimensions of list members that each member has for itself. */
static weft_status size_member(const struct wf_op *op, const weft_op_call *call,
                               struct wf_op_tensor *tensor, struct wf_place place, int dim,
                               uint32_t member)
{
    const struct wf_rule *rule = op->rule;
    const struct wf_slot *slot = &rule->slots[tensor->slot];
    const struct wf_symbol *s;
    const struct wf_pattern *p;
    const int64_t *list;
    uint32_t count, size_attr;

    if (place.pattern < 0 || !slot->list) return WEFT_OK;
    p = &rule->patterns[slot->first + place.pattern];
    if (p->kind != WF_PATTERN_SYMBOL || tensor->dim[dim].count != 0) return WEFT_OK;
    s = &rule->symbols[rule->parts[p->first]];
    size_attr = s->size_attr;
    if (size_attr != 0) {
        struct wf_word name = rule->attrs[size_attr - 1].name;
        const weft_op_attr *attr = wf_attr_find(call, rule->text + name.at, name.length);
        if (wf_attr_list(attr, &list, &count) && member < count) {
            tensor->shape[dim] = list[member];
            return WEFT_OK;
        }
    }
    return wf_op_refuse(op,
                        "the size of dimension %d of output %u is not known; set "
                        "weft_op_call.outputs",
                        dim, member);
}

static weft_status check_given(const struct wf_op *op, const struct wf_op_tensor *tensor,
                               const weft_op_tensor *given)
{
    bool same = given->dims == tensor->dims;

    for (int d = 0; d < tensor->dims && same; d++)
        same = given->shape[d] == tensor->shape[d];
    if (!same) {
        struct wf_text shapes = {0};
        weft_status status;
        wf_shape_add_text((int32_t)wf_min_i64(wf_max_i64(given->dims, 0), WEFT_MAX_DIMS),
                          given->shape, &shapes);
        wf_text_add(&shapes, ", but the rule gives ");
        wf_shape_add_text(tensor->dims, tensor->shape, &shapes);
        status = wf_text_status(&shapes);
        if (status == WEFT_OK)
            status = wf_op_refuse(op, "weft_op_call.outputs: output %.*s has shape %s",
                                  WF_WORD(op->rule, wf_op_name(op, tensor)), shapes.data);
        wf_text_free(&shapes);
        return status;
    }
    return WEFT_OK;
}

/* ---- dtypes ---- */

enum { TRUTH, INTEGER, REAL, COMPLEX };

static int kind_of(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_BOOL  ? TRUTH
           : dtype < WEFT_DTYPE_F16  ? INTEGER
           : dtype >= WEFT_DTYPE_C64 ? COMPLEX
                                     : REAL;
}

/* The dtype that holds values of both. */
static uint32_t join_dtypes(uint32_t a, uint32_t b)
{
    size_t bytes_a = wf_dtype_bytes(a), bytes_b = wf_dtype_bytes(b);

    if (kind_of(a) < kind_of(b)) return join_dtypes(b, a);
    if (a == b || kind_of(a) == TRUTH) return a;
    if (kind_of(a) == COMPLEX)
        return b == WEFT_DTYPE_F64 || b == WEFT_DTYPE_C128 ? WEFT_DTYPE_C128 : a;
    if (kind_of(a) != kind_of(b)) return a;
    if (kind_of(a) == REAL) /* two formats of one size */
        return bytes_a == bytes_b ? WEFT_DTYPE_F32 : bytes_a > bytes_b ? a : b;
    if (a % 2 == b % 2) return bytes_a > bytes_b ? a : b; /* odd: signed */
    if (a % 2 == 0) return join_dtypes(b, a);
    if (bytes_a > bytes_b || bytes_b == 8) return WEFT_DTYPE_I64 < b ? WEFT_DTYPE_I64 : a;
    return b + 1; /* the signed one that holds the unsigned one */
}

/* The dtype that holds all inputs, and the attributes with fractions.  A tensor without dimensions
 * counts only if the others are of a lesser kind. */
static uint32_t join_inputs(const struct wf_op *op, const weft_op_call *call)
{
    uint32_t joined[2] = {WEFT_DTYPE_BOOL, WEFT_DTYPE_BOOL}; /* without and with dimensions */

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        if (t->present && !op->rule->slots[t->slot].shape_only)
            joined[t->dims > 0] = join_dtypes(joined[t->dims > 0], t->dtype);
    }
    if (kind_of(joined[0]) > kind_of(joined[1])) joined[1] = joined[0];
    for (int i = 0; i < op->rule->attr_count && kind_of(joined[1]) < REAL; i++) {
        struct wf_word name = op->rule->attrs[i].name;
        const weft_op_attr *attr = wf_attr_find(call, op->rule->text + name.at, name.length);
        if (attr != NULL && attr->kind == WEFT_ATTR_REAL) return WEFT_DTYPE_F32;
    }
    return joined[1];
}

bool wf_op_same_kind(uint32_t a, uint32_t b)
{
    return kind_of(a) == kind_of(b);
}

static weft_status set_dtype(const struct wf_op *op, const weft_op_call *call,
                             struct wf_op_tensor *tensor)
{
    const struct wf_slot *slot = &op->rule->slots[tensor->slot];
    uint32_t from = UINT32_MAX;
    int input = slot->type == WF_TYPE_TENSOR  ? slot->type_value
                : slot->type == WF_TYPE_FIRST ? slot->inplace - 1 /* -1: the first */
                                              : -1;

    if (slot->type == WF_TYPE_DTYPE) {
        tensor->dtype = slot->type_value;
        return WEFT_OK;
    }
    if ((slot->type == WF_TYPE_JOIN || slot->type == WF_TYPE_FLOAT) && op->input_count > 0) {
        tensor->dtype = join_inputs(op, call);
        if (slot->type == WF_TYPE_FLOAT && kind_of(tensor->dtype) < REAL)
            tensor->dtype = WEFT_DTYPE_F32;
        return WEFT_OK;
    }
    if (slot->type == WF_TYPE_ATTR) {
        struct wf_word name = op->rule->attrs[slot->type_value].name;
        const weft_op_attr *attr = wf_attr_find(call, op->rule->text + name.at, name.length);
        if (attr == NULL || attr->kind != WEFT_ATTR_TEXT)
            return wf_op_refuse(op, "attribute %.*s must be the name of a dtype",
                                WF_WORD(op->rule, name));
        if (!wf_dtype_find(attr->text, strlen(attr->text), &tensor->dtype))
            return wf_op_refuse(op, "attribute %.*s: \"%.50s\" is not a dtype",
                                WF_WORD(op->rule, name), attr->text);
        return WEFT_OK;
    }
    for (uint32_t i = 0; i < op->input_count && from == UINT32_MAX; i++)
        if (op->tensors[i].present && (input < 0 || op->tensors[i].slot == input)) from = i;
    if (from == UINT32_MAX)
        return wf_op_refuse(op, "the dtype of output %.*s is not known; set weft_op_call.outputs",
                            WF_WORD(op->rule, wf_op_name(op, tensor)));
    tensor->dtype = op->tensors[from].dtype;
    if (slot->type == WF_TYPE_COMPLEX && kind_of(tensor->dtype) != COMPLEX)
        tensor->dtype = tensor->dtype == WEFT_DTYPE_F64 ? WEFT_DTYPE_C128 : WEFT_DTYPE_C64;
    if (slot->type == WF_TYPE_REAL && kind_of(tensor->dtype) == COMPLEX)
        tensor->dtype = tensor->dtype == WEFT_DTYPE_C128 ? WEFT_DTYPE_F64 : WEFT_DTYPE_F32;
    if (slot->type == WF_TYPE_WIDE && kind_of(tensor->dtype) < REAL) tensor->dtype = WEFT_DTYPE_I64;
    return WEFT_OK;
}

weft_status wf_op_bind_output(struct wf_spread *spread, struct wf_op_tensor *tensor, uint32_t index,
                              uint32_t member)
{
    struct wf_op *op = spread->op;
    const weft_op_call *call = spread->call;
    const weft_op_tensor *given = index < call->output_count ? &call->outputs[index] : NULL;
    struct wf_place places[WEFT_MAX_DIMS];
    weft_status status;
    int run;

    WF_TRY(wf_spread_output(spread, tensor, given, places));
    run = wf_op_count_run(op, tensor, places);
    for (int d = 0; d < tensor->dims; d++) {
        WF_TRY(wf_op_set_dim(op, tensor, places[d], run, &tensor->dim[d]));
        if (op->rule->slots[tensor->slot].list && given != NULL && d < given->dims &&
            tensor->dim[d].count == 0)
            tensor->shape[d] = given->shape[d];
        else
            WF_TRY(size_output(op, tensor, d, given));
        if (given == NULL) WF_TRY(size_member(op, call, tensor, places[d], d, member));
    }
    for (int d = 0; d < tensor->dims; d++)
        if (tensor->dim[d].count == 1 &&
            (op->factors[tensor->dim[d].factor[0]].flags & WF_DIFFERS) != 0)
            tensor->dim[d].count = 0;
    if (given == NULL) {
        WF_TRY(set_dtype(op, call, tensor));
    } else {
        tensor->dtype = given->dtype;
        WF_TRY(check_given(op, tensor, given));
    }
    status = wf_shape_check(tensor->dims, tensor->shape, tensor->dtype);
    return status == WEFT_OK ? status
                             : wf_fail_context(status, "operator %.100s, output %.*s", op->name,
                                               WF_WORD(op->rule, wf_op_name(op, tensor)));
}
