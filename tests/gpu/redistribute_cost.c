/* redistribute_cost.c - what a redistribution of one collective costs beside the library's own call
 * on the same buffers, communicator and stream: CPU time until the call returns, and the whole
 * until the stream is done.
 *
 *     weft run -n 2 redistribute_cost BOARD [MOST_BYTES]
 *
 * Prints JSON: per transition and size, microseconds of both.  The NCCL plugin's. */
#include "board.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 51 };

typedef int gather_call(const void *, void *, size_t, int, void *, void *);
typedef int reduce_call(const void *, void *, size_t, int, int, void *, void *);

static weft_context *context;
static weft_stream *stream;
static gather_call *all_gather;
static reduce_call *all_reduce, *reduce_scatter;

static void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "%s: %s\n", what, weft_last_error());
    exit(1);
}

/* The library is already open in the plugin; asking again by the same name gives the same one. */
static void find_raw(void)
{
    const char *names[] = {getenv("WEFT_NCCL_LIB"), "libnccl.so.2"};
    void *library = NULL;

    for (int i = 0; i < 2 && library == NULL; i++)
        if (names[i] != NULL) library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        *(void **)(void *)&all_gather = dlsym(library, "ncclAllGather");
        *(void **)(void *)&all_reduce = dlsym(library, "ncclAllReduce");
        *(void **)(void *)&reduce_scatter = dlsym(library, "ncclReduceScatter");
    }
    if (all_gather != NULL && all_reduce != NULL && reduce_scatter != NULL) return;
    fprintf(stderr, "redistribute_cost: the library's own functions were not found\n");
    exit(1);
}

struct job {
    const char *from, *to;
    weft_bound *bound;
    void *source, *target, *comm, *native_stream;
    uint64_t count; /* of the whole tensor */
    uint64_t ranks;
};

static void run_raw(const struct job *job)
{
    uint64_t part = job->count / job->ranks;
    int result;

    if (job->from[0] == 'S')
        result = all_gather(job->source, job->target, part, 7, job->comm, job->native_stream);
    else if (job->to[0] == 'R')
        result =
            all_reduce(job->source, job->target, job->count, 7, 0, job->comm, job->native_stream);
    else
        result =
            reduce_scatter(job->source, job->target, part, 7, 0, job->comm, job->native_stream);
    if (result == 0) return;
    fprintf(stderr, "the library's own call failed with %d\n", result);
    exit(1);
}

static void run(const struct job *job, bool raw)
{
    if (raw)
        run_raw(job);
    else
        must(weft_redistribute(job->bound, job->source, job->target, stream, NULL), "redistribute");
}

static double clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

struct times {
    double cpu, whole; /* microseconds of one call */
};

static struct times time_calls(const struct job *job, bool raw, int calls)
{
    double begin, cpu_begin;
    struct times times;

    board_meet();
    begin = clock_us(CLOCK_MONOTONIC);
    cpu_begin = clock_us(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < calls; i++)
        run(job, raw);
    times.cpu = (clock_us(CLOCK_THREAD_CPUTIME_ID) - cpu_begin) / calls;
    must(weft_stream_wait(context, stream, INT64_C(120000000000)), "waiting");
    times.whole = (clock_us(CLOCK_MONOTONIC) - begin) / calls;
    return times;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Both in turn, so that they meet the same weather, and either first as often.  The library's own
 * CPU time varies by more than ours takes, so its middle counts; of the whole time the least. */
static void compare(const struct job *job, uint64_t bytes, const char *comma)
{
    int calls = bytes > 1 << 20 ? 1 : 20, rounds = bytes > 64 << 20 ? 21 : MOST_ROUNDS;
    double cpu[2][MOST_ROUNDS], whole[2] = {1e300, 1e300};

    time_calls(job, true, 1); /* connects */
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int raw = (round + turn) % 2;
            struct times one = time_calls(job, raw != 0, calls);
            cpu[raw][round] = one.cpu;
            if (one.whole < whole[raw]) whole[raw] = one.whole;
        }
    for (int raw = 0; raw < 2; raw++)
        qsort(cpu[raw], (size_t)rounds, sizeof cpu[raw][0], by_size);
    if (weft_rank(context) != 0) return;
    printf("%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"bytes\": %llu, \"raw_cpu_us\": %.2f, "
           "\"cpu_us\": %.2f, \"raw_us\": %.2f, \"us\": %.2f}",
           comma, job->from, job->to, (unsigned long long)bytes, cpu[1][rounds / 2],
           cpu[0][rounds / 2], whole[1], whole[0]);
    fflush(stdout);
}

static void measure(const weft_mesh *mesh, struct job *job, uint64_t bytes, const char *comma)
{
    weft_spec *from = NULL, *to = NULL;
    weft_plan *plan = NULL;
    char text[96];

    job->count = bytes / 4;
    snprintf(text, sizeof text, "f32[%llu] %s", (unsigned long long)job->count, job->from);
    must(weft_spec_parse(mesh, text, &from), "weft_spec_parse");
    snprintf(text, sizeof text, "f32[%llu] %s", (unsigned long long)job->count, job->to);
    must(weft_spec_parse(mesh, text, &to), "weft_spec_parse");
    must(weft_plan_create(from, to, NULL, &plan), "weft_plan_create");
    must(weft_plan_bind(plan, weft_world(context), NULL, &job->bound), "weft_plan_bind");
    compare(job, bytes, comma);
    weft_bound_release(&job->bound);
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
}

int main(int argc, char **argv)
{
    static const char *const transitions[][2] = {{"S(0)", "R"}, {"P", "R"}, {"P", "S(0)"}};
    uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT64_C(256) << 20;
    const char *comma = "";
    weft_mesh *mesh = NULL;
    struct job job = {0};
    int32_t ranks;

    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_cost BOARD [MOST_BYTES]\n");
        return 2;
    }
    must(weft_init(NULL, &context), "weft_init");
    must(weft_stream_create(context, &stream), "weft_stream_create");
    ranks = weft_size(context);
    job.ranks = (uint64_t)ranks;
    board_open(argv[1], weft_rank(context), ranks, 0);
    find_raw();
    job.comm = weft_comm_native(weft_world(context));
    job.native_stream = weft_stream_native(context, stream);
    must(weft_mesh_create(1, &ranks, NULL, &mesh), "weft_mesh_create");
    must(weft_alloc(context, most, WEFT_MEMORY_DEVICE, &job.source), "weft_alloc");
    must(weft_alloc(context, most, WEFT_MEMORY_DEVICE, &job.target), "weft_alloc");
    must(weft_fill(context, job.source, 0, most, stream), "weft_fill");
    if (weft_rank(context) == 0) printf("{\"ranks\": %d, \"rows\": [", ranks);
    for (size_t t = 0; t < sizeof transitions / sizeof transitions[0]; t++)
        for (uint64_t bytes = 1024; bytes <= most; bytes *= 8, comma = ",") {
            job.from = transitions[t][0];
            job.to = transitions[t][1];
            measure(mesh, &job, bytes, comma);
        }
    if (weft_rank(context) == 0) printf("\n]}\n");
    must(weft_free(context, job.source), "weft_free");
    must(weft_free(context, job.target), "weft_free");
    weft_mesh_release(&mesh);
    weft_stream_release(context, &stream);
    weft_context_release(&context);
    return 0;
}
