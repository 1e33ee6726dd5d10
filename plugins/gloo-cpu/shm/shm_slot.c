/* shm_slot.c - beginning a collective, synchronizing with the other ranks, and finishing it. */
#include "shm.h"

#include <string.h>

static unsigned char *data_of(const struct cpu_shm_group *group, struct cpu_shm_slot *slot)
{
    return slot->data + (size_t)group->size * sizeof(struct cpu_shm_span);
}

/* The slot about to be written was last used SHM_SLOTS collectives ago: is everybody done? */
static weft_status reclaim(struct cpu_shm_group *group)
{
    uint64_t needed = group->number - SHM_SLOTS, least = UINT64_MAX;

    if (group->number <= SHM_SLOTS || group->peers_done >= needed) return WEFT_OK;
    for (int32_t p = 0; p < group->size; p++) {
        uint64_t done;

        if (p == group->rank) continue;
        PLUG_TRY(cpu_shm_wait(group, &group->peers[p].control->done, needed, p));
        done = atomic_load_explicit(&group->peers[p].control->done, memory_order_acquire);
        if (done < least) least = done;
    }
    group->peers_done = least;
    return WEFT_OK;
}

bool cpu_shm_reachable(const struct cpu_shm_group *group, const void *memory, uint64_t bytes)
{
    return group->one_process || bytes == 0 || cpu_heap_holds(group->heap, memory, bytes);
}

struct cpu_shm_address cpu_shm_address_of(const struct cpu_shm_group *group, const void *memory)
{
    struct cpu_shm_address place = {.pointer = (uint64_t)(uintptr_t)memory, .offset = SHM_NOWHERE};

    if (cpu_heap_holds(group->heap, memory, 0))
        place.offset = (uint64_t)((const uint8_t *)memory - group->heap->segment.base);
    return place;
}

/* Returns where the data is: enum cpu_shm_where. */
static uint32_t write_data(const struct cpu_shm_group *group, struct cpu_shm_slot *slot,
                           const struct cpu_shm_share *share)
{
    if (share->send_bytes > SHM_TINY) {
        memcpy(data_of(group, slot), share->send, share->send_bytes);
        return SHM_IN_SLOT;
    }
    if (share->send_bytes > 0) memcpy(slot->tiny, share->send, share->send_bytes);
    return SHM_IN_LINE;
}

static weft_status write_places(struct cpu_shm_group *group, struct cpu_shm_slot *slot,
                                const struct cpu_shm_share *share, uint32_t *where)
{
    *where = SHM_BY_REFERENCE;
    slot->at.send = cpu_shm_address_of(group, share->send);
    slot->at.recv = cpu_shm_address_of(group, share->recv);
    if (share->by_reference ||
        (!share->in_pieces && cpu_shm_reachable(group, share->send, share->send_bytes)))
        return WEFT_OK;
    *where = SHM_IN_PIECES;
    group->in_pieces = true;
    return cpu_shm_fill(group, share, 0);
}

weft_status cpu_shm_begin(struct cpu_shm_group *group, const struct cpu_shm_call *call,
                          const struct cpu_shm_share *share)
{
    struct cpu_shm_head head = cpu_shm_head_of(call);
    struct cpu_shm_slot *slot;
    uint32_t where;

    if (cpu_shm_has_failed(group)) return cpu_shm_fault(group);
    group->number++;
    group->in_pieces = false;
    group->doing = cpu_call_name(call->collective);
    PLUG_TRY(reclaim(group));
    slot = cpu_shm_slot(group, group->rank);
    slot->call = *call;
    slot->bytes = share->send_bytes;
    slot->shift = share->shift;
    if (share->scale != NULL) memcpy(slot->scale, share->scale, kit_dtype_bytes(call->dtype));
    if (share->spans != NULL)
        memcpy(slot->data, share->spans, (size_t)group->size * sizeof *share->spans);
    if (share->by_reference || share->recv != NULL || share->send_bytes > SHM_INLINE)
        PLUG_TRY(write_places(group, slot, share, &where));
    else
        where = write_data(group, slot, share);
    head.kind |= where << SHM_WHERE_SHIFT;
    slot->head = head;
    atomic_store(&slot->number, group->number);
    cpu_shm_ring_all(group);
    return WEFT_OK;
}

