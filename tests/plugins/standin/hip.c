/* hip.c - the functions of libamdhip64.so that weft calls, on the simulated device.
 *
 * Its default is HIP 6; STANDIN_VERSION sets another version.  Like HIP 5.2, it has no
 * hipLaunchHostFunc. */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

static int version(void)
{
    return (int)sg_setting("STANDIN_VERSION", 60200000);
}

API(hipInit, unsigned flags)
{
    if (flags != 0) return SG_INVALID_VALUE;
    return sg_device_count() > 0 ? SG_OK : SG_INVALID_DEVICE;
}

API(hipRuntimeGetVersion, int *out)
{
    *out = version();
    return SG_OK;
}

STANDIN_API const char *hipGetErrorName(int code);
STANDIN_API const char *hipGetErrorName(int code)
{
    return sg_error_name(code);
}

STANDIN_API const char *hipGetErrorString(int code);
STANDIN_API const char *hipGetErrorString(int code)
{
    return sg_error_text(code);
}

API(hipGetDeviceCount, int *count)
{
    *count = sg_device_count();
    return *count > 0 ? SG_OK : SG_NO_DEVICE;
}

API(hipDeviceGetName, char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Stand-in HIP device %d", device);
    return SG_OK;
}

API(hipDeviceGetUuid, char *uuid, int device)
{
    memset(uuid, 0xa0 + device, 16);
    return SG_OK;
}

API(hipGetDevice, int *ordinal)
{
    *ordinal = sg_current();
    return SG_OK;
}

API(hipSetDevice, int ordinal)
{
    if (ordinal < 0 || ordinal >= sg_device_count()) return SG_INVALID_DEVICE;
    sg_set_current(ordinal);
    return SG_OK;
}

API(hipMalloc, void **out, size_t bytes)
{
    return sg_alloc(bytes, SG_DEVICE, out);
}

API(hipFree, void *memory)
{
    sg_device_sync(); /* as the real one does */
    return sg_free(memory, SG_DEVICE);
}

/* Pools: memory is allocated at once and freed in stream order. */
API(hipMemPoolCreate, void **pool, const void *options)
{
    static int one;

    (void)options;
    if (sg_setting("STANDIN_NO_POOLS", 0) != 0) return SG_NOT_PERMITTED;
    *pool = &one;
    return SG_OK;
}

/* ACCESS: the kind of place, the device, and 3 for reading and writing. */
API(hipMemPoolSetAccess, void *pool, const int *access, size_t count)
{
    if (pool == NULL || count != 1 || access[0] != 1 || access[2] != 3) return SG_INVALID_VALUE;
    return access[1] >= 0 && access[1] < sg_device_count() ? SG_OK : SG_INVALID_DEVICE;
}

API(hipMemPoolDestroy, void *pool)
{
    return pool != NULL ? SG_OK : SG_INVALID_VALUE;
}

API(hipMemPoolSetAttribute, void *pool, int attribute, void *value)
{
    return pool != NULL && attribute == 4 && value != NULL ? SG_OK : SG_INVALID_VALUE;
}

API(hipMallocFromPoolAsync, void **out, size_t bytes, void *pool, struct sg_stream *stream)
{
    (void)pool;
    (void)stream;
    return hipMalloc(out, bytes);
}

static void free_later(void *memory)
{
    sg_free(memory, SG_DEVICE);
}

API(hipFreeAsync, void *memory, struct sg_stream *stream)
{
    return sg_call(stream, free_later, memory);
}

API(hipMemGetAddressRange, void **base, size_t *bytes, void *address)
{
    struct sg_block block = sg_find(address);

    if (block.kind == SG_UNKNOWN) return SG_NOT_FOUND;
    *base = block.base;
    *bytes = block.bytes;
    return SG_OK;
}

struct pointer_facts {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
};

/* HIP 5: host 0, device 1, unknown memory an error.  HIP 6: unknown 0, host 1, device 2. */
API(hipPointerGetAttributes, struct pointer_facts *facts, const void *address)
{
    struct sg_block block = sg_find(address);
    bool is_old = version() < 60000000;

    if (is_old && block.kind == SG_UNKNOWN) return SG_INVALID_VALUE;
    *facts =
        (struct pointer_facts){.type = (int)block.kind - (is_old ? 1 : 0), .device = block.device};
    return SG_OK;
}

API(hipMemcpyAsync, void *target, const void *source, size_t bytes, int kind,
    struct sg_stream *stream)
{
    return kind == 4 ? sg_copy(target, source, bytes, stream) : SG_INVALID_VALUE;
}

API(hipMemcpy2DAsync, void *target, size_t target_pitch, const void *source, size_t source_pitch,
    size_t width, size_t height, int kind, struct sg_stream *stream)
{
    struct sg_box box = {target, source, target_pitch, source_pitch, width, height};

    return kind == 4 ? sg_copy_2d(&box, stream) : SG_INVALID_VALUE;
}

API(hipMemsetD8Async, void *target, unsigned char byte, size_t bytes, struct sg_stream *stream)
{
    return sg_fill(target, byte, bytes, stream);
}

struct callback {
    void (*fn)(struct sg_stream *, int, void *);
    struct sg_stream *stream;
    void *argument;
};

static void run_callback(void *self)
{
    const struct callback *callback = self;

    callback->fn(callback->stream, SG_OK, callback->argument);
}

API(hipStreamAddCallback, struct sg_stream *stream, void (*fn)(struct sg_stream *, int, void *),
    void *argument, unsigned flags)
{
    struct callback callback = {fn, stream, argument};

    if (flags != 0) return SG_INVALID_VALUE;
    return sg_enqueue(stream, run_callback, &callback, sizeof callback);
}
