/* gpu_fail.c - conversion of results of the device library to statuses. */
#include "gpu.h"

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
    case GPU_NOT_FOUND: /* a kernel that the image lacks */
        return WEFT_ERR_UNSUPPORTED;
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
    return plug_fail_vendor(status, VENDOR_GPU, result, "%s: %s (%s, %d)", what,
                            gpu_vendor_error_text(result), gpu_vendor_error_name(result),
                            (int)result);
}
