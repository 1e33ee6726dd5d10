/* cpu_box.c - copying one strided box. */
#include "cpu_regions.h"

#include <string.h>

#define TILE 16 /* elements per side of a tile, for transposed copies */

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* True if dimension A belongs outside dimension B.  The target is written in order where
 * possible. */
static bool outside(const struct cpu_box *box, int a, int b)
{
    int64_t x = magnitude(box->target_stride[a]), y = magnitude(box->target_stride[b]);

    if (x != y) return x > y;
    return magnitude(box->source_stride[a]) > magnitude(box->source_stride[b]);
}

static void swap_dims(struct cpu_box *box, int a, int b)
{
    int64_t extent = box->extent[a], from = box->source_stride[a], to = box->target_stride[a];

    box->extent[a] = box->extent[b];
    box->source_stride[a] = box->source_stride[b];
    box->target_stride[a] = box->target_stride[b];
    box->extent[b] = extent;
    box->source_stride[b] = from;
    box->target_stride[b] = to;
}

static void sort_dims(struct cpu_box *box)
{
    for (int i = 1; i < box->dims; i++)
        for (int j = i; j > 0 && outside(box, j, j - 1); j--)
            swap_dims(box, j, j - 1);
}

/* Merge neighbouring dimensions that both buffers traverse as one dimension. */
static void merge_dims(struct cpu_box *box)
{
    int last = 0;

    for (int i = 1; i < box->dims; i++) {
        if (box->source_stride[last] == box->source_stride[i] * box->extent[i] &&
            box->target_stride[last] == box->target_stride[i] * box->extent[i]) {
            box->extent[last] *= box->extent[i];
        } else {
            last++;
            box->extent[last] = box->extent[i];
        }
        box->source_stride[last] = box->source_stride[i];
        box->target_stride[last] = box->target_stride[i];
    }
    if (box->dims > 0) box->dims = last + 1;
}

/* The box of REGION without dimensions of one element; false: it is empty. */
static bool read_region(const weft_region *region, struct cpu_box *out)
{
    struct cpu_box box = {.source = region->source,
                          .target = region->target,
                          .source_offset = region->source_offset,
                          .target_offset = region->target_offset};

    for (uint32_t i = 0; i < region->dims; i++) {
        if (region->extent[i] == 0) return false;
        if (region->extent[i] == 1) continue;
        box.extent[box.dims] = region->extent[i];
        box.source_stride[box.dims] = region->source_stride[i];
        box.target_stride[box.dims] = region->target_stride[i];
        box.dims++;
    }
    *out = box;
    return true;
}

bool cpu_box_make(const weft_region *region, struct cpu_box *out)
{
    struct cpu_box box;

    if (!read_region(region, &box)) return false;
    sort_dims(&box);
    merge_dims(&box);
    *out = box;
    return true;
}

bool cpu_box_make_as_given(const weft_region *region, struct cpu_box *out)
{
    struct cpu_box box;

    if (!read_region(region, &box)) return false;
    merge_dims(&box);
    *out = box;
    return true;
}

bool cpu_region_is_sorted(const weft_region *region)
{
    struct cpu_box box;

    if (!read_region(region, &box)) return true;
    for (int i = 1; i < box.dims; i++)
        if (outside(&box, i, i - 1)) return false;
    return true;
}

void cpu_box_range(const struct cpu_box *box, size_t element, int64_t *first, int64_t *last)
{
    int64_t low = box->source_offset, high = box->source_offset;

    for (int i = 0; i < box->dims; i++) {
        int64_t reach = (box->extent[i] - 1) * box->source_stride[i];

        if (reach < 0)
            low += reach;
        else
            high += reach;
    }
    *first = low * (int64_t)element;
    *last = (high + 1) * (int64_t)element;
}

bool cpu_box_next_line(const struct cpu_box *box, struct cpu_line_walk *at)
{
    int inner = box->dims - 1;

    if (!at->started) {
        at->started = true;
        at->line = (struct cpu_line){.source = box->source_offset,
                                     .target = box->target_offset,
                                     .count = inner < 0 ? 1 : box->extent[inner],
                                     .source_stride = inner < 0 ? 1 : box->source_stride[inner],
                                     .target_stride = inner < 0 ? 1 : box->target_stride[inner]};
        return true;
    }
    for (int i = inner - 1; i >= 0; i--) {
        at->line.source += box->source_stride[i];
        at->line.target += box->target_stride[i];
        if (++at->index[i] < box->extent[i]) return true;
        at->index[i] = 0;
        at->line.source -= box->extent[i] * box->source_stride[i];
        at->line.target -= box->extent[i] * box->target_stride[i];
    }
    return false;
}

struct sixteen {
    uint64_t low, high;
};

#define COPY_STRIDED(name, type)                                                                   \
    static void name(type *target, int64_t to, const type *source, int64_t from, int64_t count)    \
    {                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                        \
            memcpy(&target[i * to], &source[i * from], sizeof(type));                              \
    }

