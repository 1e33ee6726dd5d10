/* Random pairs of specs on real ranks, threads of this process: pulled or packed, with strided
 * shards, in place, and on a stream. */
#include "system/redistribute/pairs.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 6 };

/* Data of a case that all ranks share. */
static struct {
    struct random random;
    int cases;
    struct shards results; /* each rank writes its own part */
    weft_status verdict;
} shared;

/* The memory layout and options of one case on one rank. */
struct run {
    struct pair pair;
    struct values values;
    weft_context *context;
    weft_stream *stream;
    int32_t rank;
    weft_bind_options options;
    bool in_stream;
    int64_t source_strides[WEFT_MAX_DIMS], target_strides[WEFT_MAX_DIMS];
    uint64_t source_elements, target_elements; /* with gaps */
    weft_plan *plan;
    weft_bound *bound;
    void *source, *target;
};

static const char *command_of(const struct run *run)
{
    return pair_command(&run->pair, run->options.packed ? "redistribute -n 6 --iters 1 --packed"
                                                        : "redistribute -n 6 --iters 1");
}

static bool is_partial(const weft_spec *spec)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

/* Dimensions in another order, with gaps.  Returns the number of elements of the memory. */
static uint64_t random_strides(struct random *r, const weft_shard *shard, int64_t *strides)
{
    int32_t order[WEFT_MAX_DIMS];
    int64_t stride = random_in(r, 1, 2);

    random_order(r, shard->dims, order);
    for (int32_t i = 0; i < shard->dims; i++) {
        strides[order[i]] = stride;
        stride *= shard->shape[order[i]] + random_in(r, 0, 1);
    }
    return (uint64_t)(stride + 2);
}

/* Values that must be equal on all ranks are drawn before values that may differ. */
static void draw(struct run *run, struct random r)
{
    static const int32_t large[] = {0, 2000, 45, 13}; /* large enough to show memory use */
    weft_shard shard;

    run->pair =
        random_chance(&r, 8) ? random_pair_within(&r, RANKS, large) : random_pair(&r, RANKS);
    run->values = values_between(run->pair.from, run->pair.to);
    run->options = (weft_bind_options){.struct_size = sizeof run->options};
    run->options.packed = random_chance(&r, 3);
    run->options.in_place = random_chance(&r, 4);
    run->in_stream = random_chance(&r, 3);
    r.state += (uint64_t)run->rank * 977;
    weft_spec_shard(run->pair.from, run->rank, &shard);
    run->source_elements = (uint64_t)shard.elements;
    if (random_chance(&r, 3)) {
        run->source_elements = random_strides(&r, &shard, run->source_strides);
        run->options.source_strides = run->source_strides;
    }
    weft_spec_shard(run->pair.to, run->rank, &shard);
    run->target_elements = (uint64_t)shard.elements;
    if (random_chance(&r, 3)) {
        run->target_elements = random_strides(&r, &shard, run->target_strides);
        run->options.target_strides = run->target_strides;
    }
}

static weft_status allocate(struct run *run)
{
    uint64_t from = weft_dtype_bytes(weft_spec_dtype(run->pair.from));
    uint64_t to = weft_dtype_bytes(weft_spec_dtype(run->pair.to)), element = from > to ? from : to;
    uint64_t most =
        run->source_elements > run->target_elements ? run->source_elements : run->target_elements;
    void *source, *target;

    WF_TRY(weft_alloc(run->context, most * element + 1, WEFT_MEMORY_DEVICE, &source));
    memset(source, 0x5a, (size_t)(most * element));
    values_fill(&run->values, run->pair.from, run->rank, run->options.source_strides, source);
    run->source = run->target = source;
    if (run->options.in_place) return WEFT_OK;
    WF_TRY(weft_alloc(run->context, most * element + 1, WEFT_MEMORY_DEVICE, &target));
    memset(target, 0xa5, (size_t)(most * element));
    run->target = target;
    return WEFT_OK;
}

static weft_status redistribute(struct run *run)
{
    weft_stream *stream = run->in_stream ? run->stream : NULL;
    weft_work *work = NULL;
    weft_status status;

    for (int again = 0; again < (run->options.in_place ? 1 : 2); again++) {
        WF_TRY(weft_redistribute(run->bound, run->source, run->target, stream, &work));
        status = weft_work_wait(work, WEFT_FOREVER);
        weft_work_release(&work);
        WF_TRY(status);
    }
    return WEFT_OK;
}

/* Copy this rank's result, without gaps, to memory that all ranks see. */
static void show(const struct run *run)
{
    const weft_mesh *mesh = weft_spec_mesh(run->pair.to);
    size_t element = weft_dtype_bytes(weft_spec_dtype(run->pair.to));
    weft_segment segment;
    int64_t at = 0;
    int32_t place = 0;

    while (place < weft_mesh_size(mesh) && weft_mesh_rank_at(mesh, place) != run->rank)
        place++;
    for (; weft_spec_segment(run->pair.to, run->rank, run->options.target_strides, at, &segment);
         at += segment.length)
        memcpy((char *)shared.results.at[place] + (size_t)at * element,
               (char *)run->target + (size_t)segment.local * element,
               (size_t)segment.length * element);
}

