/* device_memory.h - memory of the device, for tests that compute in host memory. */
#ifndef WEFT_TESTS_DEVICE_MEMORY_H
#define WEFT_TESTS_DEVICE_MEMORY_H

#include "base/base.h"
#include "weft/device.h"

/* Copy in the order of STREAM, and wait. */
static inline weft_status memory_copy(weft_context *context, const void *source, void *target,
                                      size_t bytes, weft_stream *stream)
{
    if (bytes > 0) WF_TRY(weft_memory_copy(context, source, target, bytes, stream));
    return weft_context_wait(context, stream, WEFT_FOREVER);
}

/* Allocate memory of the device with the BYTES at HOST.  The caller frees *OUT with weft_free. */
static inline weft_status memory_make(weft_context *context, const void *host, size_t bytes,
                                      void **out)
{
    WF_TRY(weft_alloc(context, bytes + 1, WEFT_MEMORY_DEVICE, out));
    return memory_copy(context, host, *out, bytes, NULL);
}

#endif
