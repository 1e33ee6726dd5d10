/* Random batches of tensors as one plan: simulated, and on real ranks, threads of this process. */
#include "exec/context/kept.h"
#include "system/redistribute/batches.h"
#include "short_memory.h"
#include "support/expect.h"
#include "support/layout.h"
#include "support/suite.h"
#include "weft/exec.h"
#include "weft/weft.h"

enum { RANKS = 4 };

static void simulate(const struct batch *batch, const weft_plan *plan)
{
    struct shards sources[MAX_TENSORS], targets[MAX_TENSORS];
    const void *const *from[MAX_TENSORS];
    void *const *to[MAX_TENSORS];
    struct values values[MAX_TENSORS];

    for (uint32_t i = 0; i < batch->count; i++) {
        values[i] = values_between(batch->from[i], batch->to[i]);
        sources[i] = shards_of(batch->from[i]);
        targets[i] = shards_of(batch->to[i]);
        shards_fill(&values[i], batch->from[i], &sources[i]);
        from[i] = (const void *const *)sources[i].at;
        to[i] = targets[i].at;
    }
    ck_assert_msg(weft_simulate(plan, from, to) == WEFT_OK, "%s", weft_last_error());
    for (uint32_t i = 0; i < batch->count; i++) {
        struct pair pair = batch_pair(batch, i);
        ck_assert_msg(values_check(&values[i], batch->to[i], (const void *const *)targets[i].at) ==
                          WEFT_OK,
                      "tensor %u: %s\n%s", i, weft_last_error(), pair_command(&pair, "sim"));
        shards_free(batch->from[i], &sources[i]);
        shards_free(batch->to[i], &targets[i]);
    }
}

TEST(random_batches_keep_every_element)
{
    struct random r = random_begin("random_batches_keep_every_element");
    int cases = test_cases(400), refused = 0;
    uint64_t together = 0;

    for (int i = 0; i < cases; i++) {
        struct batch batch = random_batch(&r, 12);
        weft_plan *plan = NULL;
        if (batch_plan(&batch, &plan) == WEFT_OK) {
            weft_plan_info info = {.struct_size = sizeof info};
            ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
            ck_assert_uint_eq(info.tensors, batch.count);
            together += info.together;
            simulate(&batch, plan);
        } else {
            ck_assert_msg(batch_may_be_refused(&batch), "%s", weft_last_error());
            refused++;
        }
        weft_plan_release(&plan);
        batch_release(&batch);
    }
    printf("%d batches, %d refused, %llu tensors went together\n", cases, refused,
           (unsigned long long)together);
    ck_assert_uint_gt(together, 0);
    ck_assert_int_eq(wf_mem_live(), 0);
}

/* ---- on ranks ---- */

static struct {
    struct random random;
    int cases;
    struct shards results[MAX_TENSORS];
    weft_status verdict;
} shared;

struct run {
    struct batch batch;
    weft_context *context;
    weft_stream *stream;
    int32_t rank;
    bool in_place, strided, in_stream, packed;
    void *sources[MAX_TENSORS], *targets[MAX_TENSORS];
    int64_t source_strides[MAX_TENSORS][WEFT_MAX_DIMS];
    int64_t target_strides[MAX_TENSORS][WEFT_MAX_DIMS];
    const int64_t *strides_in[MAX_TENSORS], *strides_out[MAX_TENSORS];
    struct values values[MAX_TENSORS];
};

/* Column-major, with a gap after every column.  Returns the number of elements of the memory. */
static uint64_t column_major(const weft_shard *shard, int64_t *strides)
{
    int64_t stride = 1;

    for (int32_t d = 0; d < shard->dims; d++) {
        strides[d] = stride;
        stride *= shard->shape[d] + 1;
    }
    return (uint64_t)stride;
}

