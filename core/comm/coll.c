/* coll.c - collectives: check, record, and straight into the plugin's table. */
#include "comm/carry/carry.h"
#include "check.h"
#include "recording.h"

#include <stddef.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* How many collectives of COMM, whose call fails, are certainly complete on this rank.  Those on
 * streams and in a call group may be in progress. */
static uint64_t count_complete(const weft_comm *comm)
{
    if (atomic_load_explicit(&comm->context->uses_streams, memory_order_acquire) ||
        comm->group_depth > 0)
        return 0;
    return atomic_load_explicit(&comm->collectives, memory_order_relaxed) - 1;
}

static weft_status compare(weft_comm *comm, uint32_t kind, const char *name,
                           const struct wf_call_identity *identity)
{
    weft_status status = wf_comm_compare(comm, kind, identity);

    if (status == WEFT_OK) return WEFT_OK;
    return wf_comm_note(comm, wf_comm_fault_collective(comm, status, name, count_complete(comm)));
}

/* A refused call does not count: the rank may try again, and the ranks compare their counts. */
static weft_status refuse(weft_comm *comm, weft_status status)
{
    uint64_t count = atomic_load_explicit(&comm->collectives, memory_order_relaxed);

    if (atomic_load_explicit(&comm->cause, memory_order_acquire) == WEFT_OK) {
        atomic_store_explicit(&comm->collectives, count - 1, memory_order_relaxed);
        if (comm->checked) wf_calls_refuse(comm);
    }
    return wf_comm_note(comm, status);
}

/* ARGS, of a call that returns to FROM, are not valid. */
static __attribute__((noinline)) weft_status
refuse_args(weft_comm *comm, const weft_collective_args *args, const void *from, weft_status status)
{
    if (comm->checked) {
        wf_calls_note(comm, args, from);
        wf_calls_refuse(comm);
    }
    return wf_comm_note(comm, status);
}

/* The plugin's NAME failed with STATUS. */
static weft_status fail_post(weft_comm *comm, weft_status status, const char *name)
{
    return refuse(comm, wf_comm_fault_collective(comm, status, name, count_complete(comm)));
}

/* The plugin failed with STATUS: carry a collective that it does not have. */
static __attribute__((noinline)) weft_status
recover(weft_comm *comm, const weft_collective_args *args, weft_status status)
{
    if (status != WEFT_ERR_UNSUPPORTED || !wf_carry_is_ours(comm, args))
        return fail_post(comm, status, wf_collective_name(args->collective));
    if (comm->group_depth > 0) return refuse(comm, wf_carry_refuse_group(comm, args));
    return wf_carry_collective(comm, args);
}

/* weft computes the average, in several operations, and waits for them.  RECORDED: as below. */
static weft_status average(weft_comm *comm, const weft_collective_args *args, bool recorded)
{
    struct wf_trace *trace =
        recorded ? NULL : atomic_load_explicit(&comm->tracing, memory_order_relaxed);
    struct wf_submitted record = {NULL, 0};
    weft_status status;

    if (trace != NULL) record = wf_record_average(trace, comm, args);
    status = wf_comm_note(comm, wf_reduce_collective(comm, args));
    if (trace == NULL) return status;
    wf_trace_return(trace);
    if (status != WEFT_OK) return wf_trace_fail(trace, record, status);
    wf_trace_finish(trace, record);
    return WEFT_OK;
}

/* Hand ARGS, which are checked, to the plugin.  COMPLETE: as in wf_comm_is_inline. */
static inline __attribute__((always_inline)) weft_status
hand_over(weft_comm *comm, const weft_collective_args *args, bool complete)
{
    weft_status status;

    if (UNLIKELY(comm->compares)) {
        status = compare(
            comm, args->collective, wf_collective_name(args->collective),
            &(struct wf_call_identity){args->plan, args->binding, args->step, args->divisor});
        if (status != WEFT_OK) return status;
    }
    wf_recent_add(&comm->recent, args->collective, args->dtype, args->reduction, args->root,
                  args->count);
    status = comm->table->collective(comm->handle, args);
    if (UNLIKELY(status != WEFT_OK)) {
        status = recover(comm, args, status);
        if (status != WEFT_OK) return status;
    }
    if (complete)
        wf_recent_finish(&comm->recent);
    else
        wf_posts_add(comm, args->stream);
    return WEFT_OK;
}

/* The same with a record, if the collective may be in progress when the call returns. */
static __attribute__((noinline)) weft_status
hand_over_later(weft_comm *comm, const weft_collective_args *args, struct wf_trace *trace,
                struct wf_collective_bytes bytes, int32_t root)
{
    struct wf_submitted record = wf_record_collective(trace, comm, args, bytes, root);
    weft_status status = hand_over(comm, args, false);

    wf_trace_return(trace);
    if (UNLIKELY(status != WEFT_OK)) return wf_trace_fail(trace, record, status);
    wf_record_post(comm, args->stream, record);
    return WEFT_OK;
}

/* The same if it is complete by then.  Not inline, so that a call without records has no part in
 * it. */
