/* wrong_no_barrier.c - a barrier that does not wait.
 * Runs: --only collectives/barrier
 * Fails: collectives/barrier/bool/late/count=9/late=0/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (args->collective == WEFT_COLL_BARRIER) return WEFT_OK;
    return run_right(comm, args);
}

INSTALL(wrong.comm.collective = collective)
