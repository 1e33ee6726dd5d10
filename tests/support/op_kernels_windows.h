/* op_kernels_windows.h - plain kernels of windows, dropout and cross entropy with their gradients.
 */
#ifndef WEFT_TESTS_OP_KERNELS_WINDOWS_H
#define WEFT_TESTS_OP_KERNELS_WINDOWS_H

#include "support/op_kernels_data.h"

/* g[n o j] x[n c i] f[o c r] -> dx dw db, with stride and padding 0 */
static inline void k_conv_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t stride = kernel_int(call, "stride", 1);

    for (int64_t i = 0; i < in[0].count; i++) {
        int64_t y[3];
        double g = in[0].data[i];
        part_coord(&in[0], i, y);
        out[2].data[y[1]] += g;
        for (int64_t c = 0; c < in[2].shape[1]; c++)
            for (int64_t r = 0; r < in[2].shape[2]; r++) {
                int64_t x[3] = {y[0], c, y[2] * stride + r}, f[3] = {y[1], c, r};
                out[0].data[part_offset(&out[0], x)] += g * in[2].data[part_offset(&in[2], f)];
                out[1].data[part_offset(&out[1], f)] += g * in[1].data[part_offset(&in[1], x)];
            }
    }
}

/* x[n c i] -> the largest element of each window, and where it is in the whole */
static inline void k_max_pool(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t kernel = kernel_int(call, "kernel", 1), stride = kernel_int(call, "stride", kernel);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[3], start;
        part_coord(out, i, c);
        start = c[2] * stride;
        out->data[i] = -INFINITY;
        for (c[2] = start; c[2] < start + kernel; c[2]++) {
            double x = in->data[part_offset(in, c)];
            if (x <= out->data[i]) continue;
            out->data[i] = x;
            out[1].data[i] = (double)in->index[2][c[2]];
        }
    }
}

/* g[n c j] x[n c i] k[n c j] -> d[n c i] */
static inline void k_max_pool_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < in->count; i++) {
        int64_t c[3];
        part_coord(in, i, c);
        c[2] = (int64_t)in[2].data[i];
        out->data[part_offset(out, c)] += in->data[i];
    }
}

/* g[n c j] x[n c i] -> d[n c i] */
static inline void k_avg_pool_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t kernel = kernel_int(call, "kernel", 1), stride = kernel_int(call, "stride", kernel);

    for (int64_t i = 0; i < in->count; i++) {
        int64_t c[3], start;
        part_coord(in, i, c);
        start = c[2] * stride;
        for (c[2] = start; c[2] < start + kernel; c[2]++)
            out->data[part_offset(out, c)] += in->data[i] / (double)kernel;
    }
}

/* ---- another number of samples ---- */

/* The share of sample I of FROM in sample J of TO. */
static inline double sample_share(const weft_op_call *call, int64_t from, int64_t to, int64_t i,
                                  int64_t j)
{
    const weft_op_attr *mode = kernel_attr(call, "mode");
    double at = fmax(0, ((double)j + 0.5) * (double)from / (double)to - 0.5);
    int64_t low = (int64_t)at, high = low + 1 < from ? low + 1 : from - 1;

    if (strncmp(call->name, "adaptive", 8) == 0) {
        int64_t start = j * from / to, end = ((j + 1) * from + to - 1) / to;
        return i >= start && i < end ? 1 / (double)(end - start) : 0;
    }
    if (strcmp(mode->text, "nearest") == 0) return i == j * from / to;
    return (i == low ? 1 - (at - (double)low) : 0) + (i == high ? at - (double)low : 0);
}

/* x[n c i] -> y[n c j] */
static inline void k_resample(const weft_op_call *call, const struct part *in, struct part *out)
{
    for (int64_t k = 0; k < out->count; k++) {
        int64_t c[3], j;
        part_coord(out, k, c);
        j = c[2];
        for (c[2] = 0; c[2] < in->shape[2]; c[2]++)
            out->data[k] += sample_share(call, in->shape[2], out->shape[2], c[2], j) *
                            in->data[part_offset(in, c)];
    }
}

