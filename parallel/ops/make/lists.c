/* lists.c - rules of operators on several tensors: cat, split, gather, index and einsum. */
#include "make.h"

#include <string.h>

/* ---- cat and split ---- */

/* An old rule of PyTorch: a tensor of shape [0] may stand anywhere in the list. */
static bool is_empty_vector(const weft_spec *spec)
{
    return weft_spec_dims(spec) == 1 && weft_spec_shape(spec)[0] == 0;
}

/* The tensors of the list have the shape of the maker, except in dimension DIM; -1: all of it. */
static weft_status check_list(const struct wf_maker *m, int32_t dim)
{
    for (uint32_t i = 0; i < m->call->input_count; i++) {
        int32_t dims = weft_spec_dims(m->call->inputs[i]);
        const int64_t *shape = weft_spec_shape(m->call->inputs[i]);
        if (dims != m->dims)
            return wf_op_refuse(m->op, "tensor %u of the list has %d dimension%s, another has %d",
                                i, dims, WF_PLURAL(dims), m->dims);
        for (int32_t d = 0; d < m->dims; d++)
            if (d != dim && shape[d] != m->shape[d])
                return wf_op_refuse(m->op,
                                    "dimension %d of tensor %u of the list has size %lld, that of "
                                    "another %lld",
                                    d, i, (long long)shape[d], (long long)m->shape[d]);
    }
    return WEFT_OK;
}

weft_status wf_make_cat(struct wf_maker *m)
{
    int32_t dim;
    int64_t total = 0;

    for (uint32_t i = 0; i < m->call->input_count; i++) {
        const weft_spec *spec = m->call->inputs[i];
        if (spec == NULL) return wf_op_refuse(m->op, "tensor %u of the list is missing", i);
        if (is_empty_vector(spec)) continue;
        m->dims = weft_spec_dims(spec);
        m->shape = weft_spec_shape(spec);
    }
    WF_TRY(wf_maker_dim(m, "dim", m->dims, &dim));
    for (uint32_t i = 0; i < m->call->input_count; i++) {
        if (is_empty_vector(m->call->inputs[i]) && m->dims != 1)
            return wf_op_refuse(m->op, "tensor %u of the list has shape [0]; leave it out", i);
    }
    WF_TRY(check_list(m, dim));
    for (uint32_t i = 0; i < m->call->input_count; i++)
        if (!wf_add_i64(total, weft_spec_shape(m->call->inputs[i])[dim], &total))
            return wf_op_refuse(m->op, "the sizes of dimension %d add up beyond 2^63", dim);
    wf_text_add(m->out, " x*[");
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, d == dim ? "%sk" : "%sf%d", d > 0 ? " " : "", d);
    wf_text_add(m->out, "] -> y[");
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, d == dim ? "%sj" : "%sf%d", d > 0 ? " " : "", d);
    wf_text_add(m->out, "]; whole k j; size j %lld; parts j k; pass x", (long long)total);
    return WEFT_OK;
}

weft_status wf_make_stack(struct wf_maker *m)
{
    int32_t dim;

    for (uint32_t i = 0; i < m->call->input_count; i++)
        if (m->call->inputs[i] == NULL)
            return wf_op_refuse(m->op, "tensor %u of the list is missing", i);
    WF_TRY(wf_maker_dim(m, "dim", m->dims + 1, &dim));
    WF_TRY(check_list(m, -1));
    wf_text_add(m->out, " x*[");
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, "%sf%d", d > 0 ? " " : "", d);
    wf_text_add(m->out, "] -> y[");
    for (int32_t d = 0; d <= m->dims; d++) {
        if (d > 0) wf_text_char(m->out, ' ');
        if (d == dim)
            wf_text_char(m->out, 'j');
        else
            wf_text_add(m->out, "f%d", d - (d > dim));
    }
    wf_text_add(m->out, "]; own j; size j %zu; pass x", m->call->input_count);
    return WEFT_OK;
}

