/* kernel_spans.c - lists of spans and merges of rows: compared with the host, and timed. */
#include "kernel_spans.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *host_memory(uint64_t bytes)
{
    void *memory = calloc(1, bytes + 1);

    if (memory == NULL) exit(1);
    return memory;
}

static void copy(const struct kernel_run *run, void *target, const void *source, uint64_t bytes)
{
    must(run->plugin->device->copy(run->device, target, source, bytes, run->stream), "copy");
    must(run->plugin->device->stream_wait(run->device, run->stream, INT64_C(60000000000)),
         "stream_wait");
}

static void expect(bool claim, const char *what, uint64_t index, double got, double want)
{
    if (claim) return;
    fprintf(stderr, "%s %llu is %.17g, not %.17g\n", what, (unsigned long long)index, got, want);
    exit(1);
}

/* Functions of ABI 1.5: the table of an older plugin ends before them. */
static bool has_spans(const struct kernel_run *run)
{
    const weft_kernel_table *kernels = run->plugin->kernel;

    return kernels != NULL &&
           kernels->struct_size >= offsetof(weft_kernel_table, spans_clamp) + sizeof(void *) &&
           kernels->spans_create != NULL;
}

static bool has_merges(const struct kernel_run *run)
{
    const weft_kernel_table *kernels = run->plugin->kernel;

    return kernels != NULL &&
           kernels->struct_size >= offsetof(weft_kernel_table, merge_rows) + sizeof(void *) &&
           kernels->merge_rows != NULL;
}

/* ---- spans ---- */

enum { SPANS = 1500, SUMS = 3 };

/* Spans of f32 that begin at any element of one allocation. */
struct spans {
    const struct kernel_run *run;
    weft_span spans[SPANS];
    void *memory[SPANS];
    uint64_t total;
    float *elements, *device;
    double *sums; /* device: SUMS, their total, and the norm */
    void *list;
};

static struct spans *make_spans(const struct kernel_run *run)
{
    static const uint64_t counts[] = {4096, 4095, 1, 9001, 0, 3};
    struct spans *s = host_memory(sizeof *s);
    uint64_t at = 1;

    s->run = run;
    for (uint32_t i = 0; i < SPANS; i++) {
        s->spans[i] = (weft_span){counts[i % 6], WEFT_DTYPE_F32, i % SUMS};
        s->total += counts[i % 6];
    }
    s->elements = host_memory((s->total + 1) * sizeof(float));
    s->device = device_memory(run->plugin, run->device, (s->total + 1) * sizeof(float));
    s->sums = device_memory(run->plugin, run->device, (SUMS + 2) * sizeof(double));
    for (uint32_t i = 0; i < SPANS; at += s->spans[i++].count)
        s->memory[i] = s->device + at;
    for (uint64_t i = 0; i <= s->total; i++)
        s->elements[i] = (float)(i * 5 % 13) / 2 - 3;
    copy(run, s->device, s->elements, (s->total + 1) * sizeof(float));
    must(run->plugin->kernel->spans_create(run->device, SPANS, s->spans, SUMS, &s->list),
         "spans_create");
    return s;
}

static void free_spans(struct spans *s)
{
    s->run->plugin->kernel->spans_destroy(s->list);
    must(s->run->plugin->device->free(s->run->device, s->device), "free");
    must(s->run->plugin->device->free(s->run->device, s->sums), "free");
    free(s->elements);
    free(s);
}

/* The sums of squares are exact in any order. */
static void check_powers(const struct spans *s)
{
    double want[SUMS] = {0}, got[SUMS];
    const float *element = s->elements + 1;

    for (uint32_t i = 0; i < SPANS; i++)
        for (uint64_t j = 0; j < s->spans[i].count; j++, element++)
            want[s->spans[i].sum] += (double)*element * (double)*element;
    for (int again = 0; again < 2; again++) {
        must(s->run->plugin->kernel->spans_powers(s->list, s->memory, 2, s->sums, s->run->stream),
             "spans_powers");
        copy(s->run, got, s->sums, sizeof got);
        for (uint64_t i = 0; i < SUMS; i++)
            expect(got[i] == want[i], "sum", i, got[i], want[i]);
    }
}

