/* extend.h - for libraries on top of weft whose calls are collective.
 *
 *     struct cache { weft_object object; ... };
 *
 *     weft_object_begin(&cache->object, "my_cache");
 *     ...
 *     TRY(weft_object_check(&cache->object, "my_cache", "my_cache_fill", "cache"));
 *     weft_record_begin(world, WEFT_RECORD_LOAD, "my_cache_fill", &record);
 *     status = fill(cache);
 *     status = weft_agree(world, "my_cache_fill", status, &digest, sizeof digest, NULL, &answers);
 *     ...
 *     weft_answers_release(&answers);
 *     return weft_record_end(&record, status);
 *
 * Errors of such a library go through weft_fail (status.h), so that weft_last_error has them.  This
 * header is for libraries in C: the bindings for C++ and Python do not have it. */
#ifndef WEFT_EXTEND_H
#define WEFT_EXTEND_H

#include "log.h"
#include "tensor.h"
#include "trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- log lines ---- */

/* Log a line of LEVEL as weft logs its own.  [any thread] */
WEFT_API void weft_log(enum weft_log_level level, const char *format, ...) WEFT_PRINTF(2, 3);

/* ---- errors ---- */

/* Replace the text of this thread's last error and return STATUS.  The name and the code of the
 * vendor library (weft_last_error_vendor) stay.  So a library says where an error of weft happened:
 *
 *     return weft_fail_reword(status, "my_cache_fill: %s", weft_last_error());
 *
 * FORMAT may be NULL: the text stays, too.  [any thread] */
WEFT_API weft_status weft_fail_reword(weft_status status, const char *format, ...)
    WEFT_PRINTF(2, 3);
/* The number of error texts that the calling thread has set.  It tells whether a function of the
 * program that failed has set one.  [any thread] */
WEFT_API uint64_t weft_failure_count(void);

/* ---- objects ---- */

/* The first member of an object of a library.  It has the kind of the object and the process that
 * made it.  A call that checks it refuses a pointer to something else, an object that was released,
 * and the use of an object in a fork of the process. */
typedef struct weft_object {
    uint64_t mark;
} weft_object;

/* OBJECT is a TYPE, such as "my_cache", that this process has made.  [any thread] */
WEFT_API void weft_object_begin(weft_object *object, const char *type);
/* FUNCTION is about to free OBJECT, a TYPE.  False if OBJECT is not a TYPE that can be used: then
 * the caller leaves it alone.  That is a warning in the log, except in a fork of the process that
 * made OBJECT.  [any thread] */
WEFT_API bool weft_object_end(weft_object *object, const char *type, const char *function);
/* Check that OBJECT is a TYPE that can be used.  It begins with a weft_object, or is one of weft's
 * own: a weft_context, weft_comm, weft_tensor and so on.  WEFT_ERR_INVALID: OBJECT is NULL, is not
 * a TYPE, has ended, or belongs to a parent process.  WEFT_ERR_UNSUPPORTED: OBJECT is the
 * communicator of simulated ranks.  The error text begins with FUNCTION and names ARGUMENT.  [any
 * thread] */
WEFT_API WEFT_NODISCARD weft_status weft_object_check(const void *object, const char *type,
                                                      const char *function, const char *argument);
/* Check that STREAM is NULL, the default stream, or a stream of CONTEXT.  WEFT_ERR_INVALID: it is
 * not, or was released; or CONTEXT cannot be used.  The error text begins with FUNCTION.  [any
 * thread] */
WEFT_API WEFT_NODISCARD weft_status weft_stream_check(weft_context *context,
                                                      const weft_stream *stream,
                                                      const char *function);

/* ---- objects that depend on a communicator ---- */

/* The tie of an object of a library to a communicator, which may end before the object is
 * released. */
typedef struct weft_dependent weft_dependent;

/* Called then.  Each may be NULL. */
typedef struct weft_dependent_calls {
    size_t struct_size;
    /* The rank is about to leave the job.  It can still agree with the other ranks (weft_agree):
     * end threads that do. */
    void (*leave)(void *user);
    /* The communicator ends because of CAUSE, such as "the context was released", and can be used
     * until the call returns: free what belongs to its context, and let later calls of the object
     * fail. */
    void (*end)(void *user, const char *cause);
} weft_dependent_calls;

