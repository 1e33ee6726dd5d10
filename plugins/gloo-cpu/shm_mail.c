/* shm_mail.c - putting letters into mailboxes and taking them out. */
#include "mail.h"

#include <string.h>

/* Where FROM tells TO its mailbox: its offset plus one, or 0 while there is none. */
static _Atomic(uint64_t) *mailbox_word(const struct wf_shm_group *group, int32_t from, int32_t to)
{
    return (_Atomic(uint64_t) *)(group->peers[from].board->slots + SHM_SLOTS * group->slot_bytes) +
           to;
}

static weft_status open_mailbox(struct wf_shm_group *group, struct wf_shm_line *line, int32_t peer)
{
    void *memory = NULL;

    CPU_TRY(wf_cpu_heap_allocate(group->heap, sizeof *line->out, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, sizeof *line->out);
    line->out = memory;
    atomic_store(mailbox_word(group, group->rank, peer),
                 (uint64_t)((uint8_t *)memory - group->heap->segment.base) + 1);
    return WEFT_OK;
}

/* A place PEER can read BUFFER at, or a copy of it. */
static weft_status find_place(struct wf_shm_group *group, struct wf_shm_transfer *transfer,
                              struct wf_shm_place *place)
{
    const struct wf_shm_peer *peer = &group->peers[transfer->peer];
    const void *memory = transfer->buffer;
    bool shared = wf_cpu_heap_holds(group->heap, memory, transfer->bytes);

    if (!shared && !peer->same_process && !peer->reads_us) {
        CPU_TRY(wf_cpu_heap_allocate(group->heap, transfer->bytes, WEFT_MEMORY_DEVICE,
                                     &transfer->stage));
        memcpy(transfer->stage, memory, transfer->bytes);
        memory = transfer->stage;
        shared = true;
    }
    place->pointer = (uint64_t)(uintptr_t)memory;
    place->offset =
        shared ? (uint64_t)((const uint8_t *)memory - group->heap->segment.base) : SHM_NOWHERE;
    return WEFT_OK;
}

static weft_status write_letter(struct wf_shm_group *group, struct wf_shm_line *line,
                                struct wf_shm_transfer *transfer)
{
    struct wf_shm_letter *letter = &line->out->letters[line->posted % MAIL_LETTERS];

    letter->bytes = transfer->bytes;
    letter->tag = transfer->tag;
    letter->dtype = transfer->dtype;
    if (transfer->bytes <= MAIL_INLINE) {
        letter->carriage = MAIL_IN_LETTER;
        if (transfer->bytes > 0) memcpy(letter->data, transfer->buffer, transfer->bytes);
        transfer->done = true;
    } else {
        CPU_TRY(find_place(group, transfer, &letter->place));
        letter->carriage = MAIL_BY_REFERENCE;
        letter->ack = (uint32_t)__builtin_ctzll(~line->acks_used);
        line->acks_used |= UINT64_C(1) << letter->ack;
        transfer->ack = letter->ack;
    }
    transfer->number = ++line->posted;
    transfer->posted = true;
    atomic_store(&letter->number, transfer->number);
    wf_shm_ring(group, transfer->peer);
    return WEFT_OK;
}

weft_status wf_shm_mail_post(struct wf_shm_group *group, struct wf_shm_transfer *transfer)
{
    struct wf_shm_line *line = &group->mail->lines[transfer->peer];

    if (line->out == NULL) CPU_TRY(open_mailbox(group, line, transfer->peer));
    if (line->posted - atomic_load(&line->out->taken) >= MAIL_LETTERS) return WEFT_OK;
    if (transfer->bytes > MAIL_INLINE && line->acks_used == UINT64_MAX) return WEFT_OK;
    return write_letter(group, line, transfer);
}

void wf_shm_mail_settle(struct wf_shm_group *group, struct wf_shm_transfer *transfer)
{
    struct wf_shm_line *line = &group->mail->lines[transfer->peer];

    if (transfer->done || atomic_load(&line->out->acks[transfer->ack]) != transfer->number) return;
    line->acks_used &= ~(UINT64_C(1) << transfer->ack);
    if (transfer->stage != NULL) wf_cpu_heap_free(group->heap, transfer->stage);
    transfer->stage = NULL;
    transfer->done = true;
}

/* The letter next in line, or NULL. */
static struct wf_shm_letter *next_letter(struct wf_shm_group *group, struct wf_shm_line *line,
                                         int32_t peer)
{
    struct wf_shm_letter *letter;

    if (line->in == NULL) {
        uint64_t offset = atomic_load(mailbox_word(group, peer, group->rank));

        if (offset == 0) return NULL;
        line->in = (struct wf_shm_mailbox *)(group->peers[peer].heap + offset - 1);
    }
    letter = &line->in->letters[line->taken % MAIL_LETTERS];
    return atomic_load(&letter->number) == line->taken + 1 ? letter : NULL;
}

static void took_letter(struct wf_shm_group *group, struct wf_shm_line *line, int32_t peer)
{
    atomic_store(&line->in->taken, ++line->taken);
    wf_shm_ring(group, peer);
}

static weft_status keep_aside(struct wf_shm_line *line, const struct wf_shm_letter *letter)
{
    size_t data = letter->carriage == MAIL_IN_LETTER ? letter->bytes : 0;
    struct wf_shm_early *early = wf_cpu_alloc(sizeof *early + data);

    if (early == NULL) return wf_cpu_fail_memory(sizeof *early + data);
    early->number = line->taken + 1;
    early->bytes = letter->bytes;
    early->tag = letter->tag;
    early->dtype = letter->dtype;
    early->carriage = letter->carriage;
    early->ack = letter->ack;
    early->place = letter->place;
    if (data > 0) memcpy(early->data, letter->data, data);
    *line->early_end = early;
    line->early_end = &early->next;
    return WEFT_OK;
}

static weft_status read_message(struct wf_shm_group *group, struct wf_shm_transfer *transfer,
                                const struct wf_shm_early *head, const unsigned char *data)
{
    struct wf_shm_line *line = &group->mail->lines[transfer->peer];

    if (head->bytes != transfer->bytes || head->dtype != transfer->dtype)
        return wf_shm_fail(group, WEFT_ERR_MISMATCH,
                           "message with tag %u: rank %d sends %llu bytes of %s, rank %d receives "
                           "%llu bytes of %s",
                           transfer->tag, (int)group->peers[transfer->peer].name,
                           (unsigned long long)head->bytes, wf_abi_dtype_name(head->dtype),
                           (int)group->peers[group->rank].name, (unsigned long long)transfer->bytes,
                           wf_abi_dtype_name(transfer->dtype));
    if (head->carriage == MAIL_IN_LETTER) {
        if (head->bytes > 0) memcpy(transfer->buffer, data, head->bytes);
    } else {
        CPU_TRY(wf_shm_read(group, transfer->peer, &head->place, 0, transfer->buffer, head->bytes));
        CPU_TRY(wf_shm_still_there(group, transfer->peer));
        atomic_store(&line->in->acks[head->ack], head->number);
        wf_shm_ring(group, transfer->peer);
    }
    transfer->done = true;
    return WEFT_OK;
}

weft_status wf_shm_mail_find(struct wf_shm_group *group, struct wf_shm_transfer *transfer)
{
    struct wf_shm_line *line = &group->mail->lines[transfer->peer];
    struct wf_shm_early **at = &line->early, *early;
    weft_status status;

    while (*at != NULL && (*at)->tag != transfer->tag)
        at = &(*at)->next;
    early = *at;
    if (early == NULL) return WEFT_OK;
    *at = early->next;
    if (line->early_end == &early->next) line->early_end = at;
    status = read_message(group, transfer, early, early->data);
    wf_cpu_free(early);
    return status;
}

/* The receive that was asked for first among those LETTER may be for. */
static struct wf_shm_transfer *find_receiver(const struct wf_shm_mail *mail, int32_t peer,
                                             const struct wf_shm_letter *letter)
{
    struct wf_shm_transfer *receive = mail->receives;

    while (receive != NULL &&
           (receive->done || receive->peer != peer || receive->tag != letter->tag))
        receive = receive->next;
    return receive;
}

weft_status wf_shm_mail_empty(struct wf_shm_group *group, int32_t peer)
{
    struct wf_shm_line *line = &group->mail->lines[peer];
    struct wf_shm_letter *letter;

    while ((letter = next_letter(group, line, peer)) != NULL) {
        struct wf_shm_transfer *receive = find_receiver(group->mail, peer, letter);

        if (receive == NULL) {
            CPU_TRY(keep_aside(line, letter));
        } else {
            struct wf_shm_early head = {.number = line->taken + 1,
                                        .bytes = letter->bytes,
                                        .dtype = letter->dtype,
                                        .carriage = letter->carriage,
                                        .ack = letter->ack,
                                        .place = letter->place};

            CPU_TRY(read_message(group, receive, &head, letter->data));
        }
        took_letter(group, line, peer);
    }
    return WEFT_OK;
}
