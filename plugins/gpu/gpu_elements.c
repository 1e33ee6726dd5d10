/* gpu_elements.c - the kernel table over plain arrays: reduce, cast, scale, fill; regions reduced;
 * and the float keys that collectives use. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <string.h>

static bool aligned(const void *pointer, uint64_t bytes)
{
    return (uintptr_t)pointer % bytes == 0;
}

static weft_status check_reduction(uint32_t dtype, uint32_t reduction)
{
    if (wf_abi_dtype_bytes(dtype) == 0)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", dtype);
    if (!wf_abi_reduction_defined(reduction, dtype))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s is not defined on %s",
                       wf_abi_reduction_name(reduction), wf_abi_dtype_name(dtype));
    return WEFT_OK;
}

static weft_status launch_reduce(struct wf_gpu_device *device, struct wk_reduce_args *args,
                                 uint32_t dtype, gpu_stream stream)
{
    uint32_t per_pack = args->word == 16 ? (uint32_t)(16 / wf_abi_dtype_bytes(dtype)) : 1;

    args->blocks = wf_blocks(args->count, per_pack);
    return wf_launch(device, WF_KERNEL_REDUCE, dtype, args->blocks, args, stream);
}

weft_status wf_reduce_strided(struct wf_gpu_device *device, const struct wf_strided *job,
                              gpu_stream stream)
{
    struct wk_reduce_args args = {.base = (uintptr_t)job->base,
                                  .stride = job->stride,
                                  .target = (uintptr_t)job->target,
                                  .count = job->count,
                                  .reduction = job->reduction,
                                  .size = job->size,
                                  .divisor = job->divisor != 0 ? job->divisor : job->size};

    if (job->count == 0) return WEFT_OK;
    if (aligned(job->base, 16) && aligned(job->target, 16) && job->stride % 16 == 0) args.word = 16;
    return launch_reduce(device, &args, job->dtype, stream);
}

static weft_status gpu_reduce(void *opened, uint32_t dtype, uint32_t reduction, uint64_t count,
                              uint32_t size, const void *const *sources, void *target, void *stream)
{
    struct wf_gpu_device *device = opened;
    struct wk_reduce_args args = {.target = (uintptr_t)target,
                                  .count = count,
                                  .reduction = reduction,
                                  .size = size,
                                  .divisor = size,
                                  .word = aligned(target, 16) ? 16 : 1};
    gpu_stream native = wf_native(stream);
    struct wf_scope scope;
    weft_status status;

    WF_TRY(check_reduction(dtype, reduction));
    if (reduction == WEFT_REDUCE_PREMUL_SUM)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there is no premul_sum of local buffers");
    if (size == 0) return wf_fail(WEFT_ERR_INVALID, "a reduction of no buffers");
    if (count == 0) return WEFT_OK;
    if (target == NULL) return wf_fail(WEFT_ERR_INVALID, "the target of a reduction is NULL");
    for (uint32_t k = 0; k < size; k++) {
        if (sources[k] == NULL) return wf_fail(WEFT_ERR_INVALID, "source %u is NULL", k);
        if (!aligned(sources[k], 16)) args.word = 1;
    }
    WF_TRY(wf_enter(device, &scope));
    status = wf_buffers_fill(device, &args.buffers, sources, size, native);
    if (status == WEFT_OK) {
        status = launch_reduce(device, &args, dtype, native);
        wf_buffers_release(device, &args.buffers, native);
    }
    wf_leave(&scope);
    return status;
}

static weft_status regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    struct wk_regions_reduce_args args = {.reduction = reduction, .size = size, .divisor = size};

    return wf_regions_run_reduction(list, dtype, &args, sources, targets, wf_native(stream));
}

static weft_status regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream)
{
    struct wk_regions_reduce_args args = {
        .reduction = WEFT_REDUCE_AVG, .size = size, .divisor = divisor};

    if (divisor == 0) return wf_fail(WEFT_ERR_INVALID, "an average of regions divided by 0");
    return wf_regions_run_reduction(list, dtype, &args, sources, targets, wf_native(stream));
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

static weft_status gpu_cast(void *opened, uint32_t from, uint32_t to, uint64_t count,
                            const void *source, void *target, void *stream)
{
    struct wf_gpu_device *device = opened;
    uint64_t from_bytes = wf_abi_dtype_bytes(from), to_bytes = wf_abi_dtype_bytes(to);
    struct wk_map_args args = {
        .source = (uintptr_t)source, .target = (uintptr_t)target, .count = count, .to = to};
    uint64_t pack;
    struct wf_scope scope;
    weft_status status;

    if (from_bytes == 0 || to_bytes == 0 || is_complex(from) != is_complex(to))
        return wf_fail(WEFT_ERR_UNSUPPORTED, "there is no cast from %s to %s",
                       wf_abi_dtype_name(from), wf_abi_dtype_name(to));
    if (count == 0) return WEFT_OK;
    if (source == NULL || target == NULL) return wf_fail(WEFT_ERR_INVALID, "a cast of NULL");
    pack = 16 / (from_bytes > to_bytes ? from_bytes : to_bytes);
    args.wide = aligned(source, pack * from_bytes) && aligned(target, pack * to_bytes);
    args.blocks = wf_blocks(count, (uint32_t)pack);
    WF_TRY(wf_enter(device, &scope));
    status = wf_launch(device, WF_KERNEL_CAST, from, args.blocks, &args, wf_native(stream));
    wf_leave(&scope);
    return status;
}

weft_status wf_scale(struct wf_gpu_device *device, uint32_t dtype, uint64_t count,
                     const void *scale, const void *source, void *target, gpu_stream stream)
{
    struct wk_map_args args = {.source = (uintptr_t)source,
                               .target = (uintptr_t)target,
                               .count = count,
                               .wide = aligned(source, 16) && aligned(target, 16)};

    if (count == 0) return WEFT_OK;
    memcpy(args.value, scale, wf_abi_dtype_bytes(dtype));
    args.blocks = wf_blocks(count, (uint32_t)(16 / wf_abi_dtype_bytes(dtype)));
    return wf_launch(device, WF_KERNEL_SCALE, dtype, args.blocks, &args, stream);
}

static weft_status gpu_scale(void *opened, uint32_t dtype, uint64_t count, const void *scale,
                             void *data, void *stream)
{
    struct wf_gpu_device *device = opened;
    struct wf_scope scope;
    weft_status status;

    if (wf_abi_dtype_bytes(dtype) == 0 || dtype == WEFT_DTYPE_BOOL)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "%s cannot be scaled", wf_abi_dtype_name(dtype));
    if (count == 0) return WEFT_OK;
    if (data == NULL || scale == NULL)
        return wf_fail(WEFT_ERR_INVALID, "data or factor to scale is NULL");
    WF_TRY(wf_enter(device, &scope));
    status = wf_scale(device, dtype, count, scale, data, data, wf_native(stream));
    wf_leave(&scope);
    return status;
}

weft_status wf_keys(struct wf_gpu_device *device, uint32_t dtype, uint32_t flags, uint64_t count,
                    const void *source, void *target, gpu_stream stream)
{
    struct wk_map_args args = {
        .source = (uintptr_t)source, .target = (uintptr_t)target, .count = count, .flags = flags};

    if (count == 0) return WEFT_OK;
    args.blocks = wf_blocks(count, 4);
    return wf_launch(device, WF_KERNEL_KEY, dtype, args.blocks, &args, stream);
}

/* Without kernels: the value once, then each copy doubles what is there. */
static gpu_result fill_by_copies(void *target, uint64_t bytes, const void *value, uint64_t size,
                                 gpu_stream stream)
{
    gpu_result result = wf_vendor_copy(target, value, size, stream);

    for (uint64_t done = size; done < bytes && result == GPU_SUCCESS; done *= 2)
        result = wf_vendor_copy((char *)target + done, target,
                                done < bytes - done ? done : bytes - done, stream);
    return result;
}

