/* maker.c - a signature in the making. */
#include "make.h"

#include <string.h>

int wf_maker_factor(struct wf_maker *m, int64_t size)
{
    if (m->count == WF_RULE_SYMBOLS) return -1;
    m->sizes[m->count] = size;
    return m->count++;
}

void wf_maker_tensor(struct wf_maker *m, const char *name, int dims, const struct wf_made_dim *made)
{
    wf_text_add(m->out, " %s[", name);
    for (int d = 0; d < dims; d++) {
        if (d > 0) wf_text_char(m->out, ' ');
        if (made[d].count == 0) wf_text_char(m->out, '1');
        if (made[d].count > 1) wf_text_char(m->out, '(');
        for (int i = 0; i < made[d].count; i++)
            wf_text_add(m->out, "%sf%d", i > 0 ? " " : "", made[d].factor[i]);
        if (made[d].count > 1) wf_text_char(m->out, ')');
    }
    wf_text_char(m->out, ']');
}

static void add_flagged(struct wf_maker *m, const char *clause, uint32_t flagged)
{
    if (flagged == 0) return;
    wf_text_add(m->out, "; %s", clause);
    for (int i = 0; i < m->count; i++)
        if ((flagged >> i & 1) != 0) wf_text_add(m->out, " f%d", i);
}

void wf_maker_sizes(struct wf_maker *m)
{
    add_flagged(m, "whole", m->whole);
    add_flagged(m, "own", m->own);
    for (int i = 0; i < m->count; i++)
        if (m->sizes[i] >= 0) wf_text_add(m->out, "; size f%d %lld", i, (long long)m->sizes[i]);
}

void wf_maker_local(struct wf_maker *m, const char *attr, struct wf_local_size size)
{
    if (m->op->made_count == WF_LOCAL_SIZES) return;
    size.name = attr;
    size.length = (uint16_t)strlen(attr);
    m->op->made[m->op->made_count++] = size;
}

weft_status wf_maker_list(const struct wf_maker *m, const char *name, const int64_t **list,
                          uint32_t *count)
{
    const weft_op_attr *attr = wf_attr_find(m->call, name, strlen(name));

    if (attr == NULL) return wf_op_refuse(m->op, "attribute %s is missing", name);
    if (!wf_attr_list(attr, list, count))
        return wf_op_refuse(m->op, "attribute %s must be a list of numbers", name);
    if (*count > WEFT_MAX_DIMS && strcmp(name, "sizes") != 0 && strcmp(name, "pad") != 0)
        return wf_op_refuse(m->op, "attribute %s has %u entries; the maximum is %d", name, *count,
                            WEFT_MAX_DIMS);
    return WEFT_OK;
}

weft_status wf_maker_int(const struct wf_maker *m, const char *name, int64_t *out)
{
    if (wf_attr_find(m->call, name, strlen(name)) == NULL)
        return wf_op_refuse(m->op, "attribute %s is missing", name);
    return wf_attr_read_int(m->op, m->call, name, out);
}

weft_status wf_maker_dim(const struct wf_maker *m, const char *name, int32_t dims, int32_t *out)
{
    int64_t dim = 0;

    WF_TRY(wf_maker_int(m, name, &dim));
    if (dim < -(int64_t)dims || dim >= dims)
        return wf_op_refuse(m->op, "attribute %s is %lld, and the tensor has %d dimension%s", name,
                            (long long)dim, dims, WF_PLURAL(dims));
    *out = (int32_t)(dim < 0 ? dim + dims : dim);
    return WEFT_OK;
}
