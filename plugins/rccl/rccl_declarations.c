/* rccl_declarations.c - are our declarations those of AMD's headers?  Compiled, never run, where
 * HIP's is installed.  RCCL's are NCCL's; plugins/nccl checks them. */
#define __HIP_PLATFORM_AMD__      1
#define VENDOR_CHECK_DECLARATIONS 1
#include "device/gpu.h"
#include "device/gpu_declarations.h"

extern const struct gpu_api *const gpu; /* for its type alone */

#define GPU(need, field, cuda, hip, arguments)                                                     \
    _Static_assert(SAME_TYPE(gpu->field, &hip), "the type of " #hip);
#include "device/gpu_api.def"
#include "gpu_vendor.def"
#undef GPU

SAME_SIZE(vendor_pool_options, hipMemPoolProps);
SAME_PLACE(vendor_pool_options, allocation_type, hipMemPoolProps, allocType);
SAME_PLACE(vendor_pool_options, location_type, hipMemPoolProps, location.type);
SAME_PLACE(vendor_pool_options, location_id, hipMemPoolProps, location.id);
SAME_SIZE(vendor_uuid, hipUUID);
SAME_SIZE(vendor_pointer_facts, hipPointerAttribute_t);
SAME_PLACE(vendor_pointer_facts, device, hipPointerAttribute_t, device);
SAME_PLACE(vendor_pointer_facts, is_managed, hipPointerAttribute_t, isManaged);
SAME_VALUE(GPU_INVALID_VALUE, hipErrorInvalidValue);
SAME_VALUE(GPU_OUT_OF_MEMORY, hipErrorOutOfMemory);
SAME_VALUE(GPU_OLD_DRIVER, hipErrorInsufficientDriver);
SAME_VALUE(GPU_NO_DEVICE, hipErrorNoDevice);
SAME_VALUE(GPU_INVALID_DEVICE, hipErrorInvalidDevice);
SAME_VALUE(GPU_INVALID_HANDLE, hipErrorInvalidHandle);
SAME_VALUE(GPU_NOT_READY, hipErrorNotReady);
SAME_VALUE(GPU_CAPTURE_IMPLICIT, hipErrorStreamCaptureImplicit);
SAME_VALUE(GPU_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME_VALUE(GPU_PINNED_PORTABLE, hipHostMallocPortable);
SAME_VALUE(GPU_POOL_PINNED, hipMemAllocationTypePinned);
SAME_VALUE(GPU_POOL_ON_DEVICE, hipMemLocationTypeDevice);
SAME_VALUE(GPU_POOL_RELEASE_THRESHOLD, hipMemPoolAttrReleaseThreshold);
SAME_VALUE(GPU_CAPTURE_RELAXED, hipStreamCaptureModeRelaxed);
SAME_VALUE(GPU_COPY_ANY, hipMemcpyDefault);
