/* wrong_fickle.c - the support query gives different answers.
 * Runs: --only claims/pure
 * Fails: claims/pure */
#include "wrong.h"

static weft_status support(void *device, const weft_support_query *query, uint32_t *level)
{
    static _Atomic uint32_t asked;
    weft_status status = right.comm.support(device, query, level);

    if (*level == WEFT_SUPPORT_NATIVE && atomic_fetch_add(&asked, 1) % 1000 == 999)
        *level = WEFT_SUPPORT_EMULATED;
    return status;
}

INSTALL(wrong.comm.support = support)
