/* wrong_denies_what_it_does.c - denies support for a call that it then runs.
 * Runs: --level claims
 * Fails: claims/denied/reduce_scatter/f16/sum */
#include "wrong.h"

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    weft_status status = right.comm.support(device, query, level);

    if (query->collective == WEFT_COLL_REDUCE_SCATTER && query->dtype == WEFT_DTYPE_F16)
        *level = WEFT_SUPPORT_NO;
    return status;
}

INSTALL(wrong.comm.support = support)
