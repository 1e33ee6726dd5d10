/* gpu_symm.c - one-sided operations on windows: copies to and from peers' memory, and kernels that
 * set signals and wait for them.
 *
 * All operations are in stream order.  Each is complete and visible to all ranks before the next
 * one on the stream starts, so fence and quiet have nothing to do. */
#include "vendor.h"
#include VENDOR_COMM

#include "plug_symm.h"

#include <stdio.h>

/* ---- arguments ---- */

static weft_status check_peer(const struct gpu_window *window, const char *what, int32_t peer)
{
    PLUG_TRY(gpu_comm_cause(window->comm));
    PLUG_TRY(plug_check_peer(what, peer, window->comm->size));
    if (window->buffers[peer] != NULL) return WEFT_OK;
    return plug_fail(WEFT_ERR_UNSUPPORTED, "%s: this rank cannot access the memory of rank %d",
                     what, window->comm->world_ranks[peer]);
}

/* ---- moving ---- */

static weft_status copy(const struct gpu_window *window, const char *what, void *target,
                        const void *source, uint64_t bytes, void *stream)
{
    struct gpu_scope scope;
    vendor_result result;

    if (bytes == 0) return WEFT_OK;
    PLUG_TRY(plug_check_memory(what, target, bytes));
    PLUG_TRY(plug_check_memory(what, source, bytes));
    PLUG_TRY(gpu_enter(window->comm->device, &scope));
    result = gpu_vendor_copy(target, source, bytes, gpu_native(stream));
    gpu_leave(&scope);
    return gpu_check(result, what);
}

static weft_status put_into(const struct gpu_window *window, const char *what,
                            uint64_t target_offset, const void *source, uint64_t bytes,
                            int32_t peer, void *stream)
{
    PLUG_TRY(check_peer(window, what, peer));
    PLUG_TRY(plug_check_span(what, target_offset, bytes, window->bytes));
    return copy(window, what, (char *)window->buffers[peer] + target_offset, source, bytes, stream);
}

static weft_status put(void *window, uint64_t target_offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream)
{
    return put_into(window, "put", target_offset, source, bytes, peer, stream);
}

static weft_status get(void *given, void *target, uint64_t source_offset, uint64_t bytes,
                       int32_t peer, void *stream)
{
    const struct gpu_window *window = given;

    PLUG_TRY(check_peer(window, "get", peer));
    PLUG_TRY(plug_check_span("get", source_offset, bytes, window->bytes));
    return copy(window, "get", target, (const char *)window->buffers[peer] + source_offset, bytes,
                stream);
}

/* ---- signals ---- */

