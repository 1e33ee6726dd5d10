/* wrong_displacements.c - mixes up the offsets of two ranks.
 * Runs: --only collectives/all_gather_v/i16
 * Fails: collectives/all_gather_v/i16/permuted/count=11/ranks=all */
#include "wrong.h"

#include <string.h>

static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    uint64_t offsets[EXAMPLE_MAX_RANKS], sum = 0;
    weft_collective_args other = *args;

    if (args->collective != WEFT_COLL_ALL_GATHER_V) return run_right(comm, args);
    /* Ignore the offsets, as if the parts were adjacent. */
    for (int32_t i = 0; i < comm->size; i++) {
        offsets[i] = sum;
        sum += args->recv_counts[i];
    }
    other.recv_offsets = offsets;
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
