/* check.h - the arguments of collectives; the memory of collectives and messages. */
#ifndef WEFT_COMM_CHECK_H
#define WEFT_COMM_CHECK_H

#include "comm.h"
#include "comm/context/room.h"

#include "kit/collective.h"

/* OK if ARGS can be given to the plugin. */
weft_status wf_check_collective(weft_comm *comm, const weft_collective_args *args);
/* The same without its stream and its memory. */
weft_status wf_check_numbers(const weft_comm *comm, const weft_collective_args *args);
/* Set the fields that wf_check_fast reads; AVERAGES is set. */
void wf_check_begin(weft_comm *comm);

/* The common case without a call: true only if wf_check_collective would return OK, apart from the
 * size of memory. */
static inline bool wf_check_fast(const weft_comm *comm, const weft_collective_args *args)
{
    uint32_t kind = args->collective;
    uint32_t needs = kit_collective_needs(kind);

    if (kind == WEFT_COLL_BARRIER) return wf_stream_is_known(comm->context, args->stream);
    if (needs == 0 || (needs & (KIT_SEND_ARRAYS | KIT_RECV_ARRAYS)) != 0 ||
        args->dtype >= WEFT_DTYPE_COUNT)
        return false;
    if ((needs & KIT_ROOTED) != 0 && (uint32_t)args->root >= (uint32_t)comm->size) return false;
    if ((needs & KIT_REDUCES) != 0 && (args->reduction >= WEFT_REDUCE_COUNT ||
                                       (comm->defined[args->reduction] >> args->dtype & 1) == 0))
        return false;
    return args->count <= comm->most[args->dtype] && args->send != NULL && args->recv != NULL &&
           args->divisor == 0 && wf_stream_is_known(comm->context, args->stream);
}

/* The same with the size of memory: true if ARGS are those of the last collective, or fewer
 * elements. */
static inline __attribute__((always_inline)) bool wf_check_is_last(const weft_comm *comm,
                                                                   const weft_collective_args *args)
{
    const struct wf_last_call *last = &comm->last_call;

    if (args->collective == WEFT_COLL_BARRIER)
        return wf_stream_is_known(comm->context, args->stream);
    return args->send == last->send && args->recv == last->recv && args->count <= last->count &&
           (args->dtype | (uint64_t)args->reduction << 32) == last->type &&
           args->collective == last->collective && args->root == last->root && args->divisor == 0 &&
           args->plan == 0 &&
           last->frees ==
               atomic_load_explicit(&comm->context->ledger.frees, memory_order_relaxed) &&
           wf_stream_is_known(comm->context, args->stream);
}
/* The same with any arguments.  If they are valid, they may be compared with the next ones. */
weft_status wf_check_call(weft_comm *comm, const weft_collective_args *args) WF_NODISCARD;

/* ---- buffers.c ---- */

/* WEFT_OK if the device of CONTEXT can use MEMORY, which is not NULL, as far as the device knows
 * what it is: not plain host memory, nor another device's.  Otherwise WEFT_ERR_INVALID; NAME is the
 * argument, and INSTEAD says what to do with host memory.  POINTER is what the device knows; NULL:
 * ask it. */
weft_status wf_place_check(const weft_context *context, const void *memory,
                           const weft_pointer_info *pointer, const char *name,
                           const char *instead) WF_NODISCARD;

/* WEFT_OK unless the memory of ARGS, whose other arguments are valid, is smaller than the call
 * needs; with WEFT_CHECK also unless it is misaligned or overlaps other than in place. */
weft_status wf_buffers_check_collective(weft_comm *comm,
                                        const weft_collective_args *args) WF_NODISCARD;
/* The numbers of elements that SEND and RECV of ARGS, whose numbers are valid, need on this rank.
 */
void wf_buffers_sizes(const weft_comm *comm, const weft_collective_args *args, uint64_t *send,
                      uint64_t *recv);
/* The same as wf_buffers_check_collective for the memory of a message of FUNCTION. */
weft_status wf_buffers_check_message(weft_comm *comm, const char *function,
                                     const weft_message *message) WF_NODISCARD;

#endif
