/* cpu_window.c - creation and release of windows.  Every rank publishes its memory and status, and
 * all ranks reach the same decision. */
#include "cpu_symm.h"
#include "hosts/hosts.h"
#include "plug_symm.h"

#include <string.h>

struct entry {
    int32_t status; /* of the allocation or of check_memory */
    uint32_t signals;
    uint64_t bytes;
    struct cpu_shm_address memory, pad;
};

/* STEP: a step of SHM_WINDOW. */
static weft_status gather(struct cpu_comm *comm, uint32_t step, const struct entry *mine,
                          struct entry *all)
{
    struct cpu_shm_op op = {.identity = {.binding = SHM_WINDOW, .step = step},
                            .collective = WEFT_COLL_ALL_GATHER,
                            .dtype = WEFT_DTYPE_U8,
                            .element = 1,
                            .send = mine,
                            .recv = all,
                            .count = sizeof *mine};

    return cpu_call_run(comm, comm->issued++, &op);
}

/* The first rank that failed, or that requested different memory, decides for all ranks. */
static weft_status judge(struct cpu_comm *comm, const struct entry *all)
{
    for (int32_t p = 0; p < comm->size; p++)
        PLUG_TRY(plug_check_same_window(
            (struct plug_window_request){comm->names[0], all[0].signals, all[0].bytes},
            (struct plug_window_request){comm->names[p], all[p].signals, all[p].bytes}));
    for (int32_t p = 0; p < comm->size; p++)
        if (all[p].status == WEFT_ERR_UNSUPPORTED)
            return plug_fail(WEFT_ERR_UNSUPPORTED,
                             "window: the memory of rank %d is not from weft_alloc, so its peers "
                             "cannot access it",
                             (int)comm->names[p]);
        else if (all[p].status == WEFT_ERR_INVALID)
            return plug_fail(
                WEFT_ERR_INVALID,
                "window: the memory of rank %d has fewer than the %llu bytes registered",
                (int)comm->names[p], (unsigned long long)all[p].bytes);
        else if (all[p].status != WEFT_OK)
            return plug_fail(all[p].status,
                             "window: rank %d cannot allocate %llu bytes of shared memory",
                             (int)comm->names[p], (unsigned long long)all[p].bytes);
    return WEFT_OK;
}

static weft_status settle(struct cpu_window *window, const struct entry *mine)
{
    struct cpu_comm *comm = window->comm;
    size_t size = (size_t)comm->size;
    struct entry *all = plug_alloc(size * sizeof *all);
    weft_status status;

    if (all == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "window: out of memory");
    status = gather(comm, SHM_WINDOW_MAKE, mine, all);
    if (status == WEFT_OK) status = judge(comm, all);
    for (int32_t p = 0; status == WEFT_OK && p < comm->size; p++) {
        int32_t place = comm->places[p];

        if (place < 0) continue;
        window->buffers[p] = cpu_shm_reach(&comm->group, place, &all[p].memory);
        window->pads[p] = cpu_shm_reach(&comm->group, place, &all[p].pad);
    }
    plug_free(all);
    return status;
}

static struct cpu_shm_address address_of(struct cpu_comm *comm, const void *memory)
{
    return (struct cpu_shm_address){.pointer = (uint64_t)(uintptr_t)memory,
                                    .offset = (uint64_t)(uintptr_t)memory -
                                              (uint64_t)(uintptr_t)comm->device->heap.segment.base};
}

/* Zeroed memory of this rank's heap. */
static weft_status take(struct cpu_window *window, uint64_t bytes, void **out)
{
    void *memory = NULL;

    PLUG_TRY(cpu_heap_allocate(&window->comm->device->heap, bytes, WEFT_MEMORY_DEVICE, &memory));
    memset(memory, 0, bytes);
    *out = memory;
    return WEFT_OK;
}

static void give_back(struct cpu_window *window)
{
    struct cpu_heap *heap = &window->comm->device->heap;

    if (window->pad != NULL) cpu_heap_free(heap, (void *)window->pad);
    if (window->memory != NULL && !window->registered) cpu_heap_free(heap, window->memory);
    plug_free(window);
}

