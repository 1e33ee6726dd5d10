/* stream.h - in-order queues of work.
 *
 * Stream NULL runs work at once in the calling thread.  A created stream is a thread with a queue.
 * Its first failure stays with it and is what stream_query and later events report. */
#ifndef WEFT_CPU_STREAM_H
#define WEFT_CPU_STREAM_H

#include "cpu.h"

#include <pthread.h>

struct wf_cpu_stream;

/* A failure that outlives the thread it happened in. */
struct wf_cpu_error {
    weft_status status;
    char text[512];
};

/* ---- cpu_stream.c ---- */

weft_status wf_cpu_stream_create(void *device, void **stream);
void wf_cpu_stream_destroy(void *device, void *stream);
weft_status wf_cpu_stream_query(void *device, void *stream);
weft_status wf_cpu_stream_wait(void *device, void *stream, int64_t timeout_ns);
weft_status wf_cpu_stream_call(void *device, void *stream, void (*fn)(void *), void *argument);

/* Work for a stream.  It describes its own failure into ERROR. */
typedef void (*wf_cpu_work)(void *argument, struct wf_cpu_error *error);

/* Run WORK in stream order with a copy of the BYTES at ARGUMENT, or at once with ARGUMENT itself
 * when STREAM is NULL; then the result is WORK's. */
weft_status wf_cpu_stream_run(void *stream, wf_cpu_work work, void *argument, size_t bytes);
/* Describe ERROR to the calling thread and return its status. */
weft_status wf_cpu_error_report(const struct wf_cpu_error *error);
/* The failure so far of the stream whose thread this is, or NULL. */
const struct wf_cpu_error *wf_cpu_stream_error(const struct wf_cpu_stream *stream);
/* The stream whose thread is calling, or NULL. */
struct wf_cpu_stream *wf_cpu_stream_current(void);

/* ---- cpu_event.c ---- */

weft_status wf_cpu_event_create(void *device, void **event);
void wf_cpu_event_destroy(void *device, void *event);
weft_status wf_cpu_event_record(void *device, void *event, void *stream);
weft_status wf_cpu_event_query(void *device, void *event);
weft_status wf_cpu_event_wait(void *device, void *event, int64_t timeout_ns);
weft_status wf_cpu_stream_wait_event(void *device, void *stream, void *event);
weft_status wf_cpu_event_elapsed(void *device, void *from, void *to, int64_t *nanoseconds);

/* Wait on CONDITION until the monotonic time DEADLINE (UINT64_MAX: for ever).  False: it passed. */
bool wf_cpu_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline);
void wf_cpu_condition_create(pthread_cond_t *condition);
/* The monotonic time TIMEOUT_NS from now. */
uint64_t wf_cpu_deadline(int64_t timeout_ns);

#endif
