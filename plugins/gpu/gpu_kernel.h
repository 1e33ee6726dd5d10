/* gpu_kernel.h - kernels of a device: modules of them, those that every GPU plugin has, and the
 * kernel table, which is made of these. */
#ifndef WEFT_XCCL_GPU_KERNEL_H
#define WEFT_XCCL_GPU_KERNEL_H

#include "gpu.h"

/* ---- gpu_module.c: device code ---- */

enum wf_variants { WF_ALONE, WF_BY_WORD, WF_BY_DTYPE };

/* Kernels weft_NAME, or weft_NAME_4 for words of 4 bytes, or weft_NAME_f32. */
struct wf_family {
    const char *name;
    enum wf_variants variants;
};

struct wf_module {
    gpu_module native;
    const struct wf_family *families;
    size_t count;
    _Atomic(gpu_function) functions[][WEFT_DTYPE_COUNT]; /* found so far */
};

/* Without code, which wf_module_load brings: the first image that the device takes.  NULL after
 * wf_fail_memory.  Within a scope, as all that follow. */
struct wf_module *wf_module_new(const struct wf_family *families, size_t count);
gpu_result wf_module_load(struct wf_module *module, const void *(*image)(size_t index));
void wf_module_close(struct wf_module *module);
/* Find all kernels of FAMILY, which loads them where that was put off. */
weft_status wf_module_find(struct wf_module *module, uint32_t family);
/* The kernel of FAMILY for VARIANT, to launch in another way than wf_module_launch does. */
weft_status wf_module_function(struct wf_module *module, uint32_t family, uint32_t variant,
                               gpu_function *out);
weft_status wf_module_launch(struct wf_module *module, uint32_t family, uint32_t variant,
                             uint64_t blocks, const void *args, gpu_stream stream);

/* ---- gpu_kernel.c, gpu_elements.c, gpu_regions.c: the kernel table ---- */

weft_status wf_kernels_open(struct wf_gpu_device *device);
void wf_kernels_close(struct wf_gpu_device *device);

enum wf_kernel { /* the kernels of plugins/kernels, by family */
                 WF_KERNEL_COPY,
                 WF_KERNEL_TRANSPOSE,
                 WF_KERNEL_FILL,
                 WF_KERNEL_TABLE,
                 WF_KERNEL_KEY,
                 WF_KERNEL_REDUCE,
                 WF_KERNEL_REGIONS_REDUCE,
                 WF_KERNEL_CAST,
                 WF_KERNEL_SCALE,
                 WF_KERNEL_SIGNAL,
                 WF_KERNEL_AWAIT_SIGNAL
};

/* Launch the member of FAMILY for VARIANT, a word size or a dtype, with ARGS.  Within a scope. */
weft_status wf_launch(struct wf_gpu_device *device, enum wf_kernel family, uint32_t variant,
                      uint64_t blocks, const void *args, gpu_stream stream);
/* Code that is loaded when it is first launched waits for kernels that run, and one of these may
 * wait for a signal: so the kernels of signals are loaded before any runs.  Within a scope. */
weft_status wf_signals_load(struct wf_gpu_device *device);
/* Blocks for COUNT elements where each thread takes several. */
uint32_t wf_blocks(uint64_t count, uint32_t per_thread);

struct wk_buffers;
/* Put COUNT addresses where kernels find them; what it borrows goes back with
 * wf_buffers_release after the launch.  Within a scope. */
weft_status wf_buffers_fill(struct wf_gpu_device *device, struct wk_buffers *buffers,
                            const void *const *addresses, uint64_t count, gpu_stream stream);
void wf_buffers_release(struct wf_gpu_device *device, struct wk_buffers *buffers,
                        gpu_stream stream);

/* Reductions of parts that lie STRIDE bytes apart from BASE on. */
struct wf_strided {
    uint32_t dtype, reduction, size, divisor; /* 0: SIZE */
    uint64_t count, stride;
    const void *base;
    void *target;
};
weft_status wf_reduce_strided(struct wf_gpu_device *device, const struct wf_strided *job,
                              gpu_stream stream);
/* TARGET[i] = SOURCE[i] * *SCALE; the two may be the same.  Within a scope. */
weft_status wf_scale(struct wf_gpu_device *device, uint32_t dtype, uint64_t count,
                     const void *scale, const void *source, void *target, gpu_stream stream);
/* Floats to keys of integer order, or back; see WK_KEY_ flags. */
weft_status wf_keys(struct wf_gpu_device *device, uint32_t dtype, uint32_t flags, uint64_t count,
                    const void *source, void *target, gpu_stream stream);

weft_status wf_regions_create(void *device, uint32_t element_bytes, uint64_t count,
                              const weft_region *regions, void **out);
void wf_regions_destroy(void *list);
weft_status wf_regions_copy(void *list, const void *const *sources, void *const *targets,
                            void *stream);
struct wk_regions_reduce_args;
/* Reduce LIST as ARGS says, in which regions, tiles, words and buffers are yet to be set. */
weft_status wf_regions_run_reduction(void *list, uint32_t dtype,
                                     struct wk_regions_reduce_args *args,
                                     const void *const *sources, void *const *targets,
                                     gpu_stream stream);

/* What one launch serves of a list of regions, for kernels of a plugin's own.  Buffer 0 is the
 * target, the sources follow. */
struct wk_region;
struct wf_region_set {
    const struct wk_region *regions;
    const void *tiles; /* struct wk_tile, or wk_transpose_tile if turned */
    uint64_t tile_count;
    uint32_t word;
    bool is_turned;
};
enum { WF_REGION_SETS = 7 };
uint32_t wf_regions_element(const void *list); /* bytes */
uint32_t wf_regions_sources(const void *list); /* buffers that its regions read, from 0 on */
bool wf_regions_reads(const void *list, uint32_t source); /* or has only empty ones of it */
/* The sets that move LIST, of one target, between buffers that are ALIGNMENT-aligned; returns how
 * many. */
uint32_t wf_regions_sets(const void *list, uint32_t alignment, bool reduces,
                         struct wf_region_set *sets);

extern const weft_kernel_table wf_gpu_kernel_table;

#endif
