/* gpu_stream.c - streams: the library's handles and their ownership. */
#include "gpu.h"

bool gpu_is_capturing(vendor_stream stream)
{
    vendor_capture status = 0;

    if (gpu_api.stream_capturing == NULL) return false;
    return gpu_api.stream_capturing(stream, &status) != GPU_SUCCESS || status != 0;
}

static struct gpu_stream *wrap(vendor_stream native, bool owned)
{
    struct gpu_stream *stream = plug_new(sizeof *stream);

    if (stream == NULL) return NULL;
    stream->native = native;
    stream->owned = owned;
    return stream;
}

weft_status gpu_stream_create(void *opened, void **out)
{
    const struct gpu_device *device = opened;
    struct gpu_stream *stream = wrap(NULL, true);
    struct gpu_scope scope;
    weft_status status;

    if (stream == NULL) return WEFT_ERR_NO_MEMORY;
    status = gpu_enter(device, &scope);
    if (status == WEFT_OK) {
        status = gpu_check(gpu_api.stream_create(&stream->native, GPU_STREAM_NON_BLOCKING),
                           "creating a stream");
        gpu_leave(&scope);
    }
    if (status == WEFT_OK)
        *out = stream;
    else
        plug_free(stream);
    return status;
}

weft_status gpu_stream_wrap(void *opened, void *native, void **out)
{
    struct gpu_stream *stream = wrap((vendor_stream)native, false);

    (void)opened;
    if (stream == NULL) return WEFT_ERR_NO_MEMORY;
    *out = stream;
    return WEFT_OK;
}

void *gpu_stream_native(void *opened, void *stream)
{
    (void)opened;
    return (void *)gpu_native(stream);
}

void gpu_stream_destroy(void *opened, void *given)
{
    const struct gpu_device *device = opened;
    struct gpu_stream *stream = given;
    struct gpu_scope scope;

    if (stream == NULL) return;
    if (stream->owned && gpu_enter(device, &scope) == WEFT_OK) {
        gpu_api.stream_sync(stream->native);
        gpu_api.stream_destroy(stream->native);
        gpu_leave(&scope);
    }
    plug_free(stream);
}

weft_status gpu_stream_query(void *device, void *stream)
{
    return gpu_ask(device, gpu_api.stream_query, gpu_native(stream), "work on a stream");
}

weft_status gpu_stream_wait(void *device, void *stream, int64_t timeout_ns)
{
    return gpu_await(device, gpu_api.stream_query, gpu_native(stream), timeout_ns,
                     "work on a stream");
}

weft_status gpu_stream_call(void *opened, void *stream, void (*fn)(void *), void *argument)
{
    const struct gpu_device *device = opened;
    struct gpu_scope scope;
    vendor_result result;

    if (fn == NULL) return plug_fail(WEFT_ERR_INVALID, "the function to call is NULL");
    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_vendor_host_call(gpu_native(stream), fn, argument);
    gpu_leave(&scope);
    return gpu_check(result, "calling a host function from a stream");
}
