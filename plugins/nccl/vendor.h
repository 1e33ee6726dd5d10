/* vendor.h - names and constants of NCCL on the CUDA driver.  nccl_declarations.c checks the
 * constants against NVIDIA's headers. */
#ifndef WEFT_NCCL_VENDOR_H
#define WEFT_NCCL_VENDOR_H

#include "cuda_library.h"

#define VENDOR_PLUGIN      "nccl"
#define VENDOR_DESCRIPTION "NVIDIA GPUs through CUDA and NCCL"
#define VENDOR_CCL         "NCCL"

#define VENDOR_CCL_KNOB       "WEFT_NCCL_LIB"
#define VENDOR_CCL_LIBRARIES  "libnccl.so.2"
#define VENDOR_CCL_WHEEL      "nvidia/nccl/lib" /* within a Python site-packages folder */
#define VENDOR_CCL_MIN        21800             /* 2.18.0 */
#define VENDOR_CCL_NAMES      22703             /* the oldest library with names of communicators */
#define VENDOR_KERNELS_KNOB   "WEFT_NCCL_KERNELS"
#define VENDOR_KERNELS_OPTION "WEFT_CUDA_KERNELS"
#define VENDOR_F8_MIN         22400 /* the oldest library that reduces f8 */
#define VENDOR_F8_CAPABILITY  90    /* the oldest device on which it does */

/* The header with struct gpu_comm, against which the files of gpu_comm.h are compiled. */
#define VENDOR_COMM "ccl_window.h"

#define VENDOR_SYMM            &gpu_symm_table
#define VENDOR_WINDOW_REGISTER NULL /* a caller's memory cannot be registered */

#endif
