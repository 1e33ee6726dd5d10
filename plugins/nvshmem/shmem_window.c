/* shmem_window.c - making and ending windows: every rank says what it has and where, and all come
 * to the same conclusion. */
#include "shmem.h"

#include <string.h>

enum { MOST_OWN_PAD = 4096 }; /* bytes of a signal pad that counts as small */

struct entry {
    int32_t status; /* of allocating, or of check_registrable */
    uint32_t signals;
    uint64_t bytes, memory, pad; /* offsets in the arena */
    uint64_t lacking, left;      /* of the arena, in one piece, where there was too little */
};
_Static_assert(sizeof(struct entry) <= WF_GATHER_MOST, "a window is a small thing to say");

static weft_status tell_failure(const struct wf_comm *comm, const struct entry *entry, int32_t r)
{
    int rank = comm->world_ranks[r];

    if (entry->status == WEFT_ERR_UNSUPPORTED)
        return wf_fail(entry->status,
                       "window: the memory of rank %d is not from weft_alloc, or not in the "
                       "symmetric heap, so that its peers cannot reach it",
                       rank);
    if (entry->status == WEFT_ERR_INVALID)
        return wf_fail(entry->status, "window: the memory of rank %d ends before its %llu bytes do",
                       rank, (unsigned long long)entry->bytes);
    if (entry->status == WEFT_ERR_NO_MEMORY && entry->lacking > 0)
        return wf_fail(entry->status,
                       "window: rank %d has no %llu bytes of symmetric memory in one piece, %llu "
                       "are left; %s makes it larger",
                       rank, (unsigned long long)entry->lacking, (unsigned long long)entry->left,
                       VENDOR_HEAP_KNOB);
    if (entry->status == WEFT_ERR_NO_MEMORY)
        return wf_fail(entry->status, "window: rank %d is out of host memory", rank);
    return wf_fail(entry->status, "window: rank %d could not make its part", rank);
}

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
        if (all[r].status != WEFT_OK) return tell_failure(comm, &all[r], r);
    return WEFT_OK;
}

static weft_status upload_handle(struct wf_window *window)
{
    struct wf_comm *comm = window->comm;
    size_t size = (size_t)comm->size;
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(comm->device, &scope));
    status = wf_gpu_upload(comm->device, window->device_copy, window->buffers,
                           2 * size * sizeof(void *));
    wf_leave(&scope);
    return status;
}

/* WINDOW is NULL where there was no room even for that, as MINE says. */
static weft_status settle(struct wf_comm *comm, struct wf_window *window, const struct entry *mine)
{
    const struct entry *all;
    const void *heard;

    WF_TRY(wf_gather_small(comm, mine, sizeof *mine, &heard));
    all = heard;
    WF_TRY(judge(comm, all));
    for (int32_t r = 0; r < comm->size; r++) {
        window->buffers[r] = (void *)(uintptr_t)(comm->peers[r].arena + all[r].memory);
        window->pads[r] = (uint64_t *)(uintptr_t)(comm->peers[r].arena + all[r].pad);
    }
    return upload_handle(window);
}

static void give_back(struct wf_window *window, bool memory_too)
{
    struct wf_scope scope;

    if (window == NULL) return;
    if (memory_too) {
        wf_arena_give(window->pad);
        if (!window->is_registered) wf_arena_give(window->memory);
        wf_arena_give(window->device_copy);
    }
    if (window->waits.count > 0 && wf_enter(window->comm->device, &scope) == WEFT_OK) {
        wf_waits_drop(&window->waits);
        wf_leave(&scope);
    }
    wf_delete(window);
}

/* It lies in a piece that weft_alloc gave and nobody took back, and ends there. */
static weft_status check_registrable(const struct wf_window *window)
{
    void *base = NULL;
    uint64_t bytes = 0;

    if (!wf_arena_block(window->memory, &base, &bytes)) return WEFT_ERR_UNSUPPORTED;
    if (window->bytes > bytes - (uint64_t)((char *)window->memory - (char *)base))
        return WEFT_ERR_INVALID;
    return WEFT_OK;
}

/* BYTES of the arena, unless something is missing already. */
static void take_piece(struct wf_gpu_device *device, enum wf_part part, uint64_t bytes,
                       struct entry *mine, void **piece)
{
    if (mine->status != WEFT_OK) return;
    mine->status = wf_arena_take_zeroed(device, part, bytes, piece);
    if (mine->status != WEFT_ERR_NO_MEMORY) return;
    mine->lacking = bytes > 0 ? bytes : 1;
    mine->left = wf_arena_left();
}

/* This rank's part of the window, and what it says of it. */
static void take(struct wf_window *window, struct entry *mine)
{
    uint64_t pad_bytes = 8 * ((uint64_t)window->signals + (uint64_t)window->comm->size);
    enum wf_part pads_part = pad_bytes <= MOST_OWN_PAD ? WF_OWN : WF_USERS;
    struct wf_gpu_device *device = window->comm->device;
    uint64_t addresses = 2 * (uint64_t)window->comm->size * sizeof(void *);
    void *pad = NULL;

    if (window->is_registered) mine->status = check_registrable(window);
    if (!window->is_registered) take_piece(device, WF_USERS, window->bytes, mine, &window->memory);
    take_piece(device, pads_part, pad_bytes, mine, &pad);
    take_piece(device, WF_OWN, addresses, mine, &window->device_copy);
    window->pad = pad;
    wf_arena_holds(window->memory, 1, &mine->memory);
    wf_arena_holds(pad, 1, &mine->pad);
}

static struct wf_window *allocate(struct wf_comm *comm, void *memory, uint64_t bytes,
                                  uint32_t signals)
{
    size_t size = (size_t)comm->size;
    struct wf_window *window = wf_new(sizeof *window + 2 * size * sizeof(void *));

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

static weft_status create(struct wf_comm *comm, void *memory, uint64_t bytes, uint32_t signals,
                          struct wf_window **out)
{
    struct entry mine = {.bytes = bytes, .signals = signals};
    struct wf_window *window;
    weft_status status;

    WF_TRY(wf_comm_usable(comm));
    window = allocate(comm, memory, bytes, signals);
    if (window != NULL)
        take(window, &mine);
    else
        mine.status = WEFT_ERR_NO_MEMORY;
    status = settle(comm, window, &mine);
    if (status != WEFT_OK) { /* a peer that heard all ranks may write there already */
        give_back(window, atomic_load(&comm->error) == WEFT_OK);
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

/* A pad is zero where a rank has not released the window. */
static weft_status part(struct wf_window *window)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(window->comm->device, &scope));
    status = wf_waits_end(window->comm, &window->waits);
    if (status == WEFT_OK) status = wf_window_part(window, 0, window->comm->side);
    wf_leave(&scope);
    return status;
}

/* No rank's memory goes before all ranks are here and nothing here looks at it; if that never
 * comes, it stays. */
weft_status wf_window_destroy(void *given)
{
    struct wf_window *window = given, **at;
    struct wf_comm *comm;
    weft_status status;

    if (window == NULL) return WEFT_OK;
    comm = window->comm;
    for (at = &comm->windows; *at != NULL && *at != window;)
        at = &(*at)->next;
    if (*at != NULL) *at = window->next;
    status = wf_comm_stuck(comm);
    if (status == WEFT_OK) status = part(window);
    give_back(window, status == WEFT_OK);
    return status;
}
