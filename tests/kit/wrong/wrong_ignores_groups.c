/* wrong_ignores_groups.c - starts each operation at once, so that a ring of sends deadlocks.
 * Runs: --only groups/ring --comm-timeout 1
 * Fails: groups/ring */
#include "wrong.h"

static weft_status nothing(void *comm)
{
    (void)comm;
    return WEFT_OK;
}

INSTALL(wrong.comm.group_begin = nothing, wrong.comm.group_end = nothing)
