/* Moves: plans and bound plans from the context's caches, in place, on streams, among some ranks.
 * test_redistribute_move_refused.c has what is refused. */
#include "exec/context/kept.h"
#include "pairs.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/move.h"
#include "support/seed.h"
#include "support/suite.h"
#include "weft/weft.h"

enum { RANKS = 5, PAIRS = 12, MOST_BOUND = 2 };

static weft_move_info info_of(weft_context *context)
{
    weft_move_info info = {.struct_size = sizeof info};

    if (weft_move_get(context, &info) != WEFT_OK) info.bound_total = UINT64_MAX;
    return info;
}

/* ---- random moves ---- */

/* One tensor on this rank. */
struct tensor {
    weft_spec *from, *to;
    struct values values;
    void *source, *target, *wanted;
    uint64_t source_bytes, target_bytes;
};

static uint64_t bytes_of(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static weft_status open_tensor(weft_context *context, struct tensor *t)
{
    int32_t rank = weft_rank(context);
    uint64_t most;

    t->values = values_between(t->from, t->to);
    t->source_bytes = bytes_of(t->from, rank);
    t->target_bytes = bytes_of(t->to, rank);
    most = t->source_bytes > t->target_bytes ? t->source_bytes : t->target_bytes;
    WF_TRY(weft_alloc(context, most + 1, WEFT_MEMORY_DEVICE, &t->source));
    WF_TRY(weft_alloc(context, most + 1, WEFT_MEMORY_DEVICE, &t->target));
    t->wanted = calloc(1, most + 1);
    if (t->wanted == NULL) return wf_fail_memory((size_t)most);
    values_fill(&t->values, t->to, rank, NULL, t->wanted);
    return WEFT_OK;
}

static weft_status close_tensor(weft_context *context, struct tensor *t)
{
    free(t->wanted);
    WF_TRY(weft_free(context, t->source));
    return weft_free(context, t->target);
}

static void fill_tensor(weft_context *context, struct tensor *t)
{
    memset(t->target, 0x5a, t->target_bytes);
    values_fill(&t->values, t->from, weft_rank(context), NULL, t->source);
}

static weft_status check_tensor(const struct tensor *t, const void *have)
{
    EXPECT(memcmp(have, t->wanted, t->target_bytes) == 0);
    return WEFT_OK;
}

/* Pairs without partial targets, and without averages, whose results may be rounded. */
static bool is_exact(const weft_spec *from, const weft_spec *to)
{
    for (int32_t a = 0; a < to->layout.mesh->axes; a++)
        if (to->layout.placements[a].kind == WEFT_PLACE_PARTIAL) return false;
    for (int32_t a = 0; a < from->layout.mesh->axes; a++)
        if (from->layout.placements[a].kind == WEFT_PLACE_PARTIAL &&
            from->layout.placements[a].reduction != WEFT_REDUCE_SUM &&
            from->layout.placements[a].reduction != WEFT_REDUCE_MAX)
            return false;
    return true;
}

static struct tensor drawn[PAIRS];

static weft_status move_drawn(weft_context *context, struct tensor *t, bool in_place)
{
    weft_work *work = NULL;

    fill_tensor(context, t);
    WF_TRY(weft_barrier(weft_world(context), NULL)); /* peers read what was filled */
    WF_TRY(move_one(context, t->from, t->source, t->to, in_place ? t->source : t->target, NULL,
                    &work));
    WF_TRY(weft_work_wait(work, WEFT_FOREVER));
    weft_work_release(&work);
    WF_TRY(check_tensor(t, in_place ? t->source : t->target));
    return weft_barrier(weft_world(context), NULL);
}

/* The same pairs in the same order on all ranks, more than are kept. */
static weft_status move_randomly(void *unused)
{
    struct tensor mine[PAIRS];
    OWNED(weft_context) *context = NULL;
    struct random r = {.state = 99};
    weft_move_info info;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    wf_exec_state(context)->moves.most = MOST_BOUND;
    memcpy(mine, drawn, sizeof mine);
    for (int i = 0; i < PAIRS; i++)
        WF_TRY(open_tensor(context, &mine[i]));
    for (int i = 0; i < 4 * PAIRS; i++)
        WF_TRY(move_drawn(context, &mine[random_in(&r, 0, PAIRS - 1)], random_chance(&r, 3)));
    info = info_of(context);
    EXPECT(info.bound_max == MOST_BOUND);
    EXPECT(info.bound_total == info.bound + info.evicted_total);
    WF_TRY(weft_move_clear(context));
    info = info_of(context);
    EXPECT(info.bound == 0 && info.scratch_bytes == 0);
    WF_TRY(move_drawn(context, &mine[0], false));
    for (int i = 0; i < PAIRS; i++)
        WF_TRY(close_tensor(context, &mine[i]));
    return WEFT_OK;
}

static void draw_pair(struct random *r, struct tensor *out)
{
    struct pair pair = {0};
    weft_plan *plan = NULL;

    do {
        pair_release(&pair);
        weft_plan_release(&plan);
        pair = random_pair(r, RANKS);
    } while (!is_exact(pair.from, pair.to) ||
             weft_plan_create(pair.from, pair.to, NULL, &plan) != WEFT_OK);
    weft_plan_release(&plan);
    out->from = weft_spec_retain(pair.from);
    out->to = weft_spec_retain(pair.to);
    pair_release(&pair);
}

static void draw_all(uint64_t seed)
{
    struct random r = {.state = seed | 1};

    for (int i = 0; i < PAIRS; i++)
        draw_pair(&r, &drawn[i]);
}

static void print_drawn(void)
{
    for (int i = 0; i < PAIRS; i++) {
        char from[512], to[512], meshes[2][256];

        ck_assert_int_eq(weft_spec_print(drawn[i].from, from, sizeof from, NULL), WEFT_OK);
        ck_assert_int_eq(weft_spec_print(drawn[i].to, to, sizeof to, NULL), WEFT_OK);
        ck_assert_int_eq(weft_mesh_print(weft_spec_mesh(drawn[i].from), meshes[0], 256, NULL),
                         WEFT_OK);
        ck_assert_int_eq(weft_mesh_print(weft_spec_mesh(drawn[i].to), meshes[1], 256, NULL),
                         WEFT_OK);
        fprintf(stderr, "pair %d: %s on %s -> %s on %s\n", i, from, meshes[0], to, meshes[1]);
    }
}

static void drop_drawn(void)
{
    for (int i = 0; i < PAIRS; i++) {
        weft_spec_release(&drawn[i].from);
        weft_spec_release(&drawn[i].to);
    }
}

static void run_drawn(const char *test, weft_status (*rank_main)(void *))
{
    uint64_t seed = test_seed_begin(test);
    int cases = test_cases(12);

    for (int i = 0; i < cases; i++) {
        weft_status status;

        draw_all(wf_hash_mix(seed, (uint64_t)i));
        status = weft_threads_run(RANKS, rank_main, NULL);
        if (status != WEFT_OK) print_drawn();
        ck_assert_msg(status == WEFT_OK, "seed %llu, case %d: %s", (unsigned long long)seed, i,
                      weft_last_error());
        drop_drawn();
    }
}

TEST(every_element_arrives)
{
    run_drawn("redistribute_move", move_randomly);
}

/* ---- eviction ---- */

/* The bound plans that leave are the oldest, whatever a rank did with them since. */
TEST_ON_RANKS(2, the_oldest_leave_first_on_all_ranks)
{
    static const int order[] = {0, 1, 2, 0, 0, 3, 1, 0}; /* 3 evicts 0, then 0 evicts 1 */
    float source[4] = {0}, target[8];
    weft_spec *from[4], *to = spec_of("2", "f32[8] R");
    OWNED(weft_context) *context = NULL;
    weft_move_info info;

    WF_TRY(weft_init(NULL, &context));
    wf_exec_state(context)->moves.most = 3;
    from[0] = spec_of("2", "f32[8] S(0)");
    from[1] = spec_of("2", "f32[8] P");
    from[2] = spec_of("2", "f32[8] SS(0,2)");
    from[3] = spec_of("2", "f32[8] P(max)");
    for (size_t i = 0; i < WF_COUNT(order); i++) {
        float eight[8] = {0};

        if (weft_rank(context) == 1 && order[i] == 2) /* refused here, and not on rank 0 */
            EXPECT(move_one(context, from[1], NULL, to, target, NULL, NULL) == WEFT_ERR_INVALID);
        WF_TRY(move_one(context, from[order[i]], order[i] % 2 == 0 ? source : eight, to, target,
                        NULL, NULL));
    }
    info = info_of(context);
    EXPECT(info.bound == 3 && info.bound_total == 5 && info.evicted_total == 2);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    for (int i = 0; i < 4; i++)
        weft_spec_release(&from[i]);
    weft_spec_release(&to);
    return WEFT_OK;
}

/* ---- random batches ---- */

/* The first COUNT pairs; every third in place. */
static weft_status move_batch(weft_context *context, struct tensor *mine, uint32_t count,
                              weft_stream *stream)
{
    weft_move_item items[PAIRS];

    for (uint32_t i = 0; i < count; i++) {
        struct tensor *t = &mine[i];

        fill_tensor(context, t);
        items[i] =
            (weft_move_item){"t", t->from, t->source, t->to, i % 3 == 0 ? t->source : t->target};
    }
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(move_items(context, count, items, stream, NULL));
    WF_TRY(weft_context_wait(context, stream, WEFT_FOREVER));
    for (uint32_t i = 0; i < count; i++)
        WF_TRY(check_tensor(&mine[i], items[i].target));
    return weft_barrier(weft_world(context), NULL);
}

static weft_status move_batches(void *unused)
{
    struct tensor mine[PAIRS];
    weft_stream *stream = NULL;
    OWNED(weft_context) *context = NULL;

    (void)unused;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_stream_create(context, &stream));
    memcpy(mine, drawn, sizeof mine);
    for (int i = 0; i < PAIRS; i++)
        WF_TRY(open_tensor(context, &mine[i]));
    for (uint32_t again = 0; again < 2; again++)
        for (uint32_t count = 1; count <= PAIRS; count += 3)
            WF_TRY(move_batch(context, mine, count, again == 0 ? NULL : stream));
    EXPECT(info_of(context).bound_total <= 4);
    weft_stream_release(&stream);
    for (int i = 0; i < PAIRS; i++)
        WF_TRY(close_tensor(context, &mine[i]));
    return WEFT_OK;
}

