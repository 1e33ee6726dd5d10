/* ccl_window.c - creation and destruction of windows: ranks compare their requests, share their
 * memory, and compare the results. */
#include "ccl_window.h"
#include "plug_symm.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* One rank's request and the result of its allocation. */
struct entry {
    int32_t status; /* of the allocation */
    struct plug_window_request request;
    struct ccl_endpoint_address endpoint;
};
_Static_assert(sizeof(struct entry) <= CCL_TALK_BYTES, "an entry fits");

/* State while a window is created. */
struct making {
    struct gpu_window *window;
    struct ccl_endpoint endpoint;
    struct ccl_endpoint_address *addresses;
    bool *wanted;
    int *files, file; /* files of the peers and of this rank; -1: none */
    vendor_stream side;
};

static size_t round_up(size_t bytes, size_t grain)
{
    return (bytes + grain - 1) / grain * grain;
}

/* Offsets in the memory of each rank; equal on all ranks. */
static size_t pad_at(const struct gpu_window *window)
{
    return round_up(window->bytes, 256);
}
static size_t copy_at(const struct gpu_window *window)
{
    return pad_at(window) + 8 * ((size_t)window->signals + (size_t)window->comm->size);
}
static size_t control_at(const struct gpu_window *window)
{
    return round_up(copy_at(window) + 2 * (size_t)window->comm->size * sizeof(void *), 64);
}
static size_t all_of(const struct gpu_window *window)
{
    return control_at(window) + sizeof(struct wk_control);
}

/* ---- communication ---- */

static weft_status talk(struct making *m, const void *mine, size_t bytes, const void **all)
{
    struct gpu_comm *comm = m->window->comm;
    weft_status status;

    PLUG_TRY(ccl_inside(comm));
    status = ccl_talk(comm, m->side, mine, bytes, all);
    ccl_outside(comm);
    return status;
}

/* The error of the first rank that failed or requested a different window. */
static weft_status judge(const struct gpu_comm *comm, const struct entry *all)
{
    PLUG_TRY(plug_check_same_windows(&all->request, sizeof *all, comm->size));
    for (int32_t r = 0; r < comm->size; r++)
        if (all[r].status != WEFT_OK)
            return r == comm->rank
                       ? all[r].status /* described already */
                       : plug_fail(all[r].status,
                                   "window: rank %d cannot allocate %llu bytes of shared memory", r,
                                   (unsigned long long)all[r].request.bytes);
    return WEFT_OK;
}

/* ---- creation ---- */

static weft_status clear(struct making *m)
{
    struct gpu_window *window = m->window;
    const struct ccl_piece *own = &window->pieces[window->comm->rank];

    PLUG_TRY(gpu_check(gpu_api.fill_bytes(own->address, 0, own->bytes, m->side),
                       "clearing symmetric memory"));
    return gpu_check(gpu_api.stream_sync(m->side), "clearing symmetric memory");
}

/* Allocate this rank's memory. */
static weft_status take(struct making *m)
{
    struct gpu_window *window = m->window;
    struct gpu_comm *comm = window->comm;
    void *report = NULL;
    weft_status status;

    PLUG_TRY(ccl_pieces_work(comm->device));
    PLUG_TRY(gpu_signals_load(comm->device));
    PLUG_TRY(ccl_endpoint_open(&m->endpoint));
    if (window->bytes > (uint64_t)INT64_MAX / 2)
        return plug_fail(WEFT_ERR_NO_MEMORY, "window: %llu bytes are too many",
                         (unsigned long long)window->bytes);
    status = ccl_piece_make(comm->device, all_of(window), &window->pieces[comm->rank], &m->file);
    if (status != WEFT_OK)
        return plug_fail(status, "window: %llu bytes: %s", (unsigned long long)window->bytes,
                         plug_last_text());
    PLUG_TRY(clear(m));
    PLUG_TRY(gpu_allocate(comm->device, sizeof *window->report, WEFT_MEMORY_PINNED, &report));
    memset(report, 0, sizeof *window->report);
    window->report = report;
    window->control = window->pieces[comm->rank].address + control_at(window);
    return WEFT_OK;
}

/* Map the memory of the peers of this host.  A peer whose memory cannot be mapped is
 * inaccessible. */
static void map_peers(struct making *m)
{
    struct gpu_window *window = m->window;
    struct gpu_comm *comm = window->comm;

    for (int32_t r = 0; r < comm->size; r++)
        if (m->files[r] >= 0 && ccl_piece_take(comm->device, window->pieces[comm->rank].bytes,
                                               m->files[r], &window->pieces[r]) != WEFT_OK)
            plug_log(3, "%s: this rank cannot access the memory of rank %d: %s", comm->name, r,
                     plug_last_text());
}

