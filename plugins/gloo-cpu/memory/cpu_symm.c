/* cpu_symm.c - one-sided operations on windows.
 *
 * A put is a plain copy into the peer's memory, so it is complete when it returns.  A fence orders
 * later stores of this thread after it.  Signals are C11 atomics: an update is a release, and a
 * wait is an acquire.  A rank on another host serves requests, and confirms them
 * (hosts/hosts_windows.c). */
#include "cpu_symm.h"
#include "hosts/hosts.h"
#include "plug_symm.h"

#include <stdio.h>
#include <string.h>

struct work {
    struct cpu_window *window;
    uint32_t kind; /* enum cpu_hosts_access_kind */
    uint64_t offset, bytes;
    unsigned char *memory; /* this rank's; a put only reads it */
    int32_t peer;
    bool signals; /* true: set SIGNAL of PEER to VALUE afterwards */
    uint32_t signal, op, compare;
    uint64_t value;
    int64_t timeout_ns;
    bool on_stream;
};

static void keep_error(struct cpu_error *error, weft_status status)
{
    error->status = status;
    if (status != WEFT_OK) snprintf(error->text, sizeof error->text, "%s", plug_last_text());
}

static weft_status post(struct work *work, cpu_work run, void *stream)
{
    work->on_stream = stream != NULL;
    return cpu_stream_run_counted(stream, &work->window->under_way, run, work, sizeof *work, NULL,
                                  0);
}

static weft_status check_peer(const struct cpu_window *window, const char *name, int32_t peer)
{
    PLUG_TRY(cpu_shm_fault(&window->comm->group));
    return plug_check_peer(name, peer, window->comm->size);
}

/* Aligned words are written atomically, so a peer may read them concurrently. */
#define COPY_WORD(type)                                                                            \
    atomic_store_explicit(                                                                         \
        (_Atomic(type) *)target,                                                                   \
        atomic_load_explicit((const _Atomic(type) *)source, memory_order_relaxed),                 \
        memory_order_relaxed)

void cpu_window_copy(void *target, const void *source, uint64_t bytes)
{
    bool aligned =
        bytes > 0 && ((uintptr_t)target % bytes) == 0 && ((uintptr_t)source % bytes) == 0;

    if (aligned && bytes == 8)
        COPY_WORD(uint64_t);
    else if (aligned && bytes == 4)
        COPY_WORD(uint32_t);
    else if (aligned && bytes == 2)
        COPY_WORD(uint16_t);
    else if (bytes == 1)
        COPY_WORD(uint8_t);
    else if (bytes > 0)
        memmove(target, source, bytes);
}

void cpu_window_signal(struct cpu_window *window, _Atomic(uint64_t) *pad, int32_t place,
                       uint32_t signal, uint32_t op, uint64_t value)
{
    if (op == WEFT_SIGNAL_ADD)
        atomic_fetch_add(&pad[signal], value);
    else
        atomic_store(&pad[signal], value);
    cpu_shm_ring(&window->comm->group, place);
}

/* PLACE: of the peer, which is on this host. */
static weft_status access_near(const struct work *work, int32_t place)
{
    struct cpu_window *window = work->window;
    struct cpu_shm_group *group = &window->comm->group;
    unsigned char *theirs = (unsigned char *)window->buffers[work->peer] + work->offset;

    /* After a failure the memory of the peer may be reused. */
    if (cpu_shm_has_failed(group)) return cpu_shm_fault(group);
    PLUG_TRY(cpu_shm_access_begin(group, place));
    if (work->kind == HOSTS_PUT) cpu_window_copy(theirs, work->memory, work->bytes);
    if (work->kind == HOSTS_GET) cpu_window_copy(work->memory, theirs, work->bytes);
    cpu_shm_access_end(group, place);
    if (work->signals)
        cpu_window_signal(window, (_Atomic(uint64_t) *)window->pads[work->peer], place,
                          work->signal, work->op, work->value);
    return WEFT_OK;
}

static weft_status access_far(const struct work *work)
{
    const struct cpu_hosts_access access = {.window = work->window->number,
                                            .peer = work->peer,
                                            .kind = work->kind,
                                            .offset = work->offset,
                                            .bytes = work->bytes,
                                            .memory = work->memory,
                                            .signals = work->signals,
                                            .signal = work->signal,
                                            .op = work->op,
                                            .value = work->value};

    return cpu_hosts_access(work->window->comm, &access);
}

