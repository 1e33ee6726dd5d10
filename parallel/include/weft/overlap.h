/* overlap.h - matmuls that run while their input is gathered, or while their output is reduced.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     TRY(weft_overlap_create(ctx, mesh, "tp", &options, &overlap));            (once)
 *     weft_overlap_call_options call = {sizeof call, .flops = 2 * 4096 * columns};
 *     TRY(weft_overlap_gather(overlap, input, &call, multiply, &weights, stream));
 *     TRY(weft_overlap_reduce_scatter(overlap, &call, multiply_back, &weights, output, stream));
 *
 * The rows of a tensor are its indices in dimension 0.  The ranks along the mesh axis share them as
 * S(0) shares a dimension: each has the next ceil(rows / ranks).  Other axes of the tensor's mesh
 * may split the tensor too; then these are the rows that the ranks along the axis hold together.
 * The engine computes a range of rows per call of its function.  One thread at a time may use a
 * weft_overlap, and no other thread uses its communicator then. */
#ifndef WEFT_OVERLAP_H
#define WEFT_OVERLAP_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_overlap weft_overlap;

#define WEFT_OVERLAP_MAX_CHUNKS 16

/* The same on all ranks along the axis. */
typedef struct weft_overlap_options {
    size_t struct_size;
    uint64_t bytes; /* of the largest tensor: ranks x ceil(rows / ranks) x bytes of a row */
    bool messages;  /* use messages, even where there is symmetric memory */
} weft_overlap_options;

/* Prepare calls of the ranks along axis AXIS (a name or an index) of MESH: a stream and memory.
 * With symmetric memory it is (2 + 2 / ranks) x `bytes`, otherwise (1 + 2 / ranks) x `bytes`.
 * Collective over the ranks of MESH.  The calls are calls on the communicator that weft_comm_along
 * returns for the axis.  If it fails, it fails for all its users.  Of the ranks along the axis,
 * either all succeed or all get the same error.  NULL arguments, a bad struct_size, an axis that
 * MESH lacks and a rank outside MESH fail on this rank alone.  The other ranks then get
 * WEFT_ERR_TIMEOUT.  The caller releases *OUT before CONTEXT.  WEFT_ERR_NOT_FOUND: the mesh has no
 * such axis.  WEFT_ERR_INVALID: this rank is not in MESH, or `bytes` is 0 or above 2^60.
 * WEFT_ERR_MISMATCH: ranks have different options.  WEFT_ERR_UNSUPPORTED: ranks are simulated. */
WEFT_API WEFT_NODISCARD weft_status weft_overlap_create(weft_context *context,
                                                        const weft_mesh *mesh, const char *axis,
                                                        const weft_overlap_options *options,
                                                        weft_overlap **out);
/* Free *OVERLAP and set it to NULL.  Collective, as weft_symm_release.  Accepts NULL and a pointer
 * to NULL. */
WEFT_API void weft_overlap_release(weft_overlap **overlap);

typedef struct weft_overlap_info {
    size_t struct_size;
    int32_t ranks;  /* ranks along the axis */
    bool symmetric; /* rows are written through symmetric memory, otherwise sent as messages */
    /* Whether rows can be sent while a rank computes: on a device, and on processors if the host
     * has two of them for every rank.  BY_COSTS otherwise is PLAIN. */
    bool concurrent;
    uint64_t bytes; /* of the largest tensor, as the options say */
} weft_overlap_info;

/* Set *OUT, whose struct_size the caller sets.  Local. */
WEFT_API WEFT_NODISCARD weft_status weft_overlap_get(const weft_overlap *overlap,
                                                     weft_overlap_info *out);

enum {
    WEFT_OVERLAP_BY_COSTS = 0,
    WEFT_OVERLAP_PLAIN = -1 /* the collective and the engine's function, one after the other */
};

/* One call.  The same on all ranks. */
typedef struct weft_overlap_call_options {
    size_t struct_size;
    /* Of each rank's rows: 1 to WEFT_OVERLAP_MAX_CHUNKS, or one of the above.  The call runs as
     * PLAIN if the axis has one rank; and a reduce-scatter does if a device has no kernel that
     * adds. */
    int32_t chunks;
    /* Floating-point operations that the engine does for one row, all its matmuls together.  0: not
     * known; BY_COSTS then is PLAIN. */
    uint64_t flops;
} weft_overlap_call_options;

/* Rows that the engine computes.  The struct is valid until the function returns.  The memory of
 * the rows stays valid for the work that the function has posted to `stream`. */
