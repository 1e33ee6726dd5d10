/* shm_slot.c - beginning a collective, meeting the others in it, and finishing it. */
#include "shm.h"

#include <string.h>

struct wf_shm_slot *wf_shm_slot(const struct wf_shm_group *group, int32_t rank)
{
    return (struct wf_shm_slot *)(group->peers[rank].board->slots +
                                  (group->number % SHM_SLOTS) * group->slot_bytes);
}

static unsigned char *data_of(const struct wf_shm_group *group, struct wf_shm_slot *slot)
{
    return slot->data + (size_t)group->size * sizeof(struct wf_shm_span);
}

/* The slot about to be written was last used SHM_SLOTS collectives ago: is everybody done? */
static weft_status reclaim(struct wf_shm_group *group)
{
    uint64_t needed = group->number - SHM_SLOTS, least = UINT64_MAX;

    if (group->number <= SHM_SLOTS || group->peers_done >= needed) return WEFT_OK;
    for (int32_t p = 0; p < group->size; p++) {
        uint64_t done;

        if (p == group->rank) continue;
        CPU_TRY(wf_shm_wait(group, &group->peers[p].board->done, needed, p));
        done = atomic_load_explicit(&group->peers[p].board->done, memory_order_acquire);
        if (done < least) least = done;
    }
    group->peers_done = least;
    return WEFT_OK;
}

static weft_status stand_in(struct wf_shm_group *group, struct wf_shm_stage *stage, uint64_t bytes)
{
    if (stage->bytes >= bytes) return WEFT_OK;
    if (stage->memory != NULL) wf_cpu_heap_free(group->heap, stage->memory);
    stage->memory = NULL;
    stage->bytes = 0;
    CPU_TRY(wf_cpu_heap_allocate(group->heap, bytes, WEFT_MEMORY_DEVICE, &stage->memory));
    stage->bytes = bytes;
    return WEFT_OK;
}

static bool reachable(const struct wf_shm_group *group, const void *memory, uint64_t bytes)
{
    return group->one_process || bytes == 0 || wf_cpu_heap_holds(group->heap, memory, bytes);
}

static struct wf_shm_place place_of(const struct wf_shm_group *group, const void *memory)
{
    struct wf_shm_place place = {.pointer = (uint64_t)(uintptr_t)memory, .offset = SHM_NOWHERE};

    if (wf_cpu_heap_holds(group->heap, memory, 0))
        place.offset = (uint64_t)((const uint8_t *)memory - group->heap->segment.base);
    return place;
}

static weft_status publish_places(struct wf_shm_group *group, struct wf_shm_slot *slot,
                                  const struct wf_shm_share *share)
{
    const void *send = share->send;

    if (share->copy_send || !reachable(group, send, share->send_bytes)) {
        CPU_TRY(stand_in(group, &group->send_stage, share->send_bytes));
        memcpy(group->send_stage.memory, send, share->send_bytes);
        send = group->send_stage.memory;
    }
    group->target = share->recv;
    if (share->recv != NULL && !reachable(group, share->recv, share->recv_bytes)) {
        CPU_TRY(stand_in(group, &group->recv_stage, share->recv_bytes));
        group->target = group->recv_stage.memory;
    }
    slot->at.send = place_of(group, send);
    slot->at.recv = place_of(group, group->target);
    return WEFT_OK;
}

weft_status wf_shm_begin(struct wf_shm_group *group, const struct wf_shm_call *call,
                         const struct wf_shm_share *share)
{
    struct wf_shm_slot *slot;
    bool by_reference =
        share->by_reference || share->recv != NULL || share->send_bytes > SHM_INLINE;

    if (wf_shm_broken(group)) return wf_shm_fault(group);
    group->number++;
    group->doing = wf_cpu_collective_name(call->collective);
    CPU_TRY(reclaim(group));
    slot = wf_shm_slot(group, group->rank);
    slot->call = *call;
    slot->bytes = share->send_bytes;
    slot->shift = share->shift;
    if (share->scale != NULL) memcpy(slot->scale, share->scale, wf_cpu_dtype_bytes(call->dtype));
    if (share->spans != NULL)
        memcpy(slot->data, share->spans, (size_t)group->size * sizeof *share->spans);
    if (by_reference) {
        weft_status status;

        slot->call.where = SHM_BY_REFERENCE;
        status = publish_places(group, slot, share);
        if (status != WEFT_OK)
            return wf_shm_fail(group, status, "%s: no shared memory to pass %llu bytes in",
                               group->doing, (unsigned long long)share->send_bytes);
    } else if (share->send_bytes > SHM_TINY) {
        slot->call.where = SHM_IN_SLOT;
        memcpy(data_of(group, slot), share->send, share->send_bytes);
    } else {
        slot->call.where = SHM_IN_LINE;
        if (share->send_bytes > 0) memcpy(slot->tiny, share->send, share->send_bytes);
    }
    atomic_store(&slot->number, group->number);
    wf_shm_ring_all(group);
    return WEFT_OK;
}

weft_status wf_shm_meet(struct wf_shm_group *group, int32_t rank)
{
    struct wf_shm_slot *slot = wf_shm_slot(group, rank);

    if (rank == group->rank) return WEFT_OK;
    CPU_TRY(wf_shm_wait(group, &slot->number, group->number, rank));
    return wf_shm_check(group, rank, &wf_shm_slot(group, group->rank)->call, &slot->call);
}

weft_status wf_shm_meet_all(struct wf_shm_group *group)
{
    for (int32_t i = 1; i < group->size; i++)
        CPU_TRY(wf_shm_meet(group, (group->rank + i) % group->size));
    return WEFT_OK;
}

void wf_shm_done(struct wf_shm_group *group)
{
    atomic_store(&group->board->done, group->number);
    wf_shm_ring_all(group);
}

weft_status wf_shm_settle(struct wf_shm_group *group, int32_t rank)
{
    if (wf_shm_slot(group, group->rank)->call.where != SHM_BY_REFERENCE) return WEFT_OK;
    for (int32_t i = 1; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;

        if (rank >= 0 && p != rank) continue;
        CPU_TRY(wf_shm_wait(group, &group->peers[p].board->done, group->number, p));
    }
    return WEFT_OK;
}

const void *wf_shm_sent(const struct wf_shm_group *group, int32_t rank)
{
    struct wf_shm_slot *slot = wf_shm_slot(group, rank);

    switch (slot->call.where) {
    case SHM_IN_LINE:
        return slot->tiny;
    case SHM_IN_SLOT:
        return data_of(group, slot);
    default:
        return wf_shm_reach(group, rank, &slot->at.send);
    }
}

void *wf_shm_target(const struct wf_shm_group *group, int32_t rank)
{
    return wf_shm_reach(group, rank, &wf_shm_slot(group, rank)->at.recv);
}

const struct wf_shm_span *wf_shm_spans(const struct wf_shm_group *group, int32_t rank)
{
    return (const struct wf_shm_span *)wf_shm_slot(group, rank)->data;
}
