/* shm_group.c - the board of a rank, and failing together. */
#include "mail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

weft_status wf_shm_group_prepare(struct wf_shm_group *group, uint64_t token)
{
    size_t spans = (size_t)group->size * sizeof(struct wf_shm_span);
    size_t slot = offsetof(struct wf_shm_slot, data) + spans + SHM_INLINE;
    size_t bytes, size = (size_t)group->size;
    void *memory;

    group->spans = wf_cpu_alloc(size * (sizeof *group->spans + 3 * sizeof *group->sources));
    if (group->spans == NULL) return wf_cpu_fail_memory(size * sizeof *group->spans);
    group->sources = (const void **)(group->spans + size);
    group->starts = group->sources + size;
    group->scales = group->starts + size;
    group->slot_bytes = (slot + CPU_LINE - 1) / CPU_LINE * CPU_LINE;
    bytes = offsetof(struct wf_shm_board, slots) + SHM_SLOTS * group->slot_bytes +
            size * sizeof(uint64_t);
    CPU_TRY(wf_cpu_heap_allocate(group->heap, bytes, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, bytes);
    group->board = memory;
    group->board->token = token;
    pthread_mutex_init(&group->fault.lock, NULL);
    CPU_TRY(wf_shm_check_prepare(group));
    return wf_shm_mail_open(group);
}

struct wf_shm_leftover {
    struct wf_shm_leftover *next;
    void *memory;
};

void wf_shm_leave_behind(struct wf_shm_group *group, void *memory)
{
    struct wf_shm_leftover *leftover = memory != NULL ? wf_cpu_alloc(sizeof *leftover) : NULL;

    if (leftover == NULL) return; /* the memory then stays until the heap is closed */
    leftover->memory = memory;
    leftover->next = group->leftovers;
    group->leftovers = leftover;
}

/* The board, the mailboxes and whatever was left behind outlive the communicator until all peers
 * have departed as well: a slower one may still be reading the last collective's slot. */
static void retire(struct wf_shm_group *group)
{
    uint32_t others = group->met ? (uint32_t)group->size - 1 : 0;
    size_t count = 0, most = 1;
    struct wf_shm_leftover *leftover;
    void **pointers;

    for (int32_t p = 0; group->mail != NULL && p < group->size; p++)
        wf_shm_leave_behind(group, group->mail->lines[p].out);
    wf_shm_leave_behind(group, group->stage);
    wf_shm_leave_behind(group, group->record);
    for (leftover = group->leftovers; leftover != NULL; leftover = leftover->next)
        most++;
    pointers = wf_cpu_alloc(most * sizeof *pointers);
    if (pointers != NULL) pointers[count++] = group->board;
    while ((leftover = group->leftovers) != NULL) {
        group->leftovers = leftover->next;
        if (pointers != NULL) pointers[count++] = leftover->memory;
        wf_cpu_free(leftover);
    }
    if (pointers != NULL)
        wf_cpu_heap_retire(group->heap, count, pointers, &group->board->departed, others);
    wf_cpu_free(pointers);
}

void wf_shm_group_close(struct wf_shm_group *group)
{
    uint32_t working = SHM_WORKING;

    if (group->board != NULL) {
        atomic_compare_exchange_strong(&group->board->state, &working, SHM_LEFT);
        wf_shm_ring_all(group);
        pthread_mutex_destroy(&group->fault.lock);
        retire(group);
    }
    wf_shm_mail_close(group);
    for (int32_t p = 0; group->peers != NULL && p < group->size; p++) {
        struct wf_shm_peer *peer = &group->peers[p];

        if (p != group->rank && peer->board != NULL) atomic_fetch_add(&peer->board->departed, 1);
        if (peer->attached) wf_cpu_segment_detach(&peer->address);
    }
    wf_cpu_free(group->peers);
    wf_cpu_free(group->spans);
}

weft_status wf_shm_fail(struct wf_shm_group *group, weft_status status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&group->fault.lock);
    if (!wf_shm_broken(group)) {
        memcpy(group->fault.text, text, sizeof text);
        group->board->cause = status;
        snprintf(group->board->words, sizeof group->board->words, "%s", text);
        atomic_store(&group->fault.status, status);
        atomic_store(&group->board->state, SHM_FAILED);
        /* Seen before anything the caller then writes to its buffers (wf_shm_still_there). */
        wf_cpu_fence(memory_order_seq_cst);
    }
    pthread_mutex_unlock(&group->fault.lock);
    wf_shm_ring_all(group);
    return wf_shm_fault(group);
}

weft_status wf_shm_fault(struct wf_shm_group *group)
{
    weft_status status = atomic_load(&group->fault.status);

    if (status == WEFT_OK) return WEFT_OK;
    return wf_cpu_fail(status, "communicator \"%s\": %s", group->label, group->fault.text);
}

const char *wf_shm_name(const struct wf_shm_group *group, int32_t rank, char *text, size_t bytes)
{
    const struct wf_shm_peer *peer = &group->peers[rank];

    snprintf(text, bytes, "rank %d (pid %d)", (int)peer->name, (int)peer->address.process.pid);
    return text;
}

void *wf_shm_reach(const struct wf_shm_group *group, int32_t rank, const struct wf_shm_place *place)
{
    const struct wf_shm_peer *peer = &group->peers[rank];

    if (peer->same_process) return (void *)(uintptr_t)place->pointer;
    if (place->offset == SHM_NOWHERE) return NULL;
    return peer->heap + place->offset;
}
