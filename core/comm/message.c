/* message.c - point to point, and groups. */
#include "check.h"
#include "recording.h"

#include <inttypes.h>
#include <stdio.h>

static weft_status check(weft_comm *comm, const char *what, const weft_message *message)
{
    uint64_t bytes;

    if (message->dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: dtype %u is unknown; the dtypes are 0 to %d",
                       what, comm->name, message->dtype, WEFT_DTYPE_COUNT - 1);
    if (message->peer < 0 || message->peer >= comm->size)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: peer is %d; the ranks are 0 to %d", what,
                       comm->name, message->peer, comm->size - 1);
    if (__builtin_mul_overflow(message->count, wf_dtype_bytes(message->dtype), &bytes) ||
        bytes > INT64_MAX)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s on %s: count %" PRIu64 " of %s is more than 2^63 - 1 bytes", what,
                       comm->name, message->count, wf_dtype_name(message->dtype));
    if (message->buffer == NULL && message->count > 0)
        return wf_fail(WEFT_ERR_INVALID, "%s on %s: buffer is NULL", what, comm->name);
    if (comm->checked || !wf_room_fits(comm, message->buffer, bytes))
        WF_TRY(wf_buffers_check_message(comm, what, message));
    return wf_stream_check(comm->context, message->stream, what);
}

/* Hand MESSAGE, which is checked, to the plugin. */
static inline __attribute__((always_inline)) weft_status hand_over(weft_comm *comm, uint32_t kind,
                                                                   const weft_message *message)
{
    weft_status status;

    wf_recent_add(&comm->recent, kind, message->dtype, 0, message->peer, message->count);
    status = kind == WF_RECENT_SEND ? comm->table->send(comm->handle, message)
                                    : comm->table->receive(comm->handle, message);
    if (status != WEFT_OK)
        return wf_comm_note(
            comm,
            wf_comm_fault(comm, status, kind == WF_RECENT_SEND ? "weft_send" : "weft_receive"));
    wf_posts_add(comm, message->stream);
    if (wf_comm_is_inline(comm, message->stream)) wf_recent_finish(&comm->recent);
    return WEFT_OK;
}

static __attribute__((noinline)) weft_status hand_over_recorded(weft_comm *comm, uint32_t kind,
                                                                const weft_message *message,
                                                                struct wf_trace *trace)
{
    struct wf_submitted record = wf_record_message(
        trace, comm, kind == WF_RECENT_SEND ? WEFT_RECORD_SEND : WEFT_RECORD_RECEIVE, message);
    weft_status status = hand_over(comm, kind, message);

    wf_trace_return(trace);
    if (status != WEFT_OK) return wf_trace_fail(trace, record, status);
    wf_record_posted(trace, comm, message->stream, record);
    return WEFT_OK;
}

static weft_status post(weft_comm *comm, uint32_t kind, const weft_message *message)
{
    const char *what = kind == WF_RECENT_SEND ? "weft_send" : "weft_receive";
    struct wf_trace *trace;
    weft_status status;

    WF_TRY(wf_comm_check(comm, what));
    status = check(comm, what, message);
    if (status != WEFT_OK) return wf_comm_note(comm, status);
    if (wf_comm_has_failed(comm)) return wf_comm_note(comm, wf_comm_cause(comm));
    trace = atomic_load_explicit(&comm->tracing, memory_order_relaxed);
    return trace != NULL ? hand_over_recorded(comm, kind, message, trace)
                         : hand_over(comm, kind, message);
}

weft_status weft_send(weft_comm *comm, const void *buffer, uint64_t count, enum weft_dtype dtype,
                      int32_t peer, uint32_t tag, weft_stream *stream)
{
    return post(comm, WF_RECENT_SEND,
                &(weft_message){.struct_size = sizeof(weft_message),
                                .dtype = dtype,
                                .buffer = (void *)(uintptr_t)buffer, /* send only reads it */
                                .count = count,
                                .peer = peer,
                                .tag = tag,
                                .stream = stream});
}

weft_status weft_receive(weft_comm *comm, void *buffer, uint64_t count, enum weft_dtype dtype,
                         int32_t peer, uint32_t tag, weft_stream *stream)
{
    return post(comm, WF_RECENT_RECEIVE,
                &(weft_message){.struct_size = sizeof(weft_message),
                                .dtype = dtype,
                                .buffer = buffer,
                                .count = count,
                                .peer = peer,
                                .tag = tag,
                                .stream = stream});
}

weft_status weft_group_begin(weft_comm *comm)
{
    weft_status status;

    WF_TRY(wf_comm_check(comm, "weft_group_begin"));
    if (wf_comm_has_failed(comm)) return wf_comm_cause(comm);
    status = comm->table->group_begin(comm->handle);
    if (status != WEFT_OK) return wf_comm_fault(comm, status, "group_begin");
    if (comm->group_depth++ == 0) {
        comm->group_status = WEFT_OK;
        comm->group_first = atomic_load_explicit(&comm->recent.posted, memory_order_relaxed);
        if (atomic_load_explicit(&comm->tracing, memory_order_relaxed) != NULL)
            wf_record_group_begin(comm);
    }
    return WEFT_OK;
}

/* Memory ran out in COMM's group, so this rank started no operation of it, and peers wait for them.
 * Fail COMM on all ranks, with this rank's number in the text. */
static weft_status give_up_group(weft_comm *comm)
{
    char text[sizeof comm->cause_text];

    snprintf(text, sizeof text, "weft_group_end on %s: rank %d had no memory for its group: %s",
             comm->name, comm->context->rank, comm->group_text);
    wf_comm_fail(comm, WEFT_ERR_NO_MEMORY, text);
    if (comm->context->client != NULL)
        wf_client_abort(comm->context->client, comm->number, comm->world_ranks, comm->size,
                        WEFT_ERR_ABORTED, text);
    return wf_comm_cause(comm);
}

/* The error of COMM's group; STATUS is that of its end. */
static inline weft_status judge_group(weft_comm *comm, weft_status status)
{
    if (comm->group_status == WEFT_ERR_NO_MEMORY && comm->group_depth == 0 && comm->size > 1)
        return give_up_group(comm);
    if (comm->group_status != WEFT_OK) return wf_fail(comm->group_status, "%s", comm->group_text);
    if (status == WEFT_OK && comm->done_on_return && comm->group_depth == 0)
        wf_recent_finish(&comm->recent);
    return status;
}

weft_status weft_group_end(weft_comm *comm)
{
    weft_status status;

    WF_TRY(wf_comm_check(comm, "weft_group_end"));
    if (comm->group_depth == 0)
        return wf_fail(WEFT_ERR_INVALID, "weft_group_end on %s: no group has begun", comm->name);
    if (comm->group_depth == 1 && comm->group_record != WF_NO_RECORD &&
        comm->group_status == WEFT_OK)
        wf_record_group_start(comm);
    status = comm->table->group_end(comm->handle);
    comm->group_depth--;
    if (comm->group_depth == 0) wf_posts_start_group(comm);
    if (comm->group_depth == 0 && comm->context->timing != NULL)
        wf_timing_post_group(comm->context->timing, comm,
                             status == WEFT_OK && comm->group_status == WEFT_OK);
    if (status != WEFT_OK) status = wf_comm_note(comm, wf_comm_fault(comm, status, "group_end"));
    status = judge_group(comm, status);
    if (comm->group_depth == 0 && comm->group_record != WF_NO_RECORD)
        wf_record_group_end(comm, status);
    return status;
}
