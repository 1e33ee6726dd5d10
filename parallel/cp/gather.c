/* gather.c - every rank gathers all keys and values, in the order of the sequence, and computes all
 * that its queries see.  The gradients of keys and values are reduced to their ranks. */
#include "cp.h"

struct gather {
    char *sent, *arrived;            /* shards: k, then v of each coordinate */
    char *k, *v;                     /* of the sequence */
    float *d_k, *d_v;                /* the same, gradients */
    float *d_sent, *d_arrived;       /* of shards */
    uint64_t *counts, *offsets;      /* of shards, by coordinate */
    struct wf_cp_copies place, pack; /* shards to sequence, and gradients back to shards */
};

/* The copies between shards and sequence, for k (0) or v (1) of COORDINATE. */
static weft_status add_boxes(const weft_cp *cp, int32_t coordinate, uint32_t tensor, bool pack,
                             struct wf_cp_boxes *boxes)
{
    const struct gather *g = cp->state;
    const weft_cp_plan *plan = cp->plan;
    const struct wf_cp_sizes *s = &cp->sizes;
    weft_cp_local shard = wf_cp_dense(s->sequence_dim, s->key_heads, cp->held[coordinate], s->depth,
                                      NULL),
                  whole = wf_cp_dense(s->sequence_dim, s->key_heads, plan->length, s->depth, NULL);
    int64_t first =
        (int64_t)g->offsets[coordinate] + tensor * wf_cp_key_elements(cp, cp->held[coordinate]);

    for (size_t i = plan->first_run[coordinate]; i < plan->first_run[coordinate + 1]; i++) {
        const struct wf_cp_run *run = &plan->runs[i];
        struct wf_cp_box box = {s->batch, s->key_heads, run->length, s->depth};
        struct wf_cp_side shards = {0, first + run->position * shard.sequence, shard};
        struct wf_cp_side sequence = {tensor, run->start * whole.sequence, whole};

        WF_TRY(pack ? wf_cp_boxes_add(boxes, &box, &sequence, &shards)
                    : wf_cp_boxes_add(boxes, &box, &shards, &sequence));
    }
    return WEFT_OK;
}

static weft_status make_copies(const weft_cp *cp, bool pack, uint32_t element,
                               struct wf_cp_copies *out)
{
    struct wf_cp_boxes boxes = {0};
    weft_status status = WEFT_OK;

    for (int32_t c = 0; c < cp->plan->ranks && status == WEFT_OK; c++)
        for (uint32_t tensor = 0; tensor < 2 && status == WEFT_OK; tensor++)
            status = add_boxes(cp, c, tensor, pack, &boxes);
    if (status == WEFT_OK) status = wf_cp_copies_make(cp, element, &boxes, out);
    wf_free(boxes.items);
    return status;
}

static weft_status prepare(weft_cp *cp)
{
    struct gather *g = cp->state = wf_calloc(1, sizeof *g);
    int64_t whole = wf_cp_key_elements(cp, cp->plan->length);
    int64_t mine = wf_cp_key_elements(cp, cp->held[cp->coordinate]);
    uint64_t at = 0;

    if (g == NULL) return wf_fail_memory(sizeof *g);
    g->counts = wf_calloc((size_t)cp->plan->ranks, 2 * sizeof *g->counts);
    if (g->counts == NULL) return wf_fail_memory((size_t)cp->plan->ranks * 2 * sizeof *g->counts);
    g->offsets = g->counts + cp->plan->ranks;
    for (int32_t c = 0; c < cp->plan->ranks; c++) {
        g->counts[c] = 2 * (uint64_t)wf_cp_key_elements(cp, cp->held[c]);
        g->offsets[c] = at;
        at += g->counts[c];
    }
    WF_TRY(wf_cp_scratch(cp, 2 * mine, cp->element, &g->sent));
    WF_TRY(wf_cp_scratch(cp, 2 * whole, cp->element, &g->arrived));
    WF_TRY(wf_cp_scratch(cp, whole, cp->element, &g->k));
    WF_TRY(wf_cp_scratch(cp, whole, cp->element, &g->v));
    WF_TRY(wf_cp_scratch(cp, whole, sizeof(float), &g->d_k));
    WF_TRY(wf_cp_scratch(cp, whole, sizeof(float), &g->d_v));
    WF_TRY(wf_cp_scratch(cp, 2 * whole, sizeof(float), &g->d_sent));
    WF_TRY(wf_cp_scratch(cp, 2 * mine, sizeof(float), &g->d_arrived));
    WF_TRY(make_copies(cp, false, cp->element, &g->place));
    return make_copies(cp, true, sizeof(float), &g->pack);
}

