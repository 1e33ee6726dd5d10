/* comm.h - communicators: collectives and messages among an ordered list of ranks.
 *
 * Counts are in elements, per rank and peer:
 *     all_reduce, reduce, broadcast   count in, count out
 *     all_gather, gather              count in, size x count out (gather: on the root)
 *     reduce_scatter, scatter         size x count in (scatter: on the root), count out
 *     all_to_all                      size x count in and out
 * In place: SEND equals RECV, or one is the rank's own slice of the other.  Calls post work to
 * STREAM and return.  All ranks of a communicator make the same calls in the same order, with one
 * thread at a time per communicator.
 *
 * A communicator fails with the first WEFT_ERR_PEER, _TIMEOUT, _ABORTED, _MISMATCH or device error.
 * This error is its cause.  The failure is permanent: every later call returns the cause, and the
 * communicator can only be aborted and released.  The exception is weft_comm_create, see there.
 * Waits for streams and works that contain its work return the cause too (device.h), with the same
 * status and text.
 *
 * A communicator fails on all its ranks.  A time-out, a mismatch and an abort have the same status
 * on all ranks, whichever rank finds them first: if a time limit passes on one rank, the cause is
 * WEFT_ERR_TIMEOUT on every rank on which the communicator has not failed before.  Any other error
 * of one rank is WEFT_ERR_PEER or _ABORTED on the other ranks, and the text names the rank.
 * A mismatch never undoes a collective that was already complete when its call returned (on a
 * backend with WEFT_FEATURE_INLINE, outside call groups): if such a collective is complete on the
 * rank that reports the mismatch, it completes on the other ranks too. */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H

#include "device.h"
#include "mesh.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- creating ------------------------------------------------------------------ */

#define WEFT_NO_COLOR (-1) /* this rank is in none of the parts */

/* The same on all ranks, except native. */
typedef struct weft_subcomm_options {
    size_t struct_size;
    const char *name;   /* in error texts and the log, followed by a number; control characters
                           become '?'; NULL: "comm" */
    int64_t timeout_ns; /* time limit of every wait; 0: the parent's */
    /* For weft_comm_create only: this rank's handle of a vendor communicator (ncclComm_t) of the
     * listed ranks, in their order.  weft uses it instead of creating one.  It stays the
     * caller's. */
    void *native;
    /* For weft_comm_create only: if the new communicator or PARENT fails, the other one fails too,
     * with the same cause, and so do the others that were created so.  It is for calls on PARENT
     * that use several communicators: a rank that waits on one of them learns of a failure on
     * another.  Release it before PARENT. */
    bool fails_with_parent;
} weft_subcomm_options;

/* Split PARENT into one communicator per COLOR.  Ranks are ordered by KEY; ranks with equal keys
 * keep their order in PARENT.  *OUT is NULL if COLOR is WEFT_NO_COLOR.  Collective over PARENT:
 * either all parts are created, or every rank gets the same error, which names the failed rank.
 * OPTIONS may be NULL.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_comm_split(weft_comm *parent, int32_t color, int32_t key,
                                                    const weft_subcomm_options *options,
                                                    weft_comm **out);

/* Create the communicator of the COUNT ranks RANKS of PARENT.  RANKS[i] becomes rank i.  Collective
 * over the listed ranks, which all pass the same list.  A rank that is not listed may call it too:
 * it gets NULL without waiting.  OPTIONS may be NULL.  The caller releases *OUT.
 * WEFT_ERR_MISMATCH: ranks list the same ranks in different orders.
 * The call also succeeds if PARENT has failed with WEFT_ERR_PEER, so that the remaining ranks can
 * continue without the lost one. */
WEFT_API WEFT_NODISCARD weft_status weft_comm_create(weft_comm *parent, size_t count,
                                                     const int32_t *ranks,
                                                     const weft_subcomm_options *options,
                                                     weft_comm **out);

