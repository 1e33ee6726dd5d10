/* rank.c - see rank.h. */
#include "rank.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

weft_context *context;
weft_stream *stream;
weft_mesh *mesh;

void must(weft_status status, const char *what)
{
    if (status == WEFT_OK) return;
    fprintf(stderr, "rank %d: %s: %s\n", context != NULL ? weft_rank(context) : -1, what,
            weft_last_error());
    exit(1);
}

void rank_begin(void)
{
    int32_t ranks;

    must(weft_init(NULL, &context), "weft_init");
    must(weft_stream_create(context, &stream), "weft_stream_create");
    ranks = weft_size(context);
    must(weft_mesh_create(1, &ranks, NULL, &mesh), "weft_mesh_create");
}

void rank_end(void)
{
    weft_mesh_release(&mesh);
    weft_stream_release(&stream);
    weft_context_release(&context);
}

void rank_wait(void)
{
    must(weft_context_wait(context, stream, INT64_C(120000000000)), "weft_context_wait");
}

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

double median(double *samples, int count)
{
    qsort(samples, (size_t)count, sizeof samples[0], by_size);
    return samples[count / 2];
}

static const char *comma = "";

void row_begin(void)
{
    printf("%s\n  ", comma);
    comma = ",";
}

void print_rows(const char *sizes, void (*show)(int size))
{
    bool prints = weft_rank(context) == 0;

    if (prints) printf("{\"backend\": \"%s\", \"rows\": [", weft_context_plugin(context)->name);
    while (*sizes != '\0') {
        char *rest;
        show((int)strtol(sizes, &rest, 10));
        sizes = *rest == ',' ? rest + 1 : rest;
    }
    if (prints) printf("\n]}\n");
}

/* ---- one redistribution ---- */

static weft_spec *parse(const char *type, const char *placements, uint64_t *bytes)
{
    weft_spec *spec = NULL;
    weft_shard shard;
    char text[96];

    snprintf(text, sizeof text, "%s %s", type, placements);
    must(weft_spec_parse(mesh, text, &spec), "weft_spec_parse");
    weft_spec_shard(spec, weft_rank(context), &shard);
    *bytes = (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
    return spec;
}

void move_begin(struct move *move, const char *type, const char *from, const char *to,
                uint64_t min_bytes)
{
    move_begin_cast(move, type, from, type, to, min_bytes);
}

void move_begin_cast(struct move *move, const char *type, const char *from, const char *to_type,
                     const char *to, uint64_t min_bytes)
{
    weft_spec *before = parse(type, from, &move->source_bytes);
    weft_spec *after = parse(to_type, to, &move->target_bytes);
    uint64_t room = min_bytes;
    weft_plan *plan = NULL;

    must(weft_plan_create(before, after, NULL, &plan), "weft_plan_create");
    must(weft_plan_bind(plan, weft_world(context), NULL, &move->bound), "weft_plan_bind");
    weft_plan_release(&plan);
    weft_spec_release(&before);
    weft_spec_release(&after);
    move->from = from;
    move->to = to;
    if (room < move->source_bytes) room = move->source_bytes;
    must(weft_alloc(context, room, WEFT_MEMORY_DEVICE, &move->source), "weft_alloc");
    must(weft_memory_fill(context, move->source, 1, room, stream), "weft_memory_fill");
    room = min_bytes > move->target_bytes ? min_bytes : move->target_bytes;
    must(weft_alloc(context, room, WEFT_MEMORY_DEVICE, &move->target), "weft_alloc");
    rank_wait();
}

void move_run(const struct move *move)
{
    must(weft_redistribute(move->bound, move->source, move->target, stream, NULL),
         "weft_redistribute");
}

void move_end(struct move *move)
{
    weft_bound_release(&move->bound);
    must(weft_free(context, move->source), "weft_free");
    must(weft_free(context, move->target), "weft_free");
}
