/* bench.h - source buffers and a target for one kernel, and what the target shall get. */
#ifndef WEFT_KIT_BENCH_H
#define WEFT_KIT_BENCH_H

#include "regions.h"

#define KIT_MAX_SOURCES 5

struct kit_bench {
    struct kit *kit;
    uint32_t from, to; /* dtypes of the sources and of the target */
    uint32_t size;     /* sources */
    bool by_value;     /* elements of the target are compared with `slack`; else bytes are */
    /* Write element INDEX of SOURCE to OUT. */
    void (*element)(const struct kit_bench *bench, uint32_t source, uint64_t index, void *out);
    /* Write what the target gets from element INDEX of SOURCE, and of those after it, to OUT.
     * Returns the allowed error. */
    double (*want)(const struct kit_bench *bench, uint32_t source, uint64_t index, void *out);
    const void *self; /* of the two functions */

    struct kit_image sources[KIT_MAX_SOURCES], target;
    const void *source_pointers[KIT_MAX_SOURCES];
    void *target_pointers[1];
    void *regions;      /* as regions_create made them; NULL: none */
    double slack[1200]; /* per element of the target */
};

/* Make the buffers in the plugin's memory.  False: the case has failed. */
bool kit_bench_make(struct kit_bench *bench, uint64_t source_elements, uint64_t target_elements);
/* Make buffers of COUNT elements each, and what the target gets of each element. */
bool kit_bench_make_array(struct kit_bench *bench, uint64_t count);
/* Make the buffers and the regions of LIST, and what the target gets by them. */
bool kit_bench_make_regions(struct kit_bench *bench, const struct kit_region_list *list);
/* The case NAME/FROM/TO: the plugin casts the one source, of COUNT elements. */
void kit_bench_cast(struct kit_bench *bench, const char *name, uint64_t count);
/* Check the target and the sources. */
void kit_bench_check(struct kit_bench *bench);
void kit_bench_free(struct kit_bench *bench);

#endif
