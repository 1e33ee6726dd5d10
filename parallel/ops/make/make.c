/* make.c - rules whose signature depends on shapes and attributes: a factor per dimension, as in
 * the rules that are written out. */
#include "make.h"

#include <string.h>

/* A factor for each dimension of the first input. */
static void begin_dims(struct wf_maker *m, struct wf_made_dim *made)
{
    for (int32_t d = 0; d < m->dims; d++)
        made[d] = (struct wf_made_dim){1, {wf_maker_factor(m, m->shape[d])}};
}

static weft_status refuse_count(const struct wf_maker *m, const char *attr, uint32_t count)
{
    return wf_op_refuse(m->op, "attribute %s has %u entr%s, and x has %d dimension%s", attr, count,
                        count == 1 ? "y" : "ies", m->dims, WF_PLURAL(m->dims));
}

static void write_pair(struct wf_maker *m, const struct wf_made_dim *x, int dims,
                       const struct wf_made_dim *y, const char *clauses)
{
    wf_maker_tensor(m, "x", m->dims, x);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "y", dims, y);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; %s", clauses);
}

/* ---- permutations ---- */

static weft_status make_order(struct wf_maker *m, const int64_t *order)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];

    begin_dims(m, x);
    for (int32_t d = 0; d < m->dims; d++)
        y[d] = x[order[d]];
    write_pair(m, x, m->dims, y, "pass x");
    return WEFT_OK;
}

static weft_status make_permute(struct wf_maker *m)
{
    const int64_t *list;
    int64_t order[WEFT_MAX_DIMS];
    uint32_t count, seen = 0;

    WF_TRY(wf_maker_list(m, "order", &list, &count));
    if ((int32_t)count != m->dims) return refuse_count(m, "order", count);
    for (uint32_t d = 0; d < count; d++) {
        order[d] = list[d] < 0 ? list[d] + m->dims : list[d];
        if (order[d] < 0 || order[d] >= m->dims || (seen >> order[d] & 1) != 0)
            return wf_op_refuse(m->op, "attribute order is not a permutation of the dimensions");
        seen |= UINT32_C(1) << order[d];
    }
    return make_order(m, order);
}

static weft_status make_transpose(struct wf_maker *m)
{
    int64_t order[WEFT_MAX_DIMS] = {0}, a = 0, b = 1;
    const int64_t *list;
    uint32_t count;

    if (wf_attr_find(m->call, "dims", 4) != NULL) {
        WF_TRY(wf_maker_list(m, "dims", &list, &count));
        if (count != 2) return wf_op_refuse(m->op, "attribute dims must list two dimensions");
        a = list[0] < 0 ? list[0] + m->dims : list[0];
        b = list[1] < 0 ? list[1] + m->dims : list[1];
    } else if (m->dims > 2) {
        return wf_op_refuse(m->op, "attribute dims is missing, and x has %d dimensions", m->dims);
    } else if (m->dims < 2) {
        b = 0;
    }
    if (m->dims == 0) return make_order(m, order);
    if (a < 0 || b < 0 || a >= m->dims || b >= m->dims)
        return wf_op_refuse(m->op, "attribute dims is outside of the dimensions of x, which has %d",
                            m->dims);
    for (int32_t d = 0; d < m->dims; d++)
        order[d] = d == a ? b : d == b ? a : d;
    return make_order(m, order);
}

/* ---- dimensions of size 1 ---- */

static weft_status make_squeeze(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    const int64_t *list = NULL;
    uint32_t count = 0, chosen = UINT32_MAX;
    int dims = 0;

    if (wf_attr_find(m->call, "dims", 4) != NULL) {
        WF_TRY(wf_maker_list(m, "dims", &list, &count));
        chosen = 0;
        for (uint32_t i = 0; i < count; i++) {
            int64_t d = list[i] < 0 ? list[i] + m->dims : list[i];
            if (d < 0 || (d >= m->dims && m->dims > 0))
                return wf_op_refuse(m->op, "attribute dims lists %lld, and x has %d dimension%s",
                                    (long long)list[i], m->dims, WF_PLURAL(m->dims));
            chosen |= UINT32_C(1) << d;
        }
    }
    begin_dims(m, x);
    for (int32_t d = 0; d < m->dims; d++)
        if (m->shape[d] == 1 && (chosen >> d & 1) != 0)
            x[d].count = 0;
        else
            y[dims++] = x[d];
    for (int32_t d = 0; d < m->dims; d++) /* a size without a tensor would be refused */
        if (x[d].count == 0) m->sizes[x[d].factor[0]] = -1;
    write_pair(m, x, dims, y, "pass x");
    return WEFT_OK;
}

