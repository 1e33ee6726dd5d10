/* Averages of integers do not depend on the plan: random numbers at the ends of their range, by
 * every planner, for every measure, simulated and on real ranks. */
#include "system/redistribute/averages.h"
#include "support/simulate.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 6, COUNT = 5 };

/* ---- simulated ---- */

static void simulate(const struct pair *pair, uint64_t seed, int *refused)
{
    struct shards source = shards_of(pair->from), target = shards_of(pair->to);
    const weft_mesh *mesh = weft_spec_mesh(pair->from);
    weft_plan *plan = NULL;

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        average_fill(seed, pair->from, weft_mesh_rank_at(mesh, i), source.at[i]);
    if (dtensor_plan_create(pair->from, pair->to, &pair->options, &plan) == WEFT_OK) {
        ck_assert_msg(simulate_one(plan, (const void *const *)source.at, target.at) == WEFT_OK,
                      "%s\n%s", weft_last_error(), pair_command(pair, "sim"));
        ck_assert_msg(average_same(pair->from, (const void *const *)source.at, pair->to,
                                   (const void *const *)target.at),
                      "seed %llu: %s", (unsigned long long)seed, pair_command(pair, "sim"));
    } else {
        ck_assert_msg(pair->options.planner > WEFT_PLANNER_EXCHANGE, "%s\n%s", weft_last_error(),
                      pair_command(pair, "plan"));
        ++*refused;
    }
    weft_plan_release(&plan);
    shards_free(pair->from, &source);
    shards_free(pair->to, &target);
}

TEST(averages_of_integers_do_not_depend_on_the_plan)
{
    struct random r = random_begin("averages_of_integers_do_not_depend_on_the_plan");
    static const uint32_t planners[] = {WEFT_PLANNER_SEARCH, WEFT_PLANNER_EXCHANGE, DTENSOR_GREEDY,
                                        DTENSOR_GRAPH};
    int cases = test_cases(1500), refused = 0;

    for (int i = 0; i < cases; i++) {
        struct pair pair = average_pair(&r, 18);
        uint64_t seed = wf_hash_mix(r.seed, (uint64_t)i);
        for (size_t p = 0; p < WF_COUNT(planners); p++)
            for (uint32_t minimize = 0; minimize <= WEFT_MINIMIZE_MEMORY; minimize++) {
                if (planners[p] > WEFT_PLANNER_EXCHANGE &&
                    weft_spec_mesh(pair.from) != weft_spec_mesh(pair.to))
                    continue;
                pair.options.planner = planners[p];
                pair.options.minimize = minimize;
                simulate(&pair, seed, &refused);
            }
        pair_release(&pair);
    }
    printf("%d pairs by every planner; %d plans refused\n", cases, refused);
    ck_assert_int_lt(refused, cases);
}

/* ---- real ranks ---- */

static struct {
    struct random random;
    int cases;
    struct shards sources, results;
    bool right;
} shared;

struct run {
    weft_context *context;
    int32_t rank;
    struct pair pair;
    uint64_t seed;
    void *source, *target;
};

static int32_t place_of(const weft_spec *spec, int32_t rank)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t place = 0;

    while (place < weft_mesh_size(mesh) && weft_mesh_rank_at(mesh, place) != rank)
        place++;
    return place < weft_mesh_size(mesh) ? place : -1;
}

static uint64_t shard_bytes(const weft_spec *spec, int32_t rank)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

/* Rank 0 compares; the other ranks contribute their data. */
static weft_status compare(struct run *run)
{
    weft_comm *world = weft_world(run->context);
    int32_t from = place_of(run->pair.from, run->rank), to = place_of(run->pair.to, run->rank);

    WF_TRY(weft_barrier(world, NULL));
    if (run->rank == 0) {
        shared.sources = shards_of(run->pair.from);
        shared.results = shards_of(run->pair.to);
    }
    WF_TRY(weft_barrier(world, NULL));
    if (from >= 0)
        memcpy(shared.sources.at[from], run->source, shard_bytes(run->pair.from, run->rank));
    if (to >= 0) memcpy(shared.results.at[to], run->target, shard_bytes(run->pair.to, run->rank));
    WF_TRY(weft_barrier(world, NULL));
    if (run->rank == 0) {
        shared.right = average_same(run->pair.from, (const void *const *)shared.sources.at,
                                    run->pair.to, (const void *const *)shared.results.at);
        shards_free(run->pair.from, &shared.sources);
        shards_free(run->pair.to, &shared.results);
    }
    WF_TRY(weft_barrier(world, NULL));
    return shared.right ? WEFT_OK : wf_fail(WEFT_ERR_MISMATCH, "the tensors differ");
}

static weft_status run_bound(struct run *run, const weft_plan *plan, bool packed)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    weft_bound *bound = NULL;

    WF_TRY(weft_plan_bind(plan, weft_world(run->context), &options, &bound));
    for (int again = 0; again < 2; again++) {
        WF_TRY(weft_redistribute(bound, run->source, run->target, NULL, NULL));
        WF_TRY(weft_context_wait(run->context, NULL, WEFT_FOREVER));
        WF_TRY(compare(run));
    }
    weft_bound_release(&bound);
    return WEFT_OK;
}

