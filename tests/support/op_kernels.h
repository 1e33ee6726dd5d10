/* op_kernels.h - plain kernels of operators, as a machine with one rank would run them.  They work
 * on parts: a kernel of a rule with own, here or mask finds its global indices in the part. */
#ifndef WEFT_TESTS_OP_KERNELS_H
#define WEFT_TESTS_OP_KERNELS_H

#include "support/op_numbers.h"

static inline const weft_op_attr *kernel_attr(const weft_op_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->attr_count; i++)
        if (strcmp(call->attrs[i].name, name) == 0) return &call->attrs[i];
    return NULL;
}

static inline int64_t kernel_int(const weft_op_call *call, const char *name, int64_t otherwise)
{
    const weft_op_attr *a = kernel_attr(call, name);

    return a == NULL ? otherwise : a->kind == WEFT_ATTR_LIST ? a->list[0] : a->integer;
}

static inline double kernel_real(const weft_op_call *call, const char *name, double otherwise)
{
    const weft_op_attr *a = kernel_attr(call, name);

    return a == NULL ? otherwise : a->kind == WEFT_ATTR_REAL ? a->real : (double)a->integer;
}

/* Position of global index VALUE in dimension DIM of the part; -1: the part lacks it. */
static inline int64_t find_index(const struct part *p, int32_t dim, int64_t value)
{
    for (int64_t i = 0; i < p->shape[dim]; i++)
        if (p->index[dim][i] == value) return i;
    return -1;
}

static inline int32_t kernel_dim(const weft_op_call *call, const struct part *p)
{
    int64_t dim = kernel_int(call, "dim", 0);

    return (int32_t)(dim < 0 ? dim + p->dims : dim);
}

/* Element of IN that belongs to coordinates C of OUT: aligned from the right, broadcast. */
static inline double broadcast_at(const struct part *in, const struct part *out, const int64_t *c)
{
    int64_t mine[WEFT_MAX_DIMS];

    for (int32_t d = 0; d < in->dims; d++) {
        mine[d] = in->size[d] == 1 ? 0 : c[d + out->dims - in->dims];
        if (mine[d] >= in->shape[d]) return NAN; /* an input of which only the shape is used */
    }
    return in->data[part_offset(in, mine)];
}

/* ---- pointwise ---- */

typedef double pointwise(const weft_op_call *call, double a, double b, double c);

static inline void kernel_pointwise(const weft_op_call *call, const struct part *in,
                                    struct part *out, pointwise *f)
{
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        double x[3] = {0, 0, 0};
        part_coord(out, i, c);
        for (uint32_t k = 0; k < call->input_count && k < 3; k++)
            if (!in[k].absent) x[k] = broadcast_at(&in[k], out, c);
        out->data[i] = f(call, x[0], x[1], x[2]);
    }
}