static weft_status make_expand(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    const int64_t *shape;
    uint32_t count;
    int32_t added;

    WF_TRY(wf_maker_list(m, "shape", &shape, &count));
    added = (int32_t)count - m->dims;
    if (added < 0) return refuse_count(m, "shape", count);
    begin_dims(m, x);
    for (int32_t d = 0; d < (int32_t)count; d++) {
        int64_t from = d < added ? 1 : m->shape[d - added], to = shape[d] == -1 ? from : shape[d];
        if (to < 0 || (d < added && shape[d] == -1))
            return wf_op_refuse(m->op,
                                "attribute shape has the entry %lld at %d; -1 keeps the size of a "
                                "dimension of x",
                                (long long)shape[d], d);
        if (from != to && from != 1)
            return wf_op_refuse(m->op, "dimension %d of x has size %lld and cannot become %lld",
                                d - added, (long long)from, (long long)to);
        if (d >= added && from == to) {
            y[d] = x[d - added];
            continue;
        }
        if (d >= added) {
            m->sizes[x[d - added].factor[0]] = -1;
            x[d - added].count = 0;
        }
        y[d] = (struct wf_made_dim){1, {wf_maker_factor(m, to)}};
        m->own |= UINT32_C(1) << y[d].factor[0];
    }
    write_pair(m, x, (int)count, y, "pass x");
    return WEFT_OK;
}

static weft_status make_repeats(struct wf_maker *m, bool interleave)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    const int64_t *repeats;
    int64_t all[WEFT_MAX_DIMS];
    uint32_t count;
    int32_t dim = 0, added;

    WF_TRY(wf_maker_list(m, "repeats", &repeats, &count));
    if (interleave) {
        WF_TRY(wf_maker_dim(m, "dim", m->dims, &dim));
        if (count != 1)
            return wf_op_refuse(m->op, "attribute repeats has %u entries; it must be one number",
                                count);
        for (int32_t d = 0; d < m->dims; d++)
            all[d] = d == dim ? repeats[0] : 1;
        repeats = all;
        count = (uint32_t)m->dims;
    }
    added = (int32_t)count - m->dims;
    if (added < 0) return refuse_count(m, "repeats", count);
    begin_dims(m, x);
    for (int32_t d = 0; d < (int32_t)count; d++) {
        int r = -1;
        if (repeats[d] < 0)
            return wf_op_refuse(m->op, "attribute repeats has the entry %lld",
                                (long long)repeats[d]);
        y[d] = d >= added ? x[d - added] : (struct wf_made_dim){0, {0}};
        if (repeats[d] == 1 && d >= added) continue;
        r = wf_maker_factor(m, repeats[d]);
        m->own |= UINT32_C(1) << r;
        if (interleave)
            y[d].factor[y[d].count] = r;
        else if (y[d].count > 0)
            y[d].factor[1] = y[d].factor[0];
        if (!interleave) y[d].factor[0] = r;
        y[d].count++;
        wf_maker_local(m, "repeats",
                       (struct wf_local_size){.at = (uint16_t)(interleave ? 0 : d),
                                              .tensor = 1,
                                              .dim = (uint8_t)d,
                                              .by_tensor = d < added ? -1 : 0,
                                              .by_dim = (uint8_t)(d - added)});
    }
    write_pair(m, x, (int)count, y, "pass x");
    return WEFT_OK;
}

static weft_status make_repeat(struct wf_maker *m)
{
    return make_repeats(m, false);
}

static weft_status make_interleave(struct wf_maker *m)
{
    return make_repeats(m, true);
}

/* ---- parts of dimensions ---- */

