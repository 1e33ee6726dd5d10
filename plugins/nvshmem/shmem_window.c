/* shmem_window.c - making and ending windows: every rank says what it has and where, and all come
 * to the same conclusion. */
#include "shmem.h"

#include <string.h>

struct entry {
    int32_t status; /* of allocating, or UNSUPPORTED for memory that peers cannot reach */
    uint32_t signals;
    uint64_t bytes, memory, pad; /* offsets in the arena */
    uint64_t left;               /* of the arena, where there was too little */
};
_Static_assert(sizeof(struct entry) <= WF_GATHER_MOST, "a window is a small thing to say");

/* The first rank that could not, or that asked for something else, decides for all. */
static weft_status judge(const struct wf_comm *comm, const struct entry *all)
{
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].bytes != all[0].bytes || all[r].signals != all[0].signals)
            return wf_fail(WEFT_ERR_MISMATCH,
                           "window: rank %d asks for %llu bytes and %u signals, rank %d for %llu "
                           "bytes and %u signals",
                           comm->world_ranks[0], (unsigned long long)all[0].bytes, all[0].signals,
                           comm->world_ranks[r], (unsigned long long)all[r].bytes, all[r].signals);
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].status == WEFT_ERR_UNSUPPORTED)
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "window: the memory of rank %d is outside the symmetric heap, or ends "
                           "before the window does",
                           comm->world_ranks[r]);
        else if (all[r].status != WEFT_OK)
            return wf_fail(all[r].status,
                           "window: rank %d has no %llu bytes of symmetric memory, %llu are left; "
                           "%s makes it larger",
                           comm->world_ranks[r], (unsigned long long)all[r].bytes,
                           (unsigned long long)all[r].left, VENDOR_HEAP_KNOB);
    return WEFT_OK;
}

static weft_status upload_handle(struct wf_window *window)
{
    struct wf_comm *comm = window->comm;
    size_t size = (size_t)comm->size;
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_arena_take(2 * size * sizeof(void *), &window->device_copy));
    WF_TRY(wf_enter(comm->device, &scope));
    status = wf_gpu_upload(comm->device, window->device_copy, window->buffers,
                           2 * size * sizeof(void *));
    wf_leave(&scope);
    return status;
}

static weft_status settle(struct wf_window *window, const struct entry *mine)
{
    struct wf_comm *comm = window->comm;
    struct entry *all = wf_new((size_t)comm->size * sizeof *all);
    weft_status status;

    if (all == NULL) return wf_comm_stick(comm, WEFT_ERR_NO_MEMORY, "out of host memory");
    status = wf_gather_small(comm, mine, all, sizeof *mine);
    if (status == WEFT_OK) status = judge(comm, all);
    for (int32_t r = 0; status == WEFT_OK && r < comm->size; r++) {
        window->buffers[r] = (void *)(uintptr_t)(comm->peers[r].arena + all[r].memory);
        window->pads[r] = (uint64_t *)(uintptr_t)(comm->peers[r].arena + all[r].pad);
    }
    wf_delete(all);
    return status == WEFT_OK ? upload_handle(window) : status;
}

static void give_back(struct wf_window *window, bool memory_too)
{
    if (memory_too) {
        wf_arena_give(window->pad);
        if (!window->is_registered) wf_arena_give(window->memory);
        wf_arena_give(window->device_copy);
    }
    wf_delete(window);
}

/* Is it all in one piece that weft_alloc gave and nobody took back? */
static bool is_registrable(const struct wf_window *window)
{
    void *base = NULL;
    uint64_t bytes = 0;

    if (!wf_arena_block(window->memory, &base, &bytes)) return false;
    return window->bytes <= bytes - (uint64_t)((char *)window->memory - (char *)base);
}

/* This rank's part of the window, and what it says of it. */
static struct entry take(struct wf_window *window)
{
    struct wf_gpu_device *device = window->comm->device;
    struct entry mine = {.bytes = window->bytes, .signals = window->signals};
    void *pad = NULL;

