/* exec.h - plans carried out on real ranks, or on none.
 *
 *     weft_bound *bound;
 *     if (weft_plan_bind(plan, weft_world(ctx), NULL, &bound) != WEFT_OK) fail(weft_last_error());
 *     for (...) weft_redistribute(bound, source, target, stream, NULL);
 *
 * Binding makes the communicators, finds out what this rank reads from whom, and allocates scratch;
 * running allocates nothing and takes no lock. */
#ifndef WEFT_EXEC_H
#define WEFT_EXEC_H

#include "comm.h"
#include "plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_bound weft_bound;

/* struct_size is sizeof(weft_bind_options); elsewhere zero means default. */
typedef struct weft_bind_options {
    size_t struct_size;
    /* Strides of this rank's shards in memory, in elements, one per dimension; NULL: row-major
     * without gaps.  None is negative, and the last element ends before 2^63 bytes.  A source's may
     * be 0 (one element read as many); a target's may not, and that its elements do not overlap
     * otherwise is the caller's duty.  Of a dimension with one element, or an empty shard, any
     * stride will do. */
    const int64_t *source_strides, *target_strides;
    bool in_place; /* SOURCE and TARGET of weft_redistribute may be the same memory */
    bool packed;   /* pack, send, unpack, also where ranks can read each other's memory */
    /* Of a batch: strides by tensor, in place of those above.  NULL, for all or for one of them:
     * row-major without gaps. */
    const int64_t *const *batch_source_strides, *const *batch_target_strides;
} weft_bind_options;

/* Make PLAN ready to run on COMM, whose ranks are those that the plan's meshes number.  Collective:
 * every rank of COMM calls it with the same plan, also those in neither mesh; either all are bound,
 * or every rank gets the same error.  OPTIONS may be NULL and may differ between ranks, except
 * in_place and packed.  Communicators of the groups that steps need are made on first use and kept
 * with COMM.  The caller releases *OUT, before COMM: after it *OUT answers WEFT_ERR_INVALID.
 * WEFT_ERR_INVALID: a mesh has ranks that COMM has not, or strides cannot be meant.
 * WEFT_ERR_MISMATCH: ranks have different plans, or want them packed or in place differently. */
WEFT_API WEFT_NODISCARD weft_status weft_plan_bind(const weft_plan *plan, weft_comm *comm,
                                                   const weft_bind_options *options,
                                                   weft_bound **out);

/* Drop BOUND and set it to NULL.  Its work must be done. */
WEFT_API void weft_bound_release(weft_bound **bound);

/* Scratch that BOUND holds on this rank, in bytes: at most the plan's peak_bytes, in pieces of 256,
 * and copies for strides or in place; more where `packed` was asked for and the plan counted on
 * reading in place, or where weft averages for the backend (docs/abi.md). */
WEFT_API uint64_t weft_bound_scratch(const weft_bound *bound);

/* Put the redistribution on STREAM: SOURCE is this rank's shard of the plan's source, TARGET that
 * of its target; NULL where the shard is empty.  They do not overlap, unless bound in_place.
 * WEFT_ERR_INVALID: memory that is NULL, or the same for both; with WEFT_CHECK=1 also memory that
 * the device knows to be too small, and shards without strides that overlap.  Collective.  *WORK,
 * if wanted, stands for it and is the caller's to release.  What is bound to one communicator runs
 * in the same order on all its ranks, one thread at a time, else WEFT_ERR_MISMATCH (of steps on the
 * same ranks always on gloo-cpu within a host, elsewhere with WEFT_CHECK=1; of steps on different
 * groups of ranks always, after a second or two); on different communicators, at the same time.  A
 * step that fails makes the communicator fail that BOUND is bound to.  Runs of one BOUND use the
 * same scratch: on different streams, the second must wait for the first (weft_stream_wait_work),
 * or be bound apart. */
WEFT_API WEFT_NODISCARD weft_status weft_redistribute(weft_bound *bound, const void *source,
                                                      void *target, weft_stream *stream,
                                                      weft_work **work);

/* The same for a batch (weft_plan_create_batch): SOURCES[i] and TARGETS[i] are this rank's shards
 * of tensor i.  None of a tensor's memory may be another's.  WEFT_ERR_INVALID as above, with the
 * tensor's number; with WEFT_CHECK=1 also where a target overlaps memory of another tensor. */
WEFT_API WEFT_NODISCARD weft_status weft_redistribute_batch(weft_bound *bound,
                                                            const void *const *sources,
                                                            void *const *targets,
                                                            weft_stream *stream, weft_work **work);

/* Does BOUND pack, send and unpack (true), or do ranks read each other's memory (false)?  The same
 * on all ranks.  False for NULL. */
WEFT_API bool weft_bound_is_packed(const weft_bound *bound);

/* ---- without ranks ---- */

/* Count exactly the bytes that ranks receive from other ranks over all steps of PLAN: those of the
 * rank that receives most, and of all ranks together.  weft_plan_info has the planner's estimate,
 * which supposes even shards.  Takes some hundred nanoseconds per rank and step.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_measure(const weft_plan *plan, uint64_t *received_max,
                                                      uint64_t *received_total);

/* The same for step INDEX: bytes sent by the rank that sends most, and received by the rank that
 * receives most.  Takes as long as binding every rank.  With more than 1024 ranks, *SENT_MAX is the
 * planner's estimate.  WEFT_ERR_INVALID: INDEX is past the last step.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_measure_step(const weft_plan *plan, uint32_t index,
                                                           uint64_t *sent_max,
                                                           uint64_t *received_max);

/* Write PLAN as one JSON object without a line end, as snprintf would: at most CAPACITY bytes with
 * the end; *LENGTH, if wanted, is the whole length.  The object has the tensor (shape, dtype, mesh,
 * to_mesh, from, to), the cost table, the steps with exact bytes, the sums, and RUNNER_UP
 * (weft_plan_create_runner_up), which may be NULL; docs/cli.md lists the keys under `weft plan`.  A
 * batch has "tensors" instead of the tensor.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_plan_print_json(const weft_plan *plan,
                                                         const weft_plan *runner_up, char *buffer,
                                                         size_t capacity, size_t *length);

/* Carry out PLAN for every rank of its meshes in this thread, on host memory, with nobody else:
 * SOURCES[i] is the shard of the rank at place i of the source's mesh, TARGETS[i] of the target's,
 * each row-major without gaps, and none overlaps another.  The result is the same every time.  What
 * a rank does here is what it does when the plan is bound. */
WEFT_API WEFT_NODISCARD weft_status weft_simulate(const weft_plan *plan, const void *const *sources,
                                                  void *const *targets);

/* The same for step INDEX alone, from the shards of its `from` to those of its `to`. */
WEFT_API WEFT_NODISCARD weft_status weft_simulate_step(const weft_plan *plan, uint32_t index,
                                                       const void *const *sources,
                                                       void *const *targets);

/* A batch: SOURCES[t][i] is the shard of tensor t that the rank at place i of its source's mesh
 * holds, TARGETS[t][i] of its target's. */
WEFT_API WEFT_NODISCARD weft_status weft_simulate_batch(const weft_plan *plan,
                                                        const void *const *const *sources,
                                                        void *const *const *targets);

#ifdef __cplusplus
}
#endif
#endif
