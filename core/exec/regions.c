/* regions.c - the boxes of memory that two shards of one tensor share. */
#include "exec.h"

#include <string.h>

/* COUNT runs of LENGTH indices that both shards hold, STEP apart: a comb if the shards alternate
 * regularly, otherwise one run. */
struct piece {
    int64_t a, b; /* local index of the first */
    int64_t length, count;
    int64_t a_step, b_step;
};

struct pieces {
    struct piece *list;
    size_t count, room;
};

static weft_status keep_piece(struct pieces *pieces, const weft_intersection *o)
{
    struct piece *last = pieces->count > 0 ? &pieces->list[pieces->count - 1] : NULL;

    if (last != NULL && last->length == o->length) {
        int64_t a_step = o->first - (last->a + (last->count - 1) * last->a_step);
        int64_t b_step = o->second - (last->b + (last->count - 1) * last->b_step);
        if (last->count == 1 || (a_step == last->a_step && b_step == last->b_step)) {
            last->a_step = a_step;
            last->b_step = b_step;
            last->count++;
            return WEFT_OK;
        }
    }
    WF_TRY(wf_grow(&pieces->list, sizeof *pieces->list, pieces->count, &pieces->room));
    pieces->list[pieces->count++] = (struct piece){o->first, o->second, o->length, 1, 0, 0};
    return WEFT_OK;
}

static weft_status cut_dim(const struct wf_shard *a, const struct wf_shard *b, int32_t dim,
                           struct pieces *out)
{
    struct wf_index ia = wf_shard_index(a, dim), ib = wf_shard_index(b, dim);
    weft_intersection o;

    for (int64_t at = 0; wf_index_overlap(&ia, &ib, at, &o); at = o.start + o.length)
        WF_TRY(keep_piece(out, &o));
    return WEFT_OK;
}

static weft_region *append_region(struct wf_region_list *list)
{
    if (list->count == list->room) {
        uint64_t room = list->room == 0 ? 8 : 2 * list->room;
        weft_region *regions = wf_realloc(list->regions, room * sizeof *regions);
        if (regions == NULL) return NULL;
        list->regions = regions;
        list->room = room;
    }
    return &list->regions[list->count++];
}

/* Append a dimension to R, inside the existing ones.  It is merged with the one before if memory is
 * contiguous across both on both sides. */
static void add_dim(weft_region *r, int64_t extent, int64_t a_stride, int64_t b_stride)
{
    uint32_t last = r->dims - 1;

    if (extent == 1) return;
    if (r->dims > 0 && r->source_stride[last] == extent * a_stride &&
        r->target_stride[last] == extent * b_stride) {
        r->extent[last] *= extent;
        r->source_stride[last] = a_stride;
        r->target_stride[last] = b_stride;
        return;
    }
    r->extent[r->dims] = extent;
    r->source_stride[r->dims] = a_stride;
    r->target_stride[r->dims++] = b_stride;
}

/* Number of dimensions that the pieces of a box need before any are merged. */
static int dims_needed(const struct piece *const *box, int32_t dims)
{
    int needed = 0;

    for (int32_t d = 0; d < dims; d++)
        needed += (box[d]->count > 1) + (box[d]->length > 1);
    return needed;
}

struct boxes {
    struct wf_region_list *list;
    const int64_t *a_strides, *b_strides;
    uint32_t source, target;
    int32_t dims;
};

/* Append BOX.  A comb for which no dimension is left becomes one box per tooth. */
static weft_status add_box(const struct boxes *boxes, const struct piece *const *box)
{
    weft_region *r;

    if (dims_needed(box, boxes->dims) > WEFT_MAX_DIMS) {
        const struct piece *split[WEFT_MAX_DIMS];
        struct piece tooth;
        int32_t d = 0;
        while (box[d]->count == 1)
            d++;
        memcpy(split, box, sizeof split);
        tooth = *box[d];
        split[d] = &tooth;
        tooth.count = 1;
        for (int64_t i = 0; i < box[d]->count; i++) {
            WF_TRY(add_box(boxes, split));
            tooth.a += box[d]->a_step;
            tooth.b += box[d]->b_step;
        }
        return WEFT_OK;
    }
    r = append_region(boxes->list);
    if (r == NULL) return wf_fail_memory(2 * boxes->list->room * sizeof *r);
    *r = (weft_region){.source = boxes->source, .target = boxes->target};
    for (int32_t d = 0; d < boxes->dims; d++) {
        const struct piece *p = box[d];
        r->source_offset += p->a * boxes->a_strides[d];
        r->target_offset += p->b * boxes->b_strides[d];
        if (p->count > 1) /* otherwise a stride may have any value, and the product may overflow */
            add_dim(r, p->count, p->a_step * boxes->a_strides[d], p->b_step * boxes->b_strides[d]);
        add_dim(r, p->length, boxes->a_strides[d], boxes->b_strides[d]);
    }
    return WEFT_OK;
}

/* All combinations of one piece per dimension, the last varying fastest. */
static weft_status combine_pieces(const struct boxes *boxes, const struct pieces *pieces)
{
    size_t at[WEFT_MAX_DIMS] = {0};
    int32_t d;

    do {
        const struct piece *box[WEFT_MAX_DIMS] = {0};
        for (d = 0; d < boxes->dims; d++)
            box[d] = &pieces[d].list[at[d]];
        WF_TRY(add_box(boxes, box));
        for (d = boxes->dims - 1; d >= 0 && ++at[d] == pieces[d].count; d--)
            at[d] = 0;
    } while (d >= 0);
    return WEFT_OK;
}

weft_status wf_regions_add(struct wf_region_list *list, const struct wf_shard *a,
                           const int64_t *a_strides, const struct wf_shard *b,
                           const int64_t *b_strides, uint32_t source, uint32_t target)
{
    struct boxes boxes = {list, a_strides, b_strides, source, target, a->dims};
    struct pieces pieces[WEFT_MAX_DIMS] = {0};
    weft_status status = WEFT_OK;
    bool empty = a->elements == 0 || b->elements == 0;

    for (int32_t d = 0; d < a->dims && !empty && status == WEFT_OK; d++) {
        status = cut_dim(a, b, d, &pieces[d]);
        empty = pieces[d].count == 0;
    }
    if (status == WEFT_OK && !empty) status = combine_pieces(&boxes, pieces);
    for (int32_t d = 0; d < a->dims; d++)
        wf_free(pieces[d].list);
    return status;
}

uint64_t wf_region_elements(const weft_region *region)
{
    uint64_t elements = 1;

    for (uint32_t d = 0; d < region->dims; d++)
        elements *= (uint64_t)region->extent[d];
    return elements;
}

void wf_region_pack(const weft_region *region, int64_t *strides)
{
    int64_t stride = 1;

    for (uint32_t d = region->dims; d-- > 0; stride *= region->extent[d])
        strides[d] = stride;
}
