/* speed.c - times of experts and of overlapped matmuls beside those of plain collectives.
 *
 *     weft run -n 4 bench/parallel_speed [ROUNDS]
 *
 * Both of a pair are timed in turn, in one run; a sample is the time of the slowest rank, and the
 * shortest sample counts.  Rank 0 prints. */
#include <weft/weft.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != WEFT_OK) {                                                                   \
            fprintf(stderr, "%s: %s\n", #call, weft_last_error());                                 \
            exit(EXIT_FAILURE);                                                                    \
        }                                                                                          \
    } while (0)

static weft_context *ctx;
static int rounds = 20;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The time of the slowest rank. */
static uint64_t time_of(void (*operation)(void *), void *argument)
{
    uint64_t begin, taken, slowest;

    MUST(weft_barrier(weft_world(ctx), NULL));
    begin = now_ns();
    operation(argument);
    taken = now_ns() - begin;
    MUST(weft_all_reduce(weft_world(ctx), &taken, &slowest, 1, WEFT_DTYPE_U64, WEFT_REDUCE_MAX,
                         NULL));
    return slowest;
}

static void compare(const char *what, void (*first)(void *), void (*second)(void *), void *argument,
                    int times)
{
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};

    for (int i = 0; i < times; i++) {
        uint64_t a = time_of(first, argument), b = time_of(second, argument);

        if (a < least[0]) least[0] = a;
        if (b < least[1]) least[1] = b;
    }
    if (weft_rank(ctx) == 0)
        printf("%-48s %10.1f us %10.1f us   %.3f\n", what, (double)least[0] / 1e3,
               (double)least[1] / 1e3, (double)least[1] / (double)least[0]);
}

