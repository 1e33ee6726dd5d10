/* exec.h - redistribution: plans run on ranks, or simulated without ranks.
 *
 *     weft_bound *bound;
 *     if (weft_plan_bind(plan, weft_world(ctx), NULL, &bound) != WEFT_OK) fail(weft_last_error());
 *     for (...) weft_redistribute(bound, source, target, stream, NULL);
 *
 * Binding creates communicators, computes what this rank receives from each peer, and reserves
 * scratch.  Running allocates nothing and takes no lock, except for the first run on a stream.
 * weft_move (move.h) plans, binds and runs in one call. */
#ifndef WEFT_EXEC_H
#define WEFT_EXEC_H

#include "comm.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_bound weft_bound;

/* ---- on ranks ------------------------------------------------------------------ */

/* The address of scratch that the caller supplies must be a multiple of this.  On all backends of
 * weft, weft_alloc returns such addresses. */
#define WEFT_SCRATCH_ALIGNMENT 16

typedef struct weft_bind_options {
    size_t struct_size;
    /* Strides of this rank's source and target shard, in elements, one per dimension.  NULL:
     * row-major without gaps.  A stride must not be negative, and the last element must end below
     * 2^63 bytes.  A source stride may be 0: one element is then read many times.  A target stride
     * must not be 0, and target elements must not overlap, which is not checked.  The stride of a
     * dimension with fewer than two elements is ignored. */
    const int64_t *source_strides, *target_strides;
    /* SOURCE and TARGET of weft_redistribute may be the same memory.  It must have room for the
     * larger of the two shards. */
    bool in_place;
    bool packed; /* always pack, send and unpack, even if ranks can read each other's memory */
    /* For a batch, instead of the strides above: one array per tensor.  NULL, for all tensors or
     * for one: row-major without gaps. */
    const int64_t *const *batch_source_strides, *const *batch_target_strides;
    /* Scratch of this rank: device memory of at least weft_plan_scratch bytes.  It must not overlap
     * a source or a target.  It stays the caller's.  Free it after the bound plan is released (see
     * also weft_bound_release).  Several bound plans may share one piece if they run on one stream,
     * or one after the other.  Its size is compared with its allocation, if the device
     * knows that; with WEFT_CHECK=1 its overlap is checked.  NULL: scratch of the context. */
    void *scratch;
    uint64_t scratch_bytes; /* size of SCRATCH; 0 if it is NULL */
    const char *name;       /* of the tensor or the batch, for records and messages; copied; NULL:
                               none */
    /* Only the ranks of this mesh bind and run the plan: ranks of COMM, with all ranks of the
     * plan's meshes among them.  Another rank may call weft_plan_bind too: it gets NULL without
     * waiting. All ranks pass the same mesh.  NULL: all ranks of COMM. */
    const weft_mesh *mesh;
} weft_bind_options;

/* Set *BYTES to the scratch that weft_plan_bind with these arguments would need on this rank.
 * weft_bound_scratch of the bound plan returns the same number, with one exception: if the plan
 * casts or reduces and another rank's device supports fewer casts or reductions, binding needs
 * more. It then refuses a smaller `scratch_bytes`, and the error has the size that is needed.
 * `scratch` of OPTIONS is ignored.  Not collective; nothing is created.  Errors: as weft_plan_bind,
 * except WEFT_ERR_MISMATCH.  OPTIONS may be NULL. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_scratch(const weft_plan *plan, weft_comm *comm,
                                                      const weft_bind_options *options,
                                                      uint64_t *bytes);

/* Prepare PLAN to run on COMM.  The ranks in the plan's meshes are ranks of COMM.  Collective:
 * every rank of COMM calls it with the same plan, including ranks in neither mesh.  Either all
 * ranks succeed, or all get the same error, even if the arguments of only one rank are invalid.
 * The exception is a rank whose COMM is invalid: its call fails at once, and the other ranks wait
 * for it until their time limit passes.  OPTIONS may be NULL.  Its fields may differ between ranks,
 * except in_place and packed.  *OUT keeps a reference to PLAN and uses `scratch` of OPTIONS; the
 * rest of OPTIONS is read during the call only.  COMM keeps the communicators that steps need.  The
 * caller releases *OUT before COMM.
 * WEFT_ERR_INVALID: a mesh names a rank outside COMM, a stride is invalid, or the scratch of
 * OPTIONS is too small, not aligned, or not memory that the device can use.  WEFT_ERR_MISMATCH:
 * ranks have different plans, or different in_place or packed. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_bind(const weft_plan *plan, weft_comm *comm,
                                                   const weft_bind_options *options,
                                                   weft_bound **out);

/* Free BOUND and set *BOUND to NULL.  All runs of BOUND must be complete, unless its communicator
 * has failed.  If it has failed, the call waits for the streams on which the communicator has work,
 * except wrapped streams, for at most two seconds in all.  If a stream is still busy then, the call
 * logs a warning and does not free the scratch; scratch of the caller must be kept until that
 * stream has drained.  The call does not wait for wrapped streams: the caller must wait for them
 * before the call, even if the communicator has failed.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_bound_release(weft_bound **bound);

/* Scratch that a run of BOUND uses on this rank, in bytes; 0 for NULL.  The bound plans of a
 * context share it: each stream has one piece, as large as the largest bound plan that has run on
 * it needs.  weft_move_get returns their sum, with a piece that is reserved for the next stream.
 * The size is at most the plan's peak_bytes, plus buffers for strides and in_place.  It can be
 * larger for
 * - a plan that expects ranks to read each other's memory, if they pack instead
 *   (weft_bound_is_packed): by `packed`, or because the backend has no pull or no kernel table;
 * - a collective that the backend denies, with an exchange in its place (docs/abi.md);
 * - a reduction or a cast that weft computes because the backend does not; for such a reduction
 *   weft also allocates host memory of the same size;
 * - a plan whose number of ranks makes peak_bytes an estimate (docs/planner.md). */
