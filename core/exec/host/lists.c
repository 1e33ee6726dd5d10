/* lists.c - lists of regions that the host copies.
 *
 * Staging has a copy of the part of each buffer that the regions use, from the first element to the
 * last.  A target that the regions cover is copied back at once; of others, only the elements of
 * the regions are, because the gaps may belong to somebody else. */
#include "host.h"

#include <string.h>

enum { ALIGNMENT = 64 }; /* bytes, of each copy in the staging */

/* The part of a buffer that the regions use. */
struct part {
    int64_t low, high; /* in elements: all regions are in [low, high) */
    uint64_t elements; /* of the regions; for sources, elements that several regions read count
                          several times */
    char *copy;        /* of [low, high), in the staging */
};

struct list {
    weft_context *context;
    size_t element; /* bytes */
    uint64_t count;
    uint32_t source_count, target_count;
    struct part *sources, *targets;
    char *staging; /* NULL: the host reads and writes the device's memory */
    weft_region regions[];
};

/* ---- regions ---- */

static void swap_dims(weft_region *r, uint32_t a, uint32_t b)
{
    int64_t extent = r->extent[a], from = r->source_stride[a], to = r->target_stride[a];

    r->extent[a] = r->extent[b];
    r->source_stride[a] = r->source_stride[b];
    r->target_stride[a] = r->target_stride[b];
    r->extent[b] = extent;
    r->source_stride[b] = from;
    r->target_stride[b] = to;
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* Write REGION to *OUT without dimensions of extent 1, in the order of the target's memory.  False
 * if the region is empty. */
static bool simplify(const weft_region *region, weft_region *out)
{
    *out = *region;
    out->dims = 0;
    for (uint32_t d = 0; d < region->dims; d++) {
        uint32_t at = out->dims;

        if (region->extent[d] == 0) return false;
        if (region->extent[d] == 1) continue;
        out->extent[at] = region->extent[d];
        out->source_stride[at] = region->source_stride[d];
        out->target_stride[at] = region->target_stride[d];
        out->dims++;
        for (; at > 0 && magnitude(out->target_stride[at]) > magnitude(out->target_stride[at - 1]);
             at--)
            swap_dims(out, at, at - 1);
    }
    return true;
}

static void include(struct part *part, int64_t offset, const weft_region *r, const int64_t *strides)
{
    int64_t low = offset, high = offset + 1;
    uint64_t elements = 1;

    for (uint32_t d = 0; d < r->dims; d++) {
        int64_t reach = (r->extent[d] - 1) * strides[d];

        *(reach < 0 ? &low : &high) += reach;
        elements *= (uint64_t)r->extent[d];
    }
    if (part->elements == 0 || low < part->low) part->low = low;
    if (part->elements == 0 || high > part->high) part->high = high;
    part->elements += elements;
}

/* A position in a region. */
struct walk {
    int64_t at[WEFT_MAX_DIMS];
    int64_t source, target; /* in elements */
};

/* Go to the next position along the first DIMS dimensions.  False: that was the last. */
static bool step(const weft_region *r, uint32_t dims, struct walk *walk)
{
    for (uint32_t d = dims; d-- > 0;) {
        walk->source += r->source_stride[d];
        walk->target += r->target_stride[d];
        if (++walk->at[d] < r->extent[d]) return true;
        walk->source -= r->source_stride[d] * r->extent[d];
        walk->target -= r->target_stride[d] * r->extent[d];
        walk->at[d] = 0;
    }
    return false;
}

/* ---- copies by the host ---- */

#define COPY(bytes)                                                                                \
    for (int64_t i = 0; i < count; i++)                                                            \
        memcpy(to + i * to_step * (bytes), from + i * from_step * (bytes), bytes);                 \
    break

static void copy_line(size_t element, const char *from, int64_t from_step, char *to,
                      int64_t to_step, int64_t count)
{
    if (from_step == 1 && to_step == 1) {
        memcpy(to, from, (size_t)count * element);
        return;
    }
    switch (element) {
    case 1:
        COPY(1);
    case 2:
        COPY(2);
    case 4:
        COPY(4);
    case 8:
        COPY(8);
    default:
        COPY(16);
    }
}

/* FROM and TO are the first elements of R. */
static void copy_region(const weft_region *r, size_t element, const char *from, char *to)
{
    uint32_t last = r->dims == 0 ? 0 : r->dims - 1;
    int64_t count = r->dims == 0 ? 1 : r->extent[last], size = (int64_t)element;
    struct walk walk = {0};

    do {
        copy_line(element, from + walk.source * size, r->dims == 0 ? 1 : r->source_stride[last],
                  to + walk.target * size, r->dims == 0 ? 1 : r->target_stride[last], count);
    } while (step(r, last, &walk));
}

static void copy_in_place(const struct list *list, const void *const *sources, void *const *targets)
{
    int64_t size = (int64_t)list->element;

    for (uint64_t i = 0; i < list->count; i++) {
        const weft_region *r = &list->regions[i];

        copy_region(r, list->element, (const char *)sources[r->source] + r->source_offset * size,
                    (char *)targets[r->target] + r->target_offset * size);
    }
}

static void copy_staged(const struct list *list)
{
    int64_t size = (int64_t)list->element;

    for (uint64_t i = 0; i < list->count; i++) {
        const weft_region *r = &list->regions[i];
        const struct part *source = &list->sources[r->source], *target = &list->targets[r->target];

        copy_region(r, list->element, source->copy + (r->source_offset - source->low) * size,
                    target->copy + (r->target_offset - target->low) * size);
    }
}

/* ---- copies between device and host ---- */

static weft_status fetch(const struct list *list, const void *const *sources, void *stream)
{
    const weft_context *context = list->context;
    int64_t size = (int64_t)list->element;

    for (uint32_t s = 0; s < list->source_count; s++) {
        const struct part *part = &list->sources[s];

        if (part->elements > 0)
            WF_TRY(context->plugin->device->copy(
                context->device, part->copy, (const char *)sources[s] + part->low * size,
                (uint64_t)((part->high - part->low) * size), stream));
    }
    return WEFT_OK;
}

static bool is_covered(const struct part *part)
{
    return part->elements == (uint64_t)(part->high - part->low);
}

/* Copy COUNT elements of a target, from element FIRST on, from the staging to TARGET. */
static weft_status store_elements(const struct list *list, const struct part *part, int64_t first,
                                  int64_t count, void *target, void *stream)
{
    const weft_context *context = list->context;
    int64_t size = (int64_t)list->element;

    return context->plugin->device->copy(context->device, (char *)target + first * size,
                                         part->copy + (first - part->low) * size,
                                         (uint64_t)(count * size), stream);
}

static weft_status store_region(const struct list *list, const weft_region *r, void *target,
                                void *stream)
{
    struct walk walk = {.target = r->target_offset};
    uint32_t outer = r->dims;
    int64_t run = 1; /* elements without a gap */

    while (outer > 0 && r->target_stride[outer - 1] == run)
        run *= r->extent[--outer];
    do {
        WF_TRY(store_elements(list, &list->targets[r->target], walk.target, run, target, stream));
    } while (step(r, outer, &walk));
    return WEFT_OK;
}

static weft_status store(const struct list *list, void *const *targets, void *stream)
{
    for (uint32_t t = 0; t < list->target_count; t++) {
        const struct part *part = &list->targets[t];

        if (part->elements > 0 && is_covered(part))
            WF_TRY(
                store_elements(list, part, part->low, part->high - part->low, targets[t], stream));
    }
    for (uint64_t i = 0; i < list->count; i++) {
        const weft_region *r = &list->regions[i];

        if (!is_covered(&list->targets[r->target]))
            WF_TRY(store_region(list, r, targets[r->target], stream));
    }
    return WEFT_OK;
}

/* Wait for copies, of which some failed to start with STATUS.  Those that started use the
 * staging. */
static weft_status finish(const struct list *list, void *stream, weft_status status)
{
    weft_status waited = wf_host_wait(list->context, stream);

    return status != WEFT_OK ? status : waited;
}

weft_status wf_host_list_copy(void *list, const void *const *sources, void *const *targets,
                              void *stream)
{
    const struct list *self = list;

    if (self->count == 0) return WEFT_OK;
    if (self->staging == NULL) {
        WF_TRY(wf_host_wait(self->context, stream));
        copy_in_place(self, sources, targets);
        return WEFT_OK;
    }
    WF_TRY(finish(self, stream, fetch(self, sources, stream)));
    copy_staged(self);
    return finish(self, stream, store(self, targets, stream));
}

/* ---- making and ending a list ---- */

static void measure(struct list *list)
{
    for (uint64_t i = 0; i < list->count; i++) {
        const weft_region *r = &list->regions[i];

        include(&list->sources[r->source], r->source_offset, r, r->source_stride);
        include(&list->targets[r->target], r->target_offset, r, r->target_stride);
    }
}

static uint64_t part_bytes(const struct list *list, const struct part *part)
{
    uint64_t bytes = (uint64_t)(part->high - part->low) * list->element;

    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The parts of sources and targets are one array. */
static weft_status give_staging(struct list *list)
{
    uint32_t count = list->source_count + list->target_count;
    uint64_t bytes = 0;
    void *staging = NULL;

    for (uint32_t i = 0; i < count; i++)
        bytes += part_bytes(list, &list->sources[i]);
    if (bytes == 0 || (list->context->features & WEFT_FEATURE_HOST_MEMORY) != 0) return WEFT_OK;
    WF_TRY(wf_host_memory_take(list->context, bytes, &staging));
    list->staging = staging;
    bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        list->sources[i].copy = list->staging + bytes;
        bytes += part_bytes(list, &list->sources[i]);
    }
    return WEFT_OK;
}

weft_status wf_host_list_create(void *device, uint32_t element_bytes, uint64_t count,
                                const weft_region *regions, void **list)
{
    size_t bytes = sizeof(struct list) + count * sizeof *regions;
    struct list *made = wf_calloc(1, bytes);
    weft_status status = WEFT_OK;

    if (made == NULL) return wf_fail_memory(bytes);
    made->context = device;
    made->element = element_bytes;
    for (uint64_t i = 0; i < count; i++) {
        if (!simplify(&regions[i], &made->regions[made->count])) continue;
        made->count++;
        if (regions[i].source >= made->source_count) made->source_count = regions[i].source + 1;
        if (regions[i].target >= made->target_count) made->target_count = regions[i].target + 1;
    }
    bytes = (made->source_count + (size_t)made->target_count) * sizeof *made->sources;
    made->sources = bytes > 0 ? wf_calloc(1, bytes) : NULL;
    if (made->sources != NULL) {
        made->targets = made->sources + made->source_count;
        measure(made);
        status = give_staging(made);
    } else if (bytes > 0) {
        status = wf_fail_memory(bytes);
    }
    if (status != WEFT_OK) {
        wf_host_list_destroy(made);
        return status;
    }
    *list = made;
    return WEFT_OK;
}

void wf_host_list_destroy(void *list)
{
    struct list *self = list;

    if (self == NULL) return;
    wf_host_memory_give(self->context, self->staging);
    wf_free(self->sources);
    wf_free(self);
}
