/* wrong_exits.c - ends the process on an error.
 * Runs: --level p2p
 * Fails: p2p/plain/c64/count=1/from=3/to=0/ranks=all */
#include "wrong.h"

#include <unistd.h>

static weft_status send_message(void *comm, const weft_message *message)
{
    if (message->dtype == WEFT_DTYPE_C64 && message->count == 1) _exit(3);
    return right.comm.send(comm, message);
}

INSTALL(wrong.comm.send = send_message)
