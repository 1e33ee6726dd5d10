/* kernel_check.c - a plugin's kernels: random regions, spans and merges compared with loops on the
 * host, then the speed of regions, transposes, casts, sums and merges beside that of a plain copy.
 *
 *     kernel_check PLUGIN.so [--cases N] [--seed S] [--bytes N]
 *
 * Prints JSON.  Exits with 1 at the first wrong byte. */
#include "kernel_spans.h"

#include "support/seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const weft_plugin *plugin;
static void *device, *stream;
static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

static void wait_for_stream(void)
{
    must(plugin->device->stream_wait(device, stream, INT64_C(60000000000)), "stream_wait");
}

static void copy(void *target, const void *source, uint64_t bytes)
{
    must(plugin->device->copy(device, target, source, bytes, stream), "copy");
    wait_for_stream();
}

/* ---- random regions ---- */

enum { MOST = 1 << 18, BUFFERS = 3 }; /* bytes of a buffer */

/* Strides of a layout of EXTENT with its dimensions in random order and gaps between them.  Returns
 * the number of elements that it spans. */
static int64_t random_layout(uint32_t dims, const int64_t *extent, int64_t *stride)
{
    uint32_t order[WEFT_MAX_DIMS];
    int64_t span = 1;

    for (uint32_t d = 0; d < dims; d++)
        order[d] = d;
    for (uint32_t d = dims; d > 1; d--) {
        uint32_t other = (uint32_t)below(d), swap = order[d - 1];
        order[d - 1] = order[other];
        order[other] = swap;
    }
    if (below(2) == 0) /* in order, innermost last */
        for (uint32_t d = 0; d < dims; d++)
            order[d] = dims - 1 - d;
    for (uint32_t d = 0; d < dims; d++) {
        stride[order[d]] = span;
        span = span * extent[order[d]] + (below(3) == 0 ? (int64_t)below(9) : 0);
    }
    return span;
}

static weft_region random_region(uint32_t target, uint32_t element)
{
    weft_region region = {.source = (uint32_t)below(BUFFERS), .target = target};
    int64_t room = MOST / (int64_t)element, source, target_span;

    do {
        region.dims = (uint32_t)below(5);
        for (uint32_t d = 0; d < region.dims; d++)
            region.extent[d] = (int64_t)below(below(3) == 0 ? 70 : 12) + 1;
        source = random_layout(region.dims, region.extent, region.source_stride);
        target_span = random_layout(region.dims, region.extent, region.target_stride);
    } while (source > room || target_span > room);
    region.source_offset = (int64_t)below((uint64_t)(room - source + 1));
    region.target_offset = (int64_t)below((uint64_t)(room - target_span + 1));
    if (below(2) == 0) region.source_offset = region.source_offset / 16 * 16;
    if (below(2) == 0) region.target_offset = region.target_offset / 16 * 16;
    return region;
}

static void copy_plainly(const weft_region *region, uint32_t dim, uint32_t element,
                         const uint8_t *source, uint8_t *target)
{
    if (dim == region->dims) {
        memcpy(target, source, element);
        return;
    }
    for (int64_t i = 0; i < region->extent[dim]; i++)
        copy_plainly(region, dim + 1, element, source + i * region->source_stride[dim] * element,
                     target + i * region->target_stride[dim] * element);
}

static void check_case(uint64_t number, uint8_t *const *sources, uint8_t *const *wanted,
                       void *const *device_sources, void *const *device_targets, uint8_t *got)
{
    uint32_t element = 1u << below(5), count = (uint32_t)below(BUFFERS) + 1;
    weft_region regions[BUFFERS];
    void *list = NULL;

    for (uint32_t i = 0; i < count; i++) {
        regions[i] = random_region(i, element);
        memset(wanted[i], 0x5a, MOST);
        must(plugin->device->fill(device, device_targets[i], 0x5a, MOST, stream), "fill");
        copy_plainly(&regions[i], 0, element,
                     sources[regions[i].source] + regions[i].source_offset * element,
                     wanted[i] + regions[i].target_offset * element);
    }
    must(plugin->kernel->regions_create(device, element, count, regions, &list), "regions_create");
    must(plugin->kernel->regions_copy(list, (const void *const *)device_sources, device_targets,
                                      stream),
         "regions_copy");
    for (uint32_t i = 0; i < count; i++) {
        copy(got, device_targets[i], MOST);
        for (uint32_t b = 0; b < MOST; b++) {
            if (got[b] == wanted[i][b]) continue;
            fprintf(stderr,
                    "case %llu, elements of %u bytes, region %u: byte %u is %02x, not %02x\n",
                    (unsigned long long)number, element, i, b, got[b], wanted[i][b]);
            exit(1);
        }
    }
    plugin->kernel->regions_destroy(list);
}

