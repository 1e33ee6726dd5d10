/* op_kernels_data.h - plain kernels of operators that look up, move and normalise data. */
#ifndef WEFT_TESTS_OP_KERNELS_DATA_H
#define WEFT_TESTS_OP_KERNELS_DATA_H

#include "support/op_kernels.h"

/* ---- lookup: masks and owned dimensions ---- */

static inline void k_embedding(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], at[2];
        part_coord(out, i, c);
        at[0] = find_index(&in[0], 0, (int64_t)in[1].data[part_offset(&in[1], c)]);
        at[1] = c[out->dims - 1];
        out->data[i] = at[0] < 0 ? 0 : in[0].data[part_offset(&in[0], at)];
    }
}

static inline void k_embedding_bwd(const weft_op_call *call, const struct part *in,
                                   struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < in[0].count; i++) {
        int64_t c[WEFT_MAX_DIMS], at[2];
        part_coord(&in[0], i, c);
        at[0] = find_index(out, 0, (int64_t)in[1].data[part_offset(&in[1], c)]);
        at[1] = c[in[0].dims - 1];
        if (at[0] >= 0) out->data[part_offset(out, at)] += in[0].data[i];
    }
}

static inline void k_gather(const weft_op_call *call, const struct part *in, struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        c[dim] = find_index(&in[0], dim, (int64_t)in[1].data[i]);
        out->data[i] = c[dim] < 0 ? 0 : in[0].data[part_offset(&in[0], c)];
    }
}

static inline void k_index_select(const weft_op_call *call, const struct part *in, struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        c[dim] = find_index(&in[0], dim, (int64_t)in[1].data[c[dim]]);
        out->data[i] = c[dim] < 0 ? 0 : in[0].data[part_offset(&in[0], c)];
    }
}

/* HOW: 0 overwrite, 1 add, 2 maximum, 3 the constant 3.  LINES: the index has one dimension. */
static inline void kernel_scatter(const weft_op_call *call, const struct part *in, struct part *out,
                                  int how, bool lines)
{
    const struct part *index = &in[1], *from = lines ? &in[2] : index;
    int32_t dim = kernel_dim(call, in);

    memcpy(out->data, in[0].data, (size_t)out->count * sizeof *out->data);
    for (int64_t i = 0; i < from->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        double *to, value;
        part_coord(from, i, c);
        value = how == 3 ? 3 : in[2].data[part_offset(&in[2], c)];
        c[dim] = find_index(out, dim, (int64_t)index->data[lines ? c[dim] : i]);
        if (c[dim] < 0) continue;
        to = &out->data[part_offset(out, c)];
        *to = how == 1 ? *to + value : how == 2 ? fmax(*to, value) : value;
    }
}

static inline void k_scatter(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_scatter(call, in, out, 0, false);
}

static inline void k_scatter_value(const weft_op_call *call, const struct part *in,
                                   struct part *out)
{
    kernel_scatter(call, in, out, 3, false);
}

static inline void k_scatter_add(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_scatter(call, in, out, 1, false);
}

static inline void k_scatter_max(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_scatter(call, in, out, 2, false);
}

static inline void k_index_add(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_scatter(call, in, out, 1, true);
}

static inline void k_index_copy(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_scatter(call, in, out, 0, true);
}

static inline void k_one_hot(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        out->data[i] = in->data[part_offset(in, c)] == (double)out->index[1][c[1]];
    }
}

/* x[a b], indices of dimension 0, and values [c b], [b] or [] */
static inline void k_index_put(const weft_op_call *call, const struct part *in, struct part *out)
{
    const struct part *v = &in[2];
    int64_t width = out->shape[1];

    (void)call;
    memcpy(out->data, in[0].data, (size_t)out->count * sizeof *out->data);
    for (int64_t j = 0; j < in[1].shape[0]; j++) {
        int64_t row = find_index(out, 0, (int64_t)in[1].data[j]);
        for (int64_t b = 0; row >= 0 && b < width; b++)
            out->data[row * width + b] =
                v->data[v->dims == 0 ? 0 : (v->dims == 2 ? j * width : 0) + b];
    }
}

/* x[a b], two indices of dimension 0 and 1 */
static inline void k_index_both(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[2] = {find_index(&in[0], 0, (int64_t)in[1].data[in[1].size[0] == 1 ? 0 : i]),
                        find_index(&in[0], 1, (int64_t)in[2].data[in[2].size[0] == 1 ? 0 : i])};
        out->data[i] = c[0] < 0 || c[1] < 0 ? 0 : in[0].data[part_offset(&in[0], c)];
    }
}

static inline void k_bucketize(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++)
        for (int64_t j = 0; j < in[1].count; j++)
            out->data[i] += in[1].data[j] < in[0].data[i];
}

/* ---- moving data ---- */

static inline void k_reshape(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    ck_assert_int_eq(in->count, out->count);
    memcpy(out->data, in->data, (size_t)in->count * sizeof *in->data);
}

