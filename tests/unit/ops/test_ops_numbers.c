/* Every strategy of a rule computes the right numbers, and wrong rules are caught.
 *
 * Shapes are random and contain 0, 1 and uneven sizes; meshes have 1 to 3 axes of 2 to 4 ranks;
 * inputs are split in all ways, uneven ones among them, or have an owner; contributions of partial
 * inputs are random. */
#include "support/op_kernels_data.h"
#include "support/op_kernels_windows.h"
#include "support/random_layout.h"
#include "support/suite.h"

/* Letters in inputs, outputs and attributes are random sizes. */
struct op_case {
    const char *name;
    op_kernel *kernel;
    const char *inputs, *attrs;
    int64_t range; /* of integers; 0: 5.  A letter's size with letter */
    double least;  /* of other numbers */
    char letter;   /* integers are below the size of this letter */
};

static const struct op_case known[] = {
    {"exp", k_exp, "f32[a,b]", "", 0, -2, 0},
    {"relu", k_relu, "f32[a,b]", "", 0, -2, 0},
    {"erfc", k_erfc, "f32[a,b]", "", 0, -2, 0},
    {"sqrt", k_sqrt, "f32[a]", "", 0, -2, 0},
    {"log", k_log, "f32[a,b]", "", 0, -2, 0},
    {"gelu", k_gelu, "f32[a,b]", "", 0, -2, 0},
    {"neg", k_neg, "f32[a,b]", "", 0, -2, 0},
    {"neg", k_neg, "i64[a,b]", "", 0, -2, 0},
    {"clone", k_copy1, "f32[a,b,c]", "", 0, -2, 0},
    {"clone", k_copy1, "i32[a,b]", "", 0, -2, 0},
    {"mul_scalar", k_scale, "f32[a,b]", "s=2", 0, -2, 0},
    {"mul_scalar", k_scale, "f32[a,b]", "s=-3", 0, -2, 0},
    {"add_scalar", k_shift, "f32[a,b]", "s=2", 0, -2, 0},
    {"rsub_scalar", k_rshift, "f32[a,b]", "s=2", 0, -2, 0},
    {"gt_scalar", k_gts, "f32[a,b]", "", 0, -2, 0},
    {"lt_scalar", k_lts, "f32[a,b]", "", 0, -2, 0},
    {"cast", k_to_bool, "f32[a,b]", "to=bool", 0, -2, 0},
    {"cast", k_copy1, "f32[a,b]", "to=f64", 0, -2, 0},
    {"add", k_add, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"add", k_add, "f32[a,1] ; f32[1,b]", "", 0, -2, 0},
    {"add", k_add, "i64[a,b] ; i64[a,b]", "", 0, -2, 0},
    {"sub", k_sub, "f32[a,b] ; f32[]", "", 0, -2, 0},
    {"rsub", k_rsub, "f32[a,b] ; f32[a,b]", "", 0, -2, 0},
    {"add", k_add_alpha, "f32[a,b] ; f32[b]", "alpha=-2", 0, -2, 0},
    {"add", k_add_alpha, "f32[a,b] ; f32[b]", "alpha=0.5", 0, -2, 0},
    {"sub", k_sub_alpha, "f32[a,b] ; f32[b]", "alpha=-2", 0, -2, 0},
    {"rsub", k_rsub_alpha, "f32[a,b] ; f32[b]", "alpha=-2", 0, -2, 0},
    {"leaky_relu", k_leaky, "f32[a,b]", "negative_slope=-1", 0, -2, 0},
    {"leaky_relu", k_leaky, "f32[a,b]", "negative_slope=0.5", 0, -2, 0},
    {"elu", k_elu, "f32[a,b]", "alpha=-1", 0, -2, 0},
    {"elu", k_elu, "f32[a,b]", "", 0, -2, 0},
    {"threshold", k_threshold, "f32[a,b]", "threshold=0 value=20", 0, -2, 0},
    {"mul", k_mul, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"div", k_div, "f32[a,b] ; f32[a,1]", "", 0, 1, 0},
    {"div", k_div_floor, "f32[a,b] ; f32[a,1]", "rounding_mode=floor", 0, 1, 0},
    {"maximum", k_maximum, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"minimum", k_minimum, "f32[a,b] ; f32[a,b]", "", 0, -2, 0},
    {"gt", k_gt, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"lt", k_lt, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"eq", k_eq, "i64[a,b] ; i64[b]", "", 0, -2, 0},
    {"logaddexp", k_logaddexp, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"atan2", k_atan2, "f32[a,b] ; f32[b]", "", 0, 1, 0},
    {"clamp_tensor", k_clamp, "f32[a,b] ; f32[b] ; f32[]", "", 0, -2, 0},
    {"where", k_where, "bool[a,b] ; f32[b] ; f32[a,1]", "", 0, -2, 0},
    {"masked_fill", k_fill_masked, "f32[a,b] ; bool[b]", "v=0", 0, -2, 0},
    {"masked_fill", k_fill_masked, "f32[a,b] ; bool[b]", "v=3", 0, -2, 0},
    {"addcmul", k_addcmul, "f32[a,b] ; f32[b] ; f32[a,b]", "", 0, -2, 0},
    {"addcdiv", k_addcdiv, "f32[a,b] ; f32[a,b] ; f32[b]", "", 0, 1, 0},
    {"lerp", k_lerp, "f32[a,b] ; f32[a,b] ; f32[a,1]", "", 0, -2, 0},
    {"lerp_scalar", k_lerps, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"tanh_bwd", k_tanh_bwd, "f32[a,b] ; f32[a,b]", "", 0, -2, 0},
    {"copy", k_second, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"zero", k_zero, "f32[a,b]", "", 0, -2, 0},
    {"fill", k_three, "f32[a,b]", "", 0, -2, 0},
    {"full_like", k_three, "f32[a,b]", "", 0, -2, 0},
    {"mse_loss_bwd", k_mse_bwd, "f32[a,b] ; f32[a,b] ; f32[a,b]", "reduction=none", 0, -2, 0},
    {"sum", k_sum, "f32[a,b,c]", "dims=0,2", 0, -2, 0},
    {"sum", k_sum, "i64[a,b]", "dims=-1 keepdim=1", 0, -2, 0},
    {"mean", k_mean, "f32[a,b,c]", "dims=1", 0, -2, 0},
    {"mean", k_mean, "f32[a,b]", "", 0, -2, 0},
    {"amax", k_amax, "f32[a,b,c]", "dims=0", 0, -2, 0},
    {"amin", k_amin, "f32[a,b]", "", 0, -2, 0},
    {"prod", k_prod, "f32[a,b]", "dims=1", 0, 1, 0},
    {"all", k_all, "bool[a,b]", "dims=1", 0, -2, 0},
    {"any", k_any, "bool[a,b]", "", 0, -2, 0},
    {"count_nonzero", k_count, "i64[a,b]", "dims=0", 0, -2, 0},
    {"norm", k_norm1, "f32[a,b]", "p=1 dims=1", 0, -2, 0},
    {"norm", k_norm_inf, "f32[a,b]", "p=inf", 0, -2, 0},
    {"softmax", k_softmax, "f32[a,b]", "dim=1", 0, -2, 0},
    {"softmax_bwd", k_softmax_bwd, "f32[a,b] ; f32[a,b]", "dim=0", 0, -2, 0},
    {"cumsum", k_cumsum, "f32[a,b]", "dim=0", 0, -2, 0},
    {"flip", k_flip, "f32[a,b,c]", "dims=0,2", 0, -2, 0},
    {"mm", k_mm, "f32[a,b] ; f32[b,c]", "", 0, -2, 0},
    {"bmm", k_bmm, "f32[a,b,c] ; f32[a,c,d]", "", 0, -2, 0},
    {"dot", k_dot, "f32[a] ; f32[a]", "", 0, -2, 0},
    {"mv", k_mv, "f32[a,b] ; f32[b]", "", 0, -2, 0},
    {"outer", k_outer, "f32[a] ; f32[b]", "", 0, -2, 0},
    {"einsum", k_einsum3, "f32[a,b,c] ; f32[c,d] ; f32[b,d]", "eq=abc,cd,bd->a", 0, -2, 0},
    {"linear", k_linear, "f32[a,b,c] ; f32[d,c] ; f32[d]", "", 0, -2, 0},
    {"linear", k_linear, "f32[a,b,c] ; f32[d,c] ; -", "", 0, -2, 0},
    {"addmm", k_addmm, "f32[c] ; f32[a,b] ; f32[b,c]", "", 0, -2, 0},
    {"addmm", k_addmm, "f32[a,1] ; f32[a,b] ; f32[b,c]", "", 0, -2, 0},
    {"kron", k_kron, "f32[a,b] ; f32[c,d]", "", 0, -2, 0},
    {"embedding", k_embedding, "f32[a,b] ; i64[c]", "", 0, -2, 'a'},
    {"embedding_bwd", k_embedding_bwd, "f32[c,b] ; i64[c]", "v=5", 5, -2, 0},
    {"gather", k_gather, "f32[a,b] ; i64[a,c]", "dim=1", 0, -2, 'b'},
    {"gather", k_gather, "f32[4,b] ; i64[3,c]", "dim=1", 0, -2, 'b'},
    {"index_select", k_index_select, "f32[a,b,c] ; i64[d]", "dim=1", 0, -2, 'b'},
    {"scatter", k_scatter, "f32[a,b] ; i64[a,c] ; f32[a,c]", "dim=1", 0, -2, 'b'},
    {"scatter", k_scatter, "f32[a,b] ; i64[a,2] ; f32[a,4]", "dim=1", 0, -2, 'b'},
    {"scatter_value", k_scatter_value, "f32[a,b] ; i64[c,b]", "dim=0", 0, -2, 'a'},
    {"scatter_add", k_scatter_add, "f32[a,b] ; i64[a,c] ; f32[a,c]", "dim=1", 0, -2, 'b'},
    {"scatter_add", k_scatter_add, "f32[4,b] ; i64[3,a] ; f32[5,7]", "dim=1", 0, -2, 'b'},
    {"scatter_reduce", k_scatter_max, "f32[a,b] ; i64[a,c] ; f32[a,c]", "dim=1 reduce=amax", 0, -2,
     'b'},
    {"index_add", k_index_add, "f32[a,b] ; i64[c] ; f32[a,c]", "dim=1", 0, -2, 'b'},
    {"index_copy", k_index_copy, "f32[a,b] ; i64[c] ; f32[c,b]", "dim=0", 0, -2, 'a'},
    {"one_hot", k_one_hot, "i64[a]", "classes=5", 5, -2, 0},
    {"index_put", k_index_put, "f32[a,b] ; i64[c] ; f32[]", "pos=0,", 0, -2, 'a'},
    {"index_put", k_index_put, "f32[a,b] ; i64[c] ; f32[b]", "pos=0,", 0, -2, 'a'},
    {"index_put", k_index_put, "f32[a,b] ; i64[c] ; f32[c,b]", "pos=0,", 0, -2, 'a'},
    {"index", k_index_both, "f32[a,b] ; i64[c] ; i64[1]", "pos=0,1", 1, -2, 0},
    {"bucketize", k_bucketize, "f32[a,b] ; f32[c]", "", 0, -2, 0},
    {"reshape", k_reshape, "f32[2,3,a]", "shape=6,-1", 0, -2, 0},
    {"reshape", k_reshape, "f32[6,4]", "shape=4,6", 0, -2, 0},
    {"reshape", k_reshape, "f32[12,a]", "shape=2,2,3,-1", 0, -2, 0},
    {"reshape", k_reshape, "f32[2,6,1,4]", "shape=4,12", 0, -2, 0},
    {"reshape", k_reshape, "f32[2,3,5,2]", "shape=10,6", 0, -2, 0},
    {"permute", k_permute, "f32[a,b,c]", "order=2,0,1", 0, -2, 0},
    {"unsqueeze", k_reshape, "f32[a,b]", "dim=1", 0, -2, 0},
    {"squeeze", k_reshape, "f32[2,1,a,1]", "dims=1,3", 0, -2, 0},
    {"expand", k_repeat, "f32[1,a]", "shape=3,4,-1", 0, -2, 0},
    {"repeat", k_repeat, "f32[a,b]", "repeats=2,1,3", 0, -2, 0},
    {"slice", k_slice, "f32[a,8]", "dim=1 start=1 step=2", 0, -2, 0},
    {"slice", k_slice, "f32[a,8]", "dim=1 start=3 end=7", 0, -2, 0},
    {"pad", k_pad, "f32[a,b]", "pad=1,2 v=0", 0, -2, 0},
    {"pad", k_pad, "f32[a,b]", "pad=1,2 v=5", 0, -2, 0},
    {"cat", k_cat, "f32[a,b] ; f32[a,c]", "dim=1", 0, -2, 0},
    {"stack", k_stack, "f32[a,b] ; f32[a,b]", "dim=0", 0, -2, 0},
    {"split", k_split, "f32[a,5]", "dim=1 sizes=2,3", 0, -2, 0},
    {"select", k_select, "f32[3,a,b]", "dim=0 index=0", 0, -2, 0},
    {"select_bwd", k_select_bwd, "f32[a,b]", "dim=0 n=4 index=0", 0, -2, 0},
    {"tril", k_tril, "f32[a,b,c]", "", 0, -2, 0},
    {"layer_norm", k_layer_norm, "f32[a,b] ; f32[b] ; f32[b]", "dims=1", 0, -2, 0},
    {"layer_norm", k_layer_norm, "f32[a,b] ; - ; f32[b]", "dims=1", 0, -2, 0},
    {"nll_loss", k_nll_sum, "f32[a,b] ; i64[a] ; f32[b]", "reduction=sum", 0, -2, 'b'},
    {"nll_loss", k_nll_sum, "f32[a,b] ; i64[a] ; -", "reduction=sum", 0, -2, 'b'},
    {"mse_loss", k_mse_mean, "f32[a,b] ; f32[a,b]", "reduction=mean", 0, -2, 0},
    {"sdpa", k_sdpa, "f32[2,a,3,2] ; f32[2,a,3,2] ; f32[2,a,3,b]", "", 0, -2, 0},
    {"sdpa_gqa", k_sdpa, "f32[2,6,2,2] ; f32[2,3,2,2] ; f32[2,3,2,2]", "r=2", 0, -2, 0},
    {"sdpa_bwd", k_sdpa_bwd,
     "f32[2,a,3,2] ; f32[2,a,3,b] ; f32[2,a,4,b] ; f32[2,a,4,2] ; f32[2,a,3,2] ; f32[2,a,3]", "", 0,
     -1, 0},
    {"sdpa_gqa_bwd", k_sdpa_bwd,
     "f32[2,6,a,2] ; f32[2,6,a,2] ; f32[2,3,a,2] ; f32[2,3,a,2] ; f32[2,6,a,2] ; f32[2,6,a]", "r=2",
     0, -1, 0},
    {"dropout_bwd", k_mul, "f32[a,b] ; bool[a,b]", "p=0", 0, -2, 0},
    {"cross_entropy_bwd", k_cross_entropy_bwd, "f32[a] ; f32[a,b] ; i64[a] ; - ; -",
     "reduction=none", 0, -2, 'b'},
    {"cross_entropy_bwd", k_cross_entropy_bwd, "f32[] ; f32[a,b] ; i64[a] ; - ; -", "reduction=sum",
     0, -2, 'b'},
    {"conv", k_conv, "f32[a,b,8] ; f32[c,b,3] ; f32[c]", "", 0, -2, 0},
    {"conv", k_conv, "f32[a,b,8] ; f32[c,b,2] ; -", "stride=2,", 0, -2, 0},
    {"avg_pool", k_avg_pool, "f32[a,b,6]", "kernel=2,", 0, -2, 0},
    {"adaptive_avg_pool", k_resample, "f32[a,b,7]", "size=3,", 0, -2, 0},
    {"adaptive_avg_pool_bwd", k_resample_bwd, "f32[a,b,3] ; f32[a,b,7]", "", 0, -2, 0},
    {"adaptive_max_pool", k_adaptive_max_pool, "f32[a,b,7]", "size=3,", 0, -2, 0},
    {"interpolate", k_resample, "f32[a,b,5]", "size=8, mode=nearest", 0, -2, 0},
    {"interpolate", k_resample, "f32[a,b,5]", "size=8, mode=linear", 0, -2, 0},
    {"interpolate_bwd", k_resample_bwd, "f32[a,b,8] ; f32[a,b,5]", "mode=linear", 0, -2, 0},
};

