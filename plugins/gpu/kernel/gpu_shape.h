/* gpu_shape.h - regions of the ABI as the kernels take them.  Pure arithmetic, no device. */
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

/* Bring REGION into its simplest form: no dimension of extent 1, the target's fastest first, what
 * lies side by side merged into the run.  *EMPTY: there is nothing to copy. */
weft_status gpu_shape_read(const weft_region *region, uint32_t element_bytes, struct gpu_shape *out,
                           bool *empty);

/* Hand pieces of SHAPE of at most WK_REGION_BYTES to TAKE, in order, until one fails. */
weft_status gpu_shape_cut(const struct gpu_shape *shape,
                          weft_status (*take)(void *self, const struct gpu_shape *piece),
                          void *self);

uint64_t gpu_shape_bytes(const struct gpu_shape *shape);

/* The widest word, up to 16 bytes, in which SHAPE can be copied between buffers that allow it. */
uint32_t gpu_shape_word(const struct gpu_shape *shape);

/* Is the fastest dimension another one on each side, and worth turning over in tiles?  Then
 * dims[0] is made the source's fastest and dims[1] the target's. */
bool gpu_shape_transpose(const struct gpu_shape *shape, uint32_t element_bytes,
                         struct gpu_shape *out);

/* SHAPE, of at most WK_REGION_BYTES, as a kernel's region; buffers are shifted as given. */
void gpu_shape_write(const struct gpu_shape *shape, uint32_t first_source, struct wk_region *out);

#endif