static weft_status launch(const struct gpu_window *window, enum gpu_kernel kernel,
                          const struct wk_signal_args *args, void *stream)
{
    struct gpu_device *device = window->comm->device;
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_kernel_launch(device, kernel, 1, 1, args, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

static weft_status set_signal(const struct gpu_window *window, uint32_t signal, uint64_t value,
                              uint32_t op, int32_t peer, void *stream)
{
    struct wk_signal_args args = {.channel = gpu_window_channel(window),
                                  .address = (uintptr_t)(window->pads[peer] + signal),
                                  .value = value,
                                  .op = op == WEFT_SIGNAL_ADD ? WK_SIGNAL_ADD : WK_SIGNAL_SET};

    return launch(window, GPU_KERNEL_SIGNAL, &args, stream);
}

static weft_status put_signal(void *given, uint64_t target_offset, const void *source,
                              uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                              int32_t peer, void *stream)
{
    const struct gpu_window *window = given;

    PLUG_TRY(plug_check_signal("put_signal", signal, op, window->signals));
    PLUG_TRY(put_into(window, "put_signal", target_offset, source, bytes, peer, stream));
    return set_signal(window, signal, value, op, peer, stream);
}

static weft_status signal_peer(void *given, uint32_t signal, uint64_t value, uint32_t op,
                               int32_t peer, void *stream)
{
    const struct gpu_window *window = given;

    PLUG_TRY(check_peer(window, "signal", peer));
    PLUG_TRY(plug_check_signal("signal", signal, op, window->signals));
    return set_signal(window, signal, value, op, peer, stream);
}

static weft_status wait_signal(void *given, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream)
{
    static const uint32_t compares[] = {
        [WEFT_COMPARE_EQ] = WK_EQ, [WEFT_COMPARE_NE] = WK_NE, [WEFT_COMPARE_GE] = WK_GE,
        [WEFT_COMPARE_GT] = WK_GT, [WEFT_COMPARE_LE] = WK_LE, [WEFT_COMPARE_LT] = WK_LT};
    struct gpu_window *window = given;
    struct gpu_scope scope;
    weft_status status;
    struct wk_signal_args args = {
        .channel = gpu_window_channel(window), .value = value, .signal = signal};

    PLUG_TRY(gpu_comm_cause(window->comm));
    PLUG_TRY(plug_check_compare("wait_signal", compare));
    PLUG_TRY(plug_check_signal("wait_signal", signal, WEFT_SIGNAL_SET, window->signals));
    args.address = (uintptr_t)(window->pads[window->comm->rank] + signal);
    args.compare = compares[compare];
    args.channel.timeout_ns = timeout_ns < 0 ? 0 : timeout_ns > 0 ? (uint64_t)timeout_ns : 1;
    PLUG_TRY(launch(window, GPU_KERNEL_AWAIT_SIGNAL, &args, stream));
    PLUG_TRY(gpu_enter(window->comm->device, &scope));
    status = gpu_waits_note(&window->waits, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

/* In reports: the low bits are the rank that did not release the window. */
#define RELEASE_BIT (UINT32_C(1) << 31)

void gpu_describe_no_signal(const struct gpu_comm *comm, const struct wk_report *report, char *out,
                            size_t size)
{
    uint64_t late = report->peer ^ RELEASE_BIT;

    if (late < (uint64_t)comm->size) {
        snprintf(out, size,
                 "rank %d released symmetric memory, and rank %d did not reach its release within "
                 "the time limit",
                 comm->world_ranks[comm->rank], comm->world_ranks[late]);
        return;
    }
    snprintf(
        out, size,
        "signal %llu of rank %d was still %llu at the time limit; the wait compares it with %llu",
        (unsigned long long)report->peer, comm->world_ranks[comm->rank],
        (unsigned long long)report->have, (unsigned long long)report->want);
}

/* ---- order ---- */

static weft_status fence(void *given, void *stream)
{
    const struct gpu_window *window = given;

    (void)stream;
    return gpu_comm_cause(window->comm);
}

static weft_status barrier(void *given, void *stream)
{
    const struct gpu_window *window = given;
    weft_collective_args args = {.struct_size = sizeof args,
                                 .collective = WEFT_COLL_BARRIER,
                                 .stream = stream,
                                 .plan = window->number,
                                 .binding = GPU_SYMM};

    return gpu_comm_collective(window->comm, &args);
}

/* ---- release ---- */

enum { RELEASED = 2 }; /* value of a rank's word in its peers' pads */

static weft_status leave(const struct gpu_window *window, vendor_stream stream)
{
    const struct gpu_comm *comm = window->comm;

    for (int32_t r = 0; r < comm->size; r++) {
        struct wk_signal_args args = {
            .channel = gpu_window_channel(window), .value = RELEASED, .op = WK_SIGNAL_SET};

        if (r == comm->rank || window->pads[r] == NULL) continue;
        args.address = (uintptr_t)(window->pads[r] + window->signals + comm->rank);
        PLUG_TRY(gpu_kernel_launch(comm->device, GPU_KERNEL_SIGNAL, 1, 1, &args, stream));
    }
    return WEFT_OK;
}

static weft_status await_others(const struct gpu_window *window, uint64_t present,
                                vendor_stream stream)
{
    const struct gpu_comm *comm = window->comm;

    for (int32_t r = 0; r < comm->size; r++) {
        struct wk_signal_args args = {.channel = gpu_window_channel(window),
                                      .value = present,
                                      .compare = WK_NE,
                                      .signal = RELEASE_BIT | (uint32_t)r};

        if (r == comm->rank || window->pads[r] == NULL) continue;
        args.address = (uintptr_t)(window->pads[comm->rank] + window->signals + r);
        args.channel.timeout_ns = comm->timeout_ns > 0 ? (uint64_t)comm->timeout_ns : 0;
        PLUG_TRY(gpu_kernel_launch(comm->device, GPU_KERNEL_AWAIT_SIGNAL, 1, 1, &args, stream));
    }
    return WEFT_OK;
}

weft_status gpu_window_part(struct gpu_window *window, uint64_t present, vendor_stream stream)
{
    uint64_t began = plug_now();
    vendor_result result;

    /* After a wait that timed out this rank does not release the window. */
    PLUG_TRY(gpu_comm_cause(window->comm));
    PLUG_TRY(leave(window, stream));
    PLUG_TRY(await_others(window, present, stream));
    while ((result = gpu_api.stream_query(stream)) == GPU_NOT_READY) {
        PLUG_TRY(gpu_comm_cause(window->comm));
        gpu_pause(began);
    }
    PLUG_TRY(gpu_comm_cause(window->comm));
    return gpu_check(result, "the release of symmetric memory");
}

/* ---- the table ---- */

static weft_status handle(void *given, weft_symm_handle *out)
{
    const struct gpu_window *window = given;
    weft_symm_handle answer = {.struct_size = sizeof answer,
                               .rank = window->comm->rank,
                               .size = window->comm->size,
                               .signal_count = window->signals,
                               .bytes = window->bytes,
                               .buffers = window->buffers,
                               .signals = window->pads,
                               .device_copy = window->device_copy};

    plug_give_struct(out, &answer, sizeof answer);
    return WEFT_OK;
}

const weft_symm_table gpu_symm_table = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = gpu_window_create,
    .window_destroy = gpu_window_destroy,
    .window_register = VENDOR_WINDOW_REGISTER,
    .handle = handle,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .signal = signal_peer,
    .wait_signal = wait_signal,
    .fence = fence,
    .quiet = fence,
    .barrier = barrier,
};