static WF_HOT __attribute__((noinline)) weft_status
hand_over_recorded(weft_comm *comm, const weft_collective_args *args, struct wf_trace *trace,
                   struct wf_collective_bytes bytes, int32_t root)
{
    struct wf_submitted record;
    weft_status status;

    if (!wf_comm_is_inline(comm, args->stream))
        return hand_over_later(comm, args, trace, bytes, root);
    record = wf_record_collective_inline(trace, comm, args, bytes, root);
    status = hand_over(comm, args, true);
    wf_trace_return(trace);
    if (UNLIKELY(status != WEFT_OK)) return wf_trace_fail(trace, record, status);
    wf_trace_finish(trace, record);
    return WEFT_OK;
}

/* Inlined into every function below, where the collective is a constant.  RECORDED: the caller has
 * a record of the call. */
static inline __attribute__((always_inline)) weft_status
post(weft_comm *comm, const char *function, const weft_collective_args *args, bool recorded)
{
    /* A copy in registers: the compiler does not assume that ARGS, which other functions get, stays
     * the same over an atomic operation, and would forget the constants in it. */
    const weft_collective_args known = *args;
    struct wf_trace *trace;
    weft_status status;

    if (UNLIKELY(comm == NULL || !wf_is_usable(comm->made, WF_KIND_COMM)))
        return wf_comm_refuse(comm, function);
    if (UNLIKELY(!(recorded ? wf_check_fast(comm, &known) : wf_check_is_last(comm, &known)))) {
        status = wf_check_call(comm, args);
        if (status != WEFT_OK) return refuse_args(comm, args, __builtin_return_address(0), status);
        if (wf_average_is_ours(comm, args)) return average(comm, args, recorded);
    }
    if (UNLIKELY(comm->checked)) wf_calls_note(comm, args, __builtin_return_address(0));
    if (UNLIKELY(!wf_comm_may_begin(comm))) return wf_comm_note(comm, wf_comm_fail_limited(comm));
    trace = recorded ? NULL : atomic_load_explicit(&comm->tracing, memory_order_relaxed);
    if (trace == NULL) return hand_over(comm, args, wf_comm_is_inline(comm, known.stream));
    return hand_over_recorded(comm, args, trace, wf_collective_bytes(comm, &known),
                              wf_collective_root(comm, &known));
}

weft_status wf_comm_pull(weft_comm *comm, const weft_pull_args *args, uint32_t to,
                         uint64_t elements)
{
    weft_status status;

    if (UNLIKELY(!wf_comm_may_begin(comm))) return wf_comm_note(comm, wf_comm_fail_limited(comm));
    if (UNLIKELY(comm->compares))
        WF_TRY(compare(
            comm, WF_RECENT_PULL, "pull",
            &(struct wf_call_identity){args->plan, args->binding, args->step, args->divisor}));
    wf_recent_add(&comm->recent, WF_RECENT_PULL, args->dtype, args->reduction, -1, elements);
    if (args->served != NULL)
        status = comm->table->exchange(comm->handle, args);
    else
        status = args->dtype == to ? comm->table->pull(comm->handle, args)
                                   : comm->table->pull_cast(comm->handle, args, to);
    if (UNLIKELY(status != WEFT_OK)) return fail_post(comm, status, "pull");
    wf_posts_add(comm, args->stream);
    if (wf_comm_is_inline(comm, args->stream)) wf_recent_finish(&comm->recent);
    return WEFT_OK;
}

/* From a caller who was compiled with the header of another version of the ABI. */
static weft_status read_other(const weft_collective_args *given, weft_collective_args *args)
{
    if (given->struct_size < sizeof *args)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_collective_args.struct_size is %u; set it to %zu, the struct's size",
                       given->struct_size, sizeof *args);
    WF_TRY(wf_abi_options_read("weft_collective_args", given, args, sizeof *args));
    args->struct_size = sizeof *args;
    return WEFT_OK;
}

static weft_status post_other(weft_comm *comm, const weft_collective_args *given)
{
    weft_collective_args args = {0};

    WF_TRY(read_other(given, &args));
    return post(comm, "weft_collective", &args, false);
}

WF_HOT weft_status weft_collective(weft_comm *comm, const weft_collective_args *args)
{
    if (args == NULL) return wf_fail_null("weft_collective", "args");
    if (UNLIKELY(args->struct_size != sizeof *args)) return post_other(comm, args);
    return post(comm, "weft_collective", args, false);
}

weft_status weft_collective_sizes(const weft_comm *comm, const weft_collective_args *args,
                                  uint64_t *send, uint64_t *recv)
{
    static const char what[] = "weft_collective_sizes";
    weft_collective_args read = {0};

    WF_TRY(wf_comm_check(comm, what));
    if (args == NULL) return wf_fail_null(what, "args");
    if (send == NULL) return wf_fail_null(what, "send");
    if (recv == NULL) return wf_fail_null(what, "recv");
    WF_TRY(read_other(args, &read));
    WF_TRY(wf_check_numbers(comm, &read));
    wf_buffers_sizes(comm, &read, send, recv);
    return WEFT_OK;
}

WF_HOT weft_status wf_comm_collective_step(weft_comm *comm, const weft_collective_args *args)
{
    return post(comm, "weft_redistribute", args, true);
}

