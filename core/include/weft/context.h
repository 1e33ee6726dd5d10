/* context.h - one rank's place in the job: who it is, which backend serves it, its memory and
 * its streams.
 *
 *     weft_context *ctx;
 *     if (weft_init(NULL, &ctx) != WEFT_OK) fail(weft_last_error());
 *     weft_all_reduce(weft_world(ctx), in, out, n, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, NULL);
 *     weft_context_release(&ctx);
 *
 * Pointers and counts are checked at this border.  Time limits are in nanoseconds; WEFT_FOREVER
 * never ends, 0 asks once.  Without a word about threads, a function may be called by one thread
 * at a time per object; a context and its communicators are different objects.
 *
 * What depends on a released object (a communicator on its context, a bound plan on its
 * communicator) refuses every call with WEFT_ERR_INVALID, until it is released itself.  So does
 * everything in a child of fork(): contexts and what is made from them are the parent's, and a
 * release there does nothing.  weft_init is refused in a child whose parent has called it, even if
 * the parent has released its context.  A process may fork before weft_init, and start other
 * programs at any time. */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include "cost.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_context weft_context;
typedef struct weft_comm weft_comm;
typedef struct weft_threads weft_threads;
typedef struct weft_work weft_work;

/* An in-order queue of the backend.  NULL is the default stream, valid wherever one is taken; on
 * a CPU backend work on it is done on return. */
typedef struct weft_stream weft_stream;

/* ---- starting ---------------------------------------------------------------- */

/* struct_size is sizeof(weft_options); elsewhere zero means default. */
typedef struct weft_options {
    size_t struct_size;
    const char *backend;     /* NULL: WEFT_BACKEND */
    const char *plugin_path; /* NULL: WEFT_PLUGIN_PATH */
    const int32_t *device;   /* NULL: chosen by local rank */
    int64_t timeout_ns;      /* of every wait on a communicator; 0: WEFT_TIMEOUT */
    int64_t join_timeout_ns; /* for all ranks to come together; 0: WEFT_JOIN_TIMEOUT */

    /* Who this rank is.  SIZE 0: the launcher's variables say (docs/launch.md), and without a
     * launcher it is a world of one.  Otherwise RANK of SIZE, and one of: */
    int32_t rank, size;
    const weft_exchange *exchange; /* collective over all ranks; used during weft_init only */
    weft_threads *threads;         /* ranks are threads of this process; SIZE may be left 0 */
    const char *rendezvous;        /* "host:port" that rank 0 serves; with TOKEN */
    const char *token;             /* the job's secret, at least 16 characters; NULL: WEFT_TOKEN */

    /* Further bytes that must be equal on all ranks (a cost table's digest).  Borrowed. */
    const void *digest;
    size_t digest_bytes;
} weft_options;

/* Join the job: choose the backend, meet the other ranks, compare choices, make the world
 * communicator.  Collective: every rank of the job calls it, once per job.  OPTIONS may be NULL.
 * The caller releases *OUT.
 * WEFT_ERR_TIMEOUT lists the ranks that never came, WEFT_ERR_MISMATCH who differs in what,
 * WEFT_ERR_NO_BACKEND every candidate's reason.  A failure on one rank is the same error on all.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_init(const weft_options *options, weft_context **out);

/* Leave the job.  Communicators, bound plans, streams, works and memory of the context should be
 * gone already: a warning tells of those that are not, with their number and what gave out the
 * works.  What they had of the backend is given back now, work on forgotten streams is ended, and
 * they answer WEFT_ERR_INVALID from then on.
 * The other ranks are told, so that they do not take it for a failure; it does not wait for
 * them. */
WEFT_API void weft_context_release(weft_context **context);

WEFT_API int32_t weft_rank(const weft_context *context);       /* [any thread] */
WEFT_API int32_t weft_size(const weft_context *context);       /* [any thread] */
WEFT_API int32_t weft_local_rank(const weft_context *context); /* on this host [any thread] */
WEFT_API int32_t weft_local_size(const weft_context *context); /* on this host [any thread] */

/* The communicator of all ranks.  Borrowed: the context's own. [any thread] */
WEFT_API weft_comm *weft_world(weft_context *context);

/* The serving plugin and its device.  Borrowed. [any thread] */
WEFT_API const weft_plugin *weft_context_plugin(const weft_context *context);
WEFT_API WEFT_NODISCARD weft_status weft_device_get(weft_context *context, weft_device_info *out);

/* What steps cost on this job, for weft_plan_options.costs: the table that WEFT_COSTS names, a file
 * of `weft bench calibrate` or a built-in one; else what rank 0's plugin says of its collectives.
 * The same on all ranks.  Borrowed. [any thread] */
WEFT_API const weft_cost_table *weft_context_costs(const weft_context *context);

/* The table that NAME means: a built-in one (cost.h), or else the file of that path.  NULL: the
 * table that WEFT_COSTS names, or "default".  Needs no context.  The caller releases *OUT.
 * WEFT_ERR_NOT_FOUND: NAME is neither; WEFT_ERR_INVALID: the file is not a regular one;
 * WEFT_ERR_PARSE: the file is not a cost table.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_cost_table_open(const char *name, weft_cost_table **out);

/* The plugin's handle of the context's device, for calls into the tables of weft_context_plugin.
 * Borrowed; NULL for NULL. [any thread] */
