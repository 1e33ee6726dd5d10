/* formulas.c - the gradients of weft's operators.
 *
 * A line has names, then for each input with a gradient an expression.  Tensors have the names of
 * the rule (parallel/ops/rule/builtin.c), g is the gradient of the first output.  `x*` is a list,
 * and `x w = f(...)` takes several results.  A gradient is summed over dimensions that broadcast.
 *
 *     s=2, s=alpha, dims=[0,1]  an attribute: a number, that of the forward call if it has one, a
 *                               list
 *     s=e-1                     the forward attribute e, less 1
 *     *                         all attributes of the forward call that the operator knows
 *     shape(x), kept(x)         the shape of x; the same with size 1 for dimensions `dims`
 *     size(x), sizes(x)         the size of dimension `dim` of x, and of each tensor of a list
 *     rows(x), number(x)        the size of dimension 0; how many tensors a list has
 *     dtype(x)                  the name of its dtype
 *     count                     elements of the first input for each of the first output
 *     inverse(order)            the inverse of a permutation
 *     w?                        w, or nothing if the rule has no w
 *     scaled(g, alpha)          mul_scalar, if the forward call has the attribute
 *     contract(g, x)            g[.. n] x[.. k] -> [n k] */
#include "backward.h"

#include <string.h>

/* clang-format off */
static const char *const formulas[] = {
    /* pointwise */
    "clone alias positive contiguous: a = g",
    "neg: a = neg(g)",
    "exp: a = mul(g, b)",
    "exp2: a = mul_scalar(mul(g, b), s=0.6931471805599453)",
    "expm1: a = mul(g, add_scalar(b, s=1))",
    "log: a = div(g, a)",
    "log2: a = div(g, mul_scalar(a, s=0.6931471805599453))",
    "log10: a = div(g, mul_scalar(a, s=2.302585092994046))",
    "log1p: a = div(g, add_scalar(a, s=1))",
    "sqrt: a = div(g, mul_scalar(b, s=2))",
    "rsqrt: a = mul_scalar(mul(g, pow_scalar(b, exponent=3)), s=-0.5)",
    "reciprocal: a = neg(mul(g, square(b)))",
    "square: a = mul_scalar(mul(g, a), s=2)",
    "pow_scalar: a = mul_scalar(mul(g, pow_scalar(a, exponent=exponent-1)), s=exponent)",
    "abs: a = mul(g, sign(a))",
    "sin: a = mul(g, cos(a))",
    "cos: a = neg(mul(g, sin(a)))",
    "sinh: a = mul(g, cosh(a))",
    "cosh: a = mul(g, sinh(a))",
    "tanh: a = tanh_bwd(g, b)",
    "sigmoid: a = sigmoid_bwd(g, b)",
    "relu: a = threshold_bwd(g, b, threshold=0)",
    "threshold: a = threshold_bwd(g, a, threshold=threshold)",
    "gelu: a = gelu_bwd(g, a, *)",
    "silu: a = silu_bwd(g, a)",
    "elu: a = elu_bwd(g, a, *, is_result=0)",
    "mul_scalar scale: a = mul_scalar(g, s=s)",
    "div_scalar: a = div_scalar(g, s=s)",
    "add_scalar sub_scalar shift: a = g",
    "rsub_scalar: a = scaled(neg(g), alpha)",
    "cast: a = g",
    "dropout: x = dropout_bwd(g, m, *)",
    "add: a = g; b = scaled(g, alpha)",
    "sub: a = g; b = scaled(neg(g), alpha)",
    "rsub: a = scaled(neg(g), alpha); b = g",
    "mul: a = mul(g, b); b = mul(g, a)",
    "div true_divide: a = div(g, b); b = neg(mul(g, div(c, b)))",
    "maximum fmax: a = where(ge(a, b), g, zeros_like(g)); b = where(lt(a, b), g, zeros_like(g))",
    "minimum fmin: a = where(le(a, b), g, zeros_like(g)); b = where(gt(a, b), g, zeros_like(g))",
    "where: a = where(c, g, zeros_like(g)); b = where(c, zeros_like(g), g)",
    "masked_fill: a = masked_fill(g, m, v=0)",
    "addcmul: t = g; a = scaled(mul(g, b), value); b = scaled(mul(g, a), value)",
    ("addcdiv: t = g; a = scaled(div(g, b), value);"
    " b = scaled(neg(mul(g, div(a, square(b)))), value)"),
    "lerp: a = sub(g, mul(g, w)); b = mul(g, w); w = mul(g, sub(b, a))",
    "lerp_scalar: a = sub(g, mul_scalar(g, s=weight)); b = mul_scalar(g, s=weight)",
    /* reductions and scans */
    "sum: x = copy(x, reshape(g, shape=kept(x)))",
    "mean: x = copy(x, div_scalar(reshape(g, shape=kept(x)), s=count))",
    /* elements that are equal to the result share its gradient */
    ("amax amin max min: x = mul(cast(eq(x, reshape(y, shape=kept(x))), to=dtype(x)),"
    " div(reshape(g, shape=kept(x)),"
    " sum(cast(eq(x, reshape(y, shape=kept(x))), to=dtype(x)), dims=dims, keepdim=1)))"),
    "logsumexp: x = mul(reshape(g, shape=kept(x)), exp(sub(x, reshape(y, shape=kept(x)))))",
    "softmax: x = softmax_bwd(g, y, dim=dim)",
    "log_softmax: x = log_softmax_bwd(g, y, dim=dim)",
    "cumsum: x = flip(cumsum(flip(g, dims=dim), dim=dim), dims=dim)",
    "flip: x = flip(g, dims=dims)",
    "tril: x = tril(g, *)",
    "triu: x = triu(g, *)",
    /* normalisation, losses, attention */
    "layer_norm: x w b = layer_norm_bwd(g, x, m, r, w, b, *)",
    "rms_norm: x w = rms_norm_bwd(g, x, r, w, *)",
    "group_norm: x w b = group_norm_bwd(g, x, m, r, w, *)",
    "mse_loss: a = mse_loss_bwd(g, a, b, *); b = neg(mse_loss_bwd(g, a, b, *))",
    "nll_loss: x = nll_loss_bwd(g, x, t, w?, z, *)",
    "cross_entropy: x = cross_entropy_bwd(g, x, t, *)",
    "sdpa: q k v = sdpa_bwd(g, q, k, v, o, l, m, *)",
    "sdpa_gqa: q k v = sdpa_gqa_bwd(g, q, k, v, o, l, *)",
    "rope: x = rope(g, c, neg(n), *)",
    "rope_half: x = rope_half(g, c, neg(n), *)",
    /* contractions */
    "mm: a = mm(g, transpose(b, dims=[0,1])); b = mm(transpose(a, dims=[0,1]), g)",
    "bmm: a = bmm(g, transpose(b, dims=[-2,-1])); b = bmm(transpose(a, dims=[-2,-1]), g)",
    "matmul: a = matmul(g, transpose(b, dims=[-2,-1])); b = matmul(transpose(a, dims=[-2,-1]), g)",
    "dot: a = mul(g, b); b = mul(g, a)",
    "mv: a = outer(g, b); b = mv(transpose(a, dims=[0,1]), g)",
    "outer ger: a = mv(g, b); b = mv(transpose(g, dims=[0,1]), a)",
    "linear: x = linear(g, transpose(w, dims=[0,1])); w = contract(g, x); b = g",
    ("addmm: c = scaled(g, beta); a = scaled(mm(g, transpose(b, dims=[0,1])), alpha);"
    " b = scaled(mm(transpose(a, dims=[0,1]), g), alpha)"),
    ("baddbmm: c = scaled(g, beta); a = scaled(bmm(g, transpose(b, dims=[-2,-1])), alpha);"
    " b = scaled(bmm(transpose(a, dims=[-2,-1]), g), alpha)"),
    "grouped_mm_3d: x = bmm(g, transpose(w, dims=[-2,-1])); w = bmm(transpose(x, dims=[-2,-1]), g)",
    /* windows */
    "conv: x f b = conv_bwd(g, x, f, *)",
    "max_pool: x = max_pool_bwd(g, x, i, *)",
    "avg_pool: x = avg_pool_bwd(g, x, *)",
    "adaptive_avg_pool: x = adaptive_avg_pool_bwd(g, x)",
    "adaptive_max_pool: x = max_pool_bwd(g, x, i)",
    "interpolate: x = interpolate_bwd(g, x, *)",
    /* lookup */
    "embedding: w = embedding_bwd(g, i, w, v=rows(w), *)",
    "gather: x = scatter_add(zeros_like(x), i, g, dim=dim)",
    "index_select: x = index_add(zeros_like(x), i, g, dim=dim)",
    "scatter_add: x = g; s = gather(g, i, dim=dim)",
    "index_add: x = g; s = scaled(index_select(g, i, dim=dim), alpha)",
    /* shapes */
    ("reshape view unsafe_view flatten unflatten view_copy squeeze unsqueeze:"
    " x = reshape(g, shape=shape(x))"),
    "permute: x = permute(g, order=inverse(order))",
    "transpose: x = transpose(g, dims=dims)",
    "t: x = transpose(g, dims=[0,1])",
    "expand: x = g",
    "select: x = select_bwd(g, x, n=size(x), *)",
    "slice narrow: x = slice_bwd(g, x, n=size(x), *)",
    "cat concat: x* = split(g, dim=dim, sizes=sizes(x))",
    "stack: x* = unbind(g, dim=dim, count=number(x))",
    "split split_with_sizes chunk: x = cat(g*, dim=dim)",
    "unbind: x = stack(g*, dim=dim)",
};
/* clang-format on */

/* True if NAME is one of the words of LINE before its colon. */
static bool is_of(const char *line, const char *name, size_t length)
{
    while (*line != ':') {
        size_t word = strcspn(line, " :");

        if (word == length && memcmp(line, name, length) == 0) return true;
        line += word;
        line += strspn(line, " ");
    }
    return false;
}

const char *wf_formula_find(const weft_op_call *call)
{
    const char *name = call->name;
    size_t length = strlen(name);
    int64_t exponent;

    if (strcmp(name, "pow_scalar") == 0 && wf_attr_int(call, "exponent", &exponent) &&
        exponent == 0)
        return "a = zeros_like(g)"; /* a^-1 is infinite where a is 0 */
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++)
        if (is_of(formulas[i], name, length)) return strchr(formulas[i], ':') + 1;
    return NULL;
}
