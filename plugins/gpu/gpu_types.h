/* gpu_types.h - types that CUDA and HIP share, declared here so that neither is needed to build.
 * Where vendor.h is checked against the vendor's headers, these are the vendor's own. */
#ifndef WEFT_XCCL_GPU_TYPES_H
#define WEFT_XCCL_GPU_TYPES_H

typedef int gpu_result;
typedef int gpu_device;
typedef void *gpu_stream;
typedef void *gpu_event;
typedef void *gpu_module;
typedef void *gpu_function;
typedef void *gpu_pool;
typedef struct gpu_pool_options gpu_pool_options;
typedef int gpu_pool_attribute;
typedef struct gpu_uuid gpu_uuid;
typedef int gpu_capture;
typedef int gpu_capture_mode;
typedef void (*gpu_host_call)(void *argument);

#endif
