/* shmem_window.c - creation and destruction of windows: ranks gather the requests and addresses of
 * all ranks and reach the same decision. */
#include "shmem.h"
#include "plug_symm.h"

#include <string.h>

enum { OWN_PAD_MAX = 4096 }; /* maximum size in bytes of a small signal pad */

struct entry {
    int32_t status; /* of the allocation or of check_registrable */
    struct plug_window_request request;
    uint64_t memory, pad;   /* offsets in the arena */
    uint64_t lacking, left; /* contiguous bytes of the arena that were requested and free, if
                               too few */
};
_Static_assert(sizeof(struct entry) <= SHMEM_GATHER_MAX, "an entry must fit in a gather");

static weft_status describe_failure(const struct gpu_comm *comm, const struct entry *entry,
                                    int32_t r)
{
    int rank = comm->world_ranks[r];

    if (entry->status == WEFT_ERR_UNSUPPORTED)
        return plug_fail(entry->status,
                         "window: the memory of rank %d is not from weft_alloc, or not in the "
                         "symmetric heap, so its peers cannot access it",
                         rank);
    if (entry->status == WEFT_ERR_INVALID)
        return plug_fail(entry->status,
                         "window: the memory of rank %d has fewer than the %llu bytes registered",
                         rank, (unsigned long long)entry->request.bytes);
    if (entry->status == WEFT_ERR_NO_MEMORY && entry->lacking > 0)
        return plug_fail(entry->status,
                         "window: rank %d cannot allocate %llu bytes of symmetric memory in one "
                         "piece, %llu are free; set %s to a larger size",
                         rank, (unsigned long long)entry->lacking, (unsigned long long)entry->left,
                         VENDOR_HEAP_KNOB);
    if (entry->status == WEFT_ERR_NO_MEMORY)
        return plug_fail(entry->status, "window: rank %d is out of host memory", rank);
    return plug_fail(entry->status, "window: rank %d could not create its part", rank);
}

/* The error of the first rank that failed or requested a different window. */
static weft_status judge(const struct gpu_comm *comm, const struct entry *all)
{
    PLUG_TRY(plug_check_same_windows(&all->request, sizeof *all, comm->size));
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].status != WEFT_OK) return describe_failure(comm, &all[r], r);
    return WEFT_OK;
}

static weft_status upload_handle(struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;
    size_t size = (size_t)comm->size;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(comm->device, &scope));
    status =
        gpu_upload(comm->device, window->device_copy, window->buffers, 2 * size * sizeof(void *));
    gpu_leave(&scope);
    return status;
}

/* WINDOW is NULL if its allocation failed; MINE has the status. */
static weft_status settle(struct gpu_comm *comm, struct gpu_window *window,
                          const struct entry *mine)
{
    const struct entry *all;
    const void *heard;

    PLUG_TRY(shmem_gather_small(comm, mine, sizeof *mine, &heard));
    all = heard;
    PLUG_TRY(judge(comm, all));
    for (int32_t r = 0; r < comm->size; r++) {
        window->buffers[r] = (void *)(uintptr_t)(comm->peers[r].arena + all[r].memory);
        window->pads[r] = (uint64_t *)(uintptr_t)(comm->peers[r].arena + all[r].pad);
    }
    return upload_handle(window);
}

static void give_back(struct gpu_window *window, bool memory_too)
{
    struct gpu_scope scope;

    if (window == NULL) return;
    if (memory_too) {
        shmem_arena_give(window->pad);
        if (!window->is_registered) shmem_arena_give(window->memory);
        shmem_arena_give(window->device_copy);
    }
    if (window->waits.count > 0 && gpu_enter(window->comm->device, &scope) == WEFT_OK) {
        gpu_waits_drop(&window->waits);
        gpu_leave(&scope);
    }
    plug_free(window);
}

/* The memory must be in one used allocation of weft_alloc. */
static weft_status check_registrable(const struct gpu_window *window)
{
    void *base = NULL;
    uint64_t bytes = 0;

    if (!shmem_arena_block(window->memory, &base, &bytes)) return WEFT_ERR_UNSUPPORTED;
    if (window->bytes > bytes - (uint64_t)((char *)window->memory - (char *)base))
        return WEFT_ERR_INVALID;
    return WEFT_OK;
}

/* Allocate BYTES of the arena, unless MINE has failed already. */
static void take_piece(struct gpu_device *device, enum shmem_part part, uint64_t bytes,
                       struct entry *mine, void **piece)
{
    if (mine->status != WEFT_OK) return;
    mine->status = shmem_arena_take_zeroed(device, part, bytes, piece);
    if (mine->status != WEFT_ERR_NO_MEMORY) return;
    mine->lacking = bytes > 0 ? bytes : 1;
    mine->left = shmem_arena_left();
}

