/* capture_check.c - collectives and a redistribution recorded into CUDA graphs and replayed, each
 * time with other numbers.
 *
 *     weft run -n 2 capture_check [MODE]      (the nccl plugin's, or the nvshmem plugin's)
 *
 * MODE is CUDA's, 0 if not given: the strictest, which any thread can spoil.  Prints JSON;
 * ends with 1 if a replay leaves anything but the right numbers. */
#include "rank.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIDE = 1024, MOST = MAX_SIDE * MAX_SIDE, REPLAYS = 50 };

static void *source, *target;
static int side, count;  /* of the tensor, and its elements */
static int capture_mode; /* 0: global, which any thread of the process can invalidate; 2: relaxed */

static struct {
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*end_executable)(void *executable);
    int (*end_graph)(void *graph);
} cuda;

static void must_cuda(int result, const char *what)
{
    if (result == 0) return;
    fprintf(stderr, "rank %d: %s: CUDA %d\n", weft_rank(context), what, result);
    exit(1);
}

static void find_cuda(void)
{
    const char *given = getenv("WEFT_CUDA_LIB");
    void *library = dlopen(given != NULL ? given : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library != NULL) {
        *(void **)(void *)&cuda.begin = dlsym(library, "cuStreamBeginCapture_v2");
        *(void **)(void *)&cuda.end = dlsym(library, "cuStreamEndCapture");
        *(void **)(void *)&cuda.instantiate = dlsym(library, "cuGraphInstantiateWithFlags");
        *(void **)(void *)&cuda.launch = dlsym(library, "cuGraphLaunch");
        *(void **)(void *)&cuda.end_executable = dlsym(library, "cuGraphExecDestroy");
        *(void **)(void *)&cuda.end_graph = dlsym(library, "cuGraphDestroy");
    }
    if (cuda.begin != NULL && cuda.end != NULL && cuda.instantiate != NULL && cuda.launch != NULL)
        return;
    fprintf(stderr, "capture_check: this driver has no graphs\n");
    exit(77);
}

static void upload(float first)
{
    static float values[MOST];
    size_t bytes = (size_t)count * sizeof *values;

    for (int i = 0; i < count; i++)
        values[i] = first + (float)i;
    must(weft_memory_copy(context, values, source, bytes, stream), "copy");
    must(weft_memory_fill(context, target, 0xa5, bytes, stream), "fill");
    rank_wait();
}

/* ---- what is captured, and what it leaves ---- */

/* Element I of rank R's data in this turn. */
static float sent(int turn, int r, int i)
{
    return (float)(turn * (r + 1) + i);
}

static void run_all_reduce(void *unused)
{
    (void)unused;
    must(weft_all_reduce(weft_world(context), source, target, (uint64_t)count, WEFT_DTYPE_F32,
                         WEFT_REDUCE_SUM, stream),
         "weft_all_reduce");
}

static float sum(int turn, int i)
{
    float all = 0;

    for (int r = 0; r < weft_size(context); r++)
        all += sent(turn, r, i);
    return all;
}

static void run_all_gather(void *unused)
{
    (void)unused;
    must(weft_all_gather(weft_world(context), source, target,
                         (uint64_t)(count / weft_size(context)), WEFT_DTYPE_F32, stream),
         "weft_all_gather");
}

static float gathered(int turn, int i)
{
    int each = count / weft_size(context);

    return sent(turn, i / each, i % each);
}

static void run_move(void *move)
{
    move_run(move);
}

/* S(0) to S(1): rows of all ranks, columns of one. */
static float piece(int turn, int i)
{
    int each = side / weft_size(context), row = i / each, column = i % each;

    return sent(turn, row / each, row % each * side + weft_rank(context) * each + column);
}

struct subject {
    const char *name;
    void (*run)(void *);
    void *argument;
    float (*right)(int turn, int i);
    int count; /* elements it leaves */
};

static void check_turn(const struct subject *subject, int turn)
{
    static float have[MOST];
    size_t bytes = (size_t)subject->count * sizeof *have;

    must(weft_memory_copy(context, target, have, bytes, stream), "copy");
    rank_wait();
    for (int i = 0; i < subject->count; i++) {
        if (have[i] == subject->right(turn, i)) continue;
        fprintf(stderr, "rank %d: %s, replay %d: element %d is %g, not %g\n", weft_rank(context),
                subject->name, turn, i, (double)have[i], (double)subject->right(turn, i));
        exit(1);
    }
}

/* Run once directly and then as a graph. */
static void check(const struct subject *subject)
{
    void *native = weft_stream_native(stream), *graph = NULL, *executable = NULL;

    upload(0);
    subject->run(subject->argument);
    check_turn(subject, 0);
    must_cuda(cuda.begin(native, capture_mode), "cuStreamBeginCapture");
    subject->run(subject->argument);
    must_cuda(cuda.end(native, &graph), "cuStreamEndCapture");
    must_cuda(cuda.instantiate(&executable, graph, 0), "cuGraphInstantiate");
    for (int turn = 1; turn <= REPLAYS; turn++) {
        upload(sent(turn, weft_rank(context), 0));
        must_cuda(cuda.launch(executable, native), "cuGraphLaunch");
        check_turn(subject, turn);
    }
    /* Direct and captured work do not disturb each other. */
    upload(0);
    subject->run(subject->argument);
    check_turn(subject, 0);
    /* NCCL does not end a communicator that a graph still uses. */
    must_cuda(cuda.end_executable(executable), "cuGraphExecDestroy");
    must_cuda(cuda.end_graph(graph), "cuGraphDestroy");
}

/* Small tensors use one kernel, large ones several. */
static void check_size(int of_side)
{
    struct move move;
    char type[32];

    side = of_side;
    count = side * side;
    snprintf(type, sizeof type, "f32[%d,%d]", side, side);
    move_begin(&move, type, "S(0)", "S(1)", (uint64_t)count * sizeof(float));
    source = move.source;
    target = move.target;
    check(&(struct subject){"all_reduce", run_all_reduce, NULL, sum, count});
    check(&(struct subject){"all_gather", run_all_gather, NULL, gathered, count});
    check(&(struct subject){"redistribution", run_move, &move, piece, count / weft_size(context)});
    move_end(&move);
}

int main(int argc, char **argv)
{
    if (argc > 1) capture_mode = atoi(argv[1]);
    rank_begin();
    find_cuda();
    check_size(64);
    check_size(MAX_SIDE);
    if (weft_rank(context) == 0)
        printf("{\"ranks\": %d, \"captured\": [\"all_reduce\", \"all_gather\", \"S(0) -> S(1)\"], "
               "\"sides\": [64, %d], \"replays\": %d}\n",
               weft_size(context), MAX_SIDE, REPLAYS);
    rank_end();
    return 0;
}