weft_status wf_make_split(struct wf_maker *m)
{
    const int64_t *sizes;
    uint32_t count;
    int64_t total = 0;
    int32_t dim;

    WF_TRY(wf_maker_dim(m, "dim", m->dims, &dim));
    WF_TRY(wf_maker_list(m, "sizes", &sizes, &count));
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] < 0 || !wf_add_i64(total, sizes[i], &total))
            return wf_op_refuse(m->op, "attribute sizes has the size %lld", (long long)sizes[i]);
    if (total != m->shape[dim])
        return wf_op_refuse(m->op, "the sizes add up to %lld, and dimension %d of x has size %lld",
                            (long long)total, dim, (long long)m->shape[dim]);
    m->out->length -= 2; /* the name is written; attributes follow it */
    wf_text_add(m->out, "(sizes): x[");
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, d == dim ? "%sk" : "%sf%d", d > 0 ? " " : "", d);
    wf_text_add(m->out, "] -> y*[");
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, d == dim ? "%sj" : "%sf%d", d > 0 ? " " : "", d);
    wf_text_add(m->out, "]; whole k j; size j sizes; parts k j; pass x");
    return WEFT_OK;
}

/* ---- index ---- */

/* Dimensions of the broadcast index tensors. */
static weft_status count_index_dims(const struct wf_maker *m, uint32_t end, int32_t *out)
{
    *out = 0;
    for (uint32_t i = 1; i < end; i++) {
        const weft_spec *spec = m->call->inputs[i];
        if (spec == NULL) return wf_op_refuse(m->op, "index %u is missing", i - 1);
        if (weft_spec_dtype(spec) == WEFT_DTYPE_BOOL)
            return wf_op_refuse(m->op, "an index of truth values gives an output whose size "
                                       "depends on data; use nonzero first");
        if (weft_spec_dims(spec) > *out) *out = weft_spec_dims(spec);
    }
    return WEFT_OK;
}

static void add_index_dims(struct wf_maker *m, int32_t dims, bool *any)
{
    for (int32_t d = 0; d < dims; d++, *any = true)
        wf_text_add(m->out, "%sj%d", *any ? " " : "", d);
}

static weft_status read_positions(const struct wf_maker *m, uint32_t indices, uint32_t *out,
                                  bool *adjacent)
{
    const int64_t *list;
    uint32_t count;
    int64_t last = -1;

    WF_TRY(wf_maker_list(m, "pos", &list, &count));
    if (count != indices)
        return wf_op_refuse(m->op, "attribute pos lists %u dimension%s, and the call has %u ind%s",
                            count, WF_PLURAL(count), indices, indices == 1 ? "ex" : "ices");
    *out = 0;
    *adjacent = true;
    for (uint32_t i = 0; i < count; i++) {
        int64_t d = list[i] < 0 ? list[i] + m->dims : list[i];
        if (d < 0 || d >= m->dims || d <= last)
            return wf_op_refuse(m->op, "attribute pos must list dimensions of x in ascending "
                                       "order");
        *adjacent = *adjacent && (i == 0 || d == last + 1);
        *out |= UINT32_C(1) << d;
        last = d;
    }
    return WEFT_OK;
}

/* The dimensions of x without the indexed ones, and those of the indices in their place: where the
 * first of adjacent indices is, otherwise in front. */
static void add_indexed(struct wf_maker *m, uint32_t indexed, int32_t index_dims, bool adjacent)
{
    bool any = false, placed = !adjacent;

    if (!adjacent) add_index_dims(m, index_dims, &any);
    for (int32_t d = 0; d < m->dims; d++) {
        if ((indexed >> d & 1) == 0) {
            wf_text_add(m->out, "%sf%d", any ? " " : "", d);
            any = true;
        } else if (!placed) {
            add_index_dims(m, index_dims, &any);
            placed = true;
        }
    }
}

static void add_table(struct wf_maker *m, const char *name, uint32_t indexed)
{
    wf_text_add(m->out, " %s[", name);
    for (int32_t d = 0; d < m->dims; d++)
        wf_text_add(m->out, "%s%c%d", d > 0 ? " " : "", (indexed >> d & 1) != 0 ? 'k' : 'f', d);
    wf_text_char(m->out, ']');
}

static void add_clause(struct wf_maker *m, const char *clause, uint32_t indexed)
{
    for (int32_t d = 0; d < m->dims; d++)
        if ((indexed >> d & 1) != 0) wf_text_add(m->out, "; %s k%d", clause, d);
}

/* x, and an index of as many dimensions.  Where the index is smaller than x, beside DIM, it reads
 * the first entries of x, and the dimension is whole. */
