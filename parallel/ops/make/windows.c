/* windows.c - convolutions and pools.
 *
 * A spatial dimension may be split if its windows neither overlap nor leave gaps: the window is the
 * stride, without padding and dilation.  It is then a product of windows and positions inside of
 * them.  Any other spatial dimension is whole. */
#include "make.h"

#include <string.h>

struct windows {
    int32_t count; /* spatial dimensions */
    int64_t in[WEFT_MAX_DIMS], kernel[WEFT_MAX_DIMS], out[WEFT_MAX_DIMS];
    bool tiled[WEFT_MAX_DIMS];
    bool transposed; /* the filter has the channels of x first, then those of y */
};

/* Entry I of a list with an entry for each spatial dimension, or with one for all.  An empty list
 * leaves *OUT as it is. */
static weft_status read_entry(const struct wf_maker *m, const char *name, int32_t i, int64_t least,
                              int64_t *out)
{
    const weft_op_attr *attr = wf_attr_find(m->call, name, strlen(name));
    const int64_t *list;
    uint32_t count;

    if (attr == NULL) return WEFT_OK;
    if (!wf_attr_list(attr, &list, &count))
        return wf_op_refuse(m->op, "attribute %s must be a list of numbers", name);
    if (count == 0) return WEFT_OK;
    if (count != 1 && (int32_t)count != m->dims - 2)
        return wf_op_refuse(m->op,
                            "attribute %s has %u entries, and x has %d dimension%s behind "
                            "the first two",
                            name, count, m->dims - 2, m->dims == 3 ? "" : "s");
    *out = list[count == 1 ? 0 : i];
    if (*out < least || *out > INT32_MAX)
        return wf_op_refuse(m->op, "attribute %s has the entry %lld", name, (long long)*out);
    return WEFT_OK;
}

/* The windows over the dimensions of x from the third on.  KERNEL: sizes of the windows, or NULL
 * for the attribute kernel. */
static weft_status read_windows(const struct wf_maker *m, const int64_t *shape,
                                const int64_t *kernel, struct windows *w)
{
    int64_t transposed = 0, ceil_mode = 0;

    WF_TRY(wf_attr_read_int(m->op, m->call, "transposed", &transposed));
    WF_TRY(wf_attr_read_int(m->op, m->call, "ceil_mode", &ceil_mode));
    w->transposed = transposed != 0;
    for (int32_t i = 0; i < w->count; i++) {
        int64_t stride, padding = 0, dilation = 1, added = 0, span, padded, room;
        w->in[i] = shape[2 + i];
        w->kernel[i] = 1;
        if (kernel != NULL)
            w->kernel[i] = kernel[2 + i];
        else
            WF_TRY(read_entry(m, "kernel", i, 1, &w->kernel[i]));
        stride = kernel != NULL ? 1 : w->kernel[i];
        WF_TRY(read_entry(m, "stride", i, 1, &stride));
        WF_TRY(read_entry(m, "padding", i, 0, &padding));
        WF_TRY(read_entry(m, "dilation", i, 1, &dilation));
        WF_TRY(read_entry(m, "output_padding", i, 0, &added));
        if (w->kernel[i] > INT32_MAX || w->in[i] > INT64_MAX / 4)
            return wf_op_refuse(m->op, "dimension %d is too large", 2 + i);
        span = dilation * (w->kernel[i] - 1) + 1;
        padded = w->in[i] + 2 * padding;
        room = padded - span + (ceil_mode != 0 ? stride - 1 : 0);
        if (!w->transposed && room < 0)
            return wf_op_refuse(m->op,
                                "dimension %d of x has size %lld with its padding, and a "
                                "window has %lld",
                                2 + i, (long long)padded, (long long)span);
        if (kernel == NULL && 2 * padding > w->kernel[i])
            return wf_op_refuse(m->op,
                                "attribute padding has the entry %lld; the maximum is half "
                                "of the window, %lld",
                                (long long)padding, (long long)(w->kernel[i] / 2));
        w->out[i] = room / stride + 1;
        /* a window begins inside of the dimension or its left padding */
        if (ceil_mode != 0 && (w->out[i] - 1) * stride >= w->in[i] + padding) w->out[i]--;
        if (w->transposed) w->out[i] = span + added - 2 * padding;
        if (w->transposed && (__builtin_mul_overflow(w->in[i] - 1, stride, &room) ||
                              __builtin_add_overflow(w->out[i], room, &w->out[i]) || w->out[i] < 0))
            return wf_op_refuse(m->op,
                                "the attributes give dimension %d of y a size below 0 or beyond "
                                "2^63",
                                2 + i);
        w->tiled[i] = !w->transposed && padding == 0 && dilation == 1 && stride == w->kernel[i] &&
                      stride > 0 && w->in[i] % stride == 0;
    }
    return WEFT_OK;
}