TEST(every_element_of_a_batch_arrives)
{
    run_drawn("redistribute_move, batches", move_batches);
}

/* ---- ranks outside of a mesh ---- */

TEST_ON_RANKS(RANKS, only_the_ranks_of_the_meshes_take_part)
{
    float source[8] = {0}, target[8] = {0};
    weft_spec *from = spec_of("2@0-1", "f32[8] S(0)"), *to = spec_of("2@2-3", "f32[8] S(0)");
    weft_spec *longer = spec_of("2@2-3", "f32[9] S(0)");
    weft_work *work = NULL;
    weft_context *context;
    int32_t rank;

    WF_TRY(weft_init(NULL, &context));
    rank = weft_rank(context);
    for (int i = 0; i < 4; i++)
        source[i] = (float)(4 * rank + i);
    for (int i = 0; i < 3 && rank < 4; i++) /* rank 4 does not call, and nobody waits for it */
        WF_TRY(move_one(context, from, rank < 2 ? source : NULL, to, rank < 2 ? NULL : target, NULL,
                        NULL));
    if (rank == 2 || rank == 3)
        EXPECT(target[0] == (float)(4 * (rank - 2)) && target[3] == target[0] + 3);
    if (rank == 4) { /* it does not wait either */
        WF_TRY(move_one(context, from, NULL, to, NULL, NULL, &work));
        WF_TRY(weft_work_wait(work, WEFT_FOREVER));
        weft_work_release(&work);
    }
    EXPECT(info_of(context).bound == (rank < 4 ? 1 : 0));
    /* Nor does it differ in what it refuses. */
    EXPECT(move_one(context, from, source, longer, target, NULL, NULL) == WEFT_ERR_INVALID);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_spec_release(&longer);
    weft_context_release(&context);
    return WEFT_OK;
}