static void check_limit(const struct spans *s)
{
    const weft_norm_limit limit = {.struct_size = sizeof limit, .p = 2, .most = 2};
    const float factor = (float)(2 / (5 + 1e-6));
    double sum = 25, norm = 0;
    float *got = host_memory((s->total + 1) * sizeof *got);

    copy(s->run, s->sums + SUMS, &sum, sizeof sum);
    must(s->run->plugin->kernel->spans_limit(s->list, s->memory, &limit, s->sums + SUMS,
                                             s->sums + SUMS + 1, s->run->stream),
         "spans_limit");
    copy(s->run, &norm, s->sums + SUMS + 1, sizeof norm);
    expect(norm == 5, "norm", 0, norm, 5);
    copy(s->run, got, s->device, (s->total + 1) * sizeof *got);
    for (uint64_t i = 0; i <= s->total; i++) {
        float want = i == 0 ? s->elements[0] : s->elements[i] * factor;

        expect(got[i] == want, "element", i, (double)got[i], (double)want);
    }
    free(got);
}

/* ---- merges ---- */

enum { BATCH = 2, HEADS = 3, ROWS = 700, DEPTH = 96, ALL = BATCH * HEADS * ROWS };

static float lse_of(uint64_t row, uint64_t unseen)
{
    return row % 7 == unseen ? -INFINITY : (float)(row * 5 % 11) - 5;
}

static void check_merged(const float *out, const float *total, const float *lse)
{
    for (uint64_t r = 0; r < ALL; r++) {
        double added = (double)lse_of(r, 2), old = (double)lse_of(r, 4), share = 0, want = old;

        if (!isinf(added)) {
            share = isinf(old) ? 1 : 1 / (1 + exp(old - added));
            want = isinf(old) ? added : log(exp(old) + exp(added));
        }
        expect(fabs((double)lse[r] - want) < 1e-5 || (double)lse[r] == want, "log-sum-exp", r,
               (double)lse[r], want);
        for (uint64_t i = 0; i < DEPTH; i++) {
            want = 1 + share * ((double)out[r * DEPTH + i] - 1);
            expect(fabs((double)total[r * DEPTH + i] - want) < 1e-5, "element", r * DEPTH + i,
                   (double)total[r * DEPTH + i], want);
        }
    }
}

static weft_rows rows_of(void *memory, int64_t depth)
{
    return (weft_rows){memory, {HEADS * ROWS * depth, ROWS * depth, depth}};
}

static void check_merges(const struct kernel_run *run)
{
    enum { VALUES = ALL * (2 * DEPTH + 2) };
    float *host = host_memory(VALUES * sizeof *host), *out = host, *total = out + ALL * DEPTH;
    float *lse = total + ALL * DEPTH, *total_lse = lse + ALL;
    float *device;
    weft_merge merge = {.struct_size = sizeof merge,
                        .dtype = WEFT_DTYPE_F32,
                        .extent = {BATCH, HEADS, ROWS},
                        .depth = DEPTH};

    if (!has_merges(run)) {
        free(host);
        return;
    }
    device = device_memory(run->plugin, run->device, VALUES * sizeof *host);
    for (uint64_t i = 0; i < ALL * DEPTH; i++) {
        out[i] = (float)(i % 17) / 4 - 2;
        total[i] = 1;
    }
    for (uint64_t r = 0; r < ALL; r++) {
        lse[r] = lse_of(r, 2);
        total_lse[r] = lse_of(r, 4);
    }
    copy(run, device, host, VALUES * sizeof *host);
    merge.out = rows_of(device, DEPTH);
    merge.total = rows_of(device + (total - host), DEPTH);
    merge.lse = rows_of(device + (lse - host), 1);
    merge.total_lse = rows_of(device + (total_lse - host), 1);
    must(run->plugin->kernel->merge_rows(run->device, &merge, run->stream), "merge_rows");
    copy(run, host, device, VALUES * sizeof *host);
    check_merged(out, total, total_lse);
    must(run->plugin->device->free(run->device, device), "free");
    free(host);
}

void check_spans(const struct kernel_run *run)
{
    struct spans *s;

    check_merges(run);
    if (!has_spans(run)) return;
    s = make_spans(run);
    check_powers(s);
    check_limit(s);
    free_spans(s);
}

/* ---- speed ---- */

struct job {
    const struct kernel_run *run;
    void *list;
    void **memory;
    double *sums;
    weft_merge merge;
};

static void run_powers(void *self)
{
    const struct job *job = self;

    must(job->run->plugin->kernel->spans_powers(job->list, job->memory, 2, job->sums,
                                                job->run->stream),
         "spans_powers");
}