static weft_status allocate(struct run *run, uint32_t i)
{
    const weft_spec *from = run->batch.from[i], *to = run->batch.to[i];
    uint64_t bytes[] = {weft_dtype_bytes(weft_spec_dtype(from)),
                        weft_dtype_bytes(weft_spec_dtype(to))};
    uint64_t element = bytes[0] > bytes[1] ? bytes[0] : bytes[1], elements;
    weft_shard source, target;

    weft_spec_shard(from, run->rank, &source);
    weft_spec_shard(to, run->rank, &target);
    elements = (uint64_t)(source.elements > target.elements ? source.elements : target.elements);
    run->strides_in[i] = run->strides_out[i] = NULL;
    if (run->strided && i % 2 == 0) {
        uint64_t in = column_major(&source, run->source_strides[i]);
        uint64_t out = column_major(&target, run->target_strides[i]);
        run->strides_in[i] = run->source_strides[i];
        run->strides_out[i] = run->target_strides[i];
        elements = in > out ? in : out;
    }
    run->values[i] = values_between(from, to);
    WF_TRY(weft_alloc(run->context, elements * element + 1, WEFT_MEMORY_DEVICE, &run->sources[i]));
    values_fill(&run->values[i], from, run->rank, run->strides_in[i], run->sources[i]);
    run->targets[i] = run->sources[i];
    if (run->in_place) return WEFT_OK;
    WF_TRY(weft_alloc(run->context, elements * element + 1, WEFT_MEMORY_DEVICE, &run->targets[i]));
    memset(run->targets[i], 0xa5, (size_t)(elements * element));
    return WEFT_OK;
}

/* Copy this rank's part of tensor I, without gaps, to memory that all ranks see. */
static void show(const struct run *run, uint32_t i)
{
    const weft_spec *to = run->batch.to[i];
    const weft_mesh *mesh = weft_spec_mesh(to);
    size_t element = weft_dtype_bytes(weft_spec_dtype(to));
    weft_segment segment;
    int32_t place = 0;

    while (place < weft_mesh_size(mesh) && weft_mesh_rank_at(mesh, place) != run->rank)
        place++;
    for (int64_t at = 0; weft_spec_segment(to, run->rank, run->strides_out[i], at, &segment);
         at += segment.length)
        memcpy((char *)shared.results[i].at[place] + (size_t)at * element,
               (char *)run->targets[i] + (size_t)segment.local * element,
               (size_t)segment.length * element);
}

static weft_status check(const struct run *run)
{
    weft_comm *world = weft_world(run->context);

    WF_TRY(weft_barrier(world, NULL));
    for (uint32_t i = 0; run->rank == 0 && i < run->batch.count; i++)
        shared.results[i] = shards_of(run->batch.to[i]);
    WF_TRY(weft_barrier(world, NULL));
    for (uint32_t i = 0; i < run->batch.count; i++)
        show(run, i);
    WF_TRY(weft_barrier(world, NULL));
    for (uint32_t i = 0; run->rank == 0 && i < run->batch.count; i++) {
        weft_status status = values_check(&run->values[i], run->batch.to[i],
                                          (const void *const *)shared.results[i].at);
        if (status != WEFT_OK) {
            printf("tensor %u: %s%s%s\n", i, weft_last_error(), run->in_place ? ", in place" : "",
                   run->strided ? ", strided" : "");
            shared.verdict = status;
        }
        shards_free(run->batch.to[i], &shared.results[i]);
    }
    WF_TRY(weft_barrier(world, NULL));
    return shared.verdict;
}

/* All tensors of a batch share one piece of scratch, which is not larger than the plan's. */
static weft_status check_scratch(const struct run *run, const weft_plan *plan,
                                 const weft_bind_options *options, const weft_bound *bound)
{
    bool compared = !run->in_place && !run->strided;

    for (uint32_t i = 0; i < run->batch.count; i++)
        if (pair_is_strided(&run->batch.pairs[i])) compared = false;
    return scratch_check(plan, weft_world(run->context), options, bound,
                         run->batch.pairs[0].options.costs, compared);
}

