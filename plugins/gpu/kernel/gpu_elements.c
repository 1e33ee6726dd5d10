/* gpu_elements.c - the kernel table over plain arrays (reduce, cast, scale, fill), reductions of
 * regions, and the float keys that collectives use. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <string.h>

static bool aligned(const void *pointer, uint64_t bytes)
{
    return (uintptr_t)pointer % bytes == 0;
}

static weft_status check_reduction(uint32_t dtype, uint32_t reduction)
{
    if (kit_dtype_bytes(dtype) == 0)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", dtype);
    if (!kit_reduction_defined(reduction, dtype))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s is not defined on %s",
                         kit_reduction_name(reduction), kit_dtype_name(dtype));
    return WEFT_OK;
}

static weft_status launch_reduce(struct gpu_device *device, struct wk_reduce_args *args,
                                 uint32_t dtype, vendor_stream stream)
{
    uint32_t per_pack = args->word == 16 ? (uint32_t)(16 / kit_dtype_bytes(dtype)) : 1;

    args->blocks = gpu_blocks(args->count, per_pack);
    return gpu_kernel_launch(device, GPU_KERNEL_REDUCE, dtype, args->blocks, args, stream);
}

weft_status gpu_reduce_strided(struct gpu_device *device, const struct gpu_strided *job,
                               vendor_stream stream)
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
    struct gpu_device *device = opened;
    struct wk_reduce_args args = {.target = (uintptr_t)target,
                                  .count = count,
                                  .reduction = reduction,
                                  .size = size,
                                  .divisor = size,
                                  .word = aligned(target, 16) ? 16 : 1};
    vendor_stream native = gpu_native(stream);
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(check_reduction(dtype, reduction));
    if (reduction == WEFT_REDUCE_PREMUL_SUM)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "premul_sum is not supported on local buffers");
    if (size == 0) return plug_fail(WEFT_ERR_INVALID, "reduce: size is 0; it must be at least 1");
    if (count == 0) return WEFT_OK;
    if (target == NULL) return plug_fail(WEFT_ERR_INVALID, "the target of a reduction is NULL");
    for (uint32_t k = 0; k < size; k++) {
        if (sources[k] == NULL) return plug_fail(WEFT_ERR_INVALID, "source %u is NULL", k);
        if (!aligned(sources[k], 16)) args.word = 1;
    }
    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_buffers_fill(device, &args.buffers, sources, size, native);
    if (status == WEFT_OK) {
        status = launch_reduce(device, &args, dtype, native);
        gpu_buffers_release(device, &args.buffers, native);
    }
    gpu_leave(&scope);
    return status;
}

static weft_status regions_reduce(void *list, uint32_t dtype, uint32_t reduction, uint32_t size,
                                  const void *const *sources, void *const *targets, void *stream)
{
    struct wk_regions_reduce_args args = {.reduction = reduction, .size = size, .divisor = size};

    return gpu_regions_run_reduction(list, dtype, &args, sources, targets, gpu_native(stream));
}

static weft_status regions_average(void *list, uint32_t dtype, uint32_t size, uint32_t divisor,
                                   const void *const *sources, void *const *targets, void *stream)
{
    struct wk_regions_reduce_args args = {
        .reduction = WEFT_REDUCE_AVG, .size = size, .divisor = divisor};

    if (divisor == 0)
        return plug_fail(WEFT_ERR_INVALID, "regions_average: divisor is 0; it must be at least 1");
    return gpu_regions_run_reduction(list, dtype, &args, sources, targets, gpu_native(stream));
}

static bool is_complex(uint32_t dtype)
{
    return dtype == WEFT_DTYPE_C64 || dtype == WEFT_DTYPE_C128;
}

static weft_status gpu_cast(void *opened, uint32_t from, uint32_t to, uint64_t count,
                            const void *source, void *target, void *stream)
{
    struct gpu_device *device = opened;
    uint64_t from_bytes = kit_dtype_bytes(from), to_bytes = kit_dtype_bytes(to);
    struct wk_map_args args = {
        .source = (uintptr_t)source, .target = (uintptr_t)target, .count = count, .to = to};
    uint64_t pack;
    struct gpu_scope scope;
    weft_status status;

    if (from_bytes == 0 || to_bytes == 0 || is_complex(from) != is_complex(to))
        return plug_fail(WEFT_ERR_UNSUPPORTED, "cast from %s to %s is not supported",
                         kit_dtype_name(from), kit_dtype_name(to));
    if (count == 0) return WEFT_OK;
    if (source == NULL || target == NULL)
        return plug_fail(WEFT_ERR_INVALID, "cast: source or target is NULL");
    pack = 16 / (from_bytes > to_bytes ? from_bytes : to_bytes);
    args.wide = aligned(source, pack * from_bytes) && aligned(target, pack * to_bytes);
    args.blocks = gpu_blocks(count, (uint32_t)pack);
    PLUG_TRY(gpu_enter(device, &scope));
    status =
        gpu_kernel_launch(device, GPU_KERNEL_CAST, from, args.blocks, &args, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_scale_elements(struct gpu_device *device, uint32_t dtype, uint64_t count,
                               const void *scale, const void *source, void *target,
                               vendor_stream stream)
{
    struct wk_map_args args = {.source = (uintptr_t)source,
                               .target = (uintptr_t)target,
                               .count = count,
                               .wide = aligned(source, 16) && aligned(target, 16)};

    if (count == 0) return WEFT_OK;
    memcpy(args.value, scale, kit_dtype_bytes(dtype));
    args.blocks = gpu_blocks(count, (uint32_t)(16 / kit_dtype_bytes(dtype)));
    return gpu_kernel_launch(device, GPU_KERNEL_SCALE, dtype, args.blocks, &args, stream);
}

static weft_status gpu_scale(void *opened, uint32_t dtype, uint64_t count, const void *scale,
                             void *data, void *stream)
{
    struct gpu_device *device = opened;
    struct gpu_scope scope;
    weft_status status;

    if (kit_dtype_bytes(dtype) == 0 || dtype == WEFT_DTYPE_BOOL)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "%s cannot be scaled", kit_dtype_name(dtype));
    if (count == 0) return WEFT_OK;
    if (data == NULL || scale == NULL)
        return plug_fail(WEFT_ERR_INVALID, "scale: data or scale is NULL");
    PLUG_TRY(gpu_enter(device, &scope));
    status = gpu_scale_elements(device, dtype, count, scale, data, data, gpu_native(stream));
    gpu_leave(&scope);
    return status;
}

weft_status gpu_keys(struct gpu_device *device, uint32_t dtype, uint32_t flags, uint64_t count,
                     const void *source, void *target, vendor_stream stream)
{
    struct wk_map_args args = {
        .source = (uintptr_t)source, .target = (uintptr_t)target, .count = count, .flags = flags};

    if (count == 0) return WEFT_OK;
    args.blocks = gpu_blocks(count, 4);
    return gpu_kernel_launch(device, GPU_KERNEL_KEY, dtype, args.blocks, &args, stream);
}

/* Without kernels: copy the value once, then double the filled part with each copy. */
static vendor_result fill_by_copies(void *target, uint64_t bytes, const void *value, uint64_t size,
                                    vendor_stream stream)
{
    vendor_result result = gpu_vendor_copy(target, value, size, stream);

    for (uint64_t done = size; done < bytes && result == GPU_SUCCESS; done *= 2)
        result = gpu_vendor_copy((char *)target + done, target,
                                 done < bytes - done ? done : bytes - done, stream);
    return result;
}

