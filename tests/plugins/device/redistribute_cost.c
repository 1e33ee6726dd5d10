/* redistribute_cost.c - what a redistribution of one collective costs beside the library's own call
 * on the same buffers, communicator and stream: CPU time until the call returns, and the whole
 * until the stream is done.
 *
 *     weft run -n 2 redistribute_cost BOARD [MAX_BYTES]
 *
 * Prints JSON: per transition and size, microseconds of the library's call and how many more ours
 * takes, for calls in a row, and for a call alone after the rank has slept, when nothing that it
 * needs is in the caches any more.  Beside the latter stands how many more the driver's part of
 * ours takes then: an event after the library's call, and that with the questions for the current
 * context and for a capture.  The NCCL plugin's. */
#include "board.h"
#include "rank.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_ROUNDS = 101, ROW = 20, ALONE_ROUNDS = 25, IDLE_NS = 4000000 };

/* Variants of the same operation; OURS and RAW are compared everywhere. */
enum way { OURS, RAW, WITH_EVENT, WITH_QUESTIONS, WAYS };

static struct {
    int (*gather)(const void *, void *, size_t, int, void *, void *);
    int (*all_reduce)(const void *, void *, size_t, int, int, void *, void *);
    int (*reduce_scatter)(const void *, void *, size_t, int, int, void *, void *);
    int (*create_event)(void **, unsigned);
    int (*record)(void *, void *);
    int (*current)(void **);
    int (*capturing)(void *, int *);
    void *comm, *stream, *event;
} raw;

static void must_raw(int result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "rank %d: %s: %d\n", weft_rank(context), what, result);
    exit(1);
}

/* The plugin has already opened the libraries, so dlopen by the same name returns the same. */
static void find(const char *knob, const char *otherwise, const char *symbol, void *address)
{
    const char *name = getenv(knob) != NULL ? getenv(knob) : otherwise;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *found;

    if (library == NULL) library = dlopen(otherwise, RTLD_NOW | RTLD_LOCAL);
    found = library != NULL ? dlsym(library, symbol) : NULL;
    must_raw(found == NULL, symbol);
    *(void **)address = found;
}

static void find_raw(void)
{
    find("WEFT_NCCL_LIB", "libnccl.so.2", "ncclAllGather", &raw.gather);
    find("WEFT_NCCL_LIB", "libnccl.so.2", "ncclAllReduce", &raw.all_reduce);
    find("WEFT_NCCL_LIB", "libnccl.so.2", "ncclReduceScatter", &raw.reduce_scatter);
    find("WEFT_CUDA_LIB", "libcuda.so.1", "cuEventCreate", &raw.create_event);
    find("WEFT_CUDA_LIB", "libcuda.so.1", "cuEventRecord", &raw.record);
    find("WEFT_CUDA_LIB", "libcuda.so.1", "cuCtxGetCurrent", &raw.current);
    find("WEFT_CUDA_LIB", "libcuda.so.1", "cuStreamIsCapturing", &raw.capturing);
    raw.comm = weft_comm_native(weft_world(context));
    raw.stream = weft_stream_native(stream);
    must_raw(raw.create_event(&raw.event, 2), "cuEventCreate"); /* without times, as ours */
}

static void run_raw(const struct move *move)
{
    size_t source = move->source_bytes / 4, target = move->target_bytes / 4;
    int result;

    if (move->from[0] == 'S')
        result = raw.gather(move->source, move->target, source, 7, raw.comm, raw.stream);
    else if (move->to[0] == 'R')
        result = raw.all_reduce(move->source, move->target, target, 7, 0, raw.comm, raw.stream);
    else
        result = raw.reduce_scatter(move->source, move->target, target, 7, 0, raw.comm, raw.stream);
    must_raw(result, "the library's own call");
}

static void run(const struct move *move, enum way way)
{
    int captures = 0;
    void *current;

    if (way == OURS) {
        move_run(move);
        return;
    }
    if (way == WITH_QUESTIONS) must_raw(raw.current(&current), "cuCtxGetCurrent");
    run_raw(move);
    if (way == WITH_QUESTIONS)
        must_raw(raw.capturing(raw.stream, &captures), "cuStreamIsCapturing");
    if (way != RAW) must_raw(raw.record(raw.event, raw.stream), "cuEventRecord");
}

static double cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- measuring ---- */

/* ROUNDS of CALLS in a row by each of the first WAYS. */
struct series {
    int rounds, calls, ways;
    long idle_ns; /* before each row */
};

/* Microseconds of one call. */
struct cost {
    double cpu, whole;
    double more; /* CPU time minus RAW's of the same round */
};

