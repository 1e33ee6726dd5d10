/* wrong_half_stream_memory.c - memory is allocated on a stream and cannot be freed on one.
 * Runs: --only memory/on_stream
 * Fails: memory/on_stream/entries */
#include "wrong.h"

static weft_status allocate_on(void *device, uint64_t bytes, void *stream, void **pointer)
{
    (void)stream;
    return right.device.allocate(device, bytes, WEFT_MEMORY_DEVICE, pointer);
}

INSTALL(wrong.device.allocate_on = allocate_on, wrong.device.free_on = NULL)
