/* shmem_comm.c - creation of communicators: prepare is local, commit is collective. */
#include "shmem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static weft_status fill_in(struct gpu_comm *comm)
{
    weft_device_info info = {.struct_size = sizeof info};
    int multiprocessors = 0;

    PLUG_TRY(gpu_check(
        gpu_api.device_attribute(&multiprocessors, GPU_MULTIPROCESSORS, comm->device->handle),
        "counting the device's multiprocessors"));
    comm->multiprocessors = multiprocessors > 0 ? (uint32_t)multiprocessors : 1;
    comm->peers = plug_new((size_t)comm->size * sizeof *comm->peers);
    comm->heard = plug_new((size_t)comm->size * SHMEM_GATHER_MAX);
    if (comm->peers == NULL || comm->heard == NULL) return WEFT_ERR_NO_MEMORY;
    PLUG_TRY(gpu_describe(comm->device, &info));
    comm->facts = (struct shmem_facts){.bytes = sizeof comm->facts,
                                       .process = (int32_t)getpid(),
                                       .memory = info.memory_total,
                                       .available = info.memory_free,
                                       .reserve = shmem_size_reserve()};
    memcpy(comm->facts.uuid, comm->device->uuid, sizeof comm->facts.uuid);
    shmem_version(comm->facts.version);
    PLUG_TRY(shmem_size_requested(&comm->facts.requested));
    shmem_job_set_up(comm);
    return shmem_report_take(comm);
}

weft_status gpu_comm_prepare(void *device, const weft_comm_options *given, void **out,
                             weft_blob *address)
{
    weft_comm_options options;
    struct gpu_comm *comm;
    weft_status status;

    plug_take_struct(&options, given, sizeof options);
    if (options.size > UINT16_MAX)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "the communicator has %d ranks; the maximum is %d",
                         options.size, UINT16_MAX);
    if (options.world_ranks == NULL || options.host_ids == NULL)
        return plug_fail(WEFT_ERR_INVALID, "world_ranks or host_ids of a communicator is NULL");
    PLUG_TRY(gpu_comm_allocate(device, &options, &comm));
    comm->look = shmem_comm_look;
    status = fill_in(comm);
    if (status != WEFT_OK) {
        gpu_comm_destroy(comm);
        return status;
    }
    *out = comm;
    *address = (weft_blob){&comm->facts, sizeof comm->facts};
    return WEFT_OK;
}

/* ---- agreement of the ranks ---- */

static weft_status check_processes(const struct gpu_comm *comm, const weft_blob *addresses)
{
    for (int32_t a = 0; a < comm->size; a++) {
        if (addresses[a].bytes != sizeof comm->facts)
            return plug_fail(WEFT_ERR_MISMATCH, "rank %d has another build of the %s plugin",
                             comm->world_ranks[a], VENDOR_PLUGIN);
        if (a == comm->rank || comm->host_ids[a] != comm->host_ids[comm->rank] ||
            shmem_facts_of(&addresses[a]).process != comm->facts.process)
            continue;
        return plug_fail(WEFT_ERR_UNSUPPORTED,
                         "ranks %d and %d are threads of one process, which NVSHMEM does not allow",
                         comm->world_ranks[a], comm->world_ranks[comm->rank]);
    }
    return WEFT_OK;
}

/* Number the devices in the order of their first ranks. */
static void look_at_devices(struct gpu_comm *comm, const weft_blob *addresses)
{
    comm->sharers = shmem_sharers_of(comm, addresses, comm->rank);
    comm->device_count = 0;
    for (int32_t r = 0; r < comm->size; r++) {
        int32_t first = 0;
        while (!shmem_same_device(comm, addresses, first, r))
            first++;
        if (first < r) continue;
        if (shmem_same_device(comm, addresses, r, comm->rank))
            comm->device_number = comm->device_count;
        comm->device_count++;
    }
}

/* Checks of the peers that do not call NVSHMEM. */
static weft_status look_at_peers(struct gpu_comm *comm, const weft_blob *addresses)
{
    PLUG_TRY(check_processes(comm, addresses));
    look_at_devices(comm, addresses);
    if (shmem_job.is_begun) return WEFT_OK;
    PLUG_TRY(shmem_guard_begin(comm, addresses));
    return shmem_size_agree(comm, addresses, &comm->arena_bytes);
}

/* Gather every rank's entry; any rank's failure fails all.  A rank that itself failed returns its
 * own error even if the exchange also failed, because its peers may be blocked inside NVSHMEM. */
static weft_status gather(const struct gpu_comm *comm, const weft_exchange *exchange,
                          weft_status status, struct shmem_entry *mine, struct shmem_entry *all)
{
    weft_status exchanged;

    if (status != WEFT_OK) snprintf(mine->reason, sizeof mine->reason, "%s", plug_last_text());
    mine->status = status;
    exchanged = exchange->all_gather(exchange->user, mine, all, sizeof *mine);
    if (status != WEFT_OK) return plug_fail(status, "%s", mine->reason);
    PLUG_TRY(exchanged);
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].status != WEFT_OK)
            return plug_fail(all[r].status, "rank %d could not create communicator %s: %s",
                             comm->world_ranks[r], comm->name, all[r].reason);
    return WEFT_OK;
}

