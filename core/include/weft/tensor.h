/* tensor.h - the distributed tensor: a spec and this rank's memory.
 *
 *     TRY(weft_tensor_create(ctx, rows, NULL, &weights));
 *     TRY(weft_tensor_normal(weights, &random, 0, 0.02, NULL));
 *     TRY(weft_tensor_move(weights, columns, NULL, NULL, &moved));
 *     weft_tensor_release(&weights);
 *
 * Every rank of the job has its own weft_tensor for the same spec.  A rank outside the spec's mesh
 * has an empty one, and may call everything.  Functions are local unless they are said to be
 * collective: then all ranks of the meshes call them in the same order.
 *
 * Before weft_tensor_move, weft_tensor_full, weft_tensor_compare and weft_tensor_full_print do
 * anything, the ranks of the meshes compare the layouts that they pass.  The last two functions
 * also compare the names.  If they differ, all ranks get WEFT_ERR_MISMATCH.  If an argument of one
 * rank is invalid, all ranks get its error.  The error text names the rank.
 * A rank finds the others by the mesh of its tensor.  A rank that passes no valid tensor therefore
 * reaches no other rank: it alone gets the error, and the others wait until their time limit.  With
 * a valid tensor and an invalid spec or second tensor, the error reaches the ranks of the mesh of
 * the valid one.
 *
 * Moves, draws and fills are posted to a stream; NULL is the default stream.  Wait for it
 * (weft_context_wait) before the host reads or writes weft_tensor_memory.  Functions that copy to
 * the host, compare or print wait themselves.
 *
 * A context with simulated ranks (context.h) holds the shards of all ranks, and one weft_tensor has
 * them all.  Where a function is said to use this rank's shard, then
 *  - weft_tensor_memory, weft_tensor_strides and weft_tensor_shard give the shard of rank 0;
 *  - functions that set elements set the shards of all ranks;
 *  - weft_tensor_to_host, weft_tensor_from_host and weft_tensor_print take the shards of all ranks,
 *    one after the other.
 *
 * References are counted.  One thread at a time may use a tensor; tensors of one context follow the
 * rule of move.h. */
#ifndef WEFT_TENSOR_H
#define WEFT_TENSOR_H

#include "move.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_tensor weft_tensor;

/* The memory of one rank.  The fields mean what MEMORY of weft_tensor_wrap, and `strides` and
 * `shape` of its options, mean for this rank. */
typedef struct weft_tensor_rank_memory {
    void *memory;
    const int64_t *strides, *shape;
} weft_tensor_rank_memory;

typedef struct weft_tensor_options {
    size_t struct_size;
    const char *name; /* in messages and records; copied; NULL: none */
    /* For weft_tensor_wrap: strides of this rank's shard in elements, one per dimension.  They must
     * be positive; the stride of a dimension of size 1 is ignored.  A tensor is read-only, and
     * refuses calls that write it, if steps along two of its dimensions lead to one element.
     * Overlap of another kind is not found: the caller ensures that the tensor is not written then.
     * NULL: row-major without gaps. */
    const int64_t *strides;
    /* For weft_tensor_wrap: called once with USER and the memory, when no tensor uses the
     * memory any more.  With RANKS, it is called for the memory of each rank that this process
     * holds.  If the context is released first, it is called then.  NULL: nothing is called. */
    void (*release)(void *user, void *memory);
    void *user;
    /* For weft_tensor_wrap: the shape of the memory, one size per dimension.  If it is not the
     * shape of this rank's shard, the call is WEFT_ERR_INVALID.  NULL: it is not compared. */
    const int64_t *shape;
    /* The call is collective over the ranks of the mesh.  They compare their specs, and either all
     * of them succeed or all get the same error, which names the rank.  A rank whose context, spec
     * or options are invalid reaches no other rank: the others wait until their time limit. */
    bool agree;
    /* For weft_tensor_wrap: the memory of every rank, weft_size entries.  MEMORY, STRIDES and SHAPE
     * must be NULL then.  The entry of this rank is used or, with simulated ranks, all are.  The
     * memory of two simulated ranks must not overlap, unless they are replicas.  NULL: with
     * simulated ranks, MEMORY is that of rank 0, and all other shards must be empty. */
    const weft_tensor_rank_memory *ranks;
    size_t rank_size; /* sizeof(weft_tensor_rank_memory) if RANKS is set */
    /* For weft_tensor_create: work on this stream uses the memory first.  NULL: the default stream
     */
    weft_stream *stream;
} weft_tensor_options;

