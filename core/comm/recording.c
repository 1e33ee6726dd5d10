/* recording.c - operations as records: those that are too long to be inline, creations, groups, and
 * the rank that a failed wait was for. */
#include "recording.h"

/* The number of messages that COMM has sent to, or received from, PEER, with this one.  0 if
 * memory for the numbers is missing. */
static uint64_t count_message(weft_comm *comm, bool receives, int32_t peer)
{
    if (comm->message_counts == NULL)
        comm->message_counts = wf_calloc(2 * (size_t)comm->size, sizeof *comm->message_counts);
    if (comm->message_counts == NULL) return 0;
    return ++comm->message_counts[(receives ? comm->size : 0) + peer];
}

struct wf_submitted wf_record_message(struct wf_trace *trace, weft_comm *comm,
                                      enum weft_record_operation operation,
                                      const weft_message *message)
{
    bool receives = operation == WEFT_RECORD_RECEIVE;
    uint64_t bytes = message->count * wf_element_bytes(message->dtype);

    return wf_record_submit(
        trace, comm, message->stream,
        &(weft_record){
            .comm = comm->number,
            .sequence = count_message(comm, receives, message->peer),
            .sent = receives ? 0 : bytes,
            .received = receives ? bytes : 0,
            .stream = wf_stream_number(comm->context, message->stream),
            .operation = (uint8_t)operation,
            .step_kind = WEFT_NO_STEP_KIND,
            .dtype = (uint8_t)message->dtype,
            .flags = comm->done_on_return && message->stream == NULL ? 0 : WEFT_RECORD_ON_STREAM,
            .peer = comm->world_ranks[message->peer],
            .comm_name = comm->name_text,
        });
}

struct wf_submitted wf_record_symm_barrier(struct wf_trace *trace, weft_comm *comm,
                                           const void *stream)
{
    return wf_record_submit(
        trace, comm, stream,
        &(weft_record){
            .comm = comm->number,
            .sequence = atomic_load_explicit(&comm->collectives, memory_order_relaxed),
            .stream = wf_stream_number(comm->context, stream),
            .operation = WEFT_RECORD_SYMM_BARRIER,
            .step_kind = WEFT_NO_STEP_KIND,
            .flags = comm->done_on_return && stream == NULL ? 0 : WEFT_RECORD_ON_STREAM,
            .peer = -1,
            .comm_name = comm->name_text,
        });
}

struct wf_submitted wf_record_average(struct wf_trace *trace, weft_comm *comm,
                                      const weft_collective_args *args)
{
    weft_record draft = wf_collective_draft(
        comm, args, atomic_load_explicit(&comm->collectives, memory_order_relaxed) + 1,
        wf_stream_number(comm->context, args->stream), wf_collective_bytes(comm, args),
        wf_collective_root(comm, args));
    struct wf_submitted submitted;

    draft.flags = 0;
    submitted = wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED, &draft);
    atomic_store_explicit(&comm->last_record, submitted.id, memory_order_relaxed);
    return submitted;
}

/* ---- creations, releases, loads, saves and agreements ---- */

/* The number of creations and the like on COMM by COUNT RANKS of it, or of agreements, with this
 * one.  0 if memory for the numbers is missing. */
static uint64_t count_creation(weft_comm *comm, bool is_agreement, const int32_t *ranks,
                               int32_t count)
{
    uint64_t digest = wf_hash(is_agreement ? 2 : 1, ranks, (size_t)count * sizeof *ranks);
    struct wf_creations *found = comm->creations;

    while (found != NULL && found->digest != digest)
        found = found->next;
    if (found == NULL) {
        found = wf_alloc(sizeof *found);
        if (found == NULL) return 0;
        *found = (struct wf_creations){comm->creations, digest, 0};
        comm->creations = found;
    }
    return ++found->count;
}

