/* experts.h - MoE dispatch and combine: tokens to the ranks of their experts, and back.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     TRY(weft_experts_create(ctx, mesh, "ep", &options, &experts));
 *     ... per step: the router orders this rank's tokens by expert, and counts them ...
 *     TRY(weft_experts_route(experts, count, counts, NULL, stream, &routing));
 *     TRY(weft_routing_get(routing, &info));
 *     TRY(weft_routing_dispatch(routing, tokens, received, NULL, stream, NULL));
 *     ... the engine's grouped matmul: info.counts[i] rows for expert info.first_expert + i ...
 *     TRY(weft_routing_combine(routing, outputs, tokens, NULL, stream, NULL));
 *     weft_routing_release(&routing);
 *
 * A token is a row of elements.  The experts 0 .. experts - 1 are shared among the ranks of a mesh
 * axis as S(0) shares the first dimension of their weights.  Dispatch and combine are each other's
 * backward: the gradient of received tokens goes back by a combine, the gradient of combined tokens
 * by a dispatch. */
#ifndef WEFT_EXPERTS_H
#define WEFT_EXPERTS_H

#include "weft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Experts on the ranks of an axis.  Routings count as parts of their experts: one thread at a time
 * uses them. */
typedef struct weft_experts weft_experts;
/* Where the tokens of one step are sent. */
typedef struct weft_routing weft_routing;

#define WEFT_EXPERTS_MAX        65536
#define WEFT_EXPERTS_MAX_TOKENS (INT64_C(1) << 40) /* of one rank in one step */

/* The same on all ranks along the axis. */
typedef struct weft_experts_options {
    size_t struct_size;
    int32_t experts; /* on all ranks together, 1 to WEFT_EXPERTS_MAX.  A rank may have none */
    /* Tokens that one rank sends to one expert, at most.  The tokens of the expert that come after
     * them are dropped: they are not sent, and a combine sets their rows to 0.  0: no limit. */
    int64_t capacity;
} weft_experts_options;

/* Prepare experts on axis AXIS (a name or an index) of MESH.  Collective over the ranks of MESH.
 * The calls are calls on the communicator that weft_comm_along returns for the axis.  If it fails,
 * it fails for all its users.  Of the ranks along the axis, either all succeed or all get the same
 * error.  NULL arguments, a bad struct_size, an axis that MESH lacks and a rank outside MESH fail
 * on this rank alone.  The other ranks then get WEFT_ERR_TIMEOUT.  The caller releases *OUT before
 * CONTEXT.  WEFT_ERR_NOT_FOUND: the mesh has no such axis.  WEFT_ERR_INVALID: this rank is not in
 * MESH, or OPTIONS are outside their ranges.  WEFT_ERR_MISMATCH: ranks have different options.
 * WEFT_ERR_UNSUPPORTED: ranks are simulated. */
WEFT_API WEFT_NODISCARD weft_status weft_experts_create(weft_context *context,
                                                        const weft_mesh *mesh, const char *axis,
                                                        const weft_experts_options *options,
                                                        weft_experts **out);
/* Free *EXPERTS and set it to NULL.  Its routings refuse every call from then on, and must still be
 * released.  All work of its routings must be complete.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_experts_release(weft_experts **experts);

typedef struct weft_experts_info {
    size_t struct_size;
    int32_t experts;     /* experts of all ranks together */
    int32_t first, here; /* the first expert of this rank, and how many it has */
    int32_t ranks;       /* ranks along the axis */
    int64_t capacity;    /* tokens that one rank sends to one expert, at most; 0: no limit */
} weft_experts_info;

/* Set *OUT, whose struct_size the caller sets.  Local. */
WEFT_API WEFT_NODISCARD weft_status weft_experts_get(const weft_experts *experts,
                                                     weft_experts_info *out);

typedef struct weft_routing_options {
    size_t struct_size;
    /* Tokens that this rank sends to one expert in this step, at most.  Ranks may differ in it.
     * 0: the capacity of the experts. */
    int64_t capacity;
} weft_routing_options;

/* Exchange counts.  This rank has COUNTS[i] tokens for expert i; its tokens are ordered by expert.
 * COUNT is the number of experts on all ranks.  Collective over the ranks along the axis: one
 * all-to-all on STREAM.  The call returns when the counts are exchanged.  In the steady state it
 * allocates nothing.  OPTIONS may be NULL.  The caller releases *OUT.  WEFT_ERR_INVALID: a rank has
 * a negative count, another COUNT, a negative capacity, or more than WEFT_EXPERTS_MAX_TOKENS
 * tokens.  WEFT_ERR_NO_MEMORY: a rank has no memory.  Both are the same error on all ranks, which
 * names the rank, and the experts stay usable. */