static void add_inside(struct wf_maker *m, const struct windows *w)
{
    for (int32_t i = 0; i < w->count; i++)
        wf_text_add(m->out, w->tiled[i] ? " (y%d r%d)" : " i%d", i, i);
}

/* The filter, with the channels of GROUPS in its first dimension. */
static void add_filter(struct wf_maker *m, const struct windows *w, const char *name,
                       int64_t groups)
{
    char first = w->transposed ? 'c' : 'o';

    wf_text_add(m->out, groups != 1 ? " %s[(g %c)" : " %s[%c", name, first);
    wf_text_add(m->out, " %c", w->transposed ? 'o' : 'c');
    for (int32_t i = 0; i < w->count; i++)
        wf_text_add(m->out, " r%d", i);
    wf_text_char(m->out, ']');
}

static void add_outside(struct wf_maker *m, const struct windows *w)
{
    for (int32_t i = 0; i < w->count; i++)
        wf_text_add(m->out, " y%d", i);
}

static void add_clauses(struct wf_maker *m, const struct windows *w, bool kernel, bool reduced)
{
    for (int32_t i = 0; i < w->count; i++) {
        if (w->tiled[i] || kernel) wf_text_add(m->out, "; whole r%d", i);
        if (!w->tiled[i]) wf_text_add(m->out, "; whole i%d y%d", i, i);
        if (w->tiled[i] && reduced) wf_text_add(m->out, "; sum y%d", i);
        if (w->tiled[i]) wf_text_add(m->out, "; size r%d %lld", i, (long long)w->kernel[i]);
        if (!w->tiled[i] && w->out[i] >= 0)
            wf_text_add(m->out, "; size y%d %lld", i, (long long)w->out[i]);
    }
}

/* The shape of input I, which must have as many dimensions as the first. */
static weft_status shape_of(const struct wf_maker *m, uint32_t i, const int64_t **out)
{
    const weft_spec *spec = i < m->call->input_count ? m->call->inputs[i] : NULL;

    if (spec == NULL || weft_spec_dims(spec) != m->dims || m->dims < 3)
        return wf_op_refuse(m->op,
                            "input %u must have as many dimensions as the first, %d, and at "
                            "least 3",
                            i, m->dims);
    *out = weft_spec_shape(spec);
    return WEFT_OK;
}

static weft_status read_groups(const struct wf_maker *m, int64_t *out)
{
    WF_TRY(wf_attr_read_int(m->op, m->call, "groups", out));
    if (*out < 1)
        return wf_op_refuse(m->op, "attribute groups is %lld; it must be at least 1",
                            (long long)*out);
    return WEFT_OK;
}

/* The channels of TENSOR are those of all groups, the second dimension of the filter has those of
 * one. */
static void set_local_groups(struct wf_maker *m, int32_t tensor, int32_t filter)
{
    wf_maker_local(
        m, "groups",
        (struct wf_local_size){
            .kind = WF_LOCAL_GROUPS, .tensor = tensor, .dim = 1, .by_tensor = filter, .by_dim = 1});
}

