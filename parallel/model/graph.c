/* graph.c - the graph of a microbatch: inputs, layers, loss and optimizer. */
#include "model/writer.h"

#include <inttypes.h>

/* ---- around the layers ---- */

static const char *head_of(const struct wf_model_writer *w)
{
    return w->model->words[WF_MODEL_TIED] ? "emb" : "head";
}

static void put_mesh(struct wf_model_writer *w)
{
    static const char *const names[] = {"dp", "cp", "ep", "tp"};

    wf_text_add(w->out, "mesh ");
    for (int32_t i = 0; i < w->axes; i++)
        wf_text_add(w->out, "%s%s=%d", i > 0 ? "," : "", names[w->order[i]], w->sizes[w->order[i]]);
    if (w->per_host > 0) wf_text_add(w->out, "/%d", w->per_host);
    wf_text_char(w->out, '\n');
}

static void put_inputs(struct wf_model_writer *w)
{
    struct wf_model_split tokens = {
        .dims = {[WF_AXIS_DP] = 0, [WF_AXIS_EP] = 0, [WF_AXIS_CP] = 1, [WF_AXIS_TP] = WF_ALL}};
    struct wf_model_split angles = {
        .dims = {
            [WF_AXIS_DP] = WF_ALL, [WF_AXIS_EP] = WF_ALL, [WF_AXIS_CP] = 0, [WF_AXIS_TP] = WF_ALL}};
    const char *dtype = wf_model_values[WF_MODEL_DTYPE][w->model->words[WF_MODEL_DTYPE]];
    char placements[96];

    wf_model_place(w, &tokens, placements, sizeof placements);
    wf_model_put(w, "input tokens i64[%" PRId64 ",%" PRId64 "] %s", w->samples, w->sequence,
                 placements);
    wf_model_put(w, "input step f32[]");
    if (w->model->kind == WF_MODEL_GPT) return;
    wf_model_place(w, &angles, placements, sizeof placements);
    for (int i = 0; i < 2; i++)
        wf_model_put(w, "input %s %s[%" PRId64 ",%" PRId64 "] %s", i == 0 ? "cos" : "sin", dtype,
                     w->sequence, w->model->sizes[WF_MODEL_HEAD_DIM] / 2, placements);
}

/* Logits that tp splits by the vocabulary, in f32 for the loss: one pass over them for the loss,
 * one for its gradient. */
static void put_loss(struct wf_model_writer *w, const struct wf_model_weights *list)
{
    const char *head = head_of(w), *nf = wf_model_has_tp(w) && w->in_parts ? "nf" : "nfs";

    wf_model_put_gathers(w, list, "gf", ".f");
    wf_model_put_gathers(w, list, head, ".h");
    wf_model_put(w,
                 wf_model_is_rms(w) ? "nfs, rf = rms_norm(y, gf%s, dims=[-1])"
                                    : "nfs, mf, rf = layer_norm(y, gf%s, -, dims=[-1])",
                 wf_model_shared(w, ".f"));
    if (nf[2] == '\0') wf_model_put(w, "nf = move(nfs)%s", w->whole);
    wf_model_put(w, "logits = linear(%s, %s%s)", nf, head, wf_model_shared(w, ".h"));
    wf_model_put(w, "wide = cast(logits, to=f32)" WF_FREE);
    wf_model_put(w, "e = exp(wide)");
    wf_model_put(w, "z = sum(e, dims=[-1])%s", w->whole);
    wf_model_put(w, "output z");
    wf_model_put(w, "phase backward");
    wf_model_put_gathers(w, list, head, ".b");
    wf_model_put_gathers(w, list, "gf", ".b");
    wf_model_put(w, "dwide = mul(e, e)");
    wf_model_put(w, "dlogits = cast(dwide, to=%s)" WF_FREE,
                 wf_model_values[WF_MODEL_DTYPE][w->model->words[WF_MODEL_DTYPE]]);
    wf_model_put(w, "dnf = matmul(dlogits, %s%s)%s", head, wf_model_shared(w, ".b"), w->part);
    wf_model_put_gradient(w, head, "bsn,bsk->nk", "dlogits", nf);
    wf_model_put(w,
                 wf_model_is_rms(w)
                     ? "dy, dgfp = rms_norm_bwd(dnf, y, rf, gf%s, dims=[-1])"
                     : "dy, dgfp = layer_norm_bwd(dnf, y, mf, rf, gf%s, -, dims=[-1])",
                 wf_model_shared(w, ".b"));
    wf_model_put_reduction(w, "gf");
}

/* The gradient of the embedding, unless the head has it. */
static void put_embedding_back(struct wf_model_writer *w)
{
    const char *dx = wf_model_has_tp(w) && w->in_parts ? "dx.whole" : "dx";

    if (w->model->words[WF_MODEL_TIED]) return;
    if (dx[2] == '.') wf_model_put(w, "dx.whole = move(dx)%s", w->whole);
    /* The table is given so that its gradient is split as it is. */
    wf_model_put(w, "dembp = embedding_bwd(%s, words, emb%s, v=%" PRId64 ")", dx,
                 wf_model_shared(w, ".f"), w->model->sizes[WF_MODEL_VOCABULARY]);
    wf_model_put_reduction(w, "emb");
}

/* ---- layers ---- */

static void put_layer(struct wf_model_writer *w, bool again)
{
    w->repeats = again;
    wf_model_put_attention(w, again);
    if (w->model->sizes[WF_MODEL_EXPERTS] > 0)
        wf_model_put_experts(w, again);
    else
        wf_model_put_mlp(w, again);
    w->repeats = false;
}

weft_status wf_model_add_graph(struct wf_model_writer *w)
{
    struct wf_model_weights list;

    wf_model_list_weights(w, &list);
    wf_text_add(w->out, "# ");
    wf_model_add_line(w->model, w->out);
    put_mesh(w);
    if (w->model->sizes[WF_MODEL_EXPERTS] > 0) wf_model_put_rules(w);
    put_inputs(w);
    wf_model_put_weights(w, &list);
    wf_model_put_gathers(w, &list, "emb", ".f");
    wf_model_put(w, "words = transpose(tokens, dims=[0,1])");
    wf_model_put(w, "x = embedding(emb%s, words)%s", wf_model_shared(w, ".f"), w->part);
    wf_model_put_gathers(w, &list, NULL, ".f");
    put_layer(w, false);
    put_loss(w, &list);
    wf_model_put_gathers(w, &list, NULL, ".b");
    put_layer(w, true);
    if (w->model->sizes[WF_MODEL_EXPERTS] > 0)
        wf_model_put_experts_back(w);
    else
        wf_model_put_mlp_back(w);
    wf_model_put_attention_back(w);
    put_embedding_back(w);
    wf_model_put_update(w, &list);
    return wf_text_status(w->out);
}
