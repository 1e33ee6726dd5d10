/* values.c - the attributes of the calls that compute gradients. */
#include "backward.h"

#include <math.h>
#include <string.h>

/* ---- adding ---- */

static weft_status add(struct wf_derivation *d, const char *name, weft_op_attr attr,
                       weft_op_call *call)
{
    weft_op_attr *attrs = (weft_op_attr *)(uintptr_t)call->attrs;

    if (call->attr_count == WF_STEP_ATTRS)
        return wf_fail(WEFT_ERR_INTERNAL, "a gradient of operator %.100s has too many attributes",
                       d->forward->name);
    attr.name = wf_backward_text(d->backward, name, strlen(name));
    if (attr.name == NULL) return wf_fail_memory(strlen(name));
    attrs[call->attr_count++] = attr;
    return WEFT_OK;
}

weft_status wf_value_add_list(struct wf_derivation *d, const char *name, const int64_t *list,
                              size_t count, weft_op_call *call)
{
    int64_t *copy = wf_backward_room(d->backward, count, sizeof *copy);

    if (copy == NULL) return wf_fail_memory(count * sizeof *copy);
    if (count > 0) memcpy(copy, list, count * sizeof *copy);
    return add(d, name, (weft_op_attr){.kind = WEFT_ATTR_LIST, .count = count, .list = copy}, call);
}

weft_status wf_value_add_int(struct wf_derivation *d, const char *name, int64_t value,
                             weft_op_call *call)
{
    return add(d, name, (weft_op_attr){.kind = WEFT_ATTR_INT, .integer = value}, call);
}

static weft_status add_real(struct wf_derivation *d, const char *name, double value,
                            weft_op_call *call)
{
    return add(d, name, (weft_op_attr){.kind = WEFT_ATTR_REAL, .real = value}, call);
}

weft_status wf_value_add(struct wf_derivation *d, const char *name, const weft_op_attr *from,
                         weft_op_call *call)
{
    weft_op_attr attr = *from;

    if (attr.kind == WEFT_ATTR_LIST) return wf_value_add_list(d, name, attr.list, attr.count, call);
    if (attr.kind == WEFT_ATTR_TEXT) {
        attr.text = wf_backward_text(d->backward, attr.text, strlen(attr.text));
        if (attr.text == NULL) return wf_fail_memory(1);
    }
    return add(d, name, attr, call);
}

weft_status wf_value_add_known(struct wf_derivation *d, weft_op_call *call)
{
    const struct wf_op_entry *entry;
    weft_status status = WEFT_OK;
    uint32_t ticket;

    WF_TRY(wf_op_enter(&ticket));
    entry = wf_op_find(call->name);
    for (uint32_t i = 0; entry != NULL && i < d->forward->attr_count && status == WEFT_OK; i++) {
        const weft_op_attr *attr = &d->forward->attrs[i];

        if (wf_attr_find(call, attr->name, strlen(attr->name)) == NULL &&
            wf_attr_is_known(entry, attr->name))
            status = wf_value_add(d, attr->name, attr, call);
    }
    wf_op_leave(ticket);
    return status;
}

/* ---- sizes ---- */

/* The forward's attribute `dim`, of a tensor of DIMS dimensions. */
static int64_t position(const struct wf_derivation *d, int32_t dims)
{
    int64_t dim = 0;

    (void)wf_attr_int(d->forward, "dim", &dim);
    return dim < 0 ? dim + dims : dim;
}

