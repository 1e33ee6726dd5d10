/* names.c - operators by the names of callers: the form in place, the form on lists, and PyTorch's
 * names. */
#include "registry.h"

#include "weft/ops.h"

#include <string.h>

/* PyTorch's operators that have another name here.  NAME_backward is our name of NAME with "_bwd",
 * unless it stands here. */
static const struct {
    const char *theirs, *ours;
} renamed[] = {
    {"__ilshift__", "bitwise_left_shift"},
    {"__irshift__", "bitwise_right_shift"},
    {"__ixor__", "bitwise_xor"},
    {"__lshift__", "bitwise_left_shift"},
    {"__rshift__", "bitwise_right_shift"},
    {"__xor__", "bitwise_xor"},
    {"_adaptive_avg_pool2d", "adaptive_avg_pool"},
    {"_adaptive_avg_pool3d", "adaptive_avg_pool"},
    {"_batch_norm_with_update", "batch_norm"},
    {"_batch_norm_with_update_functional", "batch_norm"},
    {"_conj", "conj"},
    {"_fft_c2c", "fft"},
    {"_fft_c2r", "irfft"},
    {"_fft_r2c", "rfft"},
    {"_foreach_powsum", "foreach_powsum"},
    {"_fused_adam", "adam"},
    {"_fused_adamw", "adamw"},
    {"_fused_rms_norm", "rms_norm"},
    {"_fused_sgd", "sgd"},
    {"_grouped_mm", "grouped_mm"},
    {"_index_put_impl", "index_put"},
    {"_linalg_det", "det"},
    {"_linalg_eigh", "eigh"},
    {"_linalg_slogdet", "slogdet"},
    {"_linalg_solve_ex", "solve_ex"},
    {"_linalg_svd", "svd"},
    {"_local_scalar_dense", "item"},
    {"_log_softmax_backward_data", "log_softmax_bwd"},
    {"_native_batch_norm_legit", "batch_norm"},
    {"_native_batch_norm_legit_functional", "batch_norm"},
    {"_native_batch_norm_legit_no_training", "batch_norm"},
    {"_safe_softmax", "safe_softmax"},
    {"_scaled_dot_product_cudnn_attention", "sdpa"},
    {"_scaled_dot_product_efficient_attention", "sdpa"},
    {"_scaled_dot_product_flash_attention", "sdpa"},
    {"_scaled_dot_product_flash_attention_for_cpu", "sdpa"},
    {"_scaled_mm", "scaled_mm"},
    {"_softmax", "softmax"},
    {"_softmax_backward_data", "softmax_bwd"},
    {"_to_copy", "cast"},
    {"_unsafe_view", "reshape"},
    {"adaptive_avg_pool1d", "adaptive_avg_pool"},
    {"binary_cross_entropy_with_logits", "bce_with_logits"},
    {"conj_physical", "conj_physical"},
    {"constant_pad_nd", "pad"},
    {"convert_element_type", "cast"},
    {"convolution", "conv"},
    {"copy_to", "copy"},
    {"diag", "diagonal"},
    {"embedding_dense_backward", "embedding_bwd"},
    {"erfcx", "special_erfcx"},
    {"expand_copy", "expand"},
    {"grid_sampler_2d", "grid_sample"},
    {"grid_sampler_3d", "grid_sample"},
    {"is_same_size", "equal"},
    {"linalg__powsum", "powsum"},
    {"linalg_cholesky_ex", "cholesky_ex"},
    {"linalg_cross", "cross"},
    {"linalg_eig", "eig"},
    {"linalg_householder_product", "householder_product"},
    {"linalg_inv_ex", "inv_ex"},
    {"linalg_ldl_factor_ex", "ldl_factor_ex"},
    {"linalg_ldl_solve", "ldl_solve"},
    {"linalg_lu", "lu"},
    {"linalg_lu_factor_ex", "lu_factor_ex"},
    {"linalg_lu_solve", "lu_solve"},
    {"linalg_matrix_exp", "matrix_exp"},
    {"linalg_pinv", "pinv"},
    {"linalg_qr", "qr"},
    {"linalg_solve_triangular", "solve_triangular"},
    {"linalg_vector_norm", "norm"},
    {"native_batch_norm", "batch_norm"},
    {"native_dropout", "dropout"},
    {"native_group_norm", "group_norm"},
    {"native_layer_norm", "layer_norm"},
    {"ndtri", "special_ndtri"},
    {"nll_loss2d_backward", "nll_loss_bwd"},
    {"nll_loss2d_forward", "nll_loss"},
    {"nll_loss_forward", "nll_loss"},
    {"normal_functional", "normal"},
    {"rrelu_with_noise", "rrelu"},
    {"rrelu_with_noise_functional", "rrelu"},
    {"special_i0e", "i0"},
    {"special_i1", "i0"},
    {"special_i1e", "i0"},
    {"split_with_sizes_copy", "split"},
    {"to", "cast"},
    {"view_of", "alias"},
    {"zeta", "special_zeta"},
};