WEFT_API void *weft_context_device(const weft_context *context);

/* Let the calling thread use the context's device.  weft_init does so for its own thread; every
 * further thread that works with the context calls it once.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_context_bind_thread(weft_context *context);

/* ---- ranks as threads of one process ----------------------------------------- */

/* Run RANK_MAIN as SIZE ranks, each on a thread of its own.  Inside it, weft_init(NULL, ...) joins
 * this world, whatever the launcher's variables say.  Returns when all have returned: OK, or the
 * status of the rank that failed first, with its number and text in weft_last_error.  A failing
 * rank ends the communicators it is in, so that the others do not wait for it. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_threads_run(int32_t size, weft_status (*rank_main)(void *),
                                                     void *argument);

/* The same for threads of the caller's making: each calls weft_init with `threads` and `rank`.
 * The meeting point must outlive the contexts made from it. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_threads_create(int32_t size, weft_threads **out);
WEFT_API void weft_threads_release(weft_threads **threads);

/* ---- memory ------------------------------------------------------------------ */

/* Memory of the backend; KIND is WEFT_MEMORY_DEVICE, which collectives like best, or
 * WEFT_MEMORY_PINNED.  Zero bytes give a valid pointer.  Freed with weft_free. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_alloc(weft_context *context, uint64_t bytes, uint32_t kind,
                                               void **out);
/* Accepts NULL.  Work on the memory must be done.  WEFT_ERR_INVALID for what is, or has in it,
 * symmetric memory (symm.h). [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_free(weft_context *context, void *pointer);

/* What kind of memory POINTER is.  Unknown memory is WEFT_MEMORY_HOST. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_pointer_get(weft_context *context, const void *pointer,
                                                     weft_pointer_info *out);

/* In stream order; either side may be host or device memory. */
WEFT_API WEFT_NODISCARD weft_status weft_memory_copy(weft_context *context, const void *source,
                                                     void *target, uint64_t bytes,
                                                     weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_memory_fill(weft_context *context, void *target,
                                                     uint8_t byte, uint64_t bytes,
                                                     weft_stream *stream);

/* ---- streams and works ------------------------------------------------------- */

/* Every call that takes a stream or a work together with an object of another context returns
 * WEFT_ERR_INVALID and changes nothing. */

/* The caller releases *OUT. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_create(weft_context *context, weft_stream **out);
/* Waits for the stream's work.  CONTEXT may be NULL if it was released before.  A stream of another
 * context is left as it is, with a warning. */
WEFT_API void weft_stream_release(weft_context *context, weft_stream **stream);

/* A stream of the vendor (cudaStream_t, hipStream_t) as weft's; still the caller's, never
 * released.  WEFT_ERR_UNSUPPORTED where the backend has none. */
WEFT_API WEFT_NODISCARD weft_status weft_stream_wrap(weft_context *context, void *native,
                                                     weft_stream **out);
/* The vendor's stream behind STREAM, or NULL. */
WEFT_API void *weft_stream_native(weft_context *context, weft_stream *stream);

/* OK when all is done, IN_PROGRESS when not, else its error.  Work whose communicator failed before
 * a wait or test had found it done was not done: its error is the communicator's, again and again
 * until something new is put on the stream.  A stream wrapped twice is two streams here.  A time
 * limit that passes is WEFT_ERR_TIMEOUT, and logs every rank's position. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_test(weft_context *context, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_stream_wait(weft_context *context, weft_stream *stream,
                                                     int64_t timeout_ns);

/* A handle on everything put on STREAM so far.  Costs no allocation once as many works exist as
 * are in use at a time (up to 32).  The caller releases *OUT, before or after it is done.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_work_record(weft_context *context, weft_stream *stream,
                                                     weft_work **out);
/* As weft_stream_test and weft_stream_wait, of what was recorded; an error stays. */
WEFT_API WEFT_NODISCARD weft_status weft_work_test(weft_work *work);
WEFT_API WEFT_NODISCARD weft_status weft_work_wait(weft_work *work, int64_t timeout_ns);
/* Later work on STREAM starts only after WORK; the host does not wait. */
WEFT_API WEFT_NODISCARD weft_status weft_stream_wait_work(weft_stream *stream, weft_work *work);
/* The device's time between two works that are done.  WEFT_ERR_UNSUPPORTED without timings. */
WEFT_API WEFT_NODISCARD weft_status weft_work_elapsed(weft_work *from, weft_work *to,
                                                      int64_t *nanoseconds);
WEFT_API void weft_work_release(weft_work **work);

/* An event of the vendor (cudaEvent_t, hipEvent_t), recorded by the caller, as a work; the event is
 * still the caller's, and outlives the work.  WEFT_ERR_UNSUPPORTED where the backend has none. */
WEFT_API WEFT_NODISCARD weft_status weft_work_wrap(weft_context *context, void *native,
                                                   weft_work **out);
/* The vendor's event behind WORK, or NULL.  It is recorded anew once the work is released. */
WEFT_API void *weft_work_native(weft_work *work);

#ifdef __cplusplus
}
#endif
#endif
