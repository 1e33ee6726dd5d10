/* loops.c - schedules in which rank r has the stages r, r + P, r + 2P and so on. */
#include "schedule.h"

static int32_t stage_of(const struct wf_shape *shape, int32_t rank, int32_t chunk)
{
    return chunk * shape->ranks + rank;
}

/* All forwards, then all backwards. */
void wf_gpipe(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    for (int32_t m = 0; m < shape->microbatches; m++)
        wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_F, rank, m);
    for (int32_t m = 0; m < shape->microbatches; m++)
        wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_B, rank, m);
}

/* As many forwards as there are stages behind, then forwards and backwards in turn. */
void wf_1f1b(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    int32_t all = shape->microbatches, behind = shape->ranks - 1 - rank;
    int32_t warm = behind < all ? behind : all;

    for (int32_t m = 0; m < warm; m++)
        wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_F, rank, m);
    for (int32_t m = 0; m < all; m++) {
        if (m + warm < all) wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_F, rank, m + warm);
        wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_B, rank, m);
    }
}

/* Each stage takes all microbatches before the next one begins. */
void wf_looped_bfs(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    for (int32_t v = 0; v < shape->chunks; v++)
        for (int32_t m = 0; m < shape->microbatches; m++)
            wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_F, stage_of(shape, rank, v), m);
    for (int32_t v = shape->chunks - 1; v >= 0; v--)
        for (int32_t m = shape->microbatches - 1; m >= 0; m--)
            wf_draft_put(out, rank, WEFT_SCHEDULE_ACTION_B, stage_of(shape, rank, v), m);
}

/* ---- rounds of microbatches ---- */

struct rounds {
    const struct wf_shape *shape;
    int32_t rank;
    int64_t per_round, all; /* microbatches of a round; turns of a rank in one direction */
};

static struct rounds rounds_of(const struct wf_shape *shape, int32_t rank)
{
    int32_t count = shape->microbatches / shape->ranks;

    return (struct rounds){shape, rank, shape->microbatches / (count > 1 ? count : 1),
                           (int64_t)shape->microbatches * shape->chunks};
}

/* Put the action of KIND that has turn T in its direction. */
static void put_turn(const struct rounds *rounds, uint8_t kind, int64_t t, struct wf_draft *out)
{
    const struct wf_shape *shape = rounds->shape;
    int64_t chunk = t / rounds->per_round % shape->chunks;
    int64_t round = t / rounds->per_round / shape->chunks;
    int64_t microbatch = round * rounds->per_round + t % rounds->per_round;

    if (kind != WEFT_SCHEDULE_ACTION_F) chunk = shape->chunks - 1 - chunk;
    wf_draft_put(out, rounds->rank, kind, stage_of(shape, rounds->rank, (int32_t)chunk),
                 (int32_t)microbatch);
}

static int64_t warm_turns(const struct rounds *rounds, int64_t slope)
{
    const struct wf_shape *shape = rounds->shape;
    int64_t behind = shape->ranks - 1 - rounds->rank;

    return wf_min_i64((shape->chunks - 1) * rounds->per_round + slope * behind, rounds->all);
}

void wf_interleaved(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    struct rounds rounds = rounds_of(shape, rank);
    int64_t warm = warm_turns(&rounds, 2);

    for (int64_t t = 0; t < warm; t++)
        put_turn(&rounds, WEFT_SCHEDULE_ACTION_F, t, out);
    for (int64_t t = 0; t < rounds.all; t++) {
        if (t + warm < rounds.all) put_turn(&rounds, WEFT_SCHEDULE_ACTION_F, t + warm, out);
        put_turn(&rounds, WEFT_SCHEDULE_ACTION_B, t, out);
    }
}

/* As interleaved, with fewer forwards before the first backward.  Rank r computes gradients of
 * weights r turns after those of inputs, so that they fill its idle time. */
void wf_zb1p(const struct wf_shape *shape, int32_t rank, struct wf_draft *out)
{
    struct rounds rounds = rounds_of(shape, rank);
    int64_t warm = warm_turns(&rounds, 1), weights = 0;

    for (int64_t t = 0; t < warm; t++)
        put_turn(&rounds, WEFT_SCHEDULE_ACTION_F, t, out);
    for (int64_t t = 0; t < rounds.all; t++) {
        if (t + warm < rounds.all) put_turn(&rounds, WEFT_SCHEDULE_ACTION_F, t + warm, out);
        put_turn(&rounds, WEFT_SCHEDULE_ACTION_I, t, out);
        if (t >= rank) put_turn(&rounds, WEFT_SCHEDULE_ACTION_W, weights++, out);
    }
    while (weights < rounds.all)
        put_turn(&rounds, WEFT_SCHEDULE_ACTION_W, weights++, out);
}