weft_status wf_make_conv(struct wf_maker *m)
{
    struct windows w = {.count = m->dims - 2};
    const int64_t *filter = NULL;
    int64_t groups = 1;
    const char *g;

    WF_TRY(shape_of(m, 1, &filter));
    WF_TRY(read_windows(m, m->shape, filter, &w));
    WF_TRY(read_groups(m, &groups));
    g = groups != 1 ? "(g " : "";
    wf_text_add(m->out, " x[n %sc%s", g, groups != 1 ? ")" : "");
    add_inside(m, &w);
    wf_text_char(m->out, ']');
    add_filter(m, &w, "f", groups);
    wf_text_add(m->out, " b?[%so%s] -> y[n %so%s", g, groups != 1 ? ")" : "", g,
                groups != 1 ? ")" : "");
    add_outside(m, &w);
    wf_text_add(m->out, "]; sum c");
    add_clauses(m, &w, true, false);
    if (groups != 1) wf_text_add(m->out, "; size g %lld", (long long)groups);
    set_local_groups(m, w.transposed ? 3 : 0, 1);
    wf_text_add(m->out, "; add b; lin x+b | f+b; aff x | f | b");
    return WEFT_OK;
}

/* The gradient, the input and the filter. */
weft_status wf_make_conv_bwd(struct wf_maker *m)
{
    struct windows w = {.count = m->dims - 2};
    const int64_t *input = NULL, *filter = NULL;
    int64_t groups = 1;
    const char *g, *end;

    WF_TRY(shape_of(m, 1, &input));
    WF_TRY(shape_of(m, 2, &filter));
    WF_TRY(read_windows(m, input, filter, &w));
    WF_TRY(read_groups(m, &groups));
    g = groups != 1 ? "(g " : "";
    end = groups != 1 ? ")" : "";
    for (int part = 0; part < 2; part++) {
        wf_text_add(m->out, part == 0 ? " g[n %so%s" : " dx[n %sc%s", g, end);
        if (part == 0) add_outside(m, &w);
        if (part == 0) wf_text_add(m->out, "] x[n %sc%s", g, end);
        add_inside(m, &w);
        wf_text_char(m->out, ']');
        add_filter(m, &w, part == 0 ? "f" : "dw", groups);
        if (part == 0) wf_text_add(m->out, " ->");
    }
    wf_text_add(m->out, " db[%so%s]", g, end);
    wf_text_add(m->out, "; sum n o");
    add_clauses(m, &w, true, true);
    if (groups != 1) wf_text_add(m->out, "; size g %lld", (long long)groups);
    set_local_groups(m, w.transposed ? 0 : 1, 2);
    wf_text_add(m->out, "; lin g | x | f; from dx g f; from dw g x; from db g");
    return WEFT_OK;
}

static weft_status make_pool(struct wf_maker *m, bool is_max)
{
    struct windows w = {.count = m->dims - 2};
    int64_t indices = 0;

    if (m->dims < 3) return wf_op_refuse(m->op, "x must have at least 3 dimensions");
    if (wf_attr_find(m->call, "kernel", 6) == NULL)
        return wf_op_refuse(m->op, "attribute kernel is missing: the sizes of the windows");
    WF_TRY(read_windows(m, m->shape, NULL, &w));
    WF_TRY(wf_attr_read_int(m->op, m->call, "indices", &indices));
    wf_text_add(m->out, " x[n c");
    add_inside(m, &w);
    for (int i = 0; i < (indices != 0 ? 2 : 1); i++) {
        wf_text_add(m->out, i == 0 ? "] -> y[n c" : "] i[n c");
        add_outside(m, &w);
    }
    wf_text_char(m->out, ']');
    add_clauses(m, &w, false, false);
    for (int32_t i = 0; i < w.count && indices != 0; i++) /* indices count in the whole plane */
        if (w.tiled[i]) wf_text_add(m->out, "; here y%d", i);
    wf_text_add(m->out, indices != 0 ? "; type i64 i" : is_max ? "; hom max x" : "");
    wf_text_add(m->out, is_max ? "" : "; lin x; type float y");
    return WEFT_OK;
}

weft_status wf_make_max_pool(struct wf_maker *m)
{
    return make_pool(m, true);
}

weft_status wf_make_avg_pool(struct wf_maker *m)
{
    return make_pool(m, false);
}
