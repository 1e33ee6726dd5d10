/* wrong_loses_small_copies.c - copies of two bytes do nothing, and there is no kernel table.
 * Runs: --level host
 * Fails: host/copies */
#include "wrong.h"

static weft_status copy(void *device, void *target, const void *source, uint64_t bytes,
                        void *stream)
{
    return bytes == 2 ? WEFT_OK : right.device.copy(device, target, source, bytes, stream);
}

INSTALL(wrong.device.copy = copy, wrong.plugin.kernel = NULL)