/* Rules that are wrong, under a name of their own, with the kernel and the inputs of a case. */
static const struct {
    const char *rule, *like;
} wrong[] = {
    {"w: a[..] -> b[..]; lin a", "exp"},
    {"w: a[..] -> b[..]; anti a", "relu"},
    {"w: a[..] -> b[..]; mono a", "neg"},
    {"w: a[..] -> b[..]; mono a", "log"},
    {"w: a[..] -> b[..]; pass a", "gelu"},
    {"w(negative_slope): a[..] -> b[..]; mono a", "leaky_relu"},
    {"w(threshold,value): a[..] -> b[..]; mono a", "threshold"},
    {"w(s): a[..] -> b[..]; lin a", "add_scalar"},
    {"w: a[..] b[..] -> c[..]; lin a | b", "add"},
    {"w: a[..] b[..] -> c[..]; lin a+b", "mul"},
    {"w: a[..] b[..] -> c[..]; mono a | b", "sub"},
    {"w: a[..] b[..] -> c[..]; lin a | b", "div"},
    {"w: a[..] b[..] -> c[..]; hom min a+b", "maximum"},
    {"w(dims): x[.. K@dims ..] -> y[..]; sum K", "mean"},
    {"w(dims): x[.. K@dims ..] -> y[..]; sum K", "amax"},
    {"w(dims): x[.. K@dims ..] -> y[..]; max K; mono x", "sum"},
    {"w(dim): x[.. k@dim ..] -> y[.. k ..]", "softmax"},
    {"w(dim): x[.. k@dim ..] -> y[.. k ..]; lin x", "cumsum"},
    {"w: a[m k] b[k n] -> c[m n]; max k", "mm"},
    {"w: a[m k] b[k n] -> c[m n]; sum k; lin a+b", "mm"},
    {"w: x[.. k] w[n k] b?[n] -> y[.. n]; sum k; lin x | w", "linear"},
    {"w: w[v d] i[..] -> y[.. d]; whole v; mono i", "embedding"},
    {"w(dim): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k; sum j",
     "scatter_add"},
    {"w(dim): x[B.. k@dim B..] i[B.. j@dim B..] s[B.. j B..] -> y[B.. k B..]; own k; sum j; add x",
     "scatter"},
    {"w(dims): x[.. N@dims] w?[N] b?[N] -> y[.. N] m[.. 1@dims] r[.. 1@dims]; sum N; from m x;"
     " from r x",
     "layer_norm"},
    {"w: q[b h s d] k[b h t d] v[b h t e] m?~[b h s t] -> o[b h s e] l[b h s]; whole s t d; lin k;"
     " from l q k",
     "sdpa"},
    {"w(dims): x[.. K@dims ..] -> y[.. K ..]; pass x", "flip"},
    {"w: c[..] a[..] b[..] -> d[..]; lin a | b; type a d", "where"},
};

