/* fsdp.h - fully sharded data parallel: parameters that are whole only while a layer uses them.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     TRY(weft_fsdp_create(ctx, mesh, "dp", NULL, &fsdp));
 *     for each layer: TRY(weft_fsdp_group_create(fsdp, n, params, sizeof *params, NULL, &layer));
 *
 *     for each step, forward:
 *         TRY(weft_fsdp_unshard_begin(layer, WEFT_FSDP_FORWARD));
 *         TRY(weft_fsdp_unshard_end(layer));
 *         compute on the compute stream with weft_tensor_memory(weft_fsdp_parameter(layer, i)) ...
 *         (a kernel on the host waits for the stream first: weft_context_wait)
 *         TRY(weft_fsdp_reshard(layer));
 *     backward, in reverse order:
 *         unshard as above with WEFT_FSDP_BACKWARD, compute the gradients ...
 *         TRY(weft_fsdp_reduce_begin(layer, gradients, 0));
 *     then, for each layer:
 *         TRY(weft_fsdp_reduce_end(layer));
 *         update the shards with weft_fsdp_gradient(layer, i) ...
 *         TRY(weft_fsdp_gradients_clear(layer));
 *
 * A parameter is a tensor (tensor.h) in the layout in which it is stored between its uses: its
 * shard axes split it, along any dimension and also unevenly, or one owner holds it, or it is
 * replicated.  Other axes of its mesh, such as tensor parallelism, may have any placement but a
 * partial.  Gathered, it has R on the shard axes and is otherwise as stored.  Each rank computes
 * with its own data, so the gradient of a gathered parameter is P(sum) over the shard axes and the
 * replicate axes.  Reduced, the gradient has the layout of the stored parameter.
 *
 * A group is the parameters that are gathered together: one batch gathers all of them, straight
 * into place, and one batch reduces their gradients.  The parameters of a group may be on different
 * meshes.
 *
 * The caller drives the order.  All ranks of the meshes of a group make the same calls with it in
 * the same order.  Two ranks that share several groups of one weft_fsdp make the calls with these
 * groups in the same order.  A rank outside the meshes may make the calls too.  Gathering and
 * reducing each have a communicator and a stream of their own, so both overlap with the work on the
 * compute stream.  A call that is out of order is WEFT_ERR_INVALID, changes nothing, and its text
 * names the state of the group and the call that is missing.  If ranks are simulated (context.h),
 * everything works in one process.
 *
 * One thread at a time may use a weft_fsdp and its groups; as to other moves, see move.h. */
#ifndef WEFT_FSDP_H
#define WEFT_FSDP_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_fsdp weft_fsdp;
typedef struct weft_fsdp_group weft_fsdp_group;

typedef struct weft_fsdp_options {
    size_t struct_size;
    /* Axes along which parameters are replicated and data differs (HSDP), as AXES of
     * weft_fsdp_create.  NULL or "": none. */
    const char *replicate;
    weft_stream *compute; /* on which the caller computes; NULL: the default stream */
    /* Gather and reduce on the compute stream, instead of on streams of their own. */
    bool one_stream;
    /* The most groups whose gathered parameters may use memory at the same time.  If `groups_max`
     * groups are gathered now, weft_fsdp_unshard_begin is WEFT_ERR_INVALID, and no group is
     * prefetched.  If fewer are gathered, but resharded groups still use memory, the call waits on
     * the host for the oldest.  weft_fsdp_unshard_end can wait in this way before it prefetches.
     * 0: no limit. */
    size_t groups_max;
} weft_fsdp_options;

