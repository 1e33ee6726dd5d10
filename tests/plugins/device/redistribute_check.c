/* redistribute_check.c - random redistributions of device memory on real ranks, all in one set of
 * processes, each compared with slicing the whole tensor.
 *
 *     weft run -n 4 redistribute_check BOARD [CASES]      (the backend is WEFT_BACKEND's)
 *
 * Where the backend pulls, each is done packed as well, and the bits are compared.
 *
 * BOARD names a file that the ranks share, to hand their results to rank 0.  There are 500 CASES
 * unless more are wanted (support/seed.h); a failing one is printed as a command. Prints JSON. */
#include "board.h"
#include "system/redistribute/pairs.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <stdatomic.h>

/* Shards are inside larger allocations, as with a caller's allocator. */
enum { SHARD_BYTES = 16384, POOL_BYTES = 4 << 20 };

static struct shared {
    _Atomic uint64_t seed;
    atomic_int verdict;
    unsigned char shards[BOARD_MOST_RANKS][SHARD_BYTES]; /* by rank */
} * shared;

static weft_context *context;
static weft_stream *stream;
static char *pools[2]; /* of sources, of targets */
static int32_t rank, size;
static int failed;

/* The current case. */
static int case_number;
static const struct pair *case_pair; /* NULL: none */
static bool case_packed;             /* its last run */

/* Print why the current case failed, and its input as a line for tests/data/known.txt. */
static void report(const char *what, const char *why)
{
    char command[64];

    if (case_pair == NULL) {
        fprintf(stderr, "rank %d: %s%s\n", rank, what, why);
        return;
    }
    snprintf(command, sizeof command, "redistribute -n %d --iters 1%s", size,
             case_packed ? " --packed" : "");
    fprintf(stderr, "rank %d, case %d: %s%s\n%s\n", rank, case_number, what, why,
            pair_command(case_pair, command));
}

static void must(weft_status status, const char *what)
{
    char text[64];

    if (status == WEFT_OK) return;
    snprintf(text, sizeof text, "%s: ", what);
    report(text, weft_last_error());
    exit(1);
}

/* ---- one case ---- */

static uint64_t shard_bytes(const weft_spec *spec)
{
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static int32_t place_of(const weft_spec *spec, int32_t of)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);

    for (int32_t i = 0; i < weft_mesh_size(mesh); i++)
        if (weft_mesh_rank_at(mesh, i) == of) return i;
    return -1;
}

struct memory {
    void *source, *target, *host;
    uint64_t source_bytes, target_bytes;
};

/* Every other case is aligned; the rest are aligned to one element. */
static void *place(int pool, int number, const weft_spec *spec)
{
    uint64_t elements = number % 2 == 0 ? 0 : (uint64_t)(number / 2 % 15 + 1);

    return pools[pool] + POOL_BYTES / 2 + elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

static void fill(int number, const struct pair *pair, const struct values *values,
                 struct memory *memory)
{
    memory->source = place(0, number, pair->from);
    memory->target = place(1, number / 30, pair->to);
    memory->source_bytes = shard_bytes(pair->from);
    memory->target_bytes = shard_bytes(pair->to);
    memory->host = calloc(1, SHARD_BYTES);
    if (memory->host == NULL || memory->source_bytes > SHARD_BYTES ||
        memory->target_bytes > SHARD_BYTES) {
        fprintf(stderr, "a shard of %llu bytes\n", (unsigned long long)memory->target_bytes);
        exit(1);
    }
    values_fill(values, pair->from, rank, NULL, memory->host);
    must(weft_memory_copy(context, memory->host, memory->source, memory->source_bytes, stream),
         "copy");
    must(weft_memory_fill(context, memory->target, 0xa5, memory->target_bytes, stream), "fill");
}

static void move(const weft_plan *plan, bool packed, const struct memory *memory)
{
    weft_bind_options options = {.struct_size = sizeof options, .packed = packed};
    weft_bound *bound = NULL;
    weft_work *work = NULL;

    case_packed = packed;
    must(weft_plan_bind(plan, weft_world(context), &options, &bound), "weft_plan_bind");
    for (int again = 0; again < 2; again++) {
        must(weft_redistribute(bound, memory->source, memory->target, stream, &work), "running");
        must(weft_work_wait(work, INT64_C(60000000000)), "waiting");
        weft_work_release(&work);
    }
    must(weft_memory_copy(context, memory->target, memory->host, memory->target_bytes, stream),
         "copy");
    must(weft_context_wait(context, stream, INT64_C(60000000000)), "waiting");
    weft_bound_release(&bound);
}

static void compare(const struct pair *pair, const struct values *values,
                    const struct memory *memory)
{
    const void *shards[BOARD_MOST_RANKS];

    memcpy(shared->shards[rank], memory->host, memory->target_bytes);
    board_meet();
    for (int32_t r = 0; r < size; r++)
        if (place_of(pair->to, r) >= 0) shards[place_of(pair->to, r)] = shared->shards[r];
    if (rank == 0 && values_check(values, pair->to, shards) != WEFT_OK) {
        report("", weft_last_error());
        atomic_store(&shared->verdict, 1);
    }
    board_meet();
    failed = atomic_load(&shared->verdict);
}

/* The libraries first multiply by rounded 1/n, so averages over 3 ranks are not exact. */
static bool averages_exactly(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    const weft_placement *p = weft_spec_placements(spec);

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++) {
        int32_t ranks = weft_mesh_axis_size(mesh, a);
        if (p[a].kind == WEFT_PLACE_PARTIAL && p[a].reduction == WEFT_REDUCE_AVG &&
            (ranks & (ranks - 1)) != 0)
            return false;
    }
    return true;
}