#define POINTWISE(name, expression)                                                                \
    static inline double f_##name(const weft_op_call *call, double a, double b, double c)          \
    {                                                                                              \
        (void)call, (void)a, (void)b, (void)c;                                                     \
        return expression;                                                                         \
    }                                                                                              \
    static inline void k_##name(const weft_op_call *call, const struct part *in, struct part *out) \
    {                                                                                              \
        kernel_pointwise(call, in, out, f_##name);                                                 \
    }

POINTWISE(exp, exp(a))
POINTWISE(relu, a > 0 ? a : 0)
POINTWISE(erfc, erfc(a))
POINTWISE(sqrt, sqrt(a))
POINTWISE(log, log(a))
POINTWISE(gelu, a * 0.5 * (1 + erf(a / sqrt(2))))
POINTWISE(neg, -a)
POINTWISE(copy1, a)
POINTWISE(scale, a *kernel_real(call, "s", 1))
POINTWISE(shift, a + kernel_real(call, "s", 1))
POINTWISE(rshift, kernel_real(call, "s", 1) - a)
POINTWISE(gts, a > 0.5)
POINTWISE(lts, a < 0.5)
POINTWISE(to_bool, a != 0)
POINTWISE(add, a + b)
POINTWISE(add_alpha, a + kernel_real(call, "alpha", 1) * b)
POINTWISE(sub_alpha, a - kernel_real(call, "alpha", 1) * b)
POINTWISE(rsub_alpha, b - kernel_real(call, "alpha", 1) * a)
POINTWISE(leaky, a > 0 ? a : a * kernel_real(call, "negative_slope", 0.01))
POINTWISE(elu, a > 0 ? a : kernel_real(call, "alpha", 1) * expm1(a))
POINTWISE(threshold, a > kernel_real(call, "threshold", 0) ? a : kernel_real(call, "value", 0))
POINTWISE(div_floor, floor(a / b))
POINTWISE(sub, a - b)
POINTWISE(rsub, b - a)
POINTWISE(mul, a *b)
POINTWISE(div, a / b)
POINTWISE(maximum, a > b ? a : b)
POINTWISE(minimum, a < b ? a : b)
POINTWISE(gt, a > b)
POINTWISE(lt, a < b)
POINTWISE(eq, a == b)
POINTWISE(logaddexp, log(exp(a) + exp(b)))
POINTWISE(atan2, atan2(a, b))
POINTWISE(clamp, fmin(fmax(a, b), c))
POINTWISE(where, a != 0 ? b : c)
POINTWISE(fill_masked, b != 0 ? kernel_real(call, "v", 0) : a)
POINTWISE(addcmul, a + b * c)
POINTWISE(addcdiv, a + b / c)
POINTWISE(lerp, a + c * (b - a))
POINTWISE(lerps, a + 0.3 * (b - a))
POINTWISE(tanh_bwd, a *(1 - b * b))
POINTWISE(second, b)
POINTWISE(zero, 0)
POINTWISE(three, 3)
POINTWISE(mse_bwd, 2 * a * (b - c))

/* ---- reductions ---- */

static inline bool is_reduced(const weft_op_call *call, int32_t dims, int32_t d)
{
    const weft_op_attr *a = kernel_attr(call, "dims");

    if (a == NULL) return true;
    for (uint32_t i = 0; i < (a->kind == WEFT_ATTR_LIST ? a->count : 1); i++) {
        int64_t v = a->kind == WEFT_ATTR_LIST ? a->list[i] : a->integer;
        if ((v < 0 ? v + dims : v) == d) return true;
    }
    return false;
}

/* The element of OUT that element I of X is reduced into. */
static inline int64_t reduced_to(const weft_op_call *call, const struct part *x, int64_t i,
                                 const struct part *out)
{
    int64_t c[WEFT_MAX_DIMS], to[WEFT_MAX_DIMS];
    bool keep = kernel_int(call, "keepdim", 0) != 0;
    int32_t n = 0;

    part_coord(x, i, c);
    for (int32_t d = 0; d < x->dims; d++)
        if (!is_reduced(call, x->dims, d))
            to[n++] = c[d];
        else if (keep)
            to[n++] = 0;
    return part_offset(out, to);
}

/* OUT = the reduction of f(x).  An average divides by the global count, and by the number of ranks
 * that split it. */
static inline void kernel_reduce(const weft_op_call *call, const struct part *x, struct part *out,
                                 uint32_t kind, pointwise *f)
{
    double start = kind == WEFT_REDUCE_MAX    ? -INFINITY
                   : kind == WEFT_REDUCE_MIN  ? INFINITY
                   : kind == WEFT_REDUCE_PROD ? 1
                                              : 0;
    double count = 1;

    for (int64_t i = 0; i < out->count; i++)
        out->data[i] = start;
    for (int64_t i = 0; i < x->count; i++) {
        double *to = &out->data[reduced_to(call, x, i, out)];
        *to = reduce_two(*to, f(call, x->data[i], 0, 0), kind);
    }
    for (int32_t d = 0; d < x->dims; d++)
        if (is_reduced(call, x->dims, d)) count *= (double)x->size[d] / (double)x->parts[d];
    for (int64_t i = 0; i < out->count && kind == WEFT_REDUCE_AVG; i++)
        out->data[i] /= count;
}

#define REDUCTION(name, kind, f)                                                                   \
    static inline void k_##name(const weft_op_call *call, const struct part *in, struct part *out) \
    {                                                                                              \
        kernel_reduce(call, in, out, kind, f);                                                     \
    }

POINTWISE(abs, fabs(a))
POINTWISE(truth, a != 0)
REDUCTION(sum, WEFT_REDUCE_SUM, f_copy1)
REDUCTION(mean, WEFT_REDUCE_AVG, f_copy1)
REDUCTION(amax, WEFT_REDUCE_MAX, f_copy1)
REDUCTION(amin, WEFT_REDUCE_MIN, f_copy1)
REDUCTION(prod, WEFT_REDUCE_PROD, f_copy1)
REDUCTION(all, WEFT_REDUCE_MIN, f_truth)
REDUCTION(any, WEFT_REDUCE_MAX, f_truth)
REDUCTION(count, WEFT_REDUCE_SUM, f_truth)
REDUCTION(norm1, WEFT_REDUCE_SUM, f_abs)
REDUCTION(norm_inf, WEFT_REDUCE_MAX, f_abs)

/* ---- along one dimension ---- */

/* Element I of the line through C along DIM. */
static inline double *line_at(struct part *p, const int64_t *c, int32_t dim, int64_t i)
{
    int64_t at[WEFT_MAX_DIMS];

    memcpy(at, c, sizeof at);
    at[dim] = i;
    return &p->data[part_offset(p, at)];
}

static inline void k_softmax(const weft_op_call *call, const struct part *in, struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS] = {0};
        double sum = 0;
        part_coord(out, i, c);
        for (int64_t j = 0; j < in->shape[dim]; j++)
            sum += exp(*line_at((struct part *)in, c, dim, j));
        out->data[i] = exp(in->data[i]) / sum;
    }
}