static void check_regions(uint64_t cases)
{
    uint8_t *sources[BUFFERS], *wanted[BUFFERS], *got = malloc(MOST);
    void *device_sources[BUFFERS], *device_targets[BUFFERS];

    for (int i = 0; i < BUFFERS; i++) {
        sources[i] = malloc(MOST);
        wanted[i] = malloc(MOST);
        for (int b = 0; b < MOST; b++)
            sources[i][b] = (uint8_t)below(256);
        device_sources[i] = device_memory(plugin, device, MOST);
        device_targets[i] = device_memory(plugin, device, MOST);
        copy(device_sources[i], sources[i], MOST);
    }
    for (uint64_t i = 0; i < cases; i++)
        check_case(i, sources, wanted, device_sources, device_targets, got);
    for (int i = 0; i < BUFFERS; i++) {
        free(sources[i]);
        free(wanted[i]);
        must(plugin->device->free(device, device_sources[i]), "free");
        must(plugin->device->free(device, device_targets[i]), "free");
    }
    free(got);
}

/* ---- reductions at the ends of the range ---- */

/* Three buffers with one element each. */
static const struct {
    uint32_t dtype, reduction, bytes;
    uint64_t in[3], wanted;
} ends[] = {
    /* The mean of largest numbers is finite, and the mean of infinities is infinite. */
    {WEFT_DTYPE_F64,
     WEFT_REDUCE_AVG,
     8,
     {0x7fefffffffffffff, 0x7fefffffffffffff, 0x7fefffffffffffff},
     0x7fefffffffffffff},
    {WEFT_DTYPE_F64,
     WEFT_REDUCE_AVG,
     8,
     {0xffefffffffffffff, 0xffefffffffffffff, 0xffefffffffffffff},
     0xffefffffffffffff},
    {WEFT_DTYPE_F64, WEFT_REDUCE_AVG, 8, {0, 0x7ff0000000000000, 0}, 0x7ff0000000000000},
    /* An infinity of f8e5m2 stays infinite, and finite numbers do not become infinite. */
    {WEFT_DTYPE_F8E5M2, WEFT_REDUCE_SUM, 1, {0x80, 0xfc, 0x80}, 0xfc},
    {WEFT_DTYPE_F8E5M2, WEFT_REDUCE_AVG, 1, {0x7c, 0x7c, 0x7c}, 0x7c},
    {WEFT_DTYPE_F8E5M2, WEFT_REDUCE_SUM, 1, {0x7b, 0x7b, 0x7b}, 0x7b},
    /* The last of equal numbers. */
    {WEFT_DTYPE_F32, WEFT_REDUCE_MAX, 4, {0, 0, 0x80000000}, 0x80000000},
    {WEFT_DTYPE_F32, WEFT_REDUCE_MIN, 4, {0x80000000, 0x80000000, 0}, 0},
};

static void check_ends(void)
{
    void *sources[3], *target = device_memory(plugin, device, 8);

    for (int k = 0; k < 3; k++)
        sources[k] = device_memory(plugin, device, 8);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        uint64_t got = 0;

        for (int k = 0; k < 3; k++)
            copy(sources[k], &ends[i].in[k], 8);
        must(plugin->kernel->reduce(device, ends[i].dtype, ends[i].reduction, 1, 3,
                                    (const void *const *)sources, target, stream),
             "reduce");
        copy(&got, target, ends[i].bytes);
        if (got == ends[i].wanted) continue;
        fprintf(stderr, "reduction %zu at the ends: 0x%llx, wanted 0x%llx\n", i,
                (unsigned long long)got, (unsigned long long)ends[i].wanted);
        exit(1);
    }
    for (int k = 0; k < 3; k++)
        must(plugin->device->free(device, sources[k]), "free");
    must(plugin->device->free(device, target), "free");
}

