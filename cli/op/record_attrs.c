/* record_attrs.c - the parameters of a record, as the attributes that the rules list. */
#include "record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Parameters that the rules list under other names. */
static const struct {
    const char *param, *attr;
} aliases[] = {
    {"dim", "dims"},
    {"dims", "order"},
    {"dims", "repeats"},
    {"scalar", "s"},
    {"ord", "p"},
    {"group", "g"},
    {"num_weights", "v"},
    {"num_samples", "k"},
    {"equation", "eq"},
    {"num_classes", "classes"},
    {"value", "v"},
    {"dtype", "to"},
    {"scale_grad_by_freq", "scaled"},
    {"weight", "weighted"},
};

/* True if a rule of the operator lists the attribute NAME. */
static bool lists(const struct op_record *r, const char *name)
{
    size_t length = strlen(name);

    for (const char *line = r->rules; line != NULL; line = strchr(line, '\n')) {
        const char *at = line += line[0] == '\n', *end = at + strcspn(at, ":");
        for (at += strcspn(at, "(:"); at < end; at += strcspn(at, ",:")) {
            at++;
            if (strncmp(at, name, length) == 0 && strchr(",)=<>!", at[length]) != NULL) return true;
        }
    }
    return false;
}

int64_t op_record_int(const struct op_record *r, const char *name, int64_t fallback)
{
    const struct wf_json_value *v = wf_json_find(r->params, name);

    if (v == NULL || (v->kind != WF_JSON_INT && v->kind != WF_JSON_BOOL)) return fallback;
    return v->integer;
}

/* ---- attributes of a request ---- */

static weft_op_attr *new_attr(struct op_request *q, const char *name, uint32_t kind)
{
    weft_op_attr *a;

    if (q->call.attr_count == OP_ATTRS_MAX) return &q->attrs[OP_ATTRS_MAX - 1];
    a = &q->attrs[q->call.attr_count++];
    *a = (weft_op_attr){.name = name, .kind = kind};
    return a;
}

static void add_int(struct op_request *q, const char *name, int64_t value)
{
    new_attr(q, name, WEFT_ATTR_INT)->integer = value;
}

/* A list with room for COUNT numbers; NULL: there is no memory. */
static int64_t *add_list(struct op_request *q, const char *name, uint32_t count)
{
    int64_t *list = wf_calloc(count + 1, sizeof *list);
    weft_op_attr *a;

    if (list == NULL || q->call.attr_count == OP_ATTRS_MAX) {
        wf_free(list);
        return NULL;
    }
    q->lists[q->call.attr_count] = list;
    a = new_attr(q, name, WEFT_ATTR_LIST);
    a->list = list;
    a->count = count;
    return list;
}

/* V as the attribute NAME.  Values that are not numbers, text or lists of numbers are left out. */
static weft_status add_value(struct op_request *q, const char *name, const struct wf_json_value *v)
{
    bool infinite =
        v->kind == WF_JSON_STRING && (strcmp(v->text, "inf") == 0 || strcmp(v->text, "-inf") == 0);
    int64_t *list;
    uint32_t i = 0;

    if (v->kind == WF_JSON_INT || v->kind == WF_JSON_BOOL)
        add_int(q, name, v->integer);
    else if (v->kind == WF_JSON_REAL || infinite)
        new_attr(q, name, WEFT_ATTR_REAL)->real =
            infinite ? (v->text[0] == '-' ? -INFINITY : INFINITY) : v->real;
    else if (v->kind == WF_JSON_STRING)
        new_attr(q, name, WEFT_ATTR_TEXT)->text = v->text;
    if (v->kind != WF_JSON_ARRAY) return WEFT_OK;
    list = add_list(q, name, v->count);
    if (list == NULL) return wf_fail_memory(v->count * sizeof *list);
    for (const struct wf_json_value *m = v->first; m != NULL; m = m->next) {
        if (m->kind != WF_JSON_INT && m->kind != WF_JSON_BOOL)
            return wf_fail(WEFT_ERR_PARSE, "\"%.50s\" must be a list of whole numbers", v->key);
        list[i++] = m->integer;
    }
    return WEFT_OK;
}

static bool has_attr(const struct op_request *q, const char *name)
{
    for (uint32_t i = 0; i < q->call.attr_count; i++)
        if (strcmp(q->attrs[i].name, name) == 0) return true;
    return false;
}

/* ---- parameters ---- */

