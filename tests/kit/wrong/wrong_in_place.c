/* wrong_in_place.c - loses the input when the buffers are the same.
 * Runs: --only collectives/reduce_scatter/f64
 * Fails: collectives/reduce_scatter/f64/sum/in_place/count=13/ranks=all */
#include "wrong.h"

#include <string.h>

static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    uint64_t bytes = args->count * kit_dtype_bytes(args->dtype);

    if (args->collective == WEFT_COLL_REDUCE_SCATTER && bytes > 0 &&
        args->recv == (const uint8_t *)args->send + (uint64_t)comm->rank * bytes)
        memset(args->recv, 0, bytes);
    return run_right(comm, args);
}

INSTALL(wrong.comm.collective = collective)
