/* cpu_regions.c - the kernel table's lists of regions. */
#include "cpu_regions.h"

#include "stream/cpu_stream.h"

#include <string.h>

#define SCRATCH_BYTES 16384
#define NEAR_HOLDERS  1024 /* maximum number of sources that are reduced without an allocation */

weft_status cpu_regions_create(void *device, uint32_t element_bytes, uint64_t count,
                               const weft_region *regions, void **out)
{
    struct cpu_regions *list;
    uint64_t boxes = count; /* twice as many if their dimensions have to be sorted */

    (void)device;
    if (element_bytes == 0 || element_bytes > 16 || (element_bytes & (element_bytes - 1)) != 0)
        return plug_fail(WEFT_ERR_INVALID,
                         "regions_create: element_bytes is %u; expected 1, 2, 4, 8 or 16",
                         element_bytes);
    for (uint64_t i = 0; i < count; i++) {
        if (regions[i].dims > WEFT_MAX_DIMS)
            return plug_fail(WEFT_ERR_INVALID, "region %llu has %u dimensions; the maximum is %d",
                             (unsigned long long)i, regions[i].dims, WEFT_MAX_DIMS);
        for (uint32_t d = 0; d < regions[i].dims; d++)
            if (regions[i].extent[d] < 0)
                return plug_fail(WEFT_ERR_INVALID,
                                 "region %llu: extent %lld of dimension %u is negative",
                                 (unsigned long long)i, (long long)regions[i].extent[d], d);
    }
    for (uint64_t i = 0; i < count && boxes == count; i++)
        if (!cpu_region_is_sorted(&regions[i])) boxes = 2 * count;
    list = plug_alloc(sizeof *list + boxes * sizeof list->boxes[0]);
    if (list == NULL) return plug_fail_memory(sizeof *list + boxes * sizeof list->boxes[0]);
    list->element = element_bytes;
    list->as_given = list->boxes + boxes - count;
    for (uint64_t i = 0; i < count; i++) {
        if (boxes > count)
            (void)cpu_box_make_as_given(&regions[i], &list->boxes[count + list->count]);
        if (cpu_box_make(&regions[i], &list->boxes[list->count])) list->count++;
    }
    *out = list;
    return WEFT_OK;
}

void cpu_regions_destroy(void *list)
{
    plug_free(list);
}

/* One run of a list. */
struct work {
    const struct cpu_regions *list;
    const void *const *sources;
    void *const *targets;
    struct cpu_reducer reducer; /* SIZE 0: copy */
};

static weft_status run_now(const struct work *work)
{
    const struct cpu_regions *list = work->list;

    for (uint64_t i = 0; i < list->count; i++) {
        const struct cpu_box *box = &list->boxes[i];

        if (work->reducer.size == 0)
            cpu_box_copy(box, list->element, work->sources[box->source],
                         work->targets[box->target]);
        else
            PLUG_TRY(cpu_box_reduce(box, &work->reducer, work->sources + box->source,
                                    work->targets[box->target]));
    }
    return WEFT_OK;
}

static void run_work(void *argument, struct cpu_error *error)
{
    struct work *work = argument;

    error->status = run_now(work);
    if (error->status != WEFT_OK) memcpy(error->text, plug_last_text(), sizeof error->text);
}

void cpu_regions_count(const struct cpu_regions *list, size_t *sources, size_t *targets)
{
    *sources = *targets = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        if (list->boxes[i].source >= *sources) *sources = list->boxes[i].source + (size_t)1;
        if (list->boxes[i].target >= *targets) *targets = list->boxes[i].target + (size_t)1;
    }
}

static weft_status start(struct work *work, void *stream)
{
    size_t sources, targets;

    if (stream == NULL) return run_now(work);
    cpu_regions_count(work->list, &sources, &targets);
    if (sources > 0 && work->reducer.size > 1) sources += work->reducer.size - 1;
    return cpu_stream_run_lent(
        stream, run_work, work, sizeof *work,
        (struct cpu_lent[]){{offsetof(struct work, sources), sources * sizeof(void *)},
                            {offsetof(struct work, targets), targets * sizeof(void *)}},
        2);
}

weft_status cpu_regions_copy(void *list, const void *const *sources, void *const *targets,
                             void *stream)
{
    struct work work = {.list = list, .sources = sources, .targets = targets};

    return start(&work, stream);
}

