/* gpu_checks.h - checks of the declarations that CUDA and HIP share against the vendor's header.
 *
 * For the file of a plugin that defines VENDOR_CHECK_DECLARATIONS and includes gpu.h. */
#ifndef WEFT_GPU_CHECKS_H
#define WEFT_GPU_CHECKS_H

#include "gpu_declarations.h"

extern const struct gpu_api *const gpu; /* used only for its type */

#define GPU(need, field, cuda, hip, arguments)                                                     \
    _Static_assert(SAME_TYPE(gpu->field, &VENDOR_PICK(cuda, hip)), "the type of " #field);
#include "gpu_api.def"
#include "gpu_vendor.def"
#undef GPU
#define NUMBER(ours, cuda, hip) SAME_VALUE(ours, VENDOR_PICK(cuda, hip));
#include "gpu_numbers.def"
#undef NUMBER

SAME_SIZE(vendor_uuid, vendor_uuid);
SAME_SIZE(vendor_pool_options, vendor_pool_options);
SAME_PLACE(vendor_pool_options, allocation_type, vendor_pool_options, allocType);
SAME_PLACE(vendor_pool_options, location_type, vendor_pool_options, location.type);
SAME_PLACE(vendor_pool_options, location_id, vendor_pool_options, location.id);

#endif