static weft_status new_window(struct cpu_comm *comm, uint64_t bytes, uint32_t signals,
                              struct cpu_window **out)
{
    size_t size = (size_t)comm->size, all = sizeof **out + 2 * size * sizeof(void *);
    struct cpu_window *window;

    PLUG_TRY(cpu_shm_fault(&comm->group));
    if (comm->hosts > 1 && !cpu_hosts_can_serve(comm))
        return plug_fail(
            WEFT_ERR_UNSUPPORTED,
            "window: the ranks are on %d hosts%s%s; gloo-cpu has windows between hosts "
            "over UCX only, and %s connects these",
            (int)comm->hosts, comm->apart[0] != '\0' ? ", as " : "", comm->apart,
            comm->other_hosts->carrier->library);
    window = plug_alloc(all);
    if (window == NULL) return plug_fail_memory(all);
    window->comm = comm;
    window->bytes = bytes;
    window->signals = signals;
    window->buffers = (void **)(window + 1);
    window->pads = (uint64_t **)(window->buffers + size);
    *out = window;
    return WEFT_OK;
}

/* Other hosts may access a window as soon as they know of it. */
static void put_in(struct cpu_window *window)
{
    struct cpu_comm *comm = window->comm;

    pthread_mutex_lock(&comm->windows_lock);
    window->next = comm->windows;
    window->number = window->next != NULL ? window->next->number + 1 : 1;
    comm->windows = window;
    pthread_mutex_unlock(&comm->windows_lock);
}

static void take_out(struct cpu_window *window)
{
    struct cpu_comm *comm = window->comm;
    struct cpu_window **at = &comm->windows;

    pthread_mutex_lock(&comm->windows_lock);
    while (*at != window)
        at = &(*at)->next;
    *at = window->next;
    pthread_mutex_unlock(&comm->windows_lock);
}

/* WEFT_ERR_UNSUPPORTED if MEMORY cannot be shared, WEFT_ERR_INVALID if BYTES exceeds its
 * allocation. */
static weft_status check_memory(struct cpu_comm *comm, const void *memory, uint64_t bytes)
{
    struct cpu_allocation found;
    uint64_t offset;

    if (!cpu_heap_find(&comm->device->heap, memory, &found))
        return comm->group.one_process && comm->hosts == 1 ? WEFT_OK : WEFT_ERR_UNSUPPORTED;
    offset = (uint64_t)((const uint8_t *)memory - (uint8_t *)found.base);
    return offset <= found.bytes && bytes <= found.bytes - offset ? WEFT_OK : WEFT_ERR_INVALID;
}

static weft_status create(struct cpu_comm *comm, void *memory, uint64_t bytes, uint32_t signals,
                          struct cpu_window **out)
{
    struct entry mine = {.bytes = bytes, .signals = signals};
    struct cpu_window *window = NULL;
    void *pad = NULL;
    weft_status status;

    PLUG_TRY(new_window(comm, bytes, signals, &window));
    window->memory = memory;
    window->registered = memory != NULL;
    mine.status = window->registered ? check_memory(comm, memory, bytes)
                                     : take(window, bytes, &window->memory);
    if (mine.status == WEFT_OK) mine.status = take(window, (uint64_t)signals * 8, &pad);
    window->pad = pad;
    mine.memory = address_of(comm, window->memory);
    mine.pad = address_of(comm, pad);
    put_in(window);
    if (mine.status == WEFT_OK && comm->hosts > 1) mine.status = cpu_hosts_serve(comm);
    status = settle(window, &mine);
    if (status != WEFT_OK) {
        take_out(window);
        give_back(window);
        return status;
    }
    *out = window;
    return WEFT_OK;
}

weft_status cpu_window_create(void *comm, uint64_t bytes, uint32_t signals, void **out,
                              void **local)
{
    struct cpu_window *window = NULL;

    PLUG_TRY(create(comm, NULL, bytes, signals, &window));
    *out = window;
    *local = window->memory;
    return WEFT_OK;
}

weft_status cpu_window_register(void *comm, void *memory, uint64_t bytes, uint32_t signals,
                                void **out)
{
    struct cpu_window *window = NULL;

    if (memory == NULL) return plug_fail(WEFT_ERR_INVALID, "window_register: memory is NULL");
    PLUG_TRY(create(comm, memory, bytes, signals, &window));
    *out = window;
    return WEFT_OK;
}

