/* shm_transfer.c - messages under way, moved on by whoever waits. */
#include "shm_mail.h"

#include <stdio.h>

weft_status cpu_shm_mail_open(struct cpu_shm_group *group)
{
    struct cpu_shm_mail *mail = plug_alloc(sizeof *mail);
    size_t bytes = (size_t)group->size * sizeof *mail->lines;

    if (mail == NULL) return plug_fail_memory(sizeof *mail);
    mail->lines = plug_alloc(bytes);
    if (mail->lines == NULL) {
        plug_free(mail);
        return plug_fail_memory(bytes);
    }
    for (int32_t p = 0; p < group->size; p++)
        mail->lines[p].early_end = &mail->lines[p].early;
    mail->sends_end = &mail->sends;
    mail->receives_end = &mail->receives;
    pthread_mutex_init(&mail->lock, NULL);
    group->mail = mail;
    return WEFT_OK;
}

void cpu_shm_mail_close(struct cpu_shm_group *group)
{
    struct cpu_shm_mail *mail = group->mail;

    if (mail == NULL) return;
    for (int32_t p = 0; p < group->size; p++)
        while (mail->lines[p].early != NULL) {
            struct cpu_shm_early *early = mail->lines[p].early;

            mail->lines[p].early = early->next;
            plug_free(early);
        }
    pthread_mutex_destroy(&mail->lock);
    plug_free(mail->lines);
    plug_free(mail);
    group->mail = NULL;
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
    struct cpu_shm_mail *mail = group->mail;
    struct cpu_shm_transfer **at = &mail->sends;
    uint64_t full = 0; /* a bit per peer, peers 64 apart sharing one */
    bool moved = false;

    while (*at != NULL) {
        struct cpu_shm_transfer *transfer = *at;
        uint64_t bit = UINT64_C(1) << ((uint32_t)transfer->peer % 64);

        if (!transfer->posted && (full & bit) == 0) {
            weft_status status = cpu_shm_mail_post(group, transfer);

            if (status != WEFT_OK)
                cpu_shm_fail(group, status, "send: no shared memory to stage %llu bytes",
                             (unsigned long long)transfer->bytes);
            if (!transfer->posted) full |= bit;
        }
        if (transfer->posted) cpu_shm_mail_settle(group, transfer);
        if (transfer->done) {
            finish(group, at, &mail->sends_end);
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
    struct cpu_shm_mail *mail = group->mail;

    for (struct cpu_shm_transfer *t = mail->receives; t != NULL; t = t->next)
        PLUG_TRY(cpu_shm_mail_find(group, t));
    for (struct cpu_shm_transfer *t = mail->receives; t != NULL; t = t->next)
        PLUG_TRY(cpu_shm_mail_empty(group, t->peer));
    return WEFT_OK;
}

static bool fetch_receives(struct cpu_shm_group *group)
{
    struct cpu_shm_mail *mail = group->mail;
    struct cpu_shm_transfer **at = &mail->receives;
    weft_status status = fetch_all(group);
    bool moved = false;

    if (status != WEFT_OK && !cpu_shm_has_failed(group))
        cpu_shm_fail(group, status, "receive: out of memory");
    while (*at != NULL) {
        if ((*at)->done) {
            finish(group, at, &mail->receives_end);
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

    pthread_mutex_lock(&group->mail->lock);
    move_on(group);
    pthread_mutex_unlock(&group->mail->lock);
}

void cpu_shm_transfer_start(struct cpu_shm_group *group, struct cpu_shm_transfer *transfers,
                            size_t count)
{
    struct cpu_shm_mail *mail = group->mail;

    pthread_mutex_lock(&mail->lock);
    for (size_t i = 0; i < count; i++) {
        struct cpu_shm_transfer *transfer = &transfers[i];
        struct cpu_shm_transfer ***end = transfer->sends ? &mail->sends_end : &mail->receives_end;

        transfer->next = NULL;
        **end = transfer;
        *end = &transfer->next;
        atomic_fetch_add(&group->under_way, 1);
    }
    move_on(group);
    pthread_mutex_unlock(&mail->lock);
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

    pthread_mutex_lock(&group->mail->lock);
    if (!wait->transfer->done) move_on(group);
    done = wait->transfer->done;
    pthread_mutex_unlock(&group->mail->lock);
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
    struct cpu_shm_mail *mail = group->mail;
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = wait_for_one(group, &transfers[i]);
    if (status == WEFT_OK) return WEFT_OK;
    pthread_mutex_lock(&mail->lock);
    for (size_t i = 0; i < count; i++) {
        if (transfers[i].sends)
            withdraw(group, &mail->sends, &mail->sends_end, &transfers[i]);
        else
            withdraw(group, &mail->receives, &mail->receives_end, &transfers[i]);
        if (transfers[i].stage != NULL) cpu_heap_free(group->heap, transfers[i].stage);
    }
    pthread_mutex_unlock(&mail->lock);
    cpu_shm_access_wait(group);
    return status;
}
