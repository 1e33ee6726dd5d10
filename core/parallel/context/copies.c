/* copies.c - lists of boxes that the device copies. */
#include "cp.h"

#include "exec/host/host.h"

weft_cp_local wf_cp_dense(int32_t sequence_dim, int64_t heads, int64_t length, int64_t depth,
                          const void *memory)
{
    return (weft_cp_local){.memory = (void *)(uintptr_t)memory,
                           .batch = heads * length * depth,
                           .head = sequence_dim == 1 ? depth : length * depth,
                           .sequence = sequence_dim == 1 ? heads * depth : depth};
}

weft_status wf_cp_boxes_add(struct wf_cp_boxes *boxes, const struct wf_cp_box *box,
                            const struct wf_cp_side *from, const struct wf_cp_side *to)
{
    if (box->batch == 0 || box->heads == 0 || box->count == 0 || box->depth == 0) return WEFT_OK;
    if (boxes->count == boxes->room) {
        uint64_t room = boxes->room * 2 + 16;
        weft_region *items = wf_realloc(boxes->items, room * sizeof *items);

        if (items == NULL) return wf_fail_memory(room * sizeof *items);
        boxes->items = items;
        boxes->room = room;
    }
    boxes->items[boxes->count++] = (weft_region){
        .source = from->buffer,
        .target = to->buffer,
        .dims = 4,
        .source_offset = from->offset,
        .target_offset = to->offset,
        .extent = {box->batch, box->heads, box->count, box->depth},
        .source_stride = {from->strides.batch, from->strides.head, from->strides.sequence, 1},
        .target_stride = {to->strides.batch, to->strides.head, to->strides.sequence, 1}};
    return WEFT_OK;
}

weft_status wf_cp_copies_make(const weft_cp *cp, uint32_t element, const struct wf_cp_boxes *boxes,
                              struct wf_cp_copies *out)
{
    if (boxes->count == 0) return WEFT_OK;
    return wf_kernels_of(cp->context)
        ->regions_create(wf_kernels_device(cp->context), element, boxes->count, boxes->items,
                         &out->list);
}

weft_status wf_cp_copies_run(const weft_cp *cp, const struct wf_cp_copies *copies,
                             const void *const *sources, void *const *targets, weft_stream *stream)
{
    if (copies->list == NULL) return WEFT_OK;
    return wf_kernels_of(cp->context)->regions_copy(copies->list, sources, targets, stream);
}

void wf_cp_copies_free(const weft_cp *cp, struct wf_cp_copies *copies)
{
    if (copies->list != NULL) wf_kernels_of(cp->context)->regions_destroy(copies->list);
    copies->list = NULL;
}
