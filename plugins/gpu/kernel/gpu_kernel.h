/* gpu_kernel.h - kernel modules of a device, the kernels that every GPU plugin has, and the kernel
 * table. */
#ifndef WEFT_GPU_KERNEL_H
#define WEFT_GPU_KERNEL_H

#include "device/gpu.h"

/* ---- gpu_module.c: device code ---- */

enum gpu_variants { GPU_ALONE, GPU_BY_WORD, GPU_BY_DTYPE, GPU_BY_REAL_DTYPE };

/* Kernels weft_NAME, or weft_NAME_4 for words of 4 bytes, or weft_NAME_f32. */
struct gpu_family {
    const char *name;
    enum gpu_variants variants;
};

struct gpu_module {
    vendor_module native;
    const struct gpu_family *families;
    size_t count;
    _Atomic(vendor_function) functions[][WEFT_DTYPE_COUNT]; /* looked up so far */
};

/* A module without code, or NULL after plug_fail_memory.  gpu_module_load adds the first image that
 * the device accepts.  This and the following functions are called within a scope. */
struct gpu_module *gpu_module_new(const struct gpu_family *families, size_t count);
vendor_result gpu_module_load(struct gpu_module *module, const void *(*image)(size_t index));
void gpu_module_close(struct gpu_module *module);
/* Look up all kernels of FAMILY.  This also loads code that the driver loads lazily. */
weft_status gpu_module_find(struct gpu_module *module, uint32_t family);
/* The kernel of FAMILY for VARIANT, for callers that launch it themselves. */
weft_status gpu_module_function(struct gpu_module *module, uint32_t family, uint32_t variant,
                                vendor_function *out);
weft_status gpu_module_launch(struct gpu_module *module, uint32_t family, uint32_t variant,
                              uint64_t blocks, const void *args, vendor_stream stream);

/* ---- gpu_kernel.c, gpu_elements.c, gpu_regions.c: the kernel table ---- */

weft_status gpu_kernels_open(struct gpu_device *device);
void gpu_kernels_close(struct gpu_device *device);
/* Free the device memory of a list that kernels read, after the work that uses it.  NULL: none. */
void gpu_list_free(const struct gpu_device *device, void *memory);

enum gpu_kernel { /* the kernels of plugins/kernels, by family */
                  GPU_KERNEL_COPY,
                  GPU_KERNEL_TRANSPOSE,
                  GPU_KERNEL_FILL,
                  GPU_KERNEL_TABLE,
                  GPU_KERNEL_KEY,
                  GPU_KERNEL_REDUCE,
                  GPU_KERNEL_REGIONS_REDUCE,
                  GPU_KERNEL_REGIONS_CAST,
                  GPU_KERNEL_CAST,
                  GPU_KERNEL_SCALE,
                  GPU_KERNEL_DRAW_UNIFORM,
                  GPU_KERNEL_DRAW_NORMAL,
                  GPU_KERNEL_DRAW_TRUNCATED,
                  GPU_KERNEL_DRAW_CHOICE,
                  GPU_KERNEL_DRAW_INTEGERS,
                  GPU_KERNEL_SPAN_POWERS_ONE,
                  GPU_KERNEL_SPAN_POWERS_TWO,
                  GPU_KERNEL_SPAN_POWERS_ANY,
                  GPU_KERNEL_SPAN_POWERS_LARGEST,
                  GPU_KERNEL_SPAN_SUMS,
                  GPU_KERNEL_SPAN_LIMIT,
                  GPU_KERNEL_SPAN_CLAMP,
                  GPU_KERNEL_SPAN_TABLE,
                  GPU_KERNEL_MERGE,
                  GPU_KERNEL_SIGNAL,
                  GPU_KERNEL_AWAIT_SIGNAL
};

/* Launch the member of FAMILY for VARIANT, a word size or a dtype, with ARGS.  Within a scope. */
weft_status gpu_kernel_launch(struct gpu_device *device, enum gpu_kernel family, uint32_t variant,
                              uint64_t blocks, const void *args, vendor_stream stream);
/* WEFT_ERR_UNSUPPORTED unless the kernels of DEVICE have those of the families FIRST to LAST for
 * VARIANT.  An image of an older version lacks some.  Within a scope. */
weft_status gpu_kernels_offer(struct gpu_device *device, enum gpu_kernel first,
                              enum gpu_kernel last, uint32_t variant);
/* Load the kernels of signals before any of them runs.  Loading waits for running kernels, and one
 * of these may wait for a signal.  Within a scope. */
weft_status gpu_signals_load(struct gpu_device *device);
/* Number of blocks for COUNT elements with PER_THREAD elements per thread. */
uint32_t gpu_blocks(uint64_t count, uint32_t per_thread);

struct wk_buffers;
/* Write COUNT addresses where kernels can read them.  gpu_buffers_release frees borrowed memory
 * after the launch.  Within a scope. */