/* Copy this rank's keys or values SHARD to SENT. */
static weft_status send_keys(const struct wf_cp_pass *pass, const weft_cp_local *shard, char *sent)
{
    weft_cp *cp = pass->cp;
    int64_t held = cp->held[cp->coordinate];
    size_t bytes = (size_t)wf_cp_key_elements(cp, held) * cp->element;

    if (bytes == 0) return WEFT_OK;
    if (wf_cp_is_dense(cp, shard, cp->sizes.key_heads, held))
        return weft_memory_copy(cp->context, shard->memory, sent, bytes, pass->stream);
    return wf_cp_copy_strided(cp, true, shard, cp->sizes.key_heads, held, sent, pass->stream);
}

static weft_status gather_keys(const struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    struct gather *g = cp->state;
    size_t bytes = (size_t)wf_cp_key_elements(cp, cp->held[cp->coordinate]) * cp->element;

    WF_TRY(send_keys(pass, &pass->t.k, g->sent));
    WF_TRY(send_keys(pass, &pass->t.v, g->sent + bytes));
    WF_TRY(weft_all_gather_v(cp->comm, g->sent, g->arrived, g->counts, g->offsets,
                             (enum weft_dtype)cp->sizes.dtype, pass->stream));
    WF_TRY(wf_cp_copies_run(cp, &g->place, (const void *[]){g->arrived}, (void *[]){g->k, g->v},
                            pass->stream));
    return wf_cp_sync(cp, pass->stream); /* a rank without problems does not wait again */
}

static weft_status reduce_gradients(const struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    struct gather *g = cp->state;
    int64_t held = cp->held[cp->coordinate];
    size_t count = (size_t)wf_cp_key_elements(cp, held);

    WF_TRY(wf_cp_copies_run(cp, &g->pack, (const void *[]){g->d_k, g->d_v}, (void *[]){g->d_sent},
                            pass->stream));
    WF_TRY(weft_reduce_scatter_v(cp->comm, g->d_sent, g->d_arrived, g->counts, g->offsets,
                                 WEFT_DTYPE_F32, WEFT_REDUCE_SUM, pass->stream));
    WF_TRY(wf_cp_sync(cp, pass->stream));
    WF_TRY(wf_cp_give(pass, g->d_arrived, &pass->t.d_k, cp->sizes.key_heads, held));
    return wf_cp_give(pass, g->d_arrived + count, &pass->t.d_v, cp->sizes.key_heads, held);
}

static weft_status run(struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    struct gather *g = cp->state;
    struct wf_cp_keys keys = {g->k, g->v, cp->plan->length, g->d_k, g->d_v, NULL};
    size_t count = (size_t)wf_cp_key_elements(cp, cp->plan->length);

    WF_TRY(wf_cp_begin(pass));
    WF_TRY(gather_keys(pass));
    if (pass->backward) {
        WF_TRY(wf_cp_clear(pass, g->d_k, count));
        WF_TRY(wf_cp_clear(pass, g->d_v, count));
    }
    WF_TRY(wf_cp_compute(pass, 0, &keys));
    if (pass->backward) WF_TRY(reduce_gradients(pass));
    return wf_cp_end(pass);
}

static void clear(weft_cp *cp)
{
    struct gather *g = cp->state;

    wf_cp_copies_free(cp, &g->place);
    wf_cp_copies_free(cp, &g->pack);
    wf_free(g->counts);
}

const struct wf_cp_way wf_cp_gather = {prepare, run, clear};
