/* cpu_group.c - operations that start together.
 *
 * At the end of the outermost group all messages are started, the collectives run in the order
 * called, and then the group waits for the messages.  A group over several streams runs on one of
 * them.  It starts after the earlier work of the other streams, and their later work starts after
 * it. */
#include "cpu_comm.h"

#include <string.h>

/* Room for one more entry of BYTES in ITEMS, which has ROOM. */
static weft_status make_room(void **items, size_t count, size_t *room, size_t bytes)
{
    size_t more = *room == 0 ? 8 : 2 * *room;
    void *grown;

    if (count < *room) return WEFT_OK;
    grown = plug_alloc(more * bytes);
    if (grown == NULL) return plug_fail_memory(more * bytes);
    if (count > 0) memcpy(grown, *items, count * bytes);
    plug_free(*items);
    *items = grown;
    *room = more;
    return WEFT_OK;
}

static weft_status add_stream(struct cpu_batch *batch, void *stream)
{
    void *items = batch->streams;
    weft_status status;

    for (size_t i = 0; i < batch->stream_count; i++)
        if (batch->streams[i] == stream) return WEFT_OK;
    status = make_room(&items, batch->stream_count, &batch->stream_room, sizeof stream);
    batch->streams = items;
    if (status == WEFT_OK) batch->streams[batch->stream_count++] = stream;
    return status;
}

weft_status cpu_group_add_call(struct cpu_comm *comm, const struct cpu_call *call, void *stream)
{
    struct cpu_batch *batch = &comm->batch;
    void *items = batch->calls;
    weft_status status = make_room(&items, batch->call_count, &batch->call_room, sizeof *call);

    batch->calls = items;
    if (status == WEFT_OK) status = add_stream(batch, stream);
    if (status == WEFT_OK)
        batch->calls[batch->call_count++] = *call;
    else
        plug_free(call->counts);
    return status;
}

weft_status cpu_group_add_transfer(struct cpu_comm *comm, const struct cpu_shm_transfer *transfer,
                                   void *stream)
{
    struct cpu_batch *batch = &comm->batch;
    void *items = batch->transfers;
    weft_status status =
        make_room(&items, batch->transfer_count, &batch->transfer_room, sizeof *transfer);

    batch->transfers = items;
    if (status == WEFT_OK) status = add_stream(batch, stream);
    if (status == WEFT_OK) batch->transfers[batch->transfer_count++] = *transfer;
    return status;
}

void cpu_group_fail(struct cpu_comm *comm, weft_status status)
{
    struct cpu_error *error = &comm->batch.error;

    if (comm->group_depth == 0 || error->status != WEFT_OK) return;
    error->status = status;
    memcpy(error->text, plug_last_text(), sizeof error->text);
}

static void free_batch(struct cpu_batch *batch)
{
    for (size_t i = 0; i < batch->call_count; i++)
        plug_free(batch->calls[i].counts);
    plug_free(batch->calls);
    plug_free(batch->transfers);
    plug_free(batch->streams);
    memset(batch, 0, sizeof *batch);
}

void cpu_group_clear(struct cpu_comm *comm)
{
    free_batch(&comm->batch);
}

static weft_status run_batch(struct cpu_batch *batch)
{
    struct cpu_comm *comm = batch->comm;
    struct cpu_hosts_messages *messages;
    weft_status status = WEFT_OK, last;

    cpu_transfers_start(comm, batch->transfers, batch->transfer_count, &messages);
    for (size_t i = 0; i < batch->call_count; i++) {
        struct cpu_call *call = &batch->calls[i];

        if (call->op.scale != NULL) call->op.scale = call->scale;
        last = cpu_call_run(comm, call->turn, &call->op);
        if (status == WEFT_OK) status = last;
    }
    last = cpu_transfers_wait(comm, batch->transfers, batch->transfer_count, messages);
    return status == WEFT_OK ? last : status;
}

static void run_task(void *argument, struct cpu_error *error)
{
    struct cpu_batch *batch = argument;

    error->status = run_batch(batch);
    if (error->status != WEFT_OK) memcpy(error->text, plug_last_text(), sizeof error->text);
    free_batch(batch);
}

static void issue_turns(struct cpu_batch *batch)
{
    for (size_t i = 0; i < batch->call_count; i++)
        batch->calls[i].turn = batch->comm->issued++;
}

static void *first_stream(const struct cpu_batch *batch)
{
    for (size_t i = 0; i < batch->stream_count; i++)
        if (batch->streams[i] != NULL) return batch->streams[i];
    return NULL;
}

/* Make CARRIER wait for the work that is now on the other streams. */
static weft_status join_streams(const struct cpu_batch *batch, void *carrier, void *event)
{
    for (size_t i = 0; i < batch->stream_count; i++) {
        if (batch->streams[i] == NULL || batch->streams[i] == carrier) continue;
        PLUG_TRY(cpu_event_record(NULL, event, batch->streams[i]));
        PLUG_TRY(cpu_stream_wait_event(NULL, carrier, event));
    }
    return WEFT_OK;
}

/* Make the other streams, and the caller for stream NULL, wait for CARRIER. */
static weft_status part_streams(void *const *streams, size_t count, void *carrier, void *event)
{
    PLUG_TRY(cpu_event_record(NULL, event, carrier));
    for (size_t i = 0; i < count; i++)
        if (streams[i] != carrier) PLUG_TRY(cpu_stream_wait_event(NULL, streams[i], event));
    return WEFT_OK;
}

static weft_status launch(struct cpu_batch *batch, void *carrier)
{
    void **streams = batch->streams, *event = NULL;
    size_t count = batch->stream_count;
    bool inline_too = false;
    weft_status status;

    for (size_t i = 0; i < count; i++)
        inline_too = inline_too || streams[i] == NULL;
    PLUG_TRY(cpu_event_create(NULL, &event));
    status = join_streams(batch, carrier, event);
    if (status == WEFT_OK) {
        issue_turns(batch);
        batch->streams = NULL;
        status = cpu_stream_run_counted(carrier, &batch->comm->under_way, run_task, batch,
                                        sizeof *batch, NULL, 0);
        if (status == WEFT_OK) {
            memset(batch, 0, sizeof *batch);
            status = part_streams(streams, count, carrier, event);
            if (status == WEFT_OK && inline_too) status = cpu_event_wait(NULL, event, WEFT_FOREVER);
        } else {
            batch->comm->issued -= batch->call_count;
        }
        plug_free(streams);
    }
    cpu_event_destroy(NULL, event);
    return status;
}

weft_status cpu_comm_group_begin(void *handle)
{
    struct cpu_comm *comm = handle;

    if (comm->group_depth == 0) comm->batch.comm = comm;
    comm->group_depth++;
    return WEFT_OK;
}

weft_status cpu_comm_group_end(void *handle)
{
    struct cpu_comm *comm = handle;
    struct cpu_batch *batch = &comm->batch;
    void *carrier;
    weft_status status;

    if (comm->group_depth == 0) return plug_fail(WEFT_ERR_INVALID, "group_end without group_begin");
    if (--comm->group_depth > 0) return WEFT_OK;
    status = cpu_error_report(&batch->error);
    if (status == WEFT_OK) status = cpu_shm_fault(&comm->group);
    carrier = first_stream(batch);
    if (status == WEFT_OK && carrier != NULL) {
        status = launch(batch, carrier);
    } else if (status == WEFT_OK) {
        issue_turns(batch);
        status = run_batch(batch);
    }
    free_batch(batch);
    return status;
}
