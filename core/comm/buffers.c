/* buffers.c - the memory of collectives and messages, compared with its allocation. */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weft_status wf_room_find(const weft_device_table *table, void *device, const void *memory,
                         struct wf_room *out)
{
    weft_pointer_info info = {.struct_size = sizeof info};

    *out = (struct wf_room){0};
    WF_TRY(table->query_pointer(device, memory, &info));
    if (info.base == NULL || info.bytes == 0) return WEFT_OK;
    out->bytes = info.bytes;
    out->offset = (uint64_t)((uintptr_t)memory - (uintptr_t)info.base);
    return WEFT_OK;
}

weft_status wf_place_check(const weft_context *context, const void *memory,
                           const weft_pointer_info *pointer, const char *name, const char *instead)
{
    const weft_device_table *table = context->plugin->device;
    weft_pointer_info asked = {.struct_size = sizeof asked};
    weft_device_info device = {.struct_size = sizeof device};

    if ((context->features & WEFT_FEATURE_HOST_MEMORY) != 0) return WEFT_OK;
    if (pointer == NULL) WF_TRY(table->query_pointer(context->device, memory, &asked));
    if (pointer == NULL) pointer = &asked;
    if (pointer->kind == WEFT_MEMORY_HOST)
        return wf_fail(WEFT_ERR_INVALID, "%s, %p, is host memory, which the device cannot use; %s",
                       name, memory, instead);
    if (pointer->kind != WEFT_MEMORY_DEVICE) return WEFT_OK;
    WF_TRY(table->describe(context->device, &device));
    if (pointer->device == device.device) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s, %p, is on device %d, but the context works on device %d",
                   name, memory, pointer->device, device.device);
}

bool wf_room_learn(weft_comm *comm, const void *memory, uint64_t bytes)
{
    struct wf_known_room known = {.memory = (uintptr_t)memory, .bytes = UINT64_MAX};
    struct wf_room room;

    if (memory == NULL) return false;
    known.frees = atomic_load_explicit(&comm->context->ledger.frees, memory_order_relaxed);
    if (wf_room_find(comm->plugin->device, comm->device, memory, &room) != WEFT_OK ||
        !wf_room_has(&room, bytes))
        return false;
    if (room.bytes > 0) known.bytes = room.bytes - room.offset;
    comm->rooms[wf_room_place(memory)] = known;
    return true;
}

weft_status wf_room_check(weft_comm *comm, const void *memory, uint64_t bytes, const char *needs,
                          const char *name)
{
    struct wf_room room;
    weft_status status;

    status = wf_room_find(comm->plugin->device, comm->device, memory, &room);
    if (status != WEFT_OK) return wf_fail_context(status, "%s at %s", needs, name);
    if (!wf_room_has(&room, bytes))
        return wf_fail(WEFT_ERR_INVALID,
                       "%s at %s; the allocation has %" PRIu64 " bytes, and %s begins %" PRIu64
                       " bytes into it",
                       needs, name, room.bytes, name, room.offset);
    if (!comm->checked || room.bytes > 0 ||
        (comm->context->features & WEFT_FEATURE_HOST_MEMORY) == 0)
        return WEFT_OK;
    room.bytes = wf_mapped_bytes(memory, bytes);
    if (room.bytes >= bytes) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s at %s; the process can read %" PRIu64 " bytes from there on", needs, name,
                   room.bytes);
}

/* ---- one buffer ---- */

/* SEND or RECV of a call.  Its elements are one block, or with COUNTS one block for each rank. */
struct side {
    const char *name;
    uintptr_t at;
    const uint64_t *counts, *offsets; /* by rank; NULL: one block */
    uint64_t first, end; /* the elements FIRST to END - 1 contain all blocks; equal: no elements */
};

struct question {
    weft_comm *comm;
    const char *function;
    uint32_t dtype;
    size_t element; /* bytes */
};

static weft_status check_alignment(const struct question *q, const struct side *side)
{
    size_t alignment = wf_dtype_alignment(q->dtype);

    if (side->at % alignment == 0) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "%s on %s: on rank %d, %s is %p, which is not aligned to %zu bytes, as %s requires",
        q->function, q->comm->name, q->comm->context->rank, side->name, (const void *)side->at,
        alignment, wf_dtype_name(q->dtype));
}

static weft_status check_size(const struct question *q, const struct side *side)
{
    const void *memory = (const void *)(side->at + side->first * q->element);
    uint64_t count = side->end - side->first;
    char place[64], needs[sizeof q->comm->name + 160];

    if (!q->comm->checked && wf_room_fits(q->comm, memory, count * q->element)) return WEFT_OK;
    snprintf(place, sizeof place, "%s", side->name);
    if (side->first > 0)
        snprintf(place, sizeof place, "element %" PRIu64 " of %s", side->first, side->name);
    snprintf(needs, sizeof needs,
             "%s on %s: rank %d needs %" PRIu64 " bytes (%" PRIu64 " elements of %s)", q->function,
             q->comm->name, q->comm->context->rank, count * q->element, count,
             wf_dtype_name(q->dtype));
    return wf_room_check(q->comm, memory, count * q->element, needs, place);
}

