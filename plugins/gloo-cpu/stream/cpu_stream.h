/* cpu_stream.h - in-order queues of work.
 *
 * Stream NULL runs work at once in the calling thread.  A created stream is a thread with a queue.
 * Its first failure is permanent: stream_query and later events report it.  Neither posting nor
 * running a task takes a lock.  Neither allocates in the steady state, unless several threads post
 * at the same time. */
#ifndef WEFT_CPU_STREAM_H
#define WEFT_CPU_STREAM_H

#include "cpu.h"
#include "cpu_queue.h"

/* An error that outlives the thread in which it occurred. */
struct cpu_error {
    weft_status status;
    char text[512];
};

/* ---- cpu_stream.c ---- */

weft_status cpu_stream_create(void *device, void **stream);
void cpu_stream_destroy(void *device, void *stream);
weft_status cpu_stream_query(void *device, void *stream);
weft_status cpu_stream_wait(void *device, void *stream, int64_t timeout_ns);
weft_status cpu_stream_call(void *device, void *stream, void (*fn)(void *), void *argument);

/* Run WORK in stream order with a copy of the BYTES at ARGUMENT.  If STREAM is NULL, run it at once
 * with ARGUMENT itself and return its result. */
weft_status cpu_stream_run(void *stream, cpu_work work, void *argument, size_t bytes);

/* A caller's array of BYTES that is copied together with the argument. */
struct cpu_lent {
    size_t pointer; /* offset in the argument of the pointer to the array */
    size_t bytes;
};

/* The same for an argument that points to arrays. */
weft_status cpu_stream_run_lent(void *stream, cpu_work work, void *argument, size_t bytes,
                                const struct cpu_lent *lent, size_t lent_count);
/* The same.  The task is counted in *UNDER_WAY until it is done and no longer reads the argument.
 * A task on stream NULL is not counted. */
weft_status cpu_stream_run_counted(void *stream, _Atomic(uint64_t) *under_way, cpu_work work,
                                   void *argument, size_t bytes, const struct cpu_lent *lent,
                                   size_t lent_count);
/* Set ERROR as the calling thread's last error and return its status. */
weft_status cpu_error_report(const struct cpu_error *error);
/* The error of the stream whose thread is calling, or NULL. */
const struct cpu_error *cpu_stream_error(void);

/* ---- cpu_event.c ---- */

weft_status cpu_event_create(void *device, void **event);
void cpu_event_destroy(void *device, void *event);
weft_status cpu_event_record(void *device, void *event, void *stream);
weft_status cpu_event_query(void *device, void *event);
weft_status cpu_event_wait(void *device, void *event, int64_t timeout_ns);
weft_status cpu_stream_wait_event(void *device, void *stream, void *event);
weft_status cpu_event_elapsed(void *device, void *from, void *to, int64_t *nanoseconds);

#endif
