/* regions.h - lists of regions for the levels kernel and pull, and their results. */
#ifndef WEFT_KIT_REGIONS_H
#define WEFT_KIT_REGIONS_H

#include "frame/kit.h"

#define KIT_MAX_REGIONS 64

struct kit_region_list {
    const char *name;
    uint32_t count;
    uint32_t sources, targets; /* number of source and target buffers that the regions use */
    uint64_t source_elements, target_elements; /* elements of each buffer */
    weft_region regions[KIT_MAX_REGIONS];
};

/* List number WHICH, whose regions name sources 0 .. SPREAD-1; false past the last. */
bool kit_region_list(uint32_t which, uint32_t spread, struct kit_region_list *out);

/* Call VISIT for each element of REGION with its index in source and target. */
void kit_region_walk(const weft_region *region,
                     void (*visit)(void *self, uint64_t source_index, uint64_t target_index),
                     void *self);

#endif