/* ---- streams ---- */

TEST_ON_RANKS(4, a_move_may_change_its_stream)
{
    OWNED(weft_spec) *from = spec_of("2x2", "i32[64,64] S(0),P"),
                     *to = spec_of("2x2", "i32[64,64] S(1),R");
    struct tensor t = {.from = from, .to = to};
    weft_stream *streams[3] = {NULL};
    OWNED(weft_context) *context = NULL;
    weft_move_info info;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(open_tensor(context, &t));
    fill_tensor(context, &t);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < 3; i++)
            WF_TRY(weft_stream_create(context, &streams[i]));
        WF_TRY(weft_barrier(weft_world(context), NULL));
        for (int i = 0; i < 12; i++) /* one target: later moves wait for earlier ones */
            WF_TRY(move_one(context, from, t.source, to, t.target, streams[i % 3], NULL));
        for (int i = 0; i < 3; i++)
            WF_TRY(weft_context_wait(context, streams[i], WEFT_FOREVER));
        WF_TRY(check_tensor(&t, t.target));
        memset(t.target, 0, t.target_bytes);
        for (int i = 1; i < 3; i++)
            weft_stream_release(&streams[i]);
    }
    info = info_of(context);
    EXPECT(info.bound_total == 1);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    WF_TRY(close_tensor(context, &t));
    return WEFT_OK;
}

/* ---- costs ---- */

TEST(plans_have_the_costs_of_the_context)
{
    OWNED(weft_spec) *from = spec_of("4", "f32[64,64] S(0)"), *to = spec_of("4", "f32[64,64] S(1)");
    weft_plan_options bytes = {.struct_size = sizeof bytes, .minimize = WEFT_MINIMIZE_BYTES};
    OWNED(weft_plan) *plan = NULL, *again = NULL, *other = NULL;
    OWNED(weft_context) *context = NULL;

    ck_assert_int_eq(weft_init(NULL, &context), WEFT_OK);
    ck_assert_int_eq(weft_context_plan(context, from, to, NULL, &plan), WEFT_OK);
    ck_assert_int_eq(weft_context_plan(context, from, to, NULL, &again), WEFT_OK);
    ck_assert_int_eq(weft_context_plan(context, from, to, &bytes, &other), WEFT_OK);
    ck_assert_ptr_eq(plan, again);
    ck_assert_ptr_eq(weft_plan_costs(plan), weft_context_costs(context));
    ck_assert_ptr_eq(weft_plan_costs(other), weft_context_costs(context));
}
