/* shmem_job.c - NVSHMEM in this process: initialized once, with one arena, and never finalized.
 *
 * Finalization is collective and would hang if a rank is gone.  The end of the process frees all
 * resources. */
#include "shmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_MAX (UINT64_C(128) << 30) /* default maximum of NVSHMEM_MAX_MEMORY_PER_GPU */

struct shmem_job shmem_job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* initialization */

/* ---- initialization ---- */

static void set_bytes(const char *name, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    setenv(name, text, 0);
}

/* NVSHMEM treats any other value as true. */
static bool has_no_vmm(void)
{
    const char *value = getenv("NVSHMEM_DISABLE_CUDA_VMM");

    return value != NULL && (value[0] == '\0' || strchr("0NnFf", value[0]) == NULL);
}

static int32_t ranks_on_this_host(const struct gpu_comm *comm)
{
    int32_t count = 0;

    for (int32_t r = 0; r < comm->size; r++)
        if (comm->host_ids[r] == comm->host_ids[comm->rank]) count++;
    return count;
}

static void set_defaults(const struct gpu_comm *comm)
{
    uint64_t most;

    if (ranks_on_this_host(comm) == comm->size) {
        setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
        setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
        setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY", "AF_INET", 0);
    }
    setenv("NVSHMEM_DISABLE_NCCL", "1", 0); /* NCCL refuses several ranks on one device */
    setenv("NVSHMEM_DISABLE_NVLS", "1", 0); /* exits when its many teams run out */
    most = shmem_size_most(&comm->facts);
    set_bytes("NVSHMEM_SYMMETRIC_SIZE", most);
    if (most > USUAL_MAX) set_bytes("NVSHMEM_MAX_MEMORY_PER_GPU", most);
}

void shmem_job_set_up(struct gpu_comm *comm)
{
    pthread_mutex_lock(&lock);
    /* Without CUDA's VMM the library allocates its memory at once, so the size must fit on all
     * ranks.  Each rank requests a share that fits even if all ranks of the host are on one
     * device. */
    if (!shmem_job.is_begun && has_no_vmm())
        shmem_size_choose(&comm->facts, (uint64_t)ranks_on_this_host(comm));
    if (!shmem_job.is_begun && !shmem_job.is_set_up) set_defaults(comm);
    shmem_job.is_set_up = true;
    pthread_mutex_unlock(&lock);
}

static weft_status check_device(const struct gpu_comm *comm)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(comm->device, &scope));
    status = shmem_guard_device(0);
    gpu_leave(&scope);
    return status;
}

weft_status shmem_job_describe(struct gpu_comm *comm, struct shmem_entry *mine)
{
    int code = 0;

    *mine = (struct shmem_entry){.pe = -1, .control = WK_NOWHERE};
    pthread_mutex_lock(&lock);
    if (shmem_job.is_begun)
        *mine = (struct shmem_entry){.pe = shmem_job.pe, .job = shmem_job.number};
    pthread_mutex_unlock(&lock);
    PLUG_TRY(shmem_team_requested(&mine->library));
    if (mine->pe >= 0) return WEFT_OK;
    PLUG_TRY(check_device(comm));
    if (comm->rank != 0) return WEFT_OK;
    mine->id.version = SHMEM_VERSION_OF(struct shmem_id);
    code = shmem_api.nvshmemx_get_uniqueid(&mine->id);
    mine->job = plug_now() ^ (uint64_t)comm->facts.process << 40 ^ 1;
    if (code != 0)
        return plug_fail_vendor(WEFT_ERR_DEVICE, VENDOR_SHMEM, code,
                                "NVSHMEM did not create a unique id (code %d)", code);
    return WEFT_OK;
}

static weft_status refuse(weft_status status)
{
    shmem_job.refused = status;
    snprintf(shmem_job.reason, sizeof shmem_job.reason, "%s", plug_last_text());
    return status;
}

static weft_status check_mode(const struct gpu_comm *comm)
{
    int mode = shmem_api.nvshmemx_init_status();

    if (mode == SHMEM_LIMITED)
        return plug_fail(
            WEFT_ERR_UNSUPPORTED,
            "several ranks share the device %s, and NVSHMEM supports that only in part here; start "
            "the CUDA MPS daemon (nvidia-cuda-mps-control -d, a program that must be on PATH) and "
            "set CUDA_MPS_ACTIVE_THREAD_PERCENTAGE on each rank to 100 divided by the number of "
            "ranks on the device",
            comm->facts.uuid);
    if (mode < SHMEM_INITIALIZED)
        return plug_fail(WEFT_ERR_DEVICE,
                         "NVSHMEM reports success, but is not initialized (state %d)", mode);
    return WEFT_OK;
}

