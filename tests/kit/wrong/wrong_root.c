/* wrong_root.c - the root is always rank 0.
 * Runs: --only collectives/broadcast/f32
 * Fails: collectives/broadcast/f32/roots/count=5/root=1/ranks=all */
#include "wrong.h"

static weft_status collective(void *comm, const weft_collective_args *args)
{
    weft_collective_args other = *args;

    if (args->collective == WEFT_COLL_BROADCAST) {
        if (args->send == NULL) other.send = args->recv;
        other.root = 0;
    }
    return run_right(comm, &other);
}

INSTALL(wrong.comm.collective = collective)
