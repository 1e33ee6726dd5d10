/* ccl_match.c - WEFT_COMM_CHECK: before each collective the ranks gather and compare their calls.
 *
 * Each check costs a small all-gather and a wait, so it is optional. */
#include "ccl.h"

weft_status ccl_match(struct gpu_comm *comm, const struct gpu_op *op)
{
    struct gpu_call mine = gpu_call_of(comm, op);
    const void *all = NULL;

    if (gpu_is_capturing(op->stream)) return WEFT_OK;
    PLUG_TRY(ccl_talk(comm, op->stream, &mine, sizeof mine, &all));
    return gpu_calls_match(comm, all);
}
