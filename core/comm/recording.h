/* recording.h - the trace of a context, and operations of communicators as records of it. */
#ifndef WEFT_COMM_RECORDING_H
#define WEFT_COMM_RECORDING_H

#include "comm.h"
#include "comm/context/timing.h"

#include "kit/collective.h"

#define WF_NO_RECORD UINT64_MAX

/* ---- observe.c ---- */

/* Create CONTEXT's trace. */
weft_status wf_tracing_begin(weft_context *context) WF_NODISCARD;
/* Write to the trace's file, if there is one, how far the rendezvous server's clock is ahead. */
void wf_tracing_clock(weft_context *context);
void wf_tracing_end(weft_context *context);
/* CONTEXT has its device and no communicator.  If a tool of the backend's vendor wants ranges, mark
 * them. */
void wf_tracing_mark_ranges(weft_context *context);

/* ---- records ---- */

static inline uint64_t wf_element_bytes(uint32_t dtype)
{
#define WF_ENTRY(name, value, text, bytes) [value] = (bytes),
    static const uint8_t sizes[WEFT_DTYPE_COUNT] = {WEFT_DTYPE_LIST(WF_ENTRY)};
#undef WF_ENTRY

    return sizes[dtype];
}

static inline uint64_t wf_sum_counts(const uint64_t *counts, int32_t size)
{
    uint64_t sum = 0;

    for (int32_t i = 0; counts != NULL && i < size; i++)
        sum += counts[i];
    return sum;
}

/* Elements of this rank's input and output.  ARGS are checked: arrays that this rank need not pass
 * are not read. */
static inline __attribute__((always_inline)) void
wf_collective_elements(const weft_comm *comm, const weft_collective_args *args, uint64_t *in,
                       uint64_t *out)
{
    uint64_t count = args->count, all = count * (uint64_t)comm->size;
    bool root = args->root == comm->rank;

    switch (args->collective) {
    case WEFT_COLL_ALL_REDUCE:
        *in = *out = count;
        break;
    case WEFT_COLL_ALL_GATHER:
        *in = count, *out = all;
        break;
    case WEFT_COLL_REDUCE_SCATTER:
        *in = all, *out = count;
        break;
    case WEFT_COLL_ALL_TO_ALL:
        *in = *out = all;
        break;
    case WEFT_COLL_BROADCAST:
        *in = root ? count : 0, *out = count;
        break;
    case WEFT_COLL_REDUCE:
        *in = count, *out = root ? count : 0;
        break;
    case WEFT_COLL_GATHER:
        *in = count, *out = root ? all : 0;
        break;
    case WEFT_COLL_SCATTER:
        *in = root ? all : 0, *out = count;
        break;
    case WEFT_COLL_ALL_GATHER_V:
        *in = args->recv_counts[comm->rank];
        *out = wf_sum_counts(args->recv_counts, comm->size);
        break;
    case WEFT_COLL_REDUCE_SCATTER_V:
        *in = wf_sum_counts(args->send_counts, comm->size);
        *out = args->send_counts[comm->rank];
        break;
    case WEFT_COLL_ALL_TO_ALL_V:
        *in = wf_sum_counts(args->send_counts, comm->size);
        *out = wf_sum_counts(args->recv_counts, comm->size);
        break;
    case WEFT_COLL_GATHER_V:
        *in = count, *out = root ? wf_sum_counts(args->recv_counts, comm->size) : 0;
        break;
    case WEFT_COLL_SCATTER_V:
        *in = root ? wf_sum_counts(args->send_counts, comm->size) : 0, *out = count;
        break;
    default:
        *in = *out = 0;
    }
}

/* The chain of an operation of COMM on STREAM, which has NUMBER; NULL: it is complete when its call
 * returns. */
static inline _Atomic uint64_t *wf_record_chain(struct wf_trace *trace, weft_comm *comm,
                                                const void *stream, uint64_t number)
{
    if (!comm->done_on_return || stream != NULL) return wf_trace_chain(trace, number);
    return comm->group_depth > 0 ? &comm->group_chain : NULL;
}

static inline struct wf_submitted wf_record_submit(struct wf_trace *trace, weft_comm *comm,
                                                   const void *stream, const weft_record *draft)
{
    struct wf_submitted submitted = wf_trace_submit(
        trace, wf_record_chain(trace, comm, stream, draft->stream), WF_CALL_SUBMITTED, draft);

    atomic_store_explicit(&comm->last_record, submitted.id, memory_order_relaxed);
    if ((draft->flags & WEFT_RECORD_ON_STREAM) != 0 &&
        __builtin_expect(comm->context->timing != NULL, 0))
        wf_timing_submit(comm->context->timing, comm, stream, submitted);
    return submitted;
}

/* The backend of COMM has an operation on STREAM. */
static inline void wf_record_post(const weft_comm *comm, const void *stream,
                                  struct wf_submitted record)
{
    if (__builtin_expect(comm->context->timing != NULL, 0) && record.record != NULL)
        wf_timing_post(comm->context->timing, comm, stream, record);
}

/* The same, or the end of RECORD if it is complete by then. */
static inline void wf_record_posted(struct wf_trace *trace, const weft_comm *comm,
                                    const void *stream, struct wf_submitted record)
{
    if (wf_comm_is_inline(comm, stream))
        wf_trace_finish(trace, record);
    else
        wf_record_post(comm, stream, record);
}

/* The bytes of this rank's input and output. */
struct wf_collective_bytes {
    uint64_t sent, received;
};

