/* gpu_event.c - events: the library's own, and whether they are ours to end. */
#include "gpu.h"

struct event {
    gpu_event native;
    bool owned;
};

static gpu_event native_of(const void *event)
{
    return ((const struct event *)event)->native;
}

weft_status wf_gpu_event_wrap(void *opened, void *native, void **out)
{
    struct event *event;

    (void)opened;
    if (native == NULL) return wf_fail(WEFT_ERR_INVALID, "the event to wrap is NULL");
    event = wf_new(sizeof *event);
    if (event == NULL) return WEFT_ERR_NO_MEMORY;
    event->native = native;
    *out = event;
    return WEFT_OK;
}

void *wf_gpu_event_native(void *opened, void *event)
{
    (void)opened;
    return event != NULL ? (void *)native_of(event) : NULL;
}

weft_status wf_gpu_event_create(void *opened, void **out)
{
    const struct wf_gpu_device *device = opened;
    gpu_event native = NULL;
    struct wf_scope scope;
    gpu_result result;
    void *event = NULL;
    weft_status status;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_create(&native, 0); /* with times, for event_elapsed */
    if (result == GPU_SUCCESS) {
        status = wf_gpu_event_wrap(opened, (void *)native, &event);
        if (status != WEFT_OK) wf_gpu.event_destroy(native);
    } else {
        status = wf_gpu_check(result, "creating an event");
    }
    wf_leave(&scope);
    if (status != WEFT_OK) return status;
    ((struct event *)event)->owned = true;
    *out = event;
    return WEFT_OK;
}

void wf_gpu_event_destroy(void *opened, void *given)
{
    const struct wf_gpu_device *device = opened;
    struct event *event = given;
    struct wf_scope scope;

    if (event == NULL) return;
    if (event->owned && wf_enter(device, &scope) == WEFT_OK) {
        wf_gpu.event_destroy(event->native);
        wf_leave(&scope);
    }
    wf_delete(event);
}

weft_status wf_gpu_event_record(void *opened, void *event, void *stream)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_record(native_of(event), wf_native(stream));
    wf_leave(&scope);
    return wf_gpu_check(result, "recording an event");
}

weft_status wf_gpu_event_query(void *device, void *event)
{
    return wf_gpu_ask(device, wf_gpu.event_query, native_of(event), "work before an event");
}

weft_status wf_gpu_event_wait(void *device, void *event, int64_t timeout_ns)
{
    return wf_gpu_await(device, wf_gpu.event_query, native_of(event), timeout_ns,
                        "work before an event");
}

weft_status wf_gpu_stream_wait_event(void *opened, void *stream, void *event)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.stream_wait_event(wf_native(stream), native_of(event), 0);
    wf_leave(&scope);
    return wf_gpu_check(result, "letting a stream wait for an event");
}

weft_status wf_gpu_event_elapsed(void *opened, void *from, void *to, int64_t *nanoseconds)
{
    const struct wf_gpu_device *device = opened;
    float milliseconds = 0;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_elapsed(&milliseconds, native_of(from), native_of(to));
    wf_leave(&scope);
    WF_TRY(wf_gpu_check(result, "measuring between two events"));
    *nanoseconds = (int64_t)((double)milliseconds * 1e6);
    return WEFT_OK;
}
