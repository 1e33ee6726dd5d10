/* wrong_last_element.c - forgets the remainder after whole vectors of four.
 * Runs: --only collectives/scatter/i64
 * Fails: collectives/scatter/i64/out_of_place/count=7 */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    int64_t *last, before;
    weft_status status;

    if (args->collective != WEFT_COLL_SCATTER || args->dtype != WEFT_DTYPE_I64 ||
        args->count % 4 == 0)
        return run_right(comm, args);
    last = (int64_t *)args->recv + args->count - 1;
    before = *last;
    status = run_right(comm, args);
    *last = before;
    return status;
}

INSTALL(wrong.comm.collective = collective)