/* Create what groups share: the streams and the communicators of gathering and of reducing, and the
 * axes.  AXES lists the axes of MESH along which parameters are sharded: "dp", "dp,cp", or by index
 * "0".  These axes, and those along which they are replicated, are the default of parameters on any
 * mesh, which has axes of these names or indices then.  Collective over all ranks of the job, as
 * parameters may be on other meshes.  Ranks may pass different meshes, such as those of their
 * pipeline stages.  Several models may share one.  OPTIONS may be NULL.  The caller releases *OUT
 * before CONTEXT.  An error of the arguments is one of this rank alone, and the other ranks then
 * get WEFT_ERR_TIMEOUT. WEFT_ERR_NOT_FOUND: MESH has no such axis.  WEFT_ERR_INVALID: an axis is
 * both a shard and a replicate axis. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_create(weft_context *context, const weft_mesh *mesh,
                                                     const char *axes,
                                                     const weft_fsdp_options *options,
                                                     weft_fsdp **out);
/* Wait for the work of FSDP, free it and set *FSDP to NULL.  If groups of it remain, it is freed
 * with the last of them.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_fsdp_release(weft_fsdp **fsdp);

/* The groups of a weft_fsdp that exist. */
typedef struct weft_fsdp_info {
    size_t struct_size;
    size_t groups;
    size_t groups_gathered; /* that are gathered, or being gathered */
    /* Sums of these fields of weft_fsdp_group_info. */
    uint64_t bytes_shard;
    uint64_t bytes_gathered, bytes_kept, bytes_gradients, bytes_sums;
} weft_fsdp_info;

/* Copy the state of FSDP on this rank to *OUT, whose struct_size the caller sets.  Local. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_get(const weft_fsdp *fsdp, weft_fsdp_info *out);

/* Create the layout in which the axes that AXES lists ("dp", "dp,cp", or by index "0") also split
 * dimension DIM of a tensor of layout SPEC, after the axes that split it already.  SPEC has R on
 * them.  A gather over these axes then moves data along them only.  The caller releases *OUT.
 * WEFT_ERR_INVALID: SPEC has no dimension DIM, or another placement than R.  WEFT_ERR_NOT_FOUND:
 * the mesh has no such axis.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_shard_spec(const weft_spec *spec, const char *axes,
                                                         int32_t dim, weft_spec **out);

/* ---- groups ---------------------------------------------------------------------- */

typedef struct weft_fsdp_param {
    weft_tensor *tensor; /* the stored parameter, without gaps; the group keeps a reference */
    /* Axes of the tensor's mesh, as in weft_fsdp_create.  "": none.  NULL: the group's axes. */
    const char *shard, *replicate;
    bool frozen; /* no gradient is computed; always so if not of floats */
    /* Memory of the caller for the gathered parameter: a tensor of its gathered layout and dtype
     * without gaps, of which the group keeps a reference.  weft_fsdp_parameter returns it.  Between
     * weft_fsdp_reshard and the next gather its elements may be used for anything, after the work
     * on the compute stream; during this time the tensor is not refused.  NULL: the group allocates
     * memory for each gather. */
    weft_tensor *gathered;
    /* Memory of the caller for the reduced gradient: a tensor of the layout of the stored parameter
     * and of `gradient_dtype`, likewise.  Reductions write it, or add to it if there is a gradient
     * already; otherwise the group does not touch it.  NULL: the group allocates it once. */
    weft_tensor *gradient;
} weft_fsdp_param;

typedef struct weft_fsdp_group_options {
    size_t struct_size;
    const char *name; /* in messages and records; copied; NULL: none */
    /* Axes of the parameters' meshes, as in weft_fsdp_create.  "": none.  NULL: the axes of the
     * weft_fsdp. */
    const char *shard, *replicate;
    /* Dtypes by name ("bf16"), for parameters of floats; others are gathered as they are.  Of
     * gathered parameters, NULL: as stored.  In which gradients are added up, NULL: that of each
     * gradient. Of reduced gradients, NULL: as the parameter is stored. */
    const char *gather_dtype, *reduce_dtype, *gradient_dtype;
    /* The sum of the gradients of all ranks is divided by it.  0: by the number of ranks along the
     * shard and replicate axes, which gives the mean.  docs/training/fsdp.md states when and in
     * which dtype. */
    double divide;
    /* Divide after the sum, never before or during it.  It has no effect on gradients that are
     * added up in another dtype than f32 and bf16, which are divided before and after. */
    bool sum_only;
    /* A gradient that is absent on this rank counts as zeros, so that ranks may differ in which are
     * absent; every gradient then has the layout and dtype of weft_fsdp_gradient_spec.  Otherwise
     * ranks must not differ, and a gradient that all lack is not reduced. */
    bool absent_as_zero;
} weft_fsdp_group_options;