static weft_status run_batch(struct run *run, const weft_plan *plan)
{
    weft_bind_options options = {.struct_size = sizeof options,
                                 .in_place = run->in_place,
                                 .packed = run->packed,
                                 .batch_source_strides = run->strides_in,
                                 .batch_target_strides = run->strides_out};
    weft_stream *stream = run->in_stream ? run->stream : NULL;
    weft_bound *bound = NULL;
    weft_work *work = NULL;

    for (uint32_t i = 0; i < run->batch.count; i++)
        WF_TRY(allocate(run, i));
    WF_TRY(weft_plan_bind(plan, weft_world(run->context), &options, &bound));
    EXPECT(!run->packed || weft_bound_is_packed(bound));
    WF_TRY(check_scratch(run, plan, &options, bound));
    for (int again = 0; again < (run->in_place ? 1 : 2); again++) {
        WF_TRY(weft_redistribute_batch(bound, (const void *const *)run->sources, run->targets,
                                       stream, &work));
        WF_TRY(weft_work_wait(work, WEFT_FOREVER));
        weft_work_release(&work);
    }
    WF_TRY(check(run));
    weft_bound_release(&bound);
    for (uint32_t i = 0; i < run->batch.count; i++) {
        WF_TRY(weft_free(run->context, run->sources[i]));
        if (!run->in_place) WF_TRY(weft_free(run->context, run->targets[i]));
    }
    return WEFT_OK;
}

static weft_status rank_main(void *argument)
{
    struct run run = {0};
    weft_status status = WEFT_OK;

    (void)argument;
    WF_TRY(weft_init(NULL, &run.context));
    WF_TRY(weft_stream_create(run.context, &run.stream));
    run.rank = weft_rank(run.context);
    for (int i = 0; i < shared.cases && status == WEFT_OK; i++) {
        struct random r = {shared.random.seed, wf_hash_mix(shared.random.seed, (uint64_t)i) | 1};
        weft_plan *plan = NULL;
        run.batch = random_batch(&r, RANKS);
        run.in_place = random_chance(&r, 3);
        run.strided = !run.in_place && random_chance(&r, 3);
        run.in_stream = random_chance(&r, 3);
        run.packed = random_chance(&r, 3);
        if (batch_plan(&run.batch, &plan) == WEFT_OK) status = run_batch(&run, plan);
        if (status != WEFT_OK && run.rank == 0) {
            printf("case %d: %s\n", i, weft_last_error());
            batch_print(&run.batch,
                        run.packed ? "redistribute -n 4 --packed" : "redistribute -n 4");
        }
        weft_plan_release(&plan);
        batch_release(&run.batch);
    }
    if (status != WEFT_OK) return status; /* the process frees the failed case's memory */
    weft_stream_release(&run.stream);
    weft_context_release(&run.context);
    return WEFT_OK;
}

TEST(random_batches_arrive_on_real_ranks)
{
    shared.random = random_begin("random_batches_arrive_on_real_ranks");
    shared.cases = test_cases(100);
    ck_assert_msg(weft_threads_run(RANKS, rank_main, NULL) == WEFT_OK, "%s", weft_last_error());
}

/* ---- binding and running ---- */

enum { MANY = 20 };

static weft_status run_many(void *argument)
{
    const weft_spec *from[MANY], *to[MANY];
    void *sources[MANY], *targets[MANY];
    OWNED(weft_mesh) *mesh = NULL;
    OWNED(weft_spec) *rows = NULL, *columns = NULL;
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    weft_plan *plan = NULL;
    weft_plan_info info = {.struct_size = sizeof info};

    (void)argument;
    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_mesh_parse("4", &mesh));
    WF_TRY(weft_spec_parse(mesh, "f32[16,16] S(0)", &rows));
    WF_TRY(weft_spec_parse(mesh, "f32[16,16] S(1)", &columns));
    for (int i = 0; i < MANY; i++) {
        from[i] = rows;
        to[i] = columns;
        WF_TRY(weft_alloc(context, 256, WEFT_MEMORY_DEVICE, &sources[i]));
        WF_TRY(weft_alloc(context, 256, WEFT_MEMORY_DEVICE, &targets[i]));
    }
    WF_TRY(weft_plan_create_batch(MANY, from, to, NULL, &plan));
    ck_assert_int_eq(weft_plan_get(plan, &info), WEFT_OK);
    EXPECT(info.together == MANY && info.steps == 1);
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
    EXPECT(weft_redistribute(bound, sources[0], targets[0], NULL, NULL) == WEFT_ERR_INVALID);
    EXPECT(strstr(weft_last_error(), "weft_redistribute_batch") != NULL);
    EXPECT(weft_bound_scratch(bound) <= info.peak_bytes + 64);
    WF_TRY(weft_redistribute_batch(bound, (const void *const *)sources, targets, NULL, NULL));
    wf_mem_fail_at(0); /* counts from here */
    for (int i = 0; i < 10; i++)
        WF_TRY(weft_redistribute_batch(bound, (const void *const *)sources, targets, NULL, NULL));
    EXPECT(wf_mem_made() == 0);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    for (int i = 0; i < MANY; i++) {
        WF_TRY(weft_free(context, sources[i]));
        WF_TRY(weft_free(context, targets[i]));
    }
    return WEFT_OK;
}

