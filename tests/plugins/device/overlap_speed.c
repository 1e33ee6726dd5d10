/* overlap_speed.c - matmuls that run while their rows are gathered, or while their output is
 * reduced, beside the collective alone, the matmul alone and the plain sequence.
 *
 *     weft run -n 4 overlap_speed BOARD [ROWS WIDTH [ROUNDS]]
 *
 * The number of columns is chosen so that the collective takes 50 to 100 % of the matmul's time.
 * "beside" is the matmul beside a copy of the received rows on another stream: what the device
 * leaves an overlap that costs nothing.  Prints JSON.  Ends with 1 if a matmul with overlap has
 * other results than the plain sequence. */
#include "board.h"
#include "compute.h"
#include "speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 4 };

static int rounds = 10;
static weft_stream *side;

struct matmul {
    bool is_gather;
    weft_overlap *overlap;
    weft_overlap_call_options options;
    weft_tensor *tensor; /* SHARD */
    struct {
        int64_t rows, width;
    } call;
    int64_t columns;
    /* Gathered: X[rows, width] W[width, columns] = Y[rows, columns].  Reduced: Y V[columns, width],
     * summed over the ranks and scattered. */
    void *shard, *rows, *weights, *products;
    void *copy; /* of rows of other ranks */
    uint64_t *counts, *offsets;
};

static weft_status multiply(void *user, const weft_overlap_rows *rows)
{
    struct matmul *m = user;
    char *products = (char *)m->products +
                     (uint64_t)(rows->first * m->columns) * weft_dtype_bytes(compute_dtype());

    if (m->is_gather)
        compute_matmul(rows->memory, rows->count, m->call.width, m->weights, m->columns, products,
                       rows->stream);
    else
        compute_matmul(products, rows->count, m->columns, m->weights, m->call.width, rows->memory,
                       rows->stream);
    return WEFT_OK;
}

/* ---- what is timed ---- */

static void communicate(void *self)
{
    struct matmul *m = self;
    weft_comm *world = weft_world(context);

    if (m->is_gather)
        must(weft_all_gather_v(world, m->shard, m->rows, m->counts, m->offsets, compute_dtype(),
                               stream),
             "weft_all_gather_v");
    else
        must(weft_reduce_scatter_v(world, m->rows, m->shard, m->counts, m->offsets, compute_dtype(),
                                   WEFT_REDUCE_SUM, stream),
             "weft_reduce_scatter_v");
}

static void compute_all(void *self)
{
    struct matmul *m = self;
    weft_overlap_rows rows = {sizeof rows, context, stream, 0, m->call.rows, m->rows};

    must(multiply(m, &rows), "multiply");
}

static uint64_t bytes_of(int64_t elements)
{
    return (uint64_t)elements * weft_dtype_bytes(compute_dtype());
}

static void beside(void *self)
{
    struct matmul *m = self;
    int64_t received = m->call.rows * m->call.width - (int64_t)m->counts[weft_rank(context)];

    must(weft_memory_copy(context, m->rows, m->copy, bytes_of(received), side), "weft_memory_copy");
    compute_all(m);
    must(weft_context_wait(context, side, WEFT_FOREVER), "weft_context_wait");
}

static void overlapped(void *self)
{
    struct matmul *m = self;

    if (m->is_gather)
        must(weft_overlap_gather(m->overlap, m->tensor, &m->options, multiply, m, stream),
             "weft_overlap_gather");
    else
        must(weft_overlap_reduce_scatter(m->overlap, &m->options, multiply, m, m->tensor, stream),
             "weft_overlap_reduce_scatter");
}

/* ---- memory ---- */

static void set_columns(struct matmul *m, int64_t columns)
{
    must(weft_free(context, m->weights), "weft_free");
    must(weft_free(context, m->products), "weft_free");
    m->columns = columns;
    m->weights = speed_memory(bytes_of(m->call.width * columns));
    m->products = speed_memory(bytes_of(m->call.rows * columns));
    compute_fill(m->weights, m->call.width * columns, 3);
    if (!m->is_gather) compute_fill(m->products, m->call.rows * columns, weft_rank(context));
    m->options.flops = (uint64_t)(2 * m->call.width * columns);
}

