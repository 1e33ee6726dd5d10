/* wrong_crashes.c - crashes with a bad pointer.
 * Runs: --only collectives/gather/i8
 * Fails: collectives/gather/i8/in_place/count=13 */
#include "wrong.h"

#include <signal.h>

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (args->collective == WEFT_COLL_GATHER && args->dtype == WEFT_DTYPE_I8 && args->count == 13)
        raise(SIGSEGV);
    return run_right(comm, args);
}

INSTALL(wrong.comm.collective = collective)
