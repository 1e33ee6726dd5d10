/* wrong_shares_memory.c - small pieces of memory of a stream are all the same one.
 * Runs: --only memory/on_stream
 * Fails: memory/on_stream/sizes */
#include "wrong.h"

static _Alignas(4096) char piece[4096];

static weft_status allocate_on(void *device, uint64_t bytes, void *stream, void **pointer)
{
    (void)stream;
    if (bytes > sizeof piece)
        return right.device.allocate(device, bytes, WEFT_MEMORY_DEVICE, pointer);
    *pointer = piece;
    return WEFT_OK;
}

static weft_status free_on(void *device, void *pointer, void *stream)
{
    (void)stream;
    return pointer == piece ? WEFT_OK : right.device.free(device, pointer);
}

static weft_status free_memory(void *device, void *pointer)
{
    return pointer == piece ? WEFT_OK : right.device.free(device, pointer);
}

INSTALL(wrong.device.allocate_on = allocate_on, wrong.device.free_on = free_on,
        wrong.device.free = free_memory)
