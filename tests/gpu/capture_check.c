/* capture_check.c - an all-reduce and a redistribution recorded into a CUDA graph and replayed.
 *
 *     weft run -n 2 capture_check [MODE]      (the NCCL plugin's)
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

enum { SIDE = 64, COUNT = SIDE * SIDE, REPLAYS = 5 };

static weft_context *context;
static weft_stream *stream;
static void *source, *target;
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
    float values[COUNT];

    for (int i = 0; i < COUNT; i++)
        values[i] = first + (float)i;
    must(weft_copy(context, source, values, sizeof values, stream), "copy");
    must(weft_fill(context, target, 0xa5, sizeof values, stream), "fill");
    must(weft_stream_wait(context, stream, INT64_C(15000000000)), "waiting");
}

/* ---- what is captured ---- */

static void run_all_reduce(void *unused)
{
    (void)unused;
    must(weft_all_reduce(weft_world(context), source, target, COUNT, WEFT_DTYPE_F32,
                         WEFT_REDUCE_SUM, stream),
         "weft_all_reduce");
}

static void run_bound(void *bound)
{
    must(weft_redistribute(bound, source, target, stream, NULL), "weft_redistribute");
}

/* Run BODY once as it is and then as a graph, each time with other numbers; RIGHT says what the
 * first element is to be. */
static void check(const char *name, void (*body)(void *), void *argument, float (*right)(int turn))
{
    void *native = weft_stream_native(context, stream), *graph = NULL, *executable = NULL;
    float first;

    upload(0);
    body(argument);
    must(weft_stream_wait(context, stream, INT64_C(15000000000)), "waiting");
    must_cuda(cuda.begin(native, capture_mode), "cuStreamBeginCapture");
    body(argument);
    must_cuda(cuda.end(native, &graph), "cuStreamEndCapture");
    must_cuda(cuda.instantiate(&executable, graph, 0), "cuGraphInstantiate");
    for (int turn = 1; turn <= REPLAYS; turn++) {
        upload((float)(turn * (weft_rank(context) + 1)));
        must_cuda(cuda.launch(executable, native), "cuGraphLaunch");
        must(weft_copy(context, &first, target, sizeof first, stream), "copy");
        must(weft_stream_wait(context, stream, INT64_C(15000000000)), "waiting");
        if (first == right(turn)) continue;
        fprintf(stderr, "rank %d: %s, replay %d: the first element is %g, not %g\n",
                weft_rank(context), name, turn, (double)first, (double)right(turn));
        exit(1);
    }
    /* NCCL does not end a communicator that a graph still holds. */
    must_cuda(cuda.end_executable(executable), "cuGraphExecDestroy");
    must_cuda(cuda.end_graph(graph), "cuGraphDestroy");
}

static float sum(int turn)
{
    int ranks = weft_size(context);

    return (float)(turn * ranks * (ranks + 1) / 2);
}

/* S(0) to S(1): the first row of a rank's part is a piece of rank 0's first row. */
static float piece(int turn)
{
    return (float)(turn + weft_rank(context) * SIDE / weft_size(context));
}

static weft_bound *bind(const weft_mesh *mesh)
{
    weft_spec *from = NULL, *to = NULL;
    weft_plan *plan = NULL;
    weft_bound *bound = NULL;

    must(weft_spec_parse(mesh, "f32[64,64] S(0)", &from), "weft_spec_parse");
    must(weft_spec_parse(mesh, "f32[64,64] S(1)", &to), "weft_spec_parse");
    must(weft_plan_create(from, to, NULL, &plan), "weft_plan_create");
    must(weft_plan_bind(plan, weft_world(context), NULL, &bound), "weft_plan_bind");
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    return bound;
}

int main(int argc, char **argv)
{
    weft_mesh *mesh = NULL;
    weft_bound *bound;
    int32_t ranks;

    if (argc > 1) capture_mode = atoi(argv[1]);
    must(weft_init(NULL, &context), "weft_init");
    find_cuda();
    ranks = weft_size(context);
    must(weft_stream_create(context, &stream), "weft_stream_create");
    must(weft_alloc(context, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &source), "weft_alloc");
    must(weft_alloc(context, COUNT * sizeof(float), WEFT_MEMORY_DEVICE, &target), "weft_alloc");
    must(weft_mesh_create(1, &ranks, NULL, &mesh), "weft_mesh_create");
    bound = bind(mesh);
    check("all_reduce", run_all_reduce, NULL, sum);
    check("redistribution", run_bound, bound, piece);
    if (weft_rank(context) == 0)
        printf(
            "{\"ranks\": %d, \"captured\": [\"all_reduce\", \"S(0) -> S(1)\"], \"replays\": %d}\n",
            ranks, REPLAYS);
    weft_bound_release(&bound);
    weft_mesh_release(&mesh);
    weft_stream_release(context, &stream);
    must(weft_free(context, source), "weft_free");
    must(weft_free(context, target), "weft_free");
    weft_context_release(&context);
    return 0;
}