static weft_status note_addresses(struct making *m)
{
    struct gpu_window *window = m->window;
    struct gpu_comm *comm = window->comm;
    char *own = (char *)(uintptr_t)window->pieces[comm->rank].address;

    for (int32_t r = 0; r < comm->size; r++) {
        char *base = (char *)(uintptr_t)window->pieces[r].address;

        window->buffers[r] = base;
        window->pads[r] = base != NULL ? (uint64_t *)(void *)(base + pad_at(window)) : NULL;
    }
    window->device_copy = own + copy_at(window);
    return gpu_upload(comm->device, window->device_copy, window->buffers,
                      2 * (size_t)comm->size * sizeof(void *));
}

/* This rank's word in a peer's pad, from before the first use until gpu_window_part. */
static const uint64_t present = 1;

static weft_status announce(struct making *m)
{
    struct gpu_window *window = m->window;
    struct gpu_comm *comm = window->comm;

    for (int32_t r = 0; r < comm->size; r++)
        if (r != comm->rank && window->pads[r] != NULL)
            PLUG_TRY(gpu_upload(comm->device, window->pads[r] + window->signals + comm->rank,
                                &present, sizeof present));
    return WEFT_OK;
}

/* Share the memory of every rank with every rank. */
static weft_status share(struct making *m, const struct entry *all)
{
    struct gpu_comm *comm = m->window->comm;

    for (int32_t r = 0; r < comm->size; r++) {
        m->addresses[r] = all[r].endpoint;
        m->wanted[r] = r != comm->rank && comm->host_ids[r] == comm->host_ids[comm->rank];
    }
    PLUG_TRY(ccl_endpoint_run(&m->endpoint, comm, m->addresses, m->wanted, m->file, m->files));
    map_peers(m);
    PLUG_TRY(note_addresses(m));
    return announce(m);
}

static weft_status settle(struct making *m, weft_status status)
{
    struct gpu_comm *comm = m->window->comm;
    struct entry mine = {.status = status,
                         .request = {m->window->comm->world_ranks[m->window->comm->rank],
                                     m->window->signals, m->window->bytes},
                         .endpoint = m->endpoint.address};
    const void *all = NULL;
    const int32_t *outcomes;
    int32_t outcome;

    PLUG_TRY(talk(m, &mine, sizeof mine, &all));
    PLUG_TRY(judge(comm, all));
    outcome = share(m, all);
    PLUG_TRY(talk(m, &outcome, sizeof outcome, &all));
    outcomes = all;
    for (int32_t r = 0; r < comm->size; r++)
        if (outcomes[r] != WEFT_OK)
            return r == comm->rank ? outcome
                                   : plug_fail(outcomes[r], "window: rank %d could not map it", r);
    return WEFT_OK;
}

/* ---- NCCL's windows ---- */

enum { SYMMETRIC = 1 };

typedef ccl_result (*register_function)(ccl_comm comm, void *memory, size_t bytes, void **window,
                                        int flags);
typedef ccl_result (*deregister_function)(ccl_comm comm, void *window);

static void *library_function(const char *name)
{
    const char *value = plug_knob("WEFT_NCCL_WINDOWS");

    if (value != NULL && (strcmp(value, "0") == 0 || strcmp(value, "no") == 0 ||
                          strcmp(value, "off") == 0 || strcmp(value, "false") == 0))
        return NULL;
    return dlsym(ccl_library.handle, name); /* since 2.27 */
}

/* Collective.  A failure to register, or a registration for local use only, is harmless. */
static void register_memory(struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;
    register_function enrol = NULL;
    ccl_result result;

    *(void **)(void *)&enrol = library_function("ncclCommWindowRegister");
    if (enrol == NULL || comm->work == comm->control || comm->is_wrapped ||
        ccl_inside(comm) != WEFT_OK)
        return;
    result = enrol(comm->work, window->buffers[comm->rank], window->pieces[comm->rank].bytes,
                   &window->registered, SYMMETRIC);
    ccl_outside(comm);
    if (result == CCL_SUCCESS) return;
    window->registered = NULL;
    plug_log(3, "%s: " VENDOR_CCL " does not register symmetric memory: %s", comm->name,
             ccl_api.ncclGetErrorString(result));
}

static void deregister_memory(struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;
    deregister_function forget = NULL;

    if (window->registered == NULL) return;
    *(void **)(void *)&forget = dlsym(ccl_library.handle, "ncclCommWindowDeregister");
    if (forget != NULL && ccl_inside(comm) == WEFT_OK) {
        forget(comm->work, window->registered);
        ccl_outside(comm);
    }
    window->registered = NULL;
}

/* ---- the window object ---- */

static void give_back(struct gpu_window *window)
{
    for (int32_t r = 0; r < window->comm->size; r++)
        ccl_piece_drop(&window->pieces[r]);
    if (gpu_free(window->comm->device, window->report) != WEFT_OK)
        plug_log(1, "a window's memory could not be freed: %s", plug_last_text());
    plug_free(window);
}

