/* buffers.h - the memory that calls are given, with WEFT_CHECK. */
#ifndef WEFT_COMM_BUFFERS_H
#define WEFT_COMM_BUFFERS_H

#include "comm.h"

/* Where memory lies in its allocation. */
struct wf_room {
    uint64_t bytes;  /* of the allocation; 0: the device does not know it */
    uint64_t offset; /* of the memory in it */
};

weft_status wf_room_find(const weft_device_table *table, void *device, const void *memory,
                         struct wf_room *out) WF_NODISCARD;
/* True if BYTES fit, or the device does not know. */
static inline bool wf_room_has(const struct wf_room *room, uint64_t bytes)
{
    return room->bytes == 0 || (room->offset <= room->bytes && bytes <= room->bytes - room->offset);
}

/* WEFT_OK unless the memory of ARGS, whose other arguments are valid, is misaligned, is smaller
 * than the call needs, or overlaps other than in place. */
weft_status wf_buffers_check_collective(const weft_comm *comm,
                                        const weft_collective_args *args) WF_NODISCARD;
/* The same for the memory of a message of FUNCTION. */
weft_status wf_buffers_check_message(const weft_comm *comm, const char *function,
                                     const weft_message *message) WF_NODISCARD;

#endif