/* The sizes of the tensors of SLOT in dimension `dim`, or their number. */
static weft_status add_sizes(struct wf_derivation *d, const char *name, uint32_t slot, bool number,
                             weft_op_call *call)
{
    size_t room = d->backward->info.inputs + d->backward->info.outputs;
    struct wf_operands tensors = {NULL, 0, room};
    int64_t *sizes = wf_backward_room(d->backward, room, sizeof *sizes);

    tensors.list = wf_backward_room(d->backward, room, sizeof *tensors.list);
    if (sizes == NULL || tensors.list == NULL) return wf_fail_memory(room * sizeof *sizes);
    WF_TRY(wf_derive_slot(d, slot, false, &tensors));
    if (number) return wf_value_add_int(d, name, (int64_t)tensors.count, call);
    for (uint32_t i = 0; i < tensors.count; i++) {
        const weft_spec *spec = wf_backward_spec(d->backward, tensors.list[i]);
        sizes[i] = weft_spec_shape(spec)[position(d, weft_spec_dims(spec))];
    }
    return wf_value_add_list(d, name, sizes, tensors.count, call);
}

/* The shape of SPEC with 1 in place of the sizes of the dimensions that the forward reduces. */
static void keep_dims(const struct wf_derivation *d, const weft_spec *spec, int64_t *shape)
{
    int32_t dims = weft_spec_dims(spec);
    const weft_op_attr *attr = wf_attr_find(d->forward, "dims", 4);
    const int64_t *list = NULL;
    uint32_t count = 0;

    if (attr != NULL && !wf_attr_list(attr, &list, &count)) count = 0;
    for (int32_t i = 0; i < dims; i++)
        shape[i] = count > 0 ? weft_spec_shape(spec)[i] : 1;
    for (uint32_t i = 0; i < count && dims > 0; i++) /* a scalar has only dimensions 0, -1 */
        shape[list[i] < 0 ? list[i] + dims : list[i]] = 1;
}

/* ---- reading ---- */

static weft_status fail(const struct wf_scan *scan, const char *expected)
{
    return wf_scan_fail(scan, "gradient", "expected %s", expected);
}

/* "NAME)": a slot of the forward rule. */
static weft_status take_slot(struct wf_derivation *d, struct wf_scan *scan, uint32_t *slot)
{
    const char *name;
    size_t length;
    int found;

    if (!wf_scan_name(scan, &name, &length)) return fail(scan, "a tensor");
    found = wf_derive_find(d, name, length);
    if (found < 0 || !wf_scan_char(scan, ')')) return fail(scan, "a tensor and ')'");
    *slot = (uint32_t)found;
    return WEFT_OK;
}

static weft_status add_inverse(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                               weft_op_call *call)
{
    int64_t inverse[WEFT_MAX_DIMS];
    const weft_op_attr *attr;
    const int64_t *list;
    const char *word;
    size_t length;
    uint32_t count;

    if (!wf_scan_name(scan, &word, &length) || !wf_scan_char(scan, ')'))
        return fail(scan, "an attribute and ')'");
    attr = wf_attr_find(d->forward, word, length);
    if (attr == NULL || !wf_attr_list(attr, &list, &count) || count > WEFT_MAX_DIMS)
        return fail(scan, "an attribute that is a list");
    for (uint32_t i = 0; i < count; i++)
        inverse[list[i] < 0 ? list[i] + count : list[i]] = i;
    return wf_value_add_list(d, name, inverse, count, call);
}

static weft_status add_dtype(struct wf_derivation *d, const char *name, uint32_t dtype,
                             weft_op_call *call)
{
    const weft_op_attr attr = {.kind = WEFT_ATTR_TEXT, .text = weft_dtype_name(dtype)};

    return wf_value_add(d, name, &attr, call);
}