static void run_limit(void *self)
{
    const weft_norm_limit limit = {.struct_size = sizeof limit, .p = 2, .most = 1e-9};
    const struct job *job = self;

    must(job->run->plugin->kernel->spans_limit(job->list, job->memory, &limit, job->sums,
                                               job->sums + 1, job->run->stream),
         "spans_limit");
}

static void run_merge(void *self)
{
    const struct job *job = self;

    must(job->run->plugin->kernel->merge_rows(job->run->device, &job->merge, job->run->stream),
         "merge_rows");
}

/* MOVED: bytes read and written. */
static void report(const char *kind, const char *detail, uint64_t moved, double us, double rate)
{
    printf(",\n    {\"kind\": \"%s\", \"detail\": \"%s\", \"us\": %.1f, \"gb_s\": %.1f, "
           "\"of_copy\": %.3f}",
           kind, detail, us, (double)moved / us / 1e3, (double)moved / us / 1e3 / rate);
}

static void time_list(const struct kernel_run *run, uint32_t count, uint64_t elements,
                      uint32_t dtype, const char *detail, double rate)
{
    uint64_t bytes = elements * (dtype == WEFT_DTYPE_F32 ? 4 : 2);
    weft_span *spans = host_memory(count * sizeof *spans);
    struct job job = {.run = run, .memory = host_memory(count * sizeof(void *))};
    char *data = device_memory(run->plugin, run->device, count * bytes);

    for (uint32_t i = 0; i < count; i++) {
        spans[i] = (weft_span){elements, dtype, 0};
        job.memory[i] = data + i * bytes;
    }
    must(run->plugin->device->fill(run->device, data, 0x3c, count * bytes, run->stream), "fill");
    job.sums = device_memory(run->plugin, run->device, 2 * sizeof *job.sums);
    must(run->plugin->kernel->spans_create(run->device, count, spans, 1, &job.list),
         "spans_create");
    report("powers", detail, count * bytes,
           device_us(run->plugin, run->device, run->stream, 5, 4, run_powers, &job), rate);
    report("limit", detail, 2 * count * bytes,
           device_us(run->plugin, run->device, run->stream, 5, 4, run_limit, &job), rate);
    run->plugin->kernel->spans_destroy(job.list);
    must(run->plugin->device->free(run->device, job.sums), "free");
    must(run->plugin->device->free(run->device, data), "free");
    free(job.memory);
    free(spans);
}

static void time_merges(const struct kernel_run *run, uint64_t bytes, double copy_us)
{
    enum { WIDE = 128 };
    int64_t rows = (int64_t)(bytes / (2 * WIDE));
    uint64_t elements = (uint64_t)rows * WIDE;
    struct job job = {.run = run};
    char *memory;

    if (!has_merges(run)) return;
    memory = device_memory(run->plugin, run->device, 6 * elements + 8 * (uint64_t)rows);
    must(run->plugin->device->fill(run->device, memory, 0, 6 * elements + 8 * (uint64_t)rows,
                                   run->stream),
         "fill");
    job.merge = (weft_merge){.struct_size = sizeof job.merge,
                             .dtype = WEFT_DTYPE_BF16,
                             .extent = {1, 1, rows},
                             .depth = WIDE,
                             .total = {memory, {0, 0, WIDE}},
                             .out = {memory + 4 * elements, {0, 0, WIDE}},
                             .lse = {memory + 6 * elements, {0, 0, 1}},
                             .total_lse = {memory + 6 * elements + 4 * (uint64_t)rows, {0, 0, 1}}};
    report("merge", "rows of 128 bf16", 10 * elements + 12 * (uint64_t)rows,
           device_us(run->plugin, run->device, run->stream, 5, 4, run_merge, &job),
           2.0 * (double)bytes / copy_us / 1e3);
    must(run->plugin->device->free(run->device, memory), "free");
}

void time_spans(const struct kernel_run *run, uint64_t bytes, double copy_us)
{
    double rate = 2.0 * (double)bytes / copy_us / 1e3;

    time_merges(run, bytes, copy_us);
    if (!has_spans(run)) return;
    time_list(run, SPANS, 4096, WEFT_DTYPE_F32, "1,500 spans of 64 x 64 f32", rate);
    time_list(run, 1, bytes / 4, WEFT_DTYPE_F32, "one span of f32", rate);
    time_list(run, 1, bytes / 2, WEFT_DTYPE_BF16, "one span of bf16", rate);
}
