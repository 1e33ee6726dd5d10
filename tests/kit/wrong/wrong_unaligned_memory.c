/* wrong_unaligned_memory.c - allocates memory with less alignment than it declares.
 * Runs: --level memory
 * Fails: memory/allocate/device */
#include "wrong.h"

static weft_status describe(void *device, weft_device_info *out)
{
    weft_status status = right.device.describe(device, out);

    out->alignment = 1 << 16;
    return status;
}

INSTALL(wrong.device.describe = describe)
