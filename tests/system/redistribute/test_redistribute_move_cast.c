/* Moves between specs of different dtypes: alone, in place, on a stream and as a batch.  Every bit
 * is that of the simulator.  Sums are exact in f32, so their order does not change them. */
#include "pairs.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/weft.h"

enum { RANKS = 4, TENSORS = 6 };

static const char *const changes[TENSORS][2] = {
    {"f32[24,20] S(0),R", "bf16[24,20] R,S(1)"},
    {"f32[24,20] P,S(1)", "bf16[24,20] R,S(0)"},
    {"f32[24,20] P,P", "bf16[24,20] R,R"},
    {"f32[24,20] S(0),S(1)", "bf16[24,20] S(0),S(1)"}, /* a local cast */
    {"bf16[24,20] S(0),R", "f32[24,20] R,R"},
    {"f32[24,20] S(1),R", "f32[24,20] R,S(0)"}, /* no cast */
};

struct tensor {
    weft_spec *from, *to;
    struct shards sources, wanted; /* of all ranks */
    void *source, *target;         /* of this rank; both have room for the larger shard */
};

/* Small integers, which every float dtype has. */
static void fill(const weft_spec *spec, int32_t rank, void *shard)
{
    uint64_t element = weft_dtype_bytes(weft_spec_dtype(spec));

    for (uint64_t i = 0; i < weft_spec_shard_bytes(spec, rank) / element; i++) {
        float value = (float)((int)(i * 7 + (uint64_t)rank * 31) % 255 - 127);

        /* A bf16 is the first half of an f32, which comes last in memory. */
        memcpy((char *)shard + i * element, (char *)&value + sizeof value - element, element);
    }
}

static weft_status open_tensor(weft_context *context, int number, struct tensor *t)
{
    int32_t rank = weft_rank(context);
    uint64_t most = 24 * 20 * sizeof(float);
    weft_plan *plan = NULL;

    t->from = spec_of("2x2", changes[number][0]);
    t->to = spec_of("2x2", changes[number][1]);
    t->sources = shards_of(t->from);
    t->wanted = shards_of(t->to);
    for (int32_t i = 0; i < RANKS; i++)
        fill(t->from, i, t->sources.at[i]);
    WF_TRY(weft_context_plan(context, t->from, t->to, NULL, &plan));
    WF_TRY(simulate_one(plan, (const void *const *)t->sources.at, t->wanted.at));
    weft_plan_release(&plan);
    WF_TRY(weft_alloc(context, most, WEFT_MEMORY_DEVICE, &t->source));
    WF_TRY(weft_alloc(context, most, WEFT_MEMORY_DEVICE, &t->target));
    fill(t->from, rank, t->source);
    return WEFT_OK;
}

static weft_status close_tensor(weft_context *context, struct tensor *t)
{
    shards_free(t->from, &t->sources);
    shards_free(t->to, &t->wanted);
    weft_spec_release(&t->from);
    weft_spec_release(&t->to);
    WF_TRY(weft_free(context, t->source));
    return weft_free(context, t->target);
}

/* The target of this rank before a move: the source if the move is in place. */
static void set_target(weft_context *context, struct tensor *t, bool in_place)
{
    memset(t->target, 0xa5, weft_spec_shard_bytes(t->to, weft_rank(context)));
    if (in_place) fill(t->from, weft_rank(context), t->target);
}

static weft_status check_target(weft_context *context, const struct tensor *t)
{
    int32_t rank = weft_rank(context);

    EXPECT(memcmp(t->target, t->wanted.at[rank], weft_spec_shard_bytes(t->to, rank)) == 0);
    return WEFT_OK;
}

static weft_status move_and_check(weft_context *context, struct tensor *t, bool in_place,
                                  weft_stream *stream)
{
    set_target(context, t, in_place);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(move_one(context, t->from, in_place ? t->target : t->source, t->to, t->target, stream,
                    NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    return check_target(context, t);
}

static weft_status move_batch(weft_context *context, struct tensor *tensors, bool in_place,
                              weft_stream *stream)
{
    weft_move_item items[TENSORS];

    for (int i = 0; i < TENSORS; i++) {
        struct tensor *t = &tensors[i];

        set_target(context, t, in_place);
        items[i] =
            (weft_move_item){NULL, t->from, in_place ? t->target : t->source, t->to, t->target};
    }
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(move_items(context, TENSORS, items, stream, NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(check_target(context, &tensors[i]));
    return WEFT_OK;
}

/* ---- scratch ---- */

static weft_status compare_scratch(weft_context *context, const weft_plan *plan)
{
    for (int way = 0; way < 4; way++) {
        weft_bind_options options = {
            .struct_size = sizeof options, .packed = way & 1, .in_place = way & 2};
        uint64_t bytes = UINT64_MAX;
        weft_bound *bound = NULL;

        WF_TRY(weft_plan_scratch(plan, weft_world(context), &options, &bytes));
        WF_TRY(weft_plan_bind(plan, weft_world(context), &options, &bound));
        EXPECT(bytes == weft_bound_scratch(bound));
        weft_bound_release(&bound);
    }
    return WEFT_OK;
}

static weft_status compare_all_scratch(weft_context *context, const struct tensor *tensors)
{
    const weft_spec *from[TENSORS], *to[TENSORS];
    weft_plan_options options = {.struct_size = sizeof options,
                                 .costs = weft_context_costs(context)};
    weft_plan *plan = NULL;

    for (int i = 0; i < TENSORS; i++) {
        from[i] = tensors[i].from;
        to[i] = tensors[i].to;
        WF_TRY(weft_context_plan(context, from[i], to[i], NULL, &plan));
        WF_TRY(compare_scratch(context, plan));
        weft_plan_release(&plan);
    }
    WF_TRY(weft_plan_create_batch(TENSORS, from, to, &options, &plan));
    WF_TRY(compare_scratch(context, plan));
    weft_plan_release(&plan);
    return WEFT_OK;
}

/* ---- the test ---- */

TEST_ON_RANKS(RANKS, a_move_casts_on_the_way)
{
    struct tensor tensors[TENSORS];
    weft_stream *streams[2] = {NULL, NULL};
    OWNED(weft_context) *context = NULL;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_stream_create(context, &streams[1]));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(open_tensor(context, i, &tensors[i]));
    for (int way = 0; way < 4; way++) {
        for (int i = 0; i < TENSORS; i++)
            WF_TRY(move_and_check(context, &tensors[i], way & 1, streams[way / 2]));
        WF_TRY(move_batch(context, tensors, way & 1, streams[way / 2]));
    }
    WF_TRY(compare_all_scratch(context, tensors));
    WF_TRY(weft_barrier(weft_world(context), NULL));
    for (int i = 0; i < TENSORS; i++)
        WF_TRY(close_tensor(context, &tensors[i]));
    weft_stream_release(&streams[1]);
    return WEFT_OK;
}
