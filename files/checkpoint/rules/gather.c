/* gather.c - parts of views are read.
 *
 * A box of a view may consist of many short runs of a tensor: the rows of one head, for example.
 * Small boxes of one tensor that lie close together are read at once, as the least box that
 * contains them, and then copied to their places.  Large boxes go straight to their place. */
#include "base/number.h"
#include "checkpoint/rules/view.h"

#include <string.h>

enum { LARGE = 65536, MOST_BOXES = 256, WASTE = 4 };

struct gather {
    const weft_checkpoint *base;
    char *target;
    uint32_t bits;
    char *scratch; /* WF_STAGE bytes */
    /* small boxes of `leaf` that are not read yet, and the least box that contains them */
    const struct wf_view *leaf;
    struct wf_view_box *boxes;
    size_t count;
    int64_t first[WEFT_MAX_DIMS], end[WEFT_MAX_DIMS], wanted;
};

static int64_t box_elements(int32_t dims, const int64_t *size)
{
    int64_t elements = 1;

    for (int32_t d = 0; d < dims; d++)
        elements *= size[d];
    return elements;
}

/* ---- copies in memory ---- */

#define COPY(type)                                                                                 \
    for (int64_t i = 0; i < count; i++)                                                            \
    memcpy(target + i * to * (int64_t)sizeof(type), source + i * from * (int64_t)sizeof(type),     \
           sizeof(type))

/* COUNT elements of UNIT bytes, with strides TO and FROM. */
static void copy_run(char *target, const char *source, int64_t count, int64_t to, int64_t from,
                     size_t unit)
{
    if (to == 1 && from == 1) {
        memcpy(target, source, (size_t)count * unit);
        return;
    }
    switch (unit) {
    case 1:
        COPY(uint8_t);
        break;
    case 2:
        COPY(uint16_t);
        break;
    case 4:
        COPY(uint32_t);
        break;
    case 8:
        COPY(uint64_t);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(target + i * to * (int64_t)unit, source + i * from * (int64_t)unit, unit);
    }
}

/* Copy a box of SIZE, with strides in elements. */
static void copy_box(int32_t dims, const int64_t *size, char *target, const int64_t *to,
                     const char *source, const int64_t *from, size_t unit)
{
    if (dims == 0) {
        memcpy(target, source, unit);
        return;
    }
    if (dims == 1) {
        copy_run(target, source, size[0], to[0], from[0], unit);
        return;
    }
    for (int64_t i = 0; i < size[0]; i++)
        copy_box(dims - 1, size + 1, target + i * to[0] * (int64_t)unit, to + 1,
                 source + i * from[0] * (int64_t)unit, from + 1, unit);
}

/* ---- boxes of tensors ---- */

static weft_status read_leaf(const struct gather *g, const struct wf_view *leaf,
                             const int64_t *start, const int64_t *size, const int64_t *strides,
                             char *target, int64_t at)
{
    const struct wf_tensor *tensor = &g->base->tensors[leaf->source];
    struct wf_part part;

    if (at * g->bits % 8 != 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "elements have %u bits, and the part begins or ends inside a byte", g->bits);
    wf_part_of_box(&part, leaf->dims, start, size);
    if (strides != NULL && leaf->dims > 0)
        memcpy(part.strides, strides, (size_t)leaf->dims * sizeof *strides);
    return wf_checkpoint_read_tensor(g->base, tensor, &part, target + at * g->bits / 8);
}

static void fill_zeros(const struct gather *g, int32_t dims, const struct wf_view_box *box)
{
    static const int64_t still[WEFT_MAX_DIMS];
    static const char zero[16];

    copy_box(dims, box->size, g->target + box->at * g->bits / 8, box->stride, zero, still,
             g->bits / 8);
}

/* Read the boxes that wait. */
static weft_status flush(struct gather *g)
{
    const struct wf_view *leaf = g->leaf;
    int64_t size[WEFT_MAX_DIMS], strides[WEFT_MAX_DIMS];
    size_t count = g->count;

    g->count = 0;
    if (count == 0) return WEFT_OK;
    if (count == 1)
        return read_leaf(g, leaf, g->boxes[0].start, g->boxes[0].size, g->boxes[0].stride,
                         g->target, g->boxes[0].at);
    for (int32_t d = 0; d < leaf->dims; d++)
        size[d] = g->end[d] - g->first[d];
    wf_row_major(leaf->dims, size, strides);
    WF_TRY(read_leaf(g, leaf, g->first, size, NULL, g->scratch, 0));
    for (size_t i = 0; i < count; i++) {
        const struct wf_view_box *box = &g->boxes[i];
        int64_t from = 0;
        for (int32_t d = 0; d < leaf->dims; d++)
            from += (box->start[d] - g->first[d]) * strides[d];
        copy_box(leaf->dims, box->size, g->target + box->at * g->bits / 8, box->stride,
                 g->scratch + from * g->bits / 8, strides, g->bits / 8);
    }
    return WEFT_OK;
}

