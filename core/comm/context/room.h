/* room.h - the size of memory that a caller passes. */
#ifndef WEFT_COMM_CONTEXT_ROOM_H
#define WEFT_COMM_CONTEXT_ROOM_H

#include "comm/comm.h"

/* ---- what a communicator knows ---- */

/* Where COMM keeps what it knows of MEMORY: the upper bits of a product, in which addresses at any
 * regular distance differ. */
static inline size_t wf_room_place(const void *memory)
{
    return (uint64_t)(uintptr_t)memory * UINT64_C(0x9e3779b97f4a7c15) >> (64 - WF_ROOM_BITS);
}

/* True if BYTES at MEMORY are surely in one allocation, or the device does not know it.  The common
 * case without a call. */
static inline bool wf_room_is_known(const weft_comm *comm, const void *memory, uint64_t bytes)
{
    const struct wf_known_room *room = &comm->rooms[wf_room_place(memory)];

    return bytes == 0 || (room->memory == (uintptr_t)memory && bytes <= room->bytes &&
                          room->frees == atomic_load_explicit(&comm->context->ledger.frees,
                                                              memory_order_relaxed));
}

/* ---- buffers.c ---- */

/* True if the device says that BYTES at MEMORY are in one allocation, or does not know it; COMM
 * then keeps this. */
bool wf_room_learn(weft_comm *comm, const void *memory, uint64_t bytes);
/* The same, from what COMM knows if it can. */
static inline bool wf_room_fits(weft_comm *comm, const void *memory, uint64_t bytes)
{
    return wf_room_is_known(comm, memory, bytes) || wf_room_learn(comm, memory, bytes);
}

/* Where memory lies in its allocation. */
struct wf_room {
    uint64_t bytes;  /* of the allocation; 0: the device does not know it */
    uint64_t offset; /* of the memory in it */
};

/* Find MEMORY.  WEFT_ERR_INVALID: the device knows that it is in no allocation. */
weft_status wf_room_find(const weft_device_table *table, void *device, const void *memory,
                         struct wf_room *out) WF_NODISCARD;
/* WEFT_OK if BYTES at MEMORY are in one allocation, as far as COMM's device knows; COMM then keeps
 * this.  With WEFT_CHECK also: the process can read them, if they are host memory.  Otherwise
 * WEFT_ERR_INVALID with the text "NEEDS at NAME; the allocation has ...", or "NEEDS at NAME: ..."
 * if they are in no allocation. */
weft_status wf_room_check(weft_comm *comm, const void *memory, uint64_t bytes, const char *needs,
                          const char *name) WF_NODISCARD;
/* True if BYTES fit, or the device does not know. */
static inline bool wf_room_has(const struct wf_room *room, uint64_t bytes)
{
    return room->bytes == 0 || (room->offset <= room->bytes && bytes <= room->bytes - room->offset);
}

/* ---- mapped.c ---- */

/* How many of BYTES at MEMORY the process can read, from the first one on.  All of them if the
 * system does not tell. */
uint64_t wf_mapped_bytes(const void *memory, uint64_t bytes);

#endif