/* ---- speed ---- */

struct job {
    void *list;
    const void *source;
    void *target;
    uint64_t bytes, count;
    uint32_t from, to;
    const weft_draw *draw;
};

static double copy_us; /* for a plain copy of as many bytes */

static void run_copy(void *self)
{
    const struct job *job = self;

    must(plugin->device->copy(device, job->target, job->source, job->bytes, stream), "copy");
}

/* The second of two messages follows the first. */
static void run_list(void *self)
{
    const struct job *job = self;
    const void *sources[] = {job->source, (const char *)job->source + job->bytes / 2};
    void *targets[] = {job->target, (char *)job->target + job->bytes / 2};

    must(plugin->kernel->regions_copy(job->list, sources, targets, stream), "regions_copy");
}

static void run_cast(void *self)
{
    const struct job *job = self;

    must(plugin->kernel->cast(device, job->from, job->to, job->count, job->source, job->target,
                              stream),
         "cast");
}

static void run_reduce(void *self)
{
    const struct job *job = self;
    const void *sources[] = {job->source, job->target};

    must(plugin->kernel->reduce(device, job->from, WEFT_REDUCE_SUM, job->count, 2, sources,
                                job->target, stream),
         "reduce");
}

static void run_fill(void *self)
{
    const struct job *job = self;
    float value = 1;

    must(plugin->kernel->fill(device, WEFT_DTYPE_F32, job->bytes / 4, &value, job->target, stream),
         "fill");
}

static void run_draw(void *self)
{
    const struct job *job = self;

    must(plugin->kernel->regions_draw(job->list, job->draw, &job->target, stream), "regions_draw");
}

/* MOVED: bytes read and written. */
static void report(const char *kind, const char *detail, uint64_t moved, double us, uint64_t base)
{
    double rate = (double)moved / us / 1e3, plain = 2.0 * (double)base / copy_us / 1e3;

    printf(",\n    {\"kind\": \"%s\", \"detail\": \"%s\", \"us\": %.1f, \"gb_s\": %.1f, "
           "\"of_copy\": %.3f}",
           kind, detail, us, rate, rate / plain);
}

static void time_regions(const char *kind, const char *detail, uint32_t element, uint64_t count,
                         const weft_region *regions, struct job *job)
{
    must(plugin->kernel->regions_create(device, element, count, regions, &job->list),
         "regions_create");
    report(kind, detail, 2 * job->bytes, device_us(plugin, device, stream, 5, 4, run_list, job),
           job->bytes);
    plugin->kernel->regions_destroy(job->list);
}

/* Rows of two runs of RUN bytes, packed into two messages and unpacked again. */
static void time_rows(struct job *job, int64_t run)
{
    int64_t elements = run / 4, rows = (int64_t)job->bytes / (2 * run);
    weft_region pack[2], unpack[2];
    char detail[64];

    for (uint32_t i = 0; i < 2; i++) {
        pack[i] = (weft_region){.target = i,
                                .dims = 2,
                                .source_offset = i * elements,
                                .extent = {rows, elements},
                                .source_stride = {2 * elements, 1},
                                .target_stride = {elements, 1}};
        unpack[i] = (weft_region){.source = i,
                                  .dims = 2,
                                  .target_offset = i * elements,
                                  .extent = {rows, elements},
                                  .source_stride = {elements, 1},
                                  .target_stride = {2 * elements, 1}};
    }
    snprintf(detail, sizeof detail, "f32, runs of %lld bytes", (long long)run);
    time_regions("pack", detail, 4, 2, pack, job);
    time_regions("unpack", detail, 4, 2, unpack, job);
}

