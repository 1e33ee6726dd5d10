/* gradient_kernels.h - weft_op_apply with the plain kernels of tests/support: a rank's shards
 * become parts of doubles, and back. */
#ifndef WEFT_TESTS_GRADIENT_KERNELS_H
#define WEFT_TESTS_GRADIENT_KERNELS_H

#include "support/op_kernels_windows.h"
#include "support/op_kernels_data.h"
#include "weft/apply.h"

/* ---- kernels that tests/support does not have ---- */

POINTWISE(tanh, tanh(a))
POINTWISE(sigmoid, 1 / (1 + exp(-a)))
POINTWISE(silu, a / (1 + exp(-a)))
POINTWISE(rsqrt, 1 / sqrt(a))
POINTWISE(reciprocal, 1 / a)
POINTWISE(square, a *a)
POINTWISE(sin, sin(a))
POINTWISE(cos, cos(a))
POINTWISE(sign, (a > 0) - (a < 0))
POINTWISE(power, pow(a, kernel_real(call, "exponent", 1)))
POINTWISE(over, a / kernel_real(call, "s", 1))
POINTWISE(ge, a >= b)
POINTWISE(le, a <= b)
POINTWISE(addcmul_v, a + kernel_real(call, "value", 1) * b * c)
POINTWISE(addcdiv_v, a + kernel_real(call, "value", 1) * b / c)
POINTWISE(sigmoid_bwd, a *b *(1 - b))
POINTWISE(threshold_bwd, b > kernel_real(call, "threshold", 0) ? a : 0)
POINTWISE(gelu_bwd, a *(0.5 * (1 + erf(b / sqrt(2))) +
                        b * exp(-b * b / 2) / sqrt(2 * 3.14159265358979323846)))
POINTWISE(silu_bwd, a *(1 + b * (1 - 1 / (1 + exp(-b)))) / (1 + exp(-b)))
POINTWISE(elu_bwd, b > 0 ? a : a * kernel_real(call, "alpha", 1) * exp(b))

static inline void k_matmul(const weft_op_call *call, const struct part *in, struct part *out)
{
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], n = out->dims, inner = in[0].shape[in[0].dims - 1];
        part_coord(out, i, c);
        for (int64_t k = 0; k < inner; k++) {
            int64_t at[2][WEFT_MAX_DIMS];
            for (int o = 0; o < 2; o++) {
                int64_t missing = n - in[o].dims;
                for (int32_t d = 0; d < in[o].dims; d++)
                    at[o][d] = in[o].size[d] == 1 ? 0 : c[d + missing];
                at[o][in[o].dims - 1 - o] = k;
                at[o][in[o].dims - 2 + o] = c[n - 2 + o];
            }
            out->data[i] +=
                in[0].data[part_offset(&in[0], at[0])] * in[1].data[part_offset(&in[1], at[1])];
        }
    }
    (void)call;
}

/* x[.. k] w[n k] b?[n] */
static inline void k_rows_linear(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t inner = in[1].shape[1], width = in[1].shape[0];

    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t row = i / width, n = i % width;
        out->data[i] = in[2].absent ? 0 : in[2].data[n];
        for (int64_t k = 0; k < inner; k++)
            out->data[i] += in[0].data[row * inner + k] * in[1].data[n * inner + k];
    }
}

/* An ellipsis is written as the letters p to s, aligned from the right. */
static inline void k_einsum(const weft_op_call *call, const struct part *in, struct part *out)
{
    const char *from = kernel_attr(call, "eq")->text;
    char eq[64] = "";
    int operand = 0;

    for (const char *at = from; *at != '\0'; at++) {
        size_t used = strlen(eq);
        bool result = strstr(from, "->") < at;
        const struct part *t = result ? out : &in[operand];
        size_t letters = 0, dims;
        const char *begin = at;
        operand += *at == ',';
        if (*at != '.') {
            eq[used] = *at;
            eq[used + 1] = '\0';
            continue;
        }
        while (begin > from && begin[-1] != ',' && begin[-1] != '>')
            begin--;
        for (; *begin != '\0' && *begin != ',' && *begin != '-'; begin++)
            letters += *begin >= 'a';
        dims = (size_t)t->dims - letters;
        memcpy(eq + used, &"pqrs"[4 - dims], dims);
        eq[used + dims] = '\0';
        at += 2;
    }
    kernel_einsum(eq, in, out);
}

