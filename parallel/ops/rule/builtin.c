/* builtin.c - weft's own rules.  docs/operators.md explains how to read them. */
#include "registry.h"

/* Lines longer than the page are joined: NOLINTBEGIN(bugprone-suspicious-missing-comma) */
/* clang-format off */
const char *const wf_op_builtin[] = {
    /* ---- pointwise, one input ---- */
    "exp exp2 tanh sigmoid hardsigmoid erf selu expm1 sinh asinh atan deg2rad rad2deg log_sigmoid:"
    " a[..] -> b[..]; mono a; type float b",
    "relu relu6 floor ceil trunc sign sgn: a[..] -> b[..]; mono a",
    "round(decimals): a[..] -> b[..]; mono a",
    "clamp clamp_min clamp_max clip hardtanh(min,max): a[..] -> b[..]; mono a; type join b",
    "softshrink hardshrink(lambd): a[..] -> b[..]; mono a; type join b",
    "celu(alpha): a[..] -> b[..]; mono a; type float b",
    "elu(alpha<0,scale,input_scale): a[..] -> b[..]; type float b",
    "elu(scale<0,alpha,input_scale): a[..] -> b[..]; type float b",
    "elu(input_scale<0,alpha,scale): a[..] -> b[..]; type float b",
    "elu(alpha,scale,input_scale): a[..] -> b[..]; mono a; type float b",
    "leaky_relu(negative_slope<0): a[..] -> b[..]; type join b",
    "leaky_relu(negative_slope): a[..] -> b[..]; mono a; type join b",
    /* below its threshold, softplus falls by a jump that is too large to round away */
    "softplus(threshold<20,beta): a[..] -> b[..]; type float b",
    "softplus(threshold,beta): a[..] -> b[..]; mono a; type float b",
    /* it is not monotone if value is above threshold */
    "threshold(threshold,value): a[..] -> b[..]; type join b",
    "erfc special_erfcx: a[..] -> b[..]; anti a; type float b",
    /* no partials: a NaN outside of the domain must not meet max or min */
    "sqrt log log2 log10 log1p rsqrt acos acosh asin atanh erfinv logit special_ndtri"
    " special_log_ndtr: a[..] -> b[..]; type float b",
    "gelu(approximate): a[..] -> b[..]; type float b",
    "silu mish hardswish sin cos tan cosh sinc reciprocal digamma lgamma i0 special_airy_ai"
    " special_bessel special_entr special_polynomial tanhshrink: a[..] -> b[..]; type float b",
    "polygamma mvlgamma(n,p): a[..] -> b[..]; type float b",
    "pow_scalar(exponent): a[..] -> b[..]; type join b",
    "nan_to_num(nan,posinf,neginf): a[..] -> b[..]",
    "abs angle: a[..] -> b[..]; type real b",
    "square frac bitwise_not conj_physical glu_gate: a[..] -> b[..]",
    "isnan isinf isfinite isneginf isposinf logical_not signbit: a[..] -> b[..];"
    " type bool b",
    "eq_scalar ne_scalar(s): a[..] -> b[..]; type bool b",
    "neg: a[..] -> b[..]; lin a; anti a",
    "clone detach alias positive contiguous conj lift_fresh: a[..] -> b[..]; pass a",
    "mul_scalar scale(s>0): a[..] -> b[..]; lin a; mono a; type join b",
    "mul_scalar scale(s<0): a[..] -> b[..]; lin a; anti a; type join b",
    "mul_scalar scale(s): a[..] -> b[..]; lin a; type join b",
    "div_scalar(rounding_mode!=none,s): a[..] -> b[..]; type join b",
    "div_scalar(s>0,rounding_mode): a[..] -> b[..]; lin a; mono a; type float b",
    "div_scalar(s<0,rounding_mode): a[..] -> b[..]; lin a; anti a; type float b",
    "div_scalar(s,rounding_mode): a[..] -> b[..]; lin a; type float b",
    "add_scalar sub_scalar shift(s,alpha): a[..] -> b[..]; aff a; mono a; type join b",
    "rsub_scalar(alpha<0,s): a[..] -> b[..]; aff a; mono a; type join b",
    "rsub_scalar(s,alpha): a[..] -> b[..]; aff a; anti a; type join b",
    "gt_scalar ge_scalar(s): a[..] -> b[..]; mono a; type bool b",
    "lt_scalar le_scalar(s): a[..] -> b[..]; anti a; type bool b",
    /* rows.c drops the partials that do not hold between two dtypes */
    "cast(to=bool): a[..] -> b[..]; type to b",
    "cast(to): a[..] -> b[..]; lin a; mono a; type to b",
    "view_dtype(to): x[X..] -> y[Y..]; make view_dtype",
    /* ---- pointwise, several inputs ---- */
    "add(alpha<0): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono a; anti b; type join c",
    "add(alpha): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono a | b; type join c",
    "sub(alpha<0): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono a | b; type join c",
    "sub(alpha): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono a; anti b; type join c",
    "rsub(alpha<0): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono a | b; type join c",
    "rsub(alpha): a[..] b[..] -> c[..]; lin a+b; aff a | b; mono b; anti a; type join c",
    "mul: a[..] b[..] -> c[..]; lin a | b; hom prod a+b; type join c",
    "div true_divide(rounding_mode!=none): a[..] b[..] -> c[..]; type join c",
    "div true_divide(rounding_mode): a[..] b[..] -> c[..]; lin a; hom prod a+b; type float c",
    "maximum fmax clamp_min_tensor: a[..] b[..] -> c[..]; hom max a+b; mono a | b;"
    " type join c",
    "minimum fmin clamp_max_tensor: a[..] b[..] -> c[..]; hom min a+b; mono a | b;"
    " type join c",
    "gt ge: a[..] b[..] -> c[..]; mono a; anti b; type bool c",
    "lt le: a[..] b[..] -> c[..]; anti a; mono b; type bool c",
    "eq ne logical_and logical_or logical_xor: a[..] b[..] -> c[..]; type bool c",
    "logaddexp logaddexp2: a[..] b[..] -> c[..]; mono a | b; type float c",
    "xlogy special_xlog1py: a[..] b[..] -> c[..]; lin a; type float c",
    "pow atan2 hypot fmod remainder floor_divide bitwise_and bitwise_or bitwise_xor"
    " bitwise_left_shift bitwise_right_shift copysign nextafter ldexp gcd lcm heaviside igamma"
    " igammac float_power special_zeta special_polynomial2: a[..] b[..] -> c[..]; type join c",
    "clamp_tensor: x[..] lo?[..] hi?[..] -> y[..]; mono x | lo | hi; type join y",
    "where: c[..] a[..] b[..] -> d[..]; pass a+b; aff a | b; mono a | b; type join d",
    "masked_fill(v=0): a[..] m[..] -> b[..]; pass a",
    "masked_fill(v): a[..] m[..] -> b[..]; aff a; mono a",
    "masked_fill_tensor: a[..] m[..] v[] -> b[..]; pass a+v; aff a | v; mono a | v",
    "addcmul(value): t[..] a[..] b[..] -> c[..]; lin t+a | t+b; aff t | a | b; mono t; type join c",
    "addcdiv(value): t[..] a[..] b[..] -> c[..]; lin t+a; aff t | a; mono t; type float c",
    "lerp: a[..] b[..] w[..] -> c[..]; lin a+b; aff a | b | w; type float c",
    "lerp_scalar(weight): a[..] b[..] -> c[..]; lin a+b; aff a | b; type float c",
    "gelu_bwd silu_bwd threshold_bwd sigmoid_bwd tanh_bwd logit_bwd elu_bwd"
    "(approximate,threshold,alpha,scale,input_scale,is_result):"
    " g[..] y[..] -> d[..]; lin g; type float d",
    "dropout_bwd(scale,p,train): g[..] m[..] -> d[..]; lin g; type float d",
    "copy: a[..] x[..] -> y[..]; shape a; pass x; type a y",
    "rrelu: x[..] n[..] -> y[..]; rand; same x n",
    /* ---- made from shapes ---- */
    "zero: a[..] -> y[..]; pass a",
    "fill(v): a[..] -> y[..]; aff a; mono a",
    "zeros_like ones_like full_like(v): a[..] -> y[..]; shape a",
    "empty_like: a[..] -> y[..]; shape a; pass a",
    "new_zeros new_ones new_full(shape,v): a[A..] -> y[Y..]; shape a; own Y; size Y shape",
    "new_empty new_empty_strided(shape): a[A..] -> y[Y..]; shape a; own Y; size Y shape; pass a",
    "rand_like randn_like randint_like(low,high): a[..] -> y[..]; shape a; rand",
    "normal uniform exponential geometric log_normal(mean,std,low,high,rate,p): a[..]"
    " -> y[..]; shape a; rand",
    "bernoulli: p[..] -> y[..]; rand",
    "dropout(p,train): x[..] -> y[..] m[..]; lin x; from m; rand; type float y; type bool m",
    "zeros ones full empty eye arange(shape,dtype,v,start,end,step): -> y[Y..]; own Y;"
    " size Y shape; type dtype y",
    "rand randn(shape,dtype): -> y[Y..]; own Y; size Y shape; type dtype y; rand",
    "view_as_complex: x[.. z] -> y[..]; whole z; size z 2; lin x; type complex y",
    "view_as_real: x[..] -> y[.. z]; whole z; size z 2; lin x; type real y",
    "complex: a[..] b[..] -> c[..]; lin a+b; type complex c; same a b",
    /* ---- reductions ---- */
    "sum(dims): x[.. K@dims ..] -> y[..]; sum K; lin x; type wide y",
    "nansum powsum(dims,p): x[.. K@dims ..] -> y[..]; sum K; type wide y",
    "count_nonzero(dims): x[.. K@dims ..] -> y[..]; sum K; type i64 y",
    "mean(dims): x[.. K@dims ..] -> y[..]; avg K; lin x; type float y",
    "amax max(dims): x[.. K@dims ..] -> y[..]; max K; hom max x",
    "amin min(dims): x[.. K@dims ..] -> y[..]; min K; hom min x",
    "prod(dims): x[.. K@dims ..] -> y[..]; prod K; hom prod x; type wide y",
    "all(dims): x[.. K@dims ..] -> y[..]; all K; type bool y",
    "any(dims): x[.. K@dims ..] -> y[..]; any K; type bool y",
    /* other norms are a power sum, its reduction and a root */
    "norm(p=inf,dims): x[.. K@dims ..] -> y[..]; max K; type float y",
    "norm(p=-inf,dims): x[.. K@dims ..] -> y[..]; min K; type float y",
    "norm(p=0,dims): x[.. K@dims ..] -> y[..]; sum K; type float y",
    "norm(p=1,dims): x[.. K@dims ..] -> y[..]; sum K; type float y",
    "norm(p,dims): x[.. K@dims ..] -> y[..]; whole K; type float y",
    "var std(dims,correction,unbiased): x[.. K@dims ..] -> y[..]; whole K; use moments;"
    " type float y",
    "var_mean std_mean(dims,correction,unbiased): x[.. K@dims ..] -> v[..] m[..]; whole K;"
    " use moments; type float v; type float m",
    "logsumexp(dims): x[.. K@dims ..] -> y[..]; whole K; use lse; type float y",
    "argmax argmin(dims): x[.. K@dims ..] -> i[..]; whole K; use argbest; type i64 i",
    "max_dim min_dim(dims): x[.. K@dims ..] -> v[..] i[..]; whole K; use argbest; type i64 i",
    "median_dim nanmedian_dim mode(dims): x[.. K@dims ..] -> v[..] i[..]; whole K; type i64 i;"
    " check single",
    "kthvalue(dims,k): x[.. K@dims ..] -> v[..] i[..]; whole K; type i64 i; check rank",
    "median nanmedian(dims): x[.. K@dims ..] -> y[..]; whole K",
    "equal: a[..] b[..] -> y[]; all ..; type bool y; same a b",
    "item: x[..] -> y[..]; whole ..",
    /* ---- scans and orders ---- */
    "cumsum(dim): x[.. k@dim ..] -> y[.. k ..]; whole k; lin x; use scan; type wide y",
    "cumprod(dim): x[.. k@dim ..] -> y[.. k ..]; whole k; type wide y",
    "logcumsumexp softmax log_softmax safe_softmax(dim): x[.. k@dim ..] -> y[.. k ..]; whole k;"
    " type float y",
    "softmax_bwd log_softmax_bwd(dim): g[.. k@dim ..] y[.. k ..] -> d[.. k ..]; whole k; lin g;"
    " type float d",
    "cummax cummin sort(dim,descending,stable): x[.. k@dim ..] -> v[.. k ..] i[.. k ..]; whole k;"
    " type i64 i",
    "argsort(dim,descending,stable): x[.. k@dim ..] -> i[.. k ..]; whole k; type i64 i",
    "topk(dim,k,largest,sorted): x[X..] -> v[V..] i[I..]; make topk",
    "flip(dims): x[.. K@dims ..] -> y[.. K ..]; whole K; pass x; use permute",
    "roll(dims,shifts): x[.. K@dims ..] -> y[.. K ..]; whole K; pass x; use permute; check shifts",
    "fft(dims,norm): x[.. K@dims ..] -> y[.. K ..]; whole K; lin x; type complex y",
    "rfft(dims,norm): x[.. K@dims ..] -> y[.. J@dims ..]; whole K J; lin x; type complex y",
    "irfft(dims,norm): x[.. K@dims ..] -> y[.. J@dims ..]; whole K J; lin x; type real y",
    "histc(bins,ranged=1,min,max): x[..] -> h[b]; sum ..; whole b; size b bins",
    "histc(bins): x[..] -> h[b]; whole .. b; size b bins",
    "bincount(bins): x[..] -> h[b]; sum ..; whole b; size b bins; type i64 h",
    "bucketize searchsorted(right,side): x[..] b[k] -> i[..]; sum k; mono x; type i64 i; same x b",
    /* ---- normalisation ---- */
    "layer_norm(dims): x[.. N@dims] w?[N] b?[N] -> y[.. N] m[.. 1@dims] r[.. 1@dims];"
    " whole N; add b; lin w+b; aff w | b; from m x; from r x; same w b",
    "layer_norm_bwd(dims): g[.. N@dims] x[.. N] m[.. 1@dims] r[.. 1@dims] w?[N] b?[N]"
    " -> dx[.. N] dw[N] db[N]; whole N; sum ..; lin g | w; shape b; from dx g x m r w;"
    " from dw g x m r; from db g; same g x; same w b",
    "rms_norm(dims): x[.. N@dims] w?[N] -> y[.. N] r[.. 1@dims]; whole N; lin w; from r x",
    "rms_norm_bwd(dims): g[.. N@dims] x[.. N] r[.. 1@dims] w?[N] -> dx[.. N] dw[N];"
    " whole N; sum ..; lin g | w; from dx g x r w; from dw g x r; same g x",
    "group_norm(g): x[n (g c) S..] w?[(g c)] b?[(g c)] -> y[n (g c) S..] m[n g] r[n g];"
    " whole c S; add b; lin w+b; aff w | b; from m x; from r x; same w b",
    "group_norm_bwd(g): dy[n (g c) S..] x[n (g c) S..] m[n g] r[n g] w?[(g c)]"
    " -> dx[n (g c) S..] dw[(g c)] db[(g c)]; whole c S; sum n; lin dy | w;"
    " from dx dy x m r w; from dw dy x m r; from db dy; same dy x",
    "batch_norm(training,momentum): x[n c S..] w?[c] b?[c] u?[c] t?[c] -> y[n c S..] m[c] v[c]; whole n S; add b; lin w+b;"
    " from m x; from v x; use moments; same w b; same u t",
    "batch_norm_bwd(training): g[n c S..] x[n c S..] w?[c] u?[c] t?[c] m?[c] v?[c]"
    " -> dx[n c S..] dw[c] db[c]; whole n S; lin g; same g x",
    /* ---- losses ---- */
    "mse_loss bce bce_with_logits l1_loss smooth_l1_loss huber_loss(reduction=none,beta,delta):"
    " a[..] b[..] -> l[..]; same a b",
    "mse_loss bce bce_with_logits l1_loss smooth_l1_loss huber_loss(reduction=sum):"
    " a[..] b[..] -> l[]; sum ..; same a b",
    "mse_loss bce bce_with_logits l1_loss smooth_l1_loss huber_loss(reduction=mean):"
    " a[..] b[..] -> l[]; avg ..; same a b",
    "mse_loss_bwd(reduction=none): g[..] a[..] b[..] -> d[..]; lin g | a+b; same g a b",
    "mse_loss_bwd(reduction=sum): g[..] a[..] b[..] -> d[..]; lin g | a+b; same g a b",
    /* each part would divide by its own count */
    "mse_loss_bwd(reduction): g[..] a[..] b[..] -> d[..]; whole ..; lin g | a+b; same g a b",
    "nll_loss(reduction=none,ignore_index): x[n v S..] t[n S..] w?[v] -> l[n S..] z[]; mask v;"
    " lin x | w; from z; same x w",
    "nll_loss(reduction=sum): x[n v S..] t[n S..] w?[v] -> l[] z[]; sum n S; mask v; lin x | w;"
    " from z t w; same x w",
    "nll_loss(reduction=mean,weighted=1): x[n v S..] t[n S..] w[v] -> l[] z[]; whole n S v; lin x;"
    " from z t w; same x w",
    "nll_loss(reduction=mean): x[n v S..] t[n S..] -> l[] z[]; whole n S; mask v; lin x; from z t",
    "nll_loss_bwd(reduction=none,ignore_index): g[n S..] x[n v S..] t[n S..] w?[v] z[] -> d[n v S..]; own v;"
    " lin g; shape x z; same g x w",
    "nll_loss_bwd(reduction=sum): g[] x[n v S..] t[n S..] w?[v] z[] -> d[n v S..]; own v;"
    " lin g; shape x z; same g x w",
    "nll_loss_bwd: g[] x[n v S..] t[n S..] w?[v] z[] -> d[n v S..]; own v; lin g; shape x;"
    " same g x w",
    "cross_entropy(reduction=none,ignore_index): x[n v] t[n] -> l[n]; whole v; use lossparallel",
    "cross_entropy(reduction=sum): x[n v] t[n] -> l[]; sum n; whole v; use lossparallel",
    /* each part would divide by its own count */
    "cross_entropy(reduction=mean): x[n v] t[n] -> l[]; whole n v; use lossparallel",
    /* e, the logarithm of the sum of exponentials, and z, the targets that count, save work */
    "cross_entropy_bwd(reduction=none,ignore_index): g[n] x[n v] t[n] e?[n] z?[] -> d[n v]; whole v;"
    " lin g; same g x",
    "cross_entropy_bwd(reduction=sum): g[] x[n v] t[n] e?[n] z?[] -> d[n v]; whole v; lin g;"
    " same g x",
    "cross_entropy_bwd(reduction=mean): g[] x[n v] t[n] e?[n] z?[] -> d[n v]; whole n v; lin g;"
    " same g x",
    /* ---- contractions ---- */
    "einsum(eq): x*[X..] -> y[Y..]; make einsum; same x",
    "mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b; same a b",
    "bmm matmul: a[.. m k] b[.. k n] -> c[.. m n]; sum k; lin a | b; same a b",
    "dot: a[k] b[k] -> c[]; sum k; lin a | b; same a b",
    "mv: a[m k] b[k] -> c[m]; sum k; lin a | b; same a b",
    "outer ger: a[m] b[n] -> c[m n]; lin a | b; same a b",
    "linear: x[.. k] w[n k] b?[n] -> y[.. n]; sum k; add b; lin x+b | w+b; aff x | w | b;"
    " same x w b",
    /* mono: the factor of c is not negative */
    "addmm(beta<0,alpha): c~[m n] a[m k] b[k n] -> d[m n]; sum k; add c; lin a+c | b+c;"
    " aff a | b | c; type join d; same c a b",
    "addmm(beta,alpha): c~[m n] a[m k] b[k n] -> d[m n]; sum k; add c; lin a+c | b+c;"
    " aff a | b | c; mono c; type join d; same c a b",
    "addmv(beta<0,alpha): c~[m] a[m k] b[k] -> d[m]; sum k; add c; lin a+c | b+c; aff a | b | c;"
    " type join d; same c a b",
    "addmv(beta,alpha): c~[m] a[m k] b[k] -> d[m]; sum k; add c; lin a+c | b+c; aff a | b | c;"
    " mono c; type join d; same c a b",
    "baddbmm(beta<0,alpha): c~[e m n] a[e m k] b[e k n] -> d[e m n]; sum k; add c; lin a+c | b+c;"
    " aff a | b | c; type join d; same c a b",
    "baddbmm(beta,alpha): c~[e m n] a[e m k] b[e k n] -> d[e m n]; sum k; add c; lin a+c | b+c;"
    " aff a | b | c; mono c; type join d; same c a b",
    "kron: a[i j] b[k l] -> c[(i k) (j l)]; lin a | b; same a b",
    "scaled_mm: a[m k] b[k n] p~[m 1] q~[1 n] -> c[m n]; sum k; lin a | b | p | q; type bf16 c;"
    " same p q",
    "scaled_mm_block(u,v): a[m (k u)] b[(k u) (n v)] p[m k] q[k n] -> c[m (n v)]; sum k;"
    " whole u v; type bf16 c; same p q",
    "grouped_mm: x[t k] w[e k n] o[e] -> y[t n]; sum k; whole t e; lin x | w; use experts; same x w",
    "grouped_mm_3d: x[e t k] w[e k n] -> y[e t n]; sum k; lin x | w; same x w",
    "grouped_mm_k: x[m t] w[t n] o[e] -> y[e m n]; whole t e; lin x | w; same x w",
    "grouped_mm_t: x[e m k] w[k t] o[e] -> y[m t]; sum k; whole t e; lin x | w; same x w",
    "conv(stride,padding,dilation,groups,transposed,output_padding): x[X..] f[F..] b?[B..] -> y[Y..]; make conv;"
    " same x f b",
    "conv_bwd(stride,padding,dilation,groups,transposed,output_padding): g[G..] x[X..] f[F..]"
    " -> dx[A..] dw[B..] db[C..];"
    " make conv_bwd; same g x f",
    /* window = stride, no padding */
    "conv2_patch: x[n c (h r) (w s)] f[o c r s] b?[o] -> y[n o h w]; sum c; whole r s; add b;"
    " lin x+b | f+b; same x f b",
    "max_pool(kernel,stride,padding,dilation,ceil_mode,indices): x[X..] -> y[Y..] i[I..];"
    " make max_pool",
    "avg_pool(kernel,stride,padding,ceil_mode,count_include_pad,divisor_override): x[X..] -> y[Y..];"
    " make avg_pool",
    "max_pool_bwd(kernel,stride,padding,dilation,ceil_mode): g[n c Y..] x[n c X..] i[n c Y..]"
    " -> d[n c X..]; halo X Y; lin g; same g x",
    "max_unpool: x[n c X..] i[n c X..] -> y[n c Y..]; halo X Y",
    "interpolate(mode=nearest,size): x[n c X..] -> y[n c Y..]; halo X Y; size Y size; pass x;"
    " check spatial",
    "interpolate adaptive_avg_pool(size,mode,align_corners): x[n c X..] -> y[n c Y..]; halo X Y;"
    " size Y size; lin x; type float y; check spatial",
    "avg_pool_bwd(kernel,stride,padding,ceil_mode,count_include_pad,divisor_override):"
    " g[n c Y..] x[n c X..] -> d[n c X..]; halo X Y; lin g; shape x",
    "interpolate_bwd adaptive_avg_pool_bwd(mode,align_corners): g[n c Y..] x[n c X..]"
    " -> d[n c X..]; halo X Y; lin g; shape x",
    "adaptive_max_pool(size): x[n c X..] -> y[n c Y..] i[n c Y..]; halo X Y; size Y size; type i64 i;"
    " check spatial",
    "grid_sample(mode,padding_mode,align_corners): x[n c X..] g[n Y.. z]"
    " -> y[n c Y..]; halo X Y; whole z; lin x; same x g",
    "grid_sample_bwd: d[n c Y..] x[n c X..] g[n Y.. z] -> dx[n c X..] dg[n Y.. z]; sum c;"
    " halo X Y; whole z; lin d; from dx d g; same d x g",
    /* ---- attention ---- */
    "sdpa(scale,causal,dropout): q[b h s d] k[b h t d] v[b h t e] m?~[b h s t] -> o[b h s e] l[b h s];"
    " here s; whole t d; lin v; from l q k m; use ring; same q k v",
    "sdpa_gqa(r,scale,causal,dropout): q[b (g r) s d] k[b g t d] v[b g t e] -> o[b (g r) s e]"
    " l[b (g r) s]; here s; whole t d; lin v; from l q k; use ring; same q k v",
    "sdpa_bwd(scale,causal,dropout): do[b h s e] q[b h s d] k[b h t d] v[b h t e]"
    " o[b h s e] l[b h s] m?~[b h s t]"
    " -> dq[b h s d] dk[b h t d] dv[b h t e]; sum s; here s; whole t d e; same do q k v o",
    "sdpa_gqa_bwd(r,scale,causal,dropout): do[b (g r) s e] q[b (g r) s d] k[b g t d]"
    " v[b g t e] o[b (g r) s e]"
    " l[b (g r) s] -> dq[b (g r) s d] dk[b g t d] dv[b g t e]; sum s r; here s; whole t d e;"
    " same do q k v o",
    "rope(z): x[b s h (p z)] c[s p] n[s p] -> y[b s h (p z)]; whole z; lin x; same c n",
    "rope_half(z): x[b s h (z p)] c[s p] n[s p] -> y[b s h (z p)]; whole z; lin x; same c n",
    "kv_write: c[b t h d] x[b s h d] i[s] -> y[b t h d]; own t; whole s; inplace y=c",
    "moe_gate(k): x[t d] w[d e] -> p[t j] i[t j]; whole d e j; size j k; type i64 i; check picks;"
    " same x w",
    /* ---- lookup ---- */
    "embedding(padding_idx): w[v d] i[..] -> y[.. d]; mask v; pass w; check padding",
    /* t: the table, so that its gradient follows its layout */
    "embedding_bwd(v,scaled=1,padding_idx): g[.. d] i[..] t?[v d] -> w[v d]; whole ..; own v; lin g;"
    " shape t; check padding",
    "embedding_bwd(v): g[.. d] i[..] t?[v d] -> w[v d]; sum ..; own v; lin g; shape t;"
    " check padding",
    "gather(dim): x[X..] i[I..] -> y[Y..]; make gather",
    "index_select(dim): x[B.. k@dim B..] i[j] -> y[B.. j@dim B..]; mask k; pass x",
    /* with duplicates among the indices, ranks may write different values of s: the greatest of them
     * is one of them, but their sum or average is not */
    "scatter(dim,reduce!=none): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k;"
    " whole j; differ j; check scatter; same x s",
    "scatter(dim,reduce): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k;"
    " whole j; differ j; mono x; check scatter; same x s",
    "scatter_value(dim,v): x[B.. k@dim B..] i[B.. j@dim B..] -> y[B.. k B..]; own k; whole j;"
    " aff x; mono x; check scatter",
    "scatter_add(dim): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k;"
    " sum j; differ j; add x; lin x+s; aff x | s; mono x; check scatter; same x s",
    /* only the rank with the index drops x */
    "scatter_reduce(dim,reduce,include_self=0): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..]"
    " -> y[B.. k B..]; own k; whole j; differ j; check scatter; same x s",
    "scatter_reduce(dim,reduce=amax): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..]"
    " -> y[B.. k B..]; own k; max j; differ j; add x; hom max x+s | s; mono x; check scatter;"
    " same x s",
    "scatter_reduce(dim,reduce=amin): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..]"
    " -> y[B.. k B..]; own k; min j; differ j; add x; hom min x+s | s; mono x; check scatter;"
    " same x s",
    "scatter_reduce(dim,reduce=sum): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..]"
    " -> y[B.. k B..]; own k; sum j; differ j; add x; lin x+s; aff x | s; mono x; check scatter;"
    " same x s",
    "scatter_reduce(dim): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k;"
    " whole j; differ j; check scatter; same x s",
    "index_add(dim,alpha): x[B.. k@dim B..] i[j] s[B.. j@dim B..] -> y[B.. k B..]; own k; sum j;"
    " add x; lin x+s; aff x | s; mono x; same x s",
    "index_copy(dim): x[B.. k@dim B..] i[j] s[B.. j@dim B..] -> y[B.. k B..]; own k; whole j;"
    " mono x; same x s",
    "index_reduce(dim,reduce,include_self): x[B.. k@dim B..] i[j] s[B.. j@dim B..]"
    " -> y[B.. k B..]; own k; whole j; same x s",
    "index_fill(dim,v=0): x[B.. k@dim B..] i[j] -> y[B.. k B..]; own k; whole j; pass x",
    "index_fill(dim): x[B.. k@dim B..] i[j] v?[] -> y[B.. k B..]; own k; whole j; aff x; mono x",
    "one_hot(classes): i[..] -> y[.. v]; own v; size v classes",
    /* ---- shapes ---- */
    "reshape view unsafe_view flatten unflatten view_copy(shape): x[X..] -> y[Y..]; make reshape",
    "permute(order): x[X..] -> y[Y..]; make permute",
    "transpose(dims): x[X..] -> y[Y..]; make transpose",
    "t: x[X..] -> y[Y..]; make transpose",
    "squeeze(dims): x[X..] -> y[Y..]; make squeeze",
    "unsqueeze(dim): x[..] -> y[.. 1@dim ..]; pass x",
    "expand(shape): x[X..] -> y[Y..]; make expand",
    "repeat tile(repeats): x[X..] -> y[Y..]; make repeat",
    "repeat_interleave(dim,repeats): x[X..] -> y[Y..]; make interleave",
    "pad(pad,v,mode): x[X..] -> y[Y..]; make pad",
    "select(dim,index): x[.. k@dim ..] -> y[..]; whole k; pass x; check index",
    "select_bwd(dim,n,index): g[..] t?[.. k@dim ..] -> x[.. k@dim ..]; own k; size k n; pass g;"
    " shape t; check index",
    "slice(dim,start,end,step): x[X..] -> y[Y..]; make slice",
    "narrow(dim,start,end,step): x[X..] -> y[Y..]; make narrow",
    "slice_bwd(dim,n,start,end,step): g[.. j@dim ..] t?[.. k@dim ..] -> x[.. k@dim ..]; whole j;"
    " own k; size k n; pass g; shape t; check slice",
    "select_scatter(dim,index): x[.. k@dim ..] s[..] -> y[.. k ..]; own k; pass x+s; aff x | s;"
    " mono x | s; check index; same x s",
    "slice_scatter(dim,start,end,step): x[.. k@dim ..] s[.. j@dim ..] -> y[.. k ..]; own k;"
    " whole j; pass x+s; aff x | s; mono x | s; check slice; same x s",
    "diagonal_scatter(offset,dim1,dim2): x[X..] s[S..] -> y[Y..]; make diagonal_scatter; same x s",
    "cat concat(dim): x*[X..] -> y[Y..]; make cat; same x",
    "stack(dim): x*[X..] -> y[Y..]; make stack; same x",
    "split split_with_sizes chunk(dim,sizes): x[X..] -> y*[Y..]; make split",
    "unbind(dim): x[.. k@dim ..] -> y*[..]; whole k; pass x; check unbind",
    "tril triu(diagonal): x[.. i j] -> y[.. i j]; here i j; pass x",
    "diagonal diagonal_copy(offset,dim1,dim2): x[X..] -> y[Y..]; make diagonal",
    "diag_embed(offset): x[.. k] -> y[.. i j]; whole i j k; pass x",
    "glu(dim): x[.. (h j)@dim ..] -> y[.. j@dim ..]; whole h; size h 2",
    "unfold(dim,size,step): x[X..] -> y[Y..]; make unfold",
    "index(pos): x[X..] i*[I..] -> y[Y..]; make index",
    "index_put(pos,accumulate): x[X..] i*[I..] v[V..] -> y[Y..]; make index_put; same x v",
    /* ---- linear algebra, sampling, optimizers ---- */
    "multinomial(k,replacement): p[.. v] -> i[.. j]; whole v j; size j k; rand; type i64 i;"
    " check picks",
    "svd(full_matrices): a[.. m n] -> u[.. m k] s[.. k] v[.. k n]; whole m n k",
    "qr: a[.. m n] -> q[.. m k] r[.. k n]; whole m n k",
    "eigh: a[.. m n] -> w[.. n] v[.. m n]; whole m n",
    "det: a[.. m n] -> d[..]; whole m n",
    "slogdet: a[.. m n] -> s[..] l[..]; whole m n",
    "inv cholesky newton_schulz pinv matrix_exp cholesky_inverse: a[.. m n] -> b[.. m n];"
    " whole m n",
    "inv_ex cholesky_ex: a[.. m n] -> b[.. m n] e[..]; whole m n; type i32 e",
    "solve solve_triangular: a[.. m k] b[.. k n] -> x[.. m n]; whole m k; lin b; same a b",
    "frexp: a[..] -> m[..] e[..]; type i32 e",
    "cholesky_solve lu_solve ldl_solve: b[.. m n] a[.. m k] p?[.. j] -> x[.. m n]; whole m k j; lin b;"
    " same b a",
    "triangular_solve: b[.. m n] a[.. m k] -> x[.. m n] c[.. m k]; whole m k; from x b a; from c a;"
    " same b a",
    "solve_ex: a[.. m k] b[.. k n] -> x[.. m n] l[.. m k] p[.. m] e[..]; whole m k n; type i32 p e;"
    " same a b",
    "ormqr: a[.. m k] t[.. k] c[.. m n] -> y[.. m n]; whole m k; lin c; same a t c",
    "householder_product: a[.. m k] t[.. j] -> q[.. m k]; whole m k j; same a t",
    "geqrf: a[.. m n] -> q[.. m n] t[.. k]; whole m n k",
    "eig: a[.. m n] -> w[.. n] v[.. m n]; whole m n",
    "lu: a[.. m n] -> p[.. m i] l[.. m k] u[.. k n]; whole m n i k",
    "lu_factor_ex ldl_factor_ex: a[.. m n] -> l[.. m n] p[.. k] e[..]; whole m n k; type i32 p e",
    "lu_unpack: a[.. m n] p[.. k] -> q[.. m i] l[.. m k] u[.. k n]; whole m n i k",
    "cross(dim): a[.. k@dim ..] b[.. k@dim ..] -> c[.. k@dim ..]; whole k; size k 3; lin a | b;"
    " same a b",
    "cdist(p): a[.. i d] b[.. j d] -> y[.. i j]; whole d; same a b",
    "adam adamw(lr,beta1,beta2,weight_decay,maximize): p*[..] g*[..] m*[..] v*[..] t*[]"
    " -> p*[..] m*[..] v*[..]; inplace p=p m=m v=v",
    "sgd(lr,momentum,dampening,nesterov,weight_decay,maximize): p*[..] g*[..] m*[..] -> p*[..] m*[..]; inplace p=p m=m",
};
/* NOLINTEND(bugprone-suspicious-missing-comma) */
const size_t wf_op_builtin_count = sizeof wf_op_builtin / sizeof *wf_op_builtin;
/* clang-format on */
