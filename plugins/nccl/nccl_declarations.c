/* nccl_declarations.c - compile-time checks of our declarations against NVIDIA's headers, where
 * these are installed. */
#define VENDOR_CHECK_DECLARATIONS <nccl.h>
#define VENDOR_STREAM             cudaStream_t
#include "ccl_api.h"
#include "device/gpu.h"
#include "cuda_declarations.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include "nvtx_declarations.h"
#endif

extern const struct ccl_api *const ccl; /* used only for its type */

#define CCL(need, type, symbol, arguments)                                                         \
    _Static_assert(SAME_TYPE(ccl->symbol, &symbol), "the type of " #symbol);
#include "ccl_api.def"
#undef CCL

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

/* ccl_window.c looks these up itself, because older headers lack them. */
#if NCCL_VERSION_CODE >= 22703
SAME_PLACE(ccl_config, traffic_class, ncclConfig_t, trafficClass);
SAME_PLACE(ccl_config, name, ncclConfig_t, commName);
_Static_assert(SAME_TYPE(ncclCommWindowRegister,
                         ncclResult_t(ncclComm_t, void *, size_t, ncclWindow_t *, int)),
               "type of ncclCommWindowRegister");
_Static_assert(SAME_TYPE(ncclCommWindowDeregister, ncclResult_t(ncclComm_t, ncclWindow_t)),
               "type of ncclCommWindowDeregister");
SAME_VALUE(1, NCCL_WIN_COLL_SYMMETRIC);
#endif
