/* gpu_calls.c - functions that libcuda and libamdhip64 share except for their names. */
#include "gpu.h"

#include <stdio.h>

#ifdef STANDIN_HIP
#define BOTH(cuda, hip, ...) API(hip, __VA_ARGS__)
#else
#define BOTH(cuda, hip, ...) API(cuda, __VA_ARGS__)
#endif

BOTH(cuDeviceGet, hipDeviceGet, int *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= sg_device_count()) return SG_INVALID_DEVICE;
    *device = ordinal;
    return SG_OK;
}

BOTH(cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, char *id, int size, int device)
{
    snprintf(id, (size_t)size, "0000:%02x:00.0", device + 1);
    return SG_OK;
}

BOTH(cuMemGetInfo_v2, hipMemGetInfo, size_t *available, size_t *total)
{
    sg_memory_info(available, total);
    return sg_broken();
}

BOTH(cuCtxSynchronize, hipDeviceSynchronize, void)
{
    sg_device_sync();
    return sg_broken();
}

BOTH(cuMemHostAlloc, hipHostMalloc, void **out, size_t bytes, unsigned flags)
{
    (void)flags;
    return sg_alloc(bytes, SG_PINNED, out);
}

BOTH(cuMemFreeHost, hipHostFree, void *memory)
{
    return sg_free(memory, SG_PINNED);
}

BOTH(cuStreamCreate, hipStreamCreateWithFlags, struct sg_stream **stream, unsigned flags)
{
    return flags <= 1 ? sg_stream_create(stream) : SG_INVALID_VALUE;
}

BOTH(cuStreamDestroy_v2, hipStreamDestroy, struct sg_stream *stream)
{
    return sg_stream_destroy(stream);
}

BOTH(cuStreamQuery, hipStreamQuery, struct sg_stream *stream)
{
    return sg_stream_query(stream);
}

BOTH(cuStreamSynchronize, hipStreamSynchronize, struct sg_stream *stream)
{
    return sg_stream_sync(stream);
}

BOTH(cuStreamWaitEvent, hipStreamWaitEvent, struct sg_stream *stream, struct sg_event *event,
     unsigned flags)
{
    (void)flags;
    return sg_stream_wait_event(stream, event);
}

BOTH(cuEventCreate, hipEventCreateWithFlags, struct sg_event **event, unsigned flags)
{
    (void)flags;
    return sg_event_create(event);
}

BOTH(cuEventDestroy_v2, hipEventDestroy, struct sg_event *event)
{
    return sg_event_destroy(event);
}

BOTH(cuEventRecord, hipEventRecord, struct sg_event *event, struct sg_stream *stream)
{
    return sg_event_record(event, stream);
}

BOTH(cuEventQuery, hipEventQuery, struct sg_event *event)
{
    return sg_event_query(event);
}

BOTH(cuEventElapsedTime, hipEventElapsedTime, float *milliseconds, struct sg_event *from,
     struct sg_event *to)
{
    return sg_event_elapsed(milliseconds, from, to);
}

BOTH(cuModuleLoadData, hipModuleLoadData, void **module, const void *image)
{
    *module = (void *)(uintptr_t)image;
    return image != NULL ? SG_OK : SG_INVALID_VALUE;
}

BOTH(cuModuleUnload, hipModuleUnload, void *module)
{
    return module != NULL ? SG_OK : SG_INVALID_VALUE;
}

BOTH(cuModuleGetFunction, hipModuleGetFunction, const struct sg_kernel **function, void *module,
     const char *name)
{
    (void)module;
    *function = sg_kernel_find(name);
    return *function != NULL ? SG_OK : SG_NOT_FOUND;
}

BOTH(cuLaunchKernel, hipModuleLaunchKernel, const struct sg_kernel *function, unsigned gx,
     unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
     struct sg_stream *stream, void **arguments, void **extra)
{
    if (gy * gz * by * bz != 1 || bx != 256 || shared != 0 || extra != NULL)
        return SG_INVALID_VALUE;
    return sg_launch(function, gx, arguments, stream);
}

/* For the simulated NCCL and RCCL, whose work occupies a stream as a kernel would. */
API(standin_enqueue, struct sg_stream *stream, void (*fn)(void *), void *argument)
{
    return sg_call(stream, fn, argument);
}

API(standin_device, void)
{
    return sg_current();
}

API(standin_set_device, int device)
{
    sg_set_current(device);
    return SG_OK;
}
