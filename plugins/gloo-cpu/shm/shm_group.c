/* shm_group.c - the control block of a rank: making it, and leaving it to slower peers. */
#include "shm_mailbox.h"

#include <string.h>

size_t cpu_shm_control_bytes(const struct cpu_shm_group *group)
{
    return offsetof(struct cpu_shm_control, slots) + SHM_SLOTS * group->slot_bytes +
           (size_t)group->size * (sizeof(uint64_t) + sizeof(uint32_t));
}

weft_status cpu_shm_group_prepare(struct cpu_shm_group *group, uint64_t token)
{
    size_t spans = (size_t)group->size * sizeof(struct cpu_shm_span);
    size_t slot = offsetof(struct cpu_shm_slot, data) + spans + SHM_INLINE;
    size_t bytes, size = (size_t)group->size;
    void *memory;

    group->spans = plug_alloc(size * (sizeof *group->spans + 3 * sizeof *group->sources));
    if (group->spans == NULL) return plug_fail_memory(size * sizeof *group->spans);
    group->sources = (const void **)(group->spans + size);
    group->starts = group->sources + size;
    group->scales = group->starts + size;
    group->slot_bytes = (slot + CPU_LINE - 1) / CPU_LINE * CPU_LINE;
    bytes = cpu_shm_control_bytes(group);
    PLUG_TRY(cpu_heap_allocate(group->heap, bytes, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, bytes);
    group->control = memory;
    group->control->token = token;
    pthread_mutex_init(&group->fault.lock, NULL);
    PLUG_TRY(cpu_shm_check_prepare(group));
    return cpu_shm_mailboxes_open(group);
}

struct cpu_shm_leftover {
    struct cpu_shm_leftover *next;
    void *memory;
};

void cpu_shm_retire(struct cpu_shm_group *group, void *memory)
{
    struct cpu_shm_leftover *leftover = memory != NULL ? plug_alloc(sizeof *leftover) : NULL;

    if (leftover == NULL) return; /* the memory then stays until the heap is closed */
    leftover->memory = memory;
    leftover->next = group->leftovers;
    group->leftovers = leftover;
}

/* The control block, the mailboxes and whatever was left behind outlive the communicator until all
 * peers have departed as well: a slower one may still be reading the last collective's slot. */
static void retire(struct cpu_shm_group *group)
{
    uint32_t others = group->met ? (uint32_t)group->size - 1 : 0;
    size_t count = 0, most = 1;
    struct cpu_shm_leftover *leftover;
    void **pointers;

    for (int32_t p = 0; group->mailboxes != NULL && p < group->size; p++)
        cpu_shm_retire(group, group->mailboxes->lines[p].out);
    cpu_shm_retire(group, group->stage);
    cpu_shm_retire(group, group->record);
    for (leftover = group->leftovers; leftover != NULL; leftover = leftover->next)
        most++;
    pointers = plug_alloc(most * sizeof *pointers);
    if (pointers != NULL) pointers[count++] = group->control;
    while ((leftover = group->leftovers) != NULL) {
        group->leftovers = leftover->next;
        if (pointers != NULL) pointers[count++] = leftover->memory;
        plug_free(leftover);
    }
    if (pointers != NULL)
        cpu_heap_retire(group->heap, count, pointers, &group->control->departed, others);
    plug_free(pointers);
}

void cpu_shm_group_close(struct cpu_shm_group *group)
{
    uint32_t working = SHM_WORKING;

    if (group->control != NULL) {
        atomic_compare_exchange_strong(&group->control->state, &working, SHM_LEFT);
        cpu_shm_ring_all(group);
        pthread_mutex_destroy(&group->fault.lock);
        retire(group);
    }
    cpu_shm_mailboxes_close(group);
    for (int32_t p = 0; group->peers != NULL && p < group->size; p++) {
        struct cpu_shm_peer *peer = &group->peers[p];

        if (p != group->rank && peer->control != NULL)
            atomic_fetch_add(&peer->control->departed, 1);
        if (peer->attached) cpu_segment_detach(&peer->address);
    }
    plug_free(group->peers);
    plug_free(group->spans);
}
