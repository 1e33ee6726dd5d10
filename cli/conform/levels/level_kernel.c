/* level_kernel.c - regions copied and reduced, and arrays reduced element by element.
 *
 * kernel_numbers.c goes on with cast, scale and fill, kernel_casts.c with the bits of casts,
 * kernel_draws.c with random numbers. */
#include "conform/checks/collective.h"
#include "conform/checks/kernel_casts.h"
#include "conform/checks/kernel_draws.h"
#include "conform/checks/kernel_numbers.h"
#include "conform/checks/kernel_spans.h"
#include "conform/checks/regions.h"

#include <math.h>

#define MAX_SOURCES  5
#define MAX_ELEMENTS 1200

/* Source buffers and one target, in the plugin's memory. */
struct bench {
    struct kit *kit;
    uint32_t dtype;
    uint32_t size;    /* sources */
    uint32_t divisor; /* divisor of an average, if it is not the number of sources */
    enum kit_pattern pattern;
    struct kit_image sources[MAX_SOURCES], target;
    const void *source_pointers[MAX_SOURCES];
    void *target_pointers[1];
    double slack[MAX_ELEMENTS]; /* per element of the target */
};

static void bench_free(struct bench *b)
{
    for (uint32_t i = 0; i < b->size; i++)
        kit_image_free(b->kit, &b->sources[i]);
    kit_image_free(b->kit, &b->target);
}

/* Element INDEX of source SOURCE: random bits without a REDUCTION, else a number that suits it. */
static void element(const struct bench *b, int64_t reduction, uint32_t source, uint64_t index,
                    void *out)
{
    uint64_t seed = kit_case_seed(b->kit);

    if (reduction < 0)
        kit_pattern_bits(seed, b->dtype, (int32_t)source, index, out);
    else
        kit_pattern_element(b->pattern, seed, b->dtype, (uint32_t)reduction, (int32_t)b->size,
                            (int32_t)source, index, out);
}

static bool bench_make(struct bench *b, int64_t reduction, uint64_t source_elements,
                       uint64_t target_elements)
{
    uint64_t bytes = wf_dtype_bytes(b->dtype);

    for (uint32_t i = 0; i < b->size; i++) {
        struct kit_image *image = &b->sources[i];
        if (!kit_image_make(b->kit, image, source_elements * bytes, 0, KIT_DEVICE)) return false;
        for (uint64_t n = 0; n < source_elements; n++)
            element(b, reduction, i, n, image->before + image->start + n * bytes);
        if (!kit_image_upload(b->kit, image)) return false;
        b->source_pointers[i] = kit_image_at(image, 0);
    }
    if (!kit_image_make(b->kit, &b->target, target_elements * bytes, 0, KIT_DEVICE) ||
        !kit_image_upload(b->kit, &b->target))
        return false;
    b->target_pointers[0] = kit_image_at(&b->target, 0);
    return true;
}

static void bench_check(struct bench *b, int64_t reduction)
{
    struct kit_compare compare = {.dtype = b->dtype, .by_value = reduction >= 0, .slack = b->slack};
    struct kit_compare exactly = {.dtype = b->dtype};

    kit_image_check(b->kit, &b->target, "target", &compare);
    for (uint32_t i = 0; i < b->size; i++)
        kit_image_check(b->kit, &b->sources[i], "a source", &exactly);
}

/* Write the reduction of element INDEX of SIZE sources from FIRST on to OUT.  Returns the
 * allowed error: an average is exact only over a power of two. */
static double want_reduced(const struct bench *b, uint32_t reduction, uint32_t first, uint32_t size,
                           uint64_t index, uint8_t *out)
{
    uint32_t divisor = b->divisor != 0 ? b->divisor : size;
    struct wf_number values[MAX_SOURCES] = {{0}};
    double sum = 0;
    uint8_t bytes[16];

    for (uint32_t k = 0; k < size; k++) {
        element(b, reduction, first + k, index, bytes);
        values[k] = wf_number_load(b->dtype, bytes);
        sum += (fabs(values[k].re) + fabs(values[k].im)) / divisor;
    }
    wf_number_store_reduced(b->dtype, reduction, values, (int32_t)size, divisor, out);
    if (reduction != WEFT_REDUCE_AVG || (divisor & (divisor - 1)) == 0) return 0;
    return wf_dtype_epsilon(b->dtype) * (size + 1) * sum;
}

/* True if the call succeeded, so that its result is checked. UNSUPPORTED is valid and gives false.
 */