static weft_status gpu_fill(void *opened, uint32_t dtype, uint64_t count, const void *value,
                            void *target, void *stream)
{
    struct wf_gpu_device *device = opened;
    uint64_t bytes = wf_abi_dtype_bytes(dtype);
    uint64_t word = bytes < 8 ? bytes : 8;
    struct wk_map_args args = {.target = (uintptr_t)target, .wide = aligned(target, 16)};
    struct wf_scope scope;
    weft_status status;

    if (bytes == 0) return wf_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", dtype);
    if (count == 0) return WEFT_OK;
    if (target == NULL || value == NULL)
        return wf_fail(WEFT_ERR_INVALID, "target or value to fill with is NULL");
    for (uint64_t at = 0; at < sizeof args.value; at += bytes)
        memcpy((char *)args.value + at, value, bytes);
    if (!aligned(target, word)) word = bytes / 2; /* complex numbers may lie on half of it */
    args.count = count * (bytes / word);
    args.blocks = wf_blocks(args.count, (uint32_t)(16 / word));
    WF_TRY(wf_enter(device, &scope));
    if (device->kernels != NULL)
        status = wf_launch(device, WF_KERNEL_FILL, (uint32_t)word, args.blocks, &args,
                           wf_native(stream));
    else
        status = wf_gpu_check(
            fill_by_copies(target, count * bytes, args.value, bytes, wf_native(stream)),
            "filling memory");
    wf_leave(&scope);
    return status;
}

const weft_kernel_table wf_gpu_kernel_table = {
    .struct_size = sizeof(weft_kernel_table),
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = wf_regions_create,
    .regions_destroy = wf_regions_destroy,
    .regions_copy = wf_regions_copy,
    .regions_reduce = regions_reduce,
    .regions_average = regions_average,
    .reduce = gpu_reduce,
    .cast = gpu_cast,
    .scale = gpu_scale,
    .fill = gpu_fill,
};