/* Dimension D of x becomes SIZE indices of its own: both are whole. */
static void cut_dim(struct wf_maker *m, const struct wf_made_dim *x, struct wf_made_dim *y, int d,
                    int64_t size)
{
    m->whole |= UINT32_C(1) << x[d].factor[0];
    y[d].factor[0] = wf_maker_factor(m, size);
    m->whole |= UINT32_C(1) << y[d].factor[0];
}

/* Entries that are taken from x must exist: PAD of them beside the first or last, or all of them.
 */
static weft_status check_mirror(const struct wf_maker *m, int d, int64_t pad)
{
    const weft_op_attr *mode = wf_attr_find(m->call, "mode", 4);
    bool reflects, repeats;

    if (mode == NULL || mode->kind != WEFT_ATTR_TEXT) return WEFT_OK;
    reflects = strcmp(mode->text, "reflect") == 0;
    repeats = strcmp(mode->text, "circular") == 0;
    if ((!reflects || pad < m->shape[d]) && (!repeats || pad <= m->shape[d])) return WEFT_OK;
    return wf_op_refuse(m->op,
                        "attribute pad is %lld with mode %.20s, and dimension %d of x has "
                        "size %lld",
                        (long long)pad, mode->text, d, (long long)m->shape[d]);
}

static weft_status make_pad(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    const int64_t *pad;
    uint32_t count;
    double value = 0;
    bool any = false;
    const weft_op_attr *v = wf_attr_find(m->call, "v", 1);

    WF_TRY(wf_maker_list(m, "pad", &pad, &count));
    if (v != NULL) (void)wf_attr_number(v, &value);
    if (count % 2 != 0 || count > 2 * (uint32_t)m->dims)
        return wf_op_refuse(m->op,
                            "attribute pad must list two numbers for each of at most %d "
                            "dimensions, the last one first",
                            m->dims);
    begin_dims(m, x);
    memcpy(y, x, sizeof y);
    for (uint32_t i = 0; i < count; i += 2) {
        int d = m->dims - 1 - (int)(i / 2);
        int64_t size;
        if (pad[i] == 0 && pad[i + 1] == 0) continue;
        WF_TRY(check_mirror(m, d, wf_max_i64(pad[i], pad[i + 1])));
        if (__builtin_add_overflow(m->shape[d], pad[i], &size) ||
            __builtin_add_overflow(size, pad[i + 1], &size) || size < 0)
            return wf_op_refuse(
                m->op, "attribute pad gives dimension %d a size below 0 or beyond 2^63", d);
        cut_dim(m, x, y, d, size);
        any = true;
    }
    write_pair(m, x, m->dims, y, value == 0 || !any ? "pass x" : "aff x; mono x");
    return WEFT_OK;
}

static weft_status make_topk(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    int64_t k = 0;
    int32_t d;

    WF_TRY(wf_maker_dim(m, "dim", m->dims, &d));
    WF_TRY(wf_maker_int(m, "k", &k));
    if (k < 0 || k > m->shape[d])
        return wf_op_refuse(m->op, "attribute k is %lld, and dimension %d of x has size %lld",
                            (long long)k, d, (long long)m->shape[d]);
    begin_dims(m, x);
    memcpy(y, x, sizeof y);
    cut_dim(m, x, y, d, k);
    wf_maker_tensor(m, "x", m->dims, x);
    wf_text_add(m->out, " ->");
    wf_maker_tensor(m, "v", m->dims, y);
    wf_maker_tensor(m, "i", m->dims, y);
    wf_maker_sizes(m);
    wf_text_add(m->out, "; type i64 i");
    return WEFT_OK;
}