static weft_status make_memory(struct gpu_comm *comm)
{
    uint64_t size = (uint64_t)comm->size, table = 8 * (1 + 2 * size);
    uint64_t bytes = sizeof *comm->control + size * sizeof comm->control->posts[0];
    void *memory = NULL;

    PLUG_TRY(shmem_arena_take_zeroed(comm->device, SHMEM_OWN, bytes, &memory));
    comm->control = memory;
    /* From the arena: freeing memory of the driver would wait for the device. */
    PLUG_TRY(shmem_arena_take(SHMEM_OWN, size * sizeof *comm->device_peers, &memory));
    comm->device_peers = memory;
    PLUG_TRY(shmem_arena_take(SHMEM_OWN, table, &comm->table.memory));
    comm->table.bytes = table;
    return WEFT_OK;
}

/* Within a scope. */
static weft_status make_order(struct gpu_comm *comm)
{
    PLUG_TRY(gpu_check(gpu_api.event_create(&comm->last, GPU_EVENT_UNTIMED), "creating an event"));
    return shmem_gather_prepare(comm);
}

/* Allocate this rank's control block.  Other ranks do not take part. */
static weft_status make_control(struct gpu_comm *comm, struct shmem_entry *mine)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(make_memory(comm));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = make_order(comm);
    gpu_leave(&scope);
    if (status != WEFT_OK) return status;
    mine->pe = shmem_job.pe;
    mine->job = shmem_job.number;
    mine->control = (uint64_t)((char *)comm->control - shmem_job.arena);
    if (comm->rank == 0 && mine->library != 0 && shmem_api.nvshmemx_team_get_uniqueid != NULL)
        shmem_api.nvshmemx_team_get_uniqueid(&mine->team_id);
    return WEFT_OK;
}

static weft_status map_peers(struct gpu_comm *comm, const struct shmem_entry *all)
{
    size_t bytes = (size_t)comm->size * sizeof *comm->peers;

    for (int32_t r = 0; r < comm->size; r++) {
        const char *arena = shmem_job.arenas[all[r].pe];
        if (arena == NULL)
            return plug_fail(WEFT_ERR_UNSUPPORTED,
                             "rank %d cannot load from and store to the memory of rank %d: NVSHMEM "
                             "cannot map memory between their devices",
                             comm->world_ranks[comm->rank], comm->world_ranks[r]);
        comm->peers[r] = (struct wk_peer){(uintptr_t)arena + all[r].control, (uintptr_t)arena};
    }
    return gpu_upload(comm->device, comm->device_peers, comm->peers, bytes);
}

/* The creation of a team is collective and has no time limit, so the ranks first agree to create
 * it. That also completes the work of a rank on an earlier team.  Within a scope. */
static weft_status join_team(struct gpu_comm *comm, const weft_exchange *exchange,
                             weft_status status, struct shmem_entry *mine, struct shmem_entry *all)
{
    if (!shmem_team_is_wanted(comm, all)) return status;
    if (status == WEFT_OK && !shmem_team_is_safe()) mine->library = 0;
    PLUG_TRY(gather(comm, exchange, status, mine, all));
    if (!shmem_team_is_wanted(comm, all)) return WEFT_OK;
    mine->team = shmem_team_make(comm, all);
    PLUG_TRY(gather(comm, exchange, WEFT_OK, mine, all));
    shmem_team_settle(comm, mine, all);
    return WEFT_OK;
}

static weft_status join(struct gpu_comm *comm, const weft_blob *addresses,
                        const weft_exchange *exchange, struct shmem_entry *all)
{
    struct shmem_entry mine = {.pe = -1};
    struct gpu_scope scope;
    weft_status status = look_at_peers(comm, addresses);

    if (status == WEFT_OK) status = shmem_job_describe(comm, &mine);
    PLUG_TRY(gather(comm, exchange, status, &mine, all));
    status = shmem_job_join(comm, all);
    if (status == WEFT_OK) status = make_control(comm, &mine);
    PLUG_TRY(gather(comm, exchange, status, &mine, all));
    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = join_team(comm, exchange, map_peers(comm, all), &mine, all);
    gpu_leave(&scope);
    return status;
}

weft_status gpu_comm_commit(void *made, const weft_blob *addresses, const weft_exchange *exchange)
{
    struct gpu_comm *comm = made;
    struct shmem_entry *all;
    weft_status status;

    PLUG_TRY(gpu_comm_cause(comm));
    all = plug_new((size_t)comm->size * sizeof *all);
    if (all == NULL) return WEFT_ERR_NO_MEMORY;
    status = join(comm, addresses, exchange, all);
    plug_free(all);
    if (status != WEFT_OK) return status;
    comm->is_ready = true;
    return gpu_comm_cause(comm);
}
