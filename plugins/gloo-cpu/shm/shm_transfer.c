/* shm_transfer.c - messages under way, moved on by whoever waits. */
#include "shm_mailbox.h"

#include <stdio.h>

weft_status cpu_shm_mailboxes_open(struct cpu_shm_group *group)
{
    struct cpu_shm_mailboxes *mailboxes = plug_alloc(sizeof *mailboxes);
    size_t bytes = (size_t)group->size * sizeof *mailboxes->lines;

    if (mailboxes == NULL) return plug_fail_memory(sizeof *mailboxes);
    mailboxes->lines = plug_alloc(bytes);
    if (mailboxes->lines == NULL) {
        plug_free(mailboxes);
        return plug_fail_memory(bytes);
    }
    for (int32_t p = 0; p < group->size; p++)
        mailboxes->lines[p].early_end = &mailboxes->lines[p].early;
    mailboxes->sends_end = &mailboxes->sends;
    mailboxes->receives_end = &mailboxes->receives;
    pthread_mutex_init(&mailboxes->lock, NULL);
    group->mailboxes = mailboxes;
    group->progress = cpu_shm_transfer_progress;
    return WEFT_OK;
}

void cpu_shm_mailboxes_close(struct cpu_shm_group *group)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;

    if (mailboxes == NULL) return;
    for (int32_t p = 0; p < group->size; p++)
        while (mailboxes->lines[p].early != NULL) {
            struct cpu_shm_early *early = mailboxes->lines[p].early;

            mailboxes->lines[p].early = early->next;
            plug_free(early);
        }
    pthread_mutex_destroy(&mailboxes->lock);
    plug_free(mailboxes->lines);
    plug_free(mailboxes);
    group->mailboxes = NULL;
}

static void finish(struct cpu_shm_group *group, struct cpu_shm_transfer **at,
                   struct cpu_shm_transfer ***end)
{
    struct cpu_shm_transfer *transfer = *at;

    *at = transfer->next;
    if (*end == &transfer->next) *end = at;
    atomic_fetch_sub(&group->under_way, 1);
}

/* Letters to one peer go in the order asked for: after one that found no room, none. */
static bool post_sends(struct cpu_shm_group *group)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;
    struct cpu_shm_transfer **at = &mailboxes->sends;
    uint64_t full = 0; /* a bit per peer, peers 64 apart sharing one */
    bool moved = false;

    while (*at != NULL) {
        struct cpu_shm_transfer *transfer = *at;
        uint64_t bit = UINT64_C(1) << ((uint32_t)transfer->peer % 64);

        if (!transfer->posted && (full & bit) == 0) {
            weft_status status = cpu_shm_mailbox_post(group, transfer);

            if (status != WEFT_OK)
                cpu_shm_fail(group, status, "send: no shared memory to stage %llu bytes",
                             (unsigned long long)transfer->bytes);
            if (!transfer->posted) full |= bit;
        }
        if (transfer->posted) cpu_shm_mailbox_settle(group, transfer);
        if (transfer->done) {
            finish(group, at, &mailboxes->sends_end);
            moved = true;
        } else {
            at = &transfer->next;
        }
    }
    return moved;
}

/* Messages kept aside came before those in the mailboxes, so they are looked at first. */
static weft_status fetch_all(struct cpu_shm_group *group)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;

    for (struct cpu_shm_transfer *t = mailboxes->receives; t != NULL; t = t->next)
        PLUG_TRY(cpu_shm_mailbox_find(group, t));
    for (struct cpu_shm_transfer *t = mailboxes->receives; t != NULL; t = t->next)
        PLUG_TRY(cpu_shm_mailbox_empty(group, t->peer));
    return WEFT_OK;
}

