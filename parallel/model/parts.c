/* parts.c - what both halves of a layer have: a norm, dropout, and products of the norm. */
#include "model/writer.h"

#include <stdio.h>

/* ---- norms ---- */

bool wf_model_is_rms(const struct wf_model_writer *w)
{
    return w->model->kind != WF_MODEL_GPT;
}

void wf_model_put_norm(struct wf_model_writer *w, int number, const char *source,
                       const char *source_suffix, bool again)
{
    const char *r = wf_model_suffix(w, WF_PIECE_NORMS, again);
    const char *gain = wf_model_shared(w, again ? ".b" : ".f");

    if (wf_model_is_rms(w))
        wf_model_put_layer(w, "n%ds%s, r%d%s = rms_norm(%s%s, g%d%s, dims=[-1])", number, r, number,
                           r, source, source_suffix, number, gain);
    else
        wf_model_put_layer(w, "n%ds%s, m%d%s, r%d%s = layer_norm(%s%s, g%d%s, -, dims=[-1])",
                           number, r, number, r, number, r, source, source_suffix, number, gain);
}

void wf_model_put_norm_back(struct wf_model_writer *w, int number, const char *source,
                            const char *source_suffix, const char *result)
{
    const char *r = wf_model_suffix(w, WF_PIECE_NORMS, true), *gain = wf_model_shared(w, ".b");
    char name[8];

    if (wf_model_is_rms(w))
        wf_model_put_layer(w, "%s, dg%dp = rms_norm_bwd(dn%d, %s%s, r%d%s, g%d%s, dims=[-1])",
                           result, number, number, source, source_suffix, number, r, number, gain);
    else
        wf_model_put_layer(
            w, "%s, dg%dp = layer_norm_bwd(dn%d, %s%s, m%d%s, r%d%s, g%d%s, -, dims=[-1])", result,
            number, number, source, source_suffix, number, r, number, r, number, gain);
    snprintf(name, sizeof name, "g%d", number);
    wf_model_put_reduction(w, name);
}

/* ---- dropout ---- */

const char *wf_model_put_dropout(struct wf_model_writer *w, const char *name, const char *suffix)
{
    if (!w->model->words[WF_MODEL_SCORES]) return "";
    wf_model_put_layer(w, "%s.kept%s, %s.mask%s = dropout(%s%s, p=0.1)" WF_FREE, name, suffix, name,
                       suffix, name, suffix);
    return ".kept";
}

const char *wf_model_put_dropout_back(struct wf_model_writer *w, const char *gradient,
                                      const char *name, enum wf_model_piece piece)
{
    if (!w->model->words[WF_MODEL_SCORES]) return "";
    wf_model_put_layer(w, "%s.masked = dropout_bwd(%s, %s.mask%s, p=0.1)", gradient, gradient, name,
                       wf_model_suffix(w, piece, true));
    return ".masked";
}

/* ---- products of a half of a layer ---- */

void wf_model_put_inputs_back(struct wf_model_writer *w, int number, enum wf_model_piece piece,
                              const struct wf_model_product *products, int count)
{
    bool in_parts = wf_model_has_tp(w) && w->in_parts;
    bool made =
        wf_model_makes(w, piece, true) || wf_model_makes(w, (enum wf_model_piece)(piece + 1), true);
    const char *last = wf_model_has_tp(w) ? ".sum" : "", *shared = wf_model_shared(w, ".b");
    char input[32];

    snprintf(input, sizeof input, "n%ds%s", number, wf_model_suffix(w, WF_PIECE_NORMS, true));
    if (in_parts && !made) { /* the gather runs beside the first product */
        wf_model_put_layer(w, "n%d.start = start(%s)%s", number, input, w->whole);
        snprintf(input, sizeof input, "n%d.back", number);
    } else if (in_parts) {
        snprintf(input, sizeof input, "n%d.again", number);
    }
    for (int i = 0; i < count && count > 1; i++)
        wf_model_put_product(w, "dn%d.%c = matmul(%s, %s%s)", number, 'a' + i, products[i].gradient,
                             products[i].weight, shared);
    if (count > 1)
        wf_model_put_layer(w, "dn%d%s = add(dn%d.a, dn%d.b)" WF_FREE, number, last, number, number);
    else
        wf_model_put_product(w, "dn%d%s = matmul(%s, %s%s)", number, last, products[0].gradient,
                             products[0].weight, shared);
    if (in_parts && !made) wf_model_put_layer(w, "n%d.back = wait(n%d.start)", number, number);
    if (wf_model_has_tp(w))
        wf_model_put_layer(w, "dn%d.start = start(dn%d.sum)%s", number, number, w->part);
    for (int i = 0; i < count; i++)
        wf_model_put_gradient(w, products[i].weight, "bsn,bsk->nk", products[i].gradient, input);
    if (wf_model_has_tp(w)) wf_model_put_layer(w, "dn%d = wait(dn%d.start)", number, number);
}
