/* cpu_regions.h - lists of strided boxes, prepared once and run many times. */
#ifndef WEFT_CPU_REGIONS_H
#define WEFT_CPU_REGIONS_H

#include "cpu_level.h"

/* A region with merged and sorted dimensions.  The innermost dimension is last.  The target, and if
 * possible the source, is contiguous along it.  Strides are in elements. */
struct cpu_box {
    uint32_t source, target;
    int dims; /* 0: one element */
    int64_t source_offset, target_offset;
    int64_t extent[WEFT_MAX_DIMS];
    int64_t source_stride[WEFT_MAX_DIMS], target_stride[WEFT_MAX_DIMS];
};

struct cpu_regions {
    size_t element;
    uint64_t count;
    const struct cpu_box *as_given; /* BOXES with their dimensions in the order of the regions */
    struct cpu_box boxes[];         /* none of them empty */
};

/* ---- cpu_box.c ---- */

/* False if the region is empty. */
bool cpu_box_make(const weft_region *region, struct cpu_box *out);
/* The same with the dimensions in the order of the region. */
bool cpu_box_make_as_given(const weft_region *region, struct cpu_box *out);
/* True if both make the same. */
bool cpu_region_is_sorted(const weft_region *region);
void cpu_box_copy(const struct cpu_box *box, size_t element, const void *source, void *target);
/* Bytes of the source buffer that the box lies in: [*FIRST, *LAST). */
void cpu_box_range(const struct cpu_box *box, size_t element, int64_t *first, int64_t *last);

/* One line of a box: its innermost dimension at fixed coordinates of the others. */
struct cpu_line {
    int64_t source, target; /* offsets of its first element */
    int64_t count, source_stride, target_stride;
};

/* Visits all lines of a box.  Zero-initialize AT.  Returns false after the last line. */
struct cpu_line_walk {
    bool started;
    int64_t index[WEFT_MAX_DIMS];
    struct cpu_line line;
};
bool cpu_box_next_line(const struct cpu_box *box, struct cpu_line_walk *at);
/* Copy COUNT elements between strides. */
void cpu_copy_strided(size_t element, void *target, int64_t target_stride, const void *source,
                      int64_t source_stride, int64_t count);

/* ---- cpu_rows.c ---- */

/* COUNT rows of BYTES each; steps in bytes. */
struct cpu_rows {
    unsigned char *target;
    const unsigned char *source;
    int64_t target_step, source_step;
    size_t bytes;
    int64_t count;
};

/* True if cpu_rows_hop copies ROWS rows of ROW bytes faster than one copy per row. */
bool cpu_rows_worth_hopping(size_t row, int64_t rows);
/* Copy rows of at least 1 KiB, piece by piece, out of order. */
void cpu_rows_hop(const struct cpu_rows *rows);

/* ---- cpu_regions.c: entries of the kernel table ---- */

weft_status cpu_regions_create(void *device, uint32_t element_bytes, uint64_t count,
                               const weft_region *regions, void **list);
void cpu_regions_destroy(void *list);
weft_status cpu_regions_copy(void *list, const void *const *sources, void *const *targets,
                             void *stream);
weft_status cpu_regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                               const void *const *sources, void *const *targets, void *stream);
weft_status cpu_regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                const void *const *sources, void *const *targets, void *stream);
/* The number of source and target buffers that LIST refers to. */
void cpu_regions_count(const struct cpu_regions *list, size_t *sources, size_t *targets);
/* Reduce one box at once.  SOURCES has REDUCER->size buffers; the first is the box's own. */
weft_status cpu_box_reduce(const struct cpu_box *box, const struct cpu_reducer *reducer,
                           const void *const *sources, void *target);

/* ---- cpu_box_cast.c ---- */

weft_status cpu_regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                             void *const *targets, void *stream);
/* WEFT_OK if WHAT can cast a list whose source elements have ELEMENT bytes. */
weft_status cpu_cast_check(const char *what, size_t element, uint32_t from, uint32_t to);
/* One box, now; and the reduction of several in the reducer's dtype, which is then cast. */
void cpu_box_cast(const struct cpu_box *box, uint32_t from, uint32_t to, const void *source,
                  void *target);
weft_status cpu_box_reduce_cast(const struct cpu_box *box, const struct cpu_reducer *reducer,
                                uint32_t to, const void *const *sources, void *target);

#endif
