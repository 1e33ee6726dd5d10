/* experts.c - the second half of a layer with experts: every expert gets the same number of tokens,
 * which two exchanges along ep bring there and back.
 *
 * Tokens of experts are [expert, token, feature].  The router's share of the gradient of its input
 * is not computed: it is a product with as many columns as there are experts. */
#include "model/writer.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_gated(const struct wf_model_writer *w)
{
    return w->model->words[WF_MODEL_GATED] != 0;
}

static bool has_shared(const struct wf_model_writer *w)
{
    return w->model->sizes[WF_MODEL_SHARED] > 0;
}

/* `moe_copies` copies each token for each of its experts, in the order of experts, and `moe_sum`
 * adds their results up. */
void wf_model_put_rules(struct wf_model_writer *w)
{
    wf_model_put(w, "rule moe_copies(e,c): x[s b h] p[s b j] -> y[e (b c) h]; whole s j e c; "
                    "size e e; size c c; lin x");
    wf_model_put(w, "rule moe_sum: y[e (b c) h] p[s b j] -> x[s b h]; whole e c s j; lin y");
}

/* Placements of tokens by expert: at their experts, or at their own ranks; SUM: contributions of
 * tp. */
static const char *place(const struct wf_model_writer *w, bool at_experts, bool sum, char *out,
                         size_t size)
{
    struct wf_model_split split = {.dims = {[WF_AXIS_DP] = 1,
                                            [WF_AXIS_CP] = WF_ALL,
                                            [WF_AXIS_EP] = at_experts ? 0 : 1,
                                            [WF_AXIS_TP] = sum ? WF_SUM : WF_ALL}};

    wf_model_place(w, &split, out, size);
    return out;
}

/* RESULT: the tokens FROM, copied and brought to their experts. */
static void put_dispatch(struct wf_model_writer *w, const char *result, const char *from,
                         const char *router)
{
    const int64_t *sizes = w->model->sizes;
    char placements[96];

    wf_model_put_layer(w, "%s.copies = moe_copies(%s, p%s, e=%" PRId64 ", c=%" PRId64 ")", result,
                       from, router, sizes[WF_MODEL_EXPERTS],
                       w->sequence * sizes[WF_MODEL_ACTIVE] / sizes[WF_MODEL_EXPERTS]);
    wf_model_put_layer(w, "%s = move(%s.copies) ; to %s", result, result,
                       place(w, true, false, placements, sizeof placements));
}

/* RESULT: the sum of the results FROM of each token's experts. */
static void put_combine(struct wf_model_writer *w, const char *result, const char *from,
                        const char *router)
{
    char placements[96];

    wf_model_put_layer(w, "%s.copies = move(%s) ; to %s", result, from,
                       place(w, false, w->sizes[WF_AXIS_TP] > 1, placements, sizeof placements));
    wf_model_put_layer(w, "%s = moe_sum(%s.copies, p%s)", result, result, router);
}

/* The input of the router and of the shared experts is used again. */
static bool needs_input(const struct wf_model_writer *w, bool again)
{
    return wf_model_makes(w, WF_PIECE_UP, again) ||
           (has_shared(w) && is_gated(w) && wf_model_makes(w, WF_PIECE_GATE, again));
}

/* The first products of the experts, with the router and the dispatch. */
static void put_up(struct wf_model_writer *w, bool again)
{
    bool up = wf_model_makes(w, WF_PIECE_UP, again);
    bool gate = is_gated(w) && wf_model_makes(w, WF_PIECE_GATE, again);
    const char *r = again ? ".again" : "", *weight = wf_model_shared(w, again ? ".b" : ".f");
    const char *from = "";
    char parts[32], input[32], tokens[32];

    snprintf(parts, sizeof parts, "n2s%s", wf_model_suffix(w, WF_PIECE_NORMS, again));
    snprintf(input, sizeof input, "n2%s", r);
    snprintf(tokens, sizeof tokens, "t%s", wf_model_suffix(w, WF_PIECE_UP, again));
    if (needs_input(w, again)) from = wf_model_put_whole(w, parts, input);
    if (up) {
        wf_model_put_layer(w, "p0%s = linear(%s, wr%s)", r, from, weight);
        wf_model_put_layer(w, "p%s = softmax(p0%s, dim=-1)", r, r);
        put_dispatch(w, tokens, from, r);
        wf_model_put_product(w, "u1%s = grouped_mm_3d(%s, w1%s)", r, tokens, weight);
    }
    if (gate) wf_model_put_product(w, "u3%s = grouped_mm_3d(%s, w3%s)", r, tokens, weight);
    if (up && has_shared(w)) wf_model_put_product(w, "u1s%s = linear(%s, ws1%s)", r, from, weight);
    if (gate && has_shared(w))
        wf_model_put_product(w, "u3s%s = linear(%s, ws3%s)", r, from, weight);
}

