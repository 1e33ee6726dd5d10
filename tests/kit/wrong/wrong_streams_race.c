/* wrong_streams_race.c - runs each task of a stream in its own thread, in any order.
 * Runs: --level streams
 * Fails: streams/in_order/own */
#include "wrong.h"

#include <pthread.h>
#include <time.h>

struct call {
    void (*fn)(void *);
    void *argument;
    uint32_t number;
};

static _Atomic uint32_t running, started;

static void *run_call(void *argument)
{
    struct call *call = argument;

    /* Every second one is slower. */
    if (call->number % 2 == 0) nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    call->fn(call->argument);
    plug_free(call);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static weft_status stream_call(void *device, void *stream, void (*fn)(void *), void *argument)
{
    struct call *call;
    pthread_t thread;

    if (stream == NULL) return right.device.stream_call(device, stream, fn, argument);
    call = plug_alloc(sizeof *call);
    if (call == NULL) return WEFT_ERR_NO_MEMORY;
    *call = (struct call){fn, argument, atomic_fetch_add(&started, 1)};
    atomic_fetch_add(&running, 1);
    if (pthread_create(&thread, NULL, run_call, call) != 0) return WEFT_ERR_SYSTEM;
    pthread_detach(thread);
    return WEFT_OK;
}

static weft_status stream_wait(void *device, void *stream, int64_t timeout_ns)
{
    while (atomic_load(&running) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return right.device.stream_wait(device, stream, timeout_ns);
}

static void stream_destroy(void *device, void *stream)
{
    stream_wait(device, stream, WEFT_FOREVER);
    right.device.stream_destroy(device, stream);
}

INSTALL(wrong.device.stream_call = stream_call, wrong.device.stream_wait = stream_wait,
        wrong.device.stream_destroy = stream_destroy)
