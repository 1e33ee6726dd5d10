/* attention.c - the first half of a layer: a norm, queries, keys and values, attention, and the
 * product behind it.
 *
 * Flash attention is one line.  With attention=scores the scores are tensors, as in programs of
 * before 2022, and there is dropout of them and of each half.  Ranks of cp gather the keys and
 * values of the sequence. */
#include "model/writer.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_fused(const struct wf_model_writer *w) /* queries, keys and values are one product */
{
    return w->model->sizes[WF_MODEL_HEADS] == w->model->sizes[WF_MODEL_KEY_HEADS];
}

static bool rotates(const struct wf_model_writer *w)
{
    return w->model->kind != WF_MODEL_GPT;
}

static bool has_scores(const struct wf_model_writer *w)
{
    return w->model->words[WF_MODEL_SCORES] != 0;
}

/* Placements of [sample, head, token, depth]; TOKENS: of cp. */
static const char *place_heads(const struct wf_model_writer *w, int32_t tokens, char *out,
                               size_t size)
{
    struct wf_model_split split = {
        .dims = {[WF_AXIS_DP] = 0, [WF_AXIS_EP] = 0, [WF_AXIS_CP] = tokens, [WF_AXIS_TP] = 1}};

    wf_model_place(w, &split, out, size);
    return out;
}

/* ---- forward ---- */

/* NAME, of [sequence, sample, head, depth], as [sample, head, sequence, depth]. */
static void put_heads(struct wf_model_writer *w, const char *name, const char *from, bool rotated,
                      const char *r)
{
    if (!rotated) {
        wf_model_put_layer(w, "%s%s = permute(%s%s, order=[1,2,0,3])", name, r, from, r);
        return;
    }
    wf_model_put_layer(w, "%s1%s = transpose(%s%s, dims=[0,1])", name, r, from, r);
    wf_model_put_layer(w, "%s2%s = rope(%s1%s, cos, sin, z=2)", name, r, name, r);
    wf_model_put_layer(w, "%s%s = transpose(%s2%s, dims=[1,2])", name, r, name, r);
}

/* Queries, keys and values from one product. */
static void put_fused(struct wf_model_writer *w, const char *input, const char *r,
                      const char *weight)
{
    const int64_t *sizes = w->model->sizes;

    wf_model_put_product(w, "qkv%s = linear(%s, wqkv%s)", r, input, weight);
    wf_model_put_layer(
        w, "qkv5%s = reshape(qkv%s, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 ",3,%" PRId64 "])", r,
        r, w->sequence, w->samples, sizes[WF_MODEL_HEADS], sizes[WF_MODEL_HEAD_DIM]);
    wf_model_put_layer(w, "q0%s = select(qkv5%s, dim=3, index=0)", r, r);
    wf_model_put_layer(w, "k0%s = select(qkv5%s, dim=3, index=1)", r, r);
    wf_model_put_layer(w, "v0%s = select(qkv5%s, dim=3, index=2)", r, r);
}

static void put_queries(struct wf_model_writer *w, const char *input, const char *r,
                        const char *weight)
{
    const int64_t *sizes = w->model->sizes;

    wf_model_put_product(w, "qp%s = linear(%s, wq%s)", r, input, weight);
    wf_model_put_layer(
        w, "q0%s = reshape(qp%s, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "])", r, r,
        w->sequence, w->samples, sizes[WF_MODEL_HEADS], sizes[WF_MODEL_HEAD_DIM]);
}

static void put_keys(struct wf_model_writer *w, const char *input, const char *r,
                     const char *weight)
{
    const int64_t *sizes = w->model->sizes;

    wf_model_put_product(w, "kv%s = linear(%s, wkv%s)", r, input, weight);
    wf_model_put_layer(
        w, "kv5%s = reshape(kv%s, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 ",2,%" PRId64 "])", r, r,
        w->sequence, w->samples, sizes[WF_MODEL_KEY_HEADS], sizes[WF_MODEL_HEAD_DIM]);
    wf_model_put_layer(w, "k0%s = select(kv5%s, dim=3, index=0)", r, r);
    wf_model_put_layer(w, "v0%s = select(kv5%s, dim=3, index=1)", r, r);
}

