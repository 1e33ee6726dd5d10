/* mlp.c - the second half of a layer: a norm, and the products of the MLP. */
#include "model/writer.h"

#include <stdio.h>

static bool is_gated(const struct wf_model_writer *w)
{
    return w->model->words[WF_MODEL_GATED] != 0;
}

/* "silu"; the square of relu2 is a part of the kernel of relu. */
static const char *activation(const struct wf_model_writer *w)
{
    static const char *const names[] = {"silu", "gelu", "relu"};

    return names[w->model->words[WF_MODEL_ACTIVATION]];
}

void wf_model_put_activation(struct wf_model_writer *w, const char *name, bool again)
{
    const char *function = activation(w), *result = again ? ".again" : "";
    const char *up = wf_model_suffix(w, WF_PIECE_UP, again);
    const char *gate = wf_model_suffix(w, WF_PIECE_GATE, again);

    if (!is_gated(w)) {
        wf_model_put_layer(w, "f%s%s = %s(u1%s%s)", name, result, function, name, up);
        return;
    }
    wf_model_put_layer(w, "s%s%s = %s(u1%s%s)" WF_FREE, name, result, function, name, up);
    wf_model_put_layer(w, "f%s%s = mul(s%s%s, u3%s%s)", name, result, name, result, name, gate);
}

void wf_model_put_activation_back(struct wf_model_writer *w, const char *name)
{
    const char *function = activation(w), *gradient = is_gated(w) ? "ds" : "df";
    const char *up = wf_model_suffix(w, WF_PIECE_UP, true);
    const char *gate = wf_model_suffix(w, WF_PIECE_GATE, true);

    if (is_gated(w)) {
        wf_model_put_layer(w, "s%s.back = %s(u1%s%s)" WF_FREE, name, function, name, up);
        wf_model_put_layer(w, "du3%s = mul(df%s, s%s.back)", name, name, name);
        wf_model_put_layer(w, "ds%s = mul(df%s, u3%s%s)" WF_FREE, name, name, name, gate);
    }
    if (w->model->words[WF_MODEL_ACTIVATION] == WF_MODEL_RELU2)
        wf_model_put_layer(w, "du1%s = mul(%s%s, u1%s%s)", name, gradient, name, name, up);
    else
        wf_model_put_layer(w, "du1%s = %s_bwd(%s%s, u1%s%s)", name, function, gradient, name, name,
                           up);
}

void wf_model_put_mlp(struct wf_model_writer *w, bool again)
{
    bool up = wf_model_makes(w, WF_PIECE_UP, again);
    bool gate = is_gated(w) && wf_model_makes(w, WF_PIECE_GATE, again);
    const char *active = wf_model_suffix(w, WF_PIECE_ACTIVATION, again);
    const char *weight = wf_model_shared(w, again ? ".b" : ".f"), *end = again ? ".again" : "",
               *from;
    char parts[32], input[32];

    if (wf_model_makes(w, WF_PIECE_NORMS, again))
        wf_model_put_norm(w, 2, "h", wf_model_suffix(w, WF_PIECE_PROJECTION, again), again);
    if (up || gate) {
        snprintf(parts, sizeof parts, "n2s%s", wf_model_suffix(w, WF_PIECE_NORMS, again));
        snprintf(input, sizeof input, "n2%s", end);
        from = wf_model_put_whole(w, parts, input);
        if (up) wf_model_put_product(w, "u1%s = linear(%s, w1%s)", end, from, weight);
        if (gate) wf_model_put_product(w, "u3%s = linear(%s, w3%s)", end, from, weight);
    }
    if (wf_model_makes(w, WF_PIECE_ACTIVATION, again)) wf_model_put_activation(w, "", again);
    if (!wf_model_makes(w, WF_PIECE_DOWN, again)) return;
    wf_model_put_product(w, "f2%s = linear(f%s, w2%s)%s", end, active, weight, w->part);
    wf_model_put_layer(w, "y%s = add(h%s, f2%s%s)", end,
                       wf_model_suffix(w, WF_PIECE_PROJECTION, again),
                       wf_model_put_dropout(w, "f2", end), end);
}

void wf_model_put_mlp_back(struct wf_model_writer *w)
{
    static const struct wf_model_product products[] = {{"du1", "w1"}, {"du3", "w3"}};
    const char *dy;
    char active[32], masked[32];

    snprintf(masked, sizeof masked, "dy%s",
             wf_model_put_dropout_back(w, "dy", "f2", WF_PIECE_DOWN));
    dy = wf_model_put_whole(w, masked, "dy.whole");
    snprintf(active, sizeof active, "f%s", wf_model_suffix(w, WF_PIECE_ACTIVATION, true));
    wf_model_put_product(w, "df = matmul(%s, w2%s)", dy, wf_model_shared(w, ".b"));
    wf_model_put_gradient(w, "w2", "bsn,bsk->nk", dy, active);
    wf_model_put_activation_back(w, "");
    wf_model_put_inputs_back(w, 2, WF_PIECE_UP, products, is_gated(w) ? 2 : 1);
    wf_model_put_norm_back(w, 2, "h", wf_model_suffix(w, WF_PIECE_PROJECTION, true), "dh1");
    wf_model_put_layer(w, "dh = add(dy, dh1)");
}