/* Wait for RANK's slot and compare the calls. */
static inline weft_status compare(struct cpu_shm_group *group, int32_t rank,
                                  const struct cpu_shm_slot *slot)
{
    PLUG_TRY(cpu_shm_wait(group, &slot->number, group->number, rank));
    if (!cpu_shm_head_same(&cpu_shm_slot(group, group->rank)->head, &slot->head))
        return cpu_shm_mismatch(group, rank);
    if (cpu_shm_where(slot) == SHM_IN_PIECES) group->in_pieces = true;
    return WEFT_OK;
}

weft_status cpu_shm_wait_peer(struct cpu_shm_group *group, int32_t rank)
{
    const struct cpu_shm_slot *slot = cpu_shm_slot(group, rank);

    if (rank == group->rank) return WEFT_OK;
    PLUG_TRY(compare(group, rank, slot));
    return cpu_shm_where(slot) < SHM_BY_REFERENCE ? WEFT_OK : cpu_shm_still_there(group, rank);
}

weft_status cpu_shm_compare_all(struct cpu_shm_group *group)
{
    for (int32_t i = 1; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;

        PLUG_TRY(compare(group, p, cpu_shm_slot(group, p)));
    }
    return WEFT_OK;
}

weft_status cpu_shm_wait_peers(struct cpu_shm_group *group)
{
    for (int32_t i = 1; i < group->size; i++)
        PLUG_TRY(cpu_shm_wait_peer(group, (group->rank + i) % group->size));
    return WEFT_OK;
}

weft_status cpu_shm_confirm(struct cpu_shm_group *group, int32_t rank)
{
    int32_t first = rank < 0 ? 0 : rank, last = rank < 0 ? group->size - 1 : rank;

    for (int32_t p = first; p <= last; p++)
        if (p != group->rank && cpu_shm_where(cpu_shm_slot(group, p)) >= SHM_BY_REFERENCE)
            PLUG_TRY(cpu_shm_still_there(group, p));
    return WEFT_OK;
}

void cpu_shm_done(struct cpu_shm_group *group)
{
    /* Nobody need wait for this rank to read a piece it has no part in. */
    if (group->in_pieces) atomic_store(&group->control->drained, (group->number + 1) << 32);
    atomic_store(&group->control->done, group->number);
    cpu_shm_ring_all(group);
}

weft_status cpu_shm_settle(struct cpu_shm_group *group, int32_t rank)
{
    if (cpu_shm_where(cpu_shm_slot(group, group->rank)) < SHM_BY_REFERENCE) return WEFT_OK;
    for (int32_t i = 1; i < group->size; i++) {
        int32_t p = (group->rank + i) % group->size;

        if (rank >= 0 && p != rank) continue;
        PLUG_TRY(cpu_shm_wait(group, &group->peers[p].control->done, group->number, p));
    }
    return WEFT_OK;
}

const void *cpu_shm_sent(const struct cpu_shm_group *group, int32_t rank)
{
    struct cpu_shm_slot *slot = cpu_shm_slot(group, rank);

    switch (cpu_shm_where(slot)) {
    case SHM_IN_LINE:
        return slot->tiny;
    case SHM_IN_SLOT:
        return data_of(group, slot);
    default:
        return cpu_shm_reach(group, rank, &slot->at.send);
    }
}

void *cpu_shm_target(const struct cpu_shm_group *group, int32_t rank)
{
    return cpu_shm_reach(group, rank, &cpu_shm_slot(group, rank)->at.recv);
}

const struct cpu_shm_span *cpu_shm_spans(const struct cpu_shm_group *group, int32_t rank)
{
    return (const struct cpu_shm_span *)cpu_shm_slot(group, rank)->data;
}
