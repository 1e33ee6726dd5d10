/* gpu_event.c - events: the library's handles and their ownership. */
#include "gpu.h"

struct event {
    vendor_event native;
    bool owned;
    bool captured; /* its last record is part of a graph */
};

static vendor_event native_of(const void *event)
{
    return ((const struct event *)event)->native;
}

weft_status gpu_event_wrap(void *opened, void *native, void **out)
{
    struct event *event;

    (void)opened;
    if (native == NULL) return plug_fail(WEFT_ERR_INVALID, "the event to wrap is NULL");
    event = plug_new(sizeof *event);
    if (event == NULL) return WEFT_ERR_NO_MEMORY;
    event->native = native;
    *out = event;
    return WEFT_OK;
}

void *gpu_event_native(void *opened, void *event)
{
    (void)opened;
    return event != NULL ? (void *)native_of(event) : NULL;
}

weft_status gpu_event_create(void *opened, void **out)
{
    const struct gpu_device *device = opened;
    vendor_event native = NULL;
    struct gpu_scope scope;
    vendor_result result;
    void *event = NULL;
    weft_status status;

    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_api.event_create(&native, 0); /* with timestamps, for event_elapsed */
    if (result == GPU_SUCCESS) {
        status = gpu_event_wrap(opened, (void *)native, &event);
        if (status != WEFT_OK) gpu_api.event_destroy(native);
    } else {
        status = gpu_check(result, "creating an event");
    }
    gpu_leave(&scope);
    if (status != WEFT_OK) return status;
    ((struct event *)event)->owned = true;
    *out = event;
    return WEFT_OK;
}

void gpu_event_destroy(void *opened, void *given)
{
    const struct gpu_device *device = opened;
    struct event *event = given;
    struct gpu_scope scope;

    if (event == NULL) return;
    if (event->owned && gpu_enter(device, &scope) == WEFT_OK) {
        gpu_api.event_destroy(event->native);
        gpu_leave(&scope);
    }
    plug_free(event);
}

weft_status gpu_event_record(void *opened, void *given, void *stream)
{
    const struct gpu_device *device = opened;
    struct event *event = given;
    struct gpu_scope scope;
    vendor_result result;

    PLUG_TRY(gpu_enter(device, &scope));
    event->captured = gpu_is_capturing(gpu_native(stream));
    result = gpu_api.event_record(event->native, gpu_native(stream));
    gpu_leave(&scope);
    return gpu_check(result, "recording an event");
}

/* A question about an event of a graph would make the capture invalid. */
static weft_status refuse_captured(const void *event, const char *what)
{
    if (!((const struct event *)event)->captured) return WEFT_OK;
    return plug_fail(WEFT_ERR_INVALID, "%s: the event was recorded into a device graph", what);
}

/* Questions must not end a graph capture of this or another thread.  Returns the mode before. */
static vendor_capture_mode relax(vendor_capture_mode mode)
{
    if (gpu_api.capture_mode != NULL) gpu_api.capture_mode(&mode);
    return mode;
}

weft_status gpu_event_query(void *device, void *event)
{
    vendor_capture_mode before;
    weft_status status;

    PLUG_TRY(refuse_captured(event, "event_query"));
    before = relax(GPU_CAPTURE_RELAXED);
    status = gpu_ask(device, gpu_api.event_query, native_of(event), "work before an event");
    (void)relax(before);
    return status;
}

weft_status gpu_event_wait(void *device, void *event, int64_t timeout_ns)
{
    vendor_capture_mode before;
    weft_status status;

    PLUG_TRY(refuse_captured(event, "event_wait"));
    before = relax(GPU_CAPTURE_RELAXED);
    status = gpu_await(device, gpu_api.event_query, native_of(event), timeout_ns,
                       "work before an event");
    (void)relax(before);
    return status;
}

weft_status gpu_stream_wait_event(void *opened, void *stream, void *event)
{
    const struct gpu_device *device = opened;
    struct gpu_scope scope;
    vendor_result result;

    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_api.stream_wait_event(gpu_native(stream), native_of(event), 0);
    gpu_leave(&scope);
    return gpu_check(result, "making a stream wait for an event");
}

weft_status gpu_event_elapsed(void *opened, void *from, void *to, int64_t *nanoseconds)
{
    const struct gpu_device *device = opened;
    float milliseconds = 0;
    struct gpu_scope scope;
    vendor_result result;

    PLUG_TRY(refuse_captured(from, "event_elapsed"));
    PLUG_TRY(refuse_captured(to, "event_elapsed"));
    PLUG_TRY(gpu_enter(device, &scope));
    result = gpu_api.event_elapsed(&milliseconds, native_of(from), native_of(to));
    gpu_leave(&scope);
    PLUG_TRY(gpu_check(result, "measuring the time between two events"));
    *nanoseconds = (int64_t)((double)milliseconds * 1e6);
    return WEFT_OK;
}
