/* hosts_messages.c - messages between ranks of different hosts.
 *
 * With WEFT_COMM_CHECK both sides also send labels, so that both detect at once that they expect
 * different messages. */
#include "hosts.h"

#include <stdio.h>
#include <string.h>

/* The description of a message by one side. */
struct label {
    uint64_t bytes;
    uint32_t dtype, tag;
};

struct cpu_hosts_messages {
    weft_status status; /* of the start */
    struct net_failure failure;
    struct net_work *labels, *data;
    size_t count;
    const struct cpu_shm_transfer **transfers; /* those to and from other hosts */
    struct label *ours, *theirs;
    struct net_part *sends, *receives; /* data, followed by labels */
    uint32_t send_count, receive_count;
};

static void *take(unsigned char **room, size_t bytes)
{
    void *taken = *room;

    *room += bytes;
    return taken;
}

/* Allocate all arrays in one block. */
static struct cpu_hosts_messages *allocate_messages(size_t count)
{
    size_t each =
        sizeof(struct cpu_shm_transfer *) + 2 * sizeof(struct label) + 4 * sizeof(struct net_part);
    unsigned char *room = plug_alloc(sizeof(struct cpu_hosts_messages) + count * each);
    struct cpu_hosts_messages *messages;

    if (room == NULL) return NULL;
    messages = take(&room, sizeof *messages);
    messages->sends = take(&room, 2 * count * sizeof *messages->sends);
    messages->receives = take(&room, 2 * count * sizeof *messages->receives);
    messages->ours = take(&room, count * sizeof *messages->ours);
    messages->theirs = take(&room, count * sizeof *messages->theirs);
    messages->transfers = take(&room, count * sizeof(struct cpu_shm_transfer *));
    return messages;
}

static void add(struct cpu_hosts_messages *messages, const struct cpu_shm_transfer *transfer)
{
    struct net_part part = {.peer = -1 - transfer->peer,
                            .kind = NET_MESSAGE,
                            .tag = transfer->tag,
                            .data = transfer->buffer,
                            .bytes = transfer->bytes};

    messages->ours[messages->count] =
        (struct label){transfer->bytes, transfer->dtype, transfer->tag};
    messages->transfers[messages->count++] = transfer;
    if (transfer->sends)
        messages->sends[messages->send_count++] = part;
    else
        messages->receives[messages->receive_count++] = part;
}

static weft_status start_labels(const struct cpu_hosts *hosts, struct cpu_hosts_messages *messages)
{
    struct net_part *sends = messages->sends + messages->send_count;
    struct net_part *receives = messages->receives + messages->receive_count;

    for (size_t i = 0; i < messages->count; i++) {
        const struct cpu_shm_transfer *transfer = messages->transfers[i];
        struct net_part part = {
            .peer = -1 - transfer->peer, .tag = transfer->tag, .bytes = sizeof(struct label)};

        part.data = &messages->ours[i];
        part.kind = transfer->sends ? NET_SENDERS_LABEL : NET_RECEIVERS_LABEL;
        sends[i] = part;
        part.data = &messages->theirs[i];
        part.kind = transfer->sends ? NET_RECEIVERS_LABEL : NET_SENDERS_LABEL;
        receives[i] = part;
    }
    return hosts->carrier->start(hosts->network, (uint32_t)messages->count, sends,
                                 (uint32_t)messages->count, receives, &messages->labels,
                                 &messages->failure);
}

void cpu_hosts_messages_start(struct cpu_comm *comm, const struct cpu_shm_transfer *transfers,
                              size_t count, struct cpu_hosts_messages **out)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_hosts_messages *messages;
    size_t leaving = 0;

    *out = NULL;
    for (size_t i = 0; i < count; i++)
        leaving += transfers[i].peer < 0;
    if (leaving == 0) return;
    messages = allocate_messages(leaving);
    if (messages == NULL) {
        cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory for %zu messages", leaving);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (transfers[i].peer < 0) add(messages, &transfers[i]);
    messages->status = hosts->carrier->start(hosts->network, messages->send_count, messages->sends,
                                             messages->receive_count, messages->receives,
                                             &messages->data, &messages->failure);
    if (messages->status == WEFT_OK && (comm->group.flags & WEFT_COMM_CHECK))
        messages->status = start_labels(hosts, messages);
    *out = messages;
}

static weft_status compare_labels(struct cpu_comm *comm, const struct cpu_hosts_messages *messages)
{
    for (size_t i = 0; i < messages->count; i++) {
        const struct cpu_shm_transfer *transfer = messages->transfers[i];
        const struct label *sent = transfer->sends ? &messages->ours[i] : &messages->theirs[i];
        const struct label *wanted = transfer->sends ? &messages->theirs[i] : &messages->ours[i];
        int peer = (int)comm->names[-1 - transfer->peer];

        if (sent->bytes == wanted->bytes && sent->dtype == wanted->dtype) continue;
        return cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                            "message with tag %u: rank %d sends %llu bytes of %s, rank %d expects "
                            "%llu bytes of %s",
                            transfer->tag, transfer->sends ? (int)comm->world_rank : peer,
                            (unsigned long long)sent->bytes, kit_dtype_name(sent->dtype),
                            transfer->sends ? peer : (int)comm->world_rank,
                            (unsigned long long)wanted->bytes, kit_dtype_name(wanted->dtype));
    }
    return WEFT_OK;
}

static weft_status wait(struct cpu_comm *comm, struct cpu_hosts_messages *messages)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct net_work *labels = messages->labels, *data = messages->data;

    if (messages->status != WEFT_OK) return messages->status;
    messages->labels = NULL;
    messages->status = hosts->carrier->wait(hosts->network, labels, &messages->failure);
    if (messages->status != WEFT_OK) return messages->status;
    if (labels != NULL) PLUG_TRY(compare_labels(comm, messages));
    messages->data = NULL;
    messages->status = hosts->carrier->wait(hosts->network, data, &messages->failure);
    return messages->status;
}

weft_status cpu_hosts_messages_wait(struct cpu_comm *comm, struct cpu_hosts_messages *messages)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct net_failure ignored;
    weft_status status;
    char doing[48];

    if (messages == NULL) return cpu_shm_fault(&comm->group);
    status = wait(comm, messages);
    if (messages->status != WEFT_OK) {
        const struct cpu_shm_transfer *transfer = messages->transfers[0];

        snprintf(doing, sizeof doing, "%s with tag %u", transfer->sends ? "send" : "receive",
                 transfer->tag);
        status = cpu_hosts_fail(comm, doing, &messages->failure);
    }
    if (status != WEFT_OK) {
        cpu_hosts_disconnect(comm); /* ends the remaining messages */
        (void)hosts->carrier->wait(hosts->network, messages->labels, &ignored);
        (void)hosts->carrier->wait(hosts->network, messages->data, &ignored);
    }
    plug_free(messages);
    return status;
}
