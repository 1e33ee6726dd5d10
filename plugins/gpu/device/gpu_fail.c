/* gpu_fail.c - failures described through the host, and the host's memory and log. */
#include "gpu.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const weft_host *gpu_host;

static _Thread_local char last_text[1024];

static weft_status describe(weft_status status, const char *vendor, int64_t code,
                            const char *format, va_list args)
{
    char text[sizeof last_text];

    vsnprintf(text, sizeof text, format, args); /* which may take from LAST_TEXT */
    memcpy(last_text, text, sizeof text);
    gpu_host->set_error(status, vendor, code, text);
    return status;
}

weft_status gpu_fail(weft_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    describe(status, NULL, 0, format, args);
    va_end(args);
    return status;
}

weft_status gpu_fail_vendor(weft_status status, const char *vendor, int64_t code,
                            const char *format, ...)
{
    va_list args;

    va_start(args, format);
    describe(status, vendor, code, format, args);
    va_end(args);
    return status;
}

const char *gpu_last_text(void)
{
    return last_text;
}

weft_status gpu_fail_memory(size_t bytes)
{
    return gpu_fail(WEFT_ERR_NO_MEMORY, "out of host memory, %zu bytes were wanted", bytes);
}

void gpu_log(int32_t level, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gpu_host->log(level, text);
}

weft_status gpu_status(vendor_result result)
{
    switch (result) {
    case GPU_SUCCESS:
        return WEFT_OK;
    case GPU_NOT_READY:
        return WEFT_IN_PROGRESS;
    case GPU_OUT_OF_MEMORY:
        return WEFT_ERR_NO_MEMORY;
    case GPU_INVALID_VALUE:
    case GPU_INVALID_HANDLE:
        return WEFT_ERR_INVALID;
    case GPU_OLD_DRIVER:
        return WEFT_ERR_OLD_LIBRARY;
    case GPU_NO_DEVICE:
    case GPU_INVALID_DEVICE:
        return WEFT_ERR_NO_DEVICE;
    default:
        return WEFT_ERR_DEVICE;
    }
}

weft_status gpu_check(vendor_result result, const char *what)
{
    weft_status status = gpu_status(result);

    if (status == WEFT_OK || status == WEFT_IN_PROGRESS) return status;
    return gpu_fail_vendor(status, VENDOR_GPU, result, "%s: %s (%s, %d)", what,
                           gpu_vendor_error_text(result), gpu_vendor_error_name(result),
                           (int)result);
}

void *gpu_new(size_t bytes)
{
    void *pointer = gpu_host->allocate(bytes);

    if (pointer != NULL)
        memset(pointer, 0, bytes);
    else
        (void)gpu_fail_memory(bytes);
    return pointer;
}

void gpu_delete(void *pointer)
{
    gpu_host->release(pointer);
}

/* The size is the struct's first field. */
static size_t shared_bytes(const void *theirs, size_t bytes)
{
    uint32_t size;

    memcpy(&size, theirs, sizeof size);
    return size < bytes ? size : bytes;
}

void gpu_read(void *ours, const void *theirs, size_t bytes)
{
    memset(ours, 0, bytes);
    memcpy(ours, theirs, shared_bytes(theirs, bytes));
}

void gpu_answer(void *theirs, const void *ours, size_t bytes)
{
    size_t first = sizeof(uint32_t);
    size_t shared = shared_bytes(theirs, bytes);

    if (shared > first) memcpy((char *)theirs + first, (const char *)ours + first, shared - first);
}
