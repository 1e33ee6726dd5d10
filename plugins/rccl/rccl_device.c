/* rccl_device.c - what HIP does in its own way: versions, the current device, pointers, copies. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>

#define LEAST_VERSION 50200000 /* 5.2 */
#define HIP6          60000000

/* HIP's texts are returned, not written; so they are found apart from gpu_vendor.def. */
static const char *text_from(const char *function, gpu_result result, const char *otherwise)
{
    const char *(*get)(gpu_result) = NULL;

    *(void **)(void *)&get = dlsym(wf_gpu_library.handle, function);
    return get != NULL ? get(result) : otherwise;
}

const char *wf_vendor_error_name(gpu_result result)
{
    return text_from("hipGetErrorName", result, "unknown");
}

const char *wf_vendor_error_text(gpu_result result)
{
    return text_from("hipGetErrorString", result, "unknown error");
}

/* HIP's four queues are not raised: more take speed from all. */
void wf_vendor_prepare(void)
{
}

weft_status wf_vendor_check_version(void)
{
    if (wf_gpu_version >= LEAST_VERSION) return WEFT_OK;
    return wf_fail(WEFT_ERR_OLD_LIBRARY, "%s is HIP %d.%d; HIP %d.%d or newer is needed",
                   wf_gpu_library.path, wf_gpu_version / 10000000,
                   wf_gpu_version % 10000000 / 100000, LEAST_VERSION / 10000000,
                   LEAST_VERSION % 10000000 / 100000);
}

void wf_vendor_version_text(char *out, size_t size)
{
    snprintf(out, size, "HIP %d.%d", wf_gpu_version / 10000000, wf_gpu_version % 10000000 / 100000);
}

weft_status wf_vendor_open(struct wf_gpu_device *device)
{
    gpu_uuid uuid = {{0}};
    size_t used = 0;

    /* Older cards have no uuid; the bus address beside it tells devices of a host apart. */
    if (wf_gpu.device_uuid != NULL && wf_gpu.device_uuid(&uuid, device->handle) == GPU_SUCCESS) {
        used = (size_t)snprintf(device->uuid, sizeof device->uuid, "GPU-");
        for (int i = 0; i < 16; i++)
            used += (size_t)snprintf(device->uuid + used, sizeof device->uuid - used, "%02x",
                                     (unsigned char)uuid.bytes[i]);
    }
    return WEFT_OK;
}

void wf_vendor_close(struct wf_gpu_device *device)
{
    (void)device;
}

gpu_result wf_vendor_enter(const struct wf_gpu_device *device, struct wf_scope *scope)
{
    gpu_result result = wf_gpu.device_now(&scope->before_ordinal);

    scope->changed = result == GPU_SUCCESS && scope->before_ordinal != device->ordinal;
    return scope->changed ? wf_gpu.device_set(device->ordinal) : result;
}

void wf_vendor_leave(const struct wf_scope *scope)
{
    if (scope->changed) wf_gpu.device_set(scope->before_ordinal);
}

gpu_result wf_vendor_bind(const struct wf_gpu_device *device)
{
    return wf_gpu.device_set(device->ordinal);
}

/* HIP 5 numbers host 0, device 1 and calls unknown memory an error; HIP 6 has unknown 0, host 1,
 * device 2. */
gpu_result wf_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device)
{
    gpu_pointer_facts facts = {0};
    gpu_result result = wf_gpu.pointer_attributes(&facts, pointer);
    int host = wf_gpu_version < HIP6 ? 0 : 1;

    if (result == GPU_INVALID_VALUE) {
        *kind = WEFT_MEMORY_HOST;
        *device = -1;
        return GPU_SUCCESS;
    }
    if (result != GPU_SUCCESS) return result;
    if (facts.type == host + 1 || facts.is_managed != 0 || facts.type > host + 1)
        *kind = WEFT_MEMORY_DEVICE;
    else
        *kind = facts.type == host ? WEFT_MEMORY_PINNED : WEFT_MEMORY_HOST;
    *device = facts.device;
    return GPU_SUCCESS;
}

gpu_result wf_vendor_copy(void *target, const void *source, uint64_t bytes, gpu_stream stream)
{
    return wf_gpu.copy(target, source, bytes, GPU_COPY_ANY, stream);
}

gpu_result wf_vendor_copy_2d(const struct wf_copy_2d *box, gpu_stream stream)
{
    return wf_gpu.copy_2d(box->target, box->target_pitch, box->source, box->source_pitch,
                          box->width, box->height, GPU_COPY_ANY, stream);
}

struct host_call {
    void (*fn)(void *);
    void *argument;
};

static void run_host_call(gpu_stream stream, gpu_result result, void *given)
{
    struct host_call call = *(struct host_call *)given;

    (void)stream;
    (void)result;
    wf_delete(given);
    call.fn(call.argument);
}

gpu_result wf_vendor_host_call(gpu_stream stream, void (*fn)(void *), void *argument)
{
    struct host_call *call;
    gpu_result result;

    if (wf_gpu.host_call != NULL) return wf_gpu.host_call(stream, fn, argument);
    call = wf_new(sizeof *call);
    if (call == NULL) return GPU_OUT_OF_MEMORY;
    call->fn = fn;
    call->argument = argument;
    result = wf_gpu.callback(stream, run_host_call, call, 0);
    if (result != GPU_SUCCESS) wf_delete(call);
    return result;
}