weft_status wf_make_gather(struct wf_maker *m)
{
    const weft_spec *index = m->call->input_count == 2 ? m->call->inputs[1] : NULL;
    uint32_t smaller = 0;
    int32_t dim;

    if (index == NULL || weft_spec_dims(index) != m->dims)
        return wf_op_refuse(m->op, "the call needs x and an index of as many dimensions");
    WF_TRY(wf_maker_dim(m, "dim", m->dims, &dim));
    for (int32_t d = 0; d < m->dims; d++) {
        int64_t size = weft_spec_shape(index)[d];
        if (d == dim || size == m->shape[d]) continue;
        if (size > m->shape[d])
            return wf_op_refuse(m->op, "dimension %d of i has size %lld, and that of x has %lld", d,
                                (long long)size, (long long)m->shape[d]);
        smaller |= UINT32_C(1) << d;
    }
    for (int t = 0; t < 3; t++) {
        wf_text_add(m->out, t == 0 ? " x[" : t == 1 ? " i[" : "-> y[");
        for (int32_t d = 0; d < m->dims; d++) {
            bool differs = d == dim || (smaller >> d & 1) != 0;
            wf_text_add(m->out, "%s%c%d", d > 0 ? " " : "", !differs ? 'f' : t == 0 ? 'k' : 'j', d);
        }
        wf_text_add(m->out, "] ");
    }
    wf_text_add(m->out, "; mask k%d; pass x", dim);
    for (int32_t d = 0; d < m->dims; d++)
        if ((smaller >> d & 1) != 0) wf_text_add(m->out, "; whole k%d j%d", d, d);
    return WEFT_OK;
}

weft_status wf_make_index(struct wf_maker *m)
{
    uint32_t indexed = 0;
    int32_t index_dims;
    bool adjacent = true, any = false;

    WF_TRY(count_index_dims(m, (uint32_t)m->call->input_count, &index_dims));
    WF_TRY(read_positions(m, (uint32_t)m->call->input_count - 1, &indexed, &adjacent));
    add_table(m, "x", indexed);
    wf_text_add(m->out, " i*~[");
    add_index_dims(m, index_dims, &any);
    wf_text_add(m->out, "] -> y[");
    add_indexed(m, indexed, index_dims, adjacent);
    wf_text_char(m->out, ']');
    add_clause(m, "mask", indexed);
    wf_text_add(m->out, "; pass x");
    return WEFT_OK;
}

/* True if VALUES are the same for all indices, so that duplicates among these do not matter. */
static bool is_constant(const struct wf_maker *m, const weft_spec *values, uint32_t indexed,
                        int32_t index_dims, bool adjacent)
{
    int32_t total = m->dims - __builtin_popcount(indexed) + index_dims, first = 0;

    if (values == NULL) return false;
    while (adjacent && first < m->dims && (indexed >> first & 1) == 0)
        first++;
    for (int32_t i = 0; i < index_dims; i++) {
        int32_t d = first + i - (total - weft_spec_dims(values));
        if (d >= 0 && weft_spec_shape(values)[d] != 1) return false;
    }
    return true;
}

/* x, the indices, and the values last. */
weft_status wf_make_index_put(struct wf_maker *m)
{
    uint32_t indexed = 0, count = (uint32_t)m->call->input_count;
    int64_t accumulate = 0;
    int32_t index_dims;
    bool adjacent = true, any = false;

    if (count < 3) return wf_op_refuse(m->op, "the call needs x, indices and values");
    WF_TRY(count_index_dims(m, count - 1, &index_dims));
    WF_TRY(read_positions(m, count - 2, &indexed, &adjacent));
    WF_TRY(wf_attr_read_int(m->op, m->call, "accumulate", &accumulate));
    add_table(m, "x", indexed);
    wf_text_add(m->out, " i*~[");
    add_index_dims(m, index_dims, &any);
    wf_text_add(m->out, "] v~[");
    add_indexed(m, indexed, index_dims, adjacent);
    wf_text_add(m->out, "] ->");
    add_table(m, "y", indexed);
    add_clause(m, "own", indexed);
    for (int32_t d = 0; d < index_dims; d++)
        wf_text_add(m->out, "; %s j%d", accumulate != 0 ? "sum" : "whole", d);
    /* without accumulation, ranks may write different values of duplicates: the greatest of them is
     * one of them */
    if (accumulate != 0)
        wf_text_add(m->out, "; add x; lin x+v; aff x | v; mono x");
    else if (is_constant(m, m->call->inputs[count - 1], indexed, index_dims, adjacent))
        wf_text_add(m->out, "; pass x+v; aff x | v; mono x | v");
    else
        wf_text_add(m->out, "; mono x");
    return WEFT_OK;
}

