/* ema.h - running averages of a model's parameters, by a library on top of weft.
 *
 *     ema *averages;
 *     TRY(ema_create(ctx, count, parameters, NULL, NULL, &averages));
 *     for (...) {
 *         TRY(train(parameters));
 *         TRY(ema_update(averages, NULL));
 *     }
 *     TRY(ema_copy(averages, evaluated, NULL));
 *     ema_release(&averages);
 *
 * A model whose parameters are averages over the last steps of its training often predicts better
 * than the one of the last step.  With each update an average goes a part of the way to its
 * parameter, 1 - decay.  Averages are f32, and have the layouts of the parameters.
 *
 * The functions follow the conventions of weft/context.h.  Work is posted to STREAM; calls with
 * different streams are ordered by the caller.  One thread at a time may use an object. */
#ifndef EMA_H
#define EMA_H

#include <weft/tensor.h>

typedef struct ema ema;

typedef struct ema_options {
    size_t struct_size;
    double decay; /* above 0 and below 1; 0: 0.999 */
} ema_options;

/* Create averages of COUNT tensors of CONTEXT, which are retained, and set them to the parameters.
 * OPTIONS may be NULL.  The caller releases *OUT, before or after CONTEXT.  Collective over the
 * ranks of the job.  WEFT_ERR_MISMATCH: ranks pass other layouts or another decay.
 * WEFT_ERR_UNSUPPORTED: the backend has no kernels that scale and add. */
WEFT_NODISCARD weft_status ema_create(weft_context *context, size_t count,
                                      weft_tensor *const *parameters, const ema_options *options,
                                      weft_stream *stream, ema **out);
/* The newest averages of CONTEXT; NULL: there are none, or all were released.  Borrowed. */
ema *ema_find(weft_context *context);
/* Accepts NULL and a pointer to NULL.  Waits for a save.  Snapshots are released before. */
void ema_release(ema **averages);

/* Post an update of all averages.  With WEFT_CHECK=1 it is collective, and WEFT_ERR_MISMATCH if
 * ranks have made different numbers of updates. */
WEFT_NODISCARD weft_status ema_update(ema *averages, weft_stream *stream);

/* Average INDEX, f32; borrowed.  Calls with it are refused while the averages rest.  NULL: there is
 * no such average. */
weft_tensor *ema_average(ema *averages, size_t index);
/* Let the averages rest in host memory.  The next call that needs them gives them device memory. */
WEFT_NODISCARD weft_status ema_rest(ema *averages, weft_stream *stream);

/* Post a copy of average INDEX in the dtype and layout of its parameter.  Later updates do not
 * change it.  The caller releases *OUT; its memory is used for later snapshots. */
WEFT_NODISCARD weft_status ema_snapshot(ema *averages, size_t index, weft_stream *stream,
                                        weft_tensor **out);
/* Post moves of all averages to TARGETS, of any layout and float dtype.  Collective over the ranks
 * of the job.  [TARGETS: one per average] */
WEFT_NODISCARD weft_status ema_copy(ema *averages, weft_tensor *const *targets,
                                    weft_stream *stream);
/* Set the parameters to the averages, in the order of STREAM.  WEFT_ERR_INVALID: a parameter is
 * read-only, and nothing has changed. */
WEFT_NODISCARD weft_status ema_restore(ema *averages, weft_stream *stream);

/* Writes the COUNT elements of this rank's shard of an average. */
typedef weft_status (*ema_writer)(void *user, const char *name, const float *elements,
                                  uint64_t count);

/* Copy the averages as they are now, and pass each of them to WRITER on another thread.  Collective
 * over the ranks of the job.  The call waits for STREAM, and for a save before. */
WEFT_NODISCARD weft_status ema_save(ema *averages, ema_writer writer, void *user,
                                    weft_stream *stream);
/* Wait until the writers of all ranks have returned.  If that of one rank fails, all ranks get its
 * error. */
WEFT_NODISCARD weft_status ema_save_wait(ema *averages);

#endif