static struct pair draw(struct random *r)
{
    struct pair pair = random_pair(r, size);

    while (!averages_exactly(pair.from) || !averages_exactly(pair.to)) {
        pair_release(&pair);
        pair = random_pair(r, size);
    }
    return pair;
}

/* Pulled and packed runs give the same bits. */
static void move_both_ways(const weft_plan *plan, bool packed, const struct memory *memory)
{
    const weft_comm_table *table = weft_context_plugin(context)->comm;
    void *first;

    move(plan, packed, memory);
    if (table->pull == NULL) return;
    first = malloc(memory->target_bytes + 1);
    if (first == NULL) exit(1);
    memcpy(first, memory->host, memory->target_bytes);
    must(weft_memory_fill(context, memory->target, 0x5a, memory->target_bytes, stream), "fill");
    move(plan, !packed, memory);
    if (memcmp(first, memory->host, memory->target_bytes) != 0) {
        report("packed and not, the bits differ", "");
        atomic_store(&shared->verdict, 1);
    }
    free(first);
}

static bool run_case(int number)
{
    uint64_t seed = atomic_load(&shared->seed);
    struct random r = {seed, wf_hash_mix(seed, (uint64_t)number) | 1};
    struct pair pair = draw(&r);
    struct values values = values_between(pair.from, pair.to);
    bool packed = random_chance(&r, 3);
    struct memory memory;
    weft_plan *plan = NULL;
    bool planned = dtensor_plan_create(pair.from, pair.to, &pair.options, &plan) == WEFT_OK;

    case_number = number;
    case_pair = &pair;
    if (planned) {
        fill(number, &pair, &values, &memory);
        move_both_ways(plan, packed, &memory);
        compare(&pair, &values, &memory);
        free(memory.host);
    }
    case_pair = NULL;
    weft_plan_release(&plan);
    pair_release(&pair);
    return planned;
}

int main(int argc, char **argv)
{
    uint64_t usual = argc > 2 ? strtoull(argv[2], NULL, 10) : 500;
    int cases = test_case_count((int)usual);
    int done = 0;
    uint64_t begin = wf_now_ns();

    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_check BOARD [CASES]\n");
        return 2;
    }
    must(weft_init(
             &(weft_init_options){.struct_size = sizeof(weft_init_options), .plugin_path = PLUGINS},
             &context),
         "weft_init");
    must(weft_stream_create(context, &stream), "weft_stream_create");
    rank = weft_rank(context);
    size = weft_size(context);
    shared = board_open(argv[1], rank, size, sizeof *shared);
    if (rank == 0) {
        atomic_store(&shared->seed, test_seed());
        fprintf(stderr, "WEFT_TEST_SEED=%llu\ncases: %d\n", (unsigned long long)shared->seed,
                cases);
    }
    for (int pool = 0; pool < 2; pool++)
        must(weft_alloc(context, POOL_BYTES, WEFT_MEMORY_DEVICE, (void **)&pools[pool]), "alloc");
    board_meet();
    for (int i = 0; i < cases && !failed; i++)
        done += run_case(i);
    for (int pool = 0; pool < 2; pool++)
        must(weft_free(context, pools[pool]), "free");
    weft_stream_release(&stream);
    if (rank == 0)
        printf("{\"backend\": \"%s\", \"ranks\": %d, \"seed\": %llu, \"cases\": %d, \"moved\": %d, "
               "\"right\": %s, \"seconds\": %.1f}\n",
               weft_context_plugin(context)->name, size, (unsigned long long)shared->seed, cases,
               done, failed ? "false" : "true", (double)(wf_now_ns() - begin) * 1e-9);
    weft_context_release(&context);
    return failed;
}