COPY_STRIDED(copy_1, uint8_t)
COPY_STRIDED(copy_2, uint16_t)
COPY_STRIDED(copy_4, uint32_t)
COPY_STRIDED(copy_8, uint64_t)
COPY_STRIDED(copy_16, struct sixteen)

void cpu_copy_strided(size_t element, void *target, int64_t target_stride, const void *source,
                      int64_t source_stride, int64_t count)
{
    if (target_stride == 1 && source_stride == 1) {
        memcpy(target, source, (size_t)count * element);
        return;
    }
    switch (element) {
    case 1:
        copy_1(target, target_stride, source, source_stride, count);
        break;
    case 2:
        copy_2(target, target_stride, source, source_stride, count);
        break;
    case 4:
        copy_4(target, target_stride, source, source_stride, count);
        break;
    case 8:
        copy_8(target, target_stride, source, source_stride, count);
        break;
    default:
        copy_16(target, target_stride, source, source_stride, count);
    }
}

/* The dimension, other than the innermost, along which the source is contiguous; or -1. */
static int source_inner(const struct cpu_box *box)
{
    int inner = box->dims - 1;

    if (inner < 1 || magnitude(box->source_stride[inner]) == 1) return -1;
    for (int i = inner - 1; i >= 0; i--)
        if (magnitude(box->source_stride[i]) == 1) return i;
    return -1;
}

/* Transpose tile by tile, so that the cache lines of both buffers stay in the cache.  ACROSS is the
 * source's contiguous dimension. */
static void copy_plane(const struct cpu_box *box, size_t element, int across,
                       const unsigned char *source, unsigned char *target)
{
    int inner = box->dims - 1;
    int64_t size = (int64_t)element, rows = box->extent[across], columns = box->extent[inner];

    for (int64_t row = 0; row < rows; row += TILE)
        for (int64_t column = 0; column < columns; column += TILE) {
            int64_t height = rows - row < TILE ? rows - row : TILE;
            int64_t width = columns - column < TILE ? columns - column : TILE;

            for (int64_t i = row; i < row + height; i++)
                cpu_copy_strided(
                    element,
                    target + (i * box->target_stride[across] + column * box->target_stride[inner]) *
                                 size,
                    box->target_stride[inner],
                    source + (i * box->source_stride[across] + column * box->source_stride[inner]) *
                                 size,
                    box->source_stride[inner], width);
        }
}

static void copy_transposed(const struct cpu_box *box, size_t element, int across,
                            const unsigned char *source, unsigned char *target)
{
    struct cpu_box outer = *box;
    struct cpu_line_walk at = {0};
    int64_t size = (int64_t)element;

    /* Walk the other dimensions.  A line has one element of the last dimension. */
    outer.extent[across] = 1;
    outer.extent[box->dims - 1] = 1;
    while (cpu_box_next_line(&outer, &at))
        copy_plane(box, element, across, source + at.line.source * size,
                   target + at.line.target * size);
}

/* True if the last two dimensions form rows that are dense in both buffers and that cpu_rows_hop
 * copies faster. */
static bool is_worth_hopping(const struct cpu_box *box, size_t element)
{
    int inner = box->dims - 1;

    return inner >= 1 && box->source_stride[inner] == 1 && box->target_stride[inner] == 1 &&
           cpu_rows_worth_hopping((size_t)box->extent[inner] * element, box->extent[inner - 1]);
}

static void copy_rows(const struct cpu_box *box, size_t element, const unsigned char *source,
                      unsigned char *target)
{
    int inner = box->dims - 1, rows = inner - 1;
    int64_t size = (int64_t)element;
    struct cpu_rows group = {.target_step = box->target_stride[rows] * size,
                             .source_step = box->source_stride[rows] * size,
                             .bytes = (size_t)(box->extent[inner] * size),
                             .count = box->extent[rows]};
    struct cpu_box outer = *box;
    struct cpu_line_walk at = {0};

    outer.extent[rows] = 1;
    while (cpu_box_next_line(&outer, &at)) {
        group.target = target + at.line.target * size;
        group.source = source + at.line.source * size;
        cpu_rows_hop(&group);
    }
}

void cpu_box_copy(const struct cpu_box *box, size_t element, const void *source, void *target)
{
    struct cpu_line_walk at = {0};
    int64_t size = (int64_t)element;
    int across = source_inner(box);

    if (across >= 0) {
        copy_transposed(box, element, across, source, target);
        return;
    }
    if (is_worth_hopping(box, element)) {
        copy_rows(box, element, source, target);
        return;
    }
    while (cpu_box_next_line(box, &at))
        cpu_copy_strided(element, (unsigned char *)target + at.line.target * size,
                         at.line.target_stride,
                         (const unsigned char *)source + at.line.source * size,
                         at.line.source_stride, at.line.count);
}
