/* views.c - rules of views whose sizes follow from attributes: diagonals, windows, other dtypes. */
#include "make.h"

#include <string.h>

static uint32_t bit(int factor)
{
    return UINT32_C(1) << factor;
}

static void begin_dims(struct wf_maker *m, struct wf_made_dim *made)
{
    for (int32_t d = 0; d < m->dims; d++)
        made[d] = (struct wf_made_dim){1, {wf_maker_factor(m, m->shape[d])}};
}

/* ---- diagonals ---- */

static weft_status read_dim(const struct wf_maker *m, const char *name, int32_t absent,
                            int32_t *out)
{
    if (wf_attr_find(m->call, name, strlen(name)) != NULL)
        return wf_maker_dim(m, name, m->dims, out);
    *out = absent;
    return WEFT_OK;
}

/* The dimensions of x, and of its diagonal: those of x but two, then the diagonal. */
static weft_status set_diagonal(struct wf_maker *m, struct wf_made_dim *x, struct wf_made_dim *y)
{
    int64_t offset = 0, rows, columns, size;
    int32_t a, b, count = 0;
    int k;

    if (m->dims < 2)
        return wf_op_refuse(m->op, "x has %d dimension%s; it needs at least 2", m->dims,
                            WF_PLURAL(m->dims));
    WF_TRY(read_dim(m, "dim1", 0, &a));
    WF_TRY(read_dim(m, "dim2", 1, &b));
    if (a == b) return wf_op_refuse(m->op, "attributes dim1 and dim2 are both dimension %d", a);
    WF_TRY(wf_attr_read_int(m->op, m->call, "offset", &offset));
    rows = m->shape[a];
    columns = m->shape[b];
    if (offset > columns || offset < -rows) offset = offset > 0 ? columns : -rows;
    size = offset >= 0 ? wf_min_i64(rows, columns - offset) : wf_min_i64(rows + offset, columns);
    begin_dims(m, x);
    m->whole |= bit(x[a].factor[0]) | bit(x[b].factor[0]);
    for (int32_t d = 0; d < m->dims; d++)
        if (d != a && d != b) y[count++] = x[d];
    k = wf_maker_factor(m, size);
    m->whole |= bit(k);
    y[count] = (struct wf_made_dim){1, {k}};
    return WEFT_OK;
}

weft_status wf_make_diagonal(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];

    WF_TRY(set_diagonal(m, x, y));
    wf_maker_tensor(m, "x", m->dims, x);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", m->dims - 1, y);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; pass x");
    return WEFT_OK;
}

weft_status wf_make_diagonal_scatter(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];

    WF_TRY(set_diagonal(m, x, y));
    wf_maker_tensor(m, "x", m->dims, x);
    wf_maker_tensor(m, "s", m->dims - 1, y);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", m->dims, x);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; pass x+s; aff x | s; mono x | s");
    return WEFT_OK;
}

/* ---- windows ---- */

/* Windows that neither overlap nor leave indices out are a product. */
weft_status wf_make_unfold(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    int64_t size = 0, step = 1, windows;
    int32_t d;
    int w, n;

    WF_TRY(wf_maker_dim(m, "dim", m->dims, &d));
    if (wf_attr_find(m->call, "size", 4) == NULL)
        return wf_op_refuse(m->op, "attribute size, that of a window, is missing");
    WF_TRY(wf_attr_read_int(m->op, m->call, "size", &size));
    WF_TRY(wf_attr_read_int(m->op, m->call, "step", &step));
    if (step < 1)
        return wf_op_refuse(m->op, "attribute step is %lld; it must be at least 1",
                            (long long)step);
    if (size < 0 || size > m->shape[d])
        return wf_op_refuse(m->op, "attribute size is %lld, and dimension %d of x has size %lld",
                            (long long)size, d, (long long)m->shape[d]);
    if (m->dims == WEFT_MAX_DIMS)
        return wf_op_refuse(m->op, "y would have %d dimensions; the maximum is %d", m->dims + 1,
                            WEFT_MAX_DIMS);
    windows = (m->shape[d] - size) / step + 1;
    begin_dims(m, x);
    memcpy(y, x, sizeof y);
    n = wf_maker_factor(m, size);
    if (size == step && windows * size == m->shape[d]) {
        m->sizes[x[d].factor[0]] = windows;
        x[d].factor[x[d].count++] = n;
        for (int i = 0; i < 2; i++)
            wf_maker_local(
                m, i == 0 ? "size" : "step",
                (struct wf_local_size){.tensor = 1, .dim = (uint8_t)m->dims, .by_tensor = -1});
    } else {
        w = wf_maker_factor(m, windows);
        y[d].factor[0] = w;
        m->whole |= bit(x[d].factor[0]) | bit(w) | bit(n);
    }
    y[m->dims] = (struct wf_made_dim){1, {n}};
    wf_maker_tensor(m, "x", m->dims, x);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", m->dims + 1, y);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; pass x");
    return WEFT_OK;
}

/* ---- dtypes ---- */

/* The bits of the last dimension in another dtype: elements are cut, or several become one. */
weft_status wf_make_view_dtype(struct wf_maker *m)
{
    const weft_op_attr *to = wf_attr_find(m->call, "to", 2);
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    uint32_t from = weft_spec_dtype(m->call->inputs[0]), dtype;
    int64_t before, after;
    int32_t last = m->dims - 1;
    int z;

    if (to == NULL || to->kind != WEFT_ATTR_TEXT ||
        !wf_dtype_find(to->text, strlen(to->text), &dtype))
        return wf_op_refuse(m->op, "attribute to must be a dtype such as i32");
    before = (int64_t)wf_dtype_bytes(from);
    after = (int64_t)wf_dtype_bytes(dtype);
    begin_dims(m, x);
    memcpy(y, x, sizeof y);
    if (before != after) {
        struct wf_made_dim *cut = before > after ? y : x;
        int64_t times = before > after ? before / after : after / before;
        if (m->dims == 0)
            return wf_op_refuse(m->op, "%s and %s have different sizes, and x has no dimension",
                                wf_dtype_name(from), wf_dtype_name(dtype));
        if (before < after && m->shape[last] % times != 0)
            return wf_op_refuse(m->op,
                                "the last dimension of x has size %lld; %lld elements of %s are "
                                "one of %s",
                                (long long)m->shape[last], (long long)times, wf_dtype_name(from),
                                wf_dtype_name(dtype));
        z = wf_maker_factor(m, times);
        if (before < after) m->sizes[x[last].factor[0]] = m->shape[last] / times;
        cut[last].factor[cut[last].count++] = z;
        m->whole |= bit(z);
    }
    wf_maker_tensor(m, "x", m->dims, x);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", m->dims, y);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; type %s y", wf_dtype_name(dtype));
    return WEFT_OK;
}