static inline void k_softmax_bwd(const weft_op_call *call, const struct part *in, struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS] = {0};
        double sum = 0;
        part_coord(out, i, c);
        for (int64_t j = 0; j < in->shape[dim]; j++)
            sum += *line_at((struct part *)&in[0], c, dim, j) *
                   *line_at((struct part *)&in[1], c, dim, j);
        out->data[i] = in[1].data[i] * (in[0].data[i] - sum);
    }
}

static inline void k_cumsum(const weft_op_call *call, const struct part *in, struct part *out)
{
    int32_t dim = kernel_dim(call, in);

    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS] = {0};
        part_coord(out, i, c);
        for (int64_t j = 0; j <= c[dim]; j++)
            out->data[i] += *line_at((struct part *)in, c, dim, j);
    }
}

static inline void k_flip(const weft_op_call *call, const struct part *in, struct part *out)
{
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        for (int32_t d = 0; d < in->dims; d++)
            if (is_reduced(call, in->dims, d)) c[d] = in->shape[d] - 1 - c[d];
        out->data[i] = in->data[part_offset(in, c)];
    }
}

/* ---- contractions ---- */

/* EQ: "mk,kn->mn" over the first operands. */
static inline void kernel_einsum(const char *eq, const struct part *in, struct part *out)
{
    char terms[4][16], *result, text[64];
    int64_t size[128] = {0}, at[128] = {0};
    int count = 0;

    snprintf(text, sizeof text, "%s", eq);
    result = strstr(text, "->");
    *result = '\0';
    result += 2;
    for (const char *t = text; t != NULL && count < 4;
         t = strchr(t, ',') != NULL ? strchr(t, ',') + 1 : NULL)
        snprintf(terms[count++], sizeof terms[0], "%.*s", (int)strcspn(t, ","), t);
    for (int pass = 0; pass < 2; pass++) /* a size of 1 broadcasts */
        for (int k = 0; k < count; k++)
            for (int d = 0; terms[k][d] != '\0'; d++)
                if (pass == 0 || in[k].size[d] != 1) size[(int)terms[k][d]] = in[k].shape[d];
    for (int l = 'a'; l <= 'z'; l++)
        for (int k = 0; k < count; k++)
            if (strchr(terms[k], l) != NULL && size[l] == 0) return;
    for (int l = 'a';;) {
        int64_t c[WEFT_MAX_DIMS];
        double product = 1;
        for (int k = 0; k < count; k++) {
            for (int d = 0; terms[k][d] != '\0'; d++)
                c[d] = in[k].size[d] == 1 ? 0 : at[(int)terms[k][d]];
            product *= in[k].data[part_offset(&in[k], c)];
        }
        for (int d = 0; result[d] != '\0'; d++)
            c[d] = at[(int)result[d]];
        out->data[part_offset(out, c)] += product;
        for (l = 'a'; l <= 'z' && (size[l] == 0 || ++at[l] == size[l]); l++)
            at[l] = 0;
        if (l > 'z') return;
    }
}

#define EINSUM(name, eq)                                                                           \
    static inline void k_##name(const weft_op_call *call, const struct part *in, struct part *out) \
    {                                                                                              \
        (void)call;                                                                                \
        kernel_einsum(eq, in, out);                                                                \
    }

EINSUM(mm, "mk,kn->mn")
EINSUM(bmm, "bmk,bkn->bmn")
EINSUM(dot, "k,k->")
EINSUM(mv, "mk,k->m")
EINSUM(outer, "m,n->mn")
EINSUM(einsum3, "abc,cd,bd->a")

static inline void add_broadcast(const struct part *b, struct part *out)
{
    for (int64_t i = 0; i < out->count && !b->absent; i++) {
        int64_t c[WEFT_MAX_DIMS];
        part_coord(out, i, c);
        out->data[i] += broadcast_at(b, out, c);
    }
}

static inline void k_linear(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    kernel_einsum("bmk,nk->bmn", in, out);
    add_broadcast(&in[2], out);
}

static inline void k_addmm(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    kernel_einsum("mk,kn->mn", in + 1, out);
    add_broadcast(&in[0], out);
}

static inline void k_kron(const weft_op_call *call, const struct part *in, struct part *out)
{
    (void)call;
    for (int64_t i = 0; i < out->count; i++) {
        int64_t c[WEFT_MAX_DIMS], a[2], b[2];
        part_coord(out, i, c);
        for (int d = 0; d < 2; d++) {
            a[d] = c[d] / in[1].shape[d];
            b[d] = c[d] % in[1].shape[d];
        }
        out->data[i] = in[0].data[part_offset(&in[0], a)] * in[1].data[part_offset(&in[1], b)];
    }
}

#endif
