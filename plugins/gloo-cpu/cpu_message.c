/* cpu_message.c - sending and receiving: now, on a stream, or in a group. */
#include "comm.h"

#include <string.h>

struct task {
    struct wf_cpu_comm *comm;
    struct wf_shm_transfer transfer;
};

static void run_task(void *argument, struct wf_cpu_error *error)
{
    struct task *task = argument;
    struct wf_shm_group *group = &task->comm->group;

    wf_shm_transfer_start(group, &task->transfer, 1);
    error->status = wf_shm_transfer_wait(group, &task->transfer, 1);
    if (error->status != WEFT_OK) memcpy(error->text, group->fault.text, sizeof error->text);
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
                                 .bytes = message.count * wf_cpu_dtype_bytes(message.dtype),
                                 .peer = status == WEFT_OK ? comm->places[message.peer] : 0,
                                 .tag = message.tag,
                                 .dtype = message.dtype,
                                 .sends = sends};
    if (status == WEFT_OK && comm->group_depth > 0)
        status = wf_cpu_group_add_transfer(comm, &task.transfer, message.stream);
    else if (status == WEFT_OK)
        return wf_cpu_stream_run(message.stream, run_task, &task, sizeof task);
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