static weft_status add_params(const struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *p = r->params != NULL ? r->params->first : NULL;

    for (; p != NULL; p = p->next) {
        const char *name = p->key;
        bool end = strcmp(p->key, "end") == 0 && p->kind == WF_JSON_STRING; /* "max" */
        for (size_t i = 0; !lists(r, p->key) && i < WF_COUNT(aliases); i++)
            if (strcmp(aliases[i].param, p->key) == 0 && lists(r, aliases[i].attr))
                name = aliases[i].attr;
        if (end || has_attr(q, name) || (!lists(r, name) && strcmp(name, "keepdim") != 0)) continue;
        WF_TRY(add_value(q, name, p));
    }
    return WEFT_OK;
}

/* The dimension counts from the end if it is negative. */
static int64_t size_of(const struct op_record *r, int64_t dim)
{
    const weft_op_tensor *x = r->in_count > 0 ? &r->in[0] : NULL;

    if (x != NULL && dim < 0) dim += x->dims;
    return x != NULL && dim >= 0 && dim < x->dims ? x->shape[dim] : 0;
}

static weft_status add_sizes(const struct op_record *r, struct op_request *q)
{
    int64_t size = size_of(r, op_record_int(r, "dim", 0)), parts = op_record_int(r, "chunks", 0);
    int64_t each = op_record_int(r, "split_size", 0), *list;
    uint32_t count;

    if (parts > 0) each = size / parts + (size % parts != 0);
    if (each <= 0 || !lists(r, "sizes") || has_attr(q, "sizes")) return WEFT_OK;
    if (size / each >= 4096) return wf_fail(WEFT_ERR_INVALID, "more than 4096 parts");
    count = (uint32_t)(size / each + (size % each != 0));
    list = add_list(q, "sizes", count > 0 ? count : 1);
    if (list == NULL) return wf_fail_memory(count * sizeof *list);
    for (uint32_t i = 0; i < count; i++)
        list[i] = wf_min_i64(each, size - (int64_t)i * each);
    return WEFT_OK;
}

static weft_status add_normalized(const struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *shape = wf_json_find(r->params, "normalized_shape");
    int64_t *list, at = shape != NULL ? shape->count : 0;

    if (shape == NULL || shape->kind != WF_JSON_ARRAY) return WEFT_OK;
    for (const struct wf_json_value *s = shape->first; s != NULL; s = s->next, at--)
        if (s->kind != WF_JSON_INT || size_of(r, -at) != s->integer)
            return wf_fail(WEFT_ERR_INVALID,
                           "\"normalized_shape\" must be the end of the first tensor's shape");
    list = add_list(q, "dims", shape->count);
    if (list == NULL) return wf_fail_memory(shape->count * sizeof *list);
    for (uint32_t i = 0; i < shape->count; i++)
        list[i] = (int64_t)i - (int64_t)shape->count;
    return WEFT_OK;
}

/* The parameter NAME, a dimension of X, counted from 0. */
static weft_status read_dim(const struct op_record *r, const weft_op_tensor *x, const char *name,
                            int64_t fallback, int64_t *out)
{
    const struct wf_json_value *v = wf_json_find(r->params, name);
    int64_t dim = v != NULL ? v->integer : fallback, dims = x->dims > 0 ? x->dims : 1;

    if (v != NULL && v->kind != WF_JSON_INT)
        return wf_fail(WEFT_ERR_PARSE, "\"%s\" must be a dimension", name);
    *out = dim < 0 ? dim + dims : dim;
    if (*out >= 0 && *out < dims) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "\"%s\" is %lld, and the tensor has %d dimension%s", name,
                   (long long)dim, x->dims, WF_PLURAL(x->dims));
}

/* The target shape of flatten and unflatten, and the order of movedim. */
static weft_status add_shape(const struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *sizes = wf_json_find(r->params, "sizes"), *s;
    const weft_op_tensor *x = r->in_count > 0 ? &r->in[0] : NULL;
    bool flatten = strcmp(r->op, "flatten") == 0, move = strcmp(r->op, "movedim") == 0;
    int64_t first = 0, last = 0, *list, at = 0;

    if (x == NULL || (!flatten && !move && strcmp(r->op, "unflatten") != 0)) return WEFT_OK;
    WF_TRY(read_dim(r, x, flatten ? "start" : move ? "src" : "dim", 0, &first));
    WF_TRY(read_dim(r, x, move ? "dst" : "end", -1, &last));
    if (flatten && first > last) return wf_fail(WEFT_ERR_INVALID, "\"start\" comes behind \"end\"");
    list = add_list(q, move ? "order" : "shape", WEFT_MAX_DIMS * 2);
    if (list == NULL) return wf_fail_memory(WEFT_MAX_DIMS * 2 * sizeof *list);
    for (int32_t d = 0; d < x->dims; d++) {
        if (move && at == last) list[at++] = first;
        if (move && d != first) list[at++] = d;
        if (move) continue;
        if (flatten && d > first && d <= last && at > 0) {
            list[at - 1] *= x->shape[d];
            continue;
        }
        s = !flatten && d == first && sizes != NULL ? sizes->first : NULL;
        if (s == NULL) list[at++] = x->shape[d];
        for (; s != NULL && at < WEFT_MAX_DIMS; s = s->next)
            list[at++] = s->integer;
    }
    if (move && at == last) list[at++] = first;
    if (flatten && x->dims == 0) list[at++] = 1;
    q->attrs[q->call.attr_count - 1].count = (uint32_t)at;
    return WEFT_OK;
}

