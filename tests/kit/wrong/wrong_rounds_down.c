/* wrong_rounds_down.c - an average of integers that rounds toward minus infinity.
 * Runs: --only collectives/all_reduce/i16/avg
 * Fails: collectives/all_reduce/i16/avg/out_of_place/count=1021/ranks=all */
#include "wrong.h"

static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    weft_collective_args other = *args;
    int16_t *out = args->recv;
    weft_status status;

    if (args->collective != WEFT_COLL_ALL_REDUCE || args->dtype != WEFT_DTYPE_I16 ||
        args->reduction != WEFT_REDUCE_AVG)
        return run_right(comm, args);
    other.reduction = WEFT_REDUCE_SUM;
    status = run_right(comm, &other);
    for (uint64_t i = 0; i < args->count && status == WEFT_OK; i++) {
        int16_t rest = (int16_t)(out[i] % comm->size);
        out[i] = (int16_t)(out[i] / comm->size - (rest < 0));
    }
    return status;
}

INSTALL(wrong.comm.collective = collective)