/* ---- release ---- */

static bool is_idle(void *argument)
{
    const struct cpu_window *window = argument;

    return atomic_load(&window->under_way) == 0;
}

/* Wait until this rank has no operation on the window.  On a timeout the communicator fails and the
 * memory is kept. */
static weft_status end_operations(struct cpu_window *window)
{
    struct cpu_shm_group *group = &window->comm->group;
    struct cpu_shm_waiting waiting = {.ready = is_idle,
                                      .argument = window,
                                      .rank = -1,
                                      .timeout_ns = group->timeout_ns,
                                      .doing = "releasing a window",
                                      .polled = true,
                                      .forgiving = true};
    weft_status status = cpu_shm_fault(group);

    if (status == WEFT_OK && !is_idle(window)) status = cpu_shm_wait_until(group, &waiting);
    if (status == WEFT_OK && atomic_load(&window->ran_out))
        return cpu_shm_fail(group, WEFT_ERR_TIMEOUT,
                            "a wait for a signal on the released memory timed out");
    if (status != WEFT_ERR_TIMEOUT || cpu_shm_has_failed(group)) return status;
    return cpu_shm_fail(
        group, WEFT_ERR_TIMEOUT,
        "a wait for a signal on the released memory is pending and did not end within %.3f s",
        (double)group->timeout_ns * 1e-9);
}

/* Peers may still access the memory, and operations on streams the window.  Both are kept until the
 * communicator ends. */
static void leave(struct cpu_window *window)
{
    struct cpu_shm_group *group = &window->comm->group;

    if (window->is_left) return;
    window->is_left = true;
    cpu_shm_retire(group, (void *)window->pad);
    if (!window->registered) cpu_shm_retire(group, window->memory);
}

/* Not a barrier: a rank that omits the release might call a barrier instead, which would match. */
static weft_status sync_at_end(struct cpu_window *window)
{
    struct cpu_comm *comm = window->comm;
    struct entry mine = {
        .status = WEFT_IN_PROGRESS, .signals = window->signals, .bytes = window->bytes};
    struct entry *all = plug_alloc((size_t)comm->size * sizeof *all);
    weft_status status;

    if (all == NULL) return cpu_shm_fail(&comm->group, WEFT_ERR_NO_MEMORY, "window: out of memory");
    status = gather(comm, SHM_WINDOW_RELEASE, &mine, all);
    for (int32_t p = 0; p < comm->size && status == WEFT_OK; p++)
        if (all[p].status != mine.status || all[p].bytes != mine.bytes ||
            all[p].signals != mine.signals)
            status = cpu_shm_fail(&comm->group, WEFT_ERR_MISMATCH,
                                  "rank %d and rank %d release different windows",
                                  (int)comm->names[p], (int)comm->world_rank);
    plug_free(all);
    return status;
}

weft_status cpu_window_destroy(void *handle)
{
    struct cpu_window *window = handle;
    weft_status status;

    if (window == NULL) return WEFT_OK;
    status = end_operations(window);
    if (status == WEFT_OK) status = sync_at_end(window);
    if (status == WEFT_OK) {
        take_out(window);
        give_back(window);
    } else {
        leave(window);
        cpu_shm_access_wait(&window->comm->group);
        if (window->comm->other_hosts != NULL) cpu_hosts_disconnect(window->comm);
        cpu_hosts_serve_end(window->comm);
    }
    return status;
}

bool cpu_windows_are_idle(const struct cpu_comm *comm)
{
    for (struct cpu_window *window = comm->windows; window != NULL; window = window->next)
        if (!is_idle(window)) return false;
    return true;
}

void cpu_windows_drop(struct cpu_comm *comm)
{
    while (comm->windows != NULL) {
        struct cpu_window *window = comm->windows;

        comm->windows = window->next;
        leave(window);
        plug_free(window);
    }
}

weft_status cpu_window_handle(void *handle, weft_symm_handle *out)
{
    const struct cpu_window *window = handle;
    weft_symm_handle full = {.rank = window->comm->rank,
                             .size = window->comm->size,
                             .signal_count = window->signals,
                             .bytes = window->bytes,
                             .buffers = window->buffers,
                             .signals = window->pads};

    plug_give_struct(out, &full, sizeof full);
    return WEFT_OK;
}