/* "shape(x)" and the like, from behind the parenthesis. */
static weft_status add_function(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                                const char *word, size_t length, weft_op_call *call)
{
    struct wf_operands one = {&(weft_op_operand){0, 0}, 0, 1};
    const weft_spec *spec;
    const int64_t *shape;
    int32_t dims;
    int64_t kept[WEFT_MAX_DIMS];
    uint32_t slot = 0;

    if (length == 7 && memcmp(word, "inverse", 7) == 0) return add_inverse(d, scan, name, call);
    WF_TRY(take_slot(d, scan, &slot));
    if (length == 5 && memcmp(word, "sizes", 5) == 0) return add_sizes(d, name, slot, false, call);
    if (length == 6 && memcmp(word, "number", 6) == 0) return add_sizes(d, name, slot, true, call);
    WF_TRY(wf_derive_slot(d, slot, false, &one));
    spec = wf_backward_spec(d->backward, one.list[0]);
    shape = weft_spec_shape(spec);
    dims = weft_spec_dims(spec);
    if (length == 5 && memcmp(word, "shape", 5) == 0)
        return wf_value_add_list(d, name, shape, (uint32_t)dims, call);
    if (length == 5 && memcmp(word, "dtype", 5) == 0)
        return add_dtype(d, name, weft_spec_dtype(spec), call);
    if (length == 4 && memcmp(word, "rows", 4) == 0)
        return wf_value_add_int(d, name, shape[0], call);
    if (length == 4 && memcmp(word, "size", 4) == 0)
        return wf_value_add_int(d, name, shape[position(d, dims)], call);
    if (length != 4 || memcmp(word, "kept", 4) != 0) return fail(scan, "a known function");
    keep_dims(d, spec, kept);
    return wf_value_add_list(d, name, kept, (uint32_t)dims, call);
}

static double count_of(const struct wf_derivation *d)
{
    const weft_spec *input = d->backward->inputs[0];
    int64_t outputs = weft_spec_elements(weft_op_choice_output(d->backward->forward, 0));

    return outputs > 0 ? (double)weft_spec_elements(input) / (double)outputs : 1;
}

/* A forward attribute, less 1 if "-1" follows. */
static weft_status add_forward(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                               const char *word, size_t length, weft_op_call *call)
{
    const weft_op_attr *attr = wf_attr_find(d->forward, word, length);
    bool less = wf_scan_word(scan, "-1");
    double number;

    if (attr == NULL) return WEFT_OK;
    if (!less) return wf_value_add(d, name, attr, call);
    if (!wf_attr_number(attr, &number)) return fail(scan, "an attribute that is a number");
    return add_real(d, name, number - 1, call);
}

static weft_status take_number(struct wf_scan *scan, double *out, bool *is_real)
{
    bool negative = wf_scan_char(scan, '-');
    double scale = 0.1;
    int64_t whole;

    WF_TRY(wf_scan_int(scan, "a number", &whole));
    *out = (double)whole;
    *is_real = wf_scan_char(scan, '.');
    for (; *is_real && wf_scan_peek(scan) >= '0' && wf_scan_peek(scan) <= '9'; scan->at++) {
        *out += (wf_scan_peek(scan) - '0') * scale;
        scale /= 10;
    }
    if (negative) *out = -*out;
    return WEFT_OK;
}

static weft_status add_numbers(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                               weft_op_call *call)
{
    int64_t list[WEFT_MAX_DIMS];
    uint32_t count = 0;
    bool is_real;
    double number;

    if (!wf_scan_char(scan, '[')) {
        WF_TRY(take_number(scan, &number, &is_real));
        return is_real ? add_real(d, name, number, call)
                       : wf_value_add_int(d, name, (int64_t)number, call);
    }
    do {
        WF_TRY(take_number(scan, &number, &is_real));
        if (count == WEFT_MAX_DIMS) return fail(scan, "fewer numbers");
        list[count++] = (int64_t)number;
    } while (wf_scan_char(scan, ','));
    if (!wf_scan_char(scan, ']')) return fail(scan, "']'");
    return wf_value_add_list(d, name, list, count, call);
}

weft_status wf_value_read(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                          size_t length, weft_op_call *call)
{
    char text[32] = "";
    const char *word;
    size_t word_length;

    if (length >= sizeof text || !wf_scan_char(scan, '=')) return fail(scan, "'='");
    memcpy(text, name, length);
    if (!wf_scan_name(scan, &word, &word_length)) return add_numbers(d, scan, text, call);
    if (wf_scan_char(scan, '(')) return add_function(d, scan, text, word, word_length, call);
    if (word_length == 5 && memcmp(word, "count", 5) == 0)
        return add_real(d, text, count_of(d), call);
    return add_forward(d, scan, text, word, word_length, call);
}
