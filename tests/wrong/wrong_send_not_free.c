/* wrong_send_not_free.c - a root that goes on while others still read its buffer.
 * Runs: --only collectives/broadcast/f32/late
 * Fails: collectives/broadcast/f32/late/count=9/root=0/late=3/ranks=all */
#include "wrong.h"

#include <pthread.h>
#include <string.h>

static struct {
    bool running;
    pthread_t thread;
    void *comm;
    weft_collective_args args;
} pending;

static void *run_later(void *unused)
{
    (void)unused;
    (void)run_right(pending.comm, &pending.args);
    return NULL;
}

static void catch_up(void)
{
    if (pending.running) pthread_join(pending.thread, NULL);
    pending.running = false;
}

/* The root's own result is there at once, so only the other ranks can tell. */
static weft_status collective(void *self, const weft_collective_args *args)
{
    struct example_comm *comm = self;

    catch_up();
    if (args->collective != WEFT_COLL_BROADCAST || args->root != comm->rank || args->count == 0)
        return run_right(comm, args);
    pending.comm = comm;
    pending.args = *args;
    if (args->recv != args->send)
        memcpy(args->recv, args->send, args->count * example_dtype_bytes(args->dtype));
    pending.args.recv = (void *)args->send;
    pending.running = pthread_create(&pending.thread, NULL, run_later, NULL) == 0;
    return WEFT_OK;
}

static void destroy(void *comm)
{
    catch_up();
    right.comm.destroy(comm);
}

void wrong_install(void)
{
    wrong.comm.collective = collective;
    wrong.comm.destroy = destroy;
}