struct counts {
    uint64_t calls, strategies, proposals, wrong;
    uint64_t listed, owned; /* outputs with sizes, and with an owner */
};

static struct counts counted;

/* Replace the letters of TEXT by their sizes. */
static void set_sizes(const char *text, const int32_t *sizes, char *out, size_t bytes)
{
    size_t length = 0;
    bool inside = false;

    for (; *text != '\0' && length + 4 < bytes; text++) {
        inside = *text == '[' || (inside && *text != ']');
        if (inside && *text >= 'a' && *text <= 'e')
            length += (size_t)snprintf(out + length, 4, "%d", sizes[*text - 'a']);
        else
            out[length++] = *text;
    }
    out[length] = '\0';
}

/* "f32[2,3] ; f32[3]" with R on every axis. */
static void add_placements(const char *shapes, int32_t axes, char *out, size_t bytes)
{
    char copy[256], *save = NULL;
    size_t length = 0;

    snprintf(copy, sizeof copy, "%s", shapes);
    out[0] = '\0';
    for (char *t = strtok_r(copy, " ;", &save); t != NULL; t = strtok_r(NULL, " ;", &save)) {
        length +=
            (size_t)snprintf(out + length, bytes - length, "%s%s", length > 0 ? " ; " : "", t);
        for (int32_t a = 0; a < axes && t[0] != '-'; a++)
            length += (size_t)snprintf(out + length, bytes - length, "%cR", a == 0 ? ' ' : ',');
    }
}

