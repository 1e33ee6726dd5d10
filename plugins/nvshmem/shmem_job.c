/* shmem_job.c - NVSHMEM in this process: begun once, with one arena, and never ended.
 *
 * Ending it would be collective, and hang where a rank is gone; the process's end frees all. */
#include "shmem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_MOST (UINT64_C(128) << 30) /* of NVSHMEM_MAX_MEMORY_PER_GPU */

struct wf_job wf_job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of beginning, and of the heap */

/* ---- beginning ---- */

static void set_bytes(const char *name, uint64_t bytes)
{
    char text[32];

    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    setenv(name, text, 0);
}

/* As NVSHMEM reads it: everything else that is set means yes. */
static bool has_no_vmm(void)
{
    const char *value = getenv("NVSHMEM_DISABLE_CUDA_VMM");

    return value != NULL && (value[0] == '\0' || strchr("0NnFf", value[0]) == NULL);
}

static int32_t ranks_on_this_host(const struct wf_comm *comm)
{
    int32_t count = 0;

    for (int32_t r = 0; r < comm->size; r++)
        if (comm->host_ids[r] == comm->host_ids[comm->rank]) count++;
    return count;
}

static void set_defaults(const struct wf_comm *comm)
{
    uint64_t most;

    if (ranks_on_this_host(comm) == comm->size) {
        setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
        setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo", 0);
        setenv("NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY", "AF_INET", 0);
    }
    setenv("NVSHMEM_DISABLE_NCCL", "1", 0); /* under several ranks on a device it would refuse */
    setenv("NVSHMEM_DISABLE_NVLS", "1", 0); /* takes many teams for each, and exits without */
    most = wf_size_most(&comm->facts);
    set_bytes("NVSHMEM_SYMMETRIC_SIZE", most);
    if (most > USUAL_MOST) set_bytes("NVSHMEM_MAX_MEMORY_PER_GPU", most);
}

void wf_job_set_up(struct wf_comm *comm)
{
    pthread_mutex_lock(&lock);
    /* Without CUDA's VMM the library takes its memory at once, so it must be what the ranks agree
     * on: each asks for a share that suits if all ranks of the host are on one device. */
    if (!wf_job.is_begun && has_no_vmm())
        wf_size_choose(&comm->facts, (uint64_t)ranks_on_this_host(comm));
    if (!wf_job.is_begun && !wf_job.is_set_up) set_defaults(comm);
    wf_job.is_set_up = true;
    pthread_mutex_unlock(&lock);
}

static weft_status check_device(const struct wf_comm *comm)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    status = wf_guard_device(0);
    wf_leave(&scope);
    return status;
}

weft_status wf_job_introduce(struct wf_comm *comm, struct wf_entry *mine)
{
    int code = 0;

    *mine = (struct wf_entry){.pe = -1, .control = WK_NOWHERE};
    pthread_mutex_lock(&lock);
    if (wf_job.is_begun) *mine = (struct wf_entry){.pe = wf_job.pe, .job = wf_job.number};
    pthread_mutex_unlock(&lock);
    WF_TRY(wf_team_wish(&mine->library));
    if (mine->pe >= 0) return WEFT_OK;
    WF_TRY(check_device(comm));
    if (comm->rank != 0) return WEFT_OK;
    mine->id.version = SHMEM_VERSION_OF(struct shmem_id);
    code = wf_shmem.nvshmemx_get_uniqueid(&mine->id);
    mine->job = wf_now_ns() ^ (uint64_t)comm->facts.process << 40 ^ 1;
    if (code != 0)
        return wf_fail_vendor(WEFT_ERR_DEVICE, VENDOR_SHMEM, code,
                              "NVSHMEM gave no id to begin with (code %d)", code);
    return WEFT_OK;
}

static weft_status refuse(weft_status status)
{
    wf_job.refused = status;
    snprintf(wf_job.reason, sizeof wf_job.reason, "%s", wf_last_text());
    return status;
}