/* Post collective KIND with the arguments that all functions below have, and those listed. */
#define POST(function, kind, ...)                                                                  \
    post(comm, function,                                                                           \
         &(weft_collective_args){.struct_size = sizeof(weft_collective_args),                      \
                                 .collective = kind,                                               \
                                 .dtype = dtype,                                                   \
                                 .send = send,                                                     \
                                 .recv = recv,                                                     \
                                 .stream = stream,                                                 \
                                 __VA_ARGS__},                                                     \
         false)
#define SEND_ARRAYS .send_counts = send_counts, .send_offsets = send_offsets
#define RECV_ARRAYS .recv_counts = recv_counts, .recv_offsets = recv_offsets

weft_status weft_all_reduce(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, enum weft_reduction reduction,
                            weft_stream *stream)
{
    return POST("weft_all_reduce", WEFT_COLL_ALL_REDUCE, .reduction = reduction, .root = -1,
                .count = count);
}

weft_status weft_all_gather(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, weft_stream *stream)
{
    return POST("weft_all_gather", WEFT_COLL_ALL_GATHER, .root = -1, .count = count);
}

weft_status weft_reduce_scatter(weft_comm *comm, const void *send, void *recv, uint64_t count,
                                enum weft_dtype dtype, enum weft_reduction reduction,
                                weft_stream *stream)
{
    return POST("weft_reduce_scatter", WEFT_COLL_REDUCE_SCATTER, .reduction = reduction, .root = -1,
                .count = count);
}

weft_status weft_all_to_all(weft_comm *comm, const void *send, void *recv, uint64_t count,
                            enum weft_dtype dtype, weft_stream *stream)
{
    return POST("weft_all_to_all", WEFT_COLL_ALL_TO_ALL, .root = -1, .count = count);
}

weft_status weft_broadcast(weft_comm *comm, const void *send, void *recv, uint64_t count,
                           enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return POST("weft_broadcast", WEFT_COLL_BROADCAST, .root = root, .count = count);
}

weft_status weft_reduce(weft_comm *comm, const void *send, void *recv, uint64_t count,
                        enum weft_dtype dtype, enum weft_reduction reduction, int32_t root,
                        weft_stream *stream)
{
    return POST("weft_reduce", WEFT_COLL_REDUCE, .reduction = reduction, .root = root,
                .count = count);
}

weft_status weft_gather(weft_comm *comm, const void *send, void *recv, uint64_t count,
                        enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return POST("weft_gather", WEFT_COLL_GATHER, .root = root, .count = count);
}

weft_status weft_scatter(weft_comm *comm, const void *send, void *recv, uint64_t count,
                         enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return POST("weft_scatter", WEFT_COLL_SCATTER, .root = root, .count = count);
}

weft_status weft_barrier(weft_comm *comm, weft_stream *stream)
{
    return post(comm, "weft_barrier",
                &(weft_collective_args){.struct_size = sizeof(weft_collective_args),
                                        .collective = WEFT_COLL_BARRIER,
                                        .root = -1,
                                        .stream = stream},
                false);
}

/* ---- with counts per rank ---- */

weft_status weft_all_gather_v(weft_comm *comm, const void *send, void *recv,
                              const uint64_t *recv_counts, const uint64_t *recv_offsets,
                              enum weft_dtype dtype, weft_stream *stream)
{
    return POST("weft_all_gather_v", WEFT_COLL_ALL_GATHER_V, .root = -1, RECV_ARRAYS);
}

weft_status weft_reduce_scatter_v(weft_comm *comm, const void *send, void *recv,
                                  const uint64_t *send_counts, const uint64_t *send_offsets,
                                  enum weft_dtype dtype, enum weft_reduction reduction,
                                  weft_stream *stream)
{
    return POST("weft_reduce_scatter_v", WEFT_COLL_REDUCE_SCATTER_V, .reduction = reduction,
                .root = -1, SEND_ARRAYS);
}

weft_status weft_all_to_all_v(weft_comm *comm, const void *send, const uint64_t *send_counts,
                              const uint64_t *send_offsets, void *recv, const uint64_t *recv_counts,
                              const uint64_t *recv_offsets, enum weft_dtype dtype,
                              weft_stream *stream)
{
    return POST("weft_all_to_all_v", WEFT_COLL_ALL_TO_ALL_V, .root = -1, SEND_ARRAYS, RECV_ARRAYS);
}

weft_status weft_gather_v(weft_comm *comm, const void *send, uint64_t count, void *recv,
                          const uint64_t *recv_counts, const uint64_t *recv_offsets,
                          enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return POST("weft_gather_v", WEFT_COLL_GATHER_V, .root = root, .count = count, RECV_ARRAYS);
}

weft_status weft_scatter_v(weft_comm *comm, const void *send, const uint64_t *send_counts,
                           const uint64_t *send_offsets, void *recv, uint64_t count,
                           enum weft_dtype dtype, int32_t root, weft_stream *stream)
{
    return POST("weft_scatter_v", WEFT_COLL_SCATTER_V, .root = root, .count = count, SEND_ARRAYS);
}
