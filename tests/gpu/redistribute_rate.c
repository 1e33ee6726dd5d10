/* redistribute_rate.c - redistributions of square f32 tensors in a row on a stream, beside plain
 * copies of the bytes that they must read and write, by the same ranks at the same time.
 *
 *     weft run -n 4 redistribute_rate BOARD [SIZES]     (64,1024,8192)
 *
 * Prints JSON: nanoseconds of one of a row, of one alone until the host has seen its end, of the
 * copy, and how much of the copy's speed that is.  The slowest rank counts, the median of rounds.
 */
#include "board.h"
#include "weft/exec.h"
#include "weft/weft.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15 };
#define LIMIT_NS INT64_C(60000000000)

static const struct transition {
    const char *from, *to;
    int reads; /* shards of the result's size that each rank must read */
} transitions[] = {
    {"S(0)", "R", 1}, {"S(0)", "S(1)", 1}, {"R", "S(1)", 1}, {"P", "R", 1}, {"P", "S(0)", 0}};

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

/* A redistribution, or, without a bound plan, a copy of BYTES. */
struct job {
    weft_spec *from, *to;
    weft_plan *plan;
    weft_bound *bound;
    void *source, *target;
    uint64_t source_bytes, target_bytes, copied_bytes;
    bool copies;
};

static void run(const struct job *job)
{
    if (job->copies)
        must(weft_copy(context, job->target, job->source, job->copied_bytes, stream), "copy");
    else
        must(weft_redistribute(job->bound, job->source, job->target, stream, NULL), "redistribute");
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Nanoseconds of one of LENGTH in a row. */
static uint64_t measure(const struct job *job, int length)
{
    uint64_t samples[ROUNDS];

    for (int round = -2; round < ROUNDS; round++) {
        uint64_t from, took;
        board_meet();
        from = now_ns();
        for (int i = 0; i < length; i++)
            run(job);
        must(weft_stream_wait(context, stream, LIMIT_NS), "waiting");
        took = board_maximum(now_ns() - from) / (uint64_t)length;
        if (round >= 0) samples[round] = took;
    }
    qsort(samples, ROUNDS, sizeof samples[0], by_size);
    return samples[ROUNDS / 2];
}

static uint64_t shard_bytes(const weft_spec *spec)
{
    weft_shard shard;

    weft_spec_shard(spec, weft_rank(context), &shard);
    return (uint64_t)shard.elements * 4;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void begin(struct job *job, const weft_mesh *mesh, int size, const struct transition *t)
{
    uint64_t ranks = (uint64_t)weft_size(context), room;
    char text[96];

    snprintf(text, sizeof text, "f32[%d,%d] %s", size, size, t->from);
    must(weft_spec_parse(mesh, text, &job->from), "weft_spec_parse");
    snprintf(text, sizeof text, "f32[%d,%d] %s", size, size, t->to);
    must(weft_spec_parse(mesh, text, &job->to), "weft_spec_parse");
    must(weft_plan_create(job->from, job->to, NULL, &job->plan), "weft_plan_create");
    must(weft_plan_bind(job->plan, weft_world(context), NULL, &job->bound), "weft_plan_bind");
    job->source_bytes = shard_bytes(job->from);
    job->target_bytes = shard_bytes(job->to);
    /* Half of what is read and written: a copy does each once. */
    job->copied_bytes = job->target_bytes * (1 + (t->reads > 0 ? 1 : ranks)) / 2;
    room = greater(greater(job->source_bytes, job->target_bytes), job->copied_bytes);
    must(weft_alloc(context, room, WEFT_MEMORY_DEVICE, &job->source), "alloc");
    must(weft_alloc(context, room, WEFT_MEMORY_DEVICE, &job->target), "alloc");
    must(weft_fill(context, job->source, 1, job->source_bytes, stream), "fill");
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

static void show(const weft_mesh *mesh, int size, const struct transition *t, const char **comma)
{
    int length = size <= 1024 ? 50 : 10;
    struct job job = {0};
    uint64_t row, alone, copy;

    begin(&job, mesh, size, t);
    row = measure(&job, length);
    alone = measure(&job, 1);
    job.copies = true;
    copy = measure(&job, length);
    if (weft_rank(context) == 0)
        printf("%s\n  {\"from\": \"%s\", \"to\": \"%s\", \"shape\": \"%dx%d\", \"ranks\": %d, "
               "\"in_a_row_ns\": %llu, \"alone_ns\": %llu, \"copy_ns\": %llu, \"share\": %.3f}",
               *comma, t->from, t->to, size, size, weft_size(context), (unsigned long long)row,
               (unsigned long long)alone, (unsigned long long)copy, (double)copy / (double)row);
    *comma = ",";
    end(&job);
}

int main(int argc, char **argv)
{
    const char *sizes = argc > 2 ? argv[2] : "64,1024,8192", *comma = "";
    weft_mesh *mesh = NULL;
    int32_t ranks;

    if (argc < 2) {
        fprintf(stderr, "usage: weft run -n RANKS redistribute_rate BOARD [SIZES]\n");
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
        for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++)
            show(mesh, size, &transitions[i], &comma);
        sizes = *rest == ',' ? rest + 1 : rest;
    }
    if (weft_rank(context) == 0) printf("\n]}\n");
    weft_mesh_release(&mesh);
    weft_stream_release(context, &stream);
    weft_context_release(&context);
    return 0;
}