static weft_status gpu_fill(void *opened, uint32_t dtype, uint64_t count, const void *value,
                            void *target, void *stream)
{
    struct gpu_device *device = opened;
    uint64_t bytes = kit_dtype_bytes(dtype);
    uint64_t word = bytes < 8 ? bytes : 8;
    struct wk_map_args args = {.target = (uintptr_t)target, .wide = aligned(target, 16)};
    struct gpu_scope scope;
    weft_status status;

    if (bytes == 0) return plug_fail(WEFT_ERR_UNSUPPORTED, "dtype %u is unknown", dtype);
    if (count == 0) return WEFT_OK;
    if (target == NULL || value == NULL)
        return plug_fail(WEFT_ERR_INVALID, "fill: target or value is NULL");
    for (uint64_t at = 0; at < sizeof args.value; at += bytes)
        memcpy((char *)args.value + at, value, bytes);
    if (!aligned(target, word)) word = bytes / 2; /* complex elements may have half the alignment */
    args.count = count * (bytes / word);
    args.blocks = gpu_blocks(args.count, (uint32_t)(16 / word));
    PLUG_TRY(gpu_enter(device, &scope));
    if (device->kernels != NULL)
        status = gpu_kernel_launch(device, GPU_KERNEL_FILL, (uint32_t)word, args.blocks, &args,
                                   gpu_native(stream));
    else
        status =
            gpu_check(fill_by_copies(target, count * bytes, args.value, bytes, gpu_native(stream)),
                      "filling memory");
    gpu_leave(&scope);
    return status;
}

const weft_kernel_table gpu_kernel_table = {
    .struct_size = sizeof(weft_kernel_table),
    .signature = WEFT_KERNEL_SIGNATURE,
    .regions_create = gpu_regions_create,
    .regions_destroy = gpu_regions_destroy,
    .regions_copy = gpu_regions_copy,
    .regions_reduce = regions_reduce,
    .regions_average = regions_average,
    .regions_cast = gpu_regions_cast,
    .regions_draw = gpu_regions_draw,
    .spans_create = gpu_spans_create,
    .spans_destroy = gpu_spans_destroy,
    .spans_powers = gpu_spans_powers,
    .spans_limit = gpu_spans_limit,
    .spans_clamp = gpu_spans_clamp,
    .merge_rows = gpu_merge_rows,
    .reduce = gpu_reduce,
    .cast = gpu_cast,
    .scale = gpu_scale,
    .fill = gpu_fill,
};