static inline void k_transpose(const weft_op_call *call, const struct part *in, struct part *out)
{
    const weft_op_attr *dims = kernel_attr(call, "dims");
    int64_t a = dims->list[0], b = dims->list[1];

    if (a < 0) a += in->dims;
    if (b < 0) b += in->dims;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], swap;
        part_coord(out, i, c);
        swap = c[a], c[a] = c[b], c[b] = swap;
        out->data[i] = in->data[part_offset(in, c)];
    }
}

static inline void k_log_softmax(const weft_op_call *call, const struct part *in, struct part *out)
{
    k_softmax(call, in, out);
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = log(out->data[i]);
}

static inline void k_log_softmax_bwd(const weft_op_call *call, const struct part *in,
                                     struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS] = {0};
        double sum = 0;
        part_coord(out, i, c);
        for (int64_t j = 0; j < in->shape[dim]; j++)
            sum += *line_at((struct part *)&in[0], c, dim, j);
        out->data[i] = in[0].data[i] - exp(in[1].data[i]) * sum;
    }
}

static inline void k_logsumexp(const weft_op_call *call, const struct part *in, struct part *out)
{
    kernel_reduce(call, in, out, WEFT_REDUCE_SUM, f_exp);
    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = log(out->data[i]);
}

/* g[a b] x[a b] m[a 1] r[a 1] w?[b] -> dx dw db */
static inline void k_layer_norm_bwd(const weft_op_call *call, const struct part *in,
                                    struct part *out)
{
    int64_t n = in[0].shape[1];

    (void)call;
    for (int64_t a = 0; a < in[0].shape[0]; a++) {
        double r = in[3].data[a], sum = 0, dot = 0;
        for (int64_t b = 0; b < n; b++) {
            double normal = (in[1].data[a * n + b] - in[2].data[a]) * r;
            double g = in[0].data[a * n + b], scaled = g * (in[4].absent ? 1 : in[4].data[b]);
            sum += scaled / (double)n;
            dot += scaled * normal / (double)n;
            out[1].data[b] += g * normal;
            out[2].data[b] += g;
        }
        for (int64_t b = 0; b < n; b++) {
            double normal = (in[1].data[a * n + b] - in[2].data[a]) * r;
            double g = in[0].data[a * n + b] * (in[4].absent ? 1 : in[4].data[b]);
            out[0].data[a * n + b] = r * (g - sum - normal * dot);
        }
    }
}

/* x[a b] w?[b] -> y r */
static inline void k_rms_norm(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t n = in->shape[1];

    (void)call;
    for (int64_t a = 0; a < in->shape[0]; a++) {
        double square = 0;
        for (int64_t b = 0; b < n; b++)
            square += in->data[a * n + b] * in->data[a * n + b] / (double)n;
        out[1].data[a] = 1 / sqrt(square + 1e-5);
        for (int64_t b = 0; b < n; b++)
            out[0].data[a * n + b] =
                in->data[a * n + b] * out[1].data[a] * (in[1].absent ? 1 : in[1].data[b]);
    }
}

/* g[a b] x[a b] r[a 1] w?[b] -> dx dw */
static inline void k_rms_norm_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t n = in[0].shape[1];

    (void)call;
    for (int64_t a = 0; a < in[0].shape[0]; a++) {
        double r = in[2].data[a], dot = 0;
        for (int64_t b = 0; b < n; b++) {
            double g = in[0].data[a * n + b], x = in[1].data[a * n + b];
            dot += g * x * (in[3].absent ? 1 : in[3].data[b]) / (double)n;
            out[1].data[b] += g * x * r;
        }
        for (int64_t b = 0; b < n; b++)
            out[0].data[a * n + b] =
                r * (in[0].data[a * n + b] * (in[3].absent ? 1 : in[3].data[b]) -
                     in[1].data[a * n + b] * dot * r * r);
    }
}

/* Along the last dimension. */
static inline void k_slice_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    int64_t start = kernel_int(call, "start", 0), step = kernel_int(call, "step", 1);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], last = out->dims - 1;
        part_coord(out, i, c);
        c[last] = out->index[last][c[last]] - start;
        if (c[last] < 0 || c[last] % step != 0 || c[last] / step >= in->shape[last]) continue;
        c[last] /= step;
        out->data[i] = in->data[part_offset(in, c)];
    }
}

