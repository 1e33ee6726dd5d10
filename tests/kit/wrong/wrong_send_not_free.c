/* wrong_send_not_free.c - a root that returns while peers still read its buffer.
 * Runs: --only collectives/broadcast/f32/late
 * Fails: collectives/broadcast/f32/late/count=9/root=0/late=3/ranks=all */
#include "later.h"

#include <string.h>

/* The root's own result is complete at once, so only the other ranks detect it. */
static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;
    weft_collective_args rest = *args;

    catch_up();
    if (args->collective != WEFT_COLL_BROADCAST || args->root != comm->rank || args->count == 0)
        return run_right(comm, args);
    if (args->recv != args->send)
        memcpy(args->recv, args->send, args->count * kit_dtype_bytes(args->dtype));
    rest.recv = (void *)args->send;
    return run_later(comm, &rest);
}

INSTALL(wrong.comm.collective = collective, wrong.comm.destroy = catch_up_and_destroy)
