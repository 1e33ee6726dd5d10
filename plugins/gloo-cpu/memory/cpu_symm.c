/* cpu_symm.c - one-sided operations on windows.
 *
 * A put is a plain copy into the peer's memory, so it is complete when it returns.  A fence orders
 * later stores of this thread after it.  Signals are C11 atomics: an update is a release, and a
 * wait is an acquire. */
#include "cpu_symm.h"
#include "plug_symm.h"

#include <stdio.h>
#include <string.h>

struct work {
    struct cpu_window *window;
    unsigned char *target;
    const unsigned char *source;
    uint64_t bytes;
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

static void copy(void *target, const void *source, uint64_t bytes)
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

static void run_copy(void *argument, struct cpu_error *error)
{
    struct work *work = argument;
    struct cpu_window *window = work->window;
    struct cpu_shm_group *group = &window->comm->group;
    _Atomic(uint64_t) *pad;

    /* After a failure the memory of the peer may be reused. */
    keep_error(error, cpu_shm_has_failed(group) ? cpu_shm_fault(group)
                                                : cpu_shm_access_begin(group, work->peer));
    if (error->status != WEFT_OK) return;
    copy(work->target, work->source, work->bytes);
    cpu_shm_access_end(group, work->peer);
    if (!work->signals) return;
    pad = (_Atomic(uint64_t) *)window->pads[work->peer] + work->signal;
    if (work->op == WEFT_SIGNAL_ADD)
        atomic_fetch_add(pad, work->value);
    else
        atomic_store(pad, work->value);
    cpu_shm_ring(group, work->peer);
}

weft_status cpu_symm_put(void *handle, uint64_t target_offset, const void *source, uint64_t bytes,
                         int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window, .source = source, .bytes = bytes, .peer = peer};

    PLUG_TRY(check_peer(window, "put", peer));
    PLUG_TRY(plug_check_span("put", target_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("put", source, bytes));
    work.target = (unsigned char *)window->buffers[peer] + target_offset;
    return post(&work, run_copy, stream);
}

weft_status cpu_symm_get(void *handle, void *target, uint64_t source_offset, uint64_t bytes,
                         int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window, .target = target, .bytes = bytes, .peer = peer};

    PLUG_TRY(check_peer(window, "get", peer));
    PLUG_TRY(plug_check_span("get", source_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("get", target, bytes));
    work.source = (const unsigned char *)window->buffers[peer] + source_offset;
    return post(&work, run_copy, stream);
}

weft_status cpu_symm_put_signal(void *handle, uint64_t target_offset, const void *source,
                                uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                                int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .source = source,
                        .bytes = bytes,
                        .signals = true,
                        .peer = peer,
                        .signal = signal,
                        .op = op,
                        .value = value};

    PLUG_TRY(plug_check_signal("put_signal", signal, op, window->signals));
    PLUG_TRY(check_peer(window, "put_signal", peer));
    PLUG_TRY(plug_check_span("put_signal", target_offset, bytes, window->bytes));
    PLUG_TRY(plug_check_memory("put_signal", source, bytes));
    work.target = (unsigned char *)window->buffers[peer] + target_offset;
    return post(&work, run_copy, stream);
}

weft_status cpu_symm_signal(void *handle, uint32_t signal, uint64_t value, uint32_t op,
                            int32_t peer, void *stream)
{
    struct cpu_window *window = handle;
    struct work work = {.window = window,
                        .signals = true,
                        .peer = peer,
                        .signal = signal,
                        .op = op,
                        .value = value};

    PLUG_TRY(plug_check_signal("signal", signal, op, window->signals));
    PLUG_TRY(check_peer(window, "signal", peer));
    return post(&work, run_copy, stream);
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