static void *allocate(uint64_t bytes)
{
    void *memory;

    MUST(weft_alloc(ctx, bytes, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 1, bytes);
    return memory;
}

/* ---- experts ---- */

struct experts {
    weft_experts *experts;
    int64_t *counts;
    int64_t width;
    uint64_t block; /* elements for each rank */
    float *tokens, *received;
};

static void exchange(void *argument)
{
    struct experts *e = argument;

    MUST(weft_all_to_all(weft_world(ctx), e->tokens, e->received, e->block, WEFT_DTYPE_F32, NULL));
}

static void exchange_back(void *argument)
{
    struct experts *e = argument;

    MUST(weft_all_to_all(weft_world(ctx), e->received, e->tokens, e->block, WEFT_DTYPE_F32, NULL));
}

static void dispatch(void *argument)
{
    struct experts *e = argument;
    weft_routing *routing;

    MUST(weft_experts_route(e->experts, e->counts, NULL, &routing));
    MUST(weft_routing_dispatch(routing, WEFT_DTYPE_F32, e->width, e->tokens, e->received, NULL));
    weft_routing_release(&routing);
}

static void combine(void *argument)
{
    struct experts *e = argument;
    weft_routing *routing;

    MUST(weft_experts_route(e->experts, e->counts, NULL, &routing));
    MUST(weft_routing_combine(routing, WEFT_DTYPE_F32, e->width, e->received, e->tokens, NULL));
    weft_routing_release(&routing);
}

static void measure_experts(int32_t per_rank, int64_t tokens)
{
    weft_experts_options options = {sizeof options, per_rank * weft_size(ctx), 0};
    struct experts e = {.width = 1024};
    char mesh_text[32], what[96];
    weft_mesh *mesh;
    uint64_t bytes;

    snprintf(mesh_text, sizeof mesh_text, "ep=%d", weft_size(ctx));
    MUST(weft_mesh_parse(mesh_text, &mesh));
    MUST(weft_experts_create(ctx, mesh, "ep", &options, &e.experts));
    e.counts = calloc((size_t)options.experts, sizeof *e.counts);
    for (int32_t i = 0; i < options.experts; i++)
        e.counts[i] = tokens / options.experts;
    e.block = (uint64_t)(tokens / options.experts * per_rank * e.width);
    bytes = e.block * (uint64_t)weft_size(ctx) * sizeof(float);
    e.tokens = allocate(bytes);
    e.received = allocate(bytes);
    snprintf(what, sizeof what, "dispatch, %d experts per rank, %.1f MiB", per_rank,
             (double)bytes / 1048576);
    compare(what, exchange, dispatch, &e, 5 * rounds);
    snprintf(what, sizeof what, "combine, %d experts per rank, %.1f MiB", per_rank,
             (double)bytes / 1048576);
    compare(what, exchange_back, combine, &e, 5 * rounds);
    MUST(weft_free(ctx, e.tokens));
    MUST(weft_free(ctx, e.received));
    free(e.counts);
    weft_experts_release(&e.experts);
    weft_mesh_release(&mesh);
}

/* ---- overlap ---- */

enum { WIDTH = 256, COLUMNS = 64 };

struct matmul {
    weft_overlap_state *overlap;
    weft_overlap_call call, plain;
    float *shard, *weights, *out;
};

static weft_status multiply(void *user, const weft_overlap_rows *rows)
{
    struct matmul *m = user;

    for (int64_t i = 0; i < rows->count; i++) {
        const float *row = (const float *)rows->memory + i * WIDTH;
        float *out = m->out + (rows->first + i) * COLUMNS;

        memset(out, 0, COLUMNS * sizeof *out);
        for (int k = 0; k < WIDTH; k++)
            for (int j = 0; j < COLUMNS; j++)
                out[j] += row[k] * m->weights[k * COLUMNS + j];
    }
    return WEFT_OK;
}

static weft_status multiply_back(void *user, const weft_overlap_rows *rows)
{
    struct matmul *m = user;

    for (int64_t i = 0; i < rows->count; i++) {
        const float *row = m->out + (rows->first + i) * COLUMNS;
        float *out = (float *)rows->memory + i * WIDTH;

        memset(out, 0, WIDTH * sizeof *out);
        for (int j = 0; j < COLUMNS; j++)
            for (int k = 0; k < WIDTH; k++)
                out[k] += row[j] * m->weights[j * WIDTH + k];
    }
    return WEFT_OK;
}

static void gather_plain(void *argument)
{
    struct matmul *m = argument;
    MUST(weft_overlap_gather(m->overlap, &m->plain, m->shard, multiply, m, NULL));
}

static void gather(void *argument)
{
    struct matmul *m = argument;
    MUST(weft_overlap_gather(m->overlap, &m->call, m->shard, multiply, m, NULL));
}

static void scatter_plain(void *argument)
{
    struct matmul *m = argument;
    MUST(weft_overlap_reduce_scatter(m->overlap, &m->plain, multiply_back, m, m->shard, NULL));
}

static void scatter(void *argument)
{
    struct matmul *m = argument;
    MUST(weft_overlap_reduce_scatter(m->overlap, &m->call, multiply_back, m, m->shard, NULL));
}

static void measure_overlap(int64_t rows, int32_t chunks, bool messages)
{
    weft_overlap_options options = {sizeof options, (uint64_t)rows * WIDTH * 4, messages};
    weft_overlap_info info = {.struct_size = sizeof info};
    struct matmul m = {
        .call = {sizeof m.call, rows, WIDTH, WEFT_DTYPE_F32, chunks, 2 * WIDTH * COLUMNS}};
    char what[96];

    m.plain = m.call;
    m.plain.chunks = WEFT_OVERLAP_PLAIN;
    MUST(weft_overlap_create(weft_world(ctx), &options, &m.overlap));
    MUST(weft_overlap_get(m.overlap, &m.call, &info));
    m.shard = allocate((uint64_t)rows * WIDTH * 4 / (uint64_t)weft_size(ctx));
    m.weights = allocate(WIDTH * COLUMNS * 4);
    m.out = allocate((uint64_t)rows * COLUMNS * 4);
    snprintf(what, sizeof what, "gather, %lld rows, %d chunks%s%s", (long long)rows,
             info.gather_chunks, chunks == 0 ? " by costs" : "", messages ? ", messages" : "");
    compare(what, gather_plain, gather, &m, rounds);
    snprintf(what, sizeof what, "reduce-scatter, %lld rows, %d chunks%s%s", (long long)rows,
             info.reduce_scatter_chunks, chunks == 0 ? " by costs" : "",
             messages ? ", messages" : "");
    compare(what, scatter_plain, scatter, &m, rounds);
    MUST(weft_free(ctx, m.shard));
    MUST(weft_free(ctx, m.weights));
    MUST(weft_free(ctx, m.out));
    weft_overlap_release(&m.overlap);
}

int main(int argc, char **argv)
{
    if (argc > 1) rounds = atoi(argv[1]);
    MUST(weft_init(NULL, &ctx));
    if (weft_rank(ctx) == 0) printf("%-48s %13s %13s   ratio\n", "", "plain", "measured");
    for (int32_t per_rank = 1; per_rank <= 8; per_rank *= 2)
        measure_experts(per_rank, 8192);
    measure_overlap(8192, 0, false);
    for (int32_t chunks = 1; chunks <= 4; chunks *= 2)
        measure_overlap(8192, chunks, false);
    measure_overlap(8192, 2, true);
    weft_context_release(&ctx);
    return EXIT_SUCCESS;
}
