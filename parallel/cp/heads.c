/* heads.c - all-to-all: every rank gets the whole sequence of some of the heads, computes their
 * attention, and gives the results back.
 *
 * A message between two ranks has, one after the other, the heads of one and the indices of the
 * other of each tensor that travels. */
#include "cp.h"

#include "base/number.h"

#include <string.h>

enum tensor { Q, K, V, OUT, LSE, D_OUT, D_Q, D_K, D_V, TENSORS };

enum { SET_MOST = 6 };

struct set {
    uint32_t count;
    enum tensor tensors[SET_MOST];
};

/* By pass (forward, backward) and direction (to the heads, and back). */
static const struct set sets[2][2] = {
    {{3, {Q, K, V}}, {2, {OUT, LSE}}},
    {{6, {Q, K, V, OUT, LSE, D_OUT}}, {3, {D_Q, D_K, D_V}}},
};

/* The tensors of a set on their way. */
struct travel {
    struct wf_cp_copies pack, place;
    uint64_t *sent, *sent_offsets, *arriving, *arriving_offsets; /* elements, by coordinate */
    weft_cp_local strides[SET_MOST]; /* of the shards, for which the lists were made */
};

struct heads {
    char *sent, *arrived;
    void *whole[TENSORS]; /* some heads of the whole sequence */
    float *d_k, *d_v;     /* sums */
    struct travel travels[2][2];
};

/* ---- layouts ---- */

/* A tensor as this rank's shard: heads, elements per index, dimension of the sequence. */
struct kind {
    int64_t heads, depth;
    int32_t sequence_dim;
};

static struct kind kind_of(const weft_cp *cp, enum tensor tensor)
{
    const struct wf_cp_sizes *s = &cp->sizes;

    if (tensor == LSE) return (struct kind){s->heads, (int64_t)(sizeof(float) / cp->element), 2};
    if (tensor == K || tensor == V || tensor == D_K || tensor == D_V)
        return (struct kind){s->key_heads, s->depth, s->sequence_dim};
    return (struct kind){s->heads, s->depth, s->sequence_dim};
}

/* Elements of the tensors of SET in a message for LENGTH indices. */
static int64_t message_elements(const weft_cp *cp, const struct set *set, int64_t length)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < set->count; i++) {
        struct kind kind = kind_of(cp, set->tensors[i]);
        sum += cp->sizes.batch * kind.heads / cp->plan->ranks * kind.depth * length;
    }
    return sum;
}

/* ---- copies ---- */

struct copying {
    const weft_cp *cp;
    struct wf_cp_boxes boxes;
    bool to_message;
    int64_t at;                   /* place in the messages */
    const weft_cp_local *strides; /* of this rank's shards */
};

static weft_status add(struct copying *c, const struct wf_cp_box *box,
                       const struct wf_cp_side *tensor, const struct wf_cp_side *message)
{
    return c->to_message ? wf_cp_boxes_add(&c->boxes, box, tensor, message)
                         : wf_cp_boxes_add(&c->boxes, box, message, tensor);
}

/* The heads of COORDINATE of this rank's shard of a tensor, which is buffer INDEX. */
static weft_status add_heads(struct copying *c, struct kind kind, uint32_t index,
                             int32_t coordinate)
{
    const weft_cp *cp = c->cp;
    int64_t heads = kind.heads / cp->plan->ranks, mine = cp->held[cp->coordinate];
    struct wf_cp_box box = {cp->sizes.batch, heads, mine, kind.depth};
    weft_cp_local shard = c->strides[index],
                  packed = wf_cp_dense(kind.sequence_dim, heads, mine, kind.depth, NULL);
    struct wf_cp_side tensor = {index, coordinate * heads * shard.head, shard},
                      message = {0, c->at, packed};

    c->at += box.batch * heads * mine * kind.depth;
    return add(c, &box, &tensor, &message);
}

/* The indices of COORDINATE of this rank's heads of a tensor, which is buffer INDEX. */
static weft_status add_indices(struct copying *c, struct kind kind, uint32_t index,
                               int32_t coordinate)
{
    const weft_cp *cp = c->cp;
    const weft_cp_plan *plan = cp->plan;
    int64_t heads = kind.heads / plan->ranks, held = cp->held[coordinate];
    weft_cp_local whole = wf_cp_dense(kind.sequence_dim, heads, plan->length, kind.depth, NULL),
                  packed = wf_cp_dense(kind.sequence_dim, heads, held, kind.depth, NULL);

    for (size_t i = plan->first_run[coordinate]; i < plan->first_run[coordinate + 1]; i++) {
        const struct wf_cp_run *run = &plan->runs[i];
        struct wf_cp_box box = {cp->sizes.batch, heads, run->length, kind.depth};
        struct wf_cp_side tensor = {index, run->start * whole.sequence, whole},
                          message = {0, c->at + run->position * packed.sequence, packed};

        WF_TRY(add(c, &box, &tensor, &message));
    }
    c->at += cp->sizes.batch * heads * held * kind.depth;
    return WEFT_OK;
}

