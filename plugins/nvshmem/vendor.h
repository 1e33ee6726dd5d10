/* vendor.h - names of NVSHMEM on the CUDA driver. */
#ifndef WEFT_NVSHMEM_VENDOR_H
#define WEFT_NVSHMEM_VENDOR_H

#include "cuda_library.h"

#define VENDOR_PLUGIN          "nvshmem"
#define VENDOR_DESCRIPTION     "NVIDIA GPUs through CUDA and NVSHMEM's symmetric memory"
#define VENDOR_KERNELS_KNOB    "WEFT_NVSHMEM_KERNELS"
#define VENDOR_KERNELS_OPTION  "WEFT_CUDA_KERNELS"
#define VENDOR_COMM            "shmem.h"
#define VENDOR_WINDOW_REGISTER shmem_window_register
#define VENDOR_SYMM            &gpu_symm_table
#define VENDOR_SHMEM           "NVSHMEM"
#define VENDOR_SHMEM_KNOB      "WEFT_NVSHMEM_LIB"
#define VENDOR_SHMEM_LIBRARY   "libnvshmem_host.so.3"
#define VENDOR_SHMEM_WHEEL     "nvidia/nvshmem/lib" /* within a Python site-packages folder */
#define VENDOR_BOOTSTRAP       "nvshmem_bootstrap_uid.so.3"
#define VENDOR_COLLECTIVES     "WEFT_NVSHMEM_COLLECTIVES"
#define VENDOR_HEAP_KNOB       "WEFT_NVSHMEM_HEAP"

#endif