/* Place the inputs of O at random: with all kinds of splits, owners, and contributions to floats.
 * Some are placed as the first one, as far as their shapes allow it. */
static void draw_layouts(struct random *r, op_text *o)
{
    weft_placement first[WEFT_MAX_AXES], own[WEFT_MAX_AXES];
    bool alike = random_chance(r, 2);

    for (uint32_t i = 0; i < o->call.input_count; i++) {
        const weft_spec *given = o->inputs[i];
        weft_spec *made = NULL;
        if (given == NULL) continue;
        if (i == 0 || !alike)
            random_placements(r, o->mesh, weft_spec_dims(given), weft_spec_shape(given), own);
        if (i == 0) memcpy(first, own, sizeof first);
        for (int32_t a = 0; a < weft_mesh_axes(o->mesh); a++) {
            if (alike && i > 0) own[a] = first[a];
            if (own[a].kind == WEFT_PLACE_PARTIAL && weft_spec_dtype(given) != WEFT_DTYPE_F32)
                own[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        }
        if (weft_spec_create(o->mesh, weft_spec_dtype(given), weft_spec_dims(given),
                             weft_spec_shape(given), own, &made) != WEFT_OK)
            continue;
        weft_spec_release(&o->inputs[i]);
        o->inputs[i] = made;
    }
}

/* Print the inputs of O. */
static void show_inputs(const op_text *o)
{
    for (uint32_t i = 0; i < o->call.input_count; i++) {
        char text[512] = "-";
        if (o->inputs[i] != NULL)
            ck_assert(weft_spec_print(o->inputs[i], text, sizeof text, NULL) == WEFT_OK);
        fprintf(stderr, "   input %u: %s\n", i, text);
    }
}

static int32_t draw_mesh(struct random *r, char *out, size_t bytes)
{
    int32_t axes = random_in(r, 1, 3);
    size_t length = 0;

    for (int32_t a = 0; a < axes; a++)
        length += (size_t)snprintf(out + length, bytes - length, "%s%d", a > 0 ? "x" : "",
                                   axes == 3 ? 2 + (a == 1) : random_in(r, 2, 4));
    return axes;
}

/* Count the outputs of CHOICE that list sizes or have an owner. */
static void count_kinds(const weft_op_choice *choice)
{
    const weft_spec *spec;

    for (uint32_t i = 0; (spec = weft_op_choice_output(choice, i)) != NULL; i++)
        for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
            counted.listed += wf_placement_has_sizes(&spec->layout.placements[a]);
            counted.owned += spec->layout.placements[a].kind == WEFT_PLACE_OWNER;
        }
}