/* Find the communicator of one or several axes of MESH that contains this rank.  The ranks of MESH
 * are ranks of PARENT.  AXES lists axes by name or index ("tp", "dp,tp", "0").  Rank i of *OUT is
 * the rank at position i of weft_mesh_slice(MESH, AXES, this rank).  If these are all ranks of
 * PARENT in the same order, *OUT is PARENT itself.  Otherwise the communicator is created on first
 * use; later calls for the same ranks in the same order return the same communicator.  OPTIONS
 * are for a communicator that the call creates, and have no effect on one that exists.  OPTIONS
 * may be NULL; `native` and `fails_with_parent` must not be set.  Without a name in OPTIONS, its
 * name contains the axes of the first call ("dp#7").  It fails independently of PARENT.  Collective
 * over the ranks of MESH, which all pass the same MESH and AXES: the first call with them waits for
 * all ranks of MESH.  A rank that is not in MESH may call it too: it gets NULL without waiting.
 * *OUT is borrowed: the release of PARENT, or of its context, releases it. WEFT_ERR_NOT_FOUND: MESH
 * has no such axis; the text lists the axes.  WEFT_ERR_INVALID: MESH has a rank that PARENT does
 * not have. WEFT_ERR_MISMATCH: ranks pass different meshes or axes; the text names both.  If the
 * meshes have different ranks, WEFT_ERR_TIMEOUT names them. */
WEFT_API WEFT_NODISCARD weft_status weft_comm_along(weft_comm *parent, const weft_mesh *mesh,
                                                    const char *axes,
                                                    const weft_subcomm_options *options,
                                                    weft_comm **out);

/* Free this rank's part of the communicator and set *COMM to NULL.  The call does not communicate.
 * All work of COMM must be complete, or COMM must have failed; weft_comm_abort makes it fail.
 * Release the bound plans and the symmetric memory of COMM first; those that remain refuse every
 * call with WEFT_ERR_INVALID. Communicators that weft_comm_along has returned for COMM as PARENT
 * are released with COMM and must not be used afterwards.  The world communicator and communicators
 * of weft_comm_along are not released by this function: for these it logs a warning and only sets
 * *COMM to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_comm_release(weft_comm **comm);

/* ---- properties ---------------------------------------------------------------- */

/* This rank's number in COMM; -1 for NULL.  [any thread] */
WEFT_API int32_t weft_comm_rank(const weft_comm *comm);
/* Number of ranks; 0 for NULL.  [any thread] */
WEFT_API int32_t weft_comm_size(const weft_comm *comm);
/* The name of COMM in error texts and the log.  Borrowed; NULL for NULL.  [any thread] */
WEFT_API const char *weft_comm_name(const weft_comm *comm);
/* The context that COMM belongs to.  Borrowed; NULL for NULL.  [any thread] */
WEFT_API weft_context *weft_comm_context(const weft_comm *comm);
/* The time limit of every wait on COMM, in nanoseconds; 0 for NULL.  [any thread] */
WEFT_API int64_t weft_comm_timeout(const weft_comm *comm);
/* The world rank of rank RANK of COMM; -1 if COMM has no such rank.  [any thread] */
WEFT_API int32_t weft_comm_world_rank(const weft_comm *comm, int32_t rank);
/* The rank in COMM of world rank WORLD_RANK; -1 if it is not a member.  [any thread] */
WEFT_API int32_t weft_comm_find_rank(const weft_comm *comm, int32_t world_rank);
/* True if ranks A and B of COMM run on the same host.  False if one of them is not a rank of COMM.
 * [any thread] */
WEFT_API bool weft_comm_same_host(const weft_comm *comm, int32_t a, int32_t b);
/* The vendor's communicator (ncclComm_t).  NULL if the backend has no vendor communicators, and for
 * NULL. */
WEFT_API void *weft_comm_native(weft_comm *comm);

/* Set *LEVEL to how the backend performs COLLECTIVE with DTYPE and REDUCTION on COMM: natively, by
 * emulation, or not at all.  WEFT_SUPPORT_NO is a level, not an error: weft then carries the
 * collective by another operation of the backend, if the backend has one of those in docs/abi.md.
 * Such a call may wait for the stream.  REDUCTION is ignored for collectives that do not reduce.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_support(const weft_comm *comm,
                                                      enum weft_collective collective,
                                                      enum weft_dtype dtype,
                                                      enum weft_reduction reduction,
                                                      enum weft_support_level *level);

/* Whether the backend has messages on COMM: weft_send and weft_receive.  False for NULL, and for
 * simulated ranks.  [any thread] */
WEFT_API bool weft_comm_has_messages(const weft_comm *comm);

/* ---- failure ------------------------------------------------------------------- */

