/* wrong_ignores_timeout.c - waits without a limit for a missing rank.
 * Runs: --only errors/timeout/collective --comm-timeout 1
 * Fails: errors/timeout/collective */
#include "wrong.h"

static weft_status prepare(void *device, const weft_comm_options *options, void **comm,
                           weft_blob *address)
{
    weft_comm_options other = *options;

    other.timeout_ns = WEFT_FOREVER;
    return right.comm.prepare(device, &other, comm, address);
}

INSTALL(wrong.comm.prepare = prepare)
