/* shmem_symm.c - one-sided work on windows: copies to and from peers' memory, and kernels that set
 * signals and wait for them.
 *
 * All of it is in stream order, and what comes before on a stream is done and seen by all before
 * what comes after, so fence and quiet find nothing left to do. */
#include "shmem.h"

static weft_status check_peer(const struct wf_window *window, const char *what, int32_t peer)
{
    if (peer >= 0 && peer < window->comm->size) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: peer %d is not one of %d ranks", what, peer,
                   window->comm->size);
}

static weft_status check_span(const struct wf_window *window, const char *what, uint64_t offset,
                              uint64_t bytes)
{
    if (offset <= window->bytes && bytes <= window->bytes - offset) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %llu bytes from byte %llu on, of a window of %llu", what,
                   (unsigned long long)bytes, (unsigned long long)offset,
                   (unsigned long long)window->bytes);
}

static weft_status check_signal(const struct wf_window *window, const char *what, uint32_t signal,
                                uint32_t op)
{
    if (op > WEFT_SIGNAL_ADD)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s: operation %u is unknown", what, op);
    if (signal >= window->signals)
        return wf_fail(WEFT_ERR_INVALID, "%s: signal %u of %u", what, signal, window->signals);
    return WEFT_OK;
}

static weft_status copy(struct wf_window *window, const char *what, void *target,
                        const void *source, uint64_t bytes, void *stream)
{
    struct wf_scope scope;
    gpu_result result;

    if (bytes == 0) return WEFT_OK;
    if (target == NULL || source == NULL)
        return wf_fail(WEFT_ERR_INVALID, "%s: memory is NULL", what);
    WF_TRY(wf_enter(window->comm->device, &scope));
    result = wf_vendor_copy(target, source, bytes, wf_native(stream));
    wf_leave(&scope);
    return wf_gpu_check(result, what);
}

static weft_status launch(struct wf_window *window, enum wf_onesided family,
                          const struct wk_signal_args *args, void *stream)
{
    struct wf_scope scope;
    weft_status status;

    WF_TRY(wf_enter(window->comm->device, &scope));
    status = wf_onesided_launch(window->comm, family, 1, 1, args, wf_native(stream));
    wf_leave(&scope);
    return status;
}

static weft_status put(void *given, uint64_t target_offset, const void *source, uint64_t bytes,
                       int32_t peer, void *stream)
{
    struct wf_window *window = given;

    WF_TRY(wf_comm_stuck(window->comm));
    WF_TRY(check_peer(window, "put", peer));
    WF_TRY(check_span(window, "put", target_offset, bytes));
    return copy(window, "put", (char *)window->buffers[peer] + target_offset, source, bytes,
                stream);
}

static weft_status get(void *given, void *target, uint64_t source_offset, uint64_t bytes,
                       int32_t peer, void *stream)
{
    struct wf_window *window = given;

    WF_TRY(wf_comm_stuck(window->comm));
    WF_TRY(check_peer(window, "get", peer));
    WF_TRY(check_span(window, "get", source_offset, bytes));
    return copy(window, "get", target, (const char *)window->buffers[peer] + source_offset, bytes,
                stream);
}

static weft_status set_signal(struct wf_window *window, uint32_t signal, uint64_t value,
                              uint32_t op, int32_t peer, void *stream)
{
    struct wk_signal_args args = {.channel = wf_channel(window->comm),
                                  .address = (uintptr_t)(window->pads[peer] + signal),
                                  .value = value,
                                  .op = op == WEFT_SIGNAL_ADD ? WK_SIGNAL_ADD : WK_SIGNAL_SET};

    return launch(window, WF_SIGNAL, &args, stream);
}

static weft_status put_signal(void *given, uint64_t target_offset, const void *source,
                              uint64_t bytes, uint32_t signal, uint64_t value, uint32_t op,
                              int32_t peer, void *stream)
{
    struct wf_window *window = given;

    WF_TRY(check_signal(window, "put_signal", signal, op));
    WF_TRY(put(window, target_offset, source, bytes, peer, stream));
    return set_signal(window, signal, value, op, peer, stream);
}

static weft_status signal(void *given, uint32_t signal, uint64_t value, uint32_t op, int32_t peer,
                          void *stream)
{
    struct wf_window *window = given;

    WF_TRY(wf_comm_stuck(window->comm));
    WF_TRY(check_signal(window, "signal", signal, op));
    WF_TRY(check_peer(window, "signal", peer));
    return set_signal(window, signal, value, op, peer, stream);
}

static weft_status wait_signal(void *given, uint32_t signal, uint32_t compare, uint64_t value,
                               int64_t timeout_ns, void *stream)
{
    static const uint32_t compares[] = {
        [WEFT_COMPARE_EQ] = WK_EQ, [WEFT_COMPARE_NE] = WK_NE, [WEFT_COMPARE_GE] = WK_GE,
        [WEFT_COMPARE_GT] = WK_GT, [WEFT_COMPARE_LE] = WK_LE, [WEFT_COMPARE_LT] = WK_LT};
    struct wf_window *window = given;
    struct wk_signal_args args = {.channel = wf_channel(window->comm),
                                  .address = (uintptr_t)(window->pad + signal),
                                  .value = value,
                                  .signal = signal};

    WF_TRY(wf_comm_stuck(window->comm));
    if (compare >= WF_COUNT(compares))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "wait_signal: comparison %u is unknown", compare);
    WF_TRY(check_signal(window, "wait_signal", signal, 0));
    args.compare = compares[compare];
    args.channel.timeout_ns = timeout_ns < 0 ? 0 : timeout_ns > 0 ? (uint64_t)timeout_ns : 1;
    return launch(window, WF_AWAIT_SIGNAL, &args, stream);
}

static weft_status fence(void *given, void *stream)
{
    const struct wf_window *window = given;

    (void)stream;
    return wf_comm_stuck(window->comm);
}

static weft_status barrier(void *given, void *stream)
{
    const struct wf_window *window = given;
    weft_collective_args args = {
        .struct_size = sizeof args, .collective = WEFT_COLL_BARRIER, .stream = stream};

    return wf_comm_collective(window->comm, &args);
}

const weft_symm_table wf_symm_table = {
    .struct_size = sizeof(weft_symm_table),
    .signature = WEFT_SYMM_SIGNATURE,
    .window_create = wf_window_create,
    .window_destroy = wf_window_destroy,
    .window_register = wf_window_register,
    .handle = wf_window_handle,
    .put = put,
    .get = get,
    .put_signal = put_signal,
    .signal = signal,
    .wait_signal = wait_signal,
    .fence = fence,
    .quiet = fence,
    .barrier = barrier,
};
