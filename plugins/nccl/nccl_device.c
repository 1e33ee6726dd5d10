/* nccl_device.c - what the CUDA driver does in its own way: contexts, versions, pointers, copies.
 */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>

/* The first with every function that gpu_api.def requires, and with uuids of parts of devices. */
#define LEAST_VERSION 11040

const char *wf_vendor_error_name(gpu_result result)
{
    const char *text = NULL;

    return wf_gpu.error_name(result, &text) == GPU_SUCCESS ? text : "unknown";
}

const char *wf_vendor_error_text(gpu_result result)
{
    const char *text = NULL;

    return wf_gpu.error_text(result, &text) == GPU_SUCCESS ? text : "unknown error";
}

/* Streams of a process share queues, and what waits for another rank at the head of one keeps all
 * behind it waiting, of other communicators too.  Eight is the driver's own number, but under MPS
 * it is two. */
void wf_vendor_prepare(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 0);
}

weft_status wf_vendor_check_version(void)
{
    if (wf_gpu_version >= LEAST_VERSION) return WEFT_OK;
    return wf_fail(WEFT_ERR_OLD_LIBRARY,
                   "the NVIDIA driver (%s) serves CUDA %d.%d; CUDA %d.%d or newer is needed",
                   wf_gpu_library.path, wf_gpu_version / 1000, wf_gpu_version % 1000 / 10,
                   LEAST_VERSION / 1000, LEAST_VERSION % 1000 / 10);
}

void wf_vendor_version_text(char *out, size_t size)
{
    snprintf(out, size, "CUDA driver %d.%d", wf_gpu_version / 1000, wf_gpu_version % 1000 / 10);
}

static void write_uuid(char *out, size_t size, const gpu_uuid *uuid)
{
    static const int dash_before[16] = {[4] = 1, [6] = 1, [8] = 1, [10] = 1};
    size_t used = (size_t)snprintf(out, size, "GPU-");

    for (int i = 0; i < 16 && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%02x", dash_before[i] ? "-" : "",
                                 (unsigned char)uuid->bytes[i]);
}

weft_status wf_vendor_open(struct wf_gpu_device *device)
{
    gpu_uuid uuid;
    int major = 0, minor = 0;
    gpu_result result;

    result = wf_gpu.device_uuid_part != NULL ? wf_gpu.device_uuid_part(&uuid, device->handle)
                                             : wf_gpu.device_uuid(&uuid, device->handle);
    WF_TRY(wf_gpu_check(result, "asking for the device's uuid"));
    write_uuid(device->uuid, sizeof device->uuid, &uuid);
    result = wf_gpu.device_attribute(&major, GPU_CAPABILITY_MAJOR, device->handle);
    if (result == GPU_SUCCESS)
        result = wf_gpu.device_attribute(&minor, GPU_CAPABILITY_MINOR, device->handle);
    WF_TRY(wf_gpu_check(result, "asking for the device's compute capability"));
    device->capability = major * 10 + minor;
    return wf_gpu_check(wf_gpu.context_retain(&device->context, device->handle),
                        "taking the device into use");
}

void wf_vendor_close(struct wf_gpu_device *device)
{
    wf_gpu.context_release(device->handle);
}

gpu_result wf_vendor_enter(const struct wf_gpu_device *device, struct wf_scope *scope)
{
    gpu_result result = wf_gpu.context_get(&scope->before);

    scope->changed = result == GPU_SUCCESS && scope->before != device->context;
    return scope->changed ? wf_gpu.context_set(device->context) : result;
}

void wf_vendor_leave(const struct wf_scope *scope)
{
    if (scope->changed) wf_gpu.context_set(scope->before);
}

gpu_result wf_vendor_bind(const struct wf_gpu_device *device)
{
    return wf_gpu.context_set(device->context);
}

gpu_result wf_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device)
{
    gpu_pointer_attribute asked[] = {GPU_POINTER_MEMORY_TYPE, GPU_POINTER_IS_MANAGED,
                                     GPU_POINTER_DEVICE};
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    void *answers[] = {&type, &managed, &ordinal};
    gpu_result result =
        wf_gpu.pointer_attributes(WF_COUNT(asked), asked, answers, GPU_ADDRESS(pointer));

    if (result != GPU_SUCCESS) return result;
    if (type == GPU_MEMORY_DEVICE || managed != 0)
        *kind = WEFT_MEMORY_DEVICE;
    else
        *kind = type == GPU_MEMORY_HOST ? WEFT_MEMORY_PINNED : WEFT_MEMORY_HOST;
    *device = ordinal;
    return GPU_SUCCESS;
}

gpu_result wf_vendor_copy(void *target, const void *source, uint64_t bytes, gpu_stream stream)
{
    return wf_gpu.copy(GPU_ADDRESS(target), GPU_ADDRESS(source), bytes, stream);
}

gpu_result wf_vendor_copy_2d(const struct wf_copy_2d *box, gpu_stream stream)
{
    gpu_copy_2d copy = {.source_type = GPU_MEMORY_UNIFIED,
                        .source_device = GPU_ADDRESS(box->source),
                        .source_pitch = box->source_pitch,
                        .target_type = GPU_MEMORY_UNIFIED,
                        .target_device = GPU_ADDRESS(box->target),
                        .target_pitch = box->target_pitch,
                        .width = box->width,
                        .height = box->height};

    return wf_gpu.copy_2d(&copy, stream);
}

gpu_result wf_vendor_host_call(gpu_stream stream, void (*fn)(void *), void *argument)
{
    return wf_gpu.host_call(stream, fn, argument);
}
