/* wrong_early.c - comes back before the work is done, yet says that it is.
 * Runs: --only collectives/all_gather/f32/late
 * Fails: collectives/all_gather/f32/late/count=9/late=0/ranks=all */
#include "wrong.h"

#include <pthread.h>

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

static weft_status collective(void *comm, const weft_collective_args *args)
{
    catch_up();
    pending.comm = comm;
    pending.args = *args;
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
