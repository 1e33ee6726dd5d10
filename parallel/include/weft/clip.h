/* clip.h - gradients clipped by their norm, or by value.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     double *total;  (device memory)
 *     TRY(weft_clip_gradient_norm(ctx, count, gradients, 1.0, NULL, total, stream, NULL));
 *
 * Gradients are tensors of floats, on any meshes and in any layouts.  Each element of the whole
 * tensors counts once, however many ranks hold it.  Threads as in tensor.h.
 *
 * Gradients are in memory of their own.  Two shards on a rank that overlap are WEFT_ERR_INVALID on
 * this rank, before anything is posted.  Of a strided shard only the first element is checked for
 * overlap, because other gradients may be in its gaps. */
#ifndef WEFT_CLIP_H
#define WEFT_CLIP_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_clip_options {
    size_t struct_size;
    double p; /* of the norm, above 0; INFINITY: the largest absolute value; 0: 2 */
    /* enum weft_nonfinite: the treatment of gradients whose norm is infinite or not a number. SCALE
     * scales them as always, so they become 0 or NaN. */
    uint32_t nonfinite;
    /* Such a norm is an error: the gradients stay as they are, the call waits for the stream, and
     * returns WEFT_ERR_INVALID, alike on all ranks.  `nonfinite` is not used then. */
    bool nonfinite_is_error;
    /* Reduce partial gradients (sum, avg) for the norm, to memory of the call.  They stay partial,
     * and each contribution is scaled.  Otherwise they are WEFT_ERR_INVALID. */
    bool reduce_partials;
    /* Ranks that hold other gradients of the same model, such as pipeline stages: their norms are
     * combined over this communicator.  Each of its ranks has another part of the model.  All its
     * ranks make the call.  NULL: none. */
    weft_comm *stages;
} weft_clip_options;

/* Multiply the COUNT gradients TENSORS by max_norm / (norm + 1e-6) if that is below 1.  The norm is
 * taken over all their elements together.  Powers are added up in f64; a sum beyond its range makes
 * the norm infinite.  With p INFINITY, NaN counts as infinite.  NULL tensors are skipped; without
 * any the norm is 0.  Collective over the ranks of all meshes: one small all-reduce for each set of
 * axes that splits a gradient, all in one batch.  All ranks of all meshes pass the same tensors in
 * the same order.  The same entries are NULL on all of them.  All work is in the order of STREAM.
 * The first call with new layouts waits for the other ranks.  With `reduce_partials`, each call
 * waits for them.  With `nonfinite_is_error`, the call waits for STREAM.  If a device does the
 * work, a call with new sizes may free the list of earlier sizes (docs/training/clip.md), which
 * waits for the device.  Otherwise nothing waits. TOTAL, device memory of one double, is set to the
 * norm before clipping.  TOTAL may be NULL.  On a rank outside all meshes it is 0, unless `stages`
 * adds other norms.  OPTIONS may be NULL. Unless WORK is NULL, *WORK records the work; the caller
 * releases it. WEFT_ERR_INVALID: a tensor is not of floats, is partial, is listed twice, or belongs
 * to another context; max_norm is negative or not a number; p is not above 0. */
WEFT_API WEFT_NODISCARD weft_status weft_clip_gradient_norm(
    weft_context *context, size_t count, weft_tensor *const *tensors, double max_norm,
    const weft_clip_options *options, double *total, weft_stream *stream, weft_work **work);

/* The same, and wait for the norm: *NORM is set on the host when the call returns.  OPTIONS may be
 * NULL. */
WEFT_API WEFT_NODISCARD weft_status weft_clip_gradient_norm_wait(
    weft_context *context, size_t count, weft_tensor *const *tensors, double max_norm,
    const weft_clip_options *options, weft_stream *stream, double *norm);

/* Set every element of TENSORS that is below -MAX_VALUE to -MAX_VALUE, and every one above
 * MAX_VALUE to MAX_VALUE, in the order of STREAM.  NaN stays.  Local.  NULL tensors are skipped.
 * Unless WORK is NULL, *WORK records the work; the caller releases it.  WEFT_ERR_INVALID: a tensor
 * is not of floats, is partial, or is listed twice; MAX_VALUE is negative or not a number. */
WEFT_API WEFT_NODISCARD weft_status weft_clip_gradient_value(weft_context *context, size_t count,
                                                             weft_tensor *const *tensors,
                                                             double max_value, weft_stream *stream,
                                                             weft_work **work);

#ifdef __cplusplus
}
#endif
#endif