static inline __attribute__((always_inline)) struct wf_collective_bytes
wf_collective_bytes(const weft_comm *comm, const weft_collective_args *args)
{
    uint64_t in, out, bytes;

    if (args->collective == WEFT_COLL_BARRIER) return (struct wf_collective_bytes){0, 0};
    wf_collective_elements(comm, args, &in, &out);
    bytes = wf_element_bytes(args->dtype);
    return (struct wf_collective_bytes){in * bytes, out * bytes};
}

/* The world rank of the root; -1: none. */
static inline __attribute__((always_inline)) int32_t
wf_collective_root(const weft_comm *comm, const weft_collective_args *args)
{
    bool rooted = (kit_collective_needs(args->collective) & KIT_ROOTED) != 0;

    return rooted ? comm->world_ranks[args->root] : -1;
}

static inline __attribute__((always_inline)) weft_record
wf_collective_draft(const weft_comm *comm, const weft_collective_args *args, uint64_t sequence,
                    uint64_t stream, struct wf_collective_bytes bytes, int32_t root)
{
    return (weft_record){
        .comm = comm->number,
        .sequence = sequence,
        .sent = bytes.sent,
        .received = bytes.received,
        .stream = stream,
        .operation = (uint8_t)args->collective,
        .step_kind = WEFT_NO_STEP_KIND,
        .dtype = args->collective != WEFT_COLL_BARRIER ? (uint8_t)args->dtype : 0,
        .reduction = (uint8_t)args->reduction,
        .flags = comm->done_on_return && args->stream == NULL ? 0 : WEFT_RECORD_ON_STREAM,
        .peer = root,
        .comm_name = comm->name_text,
    };
}

/* The next collective of COMM is about to begin. */
static inline __attribute__((always_inline)) struct wf_submitted
wf_record_collective(struct wf_trace *trace, weft_comm *comm, const weft_collective_args *args,
                     struct wf_collective_bytes bytes, int32_t root)
{
    weft_record draft = wf_collective_draft(
        comm, args, atomic_load_explicit(&comm->collectives, memory_order_relaxed),
        wf_stream_number(comm->context, args->stream), bytes, root);

    return wf_record_submit(trace, comm, args->stream, &draft);
}

/* The same if wf_comm_is_inline.  The place is claimed before the rest is read, because a call that
 * makes the claim costs more with values in registers. */
static inline __attribute__((always_inline)) struct wf_submitted
wf_record_collective_inline(struct wf_trace *trace, weft_comm *comm,
                            const weft_collective_args *args, struct wf_collective_bytes bytes,
                            int32_t root)
{
    struct wf_submitted claimed = wf_trace_claim(trace);
    weft_record draft = wf_collective_draft(
        comm, args, atomic_load_explicit(&comm->collectives, memory_order_relaxed), 0, bytes, root);

    draft.flags = 0;
    atomic_store_explicit(&comm->last_record, claimed.id, memory_order_relaxed);
    wf_trace_submit_claimed(trace, claimed, NULL, WF_CALL_SUBMITTED, &draft);
    return claimed;
}

/* The same for a collective that weft computes, and that is complete when its call returns. */
struct wf_submitted wf_record_average(struct wf_trace *trace, weft_comm *comm,
                                      const weft_collective_args *args);
/* A message is about to be posted. */
struct wf_submitted wf_record_message(struct wf_trace *trace, weft_comm *comm,
                                      enum weft_record_operation operation,
                                      const weft_message *message);
/* A barrier of symmetric memory of COMM, which has begun. */
struct wf_submitted wf_record_symm_barrier(struct wf_trace *trace, weft_comm *comm,
                                           const void *stream);

/* FUNCTION is about to create, release, load or save something on COMM (OPERATION is one of
 * wf_record_is_creation), together with COUNT world RANKS of it; NULL: with all of its ranks. */
struct wf_submitted wf_record_creation(weft_comm *comm, enum weft_record_operation operation,
                                       const char *function, const int32_t *ranks, int32_t count);
/* FUNCTION is about to wait for COUNT world RANKS of COMM, which call it too; NULL: for all of its
 * ranks.  Calls with a record of their own need none. */
struct wf_submitted wf_record_agreement(weft_comm *comm, const char *function, const int32_t *ranks,
                                        int32_t count);
/* FUNCTION is about to wait for the OPERATION that was number SEQUENCE of the creations of COMM and
 * continues in the background.  [any thread] */
struct wf_submitted wf_record_continuation(weft_comm *comm, enum weft_record_operation operation,
                                           const char *function, uint64_t sequence);
/* This rank saves BYTES in it, or loads them. */
void wf_record_set_bytes(struct wf_submitted record, uint64_t bytes);
/* It ends with STATUS, which is returned. */
weft_status wf_record_created(weft_comm *comm, struct wf_submitted record, weft_status status);

/* COMM waits for world rank RANK, which has not reached its last operation, or is lost. */
void wf_record_wait(weft_comm *comm, int32_t rank);

/* The outermost call group of COMM begins, while records are wanted. */
void wf_record_group_begin(weft_comm *comm);
/* It is about to end: its operations on the default stream of a backend that completes them in the
 * call start now. */
void wf_record_group_start(weft_comm *comm);
/* It ends with STATUS; group_record is set.  If that is OK, its operations on the default stream of
 * a backend that completes them in the call are complete; otherwise none of its operations was
 * started. */
void wf_record_group_end(weft_comm *comm, weft_status status);

#endif
