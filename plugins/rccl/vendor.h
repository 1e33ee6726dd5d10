/* vendor.h - RCCL on HIP: names, types and numbers, declared here so that nothing of AMD is needed
 * to build.  rccl_declarations.c checks them against AMD's headers. */
#ifndef WEFT_RCCL_VENDOR_H
#define WEFT_RCCL_VENDOR_H

#include <stddef.h>
#include <stdint.h>

#define VENDOR_PLUGIN      "rccl"
#define VENDOR_DESCRIPTION "AMD GPUs through HIP and RCCL"
#define VENDOR_MAKER       "AMD"
#define VENDOR_GPU         "HIP"
#define VENDOR_CCL         "RCCL"

#define VENDOR_GPU_KNOB "WEFT_HIP_LIB"
#define VENDOR_GPU_LIBRARIES                                                                       \
    "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"
#define VENDOR_CCL_KNOB      "WEFT_RCCL_LIB"
#define VENDOR_CCL_LIBRARIES "librccl.so.1", "librccl.so"
#define VENDOR_CCL_WHEEL     "torch/lib" /* within a Python site-packages folder */
#define VENDOR_CCL_MIN       21700       /* 2.17.0, of ROCm 5.7 */
#define VENDOR_KERNELS_KNOB  "WEFT_RCCL_KERNELS"
/* What f8 means to RCCL depends on the device (gfx942 has another format), so it is never asked to
 * add any up. */
#define VENDOR_F8_MIN        0x7fffffff
#define VENDOR_F8_CAPABILITY 0

/* The header with struct gpu_comm, against which the files of gpu_comm.h are compiled. */
#define VENDOR_COMM "ccl.h"

#define VENDOR_SYMM NULL /* none yet */

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

enum { GPU_COPY_ANY = 4 }; /* the library finds out which way */

/* The same from HIP 5 on, but the numbers of TYPE changed with HIP 6. */
struct vendor_pointer_facts {
    int type, device;
    void *device_address, *host_address;
    int is_managed;
    unsigned flags;
};

#endif
