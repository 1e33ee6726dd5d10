/* gpu_shape.c - simplification and division of regions, and their precomputed divisors. */
#include "gpu_shape.h"

#include <string.h>

enum { TURNED_MIN = 8 }; /* minimum elements per side for a tiled transpose */

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;
}

static void drop_dim(struct gpu_shape *shape, uint32_t dim)
{
    size_t left = shape->dims - dim - 1;

    memmove(&shape->extent[dim], &shape->extent[dim + 1], left * sizeof shape->extent[0]);
    memmove(&shape->source_stride[dim], &shape->source_stride[dim + 1],
            left * sizeof shape->source_stride[0]);
    memmove(&shape->target_stride[dim], &shape->target_stride[dim + 1],
            left * sizeof shape->target_stride[0]);
    shape->dims--;
}

static void swap_dims(struct gpu_shape *shape, uint32_t a, uint32_t b)
{
    uint64_t extent = shape->extent[a];
    int64_t source = shape->source_stride[a], target = shape->target_stride[a];

    shape->extent[a] = shape->extent[b];
    shape->source_stride[a] = shape->source_stride[b];
    shape->target_stride[a] = shape->target_stride[b];
    shape->extent[b] = extent;
    shape->source_stride[b] = source;
    shape->target_stride[b] = target;
}

/* Sort by the target's stride, so that neighbouring threads write adjacent elements. */
static void sort_dims(struct gpu_shape *shape)
{
    for (uint32_t i = 1; i < shape->dims; i++)
        for (uint32_t j = i;
             j > 0 && magnitude(shape->target_stride[j]) < magnitude(shape->target_stride[j - 1]);
             j--)
            swap_dims(shape, j, j - 1);
}

static void merge_dims(struct gpu_shape *shape)
{
    while (shape->dims > 0 && shape->source_stride[0] == (int64_t)shape->run &&
           shape->target_stride[0] == (int64_t)shape->run) {
        shape->run *= shape->extent[0];
        drop_dim(shape, 0);
    }
    for (uint32_t d = 0; d + 1 < shape->dims;) {
        int64_t extent = (int64_t)shape->extent[d];
        if (shape->source_stride[d + 1] == shape->source_stride[d] * extent &&
            shape->target_stride[d + 1] == shape->target_stride[d] * extent) {
            shape->extent[d] *= shape->extent[d + 1];
            drop_dim(shape, d + 1);
        } else {
            d++;
        }
    }
}

weft_status gpu_shape_read(const weft_region *region, uint32_t element_bytes, struct gpu_shape *out,
                           bool *empty)
{
    struct gpu_shape shape = {.source = region->source,
                              .target = region->target,
                              .run = element_bytes,
                              .source_offset = region->source_offset * element_bytes,
                              .target_offset = region->target_offset * element_bytes};

    *empty = false;
    if (region->dims > WEFT_MAX_DIMS)
        return plug_fail(WEFT_ERR_INVALID, "a region has %u dimensions; the maximum is %d",
                         region->dims, WEFT_MAX_DIMS);
    for (uint32_t d = 0; d < region->dims; d++) {
        if (region->extent[d] < 0)
            return plug_fail(WEFT_ERR_INVALID,
                             "a region has extent %lld; an extent must not be negative",
                             (long long)region->extent[d]);
        if (region->extent[d] == 0) *empty = true;
        if (region->extent[d] == 1) continue;
        shape.extent[shape.dims] = (uint64_t)region->extent[d];
        shape.source_stride[shape.dims] = region->source_stride[d] * element_bytes;
        shape.target_stride[shape.dims] = region->target_stride[d] * element_bytes;
        shape.dims++;
    }
    sort_dims(&shape);
    merge_dims(&shape);
    *out = shape;
    return WEFT_OK;
}

uint64_t gpu_shape_bytes(const struct gpu_shape *shape)
{
    uint64_t bytes = shape->run;

    for (uint32_t d = 0; d < shape->dims; d++)
        bytes *= shape->extent[d];
    return bytes;
}

weft_status gpu_shape_cut(const struct gpu_shape *shape,
                          weft_status (*take)(void *self, const struct gpu_shape *piece),
                          void *self)
{
    struct gpu_shape low = *shape, high = *shape;
    int64_t source_step, target_step;

    if (gpu_shape_bytes(shape) <= WK_REGION_BYTES) return take(self, shape);
    if (shape->dims > 0) {
        uint32_t last = shape->dims - 1;
        uint64_t half = shape->extent[last] / 2;
        low.extent[last] = half;
        high.extent[last] -= half;
        source_step = (int64_t)half * shape->source_stride[last];
        target_step = (int64_t)half * shape->target_stride[last];
        if (low.extent[last] == 1) drop_dim(&low, last);
        if (high.extent[last] == 1) drop_dim(&high, last);
    } else {
        low.run = WK_REGION_BYTES;
        high.run -= WK_REGION_BYTES;
        source_step = target_step = (int64_t)WK_REGION_BYTES;
    }
    high.source_offset += source_step;
    high.target_offset += target_step;
    PLUG_TRY(gpu_shape_cut(&low, take, self));
    return gpu_shape_cut(&high, take, self);
}

uint32_t gpu_shape_word(const struct gpu_shape *shape)
{
    uint64_t bits =
        shape->run | (uint64_t)shape->source_offset | (uint64_t)shape->target_offset | 16;

    for (uint32_t d = 0; d < shape->dims; d++)
        bits |= (uint64_t)shape->source_stride[d] | (uint64_t)shape->target_stride[d];
    return (uint32_t)(bits & (UINT64_C(0) - bits));
}

bool gpu_shape_transpose(const struct gpu_shape *shape, uint32_t element_bytes,
                         struct gpu_shape *out)
{
    struct gpu_shape turned = *shape;
    uint32_t from = shape->dims, to = shape->dims;

    if (shape->run != element_bytes) return false;
    for (uint32_t d = 0; d < shape->dims; d++) {
        if (shape->extent[d] < TURNED_MIN) continue;
        if (shape->source_stride[d] == (int64_t)element_bytes)
            from = d;
        else if (shape->target_stride[d] == (int64_t)element_bytes)
            to = d;
    }
    if (from == shape->dims || to == shape->dims) return false;
    swap_dims(&turned, 0, from);
    swap_dims(&turned, 1, to == 0 ? from : to);
    *out = turned;
    return true;
}

/* n / VALUE = (n * multiplier) >> shift for all n < 2^31: the error of the multiplier, at most
 * VALUE <= 2^bits, times n stays below 2^(31 + bits). */
static struct wk_divisor divisor(uint64_t value)
{
    uint32_t bits = 0;

    while ((UINT64_C(1) << bits) < value)
        bits++;
    return (struct wk_divisor){.value = (uint32_t)value,
                               .multiplier = (uint32_t)((UINT64_C(1) << (31 + bits)) / value + 1),
                               .shift = 31 + bits};
}

void gpu_shape_write(const struct gpu_shape *shape, uint32_t first_source, struct wk_region *out)
{
    *out = (struct wk_region){.source = first_source + shape->source,
                              .target = shape->target,
                              .bytes = (uint32_t)gpu_shape_bytes(shape),
                              .dims = shape->dims,
                              .source_offset = shape->source_offset,
                              .target_offset = shape->target_offset,
                              .run = divisor(shape->run)};
    for (uint32_t d = 0; d < shape->dims; d++) {
        out->extent[d] = divisor(shape->extent[d]);
        out->source_stride[d] = shape->source_stride[d];
        out->target_stride[d] = shape->target_stride[d];
    }
}
