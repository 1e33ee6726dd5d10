/* cuda_declarations.h - compile-time checks of our declarations against cuda.h.  One file of each
 * CUDA plugin defines VENDOR_CHECK_DECLARATIONS and includes device/gpu.h. */
#ifndef WEFT_GPU_CUDA_DECLARATIONS_H
#define WEFT_GPU_CUDA_DECLARATIONS_H

#include "device/gpu_checks.h"

SAME_PLACE(vendor_pool_options, most_bytes, CUmemPoolProps, maxSize);
SAME_SIZE(vendor_pool_access, CUmemAccessDesc);
SAME_PLACE(vendor_pool_access, location_id, CUmemAccessDesc, location.id);
SAME_PLACE(vendor_pool_access, flags, CUmemAccessDesc, flags);
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
SAME_VALUE(GPU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(GPU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(GPU_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(GPU_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(GPU_POINTER_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(GPU_MEMORY_HOST, CU_MEMORYTYPE_HOST);
SAME_VALUE(GPU_MEMORY_DEVICE, CU_MEMORYTYPE_DEVICE);
SAME_VALUE(GPU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);

#endif
