/* hosts_mail.c - messages between ranks of different hosts.
 *
 * The slot of a message is made of its tag and a hash of its length, so that messages of different
 * lengths do not match: Gloo cannot handle such a match.  They wait until the time limit instead.
 * With WEFT_COMM_CHECK both sides also send labels, which detect the mismatch at once. */
#include "hosts.h"

#include <stdio.h>
#include <string.h>

/* The description of a message by one side. */
struct label {
    uint64_t bytes;
    uint32_t dtype, tag;
};

struct cpu_hosts_mail {
    weft_status status; /* of the start */
    struct gloo_failure failure;
    struct gloo_work *labels, *data;
    size_t count;
    const struct cpu_shm_transfer **transfers; /* those to and from other hosts */
    struct label *ours, *theirs;
    struct gloo_part *sends, *receives; /* data, followed by labels */
    uint32_t send_count, receive_count;
};

enum { SENDERS_LABEL = 0xfffffe, RECEIVERS_LABEL = 0xffffff };

static uint64_t slot_of(uint32_t tag, uint32_t low)
{
    return (uint64_t)tag << 24 | low;
}

static uint32_t hash_bytes(uint64_t bytes)
{
    return (uint32_t)((bytes * UINT64_C(0x9e3779b97f4a7c15)) >> 40) % SENDERS_LABEL;
}

static void *take(unsigned char **room, size_t bytes)
{
    void *taken = *room;

    *room += bytes;
    return taken;
}

/* Allocate all arrays in one block. */
static struct cpu_hosts_mail *open_mail(size_t count)
{
    size_t each =
        sizeof(struct cpu_shm_transfer *) + 2 * sizeof(struct label) + 4 * sizeof(struct gloo_part);
    unsigned char *room = plug_alloc(sizeof(struct cpu_hosts_mail) + count * each);
    struct cpu_hosts_mail *mail;

    if (room == NULL) return NULL;
    mail = take(&room, sizeof *mail);
    mail->sends = take(&room, 2 * count * sizeof *mail->sends);
    mail->receives = take(&room, 2 * count * sizeof *mail->receives);
    mail->ours = take(&room, count * sizeof *mail->ours);
    mail->theirs = take(&room, count * sizeof *mail->theirs);
    mail->transfers = take(&room, count * sizeof(struct cpu_shm_transfer *));
    return mail;
}

static void add(struct cpu_hosts_mail *mail, const struct cpu_shm_transfer *transfer)
{
    struct gloo_part part = {.peer = -1 - transfer->peer,
                             .slot = slot_of(transfer->tag, hash_bytes(transfer->bytes)),
                             .data = transfer->buffer,
                             .bytes = transfer->bytes};

    mail->ours[mail->count] = (struct label){transfer->bytes, transfer->dtype, transfer->tag};
    mail->transfers[mail->count++] = transfer;
    if (transfer->sends)
        mail->sends[mail->send_count++] = part;
    else
        mail->receives[mail->receive_count++] = part;
}

static weft_status start_labels(const struct cpu_hosts *hosts, struct cpu_hosts_mail *mail)
{
    struct gloo_part *sends = mail->sends + mail->send_count;
    struct gloo_part *receives = mail->receives + mail->receive_count;

    for (size_t i = 0; i < mail->count; i++) {
        const struct cpu_shm_transfer *transfer = mail->transfers[i];
        struct gloo_part part = {.peer = -1 - transfer->peer, .bytes = sizeof(struct label)};

        part.data = &mail->ours[i];
        part.slot = slot_of(transfer->tag, transfer->sends ? SENDERS_LABEL : RECEIVERS_LABEL);
        sends[i] = part;
        part.data = &mail->theirs[i];
        part.slot = slot_of(transfer->tag, transfer->sends ? RECEIVERS_LABEL : SENDERS_LABEL);
        receives[i] = part;
    }
    return hosts->bridge->start(hosts->mesh, (uint32_t)mail->count, sends, (uint32_t)mail->count,
                                receives, &mail->labels, &mail->failure);
}

void cpu_hosts_mail_start(struct cpu_comm *comm, const struct cpu_shm_transfer *transfers,
                          size_t count, struct cpu_hosts_mail **out)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct cpu_hosts_mail *mail;
    size_t leaving = 0;

    *out = NULL;
    for (size_t i = 0; i < count; i++)
        leaving += transfers[i].peer < 0;
    if (leaving == 0) return;
    mail = open_mail(leaving);
    if (mail == NULL) {
        cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory for %zu messages", leaving);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (transfers[i].peer < 0) add(mail, &transfers[i]);
    mail->status =
        hosts->bridge->start(hosts->mesh, mail->send_count, mail->sends, mail->receive_count,
                             mail->receives, &mail->data, &mail->failure);
    if (mail->status == WEFT_OK && (comm->group.flags & WEFT_COMM_CHECK))
        mail->status = start_labels(hosts, mail);
    *out = mail;
}

static weft_status compare_labels(struct cpu_comm *comm, const struct cpu_hosts_mail *mail)
{
    for (size_t i = 0; i < mail->count; i++) {
        const struct cpu_shm_transfer *transfer = mail->transfers[i];
        const struct label *sent = transfer->sends ? &mail->ours[i] : &mail->theirs[i];
        const struct label *wanted = transfer->sends ? &mail->theirs[i] : &mail->ours[i];
        int peer = (int)comm->names[-1 - transfer->peer];

        if (sent->bytes == wanted->bytes && sent->dtype == wanted->dtype) continue;
        return cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                            "message with tag %u: rank %d sends %llu bytes of %s, rank %d expects "
                            "%llu bytes of %s",
                            transfer->tag, transfer->sends ? (int)comm->world_rank : peer,
                            (unsigned long long)sent->bytes, plug_dtype_name(sent->dtype),
                            transfer->sends ? peer : (int)comm->world_rank,
                            (unsigned long long)wanted->bytes, plug_dtype_name(wanted->dtype));
    }
    return WEFT_OK;
}

static weft_status wait(struct cpu_comm *comm, struct cpu_hosts_mail *mail)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct gloo_work *labels = mail->labels, *data = mail->data;

    if (mail->status != WEFT_OK) return mail->status;
    mail->labels = NULL;
    mail->status = hosts->bridge->wait(hosts->mesh, labels, &mail->failure);
    if (mail->status != WEFT_OK) return mail->status;
    if (labels != NULL) PLUG_TRY(compare_labels(comm, mail));
    mail->data = NULL;
    mail->status = hosts->bridge->wait(hosts->mesh, data, &mail->failure);
    return mail->status;
}

weft_status cpu_hosts_mail_wait(struct cpu_comm *comm, struct cpu_hosts_mail *mail)
{
    const struct cpu_hosts *hosts = comm->other_hosts;
    struct gloo_failure ignored;
    weft_status status;
    char doing[48];

    if (mail == NULL) return cpu_shm_fault(&comm->group);
    status = wait(comm, mail);
    if (mail->status != WEFT_OK) {
        const struct cpu_shm_transfer *transfer = mail->transfers[0];

        snprintf(doing, sizeof doing, "%s with tag %u", transfer->sends ? "send" : "receive",
                 transfer->tag);
        status = cpu_hosts_fail(comm, true, doing, &mail->failure);
    }
    if (status != WEFT_OK) {
        cpu_hosts_disconnect(comm); /* ends the remaining messages */
        (void)hosts->bridge->wait(hosts->mesh, mail->labels, &ignored);
        (void)hosts->bridge->wait(hosts->mesh, mail->data, &ignored);
    }
    plug_free(mail);
    return status;
}
