/* wrong_ranks_differ.c - its support depends on the rank.
 * Runs: --only claims/same_on_all_ranks
 * Fails: claims/same_on_all_ranks */
#include "wrong.h"

static int32_t local_rank;

static weft_status open_device(const weft_device_options *options, void **device)
{
    local_rank = options->local_rank;
    return right.device.open(options, device);
}

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    weft_status status = right.comm.support(device, query, level);

    if (local_rank == 2 && query->dtype == WEFT_DTYPE_BF16) *level = WEFT_SUPPORT_NO;
    return status;
}

INSTALL(wrong.device.open = open_device, wrong.comm.support = support)
