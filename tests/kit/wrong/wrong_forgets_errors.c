/* wrong_forgets_errors.c - continues after a failure.
 * Runs: --only errors/timeout
 * Fails: errors/timeout/collective */
#include "wrong.h"

static weft_status async_error(void *comm)
{
    (void)comm;
    return WEFT_OK;
}

INSTALL(wrong.comm.async_error = async_error)
