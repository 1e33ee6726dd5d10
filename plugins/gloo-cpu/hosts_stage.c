/* hosts_stage.c - the leader's shared memory, and what leaders do with it. */
#include "hosts.h"

static weft_status grow(struct wf_cpu_comm *comm, uint64_t bytes)
{
    struct wf_hosts_stage *stage = &comm->other_hosts->stage;
    struct wf_cpu_heap *heap = comm->group.heap;

    if (stage->memory != NULL && stage->bytes >= bytes) return WEFT_OK;
    if (stage->memory != NULL) wf_cpu_heap_free(heap, stage->memory);
    stage->memory = NULL;
    stage->bytes = 0;
    CPU_TRY(wf_cpu_heap_allocate(heap, bytes, WEFT_MEMORY_DEVICE, &stage->memory));
    stage->bytes = bytes;
    return WEFT_OK;
}

weft_status wf_hosts_stage(struct wf_cpu_comm *comm, uint64_t bytes, unsigned char **stage)
{
    weft_status status = wf_hosts_leads(comm) ? grow(comm, bytes > 0 ? bytes : 1) : WEFT_OK;

    if (status != WEFT_OK)
        return wf_shm_fail(&comm->group, status, "no shared memory to stage %llu bytes in",
                           (unsigned long long)bytes);
    *stage = comm->other_hosts->stage.memory;
    return WEFT_OK;
}

weft_status wf_hosts_share(struct wf_cpu_comm *comm, const struct wf_shm_call *call, uint64_t bytes,
                           unsigned char **stage)
{
    struct wf_shm_group *group = &comm->group;
    unsigned char *own = NULL;
    struct wf_shm_share share;

    CPU_TRY(wf_hosts_stage(comm, bytes, &own));
    share = (struct wf_shm_share){.recv = own};
    CPU_TRY(wf_shm_begin(group, call, &share));
    CPU_TRY(wf_shm_meet(group, 0));
    *stage = own != NULL ? own : wf_shm_target(group, 0);
    return WEFT_OK;
}

weft_status wf_hosts_finish(struct wf_cpu_comm *comm)
{
    CPU_TRY(wf_shm_confirm(&comm->group, 0));
    wf_shm_done(&comm->group);
    return wf_hosts_leads(comm) ? wf_shm_settle(&comm->group, -1) : WEFT_OK;
}

weft_status wf_hosts_all_gather(struct wf_cpu_comm *comm, unsigned char *data, const size_t *bytes)
{
    struct wf_cpu_hosts *hosts = comm->other_hosts;
    struct gloo_failure failure;

    if (!wf_hosts_leads(comm)) return WEFT_OK;
    if (hosts->bridge->all_gather_v(hosts->leaders, data, bytes, &failure) == WEFT_OK)
        return WEFT_OK;
    return wf_hosts_fail(comm, false, comm->group.doing, &failure);
}

weft_status wf_hosts_exchange(struct wf_cpu_comm *comm, uint32_t send_count,
                              const struct gloo_part *sends, uint32_t receive_count,
                              const struct gloo_part *receives)
{
    struct wf_cpu_hosts *hosts = comm->other_hosts;
    struct gloo_failure failure;
    struct gloo_work *work;

    if (!wf_hosts_leads(comm)) return WEFT_OK;
    if (hosts->bridge->start(hosts->leaders, send_count, sends, receive_count, receives, &work,
                             &failure) == WEFT_OK &&
        hosts->bridge->wait(hosts->leaders, work, &failure) == WEFT_OK)
        return WEFT_OK;
    return wf_hosts_fail(comm, false, comm->group.doing, &failure);
}
