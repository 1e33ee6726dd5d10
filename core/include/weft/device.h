/* device.h - the context's device: its properties, memory, streams and works.
 *
 *     void *memory;
 *     weft_stream *stream;
 *     TRY(weft_alloc(ctx, bytes, WEFT_MEMORY_DEVICE, &memory));
 *     TRY(weft_stream_create(ctx, &stream));
 *     TRY(weft_memory_copy(ctx, host, memory, bytes, stream));
 *     TRY(weft_stream_wait(stream, WEFT_FOREVER));
 *
 * A stream is an in-order queue of work on the device.  A call about one stream takes the stream
 * alone, because the stream knows its context.  A call that posts to a stream, or waits for one
 * that the caller was given, takes an object of a context too: NULL is then the default stream of
 * that context.  On a backend with WEFT_FEATURE_INLINE (gloo-cpu) work on the default stream is
 * complete when the call returns, or the call returns its error.  Streams and works belong to the
 * context that created them.  A call that combines them with an object of another context is
 * refused with WEFT_ERR_INVALID. */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_stream weft_stream;
/* The work that was posted to a stream until a point, to test or to wait for. */
typedef struct weft_work weft_work;

/* Copy the properties of the context's device to *OUT, whose struct_size the caller sets.
 * weft_plugin.h declares the struct.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_device_get(weft_context *context, weft_device_info *out);

/* ---- memory -------------------------------------------------------------------- */

/* Allocate BYTES of memory.  KIND is WEFT_MEMORY_DEVICE, the kind that collectives use directly, or
 * WEFT_MEMORY_PINNED, host memory that the device reads at full speed.  0 bytes give a valid
 * pointer.  The caller frees *OUT with weft_free.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_alloc(weft_context *context, uint64_t bytes,
                                               enum weft_memory_kind kind, void **out);

/* Free POINTER, which weft_alloc or weft_alloc_on returned.  POINTER may be NULL.  All work that
 * uses the memory must be complete.  WEFT_ERR_INVALID: CONTEXT did not allocate POINTER, or the
 * memory contains symmetric memory (symm.h).  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_free(weft_context *context, void *pointer);

/* Allocate BYTES of device memory in the order of STREAM: work that is posted to STREAM after the
 * call may use *OUT at once, and so may work that is ordered after such work.  It is reused between
 * calls without a wait, if the backend can.  0 bytes give a valid pointer.  The caller frees *OUT
 * with weft_free_on, or with weft_free.  WEFT_ERR_UNSUPPORTED: STREAM is being captured into a
 * device graph.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_alloc_on(weft_context *context, uint64_t bytes,
                                                  weft_stream *stream, void **out);
/* Free POINTER, which weft_alloc_on or weft_alloc returned, when the work that is on STREAM now is
 * complete.  Work on other streams that uses the memory must be complete, or STREAM waits for it.
 * The call itself waits only if the backend has no memory in stream order, or if weft_alloc
 * returned POINTER.  POINTER may be NULL.  Errors: as weft_free and weft_alloc_on.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_free_on(weft_context *context, void *pointer,
                                                 weft_stream *stream);

/* Memory of tensors, and of weft_alloc and weft_alloc_on.  Scratch is not included
 * (weft_move_info). */
typedef struct weft_memory_info {
    size_t struct_size;
    size_t pieces;       /* that are not yet freed */
    uint64_t bytes;      /* in these, as the callers asked for them */
    uint64_t bytes_peak; /* the largest value of BYTES since weft_init */
} weft_memory_info;

/* Set *OUT, whose struct_size the caller sets.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_memory_get(weft_context *context, weft_memory_info *out);

/* Copy the properties of the memory at POINTER to *OUT, whose struct_size the caller sets.
 * weft_plugin.h declares the struct.  Memory that the backend does not know has kind
 * WEFT_MEMORY_HOST; POINTER may be NULL.  WEFT_ERR_INVALID: the backend manages the memory at
 * POINTER, and knows that it was freed or was never allocated.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_pointer_get(weft_context *context, const void *pointer,
                                                     weft_pointer_info *out);

/* Copy BYTES from SOURCE to TARGET, in stream order.  Each may be host or device memory. */
WEFT_API WEFT_NODISCARD weft_status weft_memory_copy(weft_context *context, const void *source,
                                                     void *target, uint64_t bytes,
                                                     weft_stream *stream);
/* Set the BYTES bytes at TARGET, host or device memory, to BYTE, in stream order. */
WEFT_API WEFT_NODISCARD weft_status weft_memory_fill(weft_context *context, void *target,
                                                     uint8_t byte, uint64_t bytes,
                                                     weft_stream *stream);

/* ---- streams ------------------------------------------------------------------- */