static weft_status make_copies(const weft_cp *cp, const struct set *set, bool to_message,
                               bool of_shards, const weft_cp_local *strides,
                               struct wf_cp_copies *out)
{
    struct copying c = {.cp = cp, .to_message = to_message, .strides = strides};
    weft_status status = WEFT_OK;

    for (int32_t peer = 0; peer < cp->plan->ranks; peer++)
        for (uint32_t i = 0; i < set->count && status == WEFT_OK; i++) {
            struct kind kind = kind_of(cp, set->tensors[i]);
            status = of_shards ? add_heads(&c, kind, i, peer) : add_indices(&c, kind, i, peer);
        }
    if (status == WEFT_OK) status = wf_cp_copies_make(cp, cp->element, &c.boxes, out);
    wf_free(c.boxes.items);
    return status;
}

/* ---- preparation ---- */

/* The strides of this rank's shard of TENSOR without gaps. */
static weft_cp_local dense_shard(const weft_cp *cp, enum tensor tensor)
{
    struct kind kind = kind_of(cp, tensor);

    return wf_cp_dense(kind.sequence_dim, kind.heads, cp->held[cp->coordinate], kind.depth, NULL);
}

static weft_status make_travel(const weft_cp *cp, const struct set *set, bool back,
                               struct travel *out)
{
    size_t ranks = (size_t)cp->plan->ranks;
    uint64_t sent = 0, arriving = 0;

    out->sent = wf_calloc(ranks, 4 * sizeof *out->sent);
    if (out->sent == NULL) return wf_fail_memory(ranks * 4 * sizeof *out->sent);
    out->sent_offsets = out->sent + ranks;
    out->arriving = out->sent_offsets + ranks;
    out->arriving_offsets = out->arriving + ranks;
    for (size_t i = 0; i < ranks; i++) {
        uint64_t mine = (uint64_t)message_elements(cp, set, cp->held[cp->coordinate]);
        uint64_t theirs = (uint64_t)message_elements(cp, set, cp->held[i]);

        out->sent[i] = back ? theirs : mine;
        out->arriving[i] = back ? mine : theirs;
        out->sent_offsets[i] = sent;
        out->arriving_offsets[i] = arriving;
        sent += out->sent[i];
        arriving += out->arriving[i];
    }
    for (uint32_t i = 0; i < set->count; i++)
        out->strides[i] = dense_shard(cp, set->tensors[i]);
    WF_TRY(make_copies(cp, set, true, !back, out->strides, &out->pack));
    return make_copies(cp, set, false, back, out->strides, &out->place);
}

static weft_status make_memory(weft_cp *cp, struct heads *h)
{
    int64_t length = cp->plan->length, batch = cp->sizes.batch, ranks = cp->plan->ranks;
    int64_t most = 0;

    for (int t = 0; t < TENSORS; t++) {
        struct kind kind = kind_of(cp, (enum tensor)t);
        WF_TRY(wf_cp_scratch(cp, batch * kind.heads / ranks * kind.depth * length, cp->element,
                             &h->whole[t]));
    }
    WF_TRY(wf_cp_scratch(cp, wf_cp_key_elements(cp, length), sizeof(float), &h->d_k));
    WF_TRY(wf_cp_scratch(cp, wf_cp_key_elements(cp, length), sizeof(float), &h->d_v));
    for (int backward = 0; backward < 2; backward++)
        for (int back = 0; back < 2; back++) {
            const struct set *set = &sets[backward][back];
            int64_t mine = message_elements(cp, set, cp->held[cp->coordinate]) * ranks;
            most = wf_max_i64(most, wf_max_i64(mine, message_elements(cp, set, length)));
        }
    WF_TRY(wf_cp_scratch(cp, most, cp->element, &h->sent));
    return wf_cp_scratch(cp, most, cp->element, &h->arrived);
}

static weft_status prepare(weft_cp *cp)
{
    struct heads *h = cp->state = wf_calloc(1, sizeof *h);

    if (h == NULL) return wf_fail_memory(sizeof *h);
    WF_TRY(make_memory(cp, h));
    for (int backward = 0; backward < 2; backward++)
        for (int back = 0; back < 2; back++)
            WF_TRY(make_travel(cp, &sets[backward][back], back, &h->travels[backward][back]));
    return WEFT_OK;
}

/* ---- running ---- */

