/* gpu_shape.h - conversion of ABI regions to the regions of kernels.  Pure arithmetic, without a
 * device. */
#ifndef WEFT_GPU_SHAPE_H
#define WEFT_GPU_SHAPE_H

#include "gpu_kernel.h"
#include "kernel_args.h"

/* A region in bytes: runs of RUN contiguous bytes on both sides, dims[0] the fastest. */
struct gpu_shape {
    uint32_t source, target;
    uint32_t dims;
    uint64_t run;
    int64_t source_offset, target_offset;
    uint64_t extent[WEFT_MAX_DIMS];
    int64_t source_stride[WEFT_MAX_DIMS], target_stride[WEFT_MAX_DIMS];
};

/* Reduce REGION to its simplest form: dimensions of extent 1 are removed, the target's fastest
 * dimension is first, and contiguous dimensions are merged into the run.  *EMPTY is true if there
 * is nothing to copy. */
weft_status gpu_shape_read(const weft_region *region, uint32_t element_bytes, struct gpu_shape *out,
                           bool *empty);

/* Pass pieces of SHAPE of at most WK_REGION_BYTES to TAKE, in order, until one fails. */
weft_status gpu_shape_cut(const struct gpu_shape *shape,
                          weft_status (*take)(void *self, const struct gpu_shape *piece),
                          void *self);

uint64_t gpu_shape_bytes(const struct gpu_shape *shape);

/* The widest word, at most 16 bytes, in which SHAPE can be copied between sufficiently aligned
 * buffers. */
uint32_t gpu_shape_word(const struct gpu_shape *shape);

/* True if source and target have different fastest dimensions and a tiled transpose is faster.
 * Then dims[0] of the result is the source's fastest dimension and dims[1] the target's. */
bool gpu_shape_transpose(const struct gpu_shape *shape, uint32_t element_bytes,
                         struct gpu_shape *out);

/* Convert SHAPE, of at most WK_REGION_BYTES, to a kernel's region.  Buffer numbers are offset by
 * FIRST_SOURCE. */
void gpu_shape_write(const struct gpu_shape *shape, uint32_t first_source, struct wk_region *out);

#endif
