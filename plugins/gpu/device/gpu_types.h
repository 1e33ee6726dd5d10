/* gpu_types.h - types that CUDA and HIP share, declared here so that the build needs neither.  A
 * file that checks the declarations uses the vendor's types instead. */
#ifndef WEFT_GPU_TYPES_H
#define WEFT_GPU_TYPES_H

typedef int vendor_result;
typedef int vendor_device;
typedef void *vendor_stream;
typedef void *vendor_event;
typedef void *vendor_module;
typedef void *vendor_function;
typedef void *vendor_pool;
typedef struct vendor_pool_options vendor_pool_options;
typedef int vendor_pool_attribute;
typedef struct vendor_pool_access vendor_pool_access;
typedef struct vendor_uuid vendor_uuid;
typedef int vendor_capture;
typedef int vendor_capture_mode;
typedef void (*vendor_host_call)(void *argument);

#endif