static inline void k_unbind(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t k = 0; k < in->shape[0]; k++)
        for (int64_t i = 0; i < out[k].count; i++)
            out[k].data[i] = in->data[k * out[k].count + i];
}

/* Pairs of neighbours are turned by an angle: x[b s h (p 2)] c[s p] n[s p] */
static inline void k_rope(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], at[2];
        double other;
        part_coord(out, i, c);
        at[0] = c[1], at[1] = c[3] / 2;
        other = in->data[i % 2 == 0 ? i + 1 : i - 1];
        out->data[i] = in->data[i] * in[1].data[part_offset(&in[1], at)] +
                       (i % 2 == 0 ? -1 : 1) * other * in[2].data[part_offset(&in[2], at)];
    }
}

/* ---- by name ---- */

static const struct {
    const char *name;
    op_kernel *kernel;
} gradient_kernels[] = {
    {"exp", k_exp},
    {"log", k_log},
    {"sqrt", k_sqrt},
    {"rsqrt", k_rsqrt},
    {"reciprocal", k_reciprocal},
    {"square", k_square},
    {"pow_scalar", k_power},
    {"abs", k_abs},
    {"sin", k_sin},
    {"cos", k_cos},
    {"tanh", k_tanh},
    {"tanh_bwd", k_tanh_bwd},
    {"sigmoid", k_sigmoid},
    {"sigmoid_bwd", k_sigmoid_bwd},
    {"relu", k_relu},
    {"threshold_bwd", k_threshold_bwd},
    {"gelu", k_gelu},
    {"gelu_bwd", k_gelu_bwd},
    {"silu", k_silu},
    {"silu_bwd", k_silu_bwd},
    {"elu", k_elu},
    {"elu_bwd", k_elu_bwd},
    {"neg", k_neg},
    {"clone", k_copy1},
    {"sign", k_sign},
    {"mul_scalar", k_scale},
    {"div_scalar", k_over},
    {"add_scalar", k_shift},
    {"rsub_scalar", k_rshift},
    {"add", k_add_alpha},
    {"sub", k_sub_alpha},
    {"mul", k_mul},
    {"div", k_div},
    {"maximum", k_maximum},
    {"minimum", k_minimum},
    {"ge", k_ge},
    {"gt", k_gt},
    {"le", k_le},
    {"lt", k_lt},
    {"where", k_where},
    {"masked_fill", k_fill_masked},
    {"zeros_like", k_zero},
    {"addcmul", k_addcmul_v},
    {"addcdiv", k_addcdiv_v},
    {"lerp", k_lerp},
    {"copy", k_second},
    {"sum", k_sum},
    {"mean", k_mean},
    {"logsumexp", k_logsumexp},
    {"softmax", k_softmax},
    {"softmax_bwd", k_softmax_bwd},
    {"log_softmax", k_log_softmax},
    {"log_softmax_bwd", k_log_softmax_bwd},
    {"cumsum", k_cumsum},
    {"flip", k_flip},
    {"tril", k_tril},
    {"layer_norm", k_layer_norm},
    {"layer_norm_bwd", k_layer_norm_bwd},
    {"rms_norm", k_rms_norm},
    {"rms_norm_bwd", k_rms_norm_bwd},
    {"sdpa", k_sdpa},
    {"sdpa_bwd", k_sdpa_bwd},
    {"rope", k_rope},
    {"mm", k_mm},
    {"bmm", k_matmul},
    {"matmul", k_matmul},
    {"dot", k_dot},
    {"mv", k_mv},
    {"outer", k_outer},
    {"linear", k_rows_linear},
    {"addmm", k_addmm},
    {"einsum", k_einsum},
    {"eq", k_eq},
    {"cast", k_copy1},
    {"amax", k_amax},
    {"amin", k_amin},
    {"dropout", k_dropout},
    {"dropout_bwd", k_dropout_bwd},
    {"cross_entropy", k_cross_entropy},
    {"cross_entropy_bwd", k_cross_entropy_bwd},
    {"conv", k_conv},
    {"conv_bwd", k_conv_bwd},
    {"max_pool", k_max_pool},
    {"max_pool_bwd", k_max_pool_bwd},
    {"avg_pool", k_avg_pool},
    {"avg_pool_bwd", k_avg_pool_bwd},
    {"adaptive_avg_pool", k_resample},
    {"adaptive_avg_pool_bwd", k_resample_bwd},
    {"adaptive_max_pool", k_adaptive_max_pool},
    {"interpolate", k_resample},
    {"interpolate_bwd", k_resample_bwd},
    {"embedding", k_embedding},
    {"embedding_bwd", k_embedding_bwd},
    {"gather", k_gather},
    {"scatter_add", k_scatter_add},
    {"index_select", k_index_select},
    {"index_add", k_index_add},
    {"reshape", k_reshape},
    {"unsqueeze", k_reshape},
    {"squeeze", k_reshape},
    {"permute", k_permute},
    {"transpose", k_transpose},
    {"expand", k_repeat},
    {"select", k_select},
    {"select_bwd", k_select_bwd},
    {"slice", k_slice},
    {"slice_bwd", k_slice_bwd},
    {"cat", k_cat},
    {"split", k_split},
    {"stack", k_stack},
    {"unbind", k_unbind},
};

