/* hosts_stage.c - the leader's stage, and room of each rank. */
#include "hosts.h"

static weft_status grow(struct cpu_comm *comm, uint64_t bytes)
{
    struct cpu_hosts_stage *stage = &comm->other_hosts->stage;
    struct cpu_heap *heap = comm->group.heap;

    if (stage->memory != NULL && stage->bytes >= bytes) return WEFT_OK;
    if (stage->memory != NULL) cpu_heap_free(heap, stage->memory);
    stage->memory = NULL;
    stage->bytes = 0;
    PLUG_TRY(cpu_heap_allocate(heap, bytes, WEFT_MEMORY_DEVICE, &stage->memory));
    stage->bytes = bytes;
    return WEFT_OK;
}

weft_status cpu_hosts_stage(struct cpu_comm *comm, uint64_t bytes, unsigned char **stage)
{
    weft_status status = cpu_hosts_leads(comm) ? grow(comm, bytes > 0 ? bytes : 1) : WEFT_OK;

    if (status != WEFT_OK)
        return cpu_shm_fail(&comm->group, status, "no shared memory to stage %llu bytes",
                            (unsigned long long)bytes);
    *stage = comm->other_hosts->stage.memory;
    return WEFT_OK;
}

weft_status cpu_hosts_share(struct cpu_comm *comm, const struct cpu_shm_call *call, uint64_t bytes,
                            unsigned char **stage)
{
    struct cpu_shm_group *group = &comm->group;
    unsigned char *own = NULL;
    struct cpu_shm_share share;

    PLUG_TRY(cpu_hosts_stage(comm, bytes, &own));
    share = (struct cpu_shm_share){.recv = own};
    PLUG_TRY(cpu_shm_begin(group, call, &share));
    PLUG_TRY(cpu_shm_wait_peer(group, 0));
    *stage = own != NULL ? own : cpu_shm_target(group, 0);
    return WEFT_OK;
}

weft_status cpu_hosts_finish(struct cpu_comm *comm)
{
    PLUG_TRY(cpu_shm_confirm(&comm->group, 0));
    cpu_shm_done(&comm->group);
    return cpu_hosts_leads(comm) ? cpu_shm_settle(&comm->group, -1) : WEFT_OK;
}

weft_status cpu_hosts_room(struct cpu_comm *comm, size_t bytes, unsigned char **room)
{
    struct cpu_hosts *hosts = comm->other_hosts;

    if (hosts->room_bytes < bytes) {
        plug_free(hosts->room);
        hosts->room = plug_alloc(bytes);
        hosts->room_bytes = hosts->room != NULL ? bytes : 0;
    }
    *room = hosts->room;
    if (*room != NULL) return WEFT_OK;
    return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "out of memory for %zu bytes", bytes);
}
