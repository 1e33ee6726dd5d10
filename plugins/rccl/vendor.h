/* vendor.h - names and constants of RCCL on HIP. */
#ifndef WEFT_RCCL_VENDOR_H
#define WEFT_RCCL_VENDOR_H

#include "hip_library.h"

#define VENDOR_PLUGIN      "rccl"
#define VENDOR_DESCRIPTION "AMD GPUs through HIP and RCCL"
#define VENDOR_CCL         "RCCL"

#define VENDOR_CCL_KNOB       "WEFT_RCCL_LIB"
#define VENDOR_CCL_LIBRARIES  "librccl.so.1", "librccl.so"
#define VENDOR_CCL_WHEEL      "torch/lib" /* within a Python site-packages folder */
#define VENDOR_CCL_MIN        21700       /* 2.17.0, of ROCm 5.7 */
#define VENDOR_CCL_NAMES      0x7fffffff  /* no library is known to have names of communicators */
#define VENDOR_KERNELS_KNOB   "WEFT_RCCL_KERNELS"
#define VENDOR_KERNELS_OPTION "WEFT_HIP_KERNELS"
/* RCCL's f8 format depends on the device (gfx942 has another format), so the plugin never reduces
 * f8 through RCCL. */
#define VENDOR_F8_MIN        0x7fffffff
#define VENDOR_F8_CAPABILITY 0

/* The header with struct gpu_comm, against which the files of gpu_comm.h are compiled. */
#define VENDOR_COMM "ccl.h"

#define VENDOR_SYMM NULL /* not supported */

#endif