/* Call CALLS with USER before COMM ends.  CALLS is borrowed as long as *OUT.  COMM may be that of
 * simulated ranks.  The caller releases *OUT when the object is released, before or after COMM
 * ends. Dependents of one communicator end in reverse order. */
WEFT_API WEFT_NODISCARD weft_status weft_dependent_create(weft_comm *comm,
                                                          const weft_dependent_calls *calls,
                                                          void *user, weft_dependent **out);
/* The USER of the newest dependent of COMM that was created with CALLS, the same address.  So a
 * library finds what it keeps for a job.  NULL: COMM has no such dependent.  [any thread] */
WEFT_API void *weft_dependent_find(weft_comm *comm, const weft_dependent_calls *calls);
/* Neither `leave` nor `end` is called from now on.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_dependent_release(weft_dependent **dependent);

/* ---- agreement ---- */

/* What the ranks of a communicator passed to one weft_agree. */
typedef struct weft_answers weft_answers;

typedef struct weft_agree_options {
    size_t struct_size;
    /* Answers that all ranks of the communicator got from one weft_agree.  Steps after the same
     * answers meet each other only, so the library's threads of several ranks can agree while
     * the program uses the communicator.  A rank that makes progress (weft_agree_progress) may need
     * longer than the time limit.  NULL: a step of the communicator. */
    weft_answers *after;
    /* Only the ranks of this mesh, which are ranks of the communicator, take the step.  Another
     * rank returns STATUS at once, and gets NULL.  Answers are by position in the mesh, and cannot
     * be `after` of another step.  NULL: all ranks of the communicator. */
    const weft_mesh *mesh;
} weft_agree_options;

/* Take a step together with all ranks of COMM.  STATUS says how the work before it went on this
 * rank.  If it is WEFT_OK on all ranks, *OUT has the BYTES bytes DATA of each of them.  Otherwise
 * all ranks get the error of the first rank that failed, with that rank's error text, and *OUT is
 * not set.  FUNCTION names the step in error texts, and is the same on all ranks.  OPTIONS may be
 * NULL.  The caller releases *OUT.  Waits at most for the time limit of COMM: then COMM fails on
 * all ranks with WEFT_ERR_TIMEOUT.  Other errors: as collectives of COMM.  It goes over the
 * rendezvous and takes tens of microseconds, so it is for decisions and not for data.  DATA may be
 * NULL if BYTES is 0. */
WEFT_API WEFT_NODISCARD weft_status weft_agree(weft_comm *comm, const char *function,
                                               weft_status status, const void *data, size_t bytes,
                                               const weft_agree_options *options,
                                               weft_answers **out);
/* This rank makes progress towards the next step of FUNCTION after ANSWERS: the other ranks
 * continue to wait.  It sends at most a few messages within the time limit, however often it is
 * called.  Does not wait.  [any thread] */
WEFT_API void weft_agree_progress(weft_answers *answers, const char *function);

/* The data of RANK of the communicator, borrowed, and its size in bytes.  NULL and 0: no such
 * rank. */
WEFT_API const void *weft_answers_data(const weft_answers *answers, int32_t rank);
WEFT_API size_t weft_answers_bytes(const weft_answers *answers, int32_t rank);
/* Free ANSWERS and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_answers_release(weft_answers **answers);

/* ---- failure of one rank ---- */

/* FUNCTION, which all ranks of COMM call, has failed on this rank with STATUS and the thread's last
 * error, and the other ranks may wait for this one: COMM fails on all ranks.  Here the cause is
 * STATUS.  On the other ranks it is WEFT_ERR_ABORTED, or WEFT_ERR_MISMATCH if STATUS is that.  The
 * text has FUNCTION, this rank and the error.  Returns the cause.  If COMM has one rank,
 * is that of simulated ranks or has failed before, or if STATUS is WEFT_OK, nothing happens, and
 * STATUS is returned.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_fail(weft_comm *comm, const char *function,
                                                   weft_status status);

/* ---- the context ---- */

/* Whether WEFT_CHECK asks for checks that take time.  False for NULL.  [any thread] */
WEFT_API bool weft_context_checks(const weft_context *context);