/* Run strategies of a call, at most MOST of them; false: one gives wrong numbers. */
static bool run_strategies(struct random *r, op_text *o, const struct op_case *c, int64_t range,
                           int most)
{
    struct numbers n = {.call = &o->call,
                        .kernel = c->kernel,
                        .inputs = (uint32_t)o->call.input_count,
                        .seed = (uint64_t)random_in(r, 0, 1 << 30)};
    weft_op_list *list = NULL;
    uint32_t count;
    bool hold = true;

    ck_assert_msg(weft_op_list_create(&o->call, NULL, &list) == WEFT_OK, "%s", weft_last_error());
    count = (uint32_t)weft_op_list_count(list);
    ck_assert_uint_gt(count, 0);
    numbers_fill(&n, range, c->least);
    numbers_whole(&n, weft_op_list_choice(list, 0));
    for (uint32_t i = 0; hold && i < count && i < (uint32_t)most; i++) {
        uint32_t at = count <= (uint32_t)most ? i : (uint32_t)random_in(r, 0, (int32_t)count - 1);
        hold = numbers_hold(&n, weft_op_list_choice(list, at));
        counted.strategies++;
        count_kinds(weft_op_list_choice(list, at));
        if (!hold && o->call.name[0] != 'w')
            fprintf(stderr, "%s %s: %s\n", o->call.name, o->text,
                    op_choice_text(weft_op_list_choice(list, at), true));
    }
    counted.calls++;
    numbers_end(&n);
    weft_op_list_release(&list);
    return hold;
}