/* Create a group of COUNT parameters, at least 1.  PARAM_SIZE is sizeof(weft_fsdp_param).  A tensor
 * that is listed twice is one shared parameter: it is gathered once, and its gradients are added
 * up. A tensor may be in one group only.  PARAMS is read during the call only; OPTIONS may be NULL.
 * Collective over the ranks of the meshes; an error is the same on all of them.  NULL arguments, a
 * COUNT of 0, a bad struct_size or PARAM_SIZE, and a tensor of another context fail on this rank
 * alone.  The other ranks then get WEFT_ERR_TIMEOUT.  The caller releases *OUT before CONTEXT.
 * WEFT_ERR_NOT_FOUND: the mesh has no such axis.  WEFT_ERR_INVALID: an axis is both a shard and a
 * replicate axis, or a parameter is not replicated along a replicate axis; a parameter is partial,
 * has gaps, is in another group, or is listed twice with different axes, `frozen` or memory; or a
 * tensor of the caller for the gathered parameter or its gradient has another layout, has gaps, is
 * read-only, or overlaps another tensor of the group.  WEFT_ERR_MISMATCH: ranks have different
 * parameters or options. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_group_create(weft_fsdp *fsdp, size_t count,
                                                           const weft_fsdp_param *params,
                                                           size_t param_size,
                                                           const weft_fsdp_group_options *options,
                                                           weft_fsdp_group **out);
/* Wait on the host for the work of GROUP, free it with its gathered parameters and gradients, and
 * set *GROUP to NULL.  The stored parameters and tensors of the caller stay.  Accepts NULL and a
 * pointer to NULL. */
WEFT_API void weft_fsdp_group_release(weft_fsdp_group **group);

/* ---- gathering ------------------------------------------------------------------- */

enum weft_fsdp_phase { WEFT_FSDP_FORWARD = 0, WEFT_FSDP_BACKWARD = 1 };

/* Begin to gather the parameters of GROUP, after the work that is on the compute stream now.  It
 * has no effect if a prefetch has already begun this gather (weft_fsdp_prefetch_set).
 * WEFT_ERR_INVALID: they are gathered, or this call was made, already.  The first gather after
 * weft_fsdp_reshard_to with another number of ranks waits for the other ranks.  If a rank has no
 * memory for the gathered parameters, the communicator of gathering fails, and the shards stay as
 * they are.  The other ranks get WEFT_ERR_ABORTED with its text, from this call or a later one. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_unshard_begin(weft_fsdp_group *group,
                                                            enum weft_fsdp_phase phase);
/* Make the compute stream wait for the gathered parameters, then begin to gather the groups that
 * weft_fsdp_prefetch_set lists for the phase, unless they are gathered.  If the gather has failed
 * by now, the call returns its error, and GROUP is sharded again.  If it fails later, the call that
 * ends the use of the parameters returns the error: weft_fsdp_reshard, weft_fsdp_reshard_to, or
 * weft_fsdp_reduce_begin without WEFT_FSDP_KEEP.  GROUP is then sharded; after
 * weft_fsdp_reshard_to it stays gathered until weft_fsdp_reshard. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_unshard_end(weft_fsdp_group *group);
/* The gathered parameter INDEX, in its gathered layout: a tensor of the group, valid until the
 * parameters are resharded.  Views of it end then too; memory that was exported must not be used
 * any more.  It may be changed, but the shards are not.  Borrowed; NULL unless the parameters are
 * gathered and weft_fsdp_unshard_end was called. */
WEFT_API weft_tensor *weft_fsdp_parameter(const weft_fsdp_group *group, size_t index);

