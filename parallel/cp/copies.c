/* copies.c - lists of boxes that the device copies. */
#include "cp.h"

weft_cp_local wf_cp_dense(int32_t sequence_dim, int64_t heads, int64_t length, int64_t depth,
                          const void *memory)
{
    return (weft_cp_local){.memory = (void *)(uintptr_t)memory,
                           .batch = heads * length * depth,
                           .head = sequence_dim == 1 ? depth : length * depth,
                           .sequence = sequence_dim == 1 ? heads * depth : depth};
}

bool wf_cp_is_dense(const weft_cp *cp, const weft_cp_local *local, int64_t heads, int64_t length)
{
    weft_cp_local dense = wf_cp_dense(cp->sizes.sequence_dim, heads, length, cp->sizes.depth, NULL);

    return local->batch == dense.batch && local->head == dense.head &&
           local->sequence == dense.sequence;
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
    const weft_kernel_table *kernels;
    void *device = NULL;

    if (boxes->count == 0) return WEFT_OK;
    kernels = weft_context_kernels(cp->context, &device);
    return kernels->regions_create(device, element, boxes->count, boxes->items, &out->list);
}

weft_status wf_cp_copies_run(const weft_cp *cp, const struct wf_cp_copies *copies,
                             const void *const *sources, void *const *targets, weft_stream *stream)
{
    void *device;

    if (copies->list == NULL) return WEFT_OK;
    return weft_context_kernels(cp->context, &device)
        ->regions_copy(copies->list, sources, targets, stream);
}

void wf_cp_copies_free(const weft_cp *cp, struct wf_cp_copies *copies)
{
    void *device;

    if (copies->list != NULL)
        weft_context_kernels(cp->context, &device)->regions_destroy(copies->list);
    copies->list = NULL;
}

/* ---- shards with gaps ---- */

/* The copies between a shard with gaps and memory without. */
struct wf_cp_strided {
    struct wf_cp_strided *next;
    bool pack;
    int64_t heads, length;
    weft_cp_local strides; /* without memory */
    struct wf_cp_copies copies;
};

void wf_cp_strided_free(weft_cp *cp)
{
    while (cp->strided != NULL) {
        struct wf_cp_strided *item = cp->strided;

        cp->strided = item->next;
        wf_cp_copies_free(cp, &item->copies);
        wf_free(item);
    }
}

static weft_status make_strided(weft_cp *cp, struct wf_cp_strided *item)
{
    struct wf_cp_box box = {cp->sizes.batch, item->heads, item->length, cp->sizes.depth};
    struct wf_cp_side shard = {0, 0, item->strides},
                      dense = {0, 0,
                               wf_cp_dense(cp->sizes.sequence_dim, item->heads, item->length,
                                           cp->sizes.depth, NULL)};
    struct wf_cp_boxes boxes = {0};
    weft_status status = item->pack ? wf_cp_boxes_add(&boxes, &box, &shard, &dense)
                                    : wf_cp_boxes_add(&boxes, &box, &dense, &shard);

    if (status == WEFT_OK) status = wf_cp_copies_make(cp, cp->element, &boxes, &item->copies);
    wf_free(boxes.items);
    return status;
}

static weft_status find_strided(weft_cp *cp, const struct wf_cp_strided *wanted,
                                struct wf_cp_strided **out)
{
    struct wf_cp_strided *item = cp->strided;
    weft_status status;

    while (item != NULL &&
           (item->pack != wanted->pack || item->heads != wanted->heads ||
            item->length != wanted->length || item->strides.batch != wanted->strides.batch ||
            item->strides.head != wanted->strides.head ||
            item->strides.sequence != wanted->strides.sequence))
        item = item->next;
    if (item == NULL) {
        item = wf_alloc(sizeof *item);
        if (item == NULL) return wf_fail_memory(sizeof *item);
        *item = *wanted;
        status = make_strided(cp, item);
        if (status != WEFT_OK) {
            wf_free(item);
            return status;
        }
        item->next = cp->strided;
        cp->strided = item;
    }
    *out = item;
    return WEFT_OK;
}

weft_status wf_cp_copy_strided(weft_cp *cp, bool pack, const weft_cp_local *local, int64_t heads,
                               int64_t length, void *dense, weft_stream *stream)
{
    struct wf_cp_strided wanted = {.pack = pack,
                                   .heads = heads,
                                   .length = length,
                                   .strides = {NULL, local->batch, local->head, local->sequence}};
    struct wf_cp_strided *item = NULL;

    WF_TRY(find_strided(cp, &wanted, &item));
    return wf_cp_copies_run(cp, &item->copies, (const void *[]){pack ? local->memory : dense},
                            (void *[]){pack ? dense : local->memory}, stream);
}

weft_status wf_cp_pack_keys(const struct wf_cp_pass *pass, const weft_cp_local *local, void *room,
                            const void **out)
{
    weft_cp *cp = pass->cp;
    int64_t heads = cp->sizes.key_heads, length = cp->held[cp->coordinate];

    *out = local->memory;
    if (wf_cp_is_dense(cp, local, heads, length)) return WEFT_OK;
    *out = room;
    WF_TRY(wf_cp_copy_strided(cp, true, local, heads, length, room, pass->stream));
    return wf_cp_sync(cp, pass->stream); /* the host and other streams read ROOM */
}
