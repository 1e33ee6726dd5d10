/* wrong_claims_nonsense.c - claims a reduction that is not defined.
 * Runs: --only claims/answered
 * Fails: claims/answered */
#include "wrong.h"

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    weft_status status = right.comm.support(device, query, level);

    if (query->collective == WEFT_COLL_REDUCE && query->dtype == WEFT_DTYPE_F32 &&
        query->reduction == WEFT_REDUCE_BXOR)
        *level = WEFT_SUPPORT_NATIVE;
    return status;
}

INSTALL(wrong.comm.support = support)