/* Let BOX wait with those before it; false if they do not fit together. */
static bool join(struct gather *g, const struct wf_view *leaf, const struct wf_view_box *box,
                 int64_t elements)
{
    int64_t first[WEFT_MAX_DIMS], end[WEFT_MAX_DIMS], all = 1;

    if (g->count == MOST_BOXES || (g->count > 0 && leaf != g->leaf)) return false;
    for (int32_t d = 0; d < leaf->dims; d++) {
        int64_t own = box->start[d] + box->size[d];
        first[d] = g->count > 0 ? wf_min_i64(g->first[d], box->start[d]) : box->start[d];
        end[d] = g->count > 0 ? wf_max_i64(g->end[d], own) : own;
        if (!wf_mul_i64(all, end[d] - first[d], &all)) return false;
    }
    if (g->count > 0 &&
        (all > (int64_t)WF_STAGE * 8 / g->bits || all / WASTE > g->wanted + elements))
        return false;
    memcpy(g->first, first, sizeof first);
    memcpy(g->end, end, sizeof end);
    g->wanted = elements + (g->count > 0 ? g->wanted : 0);
    g->leaf = leaf;
    g->boxes[g->count++] = *box;
    return true;
}

static weft_status gather_box(void *state, const struct wf_view *leaf,
                              const struct wf_view_box *box)
{
    struct gather *g = state;
    int64_t elements = box_elements(leaf->dims, box->size);

    if (leaf->kind == WF_VIEW_ZEROS) {
        fill_zeros(g, leaf->dims, box);
        return WEFT_OK;
    }
    if (g->bits < 8 || elements * (g->bits / 8) >= LARGE)
        return read_leaf(g, leaf, box->start, box->size, box->stride, g->target, box->at);
    if (join(g, leaf, box, elements)) return WEFT_OK;
    WF_TRY(flush(g));
    return join(g, leaf, box, elements) ? WEFT_OK : wf_fail(WEFT_ERR_INTERNAL, "a box is lost");
}

/* ---- parts of a tensor ---- */

struct part_reader {
    struct gather gather;
    const struct wf_tensor *tensor;
    char *target;
    char *raw, *cast; /* of casts: elements before and after, half a stage each */
};

static weft_status read_box(struct part_reader *r, const struct wf_view_box *box, char *target)
{
    r->gather.target = target;
    WF_TRY(wf_view_visit(r->tensor->view, box, gather_box, &r->gather));
    return flush(&r->gather);
}

/* Read BOX in halves until they fit, and cast them. */
static weft_status read_cast(struct part_reader *r, const struct wf_view_box *box)
{
    const struct wf_file_dtype *from = wf_file_dtype(r->tensor->view->dtype),
                               *to = wf_file_dtype(r->tensor->dtype);
    int64_t elements = box_elements(r->tensor->dims, box->size);
    struct wf_view_box part = *box;
    int32_t longest = 0;

    if (elements * (int64_t)(from->bits > to->bits ? from->bits : to->bits) / 8 <=
        (int64_t)WF_STAGE / 2) {
        part.at = 0;
        wf_row_major(r->tensor->dims, box->size, part.stride);
        WF_TRY(read_box(r, &part, r->raw));
        wf_elements_cast(from->dtype, to->dtype, r->raw, r->cast, (size_t)elements);
        copy_box(r->tensor->dims, box->size, r->target + box->at * to->bits / 8, box->stride,
                 r->cast, part.stride, to->bits / 8);
        return WEFT_OK;
    }
    while (box->size[longest] == 1)
        longest++; /* cut the outermost dimension, so that reads stay long */
    part.size[longest] /= 2;
    WF_TRY(read_cast(r, &part));
    part.start[longest] += part.size[longest];
    part.at += part.size[longest] * box->stride[longest];
    part.size[longest] = box->size[longest] - part.size[longest];
    return read_cast(r, &part);
}

/* BLOCK is a box of the whole tensor, whose strides are row-major. */
static weft_status read_block(void *state, const struct wf_block *block)
{
    struct part_reader *r = state;
    struct wf_view_box box = {.at = block->memory};
    int64_t left = block->file;

    for (int32_t d = 0; d < block->dims; d++) {
        box.start[d] = left / block->file_strides[d];
        left %= block->file_strides[d];
        box.size[d] = block->shape[d];
        box.stride[d] = block->memory_strides[d];
    }
    if (r->tensor->dtype != r->tensor->view->dtype) return read_cast(r, &box);
    return read_box(r, &box, r->target);
}

weft_status wf_view_read(const weft_checkpoint *base, const struct wf_tensor *tensor,
                         const struct wf_part *part, void *target)
{
    struct part_reader r = {
        .gather = {.base = base, .bits = wf_file_dtype(tensor->view->dtype)->bits},
        .tensor = tensor,
        .target = target};
    struct wf_part whole;
    weft_status status;
    char *memory = wf_alloc(2 * WF_STAGE + MOST_BOXES * sizeof *r.gather.boxes);

    if (memory == NULL) return wf_fail_memory(2 * WF_STAGE);
    r.gather.scratch = memory;
    r.raw = memory + WF_STAGE;
    r.cast = r.raw + WF_STAGE / 2;
    r.gather.boxes = (struct wf_view_box *)(memory + 2 * WF_STAGE);
    wf_part_of_box(&whole, tensor->dims, NULL, tensor->shape);
    status = wf_part_overlaps(&whole, part, read_block, &r);
    wf_free(memory);
    return status;
}