static inline op_kernel *gradient_kernel_find(const char *name)
{
    for (size_t i = 0; i < sizeof gradient_kernels / sizeof *gradient_kernels; i++)
        if (strcmp(gradient_kernels[i].name, name) == 0) return gradient_kernels[i].kernel;
    return NULL;
}

/* ---- shards and parts ---- */

static inline double number_at(const void *memory, uint32_t dtype, int64_t at)
{
    if (dtype == WEFT_DTYPE_F64) return ((const double *)memory)[at];
    if (dtype == WEFT_DTYPE_I64) return (double)((const int64_t *)memory)[at];
    return ((const uint8_t *)memory)[at];
}

static inline void set_number(void *memory, uint32_t dtype, int64_t at, double value)
{
    if (dtype == WEFT_DTYPE_F64)
        ((double *)memory)[at] = value;
    else if (dtype == WEFT_DTYPE_I64)
        ((int64_t *)memory)[at] = (int64_t)value;
    else
        ((uint8_t *)memory)[at] = value != 0;
}

static inline int64_t stride_offset(const struct part *p, const int64_t *strides, int64_t i)
{
    int64_t c[WEFT_MAX_DIMS], at = 0;

    part_coord(p, i, c);
    for (int32_t d = 0; d < p->dims; d++)
        at += c[d] * strides[d];
    return at;
}

static inline void read_part(struct part *p, const weft_tensor_local *local, int32_t rank)
{
    int32_t coord[WEFT_MAX_AXES] = {0};

    if (local->spec != NULL)
        ck_assert_int_eq(weft_mesh_coord_of(local->spec->layout.mesh, rank, coord), WEFT_OK);
    part_begin(p, local->spec, coord);
    for (int64_t i = 0; local->memory != NULL && i < p->count; i++)
        p->data[i] = number_at(local->memory, local->spec->layout.dtype,
                               stride_offset(p, local->strides, i));
}

static inline weft_status gradient_kernel(void *user, const weft_op_run *run)
{
    weft_op_call call = {.struct_size = sizeof call,
                         .name = run->name,
                         .input_count = run->input_count,
                         .attr_size = sizeof(weft_op_attr),
                         .attrs = run->attrs,
                         .attr_count = run->attr_count};
    op_kernel *kernel = gradient_kernel_find(run->name);
    struct part in[NUMBER_TENSORS] = {{0}}, out[NUMBER_TENSORS] = {{0}};

    (void)user;
    if (kernel == NULL) return weft_fail(WEFT_ERR_UNSUPPORTED, "no kernel for %s", run->name);
    for (uint32_t i = 0; i < NUMBER_TENSORS; i++)
        in[i].absent = true;
    for (uint32_t i = 0; i < run->input_count; i++)
        read_part(&in[i], &run->inputs[i], run->rank);
    for (uint32_t i = 0; i < run->output_count; i++) {
        read_part(&out[i], &run->outputs[i], run->rank);
        memset(out[i].data, 0, (size_t)out[i].count * sizeof *out[i].data);
    }
    kernel(&call, in, out);
    for (uint32_t i = 0; i < run->output_count; i++)
        for (int64_t k = 0; run->outputs[i].memory != NULL && k < out[i].count; k++)
            set_number(run->outputs[i].memory, run->outputs[i].spec->layout.dtype,
                       stride_offset(&out[i], run->outputs[i].strides, k), out[i].data[k]);
    for (uint32_t i = 0; i < run->input_count; i++)
        part_end(&in[i]);
    for (uint32_t i = 0; i < run->output_count; i++)
        part_end(&out[i]);
    return WEFT_OK;
}

#endif
