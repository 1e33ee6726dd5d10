/* kernel.c - regions copied and reduced, and arrays reduced element by element. */
#include "cases.h"

#include "checks/bench.h"

#include <math.h>
#include <string.h>

/* How the elements of a bench are reduced. */
struct reduction {
    uint32_t reduction, size; /* sources per element */
    uint32_t divisor;         /* of an average, if it is not SIZE */
    enum kit_pattern pattern;
};

static void bits(const struct kit_bench *b, uint32_t source, uint64_t index, void *out)
{
    kit_pattern_bits(kit_case_seed(b->kit), b->from, (int32_t)source, index, out);
}

static double copied(const struct kit_bench *b, uint32_t source, uint64_t index, void *out)
{
    bits(b, source, index, out);
    return 0;
}

static void number(const struct kit_bench *b, uint32_t source, uint64_t index, void *out)
{
    const struct reduction *how = b->self;

    kit_pattern_element(how->pattern, kit_case_seed(b->kit), b->from, how->reduction,
                        (int32_t)b->size, (int32_t)source, index, out);
}

/* An average is exact only over a power of two. */
static double reduced(const struct kit_bench *b, uint32_t source, uint64_t index, void *out)
{
    const struct reduction *how = b->self;
    uint32_t divisor = how->divisor != 0 ? how->divisor : how->size;
    struct wf_number values[KIT_MAX_SOURCES] = {{0}};
    double sum = 0;
    uint8_t bytes[16];

    for (uint32_t k = 0; k < how->size; k++) {
        number(b, source + k, index, bytes);
        values[k] = wf_number_load(b->from, bytes);
        sum += (fabs(values[k].re) + fabs(values[k].im)) / divisor;
    }
    wf_number_store_reduced(b->from, how->reduction, values, (int32_t)how->size, divisor, out);
    if (how->reduction != WEFT_REDUCE_AVG || (divisor & (divisor - 1)) == 0) return 0;
    return wf_dtype_epsilon(b->from) * (how->size + 1) * sum;
}

/* ---- regions ---- */

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
    uint32_t dtype = elements[element_index].dtype;
    struct kit_bench b = {.kit = kit,
                          .from = dtype,
                          .to = dtype,
                          .size = list->sources,
                          .element = bits,
                          .want = copied};

    if (!kit_begin(kit, "regions_copy/%s/element=%u", list->name, elements[element_index].bytes))
        return;
    if (kit_bench_make_regions(&b, list))
        for (int round = 0; round < 2; round++) /* created once, run several times */
            if (kit_done(
                    kit, "regions_copy",
                    table->regions_copy(b.regions, b.source_pointers, b.target_pointers, NULL)))
                kit_bench_check(&b);
    kit_bench_free(&b);
    kit_end(kit);
}

/* DIVISOR 0: by regions_reduce; else an average, by regions_average. */
static void reduce_regions(struct kit *kit, const struct kit_region_list *list, uint32_t dtype,
                           uint32_t reduction, uint32_t divisor)
{
    const weft_kernel_table *table = kit->plugin->kernel;
    struct reduction how = {.reduction = reduction, .size = 3, .divisor = divisor};
    struct kit_bench b = {.kit = kit,
                          .from = dtype,
                          .to = dtype,
                          .size = list->sources + 2,
                          .by_value = true,
                          .element = number,
                          .want = reduced,
                          .self = &how};
    const char *name = divisor != 0 ? "regions_average" : "regions_reduce";
    weft_status status;

    if (!kit_begin(kit, "%s/%s/%s/%s", name, list->name, wf_dtype_name(dtype),
                   wf_reduction_name(reduction)))
        return;
    if (divisor != 0 && wf_dtype_epsilon(dtype) == 0) how.pattern = KIT_EXTREME;
    if (kit_bench_make_regions(&b, list)) {
        status = divisor != 0 ? table->regions_average(b.regions, dtype, how.size, divisor,
                                                       b.source_pointers, b.target_pointers, NULL)
                              : table->regions_reduce(b.regions, dtype, reduction, how.size,
                                                      b.source_pointers, b.target_pointers, NULL);
        if (kit_done_if_supported(kit, name, status)) kit_bench_check(&b);
    }
    kit_bench_free(&b);
    kit_end(kit);
}

void kit_kernel_regions(struct kit *kit)
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

void kit_kernel_regions_refused(struct kit *kit)
{
    weft_region region = {.dims = WEFT_MAX_DIMS + 1};
    void *list = &region;
    weft_status status;

    kit_expect(kit, "regions_create with 9 dims",
               kit->plugin->kernel->regions_create(kit->device, 4, 1, &region, &list),
               WEFT_ERR_INVALID);
    region.dims = 0;
    status = kit->plugin->kernel->regions_create(kit->device, 3, 1, &region, &list);
    kit_check(kit, status == WEFT_ERR_INVALID || status == WEFT_ERR_UNSUPPORTED,
              "regions_create with elements of 3 bytes: WEFT_%s", weft_status_name(status));
    kit_check(kit, list == &region, "a failing regions_create has written its output");
}

/* ---- arrays ---- */

static void reduce(struct kit *kit, uint32_t dtype, struct reduction how, bool onto_source)
{
    struct kit_bench b = {.kit = kit,
                          .from = dtype,
                          .to = dtype,
                          .size = how.size,
                          .by_value = true,
                          .element = number,
                          .want = reduced,
                          .self = &how};
    uint64_t count = how.size == 2 ? 1021 : 9;
    struct kit_image *to = onto_source ? &b.sources[1] : &b.target;

    if (!kit_begin(kit, "reduce/%s/%s/size=%u%s%s", wf_dtype_name(dtype),
                   wf_reduction_name(how.reduction), how.size, onto_source ? "/onto_source" : "",
                   how.pattern == KIT_EXTREME ? "/beyond" : ""))
        return;
    if (kit_bench_make_array(&b, count) &&
        kit_done_if_supported(kit, "reduce",
                              kit->plugin->kernel->reduce(kit->device, dtype, how.reduction, count,
                                                          how.size, b.source_pointers,
                                                          kit_image_at(to, 0), NULL))) {
        if (onto_source) memcpy(to->want + to->start, b.target.want + b.target.start, to->bytes);
        if (onto_source)
            kit_image_check(kit, to, "the source that is the target",
                            &(struct kit_compare){.dtype = dtype, .by_value = true});
        else
            kit_bench_check(&b);
    }
    kit_bench_free(&b);
    kit_end(kit);
}

void kit_kernel_reductions(struct kit *kit)
{
    for (uint32_t d = 0; d < WEFT_DTYPE_COUNT; d++)
        for (uint32_t r = 0; r < WEFT_REDUCE_PREMUL_SUM; r++) {
            bool kept = d == WEFT_DTYPE_F8E5M2 && (r == WEFT_REDUCE_MIN || r == WEFT_REDUCE_MAX);
            if (!wf_reduction_defined(r, d)) continue;
            for (uint32_t size = 1; size <= KIT_MAX_SOURCES; size += size == 1 ? 1 : 3)
                reduce(kit, d, (struct reduction){r, size, 0, KIT_EXACT}, false);
            reduce(kit, d, (struct reduction){r, 2, 0, KIT_EXACT}, true);
            if (kept || r == WEFT_REDUCE_AVG)
                reduce(kit, d, (struct reduction){r, KIT_MAX_SOURCES, 0, KIT_EXTREME}, false);
        }
}

bool kit_when_kernels(struct kit *kit)
{
    if (kit->plugin->kernel == NULL) kit_skip(kit, "the plugin has no kernel table");
    return kit->plugin->kernel != NULL;
}