/* The record of number SEQUENCE; RANKS is NULL if all ranks of COMM take part. */
static struct wf_submitted submit_creation(weft_comm *comm, enum weft_record_operation operation,
                                           const char *function, uint64_t sequence,
                                           const int32_t *ranks, int32_t count)
{
    struct wf_trace *trace = atomic_load_explicit(&comm->tracing, memory_order_relaxed);

    if (trace == NULL) return (struct wf_submitted){NULL, 0};
    return wf_trace_submit(
        trace, NULL, WF_CALL_SUBMITTED,
        &(weft_record){.comm = comm->number,
                       .sequence = sequence,
                       .operation = (uint8_t)operation,
                       .step_kind = WEFT_NO_STEP_KIND,
                       .peer = -1,
                       .comm_name = comm->name_text,
                       .axes = ranks != NULL ? wf_trace_list_ranks(trace, ranks, count) : 0,
                       .label = wf_trace_intern(trace, function)});
}

struct wf_submitted wf_record_creation(weft_comm *comm, enum weft_record_operation operation,
                                       const char *function, const int32_t *ranks, int32_t count)
{
    bool by_all = ranks == NULL || count == comm->size, agrees = operation == WEFT_RECORD_AGREE;
    uint64_t *common = agrees ? &comm->common_agreements : &comm->common_creations;
    /* Counted also if records are not wanted now. */
    uint64_t sequence = by_all ? ++*common : count_creation(comm, agrees, ranks, count);
    struct wf_submitted submitted =
        submit_creation(comm, operation, function, sequence, by_all ? NULL : ranks, count);

    if (submitted.record != NULL)
        atomic_store_explicit(&comm->last_record, submitted.id, memory_order_relaxed);
    return submitted;
}

struct wf_submitted wf_record_agreement(weft_comm *comm, const char *function, const int32_t *ranks,
                                        int32_t count)
{
    if (comm->size == 1 || (ranks != NULL && count == 1) || comm->context->is_simulated)
        return (struct wf_submitted){NULL, 0};
    return wf_record_creation(comm, WEFT_RECORD_AGREE, function, ranks, count);
}

struct wf_submitted wf_record_continuation(weft_comm *comm, enum weft_record_operation operation,
                                           const char *function, uint64_t sequence)
{
    return submit_creation(comm, operation, function, sequence, NULL, 0);
}

void wf_record_set_bytes(struct wf_submitted record, uint64_t bytes)
{
    if (record.record == NULL || WF_LOAD(record.record, id) != record.id) return;
    if (WF_LOAD(record.record, operation) == WEFT_RECORD_LOAD)
        WF_STORE(record.record, received, bytes);
    else
        WF_STORE(record.record, sent, bytes);
}

weft_status wf_record_created(weft_comm *comm, struct wf_submitted record, weft_status status)
{
    struct wf_trace *trace = comm->context->trace;

    if (record.record == NULL) return status;
    wf_trace_return(trace);
    if (status != WEFT_OK) return wf_trace_fail(trace, record, status);
    wf_trace_finish(trace, record);
    return WEFT_OK;
}

/* ---- waits and groups ---- */

void wf_record_wait(weft_comm *comm, int32_t rank)
{
    wf_trace_set_wait(comm->context->trace, comm->number, atomic_load(&comm->last_record), rank);
}

void wf_record_group_begin(weft_comm *comm)
{
    comm->group_record =
        atomic_load_explicit(&comm->context->trace->segment->next, memory_order_relaxed);
}

void wf_record_group_start(weft_comm *comm)
{
    wf_trace_start_chain(comm->context->trace,
                         atomic_load_explicit(&comm->group_chain, memory_order_relaxed));
}

void wf_record_group_end(weft_comm *comm, weft_status status)
{
    struct wf_trace *trace = comm->context->trace;
    uint64_t first = comm->group_record;
    uint64_t newest = atomic_exchange_explicit(&comm->group_chain, 0, memory_order_relaxed);

    comm->group_record = WF_NO_RECORD;
    if (status != WEFT_OK)
        wf_trace_fail_since(trace, first, comm->number, status);
    else if (newest != 0)
        wf_trace_finish_chain(trace, newest, 0, true);
}