/* g[n c j] x[n c i] -> d[n c i] */
static inline void k_resample_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    for (int64_t k = 0; k < in->count; k++) {
        int64_t c[3], j;
        part_coord(in, k, c);
        j = c[2];
        for (c[2] = 0; c[2] < out->shape[2]; c[2]++)
            out->data[part_offset(out, c)] +=
                sample_share(call, out->shape[2], in->shape[2], c[2], j) * in->data[k];
    }
}

/* x[n c i] -> the largest element of each part, and where it is */
static inline void k_adaptive_max_pool(const weft_op_call *call, const struct part *in,
                                       struct part *out)
{
    for (int64_t k = 0; k < out->count; k++) {
        int64_t c[3], j;
        part_coord(out, k, c);
        j = c[2];
        out->data[k] = -INFINITY;
        for (c[2] = 0; c[2] < in->shape[2]; c[2]++) {
            double x = in->data[part_offset(in, c)];
            if (sample_share(call, in->shape[2], out->shape[2], c[2], j) == 0 || x <= out->data[k])
                continue;
            out->data[k] = x;
            out[1].data[k] = (double)c[2];
        }
    }
}

/* ---- dropout ---- */

/* x -> y, and m, which follows from the global indices */
static inline void k_dropout(const weft_op_call *call, const struct part *in, struct part *out)
{
    double scale = 1 / (1 - kernel_real(call, "p", 0.5));

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], sum = 0;
        part_coord(out, i, c);
        for (int32_t d = 0; d < out->dims; d++)
            sum += (2 * d + 3) * out->index[d][c[d]];
        out[1].data[i] = sum % 4 != 1;
        out[0].data[i] = in->data[i] * out[1].data[i] * scale;
    }
}

POINTWISE(dropout_bwd, a *b / (1 - kernel_real(call, "p", 0.5)))

/* ---- cross entropy ---- */

static inline bool reduces_by(const weft_op_call *call, const char *name)
{
    const weft_op_attr *attr = kernel_attr(call, "reduction");

    return attr != NULL && strcmp(attr->text, name) == 0;
}

/* The logarithm of the sum of exponentials of row N of x[n v]. */
static inline double row_lse(const struct part *x, int64_t n)
{
    double sum = 0;

    for (int64_t v = 0; v < x->shape[1]; v++)
        sum += exp(x->data[n * x->shape[1] + v]);
    return log(sum);
}

/* x[n v] t[n] -> l */
static inline void k_cross_entropy(const weft_op_call *call, const struct part *in,
                                   struct part *out)
{
    int64_t rows = in->shape[0], ignored = kernel_int(call, "ignore_index", -100), counted = 0;

    for (int64_t n = 0; n < rows; n++) {
        int64_t t = (int64_t)in[1].data[n];
        double loss = t == ignored ? 0 : row_lse(in, n) - in->data[n * in->shape[1] + t];
        counted += t != ignored;
        out->data[reduces_by(call, "none") ? n : 0] += loss;
    }
    if (reduces_by(call, "mean")) out->data[0] /= (double)counted;
}

/* g x[n v] t[n] -> d[n v] */
static inline void k_cross_entropy_bwd(const weft_op_call *call, const struct part *in,
                                       struct part *out)
{
    const struct part *x = &in[1];
    int64_t rows = x->shape[0], width = x->shape[1];
    int64_t ignored = kernel_int(call, "ignore_index", -100), counted = 0;

    for (int64_t n = 0; n < rows; n++)
        counted += (int64_t)in[2].data[n] != ignored;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t n = i / width, t = (int64_t)in[2].data[n];
        double g = in->data[reduces_by(call, "none") ? n : 0];
        if (t == ignored) continue;
        if (reduces_by(call, "mean")) g /= (double)counted;
        out->data[i] = g * (exp(x->data[i] - row_lse(x, n)) - (i % width == t));
    }
}

#endif