static inline void k_permute(const weft_op_call *call, const struct part *in, struct part *out)
{
    const weft_op_attr *order = kernel_attr(call, "order");

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], at[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        for (int32_t d = 0; d < in->dims; d++)
            at[order->list[d]] = c[d];
        out->data[i] = in->data[part_offset(in, at)];
    }
}

/* Dimensions aligned from the right; a part of a repeated dimension repeats the part. */
static inline void k_repeat(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], at[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        for (int32_t d = 0; d < in->dims; d++)
            at[d] = in->shape[d] == 0 ? 0 : c[d + out->dims - in->dims] % in->shape[d];
        out->data[i] = in->count == 0 ? 0 : in->data[part_offset(in, at)];
    }
}

/* The position in IN of the first index of dimension DIM from START on. */
static inline int64_t position_of(const struct part *in, int32_t dim, int64_t start)
{
    int64_t below = 0;

    while (below < in->shape[dim] && in->index[dim][below] < start)
        below++;
    return below;
}

/* From START, every STEP-th index of the last dimension.  With a STEP, parts hold whole tiles. */
static inline void k_slice(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t start = kernel_int(call, "start", 0), step = kernel_int(call, "step", 1);

    if (step == 1) start = position_of(in, in->dims - 1, start);
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        c[in->dims - 1] = start + step * c[in->dims - 1];
        out->data[i] = in->data[part_offset(in, c)];
    }
}

static inline void k_pad(const weft_op_call *call, const struct part *in, struct part *out)
{
    const weft_op_attr *pad = kernel_attr(call, "pad");

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        int32_t last = in->dims - 1;
        part_coord(out, i, c);
        c[last] -= pad->list[0];
        out->data[i] = c[last] < 0 || c[last] >= in->shape[last] ? kernel_real(call, "v", 0)
                                                                 : in->data[part_offset(in, c)];
    }
}

/* Along dimension 1. */
static inline void k_cat(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        int which = 0;
        part_coord(out, i, c);
        if (c[1] >= in[0].shape[1]) {
            c[1] -= in[0].shape[1];
            which = 1;
        }
        out->data[i] = in[which].data[part_offset(&in[which], c)];
    }
}

static inline void k_stack(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        out->data[i] = in[out->index[0][c[0]]].data[part_offset(&in[0], c + 1)];
    }
}

static inline void k_split(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t before = 0;

    (void)call;
    for (int k = 0; k < 2; before += out[k++].shape[1])
        for (int64_t i = 0; i < out[k].count; i++) {
            int64_t c[WEFT_MAX_DIMS];
            part_coord(&out[k], i, c);
            c[1] += before;
            out[k].data[i] = in->data[part_offset(in, c)];
        }
}

static inline void k_select(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS] = {0};
        part_coord(out, i, c + 1);
        out->data[i] = in->shape[0] == 0 ? 0 : in->data[part_offset(in, c)];
    }
}

/* The gradient of a selection of index 0 of dimension 0. */
static inline void k_select_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        out->data[i] = out->index[0][c[0]] == 0 ? in->data[part_offset(in, c + 1)] : 0;
    }
}

static inline void k_tril(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        int32_t n = out->dims;
        part_coord(out, i, c);
        out->data[i] = out->index[n - 1][c[n - 1]] <= out->index[n - 2][c[n - 2]] ? in->data[i] : 0;
    }
}

/* ---- normalisation, losses, attention, windows ---- */

/* x[a b], normalised over b; outputs y, mean, 1 / deviation */
static inline void k_layer_norm(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t n = in->shape[1];

    (void)call;
    for (int64_t a = 0; a < in->shape[0]; a++) {
        double mean = 0, square = 0, r;
        for (int64_t b = 0; b < n; b++)
            mean += in->data[a * n + b] / (double)n;
        for (int64_t b = 0; b < n; b++)
            square += pow(in->data[a * n + b] - mean, 2) / (double)n;
        r = 1 / sqrt(square + 1e-5);
        out[1].data[a] = mean;
        out[2].data[a] = r;
        for (int64_t b = 0; b < n; b++)
            out[0].data[a * n + b] =
                (in->data[a * n + b] - mean) * r * (in[1].absent ? 1 : in[1].data[b]) +
                (in[2].absent ? 0 : in[2].data[b]);
    }
}

/* x[n v] t[n] w?[v]; outputs the loss and the sum of weights */
static inline void k_nll_sum(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t n = 0; n < in[0].shape[0]; n++) {
        int64_t at[2] = {n, find_index(&in[0], 1, (int64_t)in[1].data[n])};
        double w = in[2].absent ? 1 : at[1] < 0 ? 0 : in[2].data[at[1]];
        if (at[1] >= 0) out[0].data[0] -= w * in[0].data[part_offset(&in[0], at)];
        out[1].data[0] += in[2].absent || at[1] >= 0 ? w : 0;
    }
}