static void put_products(struct wf_model_writer *w, const char *input, bool again)
{
    bool queries = wf_model_makes(w, WF_PIECE_QUERIES, again);
    bool keys = wf_model_makes(w, WF_PIECE_KEYS, again);
    const char *r = again ? ".again" : "", *weight = wf_model_shared(w, again ? ".b" : ".f");

    if (is_fused(w)) put_fused(w, input, r, weight);
    if (queries && !is_fused(w)) put_queries(w, input, r, weight);
    if (keys && !is_fused(w)) put_keys(w, input, r, weight);
    if (queries) put_heads(w, "q", "q0", rotates(w), r);
    if (keys) put_heads(w, "k", "k0", rotates(w), r);
    if (keys) put_heads(w, "v", "v0", false, r);
}

/* A ring brings keys and values part by part, beside the attention to the parts that are there. */
static const char *pieces(const struct wf_model_writer *w)
{
    return w->ring ? " ; pieces" : "";
}

/* The keys and values of the whole sequence, if ranks of cp have parts. */
static const char *put_whole_keys(struct wf_model_writer *w, const char *from, const char *suffix)
{
    char placements[96];

    if (w->sizes[WF_AXIS_CP] == 0) return from;
    (void)place_heads(w, WF_ALL, placements, sizeof placements);
    wf_model_put_layer(w, "kc%s = move(k%s) ; to %s%s", suffix, from, placements, pieces(w));
    wf_model_put_layer(w, "vc%s = move(v%s) ; to %s%s", suffix, from, placements, pieces(w));
    return suffix;
}

/* "k" or, gathered, "kc" */
static const char *keys_name(const struct wf_model_writer *w)
{
    return w->sizes[WF_AXIS_CP] == 0 ? "" : "c";
}

static void put_kernel(struct wf_model_writer *w, bool again)
{
    const int64_t *sizes = w->model->sizes;
    const char *r = wf_model_suffix(w, WF_PIECE_ATTENTION, again), *c = keys_name(w);
    const char *q = wf_model_suffix(w, WF_PIECE_QUERIES, again);
    const char *keys = wf_model_suffix(w, WF_PIECE_KEYS, again), *k;

    if (!has_scores(w)) {
        k = put_whole_keys(w, keys, r);
        if (is_fused(w))
            wf_model_put_layer(w, "o%s, l%s = sdpa(q%s, k%s%s, v%s%s, causal=true)", r, r, q, c, k,
                               c, k);
        else
            wf_model_put_layer(
                w, "o%s, l%s = sdpa_gqa(q%s, k%s%s, v%s%s, r=%" PRId64 ", causal=true)", r, r, q, c,
                k, c, k, sizes[WF_MODEL_HEADS] / sizes[WF_MODEL_KEY_HEADS]);
        return;
    }
    k = put_whole_keys(w, keys, r);
    wf_model_put_layer(w, "kt%s = transpose(k%s%s, dims=[2,3])", r, c, k);
    wf_model_put_layer(w, "sc%s = matmul(q%s, kt%s)", r, q, r);
    wf_model_put_layer(w, "p%s = softmax(sc%s, dim=-1)", r, r);
    wf_model_put_layer(w, "pd%s, pm%s = dropout(p%s, p=0.1)", r, r, r);
    wf_model_put_layer(w, "o%s = matmul(pd%s, v%s%s)", r, r, c, k);
}