static weft_status make_slice(struct wf_maker *m)
{
    struct wf_made_dim x[WEFT_MAX_DIMS], y[WEFT_MAX_DIMS];
    struct wf_slice s;
    int64_t size;
    int32_t d;

    WF_TRY(wf_maker_dim(m, "dim", m->dims, &d));
    size = m->shape[d];
    WF_TRY(wf_op_read_slice(m->op, m->call, size, &s));
    begin_dims(m, x);
    memcpy(y, x, sizeof y);
    if (s.count == size) { /* all of it */
    } else if (size % s.step == 0 && s.count == size / s.step && s.step > 1) {
        int z = wf_maker_factor(m, s.step); /* one index of each tile */
        m->sizes[x[d].factor[0]] = s.count;
        x[d].factor[x[d].count++] = z;
        m->whole |= UINT32_C(1) << z;
    } else {
        cut_dim(m, x, y, d, s.count);
    }
    write_pair(m, x, m->dims, y, "pass x");
    for (int i = 0; i < 2; i++)
        wf_maker_local(m, i == 0 ? "start" : "end",
                       (struct wf_local_size){.kind = i == 0 ? WF_LOCAL_START : WF_LOCAL_END,
                                              .dim = (uint8_t)d,
                                              .by_tensor = 1,
                                              .by_dim = (uint8_t)d,
                                              .start = s.start,
                                              .step = s.step});
    if (s.step == 1 && s.count < size)
        wf_text_add(m->out, "; parts f%d %lld f%d", x[d].factor[0], (long long)s.start,
                    y[d].factor[0]);
    return WEFT_OK;
}

/* A slice whose ends are inside of the dimension, the start not behind the end. */
static weft_status make_narrow(struct wf_maker *m)
{
    static const char *const names[] = {"start", "end"};
    int64_t ends[] = {0, 0};
    int32_t d;

    WF_TRY(wf_maker_dim(m, "dim", m->dims, &d));
    ends[1] = m->shape[d];
    for (size_t i = 0; i < WF_COUNT(names); i++) {
        WF_TRY(wf_attr_read_int(m->op, m->call, names[i], &ends[i]));
        if (ends[i] < -m->shape[d] || ends[i] > m->shape[d])
            return wf_op_refuse(m->op, "attribute %s is %lld, and dimension %d of x has size %lld",
                                names[i], (long long)ends[i], d, (long long)m->shape[d]);
        if (ends[i] < 0) ends[i] += m->shape[d];
    }
    if (ends[0] > ends[1])
        return wf_op_refuse(m->op,
                            "attribute start is index %lld of dimension %d of x, behind end, which "
                            "is index %lld",
                            (long long)ends[0], d, (long long)ends[1]);
    return make_slice(m);
}

weft_status wf_op_make(struct wf_op *op, const struct wf_rule *rule, const weft_op_call *call,
                       struct wf_text *out)
{
    static const struct {
        const char *name;
        weft_status (*make)(struct wf_maker *m);
    } makers[] = {
        {"reshape", wf_make_reshape},
        {"permute", make_permute},
        {"transpose", make_transpose},
        {"squeeze", make_squeeze},
        {"expand", make_expand},
        {"repeat", make_repeat},
        {"interleave", make_interleave},
        {"pad", make_pad},
        {"slice", make_slice},
        {"narrow", make_narrow},
        {"topk", make_topk},
        {"cat", wf_make_cat},
        {"split", wf_make_split},
        {"stack", wf_make_stack},
        {"index", wf_make_index},
        {"einsum", wf_make_einsum},
        {"index_put", wf_make_index_put},
        {"conv", wf_make_conv},
        {"conv_bwd", wf_make_conv_bwd},
        {"max_pool", wf_make_max_pool},
        {"avg_pool", wf_make_avg_pool},
        {"gather", wf_make_gather},
        {"diagonal", wf_make_diagonal},
        {"diagonal_scatter", wf_make_diagonal_scatter},
        {"unfold", wf_make_unfold},
        {"view_dtype", wf_make_view_dtype},
    };
    struct wf_maker m = {.op = op, .call = call, .out = out};

    for (uint32_t i = 0; i < call->input_count; i++)
        if (call->inputs[i] != NULL)
            WF_TRY(wf_spec_require(call->inputs[i], "weft_op_call", "inputs"));
    if (call->input_count == 0 || call->inputs[0] == NULL)
        return wf_op_refuse(op, "the first input is missing");
    m.dims = weft_spec_dims(call->inputs[0]);
    m.shape = weft_spec_shape(call->inputs[0]);
    for (size_t i = 0; i < WF_COUNT(makers); i++)
        if (wf_word_is(rule, rule->make, makers[i].name)) return makers[i].make(&m);
    return wf_op_refuse(op, "the clause \"make %.*s\" is not known", WF_WORD(rule, rule->make));
}
