/* redistribute_speed.c - redistributions of square f32 tensors on device memory, timed as
 * bench/dtensor.py times PyTorch's: all ranks begin together, and the slowest one counts.
 *
 *     weft run -n 2 redistribute_speed BOARD [SIZES [BUDGET_MS]]     (64,1024,8192 and 300)
 *
 * All in one set of processes.  Prints JSON with the rows of `weft bench redistribute`. */
#include "board.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SAMPLES = 2000, LEAST_SAMPLES = 5, WARM_UP = 3 };

static const char *const transitions[][2] = {{"S(0)", "R"}, {"S(0)", "S(1)"}, {"P", "R"},
                                             {"P", "S(0)"}, {"P", "S(1)"},    {"R", "S(1)"}};
static weft_context *context;
static weft_stream *stream;

static void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "rank %d: %s: %s\n", context != NULL ? weft_rank(context) : -1, what,
            weft_last_error());
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

struct job {
    weft_spec *from, *to;
    weft_plan *plan;
    weft_bound *bound;
    void *source, *target;
};

static uint64_t shard_bytes(const weft_spec *spec)
{
    weft_shard shard;

    weft_spec_shard(spec, weft_rank(context), &shard);
    return (uint64_t)shard.elements * 4;
}

static void begin(struct job *job, const weft_mesh *mesh, int size, const char *const *transition)
{
    char text[96];

    snprintf(text, sizeof text, "f32[%d,%d] %s", size, size, transition[0]);
    must(weft_spec_parse(mesh, text, &job->from), "weft_spec_parse");
    snprintf(text, sizeof text, "f32[%d,%d] %s", size, size, transition[1]);
    must(weft_spec_parse(mesh, text, &job->to), "weft_spec_parse");
    must(weft_plan_create(job->from, job->to, NULL, &job->plan), "weft_plan_create");
    must(weft_plan_bind(job->plan, weft_world(context), NULL, &job->bound), "weft_plan_bind");
    must(weft_alloc(context, shard_bytes(job->from), WEFT_MEMORY_DEVICE, &job->source), "alloc");
    must(weft_alloc(context, shard_bytes(job->to), WEFT_MEMORY_DEVICE, &job->target), "alloc");
    must(weft_fill(context, job->source, 1, shard_bytes(job->from), stream), "fill");
}

static void end(struct job *job)
{
    weft_bound_release(&job->bound);
    weft_plan_release(&job->plan);
    weft_spec_release(&job->from);
    weft_spec_release(&job->to);
    must(weft_free(context, job->source), "free");
    must(weft_free(context, job->target), "free");
}

/* Nanoseconds of the slowest rank. */
static uint64_t run_once(struct job *job)
{
    uint64_t from;

    board_meet();
    from = now_ns();
    must(weft_redistribute(job->bound, job->source, job->target, stream, NULL), "redistribute");
    must(weft_stream_wait(context, stream, INT64_C(120000000000)), "waiting");
    return board_maximum(now_ns() - from);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void measure(const weft_mesh *mesh, int size, const char *const *transition,
                    uint64_t budget_ns, const char **comma)
{
    static uint64_t samples[MOST_SAMPLES];
    uint64_t spent = 0;
    int count = 0;
    struct job job = {0};

    begin(&job, mesh, size, transition);
    for (int i = 0; i < WARM_UP; i++)
        run_once(&job);
    while (count < LEAST_SAMPLES || (spent < budget_ns && count < MOST_SAMPLES))
        spent += samples[count++] = run_once(&job);
    qsort(samples, (size_t)count, sizeof samples[0], by_size);
    if (weft_rank(context) == 0)
        printf("%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"shape\": \"%dx%d\", \"ranks\": %d, "
               "\"median_ns\": %llu, \"min_ns\": %llu}",
               *comma, transition[0], transition[1], size, size, weft_size(context),
               (unsigned long long)samples[count / 2], (unsigned long long)samples[0]);
    *comma = ",";
    end(&job);
}

int main(int argc, char **argv)
{
    const char *sizes = argc > 2 ? argv[2] : "64,1024,8192", *comma = "";
    uint64_t budget_ns = (argc > 3 ? strtoull(argv[3], NULL, 0) : 300) * 1000000;
    weft_mesh *mesh = NULL;
    int32_t ranks;

    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_speed BOARD [SIZES [BUDGET_MS]]\n");
        return 2;
    }
    must(weft_init(NULL, &context), "weft_init");
    must(weft_stream_create(context, &stream), "weft_stream_create");
    ranks = weft_size(context);
    board_open(argv[1], weft_rank(context), ranks, 0);
    must(weft_mesh_create(1, &ranks, NULL, &mesh), "weft_mesh_create");
    if (weft_rank(context) == 0)
        printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    while (*sizes != '\0') {
        char *rest;
        int size = (int)strtol(sizes, &rest, 10);
        for (size_t t = 0; t < sizeof transitions / sizeof transitions[0]; t++)
            measure(mesh, size, transitions[t], budget_ns, &comma);
        sizes = *rest == ',' ? rest + 1 : rest;
    }
    if (weft_rank(context) == 0) printf("\n]}\n");
    weft_mesh_release(&mesh);
    weft_stream_release(context, &stream);
    weft_context_release(&context);
    return 0;
}