static bool done(struct kit *kit, const char *what, weft_status status)
{
    if (status == WEFT_ERR_UNSUPPORTED) return false;
    return kit_ok(kit, what, status) &&
           kit_ok(kit, what, kit_finish(kit, NULL, NULL, 10 * KIT_SECOND));
}

/* ---- regions ---- */

struct expected {
    struct bench *b;
    const weft_region *region;
    int64_t reduction;
    uint32_t size; /* sources per element */
};

static void want_element(void *self, uint64_t source_index, uint64_t target_index)
{
    struct expected *e = self;
    struct bench *b = e->b;
    uint8_t *out = b->target.want + b->target.start + target_index * wf_dtype_bytes(b->dtype);

    if (e->reduction < 0)
        element(b, -1, e->region->source, source_index, out);
    else
        b->slack[target_index] =
            want_reduced(b, (uint32_t)e->reduction, e->region->source, e->size, source_index, out);
}

static void want_list(struct bench *b, const struct kit_region_list *list, int64_t reduction,
                      uint32_t size)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct expected e = {b, &list->regions[i], reduction, size};
        kit_region_walk(&list->regions[i], want_element, &e);
    }
}

/* The dtype that stands for an element size where only bits move. */
static const struct {
    uint32_t bytes, dtype;
} elements[] = {{1, WEFT_DTYPE_U8},
                {2, WEFT_DTYPE_U16},
                {4, WEFT_DTYPE_F32},
                {8, WEFT_DTYPE_I64},
                {16, WEFT_DTYPE_C128}};

static void copy_regions(struct kit *kit, const struct kit_region_list *list, size_t element_index)
{
    const weft_kernel_table *table = kit->plugin->kernel;
    struct bench b = {.kit = kit, .dtype = elements[element_index].dtype, .size = list->sources};
    void *made = NULL;

    if (!kit_begin(kit, "regions_copy/%s/element=%u", list->name, elements[element_index].bytes))
        return;
    if (bench_make(&b, -1, list->source_elements, list->target_elements) &&
        kit_ok(kit, "regions_create",
               table->regions_create(kit->device, elements[element_index].bytes, list->count,
                                     list->regions, &made))) {
        want_list(&b, list, -1, 1);
        for (int round = 0; round < 2; round++) /* created once, run several times */
            if (kit_ok(kit, "regions_copy",
                       table->regions_copy(made, b.source_pointers, b.target_pointers, NULL)) &&
                kit_ok(kit, "regions_copy", kit_finish(kit, NULL, NULL, 10 * KIT_SECOND)))
                bench_check(&b, -1);
        table->regions_destroy(made);
    }
    bench_free(&b);
    kit_end(kit);
}

/* DIVISOR 0: by regions_reduce; else an average, by regions_average. */
static void reduce_regions(struct kit *kit, const struct kit_region_list *list, uint32_t dtype,
                           uint32_t reduction, uint32_t divisor)
{
    const weft_kernel_table *table = kit->plugin->kernel;
    struct bench b = {.kit = kit, .dtype = dtype, .size = list->sources + 2, .divisor = divisor};
    const char *name = divisor != 0 ? "regions_average" : "regions_reduce";
    void *made = NULL;

    if (!kit_begin(kit, "%s/%s/%s/%s", name, list->name, wf_dtype_name(dtype),
                   wf_reduction_name(reduction)))
        return;
    if (divisor != 0 && wf_dtype_epsilon(dtype) == 0) b.pattern = KIT_EXTREME;
    if (bench_make(&b, reduction, list->source_elements, list->target_elements) &&
        kit_ok(kit, "regions_create",
               table->regions_create(kit->device, (uint32_t)wf_dtype_bytes(dtype), list->count,
                                     list->regions, &made))) {
        want_list(&b, list, reduction, 3);
        if (done(kit, name,
                 divisor != 0 ? table->regions_average(made, dtype, 3, divisor, b.source_pointers,
                                                       b.target_pointers, NULL)
                              : table->regions_reduce(made, dtype, reduction, 3, b.source_pointers,
                                                      b.target_pointers, NULL)))
            bench_check(&b, reduction);
        table->regions_destroy(made);
    }
    bench_free(&b);
    kit_end(kit);
}

