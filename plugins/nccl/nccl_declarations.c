/* nccl_declarations.c - are our declarations those of NVIDIA's headers?  Compiled, never run, where
 * these are installed. */
#define VENDOR_CHECK_DECLARATIONS <nccl.h>
#define VENDOR_STREAM             cudaStream_t
#include "ccl_api.h"
#include "device/gpu.h"
#include "device/gpu_declarations.h"

extern const struct gpu_api *const gpu; /* for its type alone */
extern const struct ccl_api *const ccl; /* for its type alone */

#define GPU(need, field, cuda, hip, arguments)                                                     \
    _Static_assert(SAME_TYPE(gpu->field, &cuda), "the type of " #cuda);
#include "device/gpu_api.def"
#include "gpu_vendor.def"
#undef GPU
#define CCL(need, type, symbol, arguments)                                                         \
    _Static_assert(SAME_TYPE(ccl->symbol, &symbol), "the type of " #symbol);
#include "ccl_api.def"
#undef CCL

SAME_SIZE(vendor_pool_options, CUmemPoolProps);
SAME_PLACE(vendor_pool_options, allocation_type, CUmemPoolProps, allocType);
SAME_PLACE(vendor_pool_options, location_type, CUmemPoolProps, location.type);
SAME_PLACE(vendor_pool_options, location_id, CUmemPoolProps, location.id);
SAME_PLACE(vendor_pool_options, most_bytes, CUmemPoolProps, maxSize);
SAME_SIZE(vendor_copy_2d, CUDA_MEMCPY2D);
SAME_PLACE(vendor_copy_2d, source_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_PLACE(vendor_copy_2d, source_device, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(vendor_copy_2d, source_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_PLACE(vendor_copy_2d, target_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(vendor_copy_2d, target_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(vendor_copy_2d, target_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_PLACE(vendor_copy_2d, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_PLACE(vendor_copy_2d, height, CUDA_MEMCPY2D, Height);
SAME_SIZE(vendor_launch, CUlaunchConfig);
SAME_PLACE(vendor_launch, threads, CUlaunchConfig, blockDimX);
SAME_PLACE(vendor_launch, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(vendor_launch, stream, CUlaunchConfig, hStream);
SAME_PLACE(vendor_launch, attributes, CUlaunchConfig, attrs);
SAME_PLACE(vendor_launch, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(vendor_launch_attribute, CUlaunchAttribute);
SAME_PLACE(vendor_launch_attribute, value, CUlaunchAttribute, value);
SAME_VALUE(GPU_LAUNCH_EARLY, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_VALUE(GPU_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_SIZE(vendor_uuid, CUuuid);
SAME_SIZE(vendor_piece_options, CUmemAllocationProp);
SAME_PLACE(vendor_piece_options, type, CUmemAllocationProp, type);
SAME_PLACE(vendor_piece_options, handle_types, CUmemAllocationProp, requestedHandleTypes);
SAME_PLACE(vendor_piece_options, location_type, CUmemAllocationProp, location.type);
SAME_PLACE(vendor_piece_options, location_id, CUmemAllocationProp, location.id);
SAME_PLACE(vendor_piece_options, for_network, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
SAME_SIZE(vendor_piece_access, CUmemAccessDesc);
SAME_PLACE(vendor_piece_access, location_id, CUmemAccessDesc, location.id);
SAME_PLACE(vendor_piece_access, flags, CUmemAccessDesc, flags);
SAME_VALUE(GPU_PIECE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(GPU_PIECE_AS_FILE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
SAME_VALUE(GPU_PIECE_ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(GPU_READ_AND_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME_VALUE(GPU_MIN_GRANULARITY, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME_VALUE(GPU_HAS_PIECES, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME_VALUE(GPU_HAS_PIECES_AS_FILES,
           CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
SAME_VALUE(GPU_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME_VALUE(GPU_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME_VALUE(GPU_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
SAME_VALUE(GPU_INVALID_DEVICE, CUDA_ERROR_INVALID_DEVICE);
SAME_VALUE(GPU_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME_VALUE(GPU_NOT_READY, CUDA_ERROR_NOT_READY);
SAME_VALUE(GPU_CAPTURE_IMPLICIT, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
SAME_VALUE(GPU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(GPU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(GPU_PINNED_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME_VALUE(GPU_POOL_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(GPU_POOL_ON_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME_VALUE(GPU_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_VALUE(GPU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(GPU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(GPU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(GPU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(GPU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(GPU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME_VALUE(GPU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(GPU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);

SAME_SIZE(ccl_id, ncclUniqueId);
SAME_PLACE(ccl_config, bytes, ncclConfig_t, size);
SAME_PLACE(ccl_config, blocking, ncclConfig_t, blocking);
SAME_PLACE(ccl_config, most_blocks, ncclConfig_t, maxCTAs);
SAME_PLACE(ccl_config, network, ncclConfig_t, netName);
SAME_PLACE(ccl_config, split_share, ncclConfig_t, splitShare);
SAME_VALUE(CCL_UNSET, NCCL_CONFIG_UNDEF_INT);
SAME_VALUE(CCL_UNHANDLED_GPU_ERROR, ncclUnhandledCudaError);
SAME_VALUE(CCL_SYSTEM_ERROR, ncclSystemError);
SAME_VALUE(CCL_INTERNAL_ERROR, ncclInternalError);
SAME_VALUE(CCL_INVALID_ARGUMENT, ncclInvalidArgument);
SAME_VALUE(CCL_INVALID_USAGE, ncclInvalidUsage);
SAME_VALUE(CCL_REMOTE_ERROR, ncclRemoteError);
SAME_VALUE(CCL_IN_PROGRESS, ncclInProgress);
SAME_VALUE(CCL_SUM, ncclSum);
SAME_VALUE(CCL_PROD, ncclProd);
SAME_VALUE(CCL_MAX, ncclMax);
SAME_VALUE(CCL_MIN, ncclMin);
SAME_VALUE(CCL_AVG, ncclAvg);
SAME_VALUE(CCL_I8, ncclInt8);
SAME_VALUE(CCL_U8, ncclUint8);
SAME_VALUE(CCL_I32, ncclInt32);
SAME_VALUE(CCL_U32, ncclUint32);
SAME_VALUE(CCL_I64, ncclInt64);
SAME_VALUE(CCL_U64, ncclUint64);
SAME_VALUE(CCL_F16, ncclFloat16);
SAME_VALUE(CCL_F32, ncclFloat32);
SAME_VALUE(CCL_F64, ncclFloat64);
SAME_VALUE(CCL_BF16, ncclBfloat16);
#if NCCL_VERSION_CODE >= 22400
SAME_VALUE(CCL_F8E4M3, ncclFloat8e4m3);
SAME_VALUE(CCL_F8E5M2, ncclFloat8e5m2);
#endif
SAME_VALUE(CCL_SCALAR_HOST, ncclScalarHostImmediate);

/* ccl_window.c looks these up itself, since older headers lack them. */
#if NCCL_VERSION_CODE >= 22703
_Static_assert(SAME_TYPE(ncclCommWindowRegister,
                         ncclResult_t(ncclComm_t, void *, size_t, ncclWindow_t *, int)),
               "the type of ncclCommWindowRegister");
_Static_assert(SAME_TYPE(ncclCommWindowDeregister, ncclResult_t(ncclComm_t, ncclWindow_t)),
               "the type of ncclCommWindowDeregister");
SAME_VALUE(1, NCCL_WIN_COLL_SYMMETRIC);
#endif
