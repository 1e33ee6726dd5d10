/* weights.c - the weights of a model, their gradients and the optimizer. */
#include "model/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the list ---- */

static void add(struct wf_model_weights *list, const char *name, bool in_layer, int64_t rows,
                int64_t columns, int32_t tp_dim)
{
    list->entries[list->count++] = (struct wf_model_weight){
        .name = name, .dims = 2, .shape = {rows, columns}, .tp_dim = tp_dim, .in_layer = in_layer};
}

static void add_gain(struct wf_model_weights *list, const char *name, bool in_layer, int64_t size)
{
    list->entries[list->count++] = (struct wf_model_weight){
        .name = name, .dims = 1, .shape = {size}, .tp_dim = WF_ALL, .in_layer = in_layer};
}

static void add_expert(struct wf_model_weights *list, const char *name, int64_t experts,
                       int64_t rows, int64_t columns, int32_t tp_dim)
{
    list->entries[list->count++] = (struct wf_model_weight){.name = name,
                                                            .dims = 3,
                                                            .shape = {experts, rows, columns},
                                                            .tp_dim = tp_dim,
                                                            .in_layer = true,
                                                            .of_experts = true};
}

static void list_attention(const int64_t *sizes, struct wf_model_weights *out)
{
    int64_t hidden = sizes[WF_MODEL_HIDDEN], dim = sizes[WF_MODEL_HEAD_DIM];
    int64_t queries = dim * sizes[WF_MODEL_HEADS], keys = dim * sizes[WF_MODEL_KEY_HEADS];

    if (queries == keys) {
        add(out, "wqkv", true, 3 * queries, hidden, 0);
    } else {
        add(out, "wq", true, queries, hidden, 0);
        add(out, "wkv", true, 2 * keys, hidden, 0);
    }
    add(out, "wo", true, hidden, queries, 1);
}

static void list_mlp(const weft_model *model, struct wf_model_weights *out)
{
    const int64_t *sizes = model->sizes;
    int64_t hidden = sizes[WF_MODEL_HIDDEN], ffn = sizes[WF_MODEL_FFN];
    int64_t experts = sizes[WF_MODEL_EXPERTS], shared = sizes[WF_MODEL_SHARED] * ffn;
    bool gated = model->words[WF_MODEL_GATED];

    if (experts == 0) {
        add(out, "w1", true, ffn, hidden, 0);
        if (gated) add(out, "w3", true, ffn, hidden, 0);
        add(out, "w2", true, hidden, ffn, 1);
        return;
    }
    add(out, "wr", true, experts, hidden, WF_ALL);
    add_expert(out, "w1", experts, hidden, ffn, 2);
    if (gated) add_expert(out, "w3", experts, hidden, ffn, 2);
    add_expert(out, "w2", experts, ffn, hidden, 1);
    if (shared == 0) return;
    add(out, "ws1", true, shared, hidden, 0);
    if (gated) add(out, "ws3", true, shared, hidden, 0);
    add(out, "ws2", true, hidden, shared, 1);
}

void wf_model_list_weights(const struct wf_model_writer *w, struct wf_model_weights *out)
{
    const int64_t *sizes = w->model->sizes;
    int64_t hidden = sizes[WF_MODEL_HIDDEN];

    out->count = 0;
    add(out, "emb", false, sizes[WF_MODEL_VOCABULARY], hidden, 0);
    add_gain(out, "g1", true, hidden);
    list_attention(sizes, out);
    add_gain(out, "g2", true, hidden);
    list_mlp(w->model, out);
    add_gain(out, "gf", false, hidden);
    if (!w->model->words[WF_MODEL_TIED])
        add(out, "head", false, sizes[WF_MODEL_VOCABULARY], hidden, 0);
}

/* ---- layouts ---- */

/* The placements of WEIGHT; SHARED: of what ranks with other samples share of it. */
static const char *place(const struct wf_model_writer *w, const struct wf_model_weight *weight,
                         bool shared, char *out, size_t size)
{
    int32_t dim = weight->tp_dim >= 0 ? weight->tp_dim : 0, others = shared ? dim : WF_ALL;
    struct wf_model_split split = {.dims = {[WF_AXIS_DP] = others,
                                            [WF_AXIS_CP] = others,
                                            [WF_AXIS_EP] = weight->of_experts ? 0 : others,
                                            [WF_AXIS_TP] = weight->tp_dim},
                                   .tp_first = true};

    wf_model_place(w, &split, out, size);
    return out;
}

/* "[8192,4096]" */
static const char *shape_of(const struct wf_model_weight *weight, char *out, size_t size)
{
    size_t used = 0;

    for (int32_t d = 0; d < weight->dims && used < size; d++)
        used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, d > 0 ? "," : "[",
                                 weight->shape[d]);
    if (used < size) snprintf(out + used, size - used, "]");
    return out;
}

