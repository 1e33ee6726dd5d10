/* shm_mailbox.c - putting entries into mailboxes and taking them out. */
#include "shm_mailbox.h"

#include <string.h>

/* The word in which FROM publishes its mailbox for TO: its offset plus one, or 0 before it exists.
 */
static _Atomic(uint64_t) *mailbox_word(const struct cpu_shm_group *group, int32_t from, int32_t to)
{
    return (_Atomic(uint64_t) *)(group->peers[from].control->slots +
                                 SHM_SLOTS * group->slot_bytes) +
           to;
}

static weft_status open_mailbox(struct cpu_shm_group *group, struct cpu_shm_line *line,
                                int32_t peer)
{
    void *memory = NULL;

    PLUG_TRY(cpu_heap_allocate(group->heap, sizeof *line->out, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, sizeof *line->out);
    line->out = memory;
    atomic_store(mailbox_word(group, group->rank, peer),
                 (uint64_t)((uint8_t *)memory - group->heap->segment.base) + 1);
    return WEFT_OK;
}

/* A place PEER can read BUFFER at, or a copy of it. */
static weft_status find_place(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer,
                              struct cpu_shm_address *place)
{
    const struct cpu_shm_peer *peer = &group->peers[transfer->peer];
    const void *memory = transfer->buffer;
    bool shared = cpu_heap_holds(group->heap, memory, transfer->bytes);

    if (!shared && !peer->same_process && !peer->reads_us) {
        PLUG_TRY(
            cpu_heap_allocate(group->heap, transfer->bytes, WEFT_MEMORY_DEVICE, &transfer->stage));
        memcpy(transfer->stage, memory, transfer->bytes);
        memory = transfer->stage;
        shared = true;
    }
    place->pointer = (uint64_t)(uintptr_t)memory;
    place->offset =
        shared ? (uint64_t)((const uint8_t *)memory - group->heap->segment.base) : SHM_NOWHERE;
    return WEFT_OK;
}

static weft_status fill_entry(struct cpu_shm_group *group, struct cpu_shm_line *line,
                              struct cpu_shm_transfer *transfer)
{
    struct cpu_shm_entry *entry = &line->out->entries[line->posted % MAILBOX_ENTRIES];

    entry->bytes = transfer->bytes;
    entry->tag = transfer->tag;
    entry->dtype = transfer->dtype;
    if (transfer->bytes <= MAILBOX_INLINE) {
        entry->carriage = MAILBOX_IN_ENTRY;
        if (transfer->bytes > 0) memcpy(entry->data, transfer->buffer, transfer->bytes);
        transfer->done = true;
    } else {
        PLUG_TRY(find_place(group, transfer, &entry->place));
        entry->carriage = MAILBOX_BY_REFERENCE;
        entry->ack = (uint32_t)__builtin_ctzll(~line->acks_used);
        line->acks_used |= UINT64_C(1) << entry->ack;
        transfer->ack = entry->ack;
    }
    transfer->number = ++line->posted;
    transfer->posted = true;
    atomic_store(&entry->number, transfer->number);
    cpu_shm_ring(group, transfer->peer);
    return WEFT_OK;
}

weft_status cpu_shm_mailbox_post(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer)
{
    struct cpu_shm_line *line = &group->mailboxes->lines[transfer->peer];

    if (line->out == NULL) PLUG_TRY(open_mailbox(group, line, transfer->peer));
    if (line->posted - atomic_load(&line->out->taken) >= MAILBOX_ENTRIES) return WEFT_OK;
    if (transfer->bytes > MAILBOX_INLINE && line->acks_used == UINT64_MAX) return WEFT_OK;
    return fill_entry(group, line, transfer);
}

void cpu_shm_mailbox_settle(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer)
{
    struct cpu_shm_line *line = &group->mailboxes->lines[transfer->peer];

    if (transfer->done || atomic_load(&line->out->acks[transfer->ack]) != transfer->number) return;
    line->acks_used &= ~(UINT64_C(1) << transfer->ack);
    if (transfer->stage != NULL) cpu_heap_free(group->heap, transfer->stage);
    transfer->stage = NULL;
    transfer->done = true;
}

/* The entry next in line, or NULL. */
static struct cpu_shm_entry *next_entry(struct cpu_shm_group *group, struct cpu_shm_line *line,
                                        int32_t peer)
{
    struct cpu_shm_entry *entry;

    if (line->in == NULL) {
        uint64_t offset = atomic_load(mailbox_word(group, peer, group->rank));

        if (offset == 0) return NULL;
        line->in = (struct cpu_shm_mailbox *)(group->peers[peer].heap + offset - 1);
    }
    entry = &line->in->entries[line->taken % MAILBOX_ENTRIES];
    return atomic_load(&entry->number) == line->taken + 1 ? entry : NULL;
}

static void took_entry(struct cpu_shm_group *group, struct cpu_shm_line *line, int32_t peer)
{
    atomic_store(&line->in->taken, ++line->taken);
    cpu_shm_ring(group, peer);
}

static weft_status keep_aside(struct cpu_shm_line *line, const struct cpu_shm_entry *entry)
{
    size_t data = entry->carriage == MAILBOX_IN_ENTRY ? entry->bytes : 0;
    struct cpu_shm_early *early = plug_alloc(sizeof *early + data);

    if (early == NULL) return plug_fail_memory(sizeof *early + data);
    early->number = line->taken + 1;
    early->bytes = entry->bytes;
    early->tag = entry->tag;
    early->dtype = entry->dtype;
    early->carriage = entry->carriage;
    early->ack = entry->ack;
    early->place = entry->place;
    if (data > 0) memcpy(early->data, entry->data, data);
    *line->early_end = early;
    line->early_end = &early->next;
    return WEFT_OK;
}

/* Read a message where its sender has it. */
static weft_status read_data(struct cpu_shm_group *group, const struct cpu_shm_transfer *transfer,
                             const struct cpu_shm_early *head)
{
    weft_status status;

    PLUG_TRY(cpu_shm_access_begin(group, transfer->peer));
    status = cpu_shm_read(group, transfer->peer, &head->place, 0, transfer->buffer, head->bytes);
    cpu_shm_access_end(group, transfer->peer);
    return status == WEFT_OK ? cpu_shm_still_there(group, transfer->peer) : status;
}

static weft_status read_message(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer,
                                const struct cpu_shm_early *head, const unsigned char *data)
{
    struct cpu_shm_line *line = &group->mailboxes->lines[transfer->peer];

    if (head->bytes != transfer->bytes || head->dtype != transfer->dtype)
        return cpu_shm_fail(group, WEFT_ERR_MISMATCH,
                            "message with tag %u: rank %d sends %llu bytes of %s, rank %d receives "
                            "%llu bytes of %s",
                            transfer->tag, (int)group->peers[transfer->peer].name,
                            (unsigned long long)head->bytes, kit_dtype_name(head->dtype),
                            (int)group->peers[group->rank].name,
                            (unsigned long long)transfer->bytes, kit_dtype_name(transfer->dtype));
    if (head->carriage == MAILBOX_IN_ENTRY) {
        if (head->bytes > 0) memcpy(transfer->buffer, data, head->bytes);
    } else {
        PLUG_TRY(read_data(group, transfer, head));
        atomic_store(&line->in->acks[head->ack], head->number);
        cpu_shm_ring(group, transfer->peer);
    }
    transfer->done = true;
    return WEFT_OK;
}

weft_status cpu_shm_mailbox_find(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer)
{
    struct cpu_shm_line *line = &group->mailboxes->lines[transfer->peer];
    struct cpu_shm_early **at = &line->early, *early;
    weft_status status;

    while (*at != NULL && (*at)->tag != transfer->tag)
        at = &(*at)->next;
    early = *at;
    if (early == NULL) return WEFT_OK;
    *at = early->next;
    if (line->early_end == &early->next) line->early_end = at;
    status = read_message(group, transfer, early, early->data);
    plug_free(early);
    return status;
}

/* The receive that was asked for first among those LETTER may be for. */
static struct cpu_shm_transfer *find_receiver(const struct cpu_shm_mailboxes *mailboxes,
                                              int32_t peer, const struct cpu_shm_entry *entry)
{
    struct cpu_shm_transfer *receive = mailboxes->receives;

    while (receive != NULL &&
           (receive->done || receive->peer != peer || receive->tag != entry->tag))
        receive = receive->next;
    return receive;
}

weft_status cpu_shm_mailbox_empty(struct cpu_shm_group *group, int32_t peer)
{
    struct cpu_shm_line *line = &group->mailboxes->lines[peer];
    struct cpu_shm_entry *entry;

    while ((entry = next_entry(group, line, peer)) != NULL) {
        struct cpu_shm_transfer *receive = find_receiver(group->mailboxes, peer, entry);

        if (receive == NULL) {
            PLUG_TRY(keep_aside(line, entry));
        } else {
            struct cpu_shm_early head = {.number = line->taken + 1,
                                         .bytes = entry->bytes,
                                         .dtype = entry->dtype,
                                         .carriage = entry->carriage,
                                         .ack = entry->ack,
                                         .place = entry->place};

            PLUG_TRY(read_message(group, receive, &head, entry->data));
        }
        took_entry(group, line, peer);
    }
    return WEFT_OK;
}
