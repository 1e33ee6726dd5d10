/* ccl_api.h - declarations of NCCL and RCCL, so that the build needs neither. */
#ifndef WEFT_XCCL_CCL_API_H
#define WEFT_XCCL_CCL_API_H

#include "vendor.h"

#ifdef VENDOR_CHECK_DECLARATIONS
#include VENDOR_CHECK_DECLARATIONS
typedef ncclResult_t ccl_result;
typedef ncclComm_t ccl_comm;
typedef ncclUniqueId ccl_id;
typedef ncclConfig_t ccl_config;
typedef ncclDataType_t ccl_dtype;
typedef ncclRedOp_t ccl_op;
typedef ncclScalarResidence_t ccl_residence;
typedef VENDOR_STREAM ccl_stream;
#else
typedef int ccl_result;
typedef void *ccl_comm;
typedef struct ccl_id ccl_id;
typedef struct ccl_config ccl_config;
typedef int ccl_dtype;
typedef int ccl_op;
typedef int ccl_residence;
typedef vendor_stream ccl_stream;
#endif

struct ccl_id {
    char bytes[128];
};

/* As of 2.18.  The libraries read `bytes` bytes and treat the rest as unset. */
struct ccl_config {
    size_t bytes;
    unsigned magic, version;
    int blocking, cga_cluster, least_blocks, most_blocks;
    const char *network;
    int split_share;
    int traffic_class; /* since 2.26; padding before */
    const char *name;  /* since 2.27; libraries before it are given a struct without it */
};

#define CCL_CONFIG_MAGIC   0xcafebeefu
#define CCL_CONFIG_VERSION 21800u
#define CCL_UNSET          INT32_MIN

enum {
    CCL_SUCCESS = 0,
    CCL_UNHANDLED_GPU_ERROR = 1,
    CCL_SYSTEM_ERROR = 2,
    CCL_INTERNAL_ERROR = 3,
    CCL_INVALID_ARGUMENT = 4,
    CCL_INVALID_USAGE = 5,
    CCL_REMOTE_ERROR = 6,
    CCL_IN_PROGRESS = 7
};

enum { CCL_SUM = 0, CCL_PROD = 1, CCL_MAX = 2, CCL_MIN = 3, CCL_AVG = 4 };

enum {
    CCL_I8 = 0,
    CCL_U8 = 1,
    CCL_I32 = 2,
    CCL_U32 = 3,
    CCL_I64 = 4,
    CCL_U64 = 5,
    CCL_F16 = 6,
    CCL_F32 = 7,
    CCL_F64 = 8,
    CCL_BF16 = 9,
    CCL_F8E4M3 = 10,
    CCL_F8E5M2 = 11
};

enum { CCL_SCALAR_HOST = 1 };

struct ccl_api {
#define CCL(need, type, symbol, arguments) type(*symbol) arguments;
#include "ccl_api.def"
#undef CCL
};

#endif