static weft_cp_local shard_of(const struct wf_cp_shards *t, enum tensor tensor)
{
    const weft_cp_local locals[TENSORS] = {t->q,     t->k,   t->v,   t->out, t->lse,
                                           t->d_out, t->d_q, t->d_k, t->d_v};

    return locals[tensor];
}

/* Make the list of WAY that has this rank's shards again if their strides are others than before.
 */
static weft_status follow_strides(const struct wf_cp_pass *pass, const struct set *set, bool back,
                                  struct travel *way)
{
    struct wf_cp_copies *list = back ? &way->place : &way->pack;
    bool is_other = false;

    for (uint32_t i = 0; i < set->count; i++) {
        weft_cp_local shard = shard_of(&pass->t, set->tensors[i]);

        if (set->tensors[i] == LSE) continue; /* without gaps */
        is_other = is_other || shard.batch != way->strides[i].batch ||
                   shard.head != way->strides[i].head || shard.sequence != way->strides[i].sequence;
        way->strides[i] = shard;
    }
    if (!is_other) return WEFT_OK;
    wf_cp_copies_free(pass->cp, list);
    return make_copies(pass->cp, set, !back, true, way->strides, list);
}

static weft_status travel(const struct wf_cp_pass *pass, bool back)
{
    weft_cp *cp = pass->cp;
    struct heads *h = cp->state;
    const struct set *set = &sets[pass->backward][back];
    struct travel *way = &h->travels[pass->backward][back];
    void *shards[SET_MOST], *whole[SET_MOST];

    for (uint32_t i = 0; i < set->count; i++) {
        shards[i] = shard_of(&pass->t, set->tensors[i]).memory;
        whole[i] = h->whole[set->tensors[i]];
    }
    WF_TRY(follow_strides(pass, set, back, way));
    WF_TRY(wf_cp_copies_run(cp, &way->pack, (const void *const *)(back ? whole : shards),
                            (void *[]){h->sent}, pass->stream));
    WF_TRY(weft_all_to_all_v(cp->comm, h->sent, way->sent, way->sent_offsets, h->arrived,
                             way->arriving, way->arriving_offsets,
                             cp->element == 4 ? WEFT_DTYPE_U32 : WEFT_DTYPE_U16, pass->stream));
    return wf_cp_copies_run(cp, &way->place, (const void *[]){h->arrived}, back ? shards : whole,
                            pass->stream);
}

/* This rank's heads of the whole sequence of TENSOR. */
static weft_cp_local whole_of(const weft_cp *cp, enum tensor tensor)
{
    const struct heads *h = cp->state;
    struct kind kind = kind_of(cp, tensor);

    return wf_cp_dense(kind.sequence_dim, kind.heads / cp->plan->ranks, cp->plan->length,
                       kind.depth, h->whole[tensor]);
}

static weft_status compute(const struct wf_cp_pass *pass)
{
    weft_cp *cp = pass->cp;
    struct heads *h = cp->state;
    struct wf_cp_pass inner = *pass;
    struct wf_cp_keys keys = {h->whole[K], h->whole[V], cp->plan->length, h->d_k, h->d_v, NULL};
    size_t count = (size_t)wf_cp_key_elements(cp, cp->plan->length);

    inner.t = (struct wf_cp_shards){whole_of(cp, Q),   whole_of(cp, K),   whole_of(cp, V),
                                    whole_of(cp, OUT), whole_of(cp, LSE), whole_of(cp, D_OUT),
                                    whole_of(cp, D_Q), whole_of(cp, D_K), whole_of(cp, D_V)};
    WF_TRY(wf_cp_begin(&inner));
    if (pass->backward) {
        WF_TRY(wf_cp_clear(pass, h->d_k, count));
        WF_TRY(wf_cp_clear(pass, h->d_v, count));
    }
    WF_TRY(wf_cp_compute(&inner, 0, &keys));
    if (pass->backward) {
        WF_TRY(wf_cp_convert(pass, h->d_k, h->whole[D_K], count));
        WF_TRY(wf_cp_convert(pass, h->d_v, h->whole[D_V], count));
    }
    return wf_cp_end(&inner);
}

static weft_status run(struct wf_cp_pass *pass)
{
    WF_TRY(travel(pass, false));
    WF_TRY(compute(pass));
    WF_TRY(travel(pass, true));
    return wf_cp_sync(pass->cp, pass->stream);
}

static void clear(weft_cp *cp)
{
    struct heads *h = cp->state;

    for (int backward = 0; backward < 2; backward++)
        for (int back = 0; back < 2; back++) {
            struct travel *way = &h->travels[backward][back];

            wf_cp_copies_free(cp, &way->pack);
            wf_cp_copies_free(cp, &way->place);
            wf_free(way->sent);
        }
}

const struct wf_cp_way wf_cp_heads = {prepare, run, clear};