/* Create a tensor of layout SPEC in device memory, which is not set.  OPTIONS may be NULL.  *OUT
 * keeps a reference to SPEC.  The caller releases *OUT.  If CONTEXT is released first, it frees the
 * memory; the tensor then refuses every call, and must still be released.  WEFT_ERR_INVALID: an
 * option that only weft_tensor_wrap takes is set, or the mesh has a rank that the job does not
 * have.  WEFT_ERR_NO_MEMORY: this rank, or with `agree` some rank, has no memory for its shard.
 * WEFT_ERR_MISMATCH: with `agree`, ranks have different specs. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_create(weft_context *context, const weft_spec *spec,
                                                       const weft_tensor_options *options,
                                                       weft_tensor **out);

/* Create a tensor of layout SPEC whose shard on this rank is MEMORY, which stays the caller's.
 * MEMORY may be NULL if the shard is empty.  WEFT_ERR_INVALID: the mesh has a rank that the job
 * does not have; or MEMORY is not aligned to its elements, has another shape than the shard, is of
 * another device, is host memory that is not pinned although the backend needs device memory, or is
 * too small, if the device knows its size.
 * WEFT_ERR_MISMATCH: as weft_tensor_create.  `release` is not called by a call that fails.  The
 * caller releases *OUT.  OPTIONS may be NULL. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_wrap(weft_context *context, const weft_spec *spec,
                                                     void *memory,
                                                     const weft_tensor_options *options,
                                                     weft_tensor **out);

/* Create a tensor of layout SPEC from MEMORY, in which every rank has the whole tensor, and post
 * the copy of each rank's shard to STREAM.  MEMORY is host or device memory, row-major without
 * gaps, unless OPTIONS has `strides` of the whole tensor.  It stays the caller's, who must
 * not change it before the work on STREAM is complete.  An invalid MEMORY or OPTIONS is an error of
 * this rank alone: the other ranks wait for it up to their time limit.  A rank outside the mesh may
 * pass NULL. With
 * simulated ranks, all of them read this one buffer.  OPTIONS may be NULL; of these, `name` and
 * `strides` are used, and others are refused.  Collective, as weft_tensor_move; no data is sent.
 * Errors: as weft_tensor_wrap and weft_tensor_move.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_from_full(weft_context *context,
                                                          const weft_spec *spec, const void *memory,
                                                          const weft_tensor_options *options,
                                                          weft_stream *stream, weft_tensor **out);

/* Add a reference and return TENSOR; NULL for NULL. */
WEFT_API weft_tensor *weft_tensor_retain(const weft_tensor *tensor);
/* Drop a reference and set *TENSOR to NULL.  With the last one, memory of weft_tensor_create and of
 * moves is freed.  Work that functions of this header have posted may still use it: the memory is
 * freed in the order of the last such stream (weft_free_on).  The release waits for that stream if
 * the tensor has gaps and was moved or set, or if the device has drawn its elements.  Other work
 * that uses the memory must be complete.  Before memory of weft_tensor_wrap is released, all work
 * that uses it must be complete.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_tensor_release(weft_tensor **tensor);
/* Work that uses TENSOR has been posted to STREAM, such as a kernel of the program.  It counts as
 * work of functions of this header: weft_tensor_release then frees the memory in the order of
 * STREAM.  If work of several streams uses TENSOR, the last call names a stream that waits for the
 * others.  WEFT_ERR_INVALID: STREAM is not one of the context of TENSOR. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_use(weft_tensor *tensor, weft_stream *stream);

/* ---- properties; pointers are valid as long as the tensor; 0 or NULL for NULL ---- */

WEFT_API const weft_spec *weft_tensor_spec(const weft_tensor *tensor); /* its layout; borrowed */
WEFT_API weft_context *weft_tensor_context(const weft_tensor *tensor);
WEFT_API const char *weft_tensor_name(const weft_tensor *tensor); /* "" if it has none */
/* Whether functions that write elements refuse TENSOR: its memory was given so, or its strides make
 * elements overlap.  False for NULL. */