static struct gpu_window *new_window(struct gpu_comm *comm, uint64_t bytes, uint32_t signals)
{
    size_t size = (size_t)comm->size;
    struct gpu_window *window =
        plug_new(sizeof *window + size * (sizeof(struct ccl_piece) + 2 * sizeof(void *)));

    if (window == NULL) return NULL;
    window->comm = comm;
    window->bytes = bytes;
    window->signals = signals;
    window->pieces = (struct ccl_piece *)(window + 1);
    window->buffers = (void **)(window->pieces + size);
    window->pads = (uint64_t **)(window->buffers + size);
    return window;
}

static void end_making(struct making *m)
{
    int32_t size = m->window->comm->size;

    for (int32_t r = 0; m->files != NULL && r < size; r++)
        if (m->files[r] >= 0) close(m->files[r]);
    if (m->file >= 0) close(m->file);
    ccl_endpoint_close(&m->endpoint);
    if (m->side != NULL) gpu_api.stream_destroy(m->side);
    plug_free(m->addresses);
}

static weft_status begin_making(struct making *m)
{
    size_t size = (size_t)m->window->comm->size;

    m->addresses = plug_new(size * (sizeof *m->addresses + sizeof *m->files + sizeof *m->wanted));
    if (m->addresses == NULL) return WEFT_ERR_NO_MEMORY;
    m->files = (int *)(m->addresses + size);
    m->wanted = (bool *)(m->files + size);
    for (size_t r = 0; r < size; r++)
        m->files[r] = -1;
    return gpu_check(gpu_api.stream_create(&m->side, GPU_STREAM_NON_BLOCKING), "creating a stream");
}

static weft_status make(struct gpu_window *window)
{
    struct making m = {.window = window, .endpoint = {.socket = -1}, .file = -1};
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(window->comm->device, &scope));
    status = begin_making(&m);
    if (status == WEFT_OK) status = settle(&m, take(&m));
    if (status == WEFT_OK) register_memory(window);
    end_making(&m);
    gpu_leave(&scope);
    return status;
}

static void add(struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;

    pthread_mutex_lock(&comm->lock);
    window->next = comm->windows;
    window->number = window->next != NULL ? window->next->number + 1 : 1;
    comm->windows = window;
    pthread_mutex_unlock(&comm->lock);
    comm->window_calls = &ccl_window_calls;
    comm->look = ccl_windows_look;
}

static void take_out(struct gpu_window *window)
{
    struct gpu_comm *comm = window->comm;

    pthread_mutex_lock(&comm->lock);
    for (struct gpu_window **at = &comm->windows; *at != NULL; at = &(*at)->next)
        if (*at == window) {
            *at = window->next;
            break;
        }
    pthread_mutex_unlock(&comm->lock);
}

weft_status gpu_window_create(void *made, uint64_t bytes, uint32_t signals, void **out,
                              void **local)
{
    struct gpu_comm *comm = made;
    struct gpu_window *window;
    weft_status status;

    PLUG_TRY(gpu_comm_cause(comm));
    if (!comm->means.kernels)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "window: signals need kernels, and a rank has none");
    window = new_window(comm, bytes, signals);
    if (window == NULL) return WEFT_ERR_NO_MEMORY;
    status = make(window);
    if (status != WEFT_OK) {
        struct gpu_scope scope;

        if (gpu_enter(comm->device, &scope) != WEFT_OK) return status;
        give_back(window);
        gpu_leave(&scope);
        return status;
    }
    add(window);
    *out = window;
    *local = window->buffers[comm->rank];
    return WEFT_OK;
}

/* ---- destruction ---- */

/* Does not use NCCL, which would match this with any collective that a peer calls. */
static weft_status part(struct gpu_window *window)
{
    vendor_stream stream = NULL;
    weft_status status;

    PLUG_TRY(
        gpu_check(gpu_api.stream_create(&stream, GPU_STREAM_NON_BLOCKING), "creating a stream"));
    status = gpu_window_part(window, present, stream);
    gpu_api.stream_destroy(stream);
    return status;
}

/* Work of a failed communicator may still run on the device, so its memory is not freed.  The
 * window is kept with the communicator, which stops waiting kernels. */
weft_status gpu_window_destroy(void *given)
{
    struct gpu_window *window = given;
    struct gpu_scope scope;
    weft_status status;

    if (window == NULL) return WEFT_OK;
    PLUG_TRY(gpu_enter(window->comm->device, &scope));
    status = gpu_comm_cause(window->comm);
    if (status == WEFT_OK) status = gpu_waits_end(window->comm, &window->waits);
    if (status == WEFT_OK) status = part(window);
    if (status == WEFT_OK) {
        take_out(window);
        deregister_memory(window);
        give_back(window);
    }
    gpu_leave(&scope);
    return status;
}
