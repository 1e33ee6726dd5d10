/* wrong_sum.c - a sum that is one too large.
 * Runs: --only collectives/all_reduce/f32
 * Fails: collectives/all_reduce/f32/sum/out_of_place/count=7/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_status status = run_right(comm, args);

    if (status == WEFT_OK && args->collective == WEFT_COLL_ALL_REDUCE && args->count == 7 &&
        args->dtype == WEFT_DTYPE_F32 && args->reduction == WEFT_REDUCE_SUM)
        ((float *)args->recv)[6] += 1;
    return status;
}

INSTALL(wrong.comm.collective = collective)