/* ---- einsum ---- */

struct equation {
    const char *text;
    size_t length;   /* of the operands */
    const char *out; /* behind "->"; NULL: letters that stand once, in alphabetical order */
};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Letter C as a factor: lower case as it is, upper case behind a "u". */
static void add_letter(struct wf_maker *m, char c, bool *any)
{
    wf_text_add(m->out, c >= 'a' ? "%s%c" : "%su%c", *any ? " " : "", c);
    *any = true;
}

static weft_status add_operand(struct wf_maker *m, const char *text, size_t length)
{
    bool any = false;

    wf_text_char(m->out, '[');
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ') continue;
        if (strncmp(text + i, "...", 3) == 0 && i + 3 <= length) {
            wf_text_add(m->out, "%s..", any ? " " : "");
            any = true;
            i += 2;
        } else if (!is_letter(text[i])) {
            return wf_op_refuse(m->op, "attribute eq: '%c' is not a letter", text[i]);
        } else if (memchr(text, text[i], i) != NULL) {
            return wf_op_refuse(m->op,
                                "attribute eq: %c stands twice in one operand; take the "
                                "diagonal first",
                                text[i]);
        } else {
            add_letter(m, text[i], &any);
        }
    }
    wf_text_char(m->out, ']');
    return WEFT_OK;
}

static int count_letter(const struct equation *e, char c)
{
    int count = 0;

    for (size_t i = 0; i < e->length; i++)
        count += e->text[i] == c;
    return count;
}

static weft_status add_result(struct wf_maker *m, const struct equation *e)
{
    char letters[64];
    size_t count = 0;

    if (e->out != NULL) return add_operand(m, e->out, strlen(e->out));
    if (memchr(e->text, '.', e->length) != NULL) {
        memcpy(letters, "...", 3);
        count = 3;
    }
    for (int c = 'A'; c <= 'z'; c++)
        if (is_letter((char)c) && count_letter(e, (char)c) == 1) letters[count++] = (char)c;
    return add_operand(m, letters, count);
}

static void add_sums(struct wf_maker *m, const struct equation *e)
{
    bool any = false;

    for (int c = 'A'; c <= 'z'; c++) {
        int count = is_letter((char)c) ? count_letter(e, (char)c) : 0;
        bool kept = e->out != NULL ? strchr(e->out, c) != NULL : count == 1;
        if (count == 0 || kept) continue;
        if (!any) wf_text_add(m->out, "; sum ");
        add_letter(m, (char)c, &any);
    }
    if (e->out != NULL && memchr(e->text, '.', e->length) != NULL && strchr(e->out, '.') == NULL)
        wf_text_add(m->out, "%s..", any ? " " : "; sum ");
}

weft_status wf_make_einsum(struct wf_maker *m)
{
    const weft_op_attr *attr = wf_attr_find(m->call, "eq", 2);
    struct equation e;
    const char *arrow, *at;
    uint32_t operands = 0;

    if (attr == NULL || attr->kind != WEFT_ATTR_TEXT)
        return wf_op_refuse(m->op, "attribute eq must be an equation such as ij,jk->ik");
    arrow = strstr(attr->text, "->");
    e = (struct equation){attr->text,
                          arrow != NULL ? (size_t)(arrow - attr->text) : strlen(attr->text),
                          arrow != NULL ? arrow + 2 : NULL};
    for (at = e.text; at <= e.text + e.length; operands++) {
        size_t length = strcspn(at, ",-");
        if (at + length > e.text + e.length) length = (size_t)(e.text + e.length - at);
        wf_text_add(m->out, " x%u", operands);
        WF_TRY(add_operand(m, at, length));
        at += length + 1;
    }
    if (operands != m->call->input_count)
        return wf_op_refuse(m->op, "attribute eq has %u operand%s, and the call has %zu input%s",
                            operands, WF_PLURAL(operands), m->call->input_count,
                            WF_PLURAL(m->call->input_count));
    wf_text_add(m->out, " ->  y");
    WF_TRY(add_result(m, &e));
    add_sums(m, &e);
    wf_text_add(m->out, "; lin ");
    for (uint32_t i = 0; i < operands; i++)
        wf_text_add(m->out, "%sx%u", i > 0 ? " | " : "", i);
    return WEFT_OK;
}
