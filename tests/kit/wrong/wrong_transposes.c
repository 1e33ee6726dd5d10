/* wrong_transposes.c - reads the strides of a region in reverse order.
 * Runs: --only kernel/regions_copy
 * Fails: kernel/regions_copy/transposed/element=4 */
#include "wrong.h"

static weft_status regions_create(void *device, uint32_t element_bytes, uint64_t count,
                                  const weft_region *regions, void **list)
{
    weft_region copies[64];

    if (count > 64) return right.kernel.regions_create(device, element_bytes, count, regions, list);
    for (uint64_t i = 0; i < count; i++) {
        copies[i] = regions[i];
        for (uint32_t d = 0; d < regions[i].dims && regions[i].dims <= WEFT_MAX_DIMS; d++)
            copies[i].source_stride[d] = regions[i].source_stride[regions[i].dims - 1 - d];
    }
    return right.kernel.regions_create(device, element_bytes, count, copies, list);
}

INSTALL(wrong.kernel.regions_create = regions_create)