static weft_status check(const struct run *run)
{
    weft_comm *world = weft_world(run->context);

    WF_TRY(weft_barrier(world, NULL));
    if (run->rank == 0) shared.results = shards_of(run->pair.to);
    WF_TRY(weft_barrier(world, NULL));
    show(run);
    WF_TRY(weft_barrier(world, NULL));
    if (run->rank == 0) {
        shared.verdict =
            values_check(&run->values, run->pair.to, (const void *const *)shared.results.at);
        if (shared.verdict != WEFT_OK)
            printf("%s%s\n%s\n", run->options.in_place ? "in place: " : "", weft_last_error(),
                   command_of(run));
        shards_free(run->pair.to, &shared.results);
    }
    WF_TRY(weft_barrier(world, NULL));
    return shared.verdict;
}

/* Running a plan takes no more memory than its scratch, unless the tensors have other strides than
 * the plan knows.  (Strided shards sometimes take a little more.) */
static weft_status check_scratch(const struct run *run)
{
    const weft_bind_options *options = &run->options;
    bool compared = !pair_is_strided(&run->pair) && !options->in_place &&
                    options->source_strides == NULL && options->target_strides == NULL;

    return scratch_check(run->plan, weft_world(run->context), options, run->bound,
                         run->pair.options.costs, compared);
}

static weft_status run_case(struct run *run)
{
    WF_TRY(allocate(run));
    WF_TRY(weft_plan_bind(run->plan, weft_world(run->context), &run->options, &run->bound));
    WF_TRY(check_scratch(run));
    WF_TRY(redistribute(run));
    WF_TRY(check(run));
    weft_bound_release(&run->bound);
    WF_TRY(weft_free(run->context, run->source));
    return run->options.in_place ? WEFT_OK : weft_free(run->context, run->target);
}

static weft_status rank_main(void *argument)
{
    struct run run = {0};
    weft_status status = WEFT_OK;
    int done = 0, partial = 0;

    (void)argument;
    WF_TRY(weft_init(NULL, &run.context));
    WF_TRY(weft_stream_create(run.context, &run.stream));
    run.rank = weft_rank(run.context);
    for (int i = 0; i < shared.cases && status == WEFT_OK; i++) {
        uint64_t state = wf_hash_mix(shared.random.seed, (uint64_t)i) | 1;
        draw(&run, (struct random){shared.random.seed, state});
        if (dtensor_plan_create(run.pair.from, run.pair.to, &run.pair.options, &run.plan) ==
            WEFT_OK) {
            status = run_case(&run);
            done++;
            partial += is_partial(run.pair.to);
        }
        if (status != WEFT_OK && run.rank == 0)
            printf("case %d: %s\n%s\n", i, weft_last_error(), command_of(&run));
        weft_plan_release(&run.plan);
        pair_release(&run.pair);
    }
    if (status != WEFT_OK) return status; /* the process frees the failed case's memory */
    if (run.rank == 0)
        printf("%d pairs, %d of them refused; %d with partial targets, combined and compared\n",
               shared.cases, shared.cases - done, partial);
    weft_stream_release(&run.stream);
    weft_context_release(&run.context);
    return WEFT_OK;
}

TEST(random_pairs_arrive_on_real_ranks)
{
    shared.random = random_begin("random_pairs_arrive_on_real_ranks");
    shared.cases = test_cases(2000);
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* A partial target is compared after its contributions are reduced. */
TEST(a_wrong_contribution_to_a_partial_target_is_seen)
{
    static const char *const targets[] = {"i32[6] P(sum),S(0)", "f32[6] P(avg),R",
                                          "f64[6] P(max),P(max)", "i16[6] S(0),P(min)"};

    for (size_t i = 0; i < WF_COUNT(targets); i++) {
        OWNED(weft_spec) *spec = spec_of("2x3", targets[i]);
        struct values values = values_between(spec, spec);
        struct shards shards = shards_of(spec);
        size_t element = weft_dtype_bytes(weft_spec_dtype(spec));

        shards_fill(&values, spec, &shards);
        ck_assert_int_eq(values_check(&values, spec, (const void *const *)shards.at), WEFT_OK);
        for (int place = 0; place < 6; place++) /* all of them too large */
            wf_number_store(weft_spec_dtype(spec), (struct wf_number){.integer = 77, .re = 77},
                            (char *)shards.at[place] + element);
        ck_assert_int_eq(values_check(&values, spec, (const void *const *)shards.at),
                         WEFT_ERR_MISMATCH);
        shards_free(spec, &shards);
    }
}