/* Run the proposal for a call; false: it gives wrong numbers. */
static bool run_proposal(struct random *r, op_text *o, const struct op_case *c, int64_t range)
{
    struct numbers n = {.call = &o->call,
                        .kernel = c->kernel,
                        .inputs = (uint32_t)o->call.input_count,
                        .seed = (uint64_t)random_in(r, 0, 1 << 30)};
    weft_op_choice *choice = NULL;
    bool hold;

    ck_assert_msg(weft_op_propose(&o->call, NULL, &choice) == WEFT_OK, "%s", weft_last_error());
    numbers_fill(&n, range, c->least);
    numbers_whole(&n, choice);
    hold = numbers_hold(&n, choice);
    if (!hold) fprintf(stderr, "proposed: %s\n", op_choice_text(choice, true));
    counted.proposals++;
    numbers_end(&n);
    weft_op_choice_release(&choice);
    return hold;
}

/* One random call of case C under NAME: its strategies, at most MOST; 0: its proposal for random
 * layouts. */
static bool run_case(struct random *r, const struct op_case *c, const char *name, int most)
{
    char mesh[32], shapes[256], inputs[1024];
    int32_t sizes[5], axes = draw_mesh(r, mesh, sizeof mesh);
    int64_t range = c->range != 0 ? c->range : 5;
    op_text o;
    bool hold;

    for (int i = 0; i < 5; i++) {
        sizes[i] = random_in(r, 0, 7);
        if (sizes[i] == 0 && (c->letter != 0 || random_in(r, 0, 2) > 0)) sizes[i] = 5;
        if (sizes[i] == 7) sizes[i] = 1;
    }
    if (c->letter != 0) range = sizes[c->letter - 'a'];
    set_sizes(c->inputs, sizes, shapes, sizeof shapes);
    add_placements(shapes, axes, inputs, sizeof inputs);
    op_begin(&o, name, mesh, inputs, c->attrs, NULL);
    if (most == 0 || random_chance(r, 2)) draw_layouts(r, &o);
    hold = most == 0 ? run_proposal(r, &o, c, range) : run_strategies(r, &o, c, range, most);
    if (!hold && name[0] != 'w') {
        fprintf(stderr, "%s on %s:\n", name, mesh);
        show_inputs(&o);
    }
    op_text_release(&o);
    return hold;
}