WEFT_API bool weft_tensor_is_read_only(const weft_tensor *tensor);
/* This rank's shard: the memory, its strides in elements, its shape and offset. */
WEFT_API void *weft_tensor_memory(const weft_tensor *tensor);
WEFT_API const int64_t *weft_tensor_strides(const weft_tensor *tensor);
WEFT_API const weft_shard *weft_tensor_shard(const weft_tensor *tensor);

/* The shard of one rank. */
typedef struct weft_tensor_local_info {
    size_t struct_size;
    void *memory;                   /* NULL if the shard is empty and has none */
    int64_t strides[WEFT_MAX_DIMS]; /* in elements */
    weft_shard shard;
} weft_tensor_local_info;

/* Set *OUT, whose struct_size the caller sets, to the shard of rank RANK of the job.
 * WEFT_ERR_INVALID: the job has no such rank.  WEFT_ERR_UNSUPPORTED: RANK is another rank than this
 * one, and ranks are not simulated. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_local_of(const weft_tensor *tensor, int32_t rank,
                                                         weft_tensor_local_info *out);

/* The shard of one rank as a kernel gets it: borrowed, while the tensor keeps its memory. */
typedef struct weft_tensor_local {
    const weft_spec *spec;   /* layout of the whole tensor; NULL: there is no tensor */
    const weft_shard *shard; /* shape of the rank's shard, and the global index of its first
                              * element; weft_spec_run gives the indices of every layout */
    const int64_t *strides;  /* of the shard in elements */
    void *memory;            /* NULL if the shard is empty */
    bool is_written;         /* by the kernel */
} weft_tensor_local;

/* ---- moves ---- */

/* Create a tensor of layout SPEC and post the move of TENSOR to it.  The new tensor has the name of
 * TENSOR.  OPTIONS may be NULL.  Collective: the ranks of both meshes agree over the rendezvous
 * that all of them have memory, which takes longer than weft_tensors_move_into.  Errors: as
 * weft_move, and WEFT_ERR_NO_MEMORY on all ranks if one rank has no memory.  The caller releases
 * *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_move(weft_tensor *tensor, const weft_spec *spec,
                                                     const weft_move_options *options,
                                                     weft_stream *stream, weft_tensor **out);
/* Post the moves of COUNT tensors, at least 1: TENSORS[i] to TARGETS[i].  The two have one shape,
 * and all tensors one context.  Several tensors move as one batch (weft_move).  OPTIONS may be
 * NULL. Collective.  Unless WORK is NULL, *WORK records the moves; the caller releases it.  After
 * the first move between the same layouts it allocates nothing and takes no lock.  A target may
 * overlap the tensor that is moved to it in any way, and must not overlap any other tensor of the
 * call: a target that is listed twice, or is also another pair's tensor, is WEFT_ERR_INVALID.  A
 * tensor is copied on the way if it has gaps between its elements, or if it overlaps its
 * target and begins at another address.  The first such move allocates memory for the copy.  If
 * a rank has no memory for it, the rank gets WEFT_ERR_NO_MEMORY, and the world communicator fails
 * on all ranks. [TENSORS, TARGETS: COUNT entries] */
WEFT_API WEFT_NODISCARD weft_status weft_tensors_move_into(size_t count,
                                                           weft_tensor *const *tensors,
                                                           weft_tensor *const *targets,
                                                           const weft_move_options *options,
                                                           weft_stream *stream, weft_work **work);

#define WEFT_EVERY_RANK (-1)

/* Create a tensor on the mesh of TENSOR that rank RANK of the job holds whole, and post the move of
 * TENSOR to it to STREAM.  The other ranks hold empty shards of it.  With WEFT_EVERY_RANK, every
 * rank of the mesh holds a whole replica.  OPTIONS may be NULL.  Otherwise as weft_tensor_move.
 * WEFT_ERR_INVALID: RANK is not in the mesh.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_full(weft_tensor *tensor, int32_t rank,
                                                     const weft_move_options *options,
                                                     weft_stream *stream, weft_tensor **out);

/* ---- views ---- */

/* These functions create a tensor that shares the memory of TENSOR and keeps a reference to it.
 * Nothing is communicated and nothing is copied.  Not collective, but all ranks make the same
 * views. The view has its own layout: its placements follow from what each rank holds, so a view of
 * an S may have a G or a B.  WEFT_ERR_UNSUPPORTED: no placements describe the view; the error names
 * the layout to move TENSOR to first, and the predicted time and bytes of that move. */

