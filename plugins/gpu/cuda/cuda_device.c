/* cuda_device.c - functions that are specific to the CUDA driver: contexts, versions, pointers,
 * copies. */
#include "device/gpu.h"

#include <stdio.h>
#include <stdlib.h>

/* The first version with every function that gpu_api.def requires and with uuids of MIG devices. */
#define VERSION_MIN 11040

const char *gpu_vendor_error_name(vendor_result result)
{
    const char *text = NULL;

    return gpu_api.error_name(result, &text) == GPU_SUCCESS ? text : "unknown";
}

const char *gpu_vendor_error_text(vendor_result result)
{
    const char *text = NULL;

    return gpu_api.error_text(result, &text) == GPU_SUCCESS ? text : "unknown error";
}

/* Streams of a process share hardware queues.  Work at the head of a queue that waits for another
 * rank blocks all work behind it, also of other communicators.  Eight queues are the driver's
 * default, but under MPS the default is two. */
void gpu_vendor_prepare(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 0);
}

weft_status gpu_vendor_check_version(void)
{
    if (gpu_version >= VERSION_MIN) return WEFT_OK;
    return plug_fail(WEFT_ERR_OLD_LIBRARY,
                     "the NVIDIA driver (%s) serves CUDA %d.%d; CUDA %d.%d or newer is needed",
                     gpu_library.path, gpu_version / 1000, gpu_version % 1000 / 10,
                     VERSION_MIN / 1000, VERSION_MIN % 1000 / 10);
}

void gpu_vendor_version_text(char *out, size_t size)
{
    snprintf(out, size, "CUDA driver %d.%d", gpu_version / 1000, gpu_version % 1000 / 10);
}

static void write_uuid(char *out, size_t size, const vendor_uuid *uuid)
{
    static const int dash_before[16] = {[4] = 1, [6] = 1, [8] = 1, [10] = 1};
    size_t used = (size_t)snprintf(out, size, "GPU-");

    for (int i = 0; i < 16 && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%02x", dash_before[i] ? "-" : "",
                                 (unsigned char)uuid->bytes[i]);
}

weft_status gpu_vendor_open(struct gpu_device *device)
{
    vendor_uuid uuid;
    int major = 0, minor = 0;
    vendor_result result;

    result = gpu_api.device_uuid_part != NULL ? gpu_api.device_uuid_part(&uuid, device->handle)
                                              : gpu_api.device_uuid(&uuid, device->handle);
    PLUG_TRY(gpu_check(result, "reading the device's uuid"));
    write_uuid(device->uuid, sizeof device->uuid, &uuid);
    result = gpu_api.device_attribute(&major, GPU_CAPABILITY_MAJOR, device->handle);
    if (result == GPU_SUCCESS)
        result = gpu_api.device_attribute(&minor, GPU_CAPABILITY_MINOR, device->handle);
    PLUG_TRY(gpu_check(result, "reading the device's compute capability"));
    device->capability = major * 10 + minor;
    return gpu_check(gpu_api.context_retain(&device->context, device->handle),
                     "opening the device");
}

void gpu_vendor_close(struct gpu_device *device)
{
    gpu_api.context_release(device->handle);
}

vendor_result gpu_vendor_enter(const struct gpu_device *device, struct gpu_scope *scope)
{
    vendor_result result = gpu_api.context_get(&scope->before);

    scope->changed = result == GPU_SUCCESS && scope->before != device->context;
    return scope->changed ? gpu_api.context_set(device->context) : result;
}

void gpu_vendor_leave(const struct gpu_scope *scope)
{
    if (scope->changed) gpu_api.context_set(scope->before);
}

vendor_result gpu_vendor_bind(const struct gpu_device *device)
{
    return gpu_api.context_set(device->context);
}

vendor_result gpu_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device)
{
    vendor_pointer_attribute asked[] = {GPU_POINTER_MEMORY_TYPE, GPU_POINTER_IS_MANAGED,
                                        GPU_POINTER_DEVICE};
    unsigned type = 0, managed = 0;
    int ordinal = -1;
    void *answers[] = {&type, &managed, &ordinal};
    vendor_result result =
        gpu_api.pointer_attributes(PLUG_LENGTH(asked), asked, answers, GPU_ADDRESS(pointer));

    if (result != GPU_SUCCESS) return result;
    if (type == GPU_MEMORY_DEVICE || managed != 0)
        *kind = WEFT_MEMORY_DEVICE;
    else
        *kind = type == GPU_MEMORY_HOST ? WEFT_MEMORY_PINNED : WEFT_MEMORY_HOST;
    *device = ordinal;
    return GPU_SUCCESS;
}

vendor_result gpu_vendor_copy(void *target, const void *source, uint64_t bytes,
                              vendor_stream stream)
{
    return gpu_api.copy(GPU_ADDRESS(target), GPU_ADDRESS(source), bytes, stream);
}

vendor_result gpu_vendor_copy_2d(const struct gpu_box_2d *box, vendor_stream stream)
{
    vendor_copy_2d copy = {.source_type = GPU_MEMORY_UNIFIED,
                           .source_device = GPU_ADDRESS(box->source),
                           .source_pitch = box->source_pitch,
                           .target_type = GPU_MEMORY_UNIFIED,
                           .target_device = GPU_ADDRESS(box->target),
                           .target_pitch = box->target_pitch,
                           .width = box->width,
                           .height = box->height};

    return gpu_api.copy_2d(&copy, stream);
}

vendor_result gpu_vendor_host_call(vendor_stream stream, void (*fn)(void *), void *argument)
{
    return gpu_api.host_call(stream, fn, argument);
}