/* WEFT_OK, or the cause if COMM has failed; weft_last_error has its text.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_async_error(weft_comm *comm);

/* Make COMM fail with WEFT_ERR_ABORTED: on this rank at once, on the other ranks of COMM when the
 * report of this rank arrives.  A rank on which COMM has failed before keeps its cause.  Pending
 * work of COMM fails too.  Work is pending until a wait or a test has reported it complete.  The
 * call does not block and may be repeated.  The caller still releases COMM.  [any thread] */
WEFT_API void weft_comm_abort(weft_comm *comm);

/* Abort every communicator that CONTEXT has now, the world too, as weft_comm_abort does.  A thread
 * that waits in a call on one of them, for work of one of them, or for its ranks to take a step
 * together, returns with WEFT_ERR_ABORTED.  It is for a program that must stop, such as after an
 * interrupt.  Communicators that are being created are not aborted; the time limit ends that.
 * Accepts NULL.  [any thread] */
WEFT_API void weft_context_abort(weft_context *context);

/* Write a report of several lines to TEXT.  It lists the recent operations of this rank.  Then it
 * has one line for each other rank of COMM: the operation that the rank has reached, or a note that
 * the rank did not answer within about a second.  A rank of the job outside COMM has a line only if
 * it did not answer; in a job of more than 256 ranks it is not asked.  TEXT, SIZE and NEEDED as in
 * weft_mesh_print (mesh.h); each call asks the ranks again, and its report may be longer.  Not
 * collective.  When a time limit passes, weft logs the same report.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_report_print(weft_comm *comm, char *text, size_t size,
                                                           size_t *needed);

/* ---- collectives ------------------------------------------------------------- */

/* Post any collective.  weft_plugin.h describes ARGS; `stream` is a weft_stream.  The functions
 * below fill in ARGS.  Only this function offers premul_sum, a sum in which each rank multiplies
 * its data by its own `scale`. */
WEFT_API WEFT_NODISCARD weft_status weft_collective(weft_comm *comm,
                                                    const weft_collective_args *args);

/* Set *SEND and *RECV to the numbers of elements that the memory of ARGS must have on this rank; 0
 * if the rank needs no such memory.  `send`, `recv` and `stream` of ARGS are not used, and the
 * other fields are checked as weft_collective does.  It is for callers who know the size of their
 * memory, as most languages do.  [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_collective_sizes(const weft_comm *comm,
                                                          const weft_collective_args *args,
                                                          uint64_t *send, uint64_t *recv);

/* SEND and RECV hold COUNT elements, except that all_gather's RECV, reduce_scatter's SEND and both
 * of all_to_all hold size x COUNT.  Memory that is too small, as far as the device knows, is
 * WEFT_ERR_INVALID, here and in messages.  With WEFT_CHECK=1 these are WEFT_ERR_INVALID too: memory
 * that is not aligned to its elements; memory that overlaps other than in place; blocks of RECV
 * that overlap each other; host memory of which the process cannot read all bytes that the call
 * uses. In place, SEND equals RECV in all_reduce, all_to_all, and in broadcast and reduce on the
 * root.  A gather, on the root, and an all_gather are in place if SEND is this rank's own part of
 * RECV; a scatter, on the root, and a reduce_scatter if RECV is this rank's own part of SEND, whose
 * other parts are then undefined.  The variants with a count for each rank are in place in the same
 * way.
 */