static weft_status check_side(const struct question *q, const struct side *side)
{
    if (side->first == side->end) return WEFT_OK;
    if (q->comm->checked) WF_TRY(check_alignment(q, side));
    return check_size(q, side);
}

/* ---- two buffers ---- */

/* Block I of SIDE. */
static void find_block(const struct question *q, const struct side *side, int32_t i,
                       uintptr_t *start, uintptr_t *end)
{
    uint64_t first = side->counts != NULL ? side->offsets[i] : side->first;
    uint64_t last = side->counts != NULL ? first + side->counts[i] : side->end;

    *start = side->at + first * q->element;
    *end = side->at + last * q->element;
}

static bool ranges_overlap(const struct question *q, const struct side *a, const struct side *b)
{
    return a->first < a->end && b->first < b->end &&
           a->at + a->first * q->element < b->at + b->end * q->element &&
           b->at + b->first * q->element < a->at + a->end * q->element;
}

/* True if a block of A overlaps a block of B. */
static bool blocks_overlap(const struct question *q, const struct side *a, const struct side *b)
{
    int32_t count_a = a->counts != NULL ? q->comm->size : 1;
    int32_t count_b = b->counts != NULL ? q->comm->size : 1;
    uintptr_t start_a, end_a, start_b, end_b;

    for (int32_t i = 0; i < count_a; i++) {
        find_block(q, a, i, &start_a, &end_a);
        for (int32_t j = 0; j < count_b && start_a < end_a; j++) {
            find_block(q, b, j, &start_b, &end_b);
            if (start_b < end_b && start_a < end_b && start_b < end_a) return true;
        }
    }
    return false;
}

/* Where this rank's own part of SIDE, which has one for each rank, begins. */
static uintptr_t own_part(const struct question *q, const weft_collective_args *args,
                          const struct side *side)
{
    uint64_t rank = (uint64_t)q->comm->rank;

    return side->at +
           (side->counts != NULL ? side->offsets[rank] : rank * args->count) * q->element;
}

static bool same_arrays(const weft_comm *comm, const struct side *a, const struct side *b)
{
    size_t bytes = (size_t)comm->size * sizeof *a->counts;

    if (a->counts == NULL || b->counts == NULL) return a->counts == b->counts;
    return memcmp(a->counts, b->counts, bytes) == 0 && memcmp(a->offsets, b->offsets, bytes) == 0;
}

static bool is_in_place(const struct question *q, const weft_collective_args *args,
                        const struct side *send, const struct side *recv)
{
    uint32_t needs = kit_collective_needs(args->collective);

    if ((needs & KIT_SPLIT_SEND) != 0 && (needs & KIT_SPLIT_RECV) == 0)
        return recv->at == own_part(q, args, send);
    if ((needs & KIT_SPLIT_RECV) != 0 && (needs & KIT_SPLIT_SEND) == 0)
        return send->at == own_part(q, args, recv);
    return send->at == recv->at && same_arrays(q->comm, send, recv);
}

static const char *in_place_form(uint32_t collective)
{
    uint32_t needs = kit_collective_needs(collective);

    if (collective == WEFT_COLL_ALL_TO_ALL_V)
        return "send and recv, and the counts and offsets of both, are equal";
    if ((needs & KIT_SPLIT_SEND) != 0 && (needs & KIT_SPLIT_RECV) == 0)
        return "recv is this rank's own part of send";
    if ((needs & KIT_SPLIT_RECV) != 0 && (needs & KIT_SPLIT_SEND) == 0)
        return "send is this rank's own part of recv";
    return "send and recv are equal";
}

static weft_status check_overlap(const struct question *q, const weft_collective_args *args,
                                 const struct side *send, const struct side *recv)
{
    if (!ranges_overlap(q, send, recv) || is_in_place(q, args, send, recv) ||
        !blocks_overlap(q, send, recv))
        return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "%s on %s: on rank %d, send (%" PRIu64 " bytes at %p) and recv (%" PRIu64
        " bytes at %p) overlap; this is allowed only if %s",
        q->function, q->comm->name, q->comm->context->rank, (send->end - send->first) * q->element,
        (const void *)(send->at + send->first * q->element), (recv->end - recv->first) * q->element,
        (const void *)(recv->at + recv->first * q->element), in_place_form(args->collective));
}

/* A block of elements. */
struct block {
    uint64_t first, end;
    int32_t rank;
};

static int compare_blocks(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    return x->first != y->first ? (x->first < y->first ? -1 : 1)
                                : (x->rank > y->rank) - (x->rank < y->rank);
}

/* Two blocks of SIDE overlap: BEFORE, and AFTER, which begins later. */
static weft_status refuse_blocks(const struct question *q, const struct side *side,
                                 const struct block *before, const struct block *after)
{
    return wf_fail(WEFT_ERR_INVALID,
                   "%s on %s: on rank %d, the blocks of %s of ranks %d and %d overlap: %" PRIu64
                   " elements at offset %" PRIu64 ", and %" PRIu64 " at offset %" PRIu64,
                   q->function, q->comm->name, q->comm->context->rank, side->name, before->rank,
                   after->rank, before->end - before->first, before->first,
                   after->end - after->first, after->first);
}

