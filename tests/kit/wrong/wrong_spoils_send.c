/* wrong_spoils_send.c - uses the send buffer as scratch.
 * Runs: --only collectives/reduce/i32
 * Fails: collectives/reduce/i32/sum/out_of_place/count=7 */
#include "wrong.h"

static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    weft_status status = run_right(comm, args);

    if (status == WEFT_OK && args->collective == WEFT_COLL_REDUCE &&
        args->dtype == WEFT_DTYPE_I32 && args->count > 0 && args->root != comm->rank)
        *(int32_t *)(uintptr_t)args->send += 1;
    return status;
}

INSTALL(wrong.comm.collective = collective)
