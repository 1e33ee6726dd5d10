/* regions.c - lists of regions: one element, rows, strided boxes, transposed, many small, none. */
#include "regions.h"

#include <string.h>

/* A box of DIMS extents; strides are given innermost last, like the extents. */
static weft_region box(uint32_t dims, const int64_t *extent, const int64_t *source_stride,
                       const int64_t *target_stride)
{
    weft_region region = {.dims = dims};

    for (uint32_t d = 0; d < dims; d++) {
        region.extent[d] = extent[d];
        region.source_stride[d] = source_stride[d];
        region.target_stride[d] = target_stride[d];
    }
    return region;
}

#define BOX(dims, ...) box(dims, __VA_ARGS__)
#define AT(...)        ((const int64_t[]){__VA_ARGS__})

static void add(struct kit_region_list *list, weft_region region, uint32_t source,
                int64_t source_offset, int64_t target_offset)
{
    region.source = source;
    region.source_offset = source_offset;
    region.target_offset = target_offset;
    list->regions[list->count++] = region;
}

static void single(struct kit_region_list *list, uint32_t spread)
{
    list->name = "single";
    add(list, (weft_region){0}, spread - 1, 17, 3);
}

static void row(struct kit_region_list *list, uint32_t spread)
{
    list->name = "row";
    add(list, BOX(1, AT(301), AT(1), AT(1)), spread - 1, 5, 11);
}

static void strided(struct kit_region_list *list, uint32_t spread)
{
    list->name = "strided";
    add(list, BOX(1, AT(37), AT(3), AT(2)), 0, 1, 0);
    add(list, BOX(2, AT(5, 7), AT(20, 1), AT(9, 1)), spread - 1, 2, 100);
}

static void transposed(struct kit_region_list *list, uint32_t spread)
{
    list->name = "transposed";
    add(list, BOX(2, AT(13, 8), AT(1, 16), AT(8, 1)), spread / 2, 0, 0);
    add(list, BOX(3, AT(3, 4, 5), AT(1, 30, 5), AT(25, 6, 1)), 0, 7, 120);
}

static void repeated(struct kit_region_list *list, uint32_t spread)
{
    list->name = "repeated"; /* a source stride of 0 */
    add(list, BOX(2, AT(6, 9), AT(0, 1), AT(9, 1)), spread - 1, 40, 1);
}

static void deep(struct kit_region_list *list, uint32_t spread)
{
    list->name = "deep";
    add(list,
        BOX(8, AT(2, 1, 2, 2, 1, 2, 2, 3), AT(150, 1, 70, 30, 5, 12, 6, 1),
            AT(96, 1, 48, 24, 1, 12, 6, 1)),
        spread / 2, 0, 10);
}

static void empty(struct kit_region_list *list, uint32_t spread)
{
    list->name = "empty"; /* one region without elements, one with elements */
    add(list, BOX(2, AT(4, 0), AT(10, 1), AT(10, 1)), spread - 1, 0, 0);
    add(list, BOX(1, AT(2), AT(1), AT(1)), 0, 0, 50);
}

static void many(struct kit_region_list *list, uint32_t spread)
{
    list->name = "many";
    for (uint32_t i = 0; i < KIT_MAX_REGIONS; i++)
        add(list, BOX(1, AT(1 + i % 5), AT(1), AT(1)), (i * 7) % spread, i * 3, (int64_t)i * 6);
}

static void nothing(struct kit_region_list *list, uint32_t spread)
{
    (void)spread;
    list->name = "nothing";
}

struct extents {
    uint64_t source, target;
};

static void grow(void *self, uint64_t source_index, uint64_t target_index)
{
    struct extents *extents = self;

    if (source_index >= extents->source) extents->source = source_index + 1;
    if (target_index >= extents->target) extents->target = target_index + 1;
}

bool kit_region_list(uint32_t which, uint32_t spread, struct kit_region_list *out)
{
    static void (*const makers[])(struct kit_region_list *, uint32_t) = {
        single, row, strided, transposed, repeated, deep, empty, many, nothing};
    struct extents extents = {1, 1};

    if (which >= WF_COUNT(makers)) return false;
    *out = (struct kit_region_list){.sources = spread, .targets = 1};
    makers[which](out, spread);
    for (uint32_t i = 0; i < out->count; i++)
        kit_region_walk(&out->regions[i], grow, &extents);
    out->source_elements = extents.source;
    out->target_elements = extents.target;
    return true;
}

void kit_region_walk(const weft_region *region,
                     void (*visit)(void *self, uint64_t source_index, uint64_t target_index),
                     void *self)
{
    int64_t total = 1;

    for (uint32_t d = 0; d < region->dims; d++)
        total *= region->extent[d];
    for (int64_t n = 0; n < total; n++) {
        int64_t rest = n, source = region->source_offset, target = region->target_offset;
        for (uint32_t d = region->dims; d-- > 0;) {
            int64_t at = rest % region->extent[d];
            rest /= region->extent[d];
            source += at * region->source_stride[d];
            target += at * region->target_stride[d];
        }
        visit(self, (uint64_t)source, (uint64_t)target);
    }
}
