/* capture_check.c - collectives and a redistribution recorded into CUDA graphs and replayed, each
 * time with other numbers.
 *
 *     weft run -n 2 capture_check [MODE]      (the nccl plugin's, or the nvshmem plugin's)
 *
 * MODE is CUDA's, 0 if not given: the strictest, which any thread can spoil.  Prints JSON;
 * ends with 1 if a replay leaves anything but the right numbers. */
#include "weft/exec.h"
#include "weft/weft.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 1024, MOST = MOST_SIDE * MOST_SIDE, REPLAYS = 50 };

static weft_context *context;
static weft_stream *stream;
static void *source, *target;
static int side, count;  /* of the tensor, and its elements */
static int capture_mode; /* 0: global, which any thread of the process can spoil; 2: relaxed */

static struct {
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*end_executable)(void *executable);
    int (*end_graph)(void *graph);
} cuda;

static void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "rank %d: %s: %s\n", context != NULL ? weft_rank(context) : -1, what,
            weft_last_error());
    exit(1);
}

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
    must(weft_copy(context, source, values, bytes, stream), "copy");
    must(weft_fill(context, target, 0xa5, bytes, stream), "fill");
    must(weft_stream_wait(context, stream, INT64_C(15000000000)), "waiting");
}

/* ---- what is captured, and what it leaves ---- */

/* Element I of what rank R sends in this turn. */
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

static void run_bound(void *bound)
{
    must(weft_redistribute(bound, source, target, stream, NULL), "weft_redistribute");
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

    must(weft_copy(context, have, target, bytes, stream), "copy");
    must(weft_stream_wait(context, stream, INT64_C(15000000000)), "waiting");
    for (int i = 0; i < subject->count; i++) {
        if (have[i] == subject->right(turn, i)) continue;
        fprintf(stderr, "rank %d: %s, replay %d: element %d is %g, not %g\n", weft_rank(context),
                subject->name, turn, i, (double)have[i], (double)subject->right(turn, i));
        exit(1);
    }
}

/* Once as it is and then as a graph. */
static void check(const struct subject *subject)
{
    void *native = weft_stream_native(context, stream), *graph = NULL, *executable = NULL;

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
    /* Neither kind of work may disturb the other. */
    upload(0);
    subject->run(subject->argument);
    check_turn(subject, 0);
    /* NCCL does not end a communicator that a graph still holds. */
    must_cuda(cuda.end_executable(executable), "cuGraphExecDestroy");
    must_cuda(cuda.end_graph(graph), "cuGraphDestroy");
}

static weft_bound *bind(const weft_mesh *mesh)
{
    weft_spec *from = NULL, *to = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;
    char text[2][64];

    for (int d = 0; d < 2; d++)
        snprintf(text[d], sizeof text[d], "f32[%d,%d] S(%d)", side, side, d);
    must(weft_spec_parse(mesh, text[0], &from), "weft_spec_parse");
    must(weft_spec_parse(mesh, text[1], &to), "weft_spec_parse");
    must(weft_plan_create(from, to, NULL, &plan), "weft_plan_create");
    must(weft_plan_bind(plan, weft_world(context), NULL, &bound), "weft_plan_bind");
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return bound;
}

/* Small tensors take one kernel, large ones several. */
static void check_size(const weft_mesh *mesh, int of_side)
{
    weft_bound *bound;

    side = of_side;
    count = side * side;
    bound = bind(mesh);
    check(&(struct subject){"all_reduce", run_all_reduce, NULL, sum, count});
    check(&(struct subject){"all_gather", run_all_gather, NULL, gathered, count});
    check(&(struct subject){"redistribution", run_bound, bound, piece, count / weft_size(context)});
    weft_bound_release(&bound);
}

int main(int argc, char **argv)
{
    weft_mesh *mesh = NULL;
    int32_t ranks;

    if (argc > 1) capture_mode = atoi(argv[1]);
    must(weft_init(NULL, &context), "weft_init");
    find_cuda();
    ranks = weft_size(context);
    must(weft_stream_create(context, &stream), "weft_stream_create");
    must(weft_alloc(context, MOST * sizeof(float), WEFT_MEMORY_DEVICE, &source), "weft_alloc");
    must(weft_alloc(context, MOST * sizeof(float), WEFT_MEMORY_DEVICE, &target), "weft_alloc");
    must(weft_mesh_create(1, &ranks, NULL, &mesh), "weft_mesh_create");
    check_size(mesh, 64);
    check_size(mesh, MOST_SIDE);
    if (weft_rank(context) == 0)
        printf("{\"ranks\": %d, \"captured\": [\"all_reduce\", \"all_gather\", \"S(0) -> S(1)\"], "
               "\"sides\": [64, %d], \"replays\": %d}\n",
               ranks, MOST_SIDE, REPLAYS);
    weft_mesh_release(&mesh);
    weft_stream_release(context, &stream);
    must(weft_free(context, source), "weft_free");
    must(weft_free(context, target), "weft_free");
    weft_context_release(&context);
    return 0;
}
