/* cuda_library.h - names, types and constants of the CUDA driver, declared here so that the build
 * does not need files of NVIDIA.  cuda_declarations.h checks them against NVIDIA's header. */
#ifndef WEFT_GPU_CUDA_LIBRARY_H
#define WEFT_GPU_CUDA_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#define VENDOR_MAKER         "NVIDIA"
#define VENDOR_GPU           "CUDA"
#define VENDOR_GPU_KNOB      "WEFT_CUDA_LIB"
#define VENDOR_GPU_LIBRARIES "libcuda.so.1"

#define VENDOR_PICK(cuda, hip)   cuda
#define VENDOR_SYMBOL(cuda, hip) #cuda

#ifdef VENDOR_CHECK_DECLARATIONS
#include <cuda.h>
typedef CUresult vendor_result;
typedef CUdevice vendor_device;
typedef CUdeviceptr vendor_address;
typedef CUstream vendor_stream;
typedef CUevent vendor_event;
typedef CUmodule vendor_module;
typedef CUfunction vendor_function;
typedef CUcontext vendor_context;
typedef CUuuid vendor_uuid;
typedef CUmemoryPool vendor_pool;
typedef CUmemPoolProps vendor_pool_options;
typedef CUmemPool_attribute vendor_pool_attribute;
typedef CUmemAccessDesc vendor_pool_access;
typedef CUdevice_attribute vendor_attribute;
typedef CUpointer_attribute vendor_pointer_attribute;
typedef CUDA_MEMCPY2D vendor_copy_2d;
typedef CUstreamCaptureStatus vendor_capture;
typedef CUstreamCaptureMode vendor_capture_mode;
typedef CUhostFn vendor_host_call;
typedef CUmemGenericAllocationHandle vendor_piece;
typedef CUmemAllocationProp vendor_piece_options;
typedef CUmemAccessDesc vendor_piece_access;
typedef CUmemAllocationGranularity_flags vendor_granularity;
typedef CUmemAllocationHandleType vendor_piece_kind;
typedef CUlaunchConfig vendor_launch;
#else
#include "device/gpu_types.h"
typedef unsigned long long vendor_address;
typedef void *vendor_context;
typedef int vendor_attribute;
typedef int vendor_pointer_attribute;
typedef struct vendor_copy_2d vendor_copy_2d;
typedef unsigned long long vendor_piece; /* a handle of physical memory */
typedef struct vendor_piece_options vendor_piece_options;
typedef struct vendor_piece_access vendor_piece_access;
typedef int vendor_granularity;
typedef int vendor_piece_kind;
typedef struct vendor_launch vendor_launch;
#endif

enum { GPU_MULTIPROCESSORS = 16, GPU_CAPABILITY_MAJOR = 75, GPU_CAPABILITY_MINOR = 76 };
enum { GPU_LAUNCH_EARLY = 6 }; /* programmatic launch: before the preceding kernel has ended */
enum { GPU_POINTER_MEMORY_TYPE = 2, GPU_POINTER_IS_MANAGED = 8, GPU_POINTER_DEVICE = 9 };
enum { GPU_PIECE_PINNED = 1, GPU_PIECE_AS_FILE = 1, GPU_PIECE_ON_DEVICE = 1 };
enum { GPU_READ_AND_WRITE = 3, GPU_MIN_GRANULARITY = 0 };
enum { GPU_HAS_PIECES = 102, GPU_HAS_PIECES_AS_FILES = 103 };
enum { GPU_MEMORY_HOST = 1, GPU_MEMORY_DEVICE = 2, GPU_MEMORY_UNIFIED = 4 };

struct vendor_piece_options {
    int type, handle_types;
    int location_type, location_id;
    void *security;
    unsigned char compression, for_network;
    unsigned short usage;
    unsigned char reserved[4];
};

struct vendor_piece_access {
    int location_type, location_id;
    int flags;
};

struct vendor_launch_attribute {
    int id, reserved;
    union {
        int is_set;
        char reserved[64];
    } value;
};

struct vendor_launch {
    unsigned blocks[3], threads[3], shared_bytes;
    vendor_stream stream;
    struct vendor_launch_attribute *attributes;
    unsigned attribute_count;
};

struct vendor_copy_2d {
    size_t source_x, source_y;
    int source_type;
    const void *source_host;
    vendor_address source_device;
    void *source_array;
    size_t source_pitch;
    size_t target_x, target_y;
    int target_type;
    void *target_host;
    vendor_address target_device;
    void *target_array;
    size_t target_pitch;
    size_t width, height;
};

#endif