static weft_status reduce_list(struct work *work, const char *what, void *stream)
{
    const struct cpu_reducer *reducer = &work->reducer;

    if (reducer->reduction == WEFT_REDUCE_PREMUL_SUM ||
        !kit_reduction_defined(reducer->reduction, reducer->dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: %s is not defined on %s", what,
                         kit_reduction_name(reducer->reduction), kit_dtype_name(reducer->dtype));
    if (reducer->size == 0)
        return plug_fail(WEFT_ERR_INVALID, "%s: size is 0; it must be at least 1", what);
    if (kit_dtype_bytes(reducer->dtype) != work->list->element)
        return plug_fail(WEFT_ERR_INVALID,
                         "%s: dtype is %s, but the list has elements of %zu bytes", what,
                         kit_dtype_name(reducer->dtype), work->list->element);
    return start(work, stream);
}

weft_status cpu_regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                               const void *const *sources, void *const *targets, void *stream)
{
    struct work work = {.list = list,
                        .sources = sources,
                        .targets = targets,
                        .reducer = {.dtype = dtype, .reduction = reduction, .size = size}};

    return reduce_list(&work, "regions_reduce", stream);
}

weft_status cpu_regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                const void *const *sources, void *const *targets, void *stream)
{
    struct work work = {
        .list = list,
        .sources = sources,
        .targets = targets,
        .reducer = {.dtype = dtype, .reduction = WEFT_REDUCE_AVG, .size = size, .parts = divisor}};

    if (divisor == 0)
        return plug_fail(WEFT_ERR_INVALID, "regions_average: divisor is 0; it must be at least 1");
    return reduce_list(&work, "regions_average", stream);
}

/* ---- reduction of a box ---- */

/* Memory for the reduction of one line.  Strided sources are copied there densely. */
struct scratch {
    unsigned char *memory;
    int64_t most;        /* elements of each source, and of the result, that fit in MEMORY */
    const void **starts; /* for each source: its first element */
};

static void reduce_line(const struct cpu_line *line, const struct cpu_reducer *reducer,
                        const void *const *sources, unsigned char *target,
                        const struct scratch *scratch)
{
    int64_t size = (int64_t)kit_dtype_bytes(reducer->dtype);
    const struct cpu_kernels *kernels = cpu_kernels();
    bool gather = line->source_stride != 1, scatter = line->target_stride != 1;
    int64_t most = gather || scatter ? scratch->most : line->count;

    for (int64_t first = 0, count; first < line->count; first += count) {
        unsigned char *result = target + (line->target + first * line->target_stride) * size;
        unsigned char *room = scratch->memory;

        count = line->count - first < most ? line->count - first : most;
        for (uint32_t k = 0; k < reducer->size; k++) {
            const unsigned char *from = (const unsigned char *)sources[k] +
                                        (line->source + first * line->source_stride) * size;

            scratch->starts[k] = gather ? room : from;
            if (!gather) continue;
            cpu_copy_strided((size_t)size, room, 1, from, line->source_stride, count);
            room += count * size;
        }
        cpu_reduce(kernels, reducer, scratch->starts, scatter ? room : result, (size_t)count);
        if (scatter) cpu_copy_strided((size_t)size, result, line->target_stride, room, 1, count);
    }
}

weft_status cpu_box_reduce(const struct cpu_box *box, const struct cpu_reducer *reducer,
                           const void *const *sources, void *target)
{
    _Alignas(64) unsigned char near[SCRATCH_BYTES];
    const void *near_starts[NEAR_HOLDERS];
    size_t element = kit_dtype_bytes(reducer->dtype), size = reducer->size;
    size_t starts = size * sizeof(void *), least = (size + 1) * element;
    struct scratch scratch = {.memory = near, .starts = near_starts};
    size_t bytes = least > sizeof near ? least : sizeof near;
    struct cpu_line_walk at = {0};
    void *far = NULL;

    if (bytes > sizeof near || size > NEAR_HOLDERS) {
        far = plug_alloc(starts + 64 + bytes);
        if (far == NULL) return plug_fail_memory(starts + 64 + bytes);
        scratch.starts = far;
        scratch.memory = (unsigned char *)far + (starts + 63) / 64 * 64;
    }
    scratch.most = (int64_t)(bytes / ((size + 1) * element));
    while (cpu_box_next_line(box, &at))
        reduce_line(&at.line, reducer, sources, target, &scratch);
    plug_free(far);
    return WEFT_OK;
}
