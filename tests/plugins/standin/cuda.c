/* cuda.c - the functions of libcuda.so.1 that weft calls, on the simulated device.  Error codes and
 * signatures are the driver's, but handles are pointers of our own. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef unsigned long long address;

/* The context of a device is the entry of its number. */
static char contexts[SG_MAX_DEVICES];

static void *pointer(address a)
{
    return (void *)(uintptr_t)a;
}

/* STANDIN_QUEUES is the number of queues that the caller must have requested before. */
API(cuInit, unsigned flags)
{
    long queues = sg_setting("CUDA_DEVICE_MAX_CONNECTIONS", 2);

    if (flags != 0 || sg_setting("STANDIN_QUEUES", queues) != queues) return SG_INVALID_VALUE;
    return sg_device_count() > 0 ? SG_OK : SG_NO_DEVICE;
}

API(cuDriverGetVersion, int *version)
{
    *version = (int)sg_setting("STANDIN_VERSION", 13000);
    return SG_OK;
}

API(cuGetErrorName, int code, const char **text)
{
    *text = sg_error_name(code);
    return SG_OK;
}

API(cuGetErrorString, int code, const char **text)
{
    *text = sg_error_text(code);
    return SG_OK;
}

API(cuDeviceGetCount, int *count)
{
    *count = sg_device_count();
    return SG_OK;
}

API(cuDeviceGetName, char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stand-in CUDA device %d", device);
    return SG_OK;
}

API(cuDeviceGetUuid_v2, char *uuid, int device)
{
    memset(uuid, 0xc0 + device, 16);
    return SG_OK;
}