static void regions(struct kit *kit)
{
    struct kit_region_list list;

    for (uint32_t which = 0; kit_region_list(which, 3, &list); which++) {
        for (size_t e = 0; e < WF_COUNT(elements); e++)
            copy_regions(kit, &list, e);
        if (kit->plugin->kernel->regions_reduce == NULL) continue;
        reduce_regions(kit, &list, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, 0);
        reduce_regions(kit, &list, WEFT_DTYPE_BF16, WEFT_REDUCE_MAX, 0);
        reduce_regions(kit, &list, WEFT_DTYPE_I64, WEFT_REDUCE_PROD, 0);
        if (kit->plugin->kernel->regions_average == NULL) continue;
        reduce_regions(kit, &list, WEFT_DTYPE_I8, WEFT_REDUCE_AVG, 2);
        reduce_regions(kit, &list, WEFT_DTYPE_U64, WEFT_REDUCE_AVG, 3);
        reduce_regions(kit, &list, WEFT_DTYPE_F16, WEFT_REDUCE_AVG, 2);
    }
}

static void bad_regions(struct kit *kit)
{
    weft_region region = {.dims = WEFT_MAX_DIMS + 1};
    void *list = &region;
    weft_status status;

    if (!kit_begin(kit, "regions_refused")) return;
    kit_expect(kit, "regions_create with 9 dims",
               kit->plugin->kernel->regions_create(kit->device, 4, 1, &region, &list),
               WEFT_ERR_INVALID);
    region.dims = 0;
    status = kit->plugin->kernel->regions_create(kit->device, 3, 1, &region, &list);
    kit_check(kit, status == WEFT_ERR_INVALID || status == WEFT_ERR_UNSUPPORTED,
              "regions_create with elements of 3 bytes: WEFT_%s", weft_status_name(status));
    kit_check(kit, list == &region, "a failing regions_create has written its output");
    kit_end(kit);
}

/* ---- arrays ---- */

struct reduce_case {
    uint32_t dtype, reduction, size;
    bool onto_source;
    enum kit_pattern pattern;
};

static void reduce(struct kit *kit, const struct reduce_case *c)
{
    struct bench b = {.kit = kit, .dtype = c->dtype, .size = c->size, .pattern = c->pattern};
    uint64_t count = c->size == 2 ? 1021 : 9;
    weft_status status;

    if (!kit_begin(kit, "reduce/%s/%s/size=%u%s%s", wf_dtype_name(c->dtype),
                   wf_reduction_name(c->reduction), c->size, c->onto_source ? "/onto_source" : "",
                   c->pattern == KIT_EXTREME ? "/beyond" : ""))
        return;
    if (bench_make(&b, c->reduction, count, count)) {
        struct kit_image *to = c->onto_source ? &b.sources[1] : &b.target;
        for (uint64_t i = 0; i < count; i++)
            b.slack[i] = want_reduced(&b, c->reduction, 0, c->size, i,
                                      to->want + to->start + i * wf_dtype_bytes(c->dtype));
        status = kit->plugin->kernel->reduce(kit->device, c->dtype, c->reduction, count, c->size,
                                             b.source_pointers, kit_image_at(to, 0), NULL);
        if (done(kit, "reduce", status) && c->onto_source)
            kit_image_check(kit, &b.sources[1], "the source that is the target",
                            &(struct kit_compare){.dtype = c->dtype, .by_value = true});
        else if (status == WEFT_OK)
            bench_check(&b, c->reduction);
    }
    bench_free(&b);
    kit_end(kit);
}

static void reductions(struct kit *kit)
{
    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        for (uint32_t r = 0; r < WEFT_REDUCE_PREMUL_SUM; r++) {
            bool kept = d == WEFT_DTYPE_F8E5M2 && (r == WEFT_REDUCE_MIN || r == WEFT_REDUCE_MAX);
            if (!wf_reduction_defined(r, d)) continue;
            for (uint32_t size = 1; size <= MAX_SOURCES; size += size == 1 ? 1 : 3)
                reduce(kit, &(struct reduce_case){d, r, size, false, KIT_EXACT});
            reduce(kit, &(struct reduce_case){d, r, 2, true, KIT_EXACT});
            if (kept || r == WEFT_REDUCE_AVG)
                reduce(kit, &(struct reduce_case){d, r, MAX_SOURCES, false, KIT_EXTREME});
        }
}

void kit_level_kernel(struct kit *kit)
{
    if (kit->plugin->kernel == NULL) {
        kit_skip(kit, "the plugin has no kernel table");
        return;
    }
    regions(kit);
    bad_regions(kit);
    reductions(kit);
    kit_kernel_numbers(kit);
    kit_kernel_casts(kit);
    kit_kernel_draws(kit);
    kit_kernel_spans(kit);
    kit_kernel_merges(kit);
}
