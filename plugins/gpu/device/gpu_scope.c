/* gpu_scope.c - the device that is current for the calling thread. */
#include "gpu.h"

weft_status gpu_enter(const struct gpu_device *device, struct gpu_scope *scope)
{
    return gpu_check(gpu_vendor_enter(device, scope), "switching to the device");
}

void gpu_leave(const struct gpu_scope *scope)
{
    gpu_vendor_leave(scope);
}

weft_status gpu_bind_thread(void *device)
{
    return gpu_check(gpu_vendor_bind(device), "switching to the device");
}
