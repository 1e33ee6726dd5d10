/* vendor.h - the CUDA driver's types, for a plugin that does nothing with them. */
#ifndef WEFT_TESTS_XCCL_VENDOR_H
#define WEFT_TESTS_XCCL_VENDOR_H

#include "../../plugins/nccl/vendor.h"

#undef VENDOR_COMM
#define VENDOR_COMM "fake.h"

#endif