WEFT_API WEFT_NODISCARD weft_status weft_all_reduce(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, enum weft_dtype dtype,
                                                    enum weft_reduction reduction,
                                                    weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_gather(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, enum weft_dtype dtype,
                                                    weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_reduce_scatter(weft_comm *comm, const void *send,
                                                        void *recv, uint64_t count,
                                                        enum weft_dtype dtype,
                                                        enum weft_reduction reduction,
                                                        weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_to_all(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, enum weft_dtype dtype,
                                                    weft_stream *stream);
/* SEND is used on the root only. */
WEFT_API WEFT_NODISCARD weft_status weft_broadcast(weft_comm *comm, const void *send, void *recv,
                                                   uint64_t count, enum weft_dtype dtype,
                                                   int32_t root, weft_stream *stream);
/* RECV is used on the root only. */
WEFT_API WEFT_NODISCARD weft_status weft_reduce(weft_comm *comm, const void *send, void *recv,
                                                uint64_t count, enum weft_dtype dtype,
                                                enum weft_reduction reduction, int32_t root,
                                                weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_gather(weft_comm *comm, const void *send, void *recv,
                                                uint64_t count, enum weft_dtype dtype, int32_t root,
                                                weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_scatter(weft_comm *comm, const void *send, void *recv,
                                                 uint64_t count, enum weft_dtype dtype,
                                                 int32_t root, weft_stream *stream);
/* Make STREAM wait for all ranks.  Work that this rank posts to STREAM after the call starts when,
 * on every rank, the work posted to that rank's stream before its call is complete. */
WEFT_API WEFT_NODISCARD weft_status weft_barrier(weft_comm *comm, weft_stream *stream);

/* Variants with a count and an offset for each rank, both in elements.  Each array has one entry
 * per rank of COMM and is read during the call only.  The counts must match: in weft_all_gather_v
 * and weft_reduce_scatter_v all ranks pass the same counts; in weft_all_to_all_v, send_counts[j] on
 * rank i equals recv_counts[i] on rank j; in weft_gather_v and weft_scatter_v, COUNT on rank i
 * equals entry i of the root's counts.  Offsets may differ between ranks, be in any order and leave
 * gaps; blocks of RECV must not overlap.  In weft_all_gather_v rank i sends recv_counts[i]
 * elements; in weft_reduce_scatter_v it receives send_counts[i] elements.  [SEND_COUNTS,
 * SEND_OFFSETS, RECV_COUNTS, RECV_OFFSETS: one per rank of COMM] */
WEFT_API WEFT_NODISCARD weft_status weft_all_gather_v(weft_comm *comm, const void *send, void *recv,
                                                      const uint64_t *recv_counts,
                                                      const uint64_t *recv_offsets,
                                                      enum weft_dtype dtype, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_reduce_scatter_v(weft_comm *comm, const void *send,
                                                          void *recv, const uint64_t *send_counts,
                                                          const uint64_t *send_offsets,
                                                          enum weft_dtype dtype,
                                                          enum weft_reduction reduction,
                                                          weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_to_all_v(weft_comm *comm, const void *send,
                                                      const uint64_t *send_counts,
                                                      const uint64_t *send_offsets, void *recv,
                                                      const uint64_t *recv_counts,
                                                      const uint64_t *recv_offsets,
                                                      enum weft_dtype dtype, weft_stream *stream);
/* COUNT is the number of elements that this rank sends (gather) or receives (scatter).  The arrays
 * are used on the root only.  [RECV_COUNTS, RECV_OFFSETS: one per rank of COMM]  [SEND_COUNTS,
 * SEND_OFFSETS: one per rank of COMM] */
WEFT_API WEFT_NODISCARD weft_status weft_gather_v(weft_comm *comm, const void *send, uint64_t count,
                                                  void *recv, const uint64_t *recv_counts,
                                                  const uint64_t *recv_offsets,
                                                  enum weft_dtype dtype, int32_t root,
                                                  weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_scatter_v(weft_comm *comm, const void *send,
                                                   const uint64_t *send_counts,
                                                   const uint64_t *send_offsets, void *recv,
                                                   uint64_t count, enum weft_dtype dtype,
                                                   int32_t root, weft_stream *stream);

/* ---- messages ---------------------------------------------------------------- */

/* Send COUNT elements to PEER.  A send matches the receive of its peer with the same tag; messages
 * with equal tags match in order.  A backend without WEFT_FEATURE_TAGS ignores tags and matches in
 * order.  A send may wait for its receive, so two ranks that send to each other use a call group.
 */
WEFT_API WEFT_NODISCARD weft_status weft_send(weft_comm *comm, const void *buffer, uint64_t count,
                                              enum weft_dtype dtype, int32_t peer, uint32_t tag,
                                              weft_stream *stream);
/* Receive COUNT elements from PEER, which sends them with the same tag (weft_send). */
WEFT_API WEFT_NODISCARD weft_status weft_receive(weft_comm *comm, void *buffer, uint64_t count,
                                                 enum weft_dtype dtype, int32_t peer, uint32_t tag,
                                                 weft_stream *stream);

/* Begin and end a call group on COMM.  Its operations on COMM start together at the outermost end;
 * operations on other communicators are not part of it.  Call groups nest.  After an error inside a
 * group, weft_group_end must still be called.  It then returns the first error and starts no
 * operation of the group.  Redistributions and moves on COMM cannot be part of a call group:
 * WEFT_ERR_INVALID. */
WEFT_API WEFT_NODISCARD weft_status weft_group_begin(weft_comm *comm);
WEFT_API WEFT_NODISCARD weft_status weft_group_end(weft_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