/* FUNCTION is about to move tensors of CONTEXT, together with other ranks or other calls, and
 * weft_moves_leave follows.  Until then no other thread moves tensors of CONTEXT (move.h).  The
 * calling thread may move tensors, and may enter again.  WEFT_ERR_INVALID: another thread is moving
 * tensors, or this one makes a move just now. */
WEFT_API WEFT_NODISCARD weft_status weft_moves_enter(weft_context *context, const char *function);
/* The end of weft_moves_enter.  Returns STATUS.  WEFT_ERR_INVALID: it was not called. */
WEFT_API weft_status weft_moves_leave(weft_context *context, weft_status status);

/* ---- kernels ---- */

/* The kernels that weft uses for CONTEXT, and in *DEVICE what they take as their device: the
 * plugin's or, if it has no kernel table, weft's own, which copy regions, cast and fill on the host
 * and have no other entries.  weft_plugin.h describes them; a weft_stream is their stream.  An
 * entry may be NULL, and one that is there may be WEFT_ERR_UNSUPPORTED for some dtypes.  Borrowed.
 * NULL for NULL, and *DEVICE is not set.  [any thread] */
WEFT_API const weft_kernel_table *weft_context_kernels(weft_context *context, void **device);

/* Set the COUNT elements of dtype TO at TARGET to those of dtype FROM at SOURCE, in the order of
 * STREAM, as a move between these dtypes casts (docs/dtypes.md).  The memory is the device's and
 * does not overlap.  A backend without a kernel for it casts on the host, and the call waits for
 * STREAM. WEFT_ERR_UNSUPPORTED: weft does not offer the cast. */
WEFT_API WEFT_NODISCARD weft_status weft_memory_cast(weft_context *context, enum weft_dtype from,
                                                     enum weft_dtype to, uint64_t count,
                                                     const void *source, void *target,
                                                     weft_stream *stream);

/* ---- tensors whose memory comes and goes ---- */

/* Create a tensor of layout SPEC that has no memory yet.  Every call with it but
 * weft_tensor_occupy, weft_tensor_vacate, weft_tensor_bytes, weft_tensor_spec, retain and release
 * is refused, and the error text has REASON.  NAME may be NULL.  The caller releases *OUT.  Errors:
 * as weft_tensor_create. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_create_vacant(weft_context *context,
                                                              const weft_spec *spec,
                                                              const char *name, const char *reason,
                                                              weft_tensor **out);
/* Bytes of memory for the shards of TENSOR here, without gaps: this rank's shard or, with simulated
 * ranks, the shards of all ranks, each from a multiple of 64 bytes on.  0 for NULL; UINT64_MAX: no
 * memory is large enough. */
WEFT_API uint64_t weft_tensor_bytes(const weft_tensor *tensor);
/* TENSOR, which is vacant, has its elements in MEMORY from now on: weft_tensor_bytes bytes of
 * device memory, aligned to 64 bytes, which stay the caller's.  Work on STREAM uses them first.
 * WEFT_ERR_INVALID: TENSOR has memory, or its context was released. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_occupy(weft_tensor *tensor, void *memory,
                                                       weft_stream *stream);
/* TENSOR, which weft_tensor_create_vacant has created, has no memory from now on.  It refuses calls
 * because of REASON, and its views refuse calls, too.  The caller frees the memory after the work
 * that uses it.  Accepts NULL, and a tensor whose context was released. */
WEFT_API void weft_tensor_vacate(weft_tensor *tensor, const char *reason);

/* ---- tensors that are used again ---- */

/* Called with USER when the last reference to TENSOR is dropped, by the thread that drops it.
 * True: the callee keeps TENSOR with its memory; calls with it are refused until weft_tensor_reuse.
 * False: it is freed. */
typedef bool (*weft_tensor_keeper)(void *user, weft_tensor *tensor);

/* Set the KEEPER of TENSOR, of weft_tensor_create.  KEEPER may be NULL: none.  It is not called if
 * the stream of the last work (weft_tensor_stream) was released, if weft keeps more than the memory
 * of the tensor for it, or if the context ends first. */
WEFT_API void weft_tensor_set_keeper(weft_tensor *tensor, weft_tensor_keeper keeper, void *user);
/* The keeper of TENSOR has kept it: the caller gets a reference, and TENSOR can be used again.  Its
 * elements are not set. */
