/* wrong_own_scale.c - a premul_sum that multiplies all data by the reading rank's scale.
 * Runs: --only collectives/all_reduce/f32/premul_sum
 * Fails: collectives/all_reduce/f32/premul_sum/out_of_place/count=7/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args other = *args;
    float *out = args->recv;
    weft_status status;

    if (args->collective != WEFT_COLL_ALL_REDUCE || args->dtype != WEFT_DTYPE_F32 ||
        args->reduction != WEFT_REDUCE_PREMUL_SUM)
        return run_right(comm, args);
    other.reduction = WEFT_REDUCE_SUM;
    status = run_right(comm, &other);
    for (uint64_t i = 0; i < args->count && status == WEFT_OK; i++)
        out[i] *= *(const float *)args->scale;
    return status;
}

INSTALL(wrong.comm.collective = collective)
