/* hip_device.c - functions that are specific to HIP: versions, the current device, pointers,
 * copies. */
#include "device/gpu.h"

#include <dlfcn.h>
#include <stdio.h>

#define VERSION_MIN 50200000 /* 5.2 */
#define HIP6        60000000

/* HIP returns its texts instead of writing them to an argument, so gpu_vendor.def cannot list these
 * functions. */
static const char *text_from(const char *function, vendor_result result, const char *otherwise)
{
    const char *(*get)(vendor_result) = NULL;

    *(void **)(void *)&get = dlsym(gpu_library.handle, function);
    return get != NULL ? get(result) : otherwise;
}

const char *gpu_vendor_error_name(vendor_result result)
{
    return text_from("hipGetErrorName", result, "unknown");
}

const char *gpu_vendor_error_text(vendor_result result)
{
    return text_from("hipGetErrorString", result, "unknown error");
}

/* HIP's default of four queues is kept, because more queues slow down all of them. */
void gpu_vendor_prepare(void)
{
}

weft_status gpu_vendor_check_version(void)
{
    if (gpu_version >= VERSION_MIN) return WEFT_OK;
    return plug_fail(WEFT_ERR_OLD_LIBRARY, "%s is HIP %d.%d; HIP %d.%d or newer is needed",
                     gpu_library.path, gpu_version / 10000000, gpu_version % 10000000 / 100000,
                     VERSION_MIN / 10000000, VERSION_MIN % 10000000 / 100000);
}

void gpu_vendor_version_text(char *out, size_t size)
{
    snprintf(out, size, "HIP %d.%d", gpu_version / 10000000, gpu_version % 10000000 / 100000);
}

weft_status gpu_vendor_open(struct gpu_device *device)
{
    vendor_uuid uuid = {{0}};
    size_t used = 0;

    /* Older cards have no uuid.  The bus address then identifies the device on its host. */
    if (gpu_api.device_uuid != NULL && gpu_api.device_uuid(&uuid, device->handle) == GPU_SUCCESS) {
        used = (size_t)snprintf(device->uuid, sizeof device->uuid, "GPU-");
        for (int i = 0; i < 16; i++)
            used += (size_t)snprintf(device->uuid + used, sizeof device->uuid - used, "%02x",
                                     (unsigned char)uuid.bytes[i]);
    }
    return WEFT_OK;
}

void gpu_vendor_close(struct gpu_device *device)
{
    (void)device;
}

vendor_result gpu_vendor_enter(const struct gpu_device *device, struct gpu_scope *scope)
{
    vendor_result result = gpu_api.device_now(&scope->before_ordinal);

    scope->changed = result == GPU_SUCCESS && scope->before_ordinal != device->ordinal;
    return scope->changed ? gpu_api.device_set(device->ordinal) : result;
}

void gpu_vendor_leave(const struct gpu_scope *scope)
{
    if (scope->changed) gpu_api.device_set(scope->before_ordinal);
}

vendor_result gpu_vendor_bind(const struct gpu_device *device)
{
    return gpu_api.device_set(device->ordinal);
}

/* HIP 5: host is 0, device is 1, and unknown memory is an error.  HIP 6: unknown is 0, host is 1,
 * device is 2. */
vendor_result gpu_vendor_pointer_kind(const void *pointer, uint32_t *kind, int32_t *device)
{
    vendor_pointer_facts facts = {0};
    vendor_result result = gpu_api.pointer_attributes(&facts, pointer);
    int host = gpu_version < HIP6 ? 0 : 1;

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

vendor_result gpu_vendor_copy(void *target, const void *source, uint64_t bytes,
                              vendor_stream stream)
{
    return gpu_api.copy(target, source, bytes, GPU_COPY_ANY, stream);
}

vendor_result gpu_vendor_copy_2d(const struct gpu_box_2d *box, vendor_stream stream)
{
    return gpu_api.copy_2d(box->target, box->target_pitch, box->source, box->source_pitch,
                           box->width, box->height, GPU_COPY_ANY, stream);
}

struct host_call {
    void (*fn)(void *);
    void *argument;
};

static void run_host_call(vendor_stream stream, vendor_result result, void *given)
{
    struct host_call call = *(struct host_call *)given;

    (void)stream;
    (void)result;
    plug_free(given);
    call.fn(call.argument);
}

vendor_result gpu_vendor_host_call(vendor_stream stream, void (*fn)(void *), void *argument)
{
    struct host_call *call;
    vendor_result result;

    if (gpu_api.host_call != NULL) return gpu_api.host_call(stream, fn, argument);
    call = plug_new(sizeof *call);
    if (call == NULL) return GPU_OUT_OF_MEMORY;
    call->fn = fn;
    call->argument = argument;
    result = gpu_api.callback(stream, run_host_call, call, 0);
    if (result != GPU_SUCCESS) plug_free(call);
    return result;
}