static const char *dtype_of(const struct wf_model_writer *w)
{
    return wf_model_values[WF_MODEL_DTYPE][w->model->words[WF_MODEL_DTYPE]];
}

/* Ranks with other samples share the states, and what makes them. */
static bool shares_states(const struct wf_model_writer *w)
{
    return w->sharding != WEFT_MODEL_SHARD_NOTHING;
}

static const char *layer_of(const struct wf_model_writer *w, const struct wf_model_weight *weight)
{
    return weight->in_layer ? w->layer : "";
}

/* ---- parameters ---- */

void wf_model_put_weights(struct wf_model_writer *w, const struct wf_model_weights *list)
{
    char shape[96], placements[96];

    for (int i = 0; i < list->count; i++) {
        const struct wf_model_weight *one = &list->entries[i];
        wf_model_put(w, "param %s %s%s %s%s", one->name, dtype_of(w),
                     shape_of(one, shape, sizeof shape),
                     place(w, one, w->sharding == WEFT_MODEL_SHARD_PARAMETERS, placements,
                           sizeof placements),
                     layer_of(w, one));
    }
}

void wf_model_put_gathers(struct wf_model_writer *w, const struct wf_model_weights *list,
                          const char *name, const char *suffix)
{
    char placements[96];

    for (int i = 0; i < list->count && w->sharding == WEFT_MODEL_SHARD_PARAMETERS; i++) {
        const struct wf_model_weight *one = &list->entries[i];
        if (name != NULL ? strcmp(name, one->name) != 0 : !one->in_layer) continue;
        wf_model_put(w, "%s%s = move(%s) ; to %s%s", one->name, suffix, one->name,
                     place(w, one, false, placements, sizeof placements), layer_of(w, one));
    }
}

const char *wf_model_shared(const struct wf_model_writer *w, const char *suffix)
{
    return w->sharding == WEFT_MODEL_SHARD_PARAMETERS ? suffix : "";
}

/* ---- gradients and the optimizer ---- */

static const struct wf_model_weight *find(const struct wf_model_weights *list, const char *name)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].name, name) == 0) return &list->entries[i];
    return NULL;
}

void wf_model_put_reduction(struct wf_model_writer *w, const char *name)
{
    struct wf_model_weights list;
    const struct wf_model_weight *weight;
    char placements[96];

    wf_model_list_weights(w, &list);
    weight = find(&list, name);
    if (weight == NULL) return;
    wf_model_put(w, "d%s = cast(d%sp, to=%s)" WF_FREE " ; to %s%s", name, name, w->gradients,
                 place(w, weight, shares_states(w), placements, sizeof placements),
                 layer_of(w, weight));
}

void wf_model_put_gradient(struct wf_model_writer *w, const char *name, const char *equation,
                           const char *gradient, const char *source)
{
    struct wf_model_weights list;
    const struct wf_model_weight *weight;

    wf_model_list_weights(w, &list);
    weight = find(&list, name);
    if (weight == NULL) return;
    wf_model_put(w, "d%sp = einsum(%s, %s, eq=\"%s\")%s%s", name, gradient, source, equation,
                 w->f8 && weight->in_layer && strcmp(name, "wr") != 0 ? " ; f8" : "",
                 layer_of(w, weight));
    wf_model_put_reduction(w, name);
}

void wf_model_put_update(struct wf_model_writer *w, const struct wf_model_weights *list)
{
    static const char *const states[] = {"main", "m", "v"};
    bool is_wide = strcmp(w->gradients, "f32") == 0;
    char shape[96], placements[96], kept[96];

    wf_model_put(w, "phase update");
    for (int i = 0; i < list->count; i++) {
        const struct wf_model_weight *one = &list->entries[i];
        const char *name = one->name, *layer = layer_of(w, one), *wide = is_wide ? "" : ".wide";
        (void)shape_of(one, shape, sizeof shape);
        (void)place(w, one, shares_states(w), placements, sizeof placements);
        (void)place(w, one, w->sharding == WEFT_MODEL_SHARD_PARAMETERS, kept, sizeof kept);
        for (size_t k = 0; k < WF_COUNT(states); k++)
            wf_model_put(w, "param %s.%s f32%s %s%s", name, states[k], shape, placements, layer);
        if (!is_wide)
            wf_model_put(w, "d%s.wide = cast(d%s, to=f32)" WF_FREE "%s", name, name, layer);
        wf_model_put(w, "%s.new, %s.newm, %s.newv = adamw(%s.main, d%s%s, %s.m, %s.v, step)%s",
                     name, name, name, name, name, wide, name, name, layer);
        wf_model_put(w, "%s.next = cast(%s.new, to=%s)" WF_FREE " ; to %s%s", name, name,
                     dtype_of(w), kept, layer);
    }
}