    if (window->is_registered && !is_registrable(window)) mine.status = WEFT_ERR_UNSUPPORTED;
    if (!window->is_registered)
        mine.status = wf_arena_take_zeroed(device, window->bytes, &window->memory);
    if (mine.status == WEFT_OK)
        mine.status = wf_arena_take_zeroed(device, 8 * (uint64_t)window->signals, &pad);
    mine.left = wf_job.heap.bytes - wf_job.heap.used;
    window->pad = pad;
    wf_arena_holds(window->memory, 1, &mine.memory);
    wf_arena_holds(pad, 1, &mine.pad);
    return mine;
}

static weft_status create(struct wf_comm *comm, void *memory, uint64_t bytes, uint32_t signals,
                          struct wf_window **out)
{
    struct wf_window *window;
    struct entry mine;
    weft_status status;

    WF_TRY(wf_comm_usable(comm));
    window = wf_new(sizeof *window + 2 * (size_t)comm->size * sizeof(void *));
    if (window == NULL) return WEFT_ERR_NO_MEMORY;
    *window = (struct wf_window){.comm = comm,
                                 .bytes = bytes,
                                 .signals = signals,
                                 .memory = memory,
                                 .is_registered = memory != NULL,
                                 .buffers = (void **)(window + 1),
                                 .pads = (uint64_t **)(window + 1) + comm->size};
    mine = take(window);
    status = settle(window, &mine);
    if (status != WEFT_OK) {
        give_back(window, true);
        return status;
    }
    window->next = comm->windows;
    comm->windows = window;
    *out = window;
    return WEFT_OK;
}

weft_status wf_window_create(void *comm, uint64_t bytes, uint32_t signals, void **out, void **local)
{
    struct wf_window *window = NULL;

    WF_TRY(create(comm, NULL, bytes, signals, &window));
    *out = window;
    *local = window->memory;
    return WEFT_OK;
}

weft_status wf_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                               void **out)
{
    struct wf_window *window = NULL;

    if (memory == NULL) return wf_fail(WEFT_ERR_INVALID, "window_register: memory is NULL");
    WF_TRY(create(comm, memory, bytes, signals, &window));
    *out = window;
    return WEFT_OK;
}

struct wk_channel wf_window_channel(const struct wf_window *window)
{
    return wf_channel(window->comm);
}

/* ---- the end ---- */

bool wf_windows_are_idle(const struct wf_comm *comm)
{
    const struct wf_window *window = comm->windows;
    struct wf_scope scope;

    if (window == NULL) return true;
    if (wf_enter(comm->device, &scope) != WEFT_OK) return false;
    while (window != NULL && wf_waits_are_over(&window->waits))
        window = window->next;
    wf_leave(&scope);
    return window == NULL;
}

void wf_windows_drop(struct wf_comm *comm, bool cleanly)
{
    while (comm->windows != NULL) {
        struct wf_window *window = comm->windows;
        comm->windows = window->next;
        give_back(window, cleanly);
    }
}

static weft_status end_waits(struct wf_window *window)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(window->comm->device, &scope));
    status = wf_waits_end(window->comm, &window->waits);
    wf_leave(&scope);
    return status;
}

/* No rank's memory goes before all ranks are here and nothing here looks at it; if that never
 * comes, it stays. */
weft_status wf_window_destroy(void *given)
{
    struct wf_window *window = given, **at;
    struct wf_comm *comm;
    uint64_t word = 0, *all;
    weft_status status;

    if (window == NULL) return WEFT_OK;
    comm = window->comm;
    for (at = &comm->windows; *at != NULL && *at != window;)
        at = &(*at)->next;
    if (*at != NULL) *at = window->next;
    all = wf_new((size_t)comm->size * sizeof *all);
    status = all != NULL ? wf_comm_stuck(comm) : WEFT_ERR_NO_MEMORY;
    if (status == WEFT_OK) status = end_waits(window);
    if (status == WEFT_OK) status = wf_gather_small(comm, &word, all, sizeof word);
    wf_delete(all);
    give_back(window, status == WEFT_OK);
    return status;
}
