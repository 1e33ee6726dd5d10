/* memory.c - work on elements of the backend's memory, by kernels of the device or by the host; and
 * waiting for it. */
#include "cp.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

weft_status wf_cp_sync(const weft_cp *cp, weft_stream *stream)
{
    if (stream == NULL && cp->is_inline) return WEFT_OK;
    return weft_context_wait(cp->context, stream, WEFT_FOREVER);
}

weft_status wf_cp_wait(weft_work **work)
{
    weft_status status;

    if (*work == NULL) return WEFT_OK;
    status = weft_work_wait(*work, WEFT_FOREVER);
    weft_work_release(work);
    return status;
}

/* Of the device, which CP uses if it is ON_DEVICE. */
static const weft_kernel_table *kernels_of(const weft_cp *cp)
{
    return weft_context_plugin(cp->context)->kernel;
}

weft_status wf_cp_ask_merges(const weft_cp *cp)
{
    const weft_kernel_table *kernels = kernels_of(cp);
    const weft_merge none = {.struct_size = sizeof none, .dtype = cp->sizes.dtype};
    weft_status status = WEFT_ERR_UNSUPPORTED;

    if (!cp->on_device) return WEFT_OK;
    if (kernels != NULL && WF_HAS(kernels, merge_rows))
        status = kernels->merge_rows(weft_context_device(cp->context), &none, NULL);
    if (status != WEFT_ERR_UNSUPPORTED) return status;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "backend %s has no kernel that merges results of attention, and the host cannot "
                   "read its memory",
                   weft_context_plugin(cp->context)->name);
}

weft_status wf_cp_clear(const struct wf_cp_pass *pass, float *memory, size_t count)
{
    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return weft_memory_fill(pass->cp->context, memory, 0, count * sizeof *memory, pass->stream);
    memset(memory, 0, count * sizeof *memory);
    return WEFT_OK;
}

weft_status wf_cp_unsee(const struct wf_cp_pass *pass, float *lse, size_t count)
{
    const float nothing = -INFINITY;

    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return kernels_of(pass->cp)->fill(weft_context_device(pass->cp->context), WEFT_DTYPE_F32,
                                          count, &nothing, lse, pass->stream);
    for (size_t i = 0; i < count; i++)
        lse[i] = nothing;
    return WEFT_OK;
}

weft_status wf_cp_convert(const struct wf_cp_pass *pass, const float *sums, void *target,
                          size_t count)
{
    uint32_t dtype = pass->cp->sizes.dtype;

    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return kernels_of(pass->cp)->cast(weft_context_device(pass->cp->context), WEFT_DTYPE_F32,
                                          dtype, count, sums, target, pass->stream);
    wf_elements_cast(WEFT_DTYPE_F32, dtype, sums, target, count);
    return WEFT_OK;
}

static weft_rows rows_of(const weft_cp_local *local)
{
    return (weft_rows){local->memory, {local->batch, local->head, local->sequence}};
}

weft_status wf_cp_combine(const struct wf_cp_pass *pass, const struct wf_cp_box *box,
                          const weft_cp_local *out, const weft_cp_local *lse,
                          const weft_cp_local *total, const weft_cp_local *total_lse)
{
    const weft_cp *cp = pass->cp;
    weft_merge merge = {.struct_size = sizeof merge,
                        .dtype = cp->sizes.dtype,
                        .extent = {box->batch, box->heads, box->count},
                        .depth = box->depth,
                        .out = rows_of(out),
                        .total = rows_of(total)};

    if (cp->on_device) {
        if (lse != NULL) {
            merge.lse = rows_of(lse);
            merge.total_lse = rows_of(total_lse);
        }
        return kernels_of(cp)->merge_rows(weft_context_device(cp->context), &merge, pass->stream);
    }
    WF_TRY(wf_cp_sync(cp, pass->stream));
    if (lse != NULL)
        wf_cp_merge(box, cp->sizes.dtype, out, lse, total, total_lse);
    else
        wf_cp_add(box, cp->sizes.dtype, out, total);
    return WEFT_OK;
}
