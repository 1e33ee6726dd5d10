/* wrong_drops_nan.c - a maximum that ignores NaN.
 * Runs: --only collectives/all_reduce/f32/max
 * Fails: collectives/all_reduce/f32/max/nan/count=17/ranks=all */
#include "wrong.h"

#include <math.h>

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_status status = run_right(comm, args);
    float *out = args->recv;

    if (status != WEFT_OK || args->collective != WEFT_COLL_ALL_REDUCE ||
        args->dtype != WEFT_DTYPE_F32 || args->reduction != WEFT_REDUCE_MAX)
        return status;
    for (uint64_t i = 0; i < args->count; i++)
        if (isnan(out[i])) out[i] = 0;
    return status;
}

INSTALL(wrong.comm.collective = collective)