/* The outputs of all heads as [sequence, sample, feature]: views. */
static void put_outputs(struct wf_model_writer *w, const char *result, const char *from)
{
    const int64_t *sizes = w->model->sizes;

    wf_model_put_layer(w, "o1%s = permute(o%s, order=[2,0,1,3])", result, from);
    wf_model_put_layer(w, "o2%s = reshape(o1%s, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 "])",
                       result, result, w->sequence, w->samples,
                       sizes[WF_MODEL_HEADS] * sizes[WF_MODEL_HEAD_DIM]);
}

void wf_model_put_attention(struct wf_model_writer *w, bool again)
{
    const char *r = again ? ".again" : "";
    char input[32], parts[32];

    if (wf_model_makes(w, WF_PIECE_NORMS, again)) wf_model_put_norm(w, 1, "x", "", again);
    if (wf_model_makes(w, WF_PIECE_QUERIES, again) || wf_model_makes(w, WF_PIECE_KEYS, again)) {
        snprintf(parts, sizeof parts, "n1s%s", wf_model_suffix(w, WF_PIECE_NORMS, again));
        snprintf(input, sizeof input, "n1%s", r);
        put_products(w, wf_model_put_whole(w, parts, input), again);
    }
    if (wf_model_makes(w, WF_PIECE_ATTENTION, again)) put_kernel(w, again);
    if (again) put_outputs(w, ".again", wf_model_suffix(w, WF_PIECE_ATTENTION, true));
    if (!wf_model_makes(w, WF_PIECE_PROJECTION, again)) return;
    if (!again) put_outputs(w, "", "");
    wf_model_put_product(w, "a%s = linear(o2%s, wo%s)%s", r, r,
                         wf_model_shared(w, again ? ".b" : ".f"), w->part);
    wf_model_put_layer(w, "h%s = add(x, a%s%s)", r, wf_model_put_dropout(w, "a", r), r);
}

/* ---- backward ---- */

static void put_scores_back(struct wf_model_writer *w, const char *q, const char *k, const char *a)
{
    const char *c = keys_name(w);

    wf_model_put_layer(w, "vt = transpose(v%s%s, dims=[2,3])", c, k);
    wf_model_put_layer(w, "dpd = matmul(do, vt)");
    wf_model_put_layer(w, "pt = transpose(pd%s, dims=[2,3])", a);
    wf_model_put_layer(w, "dv%s = matmul(pt, do)", c);
    wf_model_put_layer(w, "dp0 = dropout_bwd(dpd, pm%s, p=0.1)", a);
    wf_model_put_layer(w, "dsc = softmax_bwd(dp0, p%s, dim=-1)", a);
    wf_model_put_layer(w, "dq = matmul(dsc, k%s%s)", c, k);
    wf_model_put_layer(w, "dsct = transpose(dsc, dims=[2,3])");
    wf_model_put_layer(w, "dk%s = matmul(dsct, q%s)", c, q);
}

static void put_kernel_back(struct wf_model_writer *w)
{
    const int64_t *sizes = w->model->sizes;
    const char *q = wf_model_suffix(w, WF_PIECE_QUERIES, true), *c = keys_name(w), *k;
    const char *keys = wf_model_suffix(w, WF_PIECE_KEYS, true);
    const char *a = wf_model_suffix(w, WF_PIECE_ATTENTION, true);
    char placements[96];

    /* What the pass computes again has its gathered keys already. */
    k = wf_model_makes(w, WF_PIECE_ATTENTION, true) && c[0] != '\0'
            ? a
            : put_whole_keys(w, keys, ".back");
    if (has_scores(w))
        put_scores_back(w, q, k, a);
    else if (is_fused(w))
        wf_model_put_layer(w,
                           "dq, dk%s, dv%s = sdpa_bwd(do, q%s, k%s%s, v%s%s, o%s, l%s, "
                           "causal=true)",
                           c, c, q, c, k, c, k, a, a);
    else
        wf_model_put_layer(w,
                           "dq, dk%s, dv%s = sdpa_gqa_bwd(do, q%s, k%s%s, v%s%s, o%s, l%s, "
                           "r=%" PRId64 ", causal=true)",
                           c, c, q, c, k, c, k, a, a,
                           sizes[WF_MODEL_HEADS] / sizes[WF_MODEL_KEY_HEADS]);
    if (c[0] == '\0') return;
    (void)place_heads(w, 2, placements, sizeof placements);
    wf_model_put_layer(w, "dk = move(dkc) ; to %s%s", placements, pieces(w));
    wf_model_put_layer(w, "dv = move(dvc) ; to %s%s", placements, pieces(w));
}