static double real_of(const struct wf_json_value *v, double fallback)
{
    return v != NULL && (v->kind == WF_JSON_INT || v->kind == WF_JSON_REAL) ? v->real : fallback;
}

/* "offset, dim1, dim2" behind the tensors of a call, where parameters do not name them. */
static void add_diagonal(const struct op_record *r, struct op_request *q)
{
    static const char *const names[] = {"offset", "dim1", "dim2"};
    const struct wf_json_value *a = r->args != NULL ? r->args->first : NULL;
    size_t at = 0;

    for (; a != NULL && at < WF_COUNT(names); a = a->next) {
        if (a->kind != WF_JSON_INT) continue;
        if (wf_json_find(r->params, names[at]) == NULL) add_int(q, names[at], a->integer);
        at++;
    }
}

/* Attributes that few operators have. */
static weft_status add_special(const struct op_record *r, struct op_request *q)
{
    const struct wf_json_value *sizes = wf_json_find(r->params, "input_sizes"), *a;
    int64_t dim = op_record_int(r, "dim", 0);

    if (r->equation[0] != '\0' && strcmp(r->name, "einsum") == 0)
        new_attr(q, "eq", WEFT_ATTR_TEXT)->text = r->equation;
    if (lists(r, "ranged"))
        add_int(q, "ranged",
                real_of(wf_json_find(r->params, "min"), 0) !=
                    real_of(wf_json_find(r->params, "max"), 0));
    if (lists(r, "indices")) add_int(q, "indices", 1);
    if (strncmp(r->op, "upsample_nearest", 16) == 0)
        new_attr(q, "mode", WEFT_ATTR_TEXT)->text = "nearest";
    if (lists(r, "dim1")) add_diagonal(r, q);
    if (strcmp(r->op, "unbind") == 0) add_int(q, "count", size_of(r, dim));
    if (strcmp(r->op, "narrow") == 0) {
        int64_t start = op_record_int(r, "start", 0), length = op_record_int(r, "length", 0);
        int64_t size = size_of(r, dim);
        if (start < 0 && start >= -size) start += size;
        if (start < 0 || length < 0 || start > size || length > size - start)
            return wf_fail(WEFT_ERR_INVALID,
                           "narrow: start %lld and length %lld are outside of the size %lld",
                           (long long)start, (long long)length, (long long)size);
        add_int(q, "end", start + length);
    }
    if (strcmp(r->op, "hstack") == 0) add_int(q, "dim", r->in_count > 0 && r->in[0].dims > 1);
    if (strncmp(r->op, "index_fill", 10) == 0 && r->args != NULL && r->args->count > 3) {
        a = r->args->first->next->next->next;
        new_attr(q, "v", WEFT_ATTR_REAL)->real = real_of(a, 1);
    }
    if (sizes != NULL && sizes->kind == WF_JSON_ARRAY && lists(r, "n")) {
        a = sizes->first;
        for (dim += dim < 0 ? sizes->count : 0; a != NULL && dim > 0; dim--)
            a = a->next;
        if (a != NULL) add_int(q, "n", a->integer);
    }
    return WEFT_OK;
}

weft_status op_record_attrs(const struct op_record *r, struct op_request *q)
{
    static const char *const last[] = {"sort", "argsort", "topk", "glu", "cross"};
    int64_t fallback = 0;

    WF_TRY(add_shape(r, q));
    WF_TRY(add_normalized(r, q));
    WF_TRY(add_special(r, q));
    WF_TRY(add_params(r, q));
    WF_TRY(add_sizes(r, q));
    for (size_t i = 0; i < WF_COUNT(last); i++)
        if (strncmp(r->op, last[i], strlen(last[i])) == 0) fallback = -1;
    if (lists(r, "dim") && !has_attr(q, "dim")) add_int(q, "dim", fallback);
    if (strcmp(r->op, "masked_fill") == 0 && lists(r, "v") && !has_attr(q, "v"))
        new_attr(q, "v", WEFT_ATTR_REAL)->real = 1;
    return WEFT_OK;
}
