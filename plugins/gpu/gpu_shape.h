/* gpu_shape.h - regions of the ABI as the kernels take them.  Pure arithmetic, no device. */
#ifndef WEFT_XCCL_GPU_SHAPE_H
#define WEFT_XCCL_GPU_SHAPE_H

#include "gpu_kernel.h"
#include "kernel_args.h"

/* A region in bytes: runs of RUN contiguous bytes on both sides, dims[0] the fastest. */
struct wf_shape {
    uint32_t source, target;
    uint32_t dims;
    uint64_t run;
    int64_t source_offset, target_offset;
    uint64_t extent[WEFT_MAX_DIMS];
    int64_t source_stride[WEFT_MAX_DIMS], target_stride[WEFT_MAX_DIMS];
};

/* Bring REGION into its simplest form: no dimension of extent 1, the target's fastest first, what
 * lies side by side merged into the run.  *EMPTY: there is nothing to copy. */
weft_status wf_shape_read(const weft_region *region, uint32_t element_bytes, struct wf_shape *out,
                          bool *empty);

/* Hand pieces of SHAPE of at most WK_REGION_BYTES to TAKE, in order, until one fails. */
weft_status wf_shape_cut(const struct wf_shape *shape,
                         weft_status (*take)(void *self, const struct wf_shape *piece), void *self);

uint64_t wf_shape_bytes(const struct wf_shape *shape);

/* The widest word, up to 16 bytes, in which SHAPE can be copied between buffers that allow it. */
uint32_t wf_shape_word(const struct wf_shape *shape);

/* Is the fastest dimension another one on each side, and worth turning over in tiles?  Then
 * dims[0] is made the source's fastest and dims[1] the target's. */
bool wf_shape_transpose(const struct wf_shape *shape, uint32_t element_bytes, struct wf_shape *out);

/* SHAPE, of at most WK_REGION_BYTES, as a kernel's region; buffers are shifted as given. */
void wf_shape_write(const struct wf_shape *shape, uint32_t first_source, struct wk_region *out);

#endif
