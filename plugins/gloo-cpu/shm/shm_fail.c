/* shm_fail.c - the ranks of a group fail together, with the cause of the first. */
#include "shm.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

weft_status cpu_shm_fail(struct cpu_shm_group *group, weft_status status, const char *format, ...)
{
    char text[512];

    KIT_PRINT_REST(text, format);
    pthread_mutex_lock(&group->fault.lock);
    if (!cpu_shm_has_failed(group)) {
        memcpy(group->fault.text, text, sizeof text);
        group->control->cause = status;
        snprintf(group->control->words, sizeof group->control->words, "%s", text);
        atomic_store(&group->control->state, SHM_FAILED);
        /* Seen before anything that this rank's callers then write to their buffers
         * (cpu_shm_still_there).  Other threads of this rank see `fault.status`. */
        cpu_fence(memory_order_seq_cst);
        atomic_store(&group->fault.status, status);
    }
    pthread_mutex_unlock(&group->fault.lock);
    cpu_shm_ring_all(group);
    return cpu_shm_fault(group);
}

weft_status cpu_shm_fault(struct cpu_shm_group *group)
{
    weft_status status = atomic_load(&group->fault.status);

    if (status == WEFT_OK) return WEFT_OK;
    return plug_fail(status, "communicator \"%s\": %s", group->label, group->fault.text);
}

const char *cpu_shm_name(const struct cpu_shm_group *group, int32_t rank, char *text, size_t bytes)
{
    const struct cpu_shm_peer *peer = &group->peers[rank];

    snprintf(text, bytes, "rank %d (pid %d)", (int)peer->name, (int)peer->address.process.pid);
    return text;
}

weft_status cpu_shm_peer_failed(struct cpu_shm_group *group, int32_t rank)
{
    const struct cpu_shm_control *control = group->peers[rank].control;
    char name[64];

    cpu_shm_name(group, rank, name, sizeof name);
    return cpu_shm_fail(group, cpu_shm_pass_on(control->cause), "%s failed: %.*s", name,
                        (int)sizeof control->words, control->words);
}