typedef struct weft_overlap_rows {
    size_t struct_size;
    weft_context *context;
    weft_stream *stream;  /* the function posts its work to it, or completes it before it returns */
    int64_t first, count; /* of the rows of all ranks along the axis; COUNT is at least 1 */
    /* [count, ...] as the tensor has them, dense: to be read (gather) or written (reduce-scatter).
     * If the host can read the backend's memory, the rows have arrived.  Otherwise they arrive in
     * the order of `stream`: work on another stream must wait for the work on this one. */
    void *memory;
} weft_overlap_rows;

/* An engine's matmul, for ROWS.  USER is the argument beside it. */
typedef weft_status (*weft_overlap_kernel)(void *user, const weft_overlap_rows *rows);

/* Gather the rows of INPUT from all ranks along the axis, and call CONSUME with USER for them:
 * first for this rank's rows, then for the other ranks' rows as they arrive, in chunks.  Each
 * row is in exactly one call.  Several matmuls of the same input share one gather: CONSUME computes
 * them all.  With PLAIN, CONSUME is called once, after the gather.  The rows that it reads are not
 * kept.  Collective.  OPTIONS may be NULL.  A result of CONSUME other than
 * WEFT_OK fails the call, and the communicator on all ranks; CONSUME sets the text with weft_fail.
 * The other ranks get WEFT_ERR_ABORTED, or WEFT_ERR_MISMATCH if that is the result.  The call waits
 * for STREAM before it begins, and passes it to CONSUME.  The call returns when the work is
 * complete, so there is no work to wait for.  WEFT_ERR_INVALID: the ranks along the axis do not
 * share the rows as S(0) does, this rank's shard has gaps, an option is outside its range, or the
 * call needs more bytes than were prepared.  WEFT_ERR_MISMATCH: ranks make different calls; the
 * communicator then has failed on all ranks.  What is found:
 *
 *     what differs              symmetric memory   messages, tags   messages, no tags
 *     sizes or dtypes           MISMATCH           MISMATCH         MISMATCH
 *     gather, reduce-scatter    MISMATCH           TIMEOUT          TIMEOUT, or undefined data */
WEFT_API WEFT_NODISCARD weft_status weft_overlap_gather(weft_overlap *overlap, weft_tensor *input,
                                                        const weft_overlap_call_options *options,
                                                        weft_overlap_kernel consume, void *user,
                                                        weft_stream *stream);

/* Call PRODUCE with USER for all rows, each in exactly one call: first for the rows of the other
 * ranks, in chunks, which are sent while PRODUCE computes the next ones, then for those of this
 * rank. Set this rank's rows of OUTPUT to the sum of what all ranks have produced for them, added
 * up in the order of the ranks.  On gloo-cpu within a host, and on nvshmem with weft's collectives,
 * these are the bits of weft_reduce_scatter_v.  With PLAIN, PRODUCE is called once, before a
 * weft_reduce_scatter_v.  OPTIONS may be NULL.  Otherwise as weft_overlap_gather. */
WEFT_API WEFT_NODISCARD weft_status weft_overlap_reduce_scatter(
    weft_overlap *overlap, const weft_overlap_call_options *options, weft_overlap_kernel produce,
    void *user, weft_tensor *output, weft_stream *stream);

/* How a call would run, and why. */
typedef struct weft_overlap_prediction {
    size_t struct_size;
    int32_t gather_chunks, reduce_scatter_chunks; /* 0: PLAIN */
    /* Predictions of the cost table in nanoseconds; UINT64_MAX: not known.  Those with overlap are
     * for the best number of chunks, or the one of the options. */
    uint64_t compute_ns;
    uint64_t gather_plain_ns, gather_overlapped_ns;                 /* UINT64_MAX: not known */
    uint64_t reduce_scatter_plain_ns, reduce_scatter_overlapped_ns; /* UINT64_MAX: not known */
} weft_overlap_prediction;

/* Set *OUT, whose struct_size the caller sets, for a call with a tensor of layout SPEC.  OPTIONS
 * may be NULL.  Local.  Errors as in weft_overlap_gather. */
WEFT_API WEFT_NODISCARD weft_status weft_overlap_predict(weft_overlap *overlap,
                                                         const weft_spec *spec,
                                                         const weft_overlap_call_options *options,
                                                         weft_overlap_prediction *out);

#ifdef __cplusplus
}
#endif
#endif