API(cuDeviceGetUuid, char *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

API(cuDeviceGetAttribute, int *value, int attribute, int device)
{
    long capability = sg_setting("STANDIN_CAPABILITY", 90);

    (void)device;
    if (attribute == 75)
        *value = (int)capability / 10;
    else if (attribute == 76)
        *value = (int)capability % 10;
    else if (attribute ==
             16) /* few multiprocessors, so that small lists of regions are many tiles */
        *value = 2;
    else if (attribute == 102 || attribute == 103) /* memory as files */
        *value = 1;
    else
        return SG_INVALID_VALUE;
    return SG_OK;
}

/* As CUlaunchConfig. */
struct launch {
    unsigned grid[3], block[3], shared;
    struct sg_stream *stream;
    struct {
        int id, reserved, value[16];
    } * attributes;
    unsigned attribute_count;
};

/* Only early launches are supported, and a stream's work runs in order anyway. */
API(cuLaunchKernelEx, const struct launch *launch, const struct sg_kernel *function,
    void **arguments, void **extra)
{
    for (unsigned i = 0; i < launch->attribute_count; i++)
        if (launch->attributes[i].id != 6 || launch->attributes[i].value[0] != 1)
            return SG_INVALID_VALUE;
    if (launch->grid[1] * launch->grid[2] * launch->block[1] * launch->block[2] != 1 ||
        launch->block[0] != 256 || launch->shared != 0 || extra != NULL)
        return SG_INVALID_VALUE;
    return sg_launch(function, launch->grid[0], arguments, launch->stream);
}

API(cuDevicePrimaryCtxRetain, void **context, int device)
{
    *context = &contexts[device];
    return SG_OK;
}

API(cuDevicePrimaryCtxRelease_v2, int device)
{
    return device >= 0 && device < sg_device_count() ? SG_OK : SG_INVALID_DEVICE;
}

static _Thread_local char *current;

API(cuCtxGetCurrent, void **context)
{
    *context = current;
    return SG_OK;
}

API(cuCtxSetCurrent, void *context)
{
    long slow = sg_setting("STANDIN_SLOW_CONTEXT", 0);

    if (context != NULL && slow > 0) nanosleep(&(struct timespec){.tv_nsec = slow * 1000}, NULL);
    current = context;
    if (context != NULL) sg_set_current((int)(current - contexts));
    return SG_OK;
}

API(cuMemAlloc_v2, address *out, size_t bytes)
{
    void *memory = NULL;
    int result = current == NULL ? SG_INVALID_HANDLE : sg_alloc(bytes, SG_DEVICE, &memory);

    if (result == SG_OK) *out = (uintptr_t)memory;
    return result;
}

API(cuMemFree_v2, address a)
{
    sg_device_sync(); /* as the real one does */
    return sg_free(pointer(a), SG_DEVICE);
}

API(cuMemGetAddressRange_v2, address *base, size_t *bytes, address a)
{
    struct sg_block block = sg_find(pointer(a));

    if (block.kind == SG_UNKNOWN) return SG_NOT_FOUND;
    *base = (uintptr_t)block.base;
    *bytes = block.bytes;
    return SG_OK;
}

API(cuPointerGetAttributes, unsigned count, int *attributes, void **values, address a)
{
    struct sg_block block = sg_find(pointer(a));

    for (unsigned i = 0; i < count; i++) {
        int value = 0;
        if (attributes[i] == 2) value = (int)block.kind; /* host 1, device 2, as SG_ counts them */
        if (attributes[i] == 9) value = block.kind == SG_UNKNOWN ? -1 : block.device;
        memcpy(values[i], &value, sizeof value);
    }
    return SG_OK;
}

/* Pools: memory is allocated at once and freed in stream order. */
API(cuMemPoolCreate, void **pool, const void *options)
{
    static int one;

    (void)options;
    if (sg_setting("STANDIN_NO_POOLS", 0) != 0) return SG_NOT_PERMITTED;
    *pool = &one;
    return SG_OK;
}

/* ACCESS: the kind of place, the device, and 3 for reading and writing. */
API(cuMemPoolSetAccess, void *pool, const int *access, size_t count)
{
    if (pool == NULL || count != 1 || access[0] != 1 || access[2] != 3) return SG_INVALID_VALUE;
    return access[1] >= 0 && access[1] < sg_device_count() ? SG_OK : SG_INVALID_DEVICE;
}

API(cuMemPoolDestroy, void *pool)
{
    return pool != NULL ? SG_OK : SG_INVALID_VALUE;
}

API(cuMemPoolSetAttribute, void *pool, int attribute, void *value)
{
    return pool != NULL && attribute == 4 && value != NULL ? SG_OK : SG_INVALID_VALUE;
}

API(cuMemAllocFromPoolAsync, address *out, size_t bytes, void *pool, struct sg_stream *stream)
{
    (void)pool;
    (void)stream;
    return cuMemAlloc_v2(out, bytes);
}

static void free_later(void *memory)
{
    sg_free(memory, SG_DEVICE);
}

API(cuMemFreeAsync, address a, struct sg_stream *stream)
{
    return sg_call(stream, free_later, pointer(a));
}

API(cuMemcpyAsync, address target, address source, size_t bytes, struct sg_stream *stream)
{
    return sg_copy(pointer(target), pointer(source), bytes, stream);
}

struct copy_2d {
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    address source;
    void *source_array;
    size_t source_pitch, target_x, target_y;
    int target_type;
    void *target_host;
    address target;
    void *target_array;
    size_t target_pitch, width, height;
};

API(cuMemcpy2DAsync_v2, const struct copy_2d *c, struct sg_stream *stream)
{
    struct sg_box box = {pointer(c->target), pointer(c->source), c->target_pitch,
                         c->source_pitch,    c->width,           c->height};

    if (c->source_type != 4 || c->target_type != 4) return SG_INVALID_VALUE;
    return sg_copy_2d(&box, stream);
}

API(cuMemsetD8Async, address a, unsigned char byte, size_t bytes, struct sg_stream *stream)
{
    return sg_fill(pointer(a), byte, bytes, stream);
}

API(cuLaunchHostFunc, struct sg_stream *stream, void (*fn)(void *), void *argument)
{
    return sg_call(stream, fn, argument);
}

/* For the simulated NVSHMEM, whose heap is device memory. */
API(standin_adopt, void *memory, size_t bytes)
{
    return sg_adopt(memory, bytes);
}

API(cuStreamIsCapturing, struct sg_stream *stream, int *status)
{
    *status = 0;
    if (sg_broken() != SG_OK) return sg_broken();
    return stream == NULL && sg_setting("STANDIN_RECORDING", 0) != 0 ? SG_CAPTURE_IMPLICIT : SG_OK;
}