static bool fetch_receives(struct cpu_shm_group *group)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;
    struct cpu_shm_transfer **at = &mailboxes->receives;
    weft_status status = fetch_all(group);
    bool moved = false;

    if (status != WEFT_OK && !cpu_shm_has_failed(group))
        cpu_shm_fail(group, status, "receive: out of memory");
    while (*at != NULL) {
        if ((*at)->done) {
            finish(group, at, &mailboxes->receives_end);
            moved = true;
        } else {
            at = &(*at)->next;
        }
    }
    return moved;
}

static void move_on(struct cpu_shm_group *group)
{
    bool sent, received;

    if (cpu_shm_has_failed(group)) return;
    sent = post_sends(group);
    received = fetch_receives(group);
    /* Another thread of this rank may sleep until its own transfer is done. */
    if (sent || received) cpu_shm_ring(group, group->rank);
}

void cpu_shm_transfer_progress(void *argument)
{
    struct cpu_shm_group *group = argument;

    pthread_mutex_lock(&group->mailboxes->lock);
    move_on(group);
    pthread_mutex_unlock(&group->mailboxes->lock);
}

void cpu_shm_transfer_start(struct cpu_shm_group *group, struct cpu_shm_transfer *transfers,
                            size_t count)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;

    pthread_mutex_lock(&mailboxes->lock);
    for (size_t i = 0; i < count; i++) {
        struct cpu_shm_transfer *transfer = &transfers[i];
        struct cpu_shm_transfer ***end =
            transfer->sends ? &mailboxes->sends_end : &mailboxes->receives_end;

        transfer->next = NULL;
        **end = transfer;
        *end = &transfer->next;
        atomic_fetch_add(&group->under_way, 1);
    }
    move_on(group);
    pthread_mutex_unlock(&mailboxes->lock);
}

static void withdraw(struct cpu_shm_group *group, struct cpu_shm_transfer **list,
                     struct cpu_shm_transfer ***end, const struct cpu_shm_transfer *transfer)
{
    struct cpu_shm_transfer **at = list;

    while (*at != NULL && *at != transfer)
        at = &(*at)->next;
    if (*at != NULL) finish(group, at, end);
}

struct transfer_wait {
    struct cpu_shm_group *group;
    struct cpu_shm_transfer *transfer;
};

static bool transfer_done(void *argument)
{
    struct transfer_wait *wait = argument;
    struct cpu_shm_group *group = wait->group;
    bool done;

    pthread_mutex_lock(&group->mailboxes->lock);
    if (!wait->transfer->done) move_on(group);
    done = wait->transfer->done;
    pthread_mutex_unlock(&group->mailboxes->lock);
    return done;
}

static weft_status wait_for_one(struct cpu_shm_group *group, struct cpu_shm_transfer *transfer)
{
    struct transfer_wait wait = {group, transfer};
    char doing[64];
    struct cpu_shm_waiting waiting = {.ready = transfer_done,
                                      .argument = &wait,
                                      .rank = transfer->peer,
                                      .timeout_ns = group->timeout_ns,
                                      .doing = doing};

    if (transfer_done(&wait)) return WEFT_OK;
    snprintf(doing, sizeof doing, "%s with tag %u", transfer->sends ? "send" : "receive",
             transfer->tag);
    return cpu_shm_wait_until(group, &waiting);
}

weft_status cpu_shm_transfer_wait(struct cpu_shm_group *group, struct cpu_shm_transfer *transfers,
                                  size_t count)
{
    struct cpu_shm_mailboxes *mailboxes = group->mailboxes;
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = wait_for_one(group, &transfers[i]);
    if (status == WEFT_OK) return WEFT_OK;
    pthread_mutex_lock(&mailboxes->lock);
    for (size_t i = 0; i < count; i++) {
        if (transfers[i].sends)
            withdraw(group, &mailboxes->sends, &mailboxes->sends_end, &transfers[i]);
        else
            withdraw(group, &mailboxes->receives, &mailboxes->receives_end, &transfers[i]);
        if (transfers[i].stage != NULL) cpu_heap_free(group->heap, transfers[i].stage);
    }
    pthread_mutex_unlock(&mailboxes->lock);
    cpu_shm_access_wait(group);
    return status;
}