/* Free the gathered parameters, after the work that is on the compute stream now.  It does nothing
 * if only the shards are left. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_reshard(weft_fsdp_group *group);
/* The same, but keep a part of each gathered parameter, so that the next gather takes it from RANKS
 * consecutive ranks of the shard axis only.  1 keeps the parameters gathered: the next
 * weft_fsdp_unshard_begin is then WEFT_ERR_INVALID.  The first call with another RANKS waits for
 * the other ranks.  With RANKS the size of the axis, a part is as large as a shard.  After a change
 * of the shards, the next gather still has the old values: before an update, call
 * weft_fsdp_reshard, which frees the parts. WEFT_ERR_INVALID: RANKS is below 1 or does not divide
 * the size of the axis, or the parameters are not gathered.  WEFT_ERR_UNSUPPORTED: a parameter has
 * several shard axes or none, or its mesh has WEFT_MAX_AXES axes. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_reshard_to(weft_fsdp_group *group, int32_t ranks);

/* In PHASE, weft_fsdp_unshard_end of GROUP begins to gather the COUNT groups TARGETS, in this
 * order.  TARGETS is copied; a group that is released is no longer in the list.  COUNT 0 ends it.
 * TARGETS may be NULL if COUNT is 0. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_prefetch_set(weft_fsdp_group *group,
                                                           enum weft_fsdp_phase phase, size_t count,
                                                           weft_fsdp_group *const *targets);

/* ---- gradients ------------------------------------------------------------------- */

/* The layout of the gradient of gathered parameter INDEX: as it is gathered, with P(sum) on the
 * shard and replicate axes.  Borrowed; NULL if GROUP has no such parameter, or it is frozen. */
WEFT_API const weft_spec *weft_fsdp_gradient_spec(const weft_fsdp_group *group, size_t index);
/* Create a tensor of this layout, filled with zeros in the order of the compute stream.  The caller
 * releases *OUT, also between weft_fsdp_reduce_begin and weft_fsdp_reduce_end. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_gradient_create(weft_fsdp_group *group, size_t index,
                                                              weft_tensor **out);

enum weft_fsdp_reduce_flags {
    WEFT_FSDP_KEEP = 1, /* keep the parameters gathered; otherwise they are resharded first */
    /* Do not communicate: add the gradients to sums on this rank.  The next reduction without the
     * flag includes them.  Until then the gradients of a parameter have the same placements. */
    WEFT_FSDP_LOCAL = 2,
    /* Reduce along the shard axes only, and keep the results.  The next reduction without the flag
     * includes them, and reduces along the replicate axes.  Until then the gradients of a parameter
     * have the same dtype, unless there is a `reduce_dtype`. */
    WEFT_FSDP_SHARD_ONLY = 4
};

/* Begin to reduce GRADIENTS, one tensor per parameter of GROUP, after the work that is on the
 * compute stream now.  NULL is an absent gradient; a frozen parameter must have none.  A
 * gradient has the shape and the mesh of its parameter, P(sum) on the shard and replicate axes, any
 * placement on other axes, and any dtype of floats; gradients of one group may differ in it.
 * Gradients of a tensor that is listed twice have the same placements.  The call may change the
 * elements of gradients, which have no gaps.  The memory of a gradient of weft_tensor_wrap stays
 * valid until the reduction is complete.  The first reduction of a new set of gradients waits for
 * the other ranks.  Each call needs a weft_fsdp_reduce_end, even with WEFT_FSDP_LOCAL.  Reduced
 * gradients are added to those that weft_fsdp_gradient has, if any.  FLAGS: enum
 * weft_fsdp_reduce_flags.
 * WEFT_ERR_INVALID: a reduction of GROUP has begun and not ended, a gradient does not fit, or two
 * parameters have the same one.  WEFT_ERR_MISMATCH: different gradients are absent on different
 * ranks, without `absent_as_zero`.  A rank that has reduced such gradients before posts its work
 * and gets WEFT_OK: the work fails, as weft_redistribute states, and the next reduction returns the
 * error.  A rank on which all are absent does not take part, and the others get an error at their
 * time limit.  If a rank fails otherwise, such as without memory, the communicator of reducing
 * fails.  The other ranks get WEFT_ERR_ABORTED with its text, from this call or a later one.
 * WEFT_ERR_UNSUPPORTED: the backend has no kernels to scale or add elements.  Kernels are needed
 * for `divide`, `sum_only`, accumulation, a tensor that is listed twice, and sums in another dtype
 * than f32 and bf16.  [GRADIENTS: one per parameter of GROUP] */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_reduce_begin(weft_fsdp_group *group,
                                                           weft_tensor *const *gradients,
                                                           uint32_t flags);
