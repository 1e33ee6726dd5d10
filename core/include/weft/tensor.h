/* tensor.h - the distributed tensor: a spec and this rank's memory.
 *
 *     TRY(weft_tensor_create(ctx, rows, NULL, &weights));
 *     TRY(weft_tensor_normal(weights, &random, 0, 0.02, NULL));
 *     TRY(weft_tensor_move(weights, columns, NULL, &moved));
 *     weft_tensor_release(&weights);
 *
 * Every rank of the job has its own weft_tensor for the same spec.  A rank outside the spec's mesh
 * has an empty one, and may call everything.  Functions are local unless they are said to be
 * collective: then all ranks of the meshes call them in the same order.
 *
 * References are counted.  One thread at a time may use a tensor; tensors of one context follow the
 * rule of move.h. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "move.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_tensor weft_tensor;

typedef struct weft_tensor_options {
    size_t struct_size;
    const char *name; /* in messages and records; copied; NULL: none */
    /* For weft_tensor_wrap: strides of this rank's shard in elements, one per dimension, none
     * negative.  NULL: row-major without gaps. */
    const int64_t *strides;
    /* For weft_tensor_wrap: called once with ARGUMENT and the memory, when no tensor uses the
     * memory any more.  NULL: nothing is called. */
    void (*release)(void *argument, void *memory);
    void *argument;
} weft_tensor_options;

/* Create a tensor of layout SPEC in device memory, which is not set.  OPTIONS may be NULL.  *OUT
 * keeps a reference to SPEC; the caller releases it before CONTEXT.  WEFT_ERR_NO_MEMORY: this rank
 * has no memory for its shard. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_create(weft_context *context, const weft_spec *spec,
                                                       const weft_tensor_options *options,
                                                       weft_tensor **out);

/* Create a tensor of layout SPEC whose shard on this rank is MEMORY, which stays the caller's.
 * MEMORY may be NULL if the shard is empty.  WEFT_ERR_INVALID: MEMORY is not aligned to its
 * elements, or the device knows that it is too small. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_wrap(weft_context *context, const weft_spec *spec,
                                                     void *memory,
                                                     const weft_tensor_options *options,
                                                     weft_tensor **out);

/* Add a reference and return TENSOR; NULL for NULL. */
WEFT_API weft_tensor *weft_tensor_retain(const weft_tensor *tensor);
/* Drop a reference and set *TENSOR to NULL.  All work that uses the memory must be complete when
 * the last reference is dropped.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_tensor_release(weft_tensor **tensor);

/* ---- properties; pointers are valid as long as the tensor; 0 or NULL for NULL ---- */

WEFT_API const weft_spec *weft_tensor_spec(const weft_tensor *tensor); /* borrowed */
WEFT_API weft_context *weft_tensor_context(const weft_tensor *tensor);
WEFT_API const char *weft_tensor_name(const weft_tensor *tensor); /* "" if it has none */
/* This rank's shard: the memory, its strides in elements, its shape and offset. */
WEFT_API void *weft_tensor_memory(const weft_tensor *tensor);
WEFT_API const int64_t *weft_tensor_strides(const weft_tensor *tensor);
WEFT_API const weft_shard *weft_tensor_shard(const weft_tensor *tensor);

/* ---- moves ---- */

/* Create a tensor of layout SPEC and post the move of TENSOR to it.  The new tensor has the name of
 * TENSOR.  Collective.  Errors: as weft_move; if a rank has no memory, all ranks get the error. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_move(weft_tensor *tensor, const weft_spec *spec,
                                                     weft_stream *stream, weft_tensor **out);
/* Post the move of TENSOR to TARGET.  Both have one shape and one context.  Collective.  Unless
 * WORK is NULL, *WORK records the move; the caller releases it.  After the first move between two
 * layouts it allocates nothing and takes no lock. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_move_into(weft_tensor *tensor, weft_tensor *target,
                                                          weft_stream *stream, weft_work **work);
/* The same for COUNT tensors, at least 1, which travel as one batch (weft_move_batch). */
WEFT_API WEFT_NODISCARD weft_status weft_tensors_move_into(uint32_t count,
                                                           weft_tensor *const *tensors,
                                                           weft_tensor *const *targets,
                                                           weft_stream *stream, weft_work **work);

#ifdef __cplusplus
}
#endif
#endif
