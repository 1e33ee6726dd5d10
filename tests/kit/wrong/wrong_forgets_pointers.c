/* wrong_forgets_pointers.c - recognizes only the start of an allocation.
 * Runs: --level memory
 * Fails: memory/query/device */
#include "wrong.h"

static weft_status query_pointer(void *device, const void *pointer, weft_pointer_info *out)
{
    weft_status status = right.device.query_pointer(device, pointer, out);

    if (status == WEFT_OK && out->base != pointer) {
        out->kind = WEFT_MEMORY_HOST;
        out->device = -1;
        out->base = NULL;
    }
    return status;
}

INSTALL(wrong.device.query_pointer = query_pointer)
