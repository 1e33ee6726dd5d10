/* stream.h - in-order queues of work.
 *
 * Stream NULL runs work at once in the calling thread.  A created stream is a thread with a queue.
 * Its first failure stays with it and is what stream_query and later events report.  Threads that
 * give work, and the one that does it, take no lock, and in the steady state no memory, unless
 * several give at the same moment. */
#ifndef WEFT_CPU_STREAM_H
#define WEFT_CPU_STREAM_H

#include "cpu.h"
#include "cpu_queue.h"

/* A failure that outlives the thread it happened in. */
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

/* Run WORK in stream order with a copy of the BYTES at ARGUMENT, or at once with ARGUMENT itself
 * when STREAM is NULL; then the result is WORK's. */
weft_status cpu_stream_run(void *stream, cpu_work work, void *argument, size_t bytes);

/* An array that is the caller's: BYTES of it are copied along with the argument. */
struct cpu_lent {
    size_t pointer; /* offset of the pointer to it in the argument */
    size_t bytes;
};

/* The same for an argument that points to arrays. */
weft_status cpu_stream_run_lent(void *stream, cpu_work work, void *argument, size_t bytes,
                                const struct cpu_lent *lent, size_t lent_count);
/* The same, counted in *UNDER_WAY until it is done and looks at nothing any more; where STREAM is
 * NULL it is not. */
weft_status cpu_stream_run_counted(void *stream, _Atomic(uint64_t) *under_way, cpu_work work,
                                   void *argument, size_t bytes, const struct cpu_lent *lent,
                                   size_t lent_count);
/* Describe ERROR to the calling thread and return its status. */
weft_status cpu_error_report(const struct cpu_error *error);
/* The failure so far of the stream whose thread is calling, or NULL. */
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