static void begin(struct matmul *m, int64_t rows, int64_t width, bool messages)
{
    weft_overlap_options options = {.struct_size = sizeof options, .messages = messages};
    int64_t ranks = weft_size(context), share = (rows + ranks - 1) / ranks;
    weft_placement split = {.kind = WEFT_PLACE_SHARD};
    weft_spec *spec = NULL;

    options.bytes = bytes_of(ranks * share * width);
    must(weft_overlap_create(context, mesh, "0", &options, &m->overlap), "weft_overlap_create");
    m->options.struct_size = sizeof m->options;
    m->call.rows = rows;
    m->call.width = width;
    m->counts = calloc((size_t)ranks, 2 * sizeof *m->counts);
    if (m->counts == NULL) abort();
    m->offsets = m->counts + ranks;
    for (int64_t i = 0; i < ranks; i++) {
        int64_t first = i * share < rows ? i * share : rows,
                end = (i + 1) * share < rows ? (i + 1) * share : rows;

        m->counts[i] = (uint64_t)((end - first) * width);
        m->offsets[i] = (uint64_t)(first * width);
    }
    m->shard = speed_memory(bytes_of(share * width));
    must(weft_spec_create(mesh, compute_dtype(), 2, (const int64_t[]){rows, width}, &split, &spec),
         "weft_spec_create");
    must(weft_tensor_wrap(context, spec, m->shard, NULL, &m->tensor), "weft_tensor_wrap");
    weft_spec_release(&spec);
    m->rows = speed_memory(bytes_of(rows * width));
    m->copy = speed_memory(bytes_of(rows * width));
    compute_fill(m->shard, share * width, 1 + weft_rank(context));
}

static void end(struct matmul *m)
{
    weft_overlap_release(&m->overlap);
    weft_tensor_release(&m->tensor);
    must(weft_free(context, m->shard), "weft_free");
    must(weft_free(context, m->rows), "weft_free");
    must(weft_free(context, m->copy), "weft_free");
    must(weft_free(context, m->weights), "weft_free");
    must(weft_free(context, m->products), "weft_free");
    free(m->counts);
}

/* ---- measuring ---- */

/* The results of a call in host memory: products of a gather, else the shard. */
static char *results_of(struct matmul *m, uint64_t *bytes)
{
    const void *device = m->is_gather ? m->products : m->shard;
    char *host;

    *bytes = m->is_gather ? bytes_of(m->call.rows * m->columns)
                          : bytes_of((int64_t)m->counts[weft_rank(context)]);
    host = malloc(*bytes + 1);
    if (host == NULL) abort();
    must(weft_memory_copy(context, device, host, *bytes, stream), "weft_memory_copy");
    rank_wait();
    return host;
}

/* Sums are of integers, so that an order does not matter. */
static void compare(struct matmul *m, const char *expected)
{
    uint64_t bytes;
    char *got = results_of(m, &bytes);

    if (memcmp(got, expected, bytes) != 0) {
        fprintf(stderr, "rank %d: %d chunks have other results than the plain sequence\n",
                weft_rank(context), m->options.chunks);
        exit(1);
    }
    free(got);
}

/* Choose columns so that the collective, which takes COMMUNICATION, takes three quarters of the
 * matmul's time.  Returns the latter. */
static double choose_columns(struct matmul *m, double communication)
{
    int64_t step = compute_dtype() == WEFT_DTYPE_BF16 ? 256 : 16, columns = 4 * step;
    double matmul = 0;

    for (int i = 0; i < TRIES; i++) {
        set_columns(m, columns);
        matmul = speed_of(compute_all, m, rounds);
        if (communication >= 0.5 * matmul && communication <= matmul) break;
        columns = (int64_t)((double)columns * communication / 0.75 / matmul) / step * step;
        if (columns < step) columns = step;
        if (columns > 64 * step) columns = 64 * step;
    }
    return matmul;
}