/* Rows of RUN bytes that are two runs apart.  The bytes between them are not touched. */
static void time_gapped_rows(struct job *job, int64_t run)
{
    int64_t elements = run / 4, rows = (int64_t)job->bytes / run;
    weft_region pack = {.dims = 2,
                        .extent = {rows, elements},
                        .source_stride = {2 * elements, 1},
                        .target_stride = {elements, 1}};
    weft_region unpack = pack;
    char detail[64];

    memcpy(unpack.source_stride, pack.target_stride, sizeof pack.target_stride);
    memcpy(unpack.target_stride, pack.source_stride, sizeof pack.source_stride);
    snprintf(detail, sizeof detail, "f32, runs of %lld bytes", (long long)run);
    time_regions("pack from gaps", detail, 4, 1, &pack, job);
    time_regions("unpack into gaps", detail, 4, 1, &unpack, job);
}

static void time_transpose(struct job *job, uint32_t element)
{
    int64_t rows = 1, columns;
    weft_region region = {.dims = 2};
    char detail[64];

    while (rows * rows * element < (int64_t)job->bytes)
        rows *= 2;
    columns = (int64_t)job->bytes / element / rows;
    region.extent[0] = rows;
    region.extent[1] = columns;
    region.source_stride[0] = columns;
    region.source_stride[1] = 1;
    region.target_stride[0] = 1;
    region.target_stride[1] = rows;
    snprintf(detail, sizeof detail, "%lld x %lld elements of %u bytes", (long long)rows,
             (long long)columns, element);
    time_regions("transpose", detail, element, 1, &region, job);
}

/* Many regions in one list, one run each. */
static void time_many(struct job *job, uint64_t count)
{
    weft_region *regions = calloc(count, sizeof *regions);
    int64_t each = (int64_t)(job->bytes / 4 / count);
    char detail[64];

    if (regions == NULL) exit(1);
    for (uint64_t i = 0; i < count; i++)
        regions[i] = (weft_region){.dims = 1,
                                   .source_offset = (int64_t)i * 2 * each,
                                   .target_offset = (int64_t)i * each,
                                   .extent = {each},
                                   .source_stride = {1},
                                   .target_stride = {1}};
    snprintf(detail, sizeof detail, "%llu regions of %lld bytes", (unsigned long long)count,
             (long long)each * 4);
    time_regions("list", detail, 4, count, regions, job);
    free(regions);
}

/* Random numbers beside a fill of as many bytes. */
static void time_draws(struct job *job)
{
    static const struct {
        const char *detail;
        uint32_t element;
        weft_draw draw;
    } rows[] = {
        {"uniform f32", 4, {.dtype = WEFT_DTYPE_F32, .last = 1, .unit = 0x1p-24}},
        {"uniform bf16", 2, {.dtype = WEFT_DTYPE_BF16, .last = 1, .unit = 0x1p-8}},
        {"normal f32",
         4,
         {.distribution = WEFT_DRAW_NORMAL, .dtype = WEFT_DTYPE_F32, .deviation = 1}},
        {"normal bf16",
         2,
         {.distribution = WEFT_DRAW_NORMAL, .dtype = WEFT_DTYPE_BF16, .deviation = 1}},
        {"truncated normal f32",
         4,
         {.distribution = WEFT_DRAW_TRUNCATED,
          .dtype = WEFT_DTYPE_F32,
          .first = -2,
          .last = 2,
          .deviation = 1,
          .share = 0.02275,
          .width = 0.9545}},
        {"choice f32",
         4,
         {.distribution = WEFT_DRAW_CHOICE, .dtype = WEFT_DTYPE_F32, .threshold = 1000000000}},
    };
    double fill_us = device_us(plugin, device, stream, 5, 4, run_fill, job);

    if (plugin->kernel->regions_draw == NULL) return;
    printf(",\n    {\"kind\": \"fill\", \"detail\": \"f32\", \"us\": %.1f, \"gb_s\": %.1f}",
           fill_us, (double)job->bytes / fill_us / 1e3);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_draw draw = rows[i].draw;
        weft_region region = {.dims = 1,
                              .extent = {(int64_t)job->bytes / rows[i].element},
                              .source_stride = {1},
                              .target_stride = {1}};
        double us;

        draw.struct_size = sizeof draw;
        draw.seed = 7;
        job->draw = &draw;
        must(plugin->kernel->regions_create(device, rows[i].element, 1, &region, &job->list),
             "regions_create");
        us = device_us(plugin, device, stream, 5, 4, run_draw, job);
        plugin->kernel->regions_destroy(job->list);
        printf(",\n    {\"kind\": \"draw\", \"detail\": \"%s\", \"us\": %.1f, \"gb_s\": %.1f, "
               "\"of_fill\": %.3f}",
               rows[i].detail, us, (double)job->bytes / us / 1e3, fill_us / us);
    }
}