WEFT_API void weft_tensor_reuse(weft_tensor *tensor);
/* The stream of the last work that uses TENSOR, in whose order its memory is freed; NULL is the
 * default stream.  NULL for NULL. */
WEFT_API weft_stream *weft_tensor_stream(const weft_tensor *tensor);

/* ---- tensors that kernels use ---- */

/* Set SPECS[i] to the layout of TENSORS[i], borrowed; NULL where that is NULL.  WEFT_ERR_INVALID: a
 * tensor cannot be used, or belongs to another context than CONTEXT.  The error text begins with
 * FUNCTION and names ARGUMENT[i].  [TENSORS, SPECS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_tensors_check(weft_context *context, size_t count,
                                                       weft_tensor *const *tensors,
                                                       const char *function, const char *argument,
                                                       const weft_spec **specs);
/* Work on STREAM is about to use the shards of rank RANK of COUNT tensors of CONTEXT, and writes
 * those from number WRITTEN on: set LOCALS[i] to that of TENSORS[i], with fields that are 0 where
 * that is NULL.  LOCAL_SIZE is sizeof(weft_tensor_local).  It counts as weft_tensor_use.
 * WEFT_ERR_INVALID: a tensor or STREAM cannot be used, or a tensor belongs to another context.
 * Other errors: as weft_tensor_local_of.  [TENSORS, LOCALS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_tensors_lend(weft_context *context, int32_t rank,
                                                      size_t count, weft_tensor *const *tensors,
                                                      size_t written, weft_stream *stream,
                                                      weft_tensor_local *locals, size_t local_size);

/* ---- tensors with gaps ---- */

/* Set *OUT to the elements of rank RANK's shard of TENSOR, row-major without gaps: the memory of
 * the shard or, if that has gaps, a copy, which is posted to STREAM.  TENSOR keeps the memory of
 * the copy for later calls.  The copy is valid until the next call with TENSOR.  Errors: as
 * weft_tensor_local_of, and WEFT_ERR_NO_MEMORY. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_pack(weft_tensor *tensor, int32_t rank,
                                                     weft_stream *stream, void **out);
/* Post to STREAM: the shard of rank RANK gets the elements of the copy that weft_tensor_pack has
 * made, which work on STREAM has changed.  Without gaps there is nothing to do.  WEFT_ERR_INVALID:
 * TENSOR is read-only, or has gaps and was not packed. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_unpack(weft_tensor *tensor, int32_t rank,
                                                       weft_stream *stream);

/* ---- records; a preview, as trace.h ---- */

/* A record that has begun.  It is a value: nothing is released. */
typedef struct weft_open_record {
    void *record;      /* NULL: records are not wanted */
    uint64_t id;       /* of the record */
    uint64_t sequence; /* which of the calls of `comm` that all its ranks make it is */
    weft_comm *comm;   /* NULL: the arguments were refused, and nothing is recorded */
    enum weft_record_operation operation;
} weft_open_record;

/* All ranks of COMM begin FUNCTION, an OPERATION such as WEFT_RECORD_LOAD, in the same order as
 * other calls on COMM.  *OUT is in traces, in the recorder and in `weft status` until it ends:
 * ranks that are late are found by it. */
WEFT_API WEFT_PREVIEW void weft_record_begin(weft_comm *comm, enum weft_record_operation operation,
                                             const char *function, weft_open_record *out);
/* FUNCTION continues the call that BEGUN recorded, which has returned: it does the call's work in
 * the background, or waits for that work.  *OUT is its record; end it on the same thread.
 * [any thread] */
WEFT_API WEFT_PREVIEW void weft_record_continue(const weft_open_record *begun, const char *function,
                                                weft_open_record *out);
/* This rank reads or writes BYTES bytes in the call.  [any thread] */
WEFT_API WEFT_PREVIEW void weft_record_set_bytes(const weft_open_record *record, uint64_t bytes);
/* The call ends with STATUS, which is returned.  If it is an error, the thread's last error is its
 * text.  RECORD may be NULL.  [any thread] */
WEFT_API WEFT_PREVIEW weft_status weft_record_end(const weft_open_record *record,
                                                  weft_status status);

#ifdef __cplusplus
}
#endif
#endif