static void run_access(void *argument, struct cpu_error *error)
{
    const struct work *work = argument;
    int32_t place = work->window->comm->places[work->peer];

    keep_error(error, place >= 0 ? access_near(work, place) : access_far(work));
}

weft_status cpu_symm_put(void *handle, uint64_t target_offset, const void *source, uint64_t bytes,
                         int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .kind = HOSTS_PUT,
                        .offset = target_offset,
                        .bytes = bytes,
                        .memory = (void *)(uintptr_t)source,
                        .peer = peer};

    PLUG_TRY(check_peer(window, "put", peer));
    PLUG_TRY(plug_check_span("put", target_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("put", source, bytes));
    return post(&work, run_access, stream);
}

weft_status cpu_symm_get(void *handle, void *target, uint64_t source_offset, uint64_t bytes,
                         int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .kind = HOSTS_GET,
                        .offset = source_offset,
                        .bytes = bytes,
                        .memory = target,
                        .peer = peer};

    PLUG_TRY(check_peer(window, "get", peer));
    PLUG_TRY(plug_check_span("get", source_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("get", target, bytes));
    return post(&work, run_access, stream);
}

weft_status cpu_symm_put_signal(void *handle, uint64_t target_offset, const void *source,
                                uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                                int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .kind = HOSTS_PUT,
                        .offset = target_offset,
                        .bytes = bytes,
                        .memory = (void *)(uintptr_t)source,
                        .signals = true,
                        .peer = peer,
                        .signal = signal,
                        .op = op,
                        .value = value};

    PLUG_TRY(plug_check_signal("put_signal", signal, op, window->signals));
    PLUG_TRY(check_peer(window, "put_signal", peer));
    PLUG_TRY(plug_check_span("put_signal", target_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("put_signal", source, bytes));
    return post(&work, run_access, stream);
}

weft_status cpu_symm_signal(void *handle, uint32_t signal, uint64_t value, uint32_t op,
                            int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .kind = HOSTS_SIGNAL,
                        .signals = true,
                        .peer = peer,
                        .signal = signal,
                        .op = op,
                        .value = value};

    PLUG_TRY(plug_check_signal("signal", signal, op, window->signals));
    PLUG_TRY(check_peer(window, "signal", peer));
    return post(&work, run_access, stream);
}

static bool signal_compares(void *argument)
{
    const struct work *work = argument;
    uint64_t now = atomic_load(&work->window->pad[work->signal]);

    return kit_signal_matches(now, work->compare, work->value);
}

static void run_wait(void *argument, struct cpu_error *error)
{
    struct work *work = argument;
    struct cpu_shm_waiting waiting = {.ready = signal_compares,
                                      .argument = work,
                                      .rank = -1,
                                      .timeout_ns = work->timeout_ns,
                                      .doing = "wait_signal",
                                      .polled = true,
                                      .forgiving = true};

    if (signal_compares(work)) return;
    keep_error(error, cpu_shm_wait_until(&work->window->comm->group, &waiting));
    if (error->status == WEFT_ERR_TIMEOUT && work->on_stream)
        atomic_store(&work->window->ran_out, true); /* the caller did not receive the error */
}

weft_status cpu_symm_wait_signal(void *handle, uint32_t signal, uint32_t compare, uint64_t value,
                                 int64_t timeout_ns, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .signal = signal,
                        .compare = compare,
                        .value = value,
                        .timeout_ns = timeout_ns};

    PLUG_TRY(plug_check_compare("wait_signal", compare));
    PLUG_TRY(plug_check_signal("wait_signal", signal, 0, window->signals));
    PLUG_TRY(cpu_shm_fault(&window->comm->group));
    return post(&work, run_wait, stream);
}

static void run_fence(void *argument, struct cpu_error *error)
{
    (void)argument;
    (void)error;
    cpu_fence(memory_order_seq_cst);
}

weft_status cpu_symm_fence(void *handle, void *stream)
{
    const struct cpu_window *window = handle;
    char nothing = 0;

    PLUG_TRY(cpu_shm_fault(&window->comm->group));
    return cpu_stream_run(stream, run_fence, &nothing, sizeof nothing);
}

weft_status cpu_symm_quiet(void *window, void *stream)
{
    return cpu_symm_fence(window, stream);
}

weft_status cpu_symm_barrier(void *handle, void *stream)
{
    const struct cpu_window *window = handle;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_BARRIER,
                                 .stream = stream,
                                 .plan = window->number,
                                 .binding = SHM_WINDOW,
                                 .step = SHM_WINDOW_BARRIER};

    return cpu_comm_collective(window->comm, &args);
}