/* Does no block of SIDE begin before the end of those of lower ranks? */
static bool blocks_follow(const struct side *side, int32_t count)
{
    uint64_t end = 0;

    for (int32_t i = 0; i < count; i++) {
        if (side->counts[i] == 0) continue;
        if (side->offsets[i] < end) return false;
        end = side->offsets[i] + side->counts[i];
    }
    return true;
}

/* No element of RECV is written twice.  Blocks in the order of ranks, the usual case, need no
 * memory. */
static weft_status check_blocks(const struct question *q, const struct side *recv)
{
    weft_status status = WEFT_OK;
    struct block *blocks;
    int32_t count = 0;

    if (recv->counts == NULL || blocks_follow(recv, q->comm->size)) return WEFT_OK;
    blocks = wf_calloc((size_t)q->comm->size, sizeof *blocks);
    if (blocks == NULL) return wf_fail_memory((size_t)q->comm->size * sizeof *blocks);
    for (int32_t i = 0; i < q->comm->size; i++)
        if (recv->counts[i] > 0)
            blocks[count++] =
                (struct block){recv->offsets[i], recv->offsets[i] + recv->counts[i], i};
    qsort(blocks, (size_t)count, sizeof *blocks, compare_blocks);
    for (int32_t i = 1; i < count && status == WEFT_OK; i++)
        if (blocks[i].first < blocks[i - 1].end)
            status = refuse_blocks(q, recv, &blocks[i - 1], &blocks[i]);
    wf_free(blocks);
    return status;
}

/* ---- the calls ---- */

/* Set the range of SIDE, whose blocks are set. */
static void find_range(struct side *side, int32_t size)
{
    side->first = UINT64_MAX;
    side->end = 0;
    for (int32_t i = 0; i < size; i++) {
        uint64_t end = side->offsets[i] + side->counts[i];

        if (side->counts[i] == 0) continue;
        if (side->offsets[i] < side->first) side->first = side->offsets[i];
        if (end > side->end) side->end = end;
    }
    if (side->end == 0) side->first = 0;
}

/* The send and recv of this rank. */
static void find_sides(const weft_comm *comm, const weft_collective_args *args, struct side *send,
                       struct side *recv)
{
    struct kit_use use = kit_collective_use(args, comm->rank, comm->size);
    uint32_t needs = kit_collective_needs(args->collective);

    *send = (struct side){"send", (uintptr_t)args->send, NULL, NULL, 0, use.send};
    *recv = (struct side){"recv", (uintptr_t)args->recv, NULL, NULL, 0, use.recv};
    if (use.send_arrays) {
        send->counts = args->send_counts;
        send->offsets = args->send_offsets;
        find_range(send, comm->size);
    } else if ((needs & KIT_SPLIT_SEND) != 0) {
        send->end *= (uint64_t)comm->size;
    }
    if (use.recv_arrays) {
        recv->counts = args->recv_counts;
        recv->offsets = args->recv_offsets;
        find_range(recv, comm->size);
    } else if ((needs & KIT_SPLIT_RECV) != 0) {
        recv->end *= (uint64_t)comm->size;
    }
}

void wf_buffers_sizes(const weft_comm *comm, const weft_collective_args *args, uint64_t *send,
                      uint64_t *recv)
{
    struct side sent, received;

    find_sides(comm, args, &sent, &received);
    *send = sent.end;
    *recv = received.end;
}

static bool side_fits(const struct question *q, const struct side *side)
{
    return wf_room_fits(q->comm, (const void *)(side->at + side->first * q->element),
                        (side->end - side->first) * q->element);
}

/* Check what does not surely fit. */
static weft_status check_sides(struct question *q, const weft_collective_args *args,
                               const struct side *send, const struct side *recv)
{
    char function[48];

    snprintf(function, sizeof function, "weft_%s", wf_collective_name(args->collective));
    q->function = function;
    WF_TRY(check_side(q, send));
    WF_TRY(check_side(q, recv));
    if (!q->comm->checked) return WEFT_OK;
    WF_TRY(check_blocks(q, recv));
    return check_overlap(q, args, send, recv);
}

weft_status wf_buffers_check_collective(weft_comm *comm, const weft_collective_args *args)
{
    struct question q = {comm, NULL, args->dtype, wf_dtype_bytes(args->dtype)};
    struct side send, recv;

    find_sides(comm, args, &send, &recv);
    if (!comm->checked && side_fits(&q, &send) && side_fits(&q, &recv)) return WEFT_OK;
    return check_sides(&q, args, &send, &recv);
}

weft_status wf_buffers_check_message(weft_comm *comm, const char *function,
                                     const weft_message *message)
{
    struct question q = {comm, function, message->dtype, wf_dtype_bytes(message->dtype)};

    return check_side(
        &q, &(struct side){"buffer", (uintptr_t)message->buffer, NULL, NULL, 0, message->count});
}
