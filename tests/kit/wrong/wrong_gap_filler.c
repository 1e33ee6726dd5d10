/* wrong_gap_filler.c - fills the gaps between the parts of a v-variant.
 * Runs: --only collectives/all_to_all_v/i32
 * Fails: collectives/all_to_all_v/i32/gapped/count=7/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_status status = run_right(comm, args);

    if (status == WEFT_OK && args->collective == WEFT_COLL_ALL_TO_ALL_V &&
        args->dtype == WEFT_DTYPE_I32 && args->recv_offsets[0] > 0)
        ((int32_t *)args->recv)[args->recv_offsets[0] - 1] = 0;
    return status;
}

INSTALL(wrong.comm.collective = collective)