/* The bytes of this rank's messages to others in the common exchange. */
static uint64_t bytes_sent(const weft_bound *bound)
{
    const struct wf_fused *fused = &bound->batch->fused;
    uint64_t sum = 0;

    for (int32_t i = 0; i < fused->comm->size; i++)
        if (i != fused->comm->rank) sum += fused->send_counts[i];
    return sum;
}

TEST_ON_RANKS(RANKS, a_batch_of_casts_is_one_exchange_of_narrow_elements)
{
    static const uint16_t wanted = 0x4248; /* 50 */
    const weft_spec *from[MANY], *to[MANY];
    const void *sources[MANY];
    void *targets[MANY], *memory;
    weft_spec *rows = spec_of("4", "f32[16,16] S(0)"), *columns = spec_of("4", "bf16[16,16] S(1)");
    OWNED(weft_context) *context = NULL;
    weft_bound *bound = NULL;
    weft_plan *plan = NULL;
    uint16_t *narrow;
    uint64_t before;
    bool joins;

    WF_TRY(weft_init(NULL, &context));
    WF_TRY(weft_alloc(context, 64 * 4 + MANY * 64 * 2, WEFT_MEMORY_DEVICE, &memory));
    narrow = (uint16_t *)memory + 2 * 64;
    for (int i = 0; i < 64; i++)
        ((float *)memory)[i] = 50.0625f;
    for (int i = 0; i < MANY; i++) {
        from[i] = rows;
        to[i] = columns;
        sources[i] = memory;
        targets[i] = narrow + i * 64;
    }
    WF_TRY(weft_plan_create_batch(MANY, from, to, NULL, &plan));
    WF_TRY(weft_plan_bind(plan, weft_world(context), NULL, &bound));
    joins = (bound->casts & WF_CASTS_REGIONS) != 0; /* otherwise each tensor has its own steps */
    EXPECT(bound->batch->together == (joins ? MANY : 0));
    EXPECT(!joins || bytes_sent(bound) == (uint64_t)MANY * 3 * 16 * sizeof *narrow);
    before = atomic_load(&weft_world(context)->collectives);
    WF_TRY(weft_redistribute_batch(bound, sources, targets, NULL, NULL));
    EXPECT(!joins || atomic_load(&weft_world(context)->collectives) == before + 1);
    WF_TRY(weft_context_wait(context, NULL, WEFT_FOREVER));
    for (int i = 0; i < MANY * 64; i++)
        EXPECT(narrow[i] == wanted);
    WF_TRY(weft_barrier(weft_world(context), NULL));
    weft_bound_release(&bound);
    weft_plan_release(&plan);
    weft_spec_release(&rows);
    weft_spec_release(&columns);
    WF_TRY(weft_free(context, memory));
    return WEFT_OK;
}

static weft_status bind_batch(void *fail_at)
{
    struct random r = {7, 7};
    weft_plan *plan = NULL;
    struct batch batch;

    do { /* equal on all ranks, and plannable */
        if (plan == NULL && r.state != 7) batch_release(&batch);
        batch = random_batch(&r, RANKS);
    } while (batch_plan(&batch, &plan) != WEFT_OK);
    WF_TRY(bind_short_of_memory(plan, *(const uint64_t *)fail_at));
    weft_plan_release(&plan);
    batch_release(&batch);
    return WEFT_OK;
}

TEST(no_rank_waits_for_a_rank_without_memory)
{
    check_short_memory(RANKS, bind_batch, 20);
}

TEST(a_bound_batch_is_one_exchange_and_allocates_nothing)
{
    setenv("WEFT_CHECK", "0", 1); /* comparison of calls allocates memory */
    ck_assert_msg(weft_threads_run(RANKS, run_many, NULL) == WEFT_OK, "%s", weft_last_error());
    setenv("WEFT_CHECK", "1", 1);
}
