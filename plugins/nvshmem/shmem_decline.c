/* shmem_decline.c - a rank that cannot do its part of an operation reports that to its peers.  They
 * get its error at once instead of a timeout, and report it to the ranks that wait for them.
 *
 * A report is one 64-bit word: rank + 1 in 16 bits, the status in 8, and above them the number of
 * bytes of the arena that were missing, or 0. */
#include "shmem.h"

#include <stdio.h>

#define BYTES_MAX (UINT64_MAX >> 24)

static uint64_t pack(const struct gpu_comm *comm, weft_status status)
{
    uint64_t bytes = status == WEFT_ERR_NO_MEMORY ? comm->lacking : 0;

    if (bytes > BYTES_MAX) bytes = BYTES_MAX;
    return bytes << 24 | (uint64_t)(uint8_t)-status << 16 | (uint64_t)(comm->rank + 1);
}

weft_status shmem_describe_declined(const struct gpu_comm *comm, uint64_t word, char *out,
                                    size_t size)
{
    weft_status status = -(weft_status)(word >> 16 & 0xff);
    uint64_t bytes = word >> 24, rank = (word & 0xffff) - 1;
    int peer = rank < (uint64_t)comm->size ? comm->world_ranks[rank] : -1;

    if (bytes > 0)
        snprintf(out, size,
                 "rank %d cannot allocate %llu bytes of symmetric memory; set %s to a larger size",
                 peer, (unsigned long long)bytes, VENDOR_HEAP_KNOB);
    else if (status == WEFT_ERR_NO_MEMORY)
        snprintf(out, size, "rank %d is out of host memory", peer);
    else
        snprintf(out, size, "rank %d could not do its part", peer);
    return status;
}

weft_status shmem_decline(struct gpu_comm *comm, weft_status status, vendor_stream stream)
{
    struct wk_decline_args args = {.channel = shmem_channel(comm), .word = pack(comm, status)};
    char text[sizeof comm->error_text];

    snprintf(text, sizeof text, "rank %d: %s", comm->world_ranks[comm->rank], plug_last_text());
    if (gpu_is_capturing(stream)) stream = comm->side; /* a recorded operation may never run */
    if (shmem_turn_begin(comm, stream) == WEFT_OK &&
        shmem_onesided_launch(comm, SHMEM_DECLINE, 1, 1, &args, stream) == WEFT_OK)
        shmem_turn_end(comm, stream);
    comm->has_withdrawn = status == WEFT_ERR_NO_MEMORY && comm->lacking > 0;
    comm->lacking = 0;
    gpu_comm_fail(comm, status, text);
    return plug_fail(status, "%s", text);
}
