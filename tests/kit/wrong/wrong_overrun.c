/* wrong_overrun.c - writes whole words, also past the end.
 * Runs: --only collectives/broadcast/u8
 * Fails: collectives/broadcast/u8/out_of_place/count=7 */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_status status = run_right(comm, args);

    if (status == WEFT_OK && args->collective == WEFT_COLL_BROADCAST &&
        args->dtype == WEFT_DTYPE_U8 && args->count % 8 != 0)
        ((uint8_t *)args->recv)[args->count] = 0;
    return status;
}

INSTALL(wrong.comm.collective = collective)