void wf_model_put_experts(struct wf_model_writer *w, bool again)
{
    const char *active = wf_model_suffix(w, WF_PIECE_ACTIVATION, again),
               *end = again ? ".again" : "";
    const char *weight = wf_model_shared(w, again ? ".b" : ".f");
    const char *h = wf_model_suffix(w, WF_PIECE_PROJECTION, again);
    char name[32], down[32];

    if (wf_model_makes(w, WF_PIECE_NORMS, again)) wf_model_put_norm(w, 2, "h", h, again);
    put_up(w, again);
    if (wf_model_makes(w, WF_PIECE_ACTIVATION, again)) {
        wf_model_put_activation(w, "", again);
        if (has_shared(w)) wf_model_put_activation(w, "s", again);
    }
    if (!wf_model_makes(w, WF_PIECE_DOWN, again)) return;
    snprintf(name, sizeof name, "f3%s", end);
    snprintf(down, sizeof down, "f2%s", end);
    wf_model_put_product(w, "%s = grouped_mm_3d(f%s, w2%s)", down, active, weight);
    put_combine(w, name, down, wf_model_suffix(w, WF_PIECE_UP, again));
    if (has_shared(w)) {
        wf_model_put_product(w, "f4%s = linear(fs%s, ws2%s)", end, active, weight);
        wf_model_put_layer(w, "f5%s = add(f3%s, f4%s)%s", end, end, end, w->part);
    } else {
        wf_model_put_layer(w, "f5%s = move(f3%s)%s", end, end, w->part);
    }
    wf_model_put_layer(w, "y%s = add(h%s, f5%s)", end, h, end);
}

/* ---- backward ---- */

/* The gradient of the expert weight NAME, and that of the product's input by its transpose. */
static void put_product_back(struct wf_model_writer *w, const char *name, const char *gradient,
                             const char *result)
{
    wf_model_put_layer(w, "%st = transpose(%s%s, dims=[1,2])", name, name,
                       wf_model_shared(w, ".b"));
    wf_model_put_product(w, "%s = grouped_mm_3d(%s, %st)", result, gradient, name);
}

/* The gradient of the shared experts, of DY: dn2.s. */
static void put_shared_back(struct wf_model_writer *w, const char *dy)
{
    const char *shared = wf_model_shared(w, ".b");
    char active[32];

    snprintf(active, sizeof active, "fs%s", wf_model_suffix(w, WF_PIECE_ACTIVATION, true));
    wf_model_put_product(w, "dfs = matmul(%s, ws2%s)", dy, shared);
    wf_model_put_gradient(w, "ws2", "bsn,bsk->nk", dy, active);
    wf_model_put_activation_back(w, "s");
    wf_model_put_product(w, "dn2.s%s = matmul(du1s, ws1%s)", is_gated(w) ? "1" : "", shared);
    if (!is_gated(w)) return;
    wf_model_put_product(w, "dn2.s3 = matmul(du3s, ws3%s)", shared);
    wf_model_put_layer(w, "dn2.s = add(dn2.s1, dn2.s3)" WF_FREE);
}

static void put_experts_input_back(struct wf_model_writer *w)
{
    char tokens[32];

    snprintf(tokens, sizeof tokens, "t%s", wf_model_suffix(w, WF_PIECE_UP, true));
    put_product_back(w, "w1", "du1", is_gated(w) ? "dt1" : "dt");
    wf_model_put_gradient(w, "w1", "eth,etf->ehf", tokens, "du1");
    if (!is_gated(w)) return;
    put_product_back(w, "w3", "du3", "dt3");
    wf_model_put_gradient(w, "w3", "eth,etf->ehf", tokens, "du3");
    wf_model_put_layer(w, "dt = add(dt1, dt3)" WF_FREE);
}

/* The input of the router and of the shared experts: gathered again, unless it is there. */
static const char *put_input(struct wf_model_writer *w, char *name, size_t size)
{
    const char *norm = wf_model_suffix(w, WF_PIECE_NORMS, true);
    char parts[32];

    if (w->sizes[WF_AXIS_TP] > 0 && w->in_parts && needs_input(w, true)) {
        snprintf(name, size, "n2.again");
        return name;
    }
    snprintf(parts, sizeof parts, "n2s%s", norm);
    snprintf(name, size, "%s", wf_model_put_whole(w, parts, "n2.back"));
    return name;
}

void wf_model_put_experts_back(struct wf_model_writer *w)
{
    const char *router = wf_model_suffix(w, WF_PIECE_UP, true);
    const char *dy = wf_model_put_whole(w, "dy", "dy.whole"), *input;
    char active[32], name[32];

    snprintf(active, sizeof active, "f%s", wf_model_suffix(w, WF_PIECE_ACTIVATION, true));
    put_dispatch(w, "df2", dy, router);
    put_product_back(w, "w2", "df2", "df");
    wf_model_put_gradient(w, "w2", "etf,eth->efh", active, "df2");
    wf_model_put_activation_back(w, "");
    put_experts_input_back(w);
    put_combine(w, "dn2.e", "dt", router);
    input = put_input(w, name, sizeof name);
    if (has_shared(w)) {
        put_shared_back(w, dy);
        wf_model_put_gradient(w, "ws1", "bsn,bsk->nk", "du1s", input);
        if (is_gated(w)) wf_model_put_gradient(w, "ws3", "bsn,bsk->nk", "du3s", input);
        wf_model_put_layer(w, "dn2 = add(dn2.e, dn2.s)%s", w->part);
    } else {
        wf_model_put_layer(w, "dn2 = move(dn2.e)%s", w->part);
    }
    wf_model_put_layer(w, "dp0 = softmax_bwd(p%s, p%s, dim=-1)", router, router);
    wf_model_put_gradient(w, "wr", "bsn,bsk->nk", "dp0", input);
    wf_model_put_norm_back(w, 2, "h", wf_model_suffix(w, WF_PIECE_PROJECTION, true), "dh1");
    wf_model_put_layer(w, "dh = add(dy, dh1)");
}
