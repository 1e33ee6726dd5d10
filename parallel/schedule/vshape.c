/* vshape.c - schedules in which rank r has the stages r and 2P-1-r: the stages run down the ranks
 * and back up, so that the last stage is on the rank of the first. */
#include "schedule.h"

/* A rank that writes its row.  Counters are by chunk: 0 on the way down, 1 on the way up. */
struct writer {
    struct wf_draft *out;
    int32_t rank, stage[2], most; /* most: microbatches; later ones are dropped */
    int32_t forward[2], backward[2], weight[2];
};

static struct writer begin(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    return (struct writer){.out = out,
                           .rank = rank,
                           .stage = {rank, 2 * shape->ranks - 1 - rank},
                           .most = shape->microbatches};
}

static void put(struct writer *w, uint8_t kind, int32_t chunk, int32_t microbatch)
{
    if (microbatch < w->most) wf_draft_put(w->out, w->rank, kind, w->stage[chunk], microbatch);
}

static void put_f(struct writer *w, int32_t chunk)
{
    put(w, WEFT_SCHEDULE_ACTION_F, chunk, w->forward[chunk]++);
}

static void put_i(struct writer *w, int32_t chunk)
{
    put(w, WEFT_SCHEDULE_ACTION_I, chunk, w->backward[chunk]++);
}

static void put_w(struct writer *w, int32_t chunk)
{
    put(w, WEFT_SCHEDULE_ACTION_W, chunk, w->weight[chunk]++);
}

static void put_iw(struct writer *w, int32_t chunk)
{
    put_i(w, chunk);
    put_w(w, chunk);
}

static void begin_zbv(struct writer *w, int32_t behind)
{
    for (int32_t i = 0; i < 2 * behind - 1; i++)
        put_f(w, 0);
    for (int32_t i = 0; i < w->rank; i++) {
        put_f(w, 1);
        put_f(w, 0);
    }
    for (int32_t i = 0; i < behind; i++) {
        put_f(w, 1);
        put_iw(w, 1);
    }
}

void wf_zbv(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    struct writer w = begin(shape, rank, out);
    int32_t behind = shape->ranks - rank, least = 2 * shape->ranks - 1;
    int32_t all = shape->microbatches > least ? shape->microbatches : least;

    begin_zbv(&w, behind);
    while (w.forward[1] < w.forward[0] || w.forward[0] < all) {
        if (w.forward[0] < all) put_f(&w, 0);
        put_iw(&w, 0);
        put_f(&w, 1);
        put_iw(&w, 1);
    }
    for (int32_t i = 0; i < rank; i++) {
        put_i(&w, 0);
        put_i(&w, 1);
    }
    for (int32_t i = 0; i < behind; i++)
        put_iw(&w, 0);
    for (int32_t chunk = 1; chunk >= 0; chunk--)
        while (w.weight[chunk] < w.backward[chunk])
            put_w(&w, chunk);
}

/* ---- dualpipev ---- */

/* Weights whose gradients are computed later, in order. */
struct later {
    struct writer w;
    bool split; /* backwards leave the gradients of weights for later */
    size_t taken, made;
    struct {
        int32_t chunk, microbatch;
    } * queue;
};

static void put_b(struct later *l, int32_t chunk)
{
    int32_t microbatch = l->w.backward[chunk]++;

    put(&l->w, l->split ? WEFT_SCHEDULE_ACTION_I : WEFT_SCHEDULE_ACTION_B, chunk, microbatch);
    if (!l->split) return;
    l->queue[l->made].chunk = chunk;
    l->queue[l->made++].microbatch = microbatch;
}

static void put_later(struct later *l)
{
    if (l->taken == l->made) return;
    put(&l->w, WEFT_SCHEDULE_ACTION_W, l->queue[l->taken].chunk, l->queue[l->taken].microbatch);
    l->taken++;
}

/* F of chunk FORWARD and B of chunk BACKWARD, which may run together. */
static void put_both(struct later *l, int32_t forward, int32_t backward)
{
    wf_draft_add(l->w.out, l->w.rank,
                 (weft_schedule_action){.stage = l->w.stage[forward],
                                        .microbatch = l->w.forward[forward]++,
                                        .kind = WEFT_SCHEDULE_ACTION_F,
                                        .with_next = 1});
    put_b(l, backward);
}

static void begin_dual(struct later *l, int32_t behind)
{
    for (int32_t i = 0; i < 2 * behind; i++)
        put_f(&l->w, 0);
    for (int32_t i = 0; i <= l->w.rank; i++) {
        put_f(&l->w, 0);
        put_f(&l->w, 1);
    }
    l->split = true;
    for (int32_t i = 0; i < behind; i++) {
        put_b(l, 1);
        put_later(l);
        put_f(&l->w, 1);
    }
    l->split = false;
}

static void end_dual(struct later *l, int32_t behind)
{
    int32_t half = (l->w.rank + 1) / 2;
    bool odd = l->w.rank % 2 == 1;

    for (int32_t i = 0; i <= l->w.rank; i++) {
        if (i == half && odd) l->split = true;
        put_b(l, 1);
        if (i == half && !odd) l->split = true;
        put_b(l, 0);
    }
    for (int32_t i = 0; i < behind; i++) {
        put_later(l);
        put_b(l, 0);
    }
    while (l->taken < l->made)
        put_later(l);
}

void wf_dualpipev(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    struct later l = {.w = begin(shape, rank, out)};
    int32_t behind = shape->ranks - 1 - rank;
    int32_t steady = shape->microbatches - 2 * shape->ranks + rank + 1;

    l.queue = wf_alloc(2 * (size_t)shape->microbatches * sizeof *l.queue);
    if (l.queue == NULL) {
        out->failed = true;
        return;
    }
    begin_dual(&l, behind);
    for (int32_t i = 0; i < steady; i++) {
        if (i == 0 && behind == 0) { /* together they would leave the ranks above idle longer */
            put_f(&l.w, 0);
            put_b(&l, 1);
        } else {
            put_both(&l, 0, 1);
        }
        put_both(&l, 1, 0);
    }
    for (int32_t i = 0; i < behind; i++) {
        put_b(&l, 1);
        put_both(&l, 1, 0);
    }
    end_dual(&l, behind);
    wf_free(l.queue);
}