static weft_status check_mode(const struct wf_comm *comm)
{
    int mode = wf_shmem.nvshmemx_init_status();

    if (mode == SHMEM_LIMITED)
        return wf_fail(
            WEFT_ERR_UNSUPPORTED,
            "several ranks share the device %s, and NVSHMEM allows that only in part here: it "
            "wants the CUDA MPS daemon (nvidia-cuda-mps-control -d, a program that NVSHMEM must "
            "find on PATH as well) and, in each rank, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE of 100 "
            "divided by the ranks on the device",
            comm->facts.uuid);
    if (mode < SHMEM_INITIALIZED)
        return wf_fail(WEFT_ERR_DEVICE, "NVSHMEM is not begun, though it said so (state %d)", mode);
    return WEFT_OK;
}

/* The plugin's own: enough for dozens of communicators, and little of what there is. */
static uint64_t own_share(uint64_t bytes)
{
    const uint64_t most = UINT64_C(16) << 20;

    return bytes / 8 < most ? bytes / 8 : most;
}

static weft_status divide(uint64_t bytes)
{
    uint64_t own = own_share(bytes), slots = WF_TEAM_SLOTS * wf_job.slot_bytes;

    WF_TRY(wf_heap_open(&wf_job.heap, bytes - own - slots));
    return wf_heap_open(&wf_job.own, own);
}

static weft_status take_arena(struct wf_comm *comm, uint64_t bytes)
{
    wf_job.arena = wf_shmem.nvshmem_malloc(bytes);
    if (wf_job.arena == NULL)
        return wf_fail(WEFT_ERR_NO_MEMORY,
                       "NVSHMEM has no %llu bytes of symmetric memory; %s makes it smaller, "
                       "NVSHMEM_MAX_MEMORY_PER_GPU, or NVSHMEM_SYMMETRIC_SIZE where "
                       "NVSHMEM_DISABLE_CUDA_VMM is set, allows more",
                       (unsigned long long)bytes, VENDOR_HEAP_KNOB);
    wf_job.bytes = bytes;
    wf_job.ordinal = comm->device->ordinal;
    wf_job.arenas = wf_new((size_t)wf_job.pes * sizeof *wf_job.arenas);
    if (wf_job.arenas == NULL) return WEFT_ERR_NO_MEMORY;
    for (int32_t p = 0; p < wf_job.pes; p++)
        wf_job.arenas[p] = p == wf_job.pe ? wf_job.arena : wf_shmem.nvshmem_ptr(wf_job.arena, p);
    return divide(bytes);
}

/* Within a scope.  A context that the device's close does not end keeps the arena alive. */
static weft_status begin(struct wf_comm *comm, const struct wf_entry *all)
{
    struct shmem_attributes attributes = {
        .version = SHMEM_VERSION_OF(struct shmem_attributes),
        .arguments = {.version = SHMEM_VERSION_OF(struct shmem_arguments),
                      .id = {.version = SHMEM_VERSION_OF(struct shmem_id_arguments)}}};
    struct shmem_id id = all[0].id;
    void *context = NULL;
    int code;

    WF_TRY(wf_gpu_check(wf_gpu.context_retain(&context, comm->device->handle),
                        "taking the device into use"));
    code = wf_shmem.nvshmemx_set_attr_uniqueid_args(comm->rank, comm->size, &id, &attributes);
    if (code == 0) code = wf_shmem.nvshmemx_hostlib_init_attr(SHMEM_WITH_UNIQUE_ID, &attributes);
    if (code != 0)
        return wf_fail_vendor(WEFT_ERR_DEVICE, VENDOR_SHMEM, code,
                              "NVSHMEM could not be begun (code %d); NVSHMEM_DEBUG=WARN makes it "
                              "say why",
                              code);
    wf_job.pe = wf_shmem.nvshmem_my_pe();
    wf_job.pes = wf_shmem.nvshmem_n_pes();
    wf_job.number = all[0].job;
    wf_job.slot_bytes = wf_team_slot(comm->arena_bytes, all, comm->size);
    WF_TRY(check_mode(comm));
    return take_arena(comm, comm->arena_bytes);
}

