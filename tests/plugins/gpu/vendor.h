/* vendor.h - the CUDA driver's types, for a plugin that does nothing with them. */
#ifndef WEFT_TESTS_GPU_VENDOR_H
#define WEFT_TESTS_GPU_VENDOR_H

#include "cuda_library.h"

#define VENDOR_PLUGIN          "fake"
#define VENDOR_KERNELS_KNOB    "WEFT_FAKE_KERNELS"
#define VENDOR_COMM            "fake.h"
#define VENDOR_SYMM            &gpu_symm_table
#define VENDOR_WINDOW_REGISTER NULL

#endif