WEFT_API WEFT_NODISCARD weft_status weft_experts_route(weft_experts *experts, size_t count,
                                                       const int64_t *counts,
                                                       const weft_routing_options *options,
                                                       weft_stream *stream, weft_routing **out);
/* Release *ROUTING and set it to NULL.  Work that was posted continues.  Accepts NULL and a pointer
 * to NULL. */
WEFT_API void weft_routing_release(weft_routing **routing);

typedef struct weft_routing_info {
    size_t struct_size;
    int64_t tokens;       /* tokens of this rank: the sum of its counts */
    int64_t sent;         /* tokens that this rank sends: `tokens` without the dropped ones */
    int64_t received;     /* tokens that this rank receives */
    int32_t first_expert; /* the first expert of this rank */
    size_t expert_count;  /* experts of this rank */
    /* Tokens received for each expert of this rank.  Borrowed until the routing or its experts are
     * released.  [expert_count entries] */
    const int64_t *counts;
    size_t by_rank_count; /* experts of this rank x ranks along the axis */
    /* Tokens received for expert i of this rank from each rank along the axis:
     * by_rank[i * ranks + rank].  Borrowed likewise.  [by_rank_count entries] */
    const int64_t *by_rank;
} weft_routing_info;

/* Set *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_routing_get(const weft_routing *routing,
                                                     weft_routing_info *out);

typedef struct weft_routing_call_options {
    size_t struct_size;
    /* Combine: the rows of dropped tokens keep their elements.  False: they become 0.  Dispatch
     * does not use it. */
    bool keep_dropped;
} weft_routing_call_options;

/* Post the dispatch of TOKENS to STREAM.  The shard of TOKENS on this rank is [tokens, width],
 * ordered by expert, and that of RECEIVED is [received, width].  RECEIVED gets the tokens of the
 * first expert of this rank, then the tokens of the next.  The tokens of one expert are ordered by
 * rank, and the tokens of one rank as they were there.  The layouts may be any that give this rank
 * such shards, without gaps: for example S(0) for tokens, and that of weft_routing_spec for
 * received ones.  Collective over the ranks along the axis: one weft_all_to_all_v or, if a rank has
 * several experts, one call group with a message for each expert and rank that have tokens.  No
 * plan is made and nothing is packed.  Unless WORK is NULL, *WORK records the dispatch; the caller
 * releases it.  Memory of the caller stays valid until the work is complete.  OPTIONS may be NULL.
 * WEFT_ERR_INVALID: a shard has
 * another shape or gaps, the tensors have different dtypes or widths, or their shards overlap.  An
 * overlap on a rank also fails the communicator: the other ranks get WEFT_ERR_ABORTED and its text.
 * WEFT_ERR_MISMATCH: on all ranks, if ranks pass different widths or dtypes and the backend
 * compares them (gloo-cpu does; on others as comm.h says).  If one rank dispatches and another
 * combines, the error is not always detected, and the data may be undefined
 * (docs/training/experts.md). */
WEFT_API WEFT_NODISCARD weft_status weft_routing_dispatch(weft_routing *routing,
                                                          weft_tensor *tokens,
                                                          weft_tensor *received,
                                                          const weft_routing_call_options *options,
                                                          weft_stream *stream, weft_work **work);
/* The reverse: post the combine of OUTPUTS, whose shard is [received, width] in the order of
 * RECEIVED above, to STREAM.  TOKENS, whose shard is [tokens, width], gets them in the order that
 * this rank's tokens had.  Rows of dropped tokens become 0.  OPTIONS may be NULL.  Unless WORK is
 * NULL, *WORK records the combine; the caller releases it.  Otherwise as weft_routing_dispatch. */
WEFT_API WEFT_NODISCARD weft_status weft_routing_combine(weft_routing *routing,
                                                         weft_tensor *outputs, weft_tensor *tokens,
                                                         const weft_routing_call_options *options,
                                                         weft_stream *stream, weft_work **work);

/* Create the layout of the received tokens of all ranks along the axis: a tensor of [tokens of all
 * ranks, width] on the mesh of these ranks, with the placement G(0; tokens of each rank).
 * weft_tensor_create makes a tensor of it.  Collective over the ranks along the axis:
 * one all-gather of a number on STREAM, for which the call waits.  The caller releases *OUT.
 * WEFT_ERR_INVALID: WIDTH is below 1, or the tensor is larger than memory can be. */
WEFT_API WEFT_NODISCARD weft_status weft_routing_spec(weft_routing *routing, enum weft_dtype dtype,
                                                      int64_t width, weft_stream *stream,
                                                      weft_spec **out);

#ifdef __cplusplus
}
#endif
#endif