TEST(every_strategy_computes_the_right_numbers)
{
    struct random r = random_begin("every_strategy_computes_the_right_numbers");
    int times = test_cases(6);

    for (size_t i = 0; i < WF_COUNT(known); i++)
        for (int j = 0; j < times; j++)
            ck_assert_msg(run_case(&r, &known[i], known[i].name, 40), "%s is wrong", known[i].name);
    fprintf(stderr,
            "%" PRIu64 " calls of %zu operators, %" PRIu64 " strategies (outputs that list sizes: "
            "%" PRIu64 ", that have an owner: %" PRIu64 "): all right\n",
            counted.calls, WF_COUNT(known), counted.strategies, counted.listed, counted.owned);
    ck_assert(counted.listed > 0 && counted.owned > 0);
}

TEST(proposals_compute_the_right_numbers)
{
    struct random r = random_begin("proposals_compute_the_right_numbers");
    int times = test_cases(10);

    for (size_t i = 0; i < WF_COUNT(known); i++)
        for (int j = 0; j < times; j++)
            ck_assert_msg(run_case(&r, &known[i], known[i].name, 0), "%s is wrong", known[i].name);
    fprintf(stderr, "%" PRIu64 " proposals: all right\n", counted.proposals);
}

TEST(wrong_rules_are_caught)
{
    struct random r = random_begin("wrong_rules_are_caught");

    for (size_t i = 0; i < WF_COUNT(wrong); i++) {
        size_t like = 0;
        bool caught = false;
        while (strcmp(known[like].name, wrong[i].like) != 0)
            like++;
        ck_assert_msg(weft_op_replace(wrong[i].rule) == WEFT_OK, "%s", weft_last_error());
        for (int j = 0; j < 40 && !caught; j++)
            caught = !run_case(&r, &known[like], "w", 60);
        ck_assert_msg(caught, "not caught: %s", wrong[i].rule);
        counted.wrong++;
    }
    ck_assert(weft_op_remove("w") == WEFT_OK);
    fprintf(stderr, "%" PRIu64 " wrong rules: all caught\n", counted.wrong);
}
