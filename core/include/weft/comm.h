/* comm.h - communicators: collectives and messages among a group of ranks.
 *
 * Counts are in elements, per rank and peer, as weft_plugin.h says for each collective:
 *     all_reduce, reduce, broadcast   count in, count out
 *     all_gather, gather              count in, size x count out (gather: on the root)
 *     reduce_scatter, scatter         size x count in (scatter: on the root), count out
 *     all_to_all                      size x count in and out
 * In place: SEND equals RECV, or the rank's own slice of the larger buffer.  Calls put work on
 * STREAM and return; all ranks of a communicator make the same calls in the same order, one thread
 * at a time per communicator.
 *
 * An error is sticky: after WEFT_ERR_PEER, _TIMEOUT, _ABORTED or a device's failure the
 * communicator answers every call with it, and can only be aborted and released.  Waits for
 * streams and works say it too where its work was among what they wait for (context.h). */
#ifndef WEFT_COMM_H
#define WEFT_COMM_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making them ------------------------------------------------------------- */

#define WEFT_NO_COLOUR (-1) /* this rank joins none of the parts */

/* struct_size is sizeof(weft_subcomm_options); elsewhere zero means default.  The same on all
 * ranks. */
typedef struct weft_subcomm_options {
    size_t struct_size;
    const char *name;   /* for messages; NULL: made from the parent's */
    int64_t timeout_ns; /* 0: the parent's */
    /* For weft_comm_create: the vendor's communicator (ncclComm_t) of the listed ranks, in their
     * order, to work on instead of one of weft's; still the caller's, and each rank's own. */
    void *native;
} weft_subcomm_options;

/* Cut PARENT into parts: ranks of equal COLOUR come together, in the order of KEY and, where keys
 * are equal, of their rank in PARENT.  *OUT is NULL for WEFT_NO_COLOUR.  Collective over PARENT;
 * either all parts are made, or every rank gets the same error, which names the rank that failed.
 * OPTIONS may be NULL.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_comm_split(weft_comm *parent, int32_t colour, int32_t key,
                                                    const weft_subcomm_options *options,
                                                    weft_comm **out);

/* The communicator of RANKS (of PARENT), in the order given: RANKS[i] becomes rank i.  Collective
 * over the listed ranks, which all give the same list, else WEFT_ERR_MISMATCH if the lists differ
 * in their order; a rank that is not in the list may call too,
 * and gets NULL at once.  OPTIONS may be NULL.  The caller releases *OUT. */
WEFT_API WEFT_NODISCARD weft_status weft_comm_create(weft_comm *parent, int32_t count,
                                                     const int32_t *ranks,
                                                     const weft_subcomm_options *options,
                                                     weft_comm **out);

/* Frees without talking to the others.  Work must be done, or the communicator aborted.  Bound
 * plans and symmetric memory on it should be gone; those that are not answer WEFT_ERR_INVALID from
 * then on.  The world communicator is released by its context. */
WEFT_API void weft_comm_release(weft_comm **comm);

/* ---- asking them ------------------------------------------------------------- */

WEFT_API int32_t weft_comm_rank(const weft_comm *comm);          /* [any thread] */
WEFT_API int32_t weft_comm_size(const weft_comm *comm);          /* [any thread] */
WEFT_API const char *weft_comm_name(const weft_comm *comm);      /* [any thread] */
WEFT_API weft_context *weft_comm_context(const weft_comm *comm); /* [any thread] */
/* Rank RANK's number in the world, or -1. [any thread] */
WEFT_API int32_t weft_comm_world_rank(const weft_comm *comm, int32_t rank);
/* The rank here of number WORLD_RANK in the world, or -1. [any thread] */
WEFT_API int32_t weft_comm_find_rank(const weft_comm *comm, int32_t world_rank);
/* Are two ranks on the same host? [any thread] */
WEFT_API int32_t weft_comm_same_host(const weft_comm *comm, int32_t a, int32_t b);
/* The vendor's communicator (ncclComm_t), or NULL. */
WEFT_API void *weft_comm_native(weft_comm *comm);

/* How well the backend does COLLECTIVE with DTYPE and REDUCTION here: an enum weft_support_level.
 * [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_support(const weft_comm *comm, uint32_t collective,
                                                      uint32_t dtype, uint32_t reduction,
                                                      uint32_t *level);

/* OK, or the error the communicator is stuck with; weft_last_error has its text. [any thread] */
WEFT_API WEFT_NODISCARD weft_status weft_comm_async_error(weft_comm *comm);

/* End all pending and later work with WEFT_ERR_ABORTED, here and, as soon as word reaches them, on
 * the other ranks of COMM.  Pending is what no wait or test has found done.  Does not block; may be
 * called again. [any thread] */
WEFT_API void weft_comm_abort(weft_comm *comm);