struct times {
    double communication, matmul, beside, plain;
};

static void print_row(const struct matmul *m, int32_t asked, const struct times *t, double taken)
{
    weft_overlap_prediction info = {.struct_size = sizeof info};
    weft_overlap_info about = {.struct_size = sizeof about};
    double longer = t->communication > t->matmul ? t->communication : t->matmul;

    must(weft_overlap_get(m->overlap, &about), "weft_overlap_get");
    must(weft_overlap_predict(m->overlap, weft_tensor_spec(m->tensor), &m->options, &info),
         "weft_overlap_predict");
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"what\": \"%s\", \"ranks\": %d, \"rows\": %lld, \"width\": %lld, \"columns\": %lld, "
           "\"chunks\": %d, \"by_costs\": %s, \"symmetric\": %s, \"communication_min_ns\": %.0f, "
           "\"matmul_min_ns\": %.0f, \"beside_min_ns\": %.0f, \"plain_min_ns\": %.0f, "
           "\"min_ns\": %.0f, "
           "\"communication_of_matmul\": %.3f, \"of_longer\": %.3f, \"of_plain\": %.3f}",
           m->is_gather ? "gather" : "reduce-scatter", weft_size(context), (long long)m->call.rows,
           (long long)m->call.width, (long long)m->columns,
           m->is_gather ? info.gather_chunks : info.reduce_scatter_chunks,
           asked == WEFT_OVERLAP_BY_COSTS ? "true" : "false", about.symmetric ? "true" : "false",
           t->communication, t->matmul, t->beside, t->plain, taken, t->communication / t->matmul,
           taken / longer, taken / t->plain);
}

static void measure(bool is_gather, int64_t rows, int64_t width, bool messages)
{
    static const int32_t asked[] = {WEFT_OVERLAP_BY_COSTS, 1, 2, 4};
    struct matmul m = {.is_gather = is_gather};
    struct times times;
    uint64_t bytes;
    char *expected;

    begin(&m, rows, width, messages);
    times.communication = speed_of(communicate, &m, rounds);
    times.matmul = choose_columns(&m, times.communication);
    times.beside = speed_of(beside, &m, rounds);
    m.options.chunks = WEFT_OVERLAP_PLAIN;
    times.plain = speed_of(overlapped, &m, rounds);
    expected = results_of(&m, &bytes);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        double taken;

        m.options.chunks = asked[i];
        taken = speed_of(overlapped, &m, rounds);
        compare(&m, expected);
        print_row(&m, asked[i], &times, taken);
    }
    free(expected);
    end(&m);
}

int main(int argc, char **argv)
{
    int64_t rows = argc > 3 ? strtoll(argv[2], NULL, 10) : 0,
            width = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;

    if (argc > 4) rounds = (int)strtol(argv[4], NULL, 10);
    if (argc < 2 || argc == 3 || (argc > 3 && (rows < 1 || width < 1)) || rounds < 1) {
        fprintf(stderr, "usage: weft run -n RANKS overlap_speed BOARD [ROWS WIDTH [ROUNDS]]\n");
        return 2;
    }
    rank_begin();
    must(weft_stream_create(context, &side), "weft_stream_create");
    compute_begin(true);
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"compute\": \"%s\", \"rows\": [",
               weft_context_plugin(context)->name, compute_name());
    if (rows == 0) {
        rows = compute_dtype() == WEFT_DTYPE_BF16 ? 16384 : 8192;
        width = compute_dtype() == WEFT_DTYPE_BF16 ? 4096 : 256;
    }
    measure(true, rows, width, false);
    measure(true, rows / 2, 2 * width, false);
    measure(false, rows, width, false);
    measure(true, rows, width, true);
    measure(false, rows, width, true);
    if (weft_rank(context) == 0) printf("\n]}\n");
    board_meet();
    weft_stream_release(&side);
    rank_end();
    return 0;
}