/* The LENGTH indices of dimension DIM from START on.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_narrow(weft_tensor *tensor, int32_t dim,
                                                       int64_t start, int64_t length,
                                                       weft_tensor **out);
/* Dimensions A and B swapped.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_transpose(weft_tensor *tensor, int32_t a, int32_t b,
                                                          weft_tensor **out);
/* The same elements, in row-major order, with another SHAPE of DIMS dimensions.  WEFT_ERR_INVALID:
 * SHAPE has another number of elements.  WEFT_ERR_UNSUPPORTED also: this rank's shard has gaps that
 * the new shape cannot express.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_reshape(weft_tensor *tensor, int32_t dims,
                                                        const int64_t *shape, weft_tensor **out);

/* ---- host memory ---- */

/* Copy this rank's shard to HOST, or set it from HOST: BYTES bytes of host memory, in which the
 * shard is row-major without gaps.  The calls wait for the work on STREAM.  WEFT_ERR_INVALID: the
 * shard is larger than BYTES or, for weft_tensor_from_host, smaller.  An empty shard reads nothing,
 * whatever BYTES is.  WEFT_ERR_NO_MEMORY: the shard has gaps, and there is no memory for the copy
 * without gaps that the first such call allocates. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_to_host(weft_tensor *tensor, void *host,
                                                        uint64_t bytes, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_tensor_from_host(weft_tensor *tensor, const void *host,
                                                          uint64_t bytes, weft_stream *stream);

/* Set every element of this rank's shard to VALUE, in the order of STREAM.  Floats and complex
 * numbers: VALUE is rounded to the dtype.  Each contribution of a partial tensor becomes VALUE.
 * WEFT_ERR_INVALID: the dtype is an integer or bool that does not have VALUE.  WEFT_ERR_NO_MEMORY:
 * as weft_tensor_from_host. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_fill(weft_tensor *tensor, double value,
                                                     weft_stream *stream);

/* ---- comparison and text ---- */

/* How two tensors differ.  All ranks of the meshes get the same. */
typedef struct weft_tensor_difference_info {
    size_t struct_size;
    int32_t ranks;      /* that compared elements; 0 on a rank in none of the meshes */
    bool equal;         /* all elements are equal; -0 equals 0, and NaN equals NaN */
    uint64_t differing; /* elements that differ; replicas count on every rank that holds them */
    /* These fields describe the element with the largest difference, or the first one of several:
     * the difference, which is infinite if one of the two is NaN or infinite; the rank; the index
     * in the whole tensor; and both values, real and imaginary part.  They are 0 if EQUAL. */
    double largest;
    int32_t rank;
    int64_t index[WEFT_MAX_DIMS];
    double first[2], second[2];
} weft_tensor_difference_info;

/* Compare FIRST with SECOND, which may have another layout on another mesh, and set *OUT, whose
 * struct_size the caller sets.  SECOND is moved to the layout of FIRST; partial tensors are reduced
 * first.  OPTIONS are those of these moves; OPTIONS may be NULL.  The call waits.  Collective over
 * the ranks of both meshes; an error is the same on all of them.  WEFT_ERR_INVALID: the contexts,
 * shapes or dtypes differ.  Other errors: as weft_tensor_move. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_compare(weft_tensor *first, weft_tensor *second,
                                                        const weft_move_options *options,
                                                        weft_stream *stream,
                                                        weft_tensor_difference_info *out);

/* Write this rank's shard to TEXT: a line with the name, the layout and the shard, then the
 * elements as NumPy prints an array.  Of more than 1000 elements, the first three and the last
 * three of each dimension are written; fewer of an array with more than four dimensions.  The call
 * waits for the work on STREAM.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_print(weft_tensor *tensor, weft_stream *stream,
                                                      char *text, size_t size, size_t *needed);
/* The same for the whole tensor: all ranks of the mesh get the same text.  A partial tensor is
 * reduced first, by a move with OPTIONS.  OPTIONS may be NULL.  A rank outside the mesh gets the
 * first line only.  Collective; an error is the same on all ranks.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_tensor_full_print(weft_tensor *tensor,
                                                           const weft_move_options *options,
                                                           weft_stream *stream, char *text,
                                                           size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