/* The recent operations of this rank and, as far as they answer, the position of every other: one
 * call of LINE per line.  Where a time limit passes, the same goes to the log. [any thread] */
WEFT_API void weft_comm_dump(weft_comm *comm, void (*line)(void *argument, const char *text),
                             void *argument);

/* ---- collectives ------------------------------------------------------------- */

/* Any collective, as weft_plugin.h describes ARGS; `stream` is a weft_stream.  The functions below
 * fill it in.  premul_sum, a sum to which each rank gives a `scale` of its own for its data, is
 * reached only here. */
WEFT_API WEFT_NODISCARD weft_status weft_collective(weft_comm *comm,
                                                    const weft_collective_args *args);

/* SEND and RECV hold COUNT elements, except that all_gather's RECV, reduce_scatter's SEND and both
 * of all_to_all hold size x COUNT. */
WEFT_API WEFT_NODISCARD weft_status weft_all_reduce(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, uint32_t dtype,
                                                    uint32_t reduction, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_gather(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, uint32_t dtype,
                                                    weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_reduce_scatter(weft_comm *comm, const void *send,
                                                        void *recv, uint64_t count, uint32_t dtype,
                                                        uint32_t reduction, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_to_all(weft_comm *comm, const void *send, void *recv,
                                                    uint64_t count, uint32_t dtype,
                                                    weft_stream *stream);
/* SEND is read on the root only. */
WEFT_API WEFT_NODISCARD weft_status weft_broadcast(weft_comm *comm, const void *send, void *recv,
                                                   uint64_t count, uint32_t dtype, int32_t root,
                                                   weft_stream *stream);
/* RECV is written on the root only. */
WEFT_API WEFT_NODISCARD weft_status weft_reduce(weft_comm *comm, const void *send, void *recv,
                                                uint64_t count, uint32_t dtype, uint32_t reduction,
                                                int32_t root, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_gather(weft_comm *comm, const void *send, void *recv,
                                                uint64_t count, uint32_t dtype, int32_t root,
                                                weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_scatter(weft_comm *comm, const void *send, void *recv,
                                                 uint64_t count, uint32_t dtype, int32_t root,
                                                 weft_stream *stream);
/* Later work on STREAM starts only after every rank has come here. */
WEFT_API WEFT_NODISCARD weft_status weft_barrier(weft_comm *comm, weft_stream *stream);

/* v-variants: counts and offsets in elements, one per rank. */
WEFT_API WEFT_NODISCARD weft_status weft_all_gather_v(weft_comm *comm, const void *send, void *recv,
                                                      const uint64_t *recv_counts,
                                                      const uint64_t *recv_offsets, uint32_t dtype,
                                                      weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_reduce_scatter_v(weft_comm *comm, const void *send,
                                                          void *recv, const uint64_t *send_counts,
                                                          const uint64_t *send_offsets,
                                                          uint32_t dtype, uint32_t reduction,
                                                          weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_all_to_all_v(weft_comm *comm, const void *send,
                                                      const uint64_t *send_counts,
                                                      const uint64_t *send_offsets, void *recv,
                                                      const uint64_t *recv_counts,
                                                      const uint64_t *recv_offsets, uint32_t dtype,
                                                      weft_stream *stream);
/* COUNT is this rank's; the arrays are read on the root only. */
WEFT_API WEFT_NODISCARD weft_status weft_gather_v(weft_comm *comm, const void *send, uint64_t count,
                                                  void *recv, const uint64_t *recv_counts,
                                                  const uint64_t *recv_offsets, uint32_t dtype,
                                                  int32_t root, weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_scatter_v(weft_comm *comm, const void *send,
                                                   const uint64_t *send_counts,
                                                   const uint64_t *send_offsets, void *recv,
                                                   uint64_t count, uint32_t dtype, int32_t root,
                                                   weft_stream *stream);

/* ---- messages ---------------------------------------------------------------- */

/* A send matches the receive of its peer with the same tag, in order; backends without
 * WEFT_FEATURE_TAGS match in order alone.  A send may wait for its receive: exchanges in both
 * directions belong in a group. */
WEFT_API WEFT_NODISCARD weft_status weft_send(weft_comm *comm, const void *buffer, uint64_t count,
                                              uint32_t dtype, int32_t peer, uint32_t tag,
                                              weft_stream *stream);
WEFT_API WEFT_NODISCARD weft_status weft_receive(weft_comm *comm, void *buffer, uint64_t count,
                                                 uint32_t dtype, int32_t peer, uint32_t tag,
                                                 weft_stream *stream);

/* Operations between begin and end start together at the outermost end.  Groups nest.  An error
 * inside still needs its end, which returns the first error. */
WEFT_API WEFT_NODISCARD weft_status weft_group_begin(weft_comm *comm);
WEFT_API WEFT_NODISCARD weft_status weft_group_end(weft_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