/* Allocate this rank's part of the window and describe it in MINE. */
static void take(struct gpu_window *window, struct entry *mine)
{
    uint64_t pad_bytes = 8 * ((uint64_t)window->signals + (uint64_t)window->comm->size);
    enum shmem_part pads_part = pad_bytes <= OWN_PAD_MAX ? SHMEM_OWN : SHMEM_USERS;
    struct gpu_device *device = window->comm->device;
    uint64_t addresses = 2 * (uint64_t)window->comm->size * sizeof(void *);
    void *pad = NULL;

    if (window->is_registered) mine->status = check_registrable(window);
    if (!window->is_registered)
        take_piece(device, SHMEM_USERS, window->bytes, mine, &window->memory);
    take_piece(device, pads_part, pad_bytes, mine, &pad);
    take_piece(device, SHMEM_OWN, addresses, mine, &window->device_copy);
    window->pad = pad;
    shmem_arena_holds(window->memory, 1, &mine->memory);
    shmem_arena_holds(pad, 1, &mine->pad);
}

static struct gpu_window *allocate(struct gpu_comm *comm, void *memory, uint64_t bytes,
                                   uint32_t signals)
{
    size_t size = (size_t)comm->size;
    struct gpu_window *window = plug_new(sizeof *window + 2 * size * sizeof(void *));

    if (window == NULL) return NULL;
    window->comm = comm;
    window->bytes = bytes;
    window->signals = signals;
    window->memory = memory;
    window->is_registered = memory != NULL;
    window->buffers = (void **)(window + 1);
    window->pads = (uint64_t **)(window + 1) + size;
    return window;
}

static weft_status create(struct gpu_comm *comm, void *memory, uint64_t bytes, uint32_t signals,
                          struct gpu_window **out)
{
    struct entry mine = {.request = {comm->world_ranks[comm->rank], signals, bytes}};
    struct gpu_window *window;
    weft_status status;

    PLUG_TRY(gpu_comm_usable(comm));
    window = allocate(comm, memory, bytes, signals);
    if (window != NULL)
        take(window, &mine);
    else
        mine.status = WEFT_ERR_NO_MEMORY;
    status = settle(comm, window, &mine);
    if (status != WEFT_OK) { /* a peer that has received all entries may already write there */
        give_back(window, atomic_load(&comm->error) == WEFT_OK);
        return status;
    }
    window->next = comm->windows;
    window->number = window->next != NULL ? window->next->number + 1 : 1;
    comm->windows = window;
    *out = window;
    return WEFT_OK;
}

weft_status gpu_window_create(void *comm, uint64_t bytes, uint32_t signals, void **out,
                              void **local)
{
    struct gpu_window *window = NULL;

    PLUG_TRY(create(comm, NULL, bytes, signals, &window));
    *out = window;
    *local = window->memory;
    return WEFT_OK;
}

weft_status shmem_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                  void **out)
{
    struct gpu_window *window = NULL;

    if (memory == NULL) return plug_fail(WEFT_ERR_INVALID, "window_register: memory is NULL");
    PLUG_TRY(create(comm, memory, bytes, signals, &window));
    *out = window;
    return WEFT_OK;
}

/* ---- destruction ---- */

bool shmem_windows_are_idle(const struct gpu_comm *comm)
{
    const struct gpu_window *window = comm->windows;
    struct gpu_scope scope;

    if (window == NULL) return true;
    if (gpu_enter(comm->device, &scope) != WEFT_OK) return false;
    while (window != NULL && gpu_waits_are_over(&window->waits))
        window = window->next;
    gpu_leave(&scope);
    return window == NULL;
}

void shmem_windows_drop(struct gpu_comm *comm, bool cleanly)
{
    while (comm->windows != NULL) {
        struct gpu_window *window = comm->windows;
        comm->windows = window->next;
        give_back(window, cleanly);
    }
}

/* The word of a rank that has not released the window is 0. */
static weft_status part(struct gpu_window *window)
{
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(window->comm->device, &scope));
    status = gpu_waits_end(window->comm, &window->waits);
    if (status == WEFT_OK) status = gpu_window_part(window, 0, window->comm->side);
    gpu_leave(&scope);
    return status;
}

/* A rank's memory is freed after all ranks have called this and no operation uses it.  Otherwise it
 * is kept. */
weft_status gpu_window_destroy(void *given)
{
    struct gpu_window *window = given, **at;
    struct gpu_comm *comm;
    weft_status status;

    if (window == NULL) return WEFT_OK;
    comm = window->comm;
    for (at = &comm->windows; *at != NULL && *at != window;)
        at = &(*at)->next;
    if (*at != NULL) *at = window->next;
    status = gpu_comm_cause(comm);
    if (status == WEFT_OK) status = part(window);
    give_back(window, status == WEFT_OK);
    return status;
}