/* mean over all elements of (a - b)^2 */
static inline void k_mse_mean(const weft_op_call *call, const struct part *in, struct part *out)
{
    double count = 1;

    (void)call;
    for (int64_t i = 0; i < in->count; i++)
        out->data[0] += pow(in[0].data[i] - in[1].data[i], 2);
    for (int32_t d = 0; d < in->dims; d++)
        count *= (double)in->size[d] / (double)in->parts[d];
    out->data[0] /= count;
}

/* The score of query C[0..2] and key T.  Each group of REPEAT query heads has one head of keys. */
static inline double score_of(const struct part *in, const int64_t *c, int64_t t, int64_t repeat)
{
    double score = 0;

    for (int64_t d = 0; d < in[0].shape[3]; d++) {
        int64_t q[4] = {c[0], c[1], c[2], d}, k[4] = {c[0], c[1] / repeat, t, d};
        score += in[0].data[part_offset(&in[0], q)] * in[1].data[part_offset(&in[1], k)];
    }
    return score;
}

/* q[b h s d] k[b h t d] v[b h t e] -> o[b h s e] l[b h s], causal */
static inline void k_sdpa(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t keys = in[1].shape[2], width = in[2].shape[3];
    /* query heads per head of keys, in this part */
    int64_t repeat = in[1].shape[1] > 0 ? in[0].shape[1] / in[1].shape[1] : 1;

    (void)call;
    for (int64_t i = 0; i < out[1].count; i++) {
        int64_t c[4] = {0};
        double sum = 0;
        part_coord(&out[1], i, c);
        for (int64_t t = 0; t < keys; t++)
            if (in[1].index[2][t] <= in[0].index[2][c[2]]) sum += exp(score_of(in, c, t, repeat));
        out[1].data[i] = log(sum);
        for (int64_t e = 0; e < width; e++)
            for (int64_t t = 0; t < keys; t++) {
                int64_t v[4] = {c[0], c[1] / repeat, t, e};
                if (in[1].index[2][t] <= in[0].index[2][c[2]])
                    out[0].data[i * width + e] +=
                        exp(score_of(in, c, t, repeat)) / sum * in[2].data[part_offset(&in[2], v)];
            }
    }
}

/* do[b h s e] q[b h s d] k[b h t d] v[b h t e] o[b h s e] l[b h s] -> dq dk dv, causal */
static inline void k_sdpa_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    const struct part *dy = &in[0], *q = &in[1], *k = &in[2], *v = &in[3], *o = &in[4];
    int64_t repeat = k->shape[1] > 0 ? q->shape[1] / k->shape[1] : 1;

    (void)call;
    for (int64_t i = 0; i < in[5].count; i++) {
        int64_t c[4] = {0};
        part_coord(&in[5], i, c);
        for (int64_t t = 0; t < k->shape[2]; t++) {
            double p = exp(score_of(&in[1], c, t, repeat) - in[5].data[i]), slope = 0;
            if (k->index[2][t] > q->index[2][c[2]]) continue;
            for (int64_t e = 0; e < v->shape[3]; e++) {
                int64_t y[4] = {c[0], c[1], c[2], e}, x[4] = {c[0], c[1] / repeat, t, e};
                double g = dy->data[part_offset(dy, y)];
                out[2].data[part_offset(&out[2], x)] += p * g;
                slope += p * g * (v->data[part_offset(v, x)] - o->data[part_offset(o, y)]);
            }
            for (int64_t d = 0; d < q->shape[3]; d++) {
                int64_t y[4] = {c[0], c[1], c[2], d}, x[4] = {c[0], c[1] / repeat, t, d};
                out[0].data[part_offset(&out[0], y)] += slope * k->data[part_offset(k, x)];
                out[1].data[part_offset(&out[1], x)] += slope * q->data[part_offset(q, y)];
            }
        }
    }
}

/* x[n c i] f[o c r] b?[o] -> y[n o j], with stride and padding 0 */
static inline void k_conv(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t stride = kernel_int(call, "stride", 1);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t y[3];
        part_coord(out, i, y);
        for (int64_t c = 0; c < in[1].shape[1]; c++)
            for (int64_t r = 0; r < in[1].shape[2]; r++) {
                int64_t x[3] = {y[0], c, y[2] * stride + r}, f[3] = {y[1], c, r};
                out->data[i] +=
                    in[0].data[part_offset(&in[0], x)] * in[1].data[part_offset(&in[1], f)];
            }
        if (!in[2].absent) out->data[i] += in[2].data[y[1]];
    }
}

/* x[n c i] -> the mean of each window of KERNEL */
static inline void k_avg_pool(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t kernel = kernel_int(call, "kernel", 1), stride = kernel_int(call, "stride", kernel);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[3], start;
        part_coord(out, i, c);
        start = c[2] * stride;
        for (c[2] = start; c[2] < start + kernel; c[2]++)
            out->data[i] += in->data[part_offset(in, c)] / (double)kernel;
    }
}

#endif
