/* hip_library.h - names, types and constants of HIP, declared here so that the build does not need
 * files of AMD.  rccl_declarations.c checks them against AMD's header. */
#ifndef WEFT_GPU_HIP_LIBRARY_H
#define WEFT_GPU_HIP_LIBRARY_H

#include <stddef.h>
#include <stdint.h>

#define VENDOR_MAKER    "AMD"
#define VENDOR_GPU      "HIP"
#define VENDOR_GPU_KNOB "WEFT_HIP_LIB"
#define VENDOR_GPU_LIBRARIES                                                                       \
    "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"

#define VENDOR_PICK(cuda, hip)   hip
#define VENDOR_SYMBOL(cuda, hip) #hip

#ifdef VENDOR_CHECK_DECLARATIONS
#include <hip/hip_runtime_api.h>
typedef hipError_t vendor_result;
typedef hipDevice_t vendor_device;
typedef void *vendor_address;
typedef hipStream_t vendor_stream;
typedef hipEvent_t vendor_event;
typedef hipModule_t vendor_module;
typedef hipFunction_t vendor_function;
typedef hipUUID vendor_uuid;
typedef hipMemPool_t vendor_pool;
typedef hipMemPoolProps vendor_pool_options;
typedef hipMemPoolAttr vendor_pool_attribute;
typedef hipMemAccessDesc vendor_pool_access;
typedef hipStreamCaptureStatus vendor_capture;
typedef hipStreamCaptureMode vendor_capture_mode;
typedef hipHostFn_t vendor_host_call;
typedef hipStreamCallback_t vendor_callback;
typedef hipPointerAttribute_t vendor_pointer_facts;
typedef hipMemcpyKind vendor_copy_kind;
#else
#include "device/gpu_types.h"
typedef void *vendor_address;
typedef void (*vendor_callback)(vendor_stream stream, vendor_result result, void *argument);
typedef struct vendor_pointer_facts vendor_pointer_facts;
typedef int vendor_copy_kind;
#endif

enum { GPU_COPY_ANY = 4 }; /* the library detects the direction */

/* Unchanged since HIP 5, but HIP 6 renumbered the values of TYPE. */
struct vendor_pointer_facts {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
};

#endif
