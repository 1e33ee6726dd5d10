/* gpu_stream.c - streams: the library's own, and whether they are ours to end. */
#include "gpu.h"

bool wf_is_capturing(gpu_stream stream)
{
    gpu_capture status = 0;

    if (wf_gpu.stream_capturing == NULL) return false;
    return wf_gpu.stream_capturing(stream, &status) != GPU_SUCCESS || status != 0;
}

static struct wf_gpu_stream *wrap(gpu_stream native, bool owned)
{
    struct wf_gpu_stream *stream = wf_new(sizeof *stream);

    if (stream == NULL) return NULL;
    stream->native = native;
    stream->owned = owned;
    return stream;
}

weft_status wf_gpu_stream_create(void *opened, void **out)
{
    const struct wf_gpu_device *device = opened;
    struct wf_gpu_stream *stream = wrap(NULL, true);
    struct wf_scope scope;
    weft_status status;

    if (stream == NULL) return WEFT_ERR_NO_MEMORY;
    status = wf_enter(device, &scope);
    if (status == WEFT_OK) {
        status = wf_gpu_check(wf_gpu.stream_create(&stream->native, GPU_STREAM_NON_BLOCKING),
                              "creating a stream");
        wf_leave(&scope);
    }
    if (status == WEFT_OK)
        *out = stream;
    else
        wf_delete(stream);
    return status;
}

weft_status wf_gpu_stream_wrap(void *opened, void *native, void **out)
{
    struct wf_gpu_stream *stream = wrap((gpu_stream)native, false);

    (void)opened;
    if (stream == NULL) return WEFT_ERR_NO_MEMORY;
    *out = stream;
    return WEFT_OK;
}

void *wf_gpu_stream_native(void *opened, void *stream)
{
    (void)opened;
    return (void *)wf_native(stream);
}

void wf_gpu_stream_destroy(void *opened, void *given)
{
    const struct wf_gpu_device *device = opened;
    struct wf_gpu_stream *stream = given;
    struct wf_scope scope;

    if (stream == NULL) return;
    if (stream->owned && wf_enter(device, &scope) == WEFT_OK) {
        wf_gpu.stream_sync(stream->native);
        wf_gpu.stream_destroy(stream->native);
        wf_leave(&scope);
    }
    wf_delete(stream);
}

weft_status wf_gpu_stream_query(void *device, void *stream)
{
    return wf_gpu_ask(device, wf_gpu.stream_query, wf_native(stream), "work on a stream");
}

weft_status wf_gpu_stream_wait(void *device, void *stream, int64_t timeout_ns)
{
    return wf_gpu_await(device, wf_gpu.stream_query, wf_native(stream), timeout_ns,
                        "work on a stream");
}

weft_status wf_gpu_stream_call(void *opened, void *stream, void (*fn)(void *), void *argument)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    if (fn == NULL) return wf_fail(WEFT_ERR_INVALID, "the function to call is NULL");
    WF_TRY(wf_enter(device, &scope));
    result = wf_vendor_host_call(wf_native(stream), fn, argument);
    wf_leave(&scope);
    return wf_gpu_check(result, "calling a host function from a stream");
}