static weft_status run_case(struct run *run)
{
    uint64_t from = shard_bytes(run->pair.from, run->rank);
    uint64_t to = shard_bytes(run->pair.to, run->rank);
    weft_plan *plan = NULL;

    if (dtensor_plan_create(run->pair.from, run->pair.to, &run->pair.options, &plan) != WEFT_OK)
        return WEFT_OK;
    WF_TRY(weft_alloc(run->context, from + 1, WEFT_MEMORY_DEVICE, &run->source));
    WF_TRY(weft_alloc(run->context, to + 1, WEFT_MEMORY_DEVICE, &run->target));
    if (from > 0) average_fill(run->seed, run->pair.from, run->rank, run->source);
    WF_TRY(run_bound(run, plan, false));
    WF_TRY(run_bound(run, plan, true));
    weft_plan_release(&plan);
    WF_TRY(weft_free(run->context, run->source));
    return weft_free(run->context, run->target);
}

/* Compare the result of ARGS, from element FIRST on, with the definition. */
static weft_status check_collective(const struct run *run, const weft_collective_args *args,
                                    uint64_t first)
{
    size_t bytes = weft_dtype_bytes(args->dtype);

    for (uint64_t i = 0; i < args->count; i++) {
        struct wf_number values[RANKS];
        uint64_t wanted = 0;
        for (int32_t p = 0; p < RANKS; p++) {
            uint64_t bits = average_input(run->seed, args->dtype, (int64_t)(first + i), p);
            values[p] = wf_number_load(args->dtype, &bits);
        }
        wf_number_store_reduced(args->dtype, WEFT_REDUCE_AVG, values, RANKS,
                                args->divisor != 0 ? args->divisor : RANKS, &wanted);
        if (memcmp((char *)args->recv + i * bytes, &wanted, bytes) != 0)
            return wf_fail(WEFT_ERR_MISMATCH, "%s of %s", wf_collective_name(args->collective),
                           weft_dtype_name(args->dtype));
    }
    return WEFT_OK;
}

/* Every collective that reduces, divided by the number of ranks or by another. */
static weft_status run_collectives(const struct run *run, uint32_t divisor)
{
    static const uint32_t kinds[] = {WEFT_COLL_ALL_REDUCE, WEFT_COLL_REDUCE,
                                     WEFT_COLL_REDUCE_SCATTER, WEFT_COLL_REDUCE_SCATTER_V};
    uint64_t counts[RANKS], offsets[RANKS], in[COUNT * RANKS], out[COUNT * RANKS];
    weft_collective_args args = {.struct_size = sizeof args,
                                 .dtype = weft_spec_dtype(run->pair.from),
                                 .reduction = WEFT_REDUCE_AVG,
                                 .root = 1,
                                 .send = in,
                                 .recv = out,
                                 .count = COUNT,
                                 .send_counts = counts,
                                 .send_offsets = offsets,
                                 .divisor = divisor};
    size_t bytes = weft_dtype_bytes(args.dtype);

    for (uint64_t i = 0; i < COUNT * RANKS; i++) {
        uint64_t bits = average_input(run->seed, args.dtype, (int64_t)i, run->rank);
        counts[i / COUNT] = COUNT;
        offsets[i / COUNT] = i / COUNT * COUNT;
        memcpy((char *)in + i * bytes, &bits, bytes);
    }
    for (size_t k = 0; k < WF_COUNT(kinds); k++) {
        bool scatters = k >= 2;
        args.collective = kinds[k];
        WF_TRY(weft_collective(weft_world(run->context), &args));
        WF_TRY(weft_context_wait(run->context, NULL, WEFT_FOREVER));
        if (kinds[k] == WEFT_COLL_REDUCE && run->rank != args.root) continue;
        WF_TRY(check_collective(run, &args, scatters ? (uint64_t)run->rank * COUNT : 0));
    }
    return WEFT_OK;
}

static weft_status rank_main(void *argument)
{
    struct run run = {0};
    weft_status status = WEFT_OK;

    (void)argument;
    WF_TRY(weft_init(NULL, &run.context));
    run.rank = weft_rank(run.context);
    for (int i = 0; i < shared.cases && status == WEFT_OK; i++) {
        uint64_t state = wf_hash_mix(shared.random.seed, (uint64_t)i) | 1;
        struct random r = {shared.random.seed, state};
        run.pair = average_pair(&r, RANKS);
        run.seed = state;
        status = run_case(&run);
        if (status == WEFT_OK) status = run_collectives(&run, i % 2 == 0 ? 0 : 4);
        if (status != WEFT_OK && run.rank == 0)
            printf("case %d: %s\n%s\n", i, weft_last_error(),
                   pair_command(&run.pair, "redistribute -n 6"));
        pair_release(&run.pair);
    }
    if (status != WEFT_OK) return status; /* the process frees the failed case's memory */
    weft_context_release(&run.context);
    return WEFT_OK;
}

TEST(averages_of_integers_are_exact_on_real_ranks)
{
    shared.random = random_begin("averages_of_integers_are_exact_on_real_ranks");
    shared.cases = test_cases(150);
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}