/* Families: all names that begin so.  backward: the operator of their gradients; NULL: ours with
 * "_bwd". */
static const struct {
    const char *begin, *ours, *backward;
} families[] = {
    {"special_bessel", "special_bessel", NULL},
    {"bessel", "special_bessel", NULL},
    {"special_spherical", "special_bessel", NULL},
    {"spherical_bessel", "special_bessel", NULL},
    {"special_modified", "special_bessel", NULL},
    {"special_scaled_modified", "special_bessel", NULL},
    {"special_chebyshev", "special_polynomial2", NULL},
    {"special_hermite", "special_polynomial2", NULL},
    {"special_laguerre", "special_polynomial2", NULL},
    {"special_legendre", "special_polynomial2", NULL},
    {"special_shifted_chebyshev", "special_polynomial2", NULL},
    {"upsample", "interpolate", NULL},
    {"fractional_max_pool", "max_unpool", "max_pool_bwd"},
    {"adaptive_max_pool", "adaptive_max_pool", "max_pool_bwd"},
    {"max_pool", "max_pool", NULL},
    {"avg_pool", "avg_pool", NULL},
    {"max_unpool", "max_unpool", NULL},
};

/* Overloads that are operators of their own here: those that begin so. */
static const struct {
    const char *theirs, *overload, *ours;
} overloads[] = {
    {"max", "dim", "max_dim"},
    {"max", "names_dim", "max_dim"},
    {"max", "other", "maximum"},
    {"max", "out", "maximum"},
    {"min", "dim", "min_dim"},
    {"min", "names_dim", "min_dim"},
    {"min", "other", "minimum"},
    {"min", "out", "minimum"},
    {"median", "dim", "median_dim"},
    {"median", "names_dim", "median_dim"},
    {"nanmedian", "dim", "nanmedian_dim"},
    {"nanmedian", "names_dim", "nanmedian_dim"},
    {"view", "dtype", "view_dtype"},
    {"pow", "Tensor_Scalar", "pow_scalar"},
    {"masked_fill", "Tensor", "masked_fill_tensor"},
    {"scatter", "value", "scatter_value"},
    {"lerp", "Scalar", "lerp_scalar"},
    {"clamp", "Tensor", "clamp_tensor"},
    {"clip", "Tensor", "clamp_tensor"},
    {"clamp_min", "Tensor", "clamp_min_tensor"},
    {"clamp_max", "Tensor", "clamp_max_tensor"},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *find_renamed(const char *name)
{
    for (size_t i = 0; i < WF_COUNT(renamed); i++)
        if (strcmp(renamed[i].theirs, name) == 0) return renamed[i].ours;
    return NULL;
}

/* Append TEXT to OUT, which has BYTES; longer names are cut and then not found. */
static void append(char *out, size_t bytes, const char *text)
{
    size_t used = strlen(out), length = strlen(text);

    if (length >= bytes - used) length = bytes - used - 1;
    memcpy(out + used, text, length);
    out[used + length] = '\0';
}

/* The name here of the gradients of BASE; NULL: BASE is not NAME_backward.  Reads "_NAME" as
 * "NAME". */
static const char *find_backward(const char *base, char *room, size_t bytes)
{
    static const char end[] = "_backward";
    size_t length = strlen(base), more = sizeof end - 1;
    const char *ours, *name = room;

    if (length <= more || length >= bytes || strcmp(base + length - more, end) != 0) return NULL;
    if (wf_op_find(base) != NULL) return base; /* a rule of the program */
    memcpy(room, base, length - more);
    room[length - more] = '\0';
    ours = find_renamed(room);
    if (room[0] == '_') name++;
    for (size_t i = 0; i < WF_COUNT(families) && ours == NULL; i++) {
        if (!begins(name, families[i].begin)) continue;
        if (families[i].backward != NULL) return families[i].backward;
        ours = families[i].ours;
    }
    if (ours == NULL) ours = name;
    memmove(room, ours, strlen(ours) + 1);
    append(room, bytes, "_bwd");
    return room;
}

/* The name here of BASE, which has no leading or trailing "_". */
static const char *find_base(const char *base, const char *overload, char *room, size_t bytes)
{
    bool scalar = strcmp(overload, "Scalar") == 0 || begins(overload, "Scalar_") ||
                  strcmp(overload, "ScalarList") == 0 || strcmp(overload, "Tensor_Scalar") == 0;
    size_t length = strlen(base);

    for (size_t i = 0; i < WF_COUNT(overloads); i++)
        if (strcmp(overloads[i].theirs, base) == 0 && begins(overload, overloads[i].overload))
            return overloads[i].ours;
    for (size_t i = 0; i < WF_COUNT(families); i++)
        if (begins(base, families[i].begin)) return families[i].ours;
    if (scalar && length + 8 < bytes) {
        memcpy(room, base, length);
        memcpy(room + length, "_scalar", 8);
        if (wf_op_find(room) != NULL) return room;
    }
    return base;
}

const char *wf_op_foreign_name(const char *name, char *out, size_t bytes)
{
    char base[128], room[128];
    const char *at, *overload, *ours;
    size_t length;
    bool in_place;

    if (name[0] != 'a' && name[0] != 'p') return name;
    if ((!begins(name, "aten.") && !begins(name, "prims.")) || wf_op_find(name) != NULL)
        return name;
    at = strchr(name, '.');
    length = strcspn(at + 1, ".");
    if (length == 0 || length >= sizeof base) return name;
    memcpy(base, at + 1, length);
    base[length] = '\0';
    overload = at[1 + length] == '.' ? at + 2 + length : "";
    out[0] = '\0';
    ours = find_renamed(base);
    in_place = ours == NULL && length > 2 && base[length - 1] == '_' && base[length - 2] != '_';
    if (in_place) base[length - 1] = '\0';
    if (ours == NULL) ours = find_renamed(base);
    if (ours == NULL) ours = find_backward(base, room, sizeof room);
    if (ours == NULL && begins(base, "_foreach_")) {
        append(out, bytes, "foreach_");
        ours = find_base(base + 9, overload, room, sizeof room);
    }
    if (ours == NULL) ours = find_base(base + (base[0] == '_'), overload, room, sizeof room);
    append(out, bytes, ours);
    if (in_place) append(out, bytes, "_");
    length = strlen(overload);
    if ((length >= 3 && strcmp(overload + length - 3, "out") == 0) ||
        strcmp(overload, "grad_input") == 0)
        append(out, bytes, ".out");
    return out;
}

const struct wf_op_entry *wf_op_find_form(const char *name)
{
    const struct wf_op_entry *entry = wf_op_find(name);
    size_t length = strlen(name), more; /* letters behind the operator's name */
    char base[128];

    if (entry != NULL) return entry;
    if (begins(name, "foreach_")) return wf_op_find_form(name + 8);
    more = length > 4 && strcmp(name + length - 4, ".out") == 0 ? 4 : 1;
    if (length < 2 || length >= sizeof base || (more == 1 && name[length - 1] != '_')) return NULL;
    memcpy(base, name, length - more);
    base[length - more] = '\0';
    return wf_op_find(base);
}

weft_status wf_op_describe(const char *function, const char *name, wf_op_describer *add, char *text,
                           size_t size, size_t *needed)
{
    const struct wf_op_entry *op;
    struct wf_text out = {0};
    char ours[128];
    weft_status status = WEFT_OK;
    uint32_t ticket;

    if (name == NULL) return wf_fail_null(function, "name");
    if (size > 0 && text == NULL) return wf_fail_null(function, "text");
    WF_TRY(wf_op_enter(&ticket));
    name = wf_op_foreign_name(name, ours, sizeof ours);
    op = wf_op_find_form(name);
    if (op != NULL)
        add(op, name, &out);
    else
        status = wf_op_refuse_name(function, name);
    wf_op_leave(ticket);
    return status == WEFT_OK ? wf_text_copy_out(&out, text, size, needed) : status;
}

static void add_rules(const struct wf_op_entry *op, const char *name, struct wf_text *out)
{
    (void)name;
    for (uint32_t i = 0; i < op->rule_count; i++)
        wf_text_add(out, "%s%.*s%s", i > 0 ? "\n" : "", (int)op->length, op->name,
                    op->rules[i]->body);
}

weft_status weft_op_print(const char *name, char *text, size_t size, size_t *needed)
{
    return wf_op_describe("weft_op_print", name, add_rules, text, size, needed);
}