WEFT_API uint64_t weft_bound_scratch(const weft_bound *bound);

/* True if the ranks send messages, packed where that is needed; false if they read each other's
 * memory, and for NULL.  For a batch this holds for the tensors outside its common exchange, which
 * always packs.  The same on all ranks. */
WEFT_API bool weft_bound_is_packed(const weft_bound *bound);

/* Post the redistribution to STREAM.  Collective.  SOURCE and TARGET are this rank's shards of the
 * plan's source and target; NULL is allowed if the shard is empty.  They must not overlap, unless
 * the plan was bound with in_place.  Unless WORK is NULL, *WORK records the redistribution; the
 * caller releases it.
 * All ranks bind and run the plans of one communicator in the same order, one thread at a time.
 * Bound plans of different communicators may run at the same time.  If BOUND runs on another stream
 * than the last time, the new run must wait for the last one (weft_stream_wait_work).  The first
 * run on a stream may allocate scratch; if that fails, the communicator fails on all ranks, unless
 * the plan has no step that this rank makes with other ranks.  A device graph that has captured a
 * run uses the scratch of the stream on which it was captured.  Keep BOUND and that stream, and run
 * nothing else on that stream while the graph runs; or supply scratch to weft_plan_bind.
 * WEFT_ERR_MISMATCH: ranks run bound plans in different orders.  Steps on the same ranks are
 * compared always on gloo-cpu within a host, and on other backends with WEFT_CHECK=1.  Steps on
 * different ranks are compared on all backends after about a second of waiting.  A run is also
 * compared with another rank's call that binds a plan or creates a communicator.  A step that fails
 * fails the communicator of BOUND.
 * WEFT_ERR_INVALID: SOURCE or TARGET is NULL, but its shard is not empty; they are equal, but the
 * plan was not bound with in_place; or a call group is open on the communicator.  Also: the
 * backend works in device memory, and SOURCE or TARGET is host memory or memory of another device,
 * as far as the device knows.  This is checked until the first run that passes all checks, and with
 * WEFT_CHECK=1 in every run.  In every run also: SOURCE or TARGET is smaller than its shard, and
 * the device knows its size.  With WEFT_CHECK=1 also: memory is not aligned to its elements, host
 * memory cannot be read as far as the shard reaches, or shards without strides overlap. */
WEFT_API WEFT_NODISCARD weft_status weft_redistribute(weft_bound *bound, const void *source,
                                                      void *target, weft_stream *stream,
                                                      weft_work **work);

/* As weft_redistribute, for a plan of weft_plan_create_batch.  SOURCES[i] and TARGETS[i] are this
 * rank's shards of tensor i.  A target must not overlap a source or target of another tensor; with
 * WEFT_CHECK=1 such an overlap is WEFT_ERR_INVALID, otherwise it is not detected.  Error texts name
 * the tensor.  WORK may be NULL; otherwise the caller releases *WORK.  [SOURCES, TARGETS: one per
 * tensor of the plan] */
WEFT_API WEFT_NODISCARD weft_status weft_redistribute_batch(weft_bound *bound,
                                                            const void *const *sources,
                                                            void *const *targets,
                                                            weft_stream *stream, weft_work **work);

/* ---- without ranks ------------------------------------------------------------- */

/* Count the bytes that ranks receive from other ranks over all steps of PLAN: by the rank that
 * receives most, which weft_plan_info has too, and by all ranks together.  Takes some hundred
 * nanoseconds per distinct shard and step.  Both are exact if weft_plan_info.exact is true and no
 * exchange has more than 65,536 distinct shards; otherwise they are estimates.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_measure(const weft_plan *plan, uint64_t *received_max,
                                                      uint64_t *received_total);

/* The same for step INDEX: bytes sent by the rank that sends most, and received by the rank that
 * receives most.  Takes as long as binding every rank.  With more than 1024 ranks, *SENT_MAX is the
 * planner's figure, and with more than 65,536 *RECEIVED_MAX too.  WEFT_ERR_INVALID: PLAN has no
 * such step.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_measure_step(const weft_plan *plan, size_t index,
                                                           uint64_t *sent_max,
                                                           uint64_t *received_max);

/* Write PLAN as one JSON object without a final newline to TEXT.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print.  The object has the tensor (shape, dtype, mesh, to_mesh, from, to), the cost
 * table, the steps with exact bytes, the sums, and RUNNER_UP (weft_plan_create_runner_up).
 * RUNNER_UP may be NULL.  A batch has "tensors" instead of the tensor.  docs/cli.md lists the keys
 * under `weft plan`.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_json_print(const weft_plan *plan,
                                                         const weft_plan *runner_up, char *text,
                                                         size_t size, size_t *needed);

/* Run PLAN for every rank of its meshes in the calling thread, on host memory.  SOURCES[t][i] is
 * the source shard of tensor t of the rank at position i of the source's mesh, TARGETS[t][i] the
 * target shard of the rank at position i of the target's mesh.  A plan that is not a batch has one
 * tensor. Shards are row-major without gaps and do not overlap.  The result is deterministic.  [any
 * thread] [SOURCES, TARGETS: one per tensor of PLAN] */
WEFT_API WEFT_NODISCARD weft_status weft_simulate(const weft_plan *plan,
                                                  const void *const *const *sources,
                                                  void *const *const *targets);

#ifdef __cplusplus
}
#endif
#endif
