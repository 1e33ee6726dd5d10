/* kernel.c - local copies and arithmetic, one element at a time. */
#include "example.h"

#include <string.h>

struct list {
    uint64_t count;
    uint32_t element;
    weft_region regions[];
};

static weft_status regions_create(void *device, uint32_t element_bytes, uint64_t count,
                                  const weft_region *regions, void **out)
{
    struct list *list;

    (void)device;
    if (element_bytes == 0 || element_bytes > 16 || (element_bytes & (element_bytes - 1)) != 0)
        return plug_fail(WEFT_ERR_INVALID, "elements of %u bytes", element_bytes);
    for (uint64_t i = 0; i < count; i++)
        if (regions[i].dims > WEFT_MAX_DIMS)
            return plug_fail(WEFT_ERR_INVALID, "a region has %u dimensions", regions[i].dims);
    list = plug_alloc(sizeof *list + count * sizeof *regions);
    if (list == NULL) return plug_fail(WEFT_ERR_NO_MEMORY, "no memory for regions");
    list->count = count;
    list->element = element_bytes;
    if (count > 0) memcpy(list->regions, regions, count * sizeof *regions);
    *out = list;
    return WEFT_OK;
}

static void regions_destroy(void *list)
{
    plug_free(list);
}

uint64_t example_region_count(const void *list)
{
    return ((const struct list *)list)->count;
}

uint64_t example_region_end(const void *self, uint64_t index, uint32_t *source)
{
    const struct list *list = self;
    const weft_region *region = &list->regions[index];
    int64_t last = region->source_offset;

    *source = region->source;
    for (uint32_t d = 0; d < region->dims; d++) {
        if (region->extent[d] == 0) return 0;
        if (region->source_stride[d] > 0)
            last += (region->extent[d] - 1) * region->source_stride[d];
    }
    return (uint64_t)(last + 1) * list->element;
}

/* The operation on each element: a copy, or a reduction over SIZE sources. */
struct action {
    const struct list *list;
    uint32_t dtype, reduction, size, divisor;
    const void *const *sources;
    void *const *targets;
};

static void do_element(const struct action *action, const weft_region *region, int64_t from,
                       int64_t to)
{
    uint64_t bytes = action->list->element;
    const uint8_t *sources[64];
    uint8_t *target = (uint8_t *)action->targets[region->target] + (uint64_t)to * bytes;

    for (uint32_t k = 0; k < action->size; k++)
        sources[k] = (const uint8_t *)action->sources[region->source + k] + (uint64_t)from * bytes;
    if (action->size == 1 && action->divisor <= 1)
        memcpy(target, sources[0], bytes);
    else
        example_reduce(action->dtype, action->reduction, action->divisor, 1, action->size,
                       (const void *const *)sources, target);
}

static void do_dimension(const struct action *action, const weft_region *region, uint32_t dim,
                         int64_t from, int64_t to)
{
    if (dim == region->dims) {
        do_element(action, region, from, to);
        return;
    }
    for (int64_t i = 0; i < region->extent[dim]; i++)
        do_dimension(action, region, dim + 1, from + i * region->source_stride[dim],
                     to + i * region->target_stride[dim]);
}

static void do_all(const struct action *action)
{
    for (uint64_t i = 0; i < action->list->count; i++)
        do_dimension(action, &action->list->regions[i], 0, action->list->regions[i].source_offset,
                     action->list->regions[i].target_offset);
}

static weft_status regions_copy(void *list, const void *const *sources, void *const *targets,
                                void *stream)
{
    (void)stream;
    do_all(&(struct action){.list = list, .size = 1, .sources = sources, .targets = targets});
    return WEFT_OK;
}

static weft_status check(uint32_t dtype, uint32_t reduction, uint32_t size)
{
    if (dtype >= WEFT_DTYPE_COUNT || reduction == WEFT_REDUCE_PREMUL_SUM ||
        !kit_reduction_defined(reduction, dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "reduction %u of dtype %u", reduction, dtype);
    if (size == 0 || size > 64) return plug_fail(WEFT_ERR_INVALID, "%u sources", size);
    return WEFT_OK;
}

static weft_status regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    weft_status status = check(dtype, reduction, size);

    (void)stream;
    if (status != WEFT_OK) return status;
    do_all(&(struct action){list, dtype, reduction, size, 0, sources, targets});
    return WEFT_OK;
}

static weft_status regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream)
{
    weft_status status = check(dtype, WEFT_REDUCE_AVG, size);

    (void)stream;
    if (status != WEFT_OK) return status;
    if (divisor == 0) return plug_fail(WEFT_ERR_INVALID, "regions_average: divisor is 0");
    do_all(&(struct action){list, dtype, WEFT_REDUCE_AVG, size, divisor, sources, targets});
    return WEFT_OK;
}

static weft_status reduce(void *device, uint32_t dtype, uint32_t reduction, uint64_t count,
                          uint32_t size, const void *const *sources, void *target, void *stream)
{
    weft_status status = check(dtype, reduction, size);

    (void)device;
    (void)stream;
    if (status == WEFT_OK) example_reduce(dtype, reduction, 0, count, size, sources, target);
    return status;
}

static weft_status cast(void *device, uint32_t from, uint32_t to, uint64_t count,
                        const void *source, void *target, void *stream)
{
    (void)device;
    (void)stream;
    if (!example_cast(from, to, count, source, target))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "cast from dtype %u to %u", from, to);
    return WEFT_OK;
}

static weft_status scale(void *device, uint32_t dtype, uint64_t count, const void *factor,
                         void *data, void *stream)
{
    (void)device;
    (void)stream;
    if (dtype >= WEFT_DTYPE_COUNT || !kit_reduction_defined(WEFT_REDUCE_PREMUL_SUM, dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "scale of dtype %u", dtype);
    example_scale(dtype, count, factor, data);
    return WEFT_OK;
}

static weft_status fill(void *device, uint32_t dtype, uint64_t count, const void *value,
                        void *target, void *stream)
{
    uint64_t bytes = kit_dtype_bytes(dtype);

    (void)device;
    (void)stream;
    if (bytes == 0) return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is not known", dtype);
    for (uint64_t i = 0; i < count; i++)
        memcpy((uint8_t *)target + i * bytes, value, bytes);
    return WEFT_OK;
}

const weft_kernel_table example_kernel = {
    .struct_size = sizeof example_kernel,
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = regions_create,
    .regions_destroy = regions_destroy,
    .regions_copy = regions_copy,
    .regions_reduce = regions_reduce,
    .reduce = reduce,
    .cast = cast,
    .scale = scale,
    .fill = fill,
    .regions_average = regions_average,
};
