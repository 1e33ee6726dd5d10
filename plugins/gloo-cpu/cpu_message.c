/* cpu_message.c - sending and receiving: now, on a stream, or in a group. */
#include "comm.h"

#include <string.h>

struct task {
    struct wf_cpu_comm *comm;
    struct wf_shm_transfer transfer;
};

void wf_cpu_transfers_start(struct wf_cpu_comm *comm, struct wf_shm_transfer *transfers,
                            size_t count, struct wf_hosts_mail **mail)
{
    *mail = NULL;
    if (comm->hosts == 1) {
        wf_shm_transfer_start(&comm->group, transfers, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (transfers[i].peer >= 0) wf_shm_transfer_start(&comm->group, &transfers[i], 1);
    wf_hosts_mail_start(comm, transfers, count, mail);
}

/* Within the host first: those move on only while somebody waits. */
weft_status wf_cpu_transfers_wait(struct wf_cpu_comm *comm, struct wf_shm_transfer *transfers,
                                  size_t count, struct wf_hosts_mail *mail)
{
    weft_status status = WEFT_OK, last;

    if (comm->hosts == 1) return wf_shm_transfer_wait(&comm->group, transfers, count);
    for (size_t i = 0; i < count; i++) {
        if (transfers[i].peer < 0) continue;
        last = wf_shm_transfer_wait(&comm->group, &transfers[i], 1);
        if (status == WEFT_OK) status = last;
    }
    last = wf_hosts_mail_wait(comm, mail);
    return status == WEFT_OK ? last : status;
}

static void run_task(void *argument, struct wf_cpu_error *error)
{
    struct task *task = argument;
    struct wf_hosts_mail *mail;

    wf_cpu_transfers_start(task->comm, &task->transfer, 1, &mail);
    error->status = wf_cpu_transfers_wait(task->comm, &task->transfer, 1, mail);
    if (error->status != WEFT_OK) memcpy(error->text, wf_cpu_last_words(), sizeof error->text);
}

/* A place in the group, or for ranks of other hosts -1 - PEER. */
static int32_t address_of(const struct wf_cpu_comm *comm, int32_t peer)
{
    return comm->places[peer] >= 0 ? comm->places[peer] : -1 - peer;
}

static weft_status check_message(const struct wf_cpu_comm *comm, const weft_message *message,
                                 const char *name)
{
    if (message->dtype >= WEFT_DTYPE_COUNT)
        return wf_cpu_fail(WEFT_ERR_UNSUPPORTED, "%s: dtype %u is unknown", name, message->dtype);
    if (message->peer < 0 || message->peer >= comm->size)
        return wf_cpu_fail(WEFT_ERR_INVALID, "%s: peer %d of %d ranks", name, (int)message->peer,
                           (int)comm->size);
    if (message->count > 0 && message->buffer == NULL)
        return wf_cpu_fail(WEFT_ERR_INVALID, "%s: buffer is NULL", name);
    return WEFT_OK;
}

static weft_status begin(struct wf_cpu_comm *comm, const weft_message *given, bool sends)
{
    const char *name = sends ? "send" : "receive";
    struct task task = {.comm = comm};
    weft_message message;
    weft_status status;

    wf_cpu_take_struct(&message, sizeof message, given);
    CPU_TRY(wf_shm_fault(&comm->group));
    status = check_message(comm, &message, name);
    task.transfer =
        (struct wf_shm_transfer){.buffer = message.buffer,
                                 .bytes = message.count * wf_abi_dtype_bytes(message.dtype),
                                 .peer = status == WEFT_OK ? address_of(comm, message.peer) : 0,
                                 .tag = message.tag,
                                 .dtype = message.dtype,
                                 .sends = sends};
    if (status == WEFT_OK && comm->group_depth > 0)
        status = wf_cpu_group_add_transfer(comm, &task.transfer, message.stream);
    else if (status == WEFT_OK)
        return wf_cpu_stream_run_counted(message.stream, &comm->under_way, run_task, &task,
                                         sizeof task, NULL, 0);
    if (status != WEFT_OK) wf_cpu_group_fail(comm, status);
    return status;
}

weft_status wf_cpu_comm_send(void *comm, const weft_message *message)
{
    return begin(comm, message, true);
}

weft_status wf_cpu_comm_receive(void *comm, const weft_message *message)
{
    return begin(comm, message, false);
}