/* The gradient of NAME0 from that of NAME. */
static void put_heads_back(struct wf_model_writer *w, const char *name, bool rotated)
{
    if (!rotated) {
        wf_model_put_layer(w, "d%s0 = permute(d%s, order=[2,0,1,3])", name, name);
        return;
    }
    wf_model_put_layer(w, "d%s2 = transpose(d%s, dims=[1,2])", name, name);
    wf_model_put_layer(w, "d%s1 = rope(d%s2, cos, sin, z=2)", name,
                       name); /* with the sine negated */
    wf_model_put_layer(w, "d%s0 = transpose(d%s1, dims=[0,1])", name, name);
}

static void put_products_back(struct wf_model_writer *w)
{
    static const struct wf_model_product fused[] = {{"dqkv", "wqkv"}},
                                         grouped[] = {{"dqp", "wq"}, {"dkv", "wkv"}};
    const int64_t *sizes = w->model->sizes;
    int64_t dim = sizes[WF_MODEL_HEAD_DIM], s = w->sequence, b = w->samples;
    int64_t queries = dim * sizes[WF_MODEL_HEADS], keys = dim * sizes[WF_MODEL_KEY_HEADS];

    if (is_fused(w)) {
        wf_model_put_layer(w, "dqkv5 = stack(dq0, dk0, dv0, dim=3)" WF_FREE);
        wf_model_put_layer(w, "dqkv = reshape(dqkv5, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 "])",
                           s, b, 3 * queries);
        wf_model_put_inputs_back(w, 1, WF_PIECE_QUERIES, fused, 1);
        return;
    }
    wf_model_put_layer(w, "dqp = reshape(dq0, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 "])", s, b,
                       queries);
    wf_model_put_layer(w, "dkv5 = stack(dk0, dv0, dim=3)" WF_FREE);
    wf_model_put_layer(w, "dkv = reshape(dkv5, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 "])", s, b,
                       2 * keys);
    wf_model_put_inputs_back(w, 1, WF_PIECE_QUERIES, grouped, 2);
}

void wf_model_put_attention_back(struct wf_model_writer *w)
{
    const int64_t *sizes = w->model->sizes;
    const char *dh;
    char masked[32];

    snprintf(masked, sizeof masked, "dh%s",
             wf_model_put_dropout_back(w, "dh", "a", WF_PIECE_PROJECTION));
    dh = wf_model_put_whole(w, masked, "dh.whole");
    wf_model_put_product(w, "do2 = matmul(%s, wo%s)", dh, wf_model_shared(w, ".b"));
    wf_model_put_gradient(w, "wo", "bsn,bsk->nk", dh, "o2.again");
    wf_model_put_layer(
        w, "do1 = reshape(do2, shape=[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "])",
        w->sequence, w->samples, sizes[WF_MODEL_HEADS], sizes[WF_MODEL_HEAD_DIM]);
    wf_model_put_layer(w, "do = permute(do1, order=[1,2,0,3])");
    put_kernel_back(w);
    put_heads_back(w, "q", rotates(w));
    put_heads_back(w, "k", rotates(w));
    put_heads_back(w, "v", false);
    put_products_back(w);
    wf_model_put_norm_back(w, 1, "x", "", "dx1");
    wf_model_put_layer(w, "dx = add(dh, dx1)");
}