static weft_status begin_once(struct wf_comm *comm, const struct wf_entry *all)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    pthread_mutex_lock(&lock);
    status = begin(comm, all);
    wf_job.is_begun = true;
    if (status != WEFT_OK) refuse(status);
    pthread_mutex_unlock(&lock);
    wf_leave(&scope);
    return status;
}

/* Some ranks are in a job: all must be, and in the same one. */
static weft_status check_same(const struct wf_comm *comm, const struct wf_entry *all)
{
    for (int32_t r = 0; r < comm->size; r++) {
        if (all[r].pe >= 0 && all[0].pe >= 0 && all[r].job == all[0].job) continue;
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "ranks %d and %d did not begin NVSHMEM together, and a process can do so "
                       "only once: the first communicator must hold all ranks that later ones do",
                       comm->world_ranks[0], comm->world_ranks[r]);
    }
    if (wf_job.refused != WEFT_OK) return wf_fail(wf_job.refused, "%s", wf_job.reason);
    return WEFT_OK;
}

weft_status wf_job_join(struct wf_comm *comm, const struct wf_entry *all)
{
    bool any_begun = false;

    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].pe >= 0) any_begun = true;
    return any_begun ? check_same(comm, all) : begin_once(comm, all);
}

void wf_job_lose(struct wf_gpu_device *device)
{
    wf_job.is_lost = true;
    device->is_lost = true;
}

/* ---- the arena ---- */

weft_status wf_arena_take(enum wf_part part, uint64_t bytes, void **pointer)
{
    weft_status status = WEFT_ERR_NO_MEMORY;
    uint64_t offset = 0, start = wf_job.heap.bytes;

    pthread_mutex_lock(&lock);
    if (part == WF_OWN) status = wf_heap_take(&wf_job.own, bytes, &offset);
    if (status != WEFT_OK) {
        status = wf_heap_take(&wf_job.heap, bytes, &offset);
        start = 0;
    }
    pthread_mutex_unlock(&lock);
    if (status == WEFT_OK) *pointer = wf_job.arena + start + offset;
    return status;
}

uint64_t wf_arena_left(void)
{
    uint64_t left;

    pthread_mutex_lock(&lock);
    left = wf_heap_largest(&wf_job.heap);
    pthread_mutex_unlock(&lock);
    return left;
}

/* The part of the arena that OFFSET lies in, and *START, where it begins. */
static struct wf_heap *part_at(uint64_t offset, uint64_t *start)
{
    bool is_own = offset >= wf_job.heap.bytes;

    *start = is_own ? wf_job.heap.bytes : 0;
    return is_own ? &wf_job.own : &wf_job.heap;
}

static bool is_inside(const void *pointer)
{
    const char *at = pointer;

    return wf_job.arena != NULL && at >= wf_job.arena && at < wf_job.arena + wf_job.bytes;
}

bool wf_arena_give(void *pointer)
{
    uint64_t offset, start;
    struct wf_heap *heap;
    bool given;

    if (!is_inside(pointer)) return false;
    offset = (uint64_t)((char *)pointer - wf_job.arena);
    heap = part_at(offset, &start);
    pthread_mutex_lock(&lock);
    given = wf_heap_give(heap, offset - start);
    pthread_mutex_unlock(&lock);
    return given;
}

bool wf_arena_block(const void *pointer, void **base, uint64_t *bytes)
{
    const struct wf_heap_block *block;
    const struct wf_heap *heap;
    uint64_t offset, start;

    if (!is_inside(pointer)) return false;
    offset = (uint64_t)((const char *)pointer - wf_job.arena);
    heap = part_at(offset, &start);
    pthread_mutex_lock(&lock);
    block = wf_heap_find(heap, offset - start);
    if (block != NULL) {
        *base = wf_job.arena + start + block->offset;
        *bytes = block->bytes;
    }
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

bool wf_arena_holds(const void *pointer, uint64_t bytes, uint64_t *offset)
{
    if (!is_inside(pointer)) return false;
    *offset = (uint64_t)((const char *)pointer - wf_job.arena);
    return bytes <= wf_job.bytes - *offset;
}