/* Make the compute stream wait for the reduction.  If the reduction has failed by now, the call
 * returns its error, and there are no reduced gradients.  If it fails later,
 * weft_fsdp_gradients_clear returns the error. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_reduce_end(weft_fsdp_group *group);
/* The reduced gradient of parameter INDEX, in the layout of the stored parameter.  Borrowed; NULL
 * if nothing was reduced since weft_fsdp_gradients_clear, or a reduction has not ended. */
WEFT_API weft_tensor *weft_fsdp_gradient(const weft_fsdp_group *group, size_t index);
/* Forget the reduced gradients, and the sums that wait for a later reduction.  The memory of
 * reduced gradients is used again by the next reduction, which must begin after the work that reads
 * them is on the compute stream.  The call returns the error of the last reduction, if it is known
 * by now; the gradients are forgotten all the same. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_gradients_clear(weft_fsdp_group *group);

/* ---- state ----------------------------------------------------------------------- */

/* TENSOR, of the same layout, replaces stored parameter INDEX: the group keeps a reference to it
 * and releases the one before.  For the parameter's own tensor it does nothing.  Elements of stored
 * parameters may be set at any time between weft_fsdp_reshard and the next gather, which takes what
 * is there.  WEFT_ERR_INVALID: TENSOR has another layout, or the parameters are gathered, or parts
 * of them are kept.  Not collective, but all ranks make the same call. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_rebind(weft_fsdp_group *group, size_t index,
                                                     weft_tensor *tensor);

/* The number of parameters of GROUP; 0 for NULL. */
WEFT_API size_t weft_fsdp_group_count(const weft_fsdp_group *group);

enum weft_fsdp_state {
    WEFT_FSDP_SHARDED = 0,
    WEFT_FSDP_PART_KEPT = 1, /* weft_fsdp_reshard_to */
    WEFT_FSDP_GATHERING = 2, /* weft_fsdp_unshard_begin, without the end */
    WEFT_FSDP_GATHERED = 3
};

typedef struct weft_fsdp_group_info {
    size_t struct_size;
    size_t count;         /* parameters */
    uint32_t state;       /* enum weft_fsdp_state */
    bool reducing;        /* a reduction has begun and not ended */
    uint64_t bytes_shard; /* of the stored parameters, which the group does not allocate */
    /* Bytes that the group has allocated; memory of the caller is not counted.  Between calls,
     * weft_memory_get counts the sum of the first four for it.  If ranks are simulated, they are
     * the bytes of all ranks. */
    uint64_t bytes_gathered;  /* of gathered parameters */
    uint64_t bytes_kept;      /* of parts of them that were kept */
    uint64_t bytes_gradients; /* of reduced gradients */
    uint64_t bytes_sums;      /* of gradients that wait for a later reduction */
    uint64_t bytes_peak;      /* the largest sum of these four so far, also during calls */

    /* Bytes that the busiest rank receives when the parameters are gathered, from their shards. */
    uint64_t bytes_received;
} weft_fsdp_group_info;

/* Copy the state of GROUP on this rank to *OUT, whose struct_size the caller sets.  Local. */
WEFT_API WEFT_NODISCARD weft_status weft_fsdp_group_get(const weft_fsdp_group *group,
                                                        weft_fsdp_group_info *out);

#ifdef __cplusplus
}
#endif
#endif