weft_status gpu_buffers_fill(struct gpu_device *device, struct wk_buffers *buffers,
                             const void *const *addresses, uint64_t count, vendor_stream stream);
void gpu_buffers_release(struct gpu_device *device, struct wk_buffers *buffers,
                         vendor_stream stream);

/* A reduction of parts that start STRIDE bytes apart, from BASE on. */
struct gpu_strided {
    uint32_t dtype, reduction, size, divisor; /* DIVISOR 0 means SIZE */
    uint64_t count, stride;
    const void *base;
    void *target;
};
weft_status gpu_reduce_strided(struct gpu_device *device, const struct gpu_strided *job,
                               vendor_stream stream);
/* TARGET[i] = SOURCE[i] * *SCALE.  SOURCE and TARGET may be equal.  Within a scope. */
weft_status gpu_scale_elements(struct gpu_device *device, uint32_t dtype, uint64_t count,
                               const void *scale, const void *source, void *target,
                               vendor_stream stream);
/* Convert floats to keys of integer order, or back; see the WK_KEY_ flags. */
weft_status gpu_keys(struct gpu_device *device, uint32_t dtype, uint32_t flags, uint64_t count,
                     const void *source, void *target, vendor_stream stream);

weft_status gpu_regions_create(void *device, uint32_t element_bytes, uint64_t count,
                               const weft_region *regions, void **out);
void gpu_regions_destroy(void *list);
weft_status gpu_regions_copy(void *list, const void *const *sources, void *const *targets,
                             void *stream);
struct wk_regions_reduce_args;
/* Reduce LIST according to ARGS.  This sets regions, tiles, words and buffers in ARGS. */
weft_status gpu_regions_run_reduction(void *list, uint32_t dtype,
                                      struct wk_regions_reduce_args *args,
                                      const void *const *sources, void *const *targets,
                                      vendor_stream stream);

/* The part of a list of regions that one launch moves, for a plugin's own kernels.  Buffer 0 is the
 * target; the sources follow. */
struct wk_region;
struct gpu_region_set {
    const struct wk_region *regions;
    const void *tiles; /* struct wk_tile, or wk_transpose_tile for transposed regions */
    uint64_t tile_count;
    uint32_t word;
    bool is_turned;
};
enum { GPU_REGION_SETS = 7 };
struct gpu_device *gpu_regions_device(const void *list);
uint32_t gpu_regions_element(const void *list); /* bytes */
uint32_t gpu_regions_sources(const void *list); /* number of source buffers that its regions read */
/* True if a region that is not empty reads SOURCE. */
bool gpu_regions_reads(const void *list, uint32_t source);
/* The sets that copy LIST, which has one target, between buffers aligned to ALIGNMENT.  Returns
 * their number. */
uint32_t gpu_regions_sets(const void *list, uint32_t alignment, bool reduces,
                          struct gpu_region_set *sets);

/* Targets, then sources, in the numbering of the kernels.  Long lists use allocated memory. */
struct gpu_region_buffers {
    const void *few[60]; /* WK_NEAR */
    const void **all;
    uint64_t count;
    uint32_t alignment; /* common alignment of all buffers, at most 16 */
};
/* The buffers of a run of LIST, whose regions read MORE_SOURCES beyond the last that they name.
 * SOURCES is NULL if the run reads nothing.  The caller drops *OUT. */
weft_status gpu_regions_gather(const void *list, uint32_t more_sources, const void *const *sources,
                               void *const *targets, struct gpu_region_buffers *out);
void gpu_regions_drop(struct gpu_region_buffers *buffers);

/* ---- gpu_regions_cast.c ---- */

/* True if a cast from FROM to TO is offered (docs/dtypes.md lists them). */
bool gpu_cast_is_offered(uint32_t from, uint32_t to);
weft_status gpu_regions_cast(void *list, uint32_t from, uint32_t to, const void *const *sources,
                             void *const *targets, void *stream);

/* ---- gpu_regions_draw.c ---- */

weft_status gpu_regions_draw(void *list, const weft_draw *draw, void *const *targets, void *stream);

/* ---- gpu_spans.c ---- */

weft_status gpu_spans_create(void *device, uint64_t count, const weft_span *spans, uint32_t sums,
                             void **out);
void gpu_spans_destroy(void *list);
weft_status gpu_spans_powers(void *list, void *const *memory, double p, double *sums, void *stream);
weft_status gpu_spans_limit(void *list, void *const *memory, const weft_norm_limit *limit,
                            const double *sum, double *norm, void *stream);
weft_status gpu_spans_clamp(void *list, void *const *memory, double most, void *stream);

/* ---- gpu_merge.c ---- */

weft_status gpu_merge_rows(void *device, const weft_merge *merge, void *stream);

extern const weft_kernel_table gpu_kernel_table;

#endif
