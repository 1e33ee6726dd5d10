/* vendor.h - NVSHMEM on the CUDA driver.  The driver's names, types and numbers are the nccl
 * plugin's. */
#ifndef WEFT_NVSHMEM_VENDOR_H
#define WEFT_NVSHMEM_VENDOR_H

#include "../nccl/vendor.h"

#undef VENDOR_PLUGIN
#undef VENDOR_DESCRIPTION
#undef VENDOR_KERNELS_KNOB
#undef VENDOR_COMM
#undef VENDOR_WINDOW_REGISTER
#define VENDOR_PLUGIN          "nvshmem"
#define VENDOR_DESCRIPTION     "NVIDIA GPUs through CUDA and NVSHMEM's symmetric memory"
#define VENDOR_KERNELS_KNOB    "WEFT_NVSHMEM_KERNELS"
#define VENDOR_COMM            "shmem.h"
#define VENDOR_WINDOW_REGISTER shmem_window_register
#define VENDOR_SHMEM           "NVSHMEM"
#define VENDOR_SHMEM_KNOB      "WEFT_NVSHMEM_LIB"
#define VENDOR_SHMEM_LIBRARY   "libnvshmem_host.so.3"
#define VENDOR_SHMEM_WHEEL     "nvidia/nvshmem/lib" /* within a Python site-packages folder */
#define VENDOR_BOOTSTRAP       "nvshmem_bootstrap_uid.so.3"
#define VENDOR_COLLECTIVES     "WEFT_NVSHMEM_COLLECTIVES"
#define VENDOR_HEAP_KNOB       "WEFT_NVSHMEM_HEAP"

#endif
