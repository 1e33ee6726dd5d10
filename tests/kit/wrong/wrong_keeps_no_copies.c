/* wrong_keeps_no_copies.c - in a group, reads the caller's arrays after they are freed.
 * Runs: --level groups
 * Fails: groups/collectives */
#include "wrong.h"

#include <string.h>

/* Simulates reads of dangling arrays, which would be undefined. */
static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    weft_collective_args other = *args;
    uint64_t zero[EXAMPLE_MAX_RANKS] = {0};

    if (comm->group_depth > 0) other.recv_offsets = zero;
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
