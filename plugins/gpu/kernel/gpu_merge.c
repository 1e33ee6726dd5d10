/* gpu_merge.c - partial results of attention, merged by their log-sum-exp. */
#include "gpu_kernel.h"
#include "kernel_args.h"

#include <string.h>

static weft_status check_merge(const weft_merge *merge)
{
    if (merge->dtype < WEFT_DTYPE_F16 || merge->dtype > WEFT_DTYPE_F8E5M2 ||
        merge->dtype == WEFT_DTYPE_F64)
        return plug_fail(WEFT_ERR_UNSUPPORTED, "results of %s cannot be merged",
                         kit_dtype_name(merge->dtype));
    if (merge->extent[0] < 0 || merge->extent[1] < 0 || merge->extent[2] < 0 || merge->depth < 0 ||
        merge->depth > INT32_MAX)
        return plug_fail(WEFT_ERR_INVALID, "merge_rows: an extent is out of range");
    return WEFT_OK;
}

static weft_status check_rows(const weft_merge *merge)
{
    if (merge->out.memory == NULL || merge->total.memory == NULL ||
        (merge->lse.memory != NULL && merge->total_lse.memory == NULL))
        return plug_fail(WEFT_ERR_INVALID, "merge_rows: memory is NULL");
    return WEFT_OK;
}

static void set_rows(const weft_rows *rows, uint64_t *memory, int64_t *stride)
{
    *memory = (uintptr_t)rows->memory;
    memcpy(stride, rows->stride, sizeof rows->stride);
}

weft_status gpu_merge_rows(void *opened, const weft_merge *merge, void *stream)
{
    struct gpu_device *device = opened;
    struct wk_merge_args args = {.depth = (uint32_t)merge->depth};
    struct gpu_scope scope;
    weft_status status;

    PLUG_TRY(check_merge(merge));
    args.extent[0] = (uint64_t)merge->extent[1];
    args.extent[1] = (uint64_t)merge->extent[2];
    args.rows = (uint64_t)merge->extent[0] * args.extent[0] * args.extent[1];
    if (args.rows > 0) PLUG_TRY(check_rows(merge));
    set_rows(&merge->out, &args.out, args.out_stride);
    set_rows(&merge->lse, &args.lse, args.lse_stride);
    set_rows(&merge->total, &args.total, args.total_stride);
    set_rows(&merge->total_lse, &args.total_lse, args.total_lse_stride);
    PLUG_TRY(gpu_enter(device, &scope));
    if (args.rows == 0)
        status = gpu_kernels_offer(device, GPU_KERNEL_MERGE, GPU_KERNEL_MERGE, merge->dtype);
    else
        status = gpu_kernel_launch(device, GPU_KERNEL_MERGE, merge->dtype,
                                   (args.rows + WK_MERGE_ROWS - 1) / WK_MERGE_ROWS, &args,
                                   gpu_native(stream));
    gpu_leave(&scope);
    return status;
}