/* Create a stream on the context's device.  The caller releases *OUT.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_create(weft_context *context, weft_stream **out);

/* Wait for the stream's work, destroy the stream and set *STREAM to NULL.  For a wrapped stream it
 * frees the wrapper: it need not wait, and the vendor's stream is not destroyed.  Accepts NULL and
 * a pointer to NULL. */
WEFT_API void weft_stream_release(weft_stream **stream);

/* Make a weft stream of NATIVE, a stream of the vendor (cudaStream_t, hipStream_t), which stays the
 * caller's and must outlive *OUT.  NATIVE may be NULL: the vendor's default stream.  The caller
 * releases *OUT. One vendor stream may be wrapped several times.  The work of all its wrappers runs
 * in the order of the vendor stream, and a wait for one wrapper waits for all of it.  A test or
 * wait returns the cause of a failed communicator only for work that was posted through the same
 * wrapper. WEFT_ERR_UNSUPPORTED: the backend has no vendor streams. */
WEFT_API WEFT_NODISCARD weft_status weft_stream_wrap(weft_context *context, void *native,
                                                     weft_stream **out);
/* The vendor's stream of STREAM.  NULL if the backend has none, and for NULL: weft's default stream
 * is the vendor's. */
WEFT_API void *weft_stream_native(weft_stream *stream);

/* Test, without waiting, whether all work posted to STREAM is complete.  WEFT_OK: it is.
 * WEFT_IN_PROGRESS: not yet.  Any other status is the error of the work.
 * If a communicator fails, its work on STREAM fails too, unless a test or wait has already reported
 * that work complete.  Tests and waits then return the cause in place of WEFT_OK, until a test or
 * wait has returned it and new work is posted to STREAM afterwards. A call that returns an error
 * leaves no work on STREAM: tests and waits do not repeat that error. With WEFT_FEATURE_INLINE this
 * holds for all work on the default stream, so tests and waits of the default stream return WEFT_OK
 * after a collective on it has failed.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_test(weft_stream *stream);
/* Block the calling thread until all work posted to STREAM is complete, and return what
 * weft_stream_test would return then.  WEFT_ERR_TIMEOUT: TIMEOUT_NS passed first.  The work then
 * continues, no communicator fails, and the caller may wait again.  If TIMEOUT_NS is a second or
 * more, weft logs which operation each rank has reached, for up to four communicators that have
 * unfinished operations.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_wait(weft_stream *stream, int64_t timeout_ns);
/* The same for a stream of CONTEXT that may be the default stream, NULL.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_context_wait(weft_context *context, weft_stream *stream,
                                                      int64_t timeout_ns);

/* ---- works --------------------------------------------------------------------- */

/* Record the work posted to STREAM so far.  The caller releases *OUT, before or after the work is
 * complete.  Allocation-free in the steady state: up to 32 released handles are reused.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_work_record(weft_context *context, weft_stream *stream,
                                                     weft_work **out);
/* As weft_stream_test, for the recorded work only.  WEFT_OK: it is complete.  WEFT_IN_PROGRESS: not
 * yet.  An error of the work is permanent: every later test and wait of WORK returns it. */
WEFT_API WEFT_NODISCARD weft_status weft_work_test(weft_work *work);
/* As weft_stream_wait, for the recorded work only.  Errors: as weft_work_test. */
WEFT_API WEFT_NODISCARD weft_status weft_work_wait(weft_work *work, int64_t timeout_ns);

/* Make STREAM wait for WORK: work that is posted to STREAM later does not start before WORK is
 * complete.  The host does not wait.  The caller may release WORK after the call.  STREAM may be
 * NULL: the default stream. */
WEFT_API WEFT_NODISCARD weft_status weft_stream_wait_work(weft_stream *stream, weft_work *work);

/* Set *NANOSECONDS to the device time from FROM to TO, in nanoseconds.  Both must be complete.
 * WEFT_ERR_UNSUPPORTED: the backend does not measure time. */
WEFT_API WEFT_NODISCARD weft_status weft_work_elapsed(weft_work *from, weft_work *to,
                                                      int64_t *nanoseconds);
/* Release the handle and set *WORK to NULL; the work itself continues.  Accepts NULL and a pointer
 * to NULL. */
WEFT_API void weft_work_release(weft_work **work);

/* Make a work of NATIVE, an event of the vendor (cudaEvent_t, hipEvent_t) that the caller has
 * recorded.  The event stays the caller's and must outlive *OUT.  The caller releases *OUT.
 * WEFT_ERR_UNSUPPORTED: the backend has no vendor events. */
WEFT_API WEFT_NODISCARD weft_status weft_work_wrap(weft_context *context, void *native,
                                                   weft_work **out);
/* The vendor's event of WORK; NULL if the backend has no vendor events, and for NULL.  Do not use
 * it after WORK is released, because weft reuses the event for other work.  An event of
 * weft_work_wrap stays the caller's. */
WEFT_API void *weft_work_native(weft_work *work);

#ifdef __cplusplus
}
#endif
#endif
