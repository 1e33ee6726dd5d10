/* later.h - a call that continues in a thread after it has returned. */
#ifndef WEFT_TESTS_WRONG_LATER_H
#define WEFT_TESTS_WRONG_LATER_H

#include "wrong.h"

#include <pthread.h>

static struct {
    bool running;
    pthread_t thread;
    void *comm;
    weft_collective_args args;
} pending;

static void *run_pending(void *unused)
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

static weft_status run_later(void *comm, const weft_collective_args *args)
{
    catch_up();
    pending.comm = comm;
    pending.args = *args;
    pending.running = pthread_create(&pending.thread, NULL, run_pending, NULL) == 0;
    return WEFT_OK;
}

static void catch_up_and_destroy(void *comm)
{
    catch_up();
    right.comm.destroy(comm);
}

#endif