static struct cost time_calls(const struct move *move, enum way way, const struct series *series)
{
    struct cost cost = {0};
    double cpu_begin;
    uint64_t begin;

    if (series->idle_ns > 0) nanosleep(&(struct timespec){.tv_nsec = series->idle_ns}, NULL);
    board_meet();
    begin = now_ns();
    cpu_begin = cpu_us();
    for (int i = 0; i < series->calls; i++)
        run(move, way);
    cost.cpu = (cpu_us() - cpu_begin) / series->calls;
    rank_wait();
    cost.whole = (double)(now_ns() - begin) / 1e3 / series->calls;
    return cost;
}

/* Run all variants in turn, so that all see the same conditions.  The library's CPU time varies by
 * more than weft adds, so the median of the differences per round is used, and the minimum of the
 * total time. */
static void measure(const struct move *move, const struct series *series, struct cost *costs)
{
    double cpu[WAYS][MAX_ROUNDS], more[WAYS][MAX_ROUNDS];

    for (int way = 0; way < series->ways; way++)
        costs[way].whole = 1e300;
    for (int round = 0; round < series->rounds; round++) {
        for (int turn = 0; turn < series->ways; turn++) {
            int way = (round + turn) % series->ways;
            struct cost one = time_calls(move, (enum way)way, series);
            cpu[way][round] = one.cpu;
            if (one.whole < costs[way].whole) costs[way].whole = one.whole;
        }
        for (int way = 0; way < series->ways; way++)
            more[way][round] = cpu[way][round] - cpu[RAW][round];
    }
    for (int way = 0; way < series->ways; way++) {
        costs[way].cpu = median(cpu[way], series->rounds);
        costs[way].more = median(more[way], series->rounds);
    }
}

static void show(const struct move *move, uint64_t bytes, const struct cost *row,
                 const struct cost *alone)
{
    if (weft_rank(context) != 0) return;
    row_begin();
    printf("{\"from\": \"%s\", \"to\": \"%s\", \"bytes\": %llu,\n   \"in_a_row\": "
           "{\"raw_cpu_us\": %.2f, \"more_cpu_us\": %.2f, \"raw_us\": %.2f, \"us\": %.2f},\n"
           "   \"alone\": {\"raw_cpu_us\": %.2f, \"more_cpu_us\": %.2f, \"event_cpu_us\": %.2f, "
           "\"questions_cpu_us\": %.2f, \"raw_us\": %.2f, \"us\": %.2f}}",
           move->from, move->to, (unsigned long long)bytes, row[RAW].cpu, row[OURS].more,
           row[RAW].whole, row[OURS].whole, alone[RAW].cpu, alone[OURS].more,
           alone[WITH_EVENT].more, alone[WITH_QUESTIONS].more, alone[RAW].whole, alone[OURS].whole);
    fflush(stdout);
}

static void compare(const char *const *transition, uint64_t bytes)
{
    struct series in_a_row = {.calls = ROW, .ways = 2};
    struct series alone = {ALONE_ROUNDS, 1, WAYS, IDLE_NS};
    struct cost row_costs[WAYS], alone_costs[WAYS];
    struct move move;
    char type[32];

    in_a_row.rounds = bytes <= 4 << 20 ? MAX_ROUNDS : bytes <= 32 << 20 ? 15 : 5;
    snprintf(type, sizeof type, "f32[%llu]", (unsigned long long)bytes / 4);
    move_begin(&move, type, transition[0], transition[1], 0);
    for (int way = 0; way < WAYS; way++) /* connects, and loads code that is loaded lazily */
        run(&move, (enum way)way);
    rank_wait();
    measure(&move, &in_a_row, row_costs);
    measure(&move, &alone, alone_costs);
    show(&move, bytes, row_costs, alone_costs);
    move_end(&move);
}

int main(int argc, char **argv)
{
    static const char *const transitions[][2] = {{"S(0)", "R"}, {"P", "R"}, {"P", "S(0)"}};
    uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT64_C(256) << 20;

    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_cost BOARD [MAX_BYTES]\n");
        return 2;
    }
    rank_begin();
    board_open(argv[1], weft_rank(context), weft_size(context), 0);
    find_raw();
    if (weft_rank(context) == 0) printf("{\"ranks\": %d, \"rows\": [", weft_size(context));
    for (size_t t = 0; t < sizeof transitions / sizeof transitions[0]; t++)
        for (uint64_t bytes = 1024; bytes <= most; bytes *= 8)
            compare(transitions[t], bytes);
    if (weft_rank(context) == 0) printf("\n]}\n");
    rank_end();
    return 0;
}