static void time_all(uint64_t bytes)
{
    static const int64_t runs[] = {16, 32, 64, 128, 256, 1024, 4096, 65536};
    struct job job = {.bytes = bytes, .count = bytes / 4};

    job.source = device_memory(plugin, device, 2 * bytes);
    job.target = device_memory(plugin, device, 2 * bytes);
    must(plugin->device->fill(device, job.target, 0, 2 * bytes, stream), "fill");
    must(plugin->device->fill(device, (void *)(uintptr_t)job.source, 0, 2 * bytes, stream), "fill");
    copy_us = device_us(plugin, device, stream, 5, 4, run_copy, &job);
    printf("  \"speed\": [\n    {\"kind\": \"copy\", \"detail\": \"plain\", \"us\": %.1f, "
           "\"gb_s\": %.1f, \"of_copy\": 1}",
           copy_us, 2.0 * (double)bytes / copy_us / 1e3);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        time_rows(&job, runs[i]);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++)
        time_gapped_rows(&job, runs[i]);
    for (uint32_t element = 1; element <= 16; element *= 2)
        time_transpose(&job, element);
    time_many(&job, bytes / 65536);
    time_many(&job, bytes / 4096);
    job.from = WEFT_DTYPE_F32;
    job.to = WEFT_DTYPE_BF16;
    report("cast", "f32 to bf16", bytes + bytes / 2,
           device_us(plugin, device, stream, 5, 4, run_cast, &job), bytes);
    report("reduce", "sum of two of f32", 3 * bytes,
           device_us(plugin, device, stream, 5, 4, run_reduce, &job), bytes);
    job.from = WEFT_DTYPE_BF16;
    job.count = bytes / 2;
    report("reduce", "sum of two of bf16", 3 * bytes,
           device_us(plugin, device, stream, 5, 4, run_reduce, &job), bytes);
    time_draws(&job);
    time_spans(&(struct kernel_run){plugin, device, stream}, bytes, copy_us);
    printf("\n  ]\n");
}

int main(int argc, char **argv)
{
    uint64_t cases = 300, bytes = UINT64_C(256) << 20, seed = test_seed();
    weft_device_info info = {.struct_size = sizeof info};

    if (argc < 2) {
        fprintf(stderr, "usage: kernel_check PLUGIN.so [--cases N] [--seed S] [--bytes N]\n");
        return 2;
    }
    for (int i = 2; i + 1 < argc; i += 2) {
        uint64_t value = strtoull(argv[i + 1], NULL, 0);
        if (strcmp(argv[i], "--cases") == 0) cases = value;
        if (strcmp(argv[i], "--seed") == 0) seed = value;
        if (strcmp(argv[i], "--bytes") == 0) bytes = value;
    }
    plugin = load_plugin(argv[1], 0, &device);
    must(plugin->device->describe(device, &info), "describe");
    must(plugin->device->stream_create(device, &stream), "stream_create");
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    check_regions(cases);
    check_ends();
    check_spans(&(struct kernel_run){plugin, device, stream});
    printf("{\n  \"device\": \"%s\", \"seed\": %llu, \"random_cases\": %llu", info.name,
           (unsigned long long)seed, (unsigned long long)cases);
    if (bytes > 0) {
        printf(", \"bytes\": %llu,\n", (unsigned long long)bytes);
        time_all(bytes);
    }
    printf("}\n");
    plugin->device->stream_destroy(device, stream);
    plugin->device->close(device);
    return 0;
}
