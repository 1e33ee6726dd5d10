/* wrong_swallows_group_errors.c - the end of a group does not return the error of a call inside.
 * Runs: --level groups
 * Fails: groups/error_inside */
#include "wrong.h"

static weft_status group_end(void *comm)
{
    weft_status status = right.comm.group_end(comm);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

INSTALL(wrong.comm.group_end = group_end)
