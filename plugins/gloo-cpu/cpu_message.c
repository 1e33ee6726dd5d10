/* cpu_message.c - sending and receiving: now, on a stream, or in a group. */
#include "cpu_comm.h"

#include <string.h>

struct task {
    struct cpu_comm *comm;
    struct cpu_shm_transfer transfer;
};

void cpu_transfers_start(struct cpu_comm *comm, struct cpu_shm_transfer *transfers, size_t count,
                         struct cpu_hosts_messages **messages)
{
    *messages = NULL;
    if (comm->hosts == 1) {
        cpu_shm_transfer_start(&comm->group, transfers, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (transfers[i].peer >= 0) cpu_shm_transfer_start(&comm->group, &transfers[i], 1);
    cpu_hosts_messages_start(comm, transfers, count, messages);
}

/* Wait for messages within the host first: they progress only during a wait. */
weft_status cpu_transfers_wait(struct cpu_comm *comm, struct cpu_shm_transfer *transfers,
                               size_t count, struct cpu_hosts_messages *messages)
{
    weft_status status = WEFT_OK, last;

    if (comm->hosts == 1) return cpu_shm_transfer_wait(&comm->group, transfers, count);
    for (size_t i = 0; i < count; i++) {
        if (transfers[i].peer < 0) continue;
        last = cpu_shm_transfer_wait(&comm->group, &transfers[i], 1);
        if (status == WEFT_OK) status = last;
    }
    last = cpu_hosts_messages_wait(comm, messages);
    return status == WEFT_OK ? last : status;
}

static void run_task(void *argument, struct cpu_error *error)
{
    struct task *task = argument;
    struct cpu_hosts_messages *messages;

    cpu_transfers_start(task->comm, &task->transfer, 1, &messages);
    error->status = cpu_transfers_wait(task->comm, &task->transfer, 1, messages);
    if (error->status != WEFT_OK) memcpy(error->text, plug_last_text(), sizeof error->text);
}

/* A place in the group, or for ranks of other hosts -1 - PEER. */
static int32_t address_of(const struct cpu_comm *comm, int32_t peer)
{
    return comm->places[peer] >= 0 ? comm->places[peer] : -1 - peer;
}

static weft_status check_message(const struct cpu_comm *comm, const weft_message *message,
                                 const char *name)
{
    if (message->dtype >= WEFT_DTYPE_COUNT)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: dtype %u is unknown", name, message->dtype);
    if (message->peer < 0 || message->peer >= comm->size)
        return plug_fail(WEFT_ERR_INVALID, "%s: peer is %d; the communicator has %d ranks", name,
                         (int)message->peer, (int)comm->size);
    if (message->count > 0 && message->buffer == NULL)
        return plug_fail(WEFT_ERR_INVALID, "%s: buffer is NULL", name);
    return WEFT_OK;
}

static weft_status begin(struct cpu_comm *comm, const weft_message *given, bool sends)
{
    const char *name = sends ? "send" : "receive";
    struct task task = {.comm = comm};
    weft_message message;
    weft_status status;

    plug_take_struct(&message, given, sizeof message);
    PLUG_TRY(cpu_shm_fault(&comm->group));
    status = check_message(comm, &message, name);
    task.transfer =
        (struct cpu_shm_transfer){.buffer = message.buffer,
                                  .bytes = message.count * kit_dtype_bytes(message.dtype),
                                  .peer = status == WEFT_OK ? address_of(comm, message.peer) : 0,
                                  .tag = message.tag,
                                  .dtype = message.dtype,
                                  .sends = sends};
    if (status == WEFT_OK && comm->group_depth > 0)
        status = cpu_group_add_transfer(comm, &task.transfer, message.stream);
    else if (status == WEFT_OK)
        return cpu_stream_run_counted(message.stream, &comm->under_way, run_task, &task,
                                      sizeof task, NULL, 0);
    if (status != WEFT_OK) cpu_group_fail(comm, status);
    return status;
}

weft_status cpu_comm_send(void *comm, const weft_message *message)
{
    return begin(comm, message, true);
}

weft_status cpu_comm_receive(void *comm, const weft_message *message)
{
    return begin(comm, message, false);
}
