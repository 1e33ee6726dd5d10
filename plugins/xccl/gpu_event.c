/* gpu_event.c - events: the ABI's are the library's own. */
#include "gpu.h"

weft_status wf_gpu_event_create(void *opened, void **out)
{
    const struct wf_gpu_device *device = opened;
    gpu_event event = NULL;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_create(&event, 0); /* with times, for event_elapsed */
    wf_leave(&scope);
    WF_TRY(wf_gpu_check(result, "creating an event"));
    *out = event;
    return WEFT_OK;
}

void wf_gpu_event_destroy(void *opened, void *event)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;

    if (event == NULL || wf_enter(device, &scope) != WEFT_OK) return;
    wf_gpu.event_destroy(event);
    wf_leave(&scope);
}

weft_status wf_gpu_event_record(void *opened, void *event, void *stream)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_record(event, wf_native(stream));
    wf_leave(&scope);
    return wf_gpu_check(result, "recording an event");
}

weft_status wf_gpu_event_query(void *opened, void *event)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.event_query(event);
    wf_leave(&scope);
    return wf_gpu_check(result, "work before an event");
}

weft_status wf_gpu_event_wait(void *opened, void *event, int64_t timeout_ns)
{
    const struct wf_gpu_device *device = opened;
    uint64_t began = wf_now_ns();
    struct wf_scope scope;
    gpu_result result;
    bool late = false;

    WF_TRY(wf_enter(device, &scope));
    while ((result = wf_gpu.event_query(event)) == GPU_NOT_READY && !late) {
        late = timeout_ns >= 0 && wf_now_ns() - began >= (uint64_t)timeout_ns;
        if (!late) wf_pause(began);
    }
    wf_leave(&scope);
    if (result == GPU_NOT_READY)
        return wf_fail(WEFT_ERR_TIMEOUT, "work before an event was not done within %.3f s",
                       (double)timeout_ns / 1e9);
    return wf_gpu_check(result, "work before an event");
}

weft_status wf_gpu_stream_wait_event(void *opened, void *stream, void *event)
{
    const struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    gpu_result result;

    WF_TRY(wf_enter(device, &scope));
    result = wf_gpu.stream_wait_event(wf_native(stream), event, 0);
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
    result = wf_gpu.event_elapsed(&milliseconds, from, to);
    wf_leave(&scope);
    WF_TRY(wf_gpu_check(result, "measuring between two events"));
    *nanoseconds = (int64_t)((double)milliseconds * 1e6);
    return WEFT_OK;
}
