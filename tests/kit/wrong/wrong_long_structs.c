/* wrong_long_structs.c - writes more of a struct than its caller has.
 * Runs: --level load
 * Fails: load/short_struct */
#include "wrong.h"

static weft_status describe(void *device, weft_device_info *out)
{
    uint32_t size = out->struct_size;
    weft_status status;

    out->struct_size = sizeof *out;
    status = right.device.describe(device, out);
    out->struct_size = size;
    return status;
}

INSTALL(wrong.device.describe = describe)
