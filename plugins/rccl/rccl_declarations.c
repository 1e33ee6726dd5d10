/* rccl_declarations.c - compile-time checks of our declarations against HIP's headers, where these
 * are installed.  RCCL's declarations are NCCL's; plugins/nccl checks them. */
#define __HIP_PLATFORM_AMD__      1
#define VENDOR_CHECK_DECLARATIONS 1
#include "device/gpu.h"
#include "device/gpu_checks.h"

SAME_SIZE(vendor_pointer_facts, hipPointerAttribute_t);
SAME_PLACE(vendor_pointer_facts, device, hipPointerAttribute_t, device);
SAME_PLACE(vendor_pointer_facts, is_managed, hipPointerAttribute_t, isManaged);
SAME_VALUE(GPU_OLD_DRIVER, hipErrorInsufficientDriver);
SAME_VALUE(GPU_COPY_ANY, hipMemcpyDefault);