static weft_status take_arena(struct gpu_comm *comm, uint64_t bytes)
{
    shmem_job.arena = shmem_api.nvshmem_malloc(bytes);
    if (shmem_job.arena == NULL)
        return plug_fail(WEFT_ERR_NO_MEMORY,
                         "NVSHMEM cannot allocate %llu bytes of symmetric memory; set %s to a "
                         "smaller size, or set NVSHMEM_MAX_MEMORY_PER_GPU (with "
                         "NVSHMEM_DISABLE_CUDA_VMM: NVSHMEM_SYMMETRIC_SIZE) to a larger one",
                         (unsigned long long)bytes, VENDOR_HEAP_KNOB);
    shmem_job.bytes = bytes;
    shmem_job.ordinal = comm->device->ordinal;
    shmem_job.arenas = plug_new((size_t)shmem_job.pes * sizeof *shmem_job.arenas);
    if (shmem_job.arenas == NULL) return WEFT_ERR_NO_MEMORY;
    for (int32_t p = 0; p < shmem_job.pes; p++)
        shmem_job.arenas[p] =
            p == shmem_job.pe ? shmem_job.arena : shmem_api.nvshmem_ptr(shmem_job.arena, p);
    return shmem_arena_open(bytes);
}

/* Within a scope.  The retained context keeps the arena valid after the device is closed. */
static weft_status begin(struct gpu_comm *comm, const struct shmem_entry *all)
{
    struct shmem_attributes attributes = {
        .version = SHMEM_VERSION_OF(struct shmem_attributes),
        .arguments = {.version = SHMEM_VERSION_OF(struct shmem_arguments),
                      .id = {.version = SHMEM_VERSION_OF(struct shmem_id_arguments)}}};
    struct shmem_id id = all[0].id;
    void *context = NULL;
    int code;

    PLUG_TRY(
        gpu_check(gpu_api.context_retain(&context, comm->device->handle), "opening the device"));
    code = shmem_api.nvshmemx_set_attr_uniqueid_args(comm->rank, comm->size, &id, &attributes);
    if (code == 0) code = shmem_api.nvshmemx_hostlib_init_attr(SHMEM_WITH_UNIQUE_ID, &attributes);
    if (code != 0)
        return plug_fail_vendor(
            WEFT_ERR_DEVICE, VENDOR_SHMEM, code,
            "NVSHMEM could not be initialized (code %d); set NVSHMEM_DEBUG=WARN for the reason",
            code);
    shmem_job.pe = shmem_api.nvshmem_my_pe();
    shmem_job.pes = shmem_api.nvshmem_n_pes();
    shmem_job.number = all[0].job;
    shmem_job.slot_bytes = shmem_team_slot(comm->arena_bytes, all, comm->size);
    PLUG_TRY(check_mode(comm));
    return take_arena(comm, comm->arena_bytes);
}

static weft_status begin_once(struct gpu_comm *comm, const struct shmem_entry *all)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(comm->device, &scope));
    pthread_mutex_lock(&lock);
    status = begin(comm, all);
    shmem_job.is_begun = true;
    if (status != WEFT_OK) refuse(status);
    pthread_mutex_unlock(&lock);
    gpu_leave(&scope);
    return status;
}

/* If some ranks are in a job, all must be in the same job. */
static weft_status check_same(const struct gpu_comm *comm, const struct shmem_entry *all)
{
    for (int32_t r = 0; r < comm->size; r++) {
        if (all[r].pe >= 0 && all[0].pe >= 0 && all[r].job == all[0].job) continue;
        return plug_fail(
            WEFT_ERR_UNSUPPORTED,
            "ranks %d and %d did not initialize NVSHMEM together, and a process can initialize it "
            "only once: the first communicator must contain all ranks of later communicators",
            comm->world_ranks[0], comm->world_ranks[r]);
    }
    if (shmem_job.refused != WEFT_OK) return plug_fail(shmem_job.refused, "%s", shmem_job.reason);
    return WEFT_OK;
}

weft_status shmem_job_join(struct gpu_comm *comm, const struct shmem_entry *all)
{
    bool any_begun = false;

    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].pe >= 0) any_begun = true;
    return any_begun ? check_same(comm, all) : begin_once(comm, all);
}
