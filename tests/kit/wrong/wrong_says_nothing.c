/* wrong_says_nothing.c - refuses without an error text.
 * Runs: --only errors/root
 * Fails: errors/root/broadcast/root=-1 */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    if (args->root < 0) return WEFT_ERR_INVALID;
    return run_right(comm, args);
}

INSTALL(wrong.comm.collective = collective)
