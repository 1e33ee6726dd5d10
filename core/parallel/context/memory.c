/* memory.c - work on elements of the backend's memory, by kernels of the device or by the host; and
 * waiting for it. */
#include "cp.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

weft_status wf_cp_sync(const weft_cp *cp, weft_stream *stream)
{
    if (stream == NULL && (cp->context->features & WEFT_FEATURE_INLINE) != 0) return WEFT_OK;
    return weft_stream_wait(cp->context, stream, WEFT_FOREVER);
}

weft_status wf_cp_wait(weft_work **work)
{
    weft_status status;

    if (*work == NULL) return WEFT_OK;
    status = weft_work_wait(*work, WEFT_FOREVER);
    weft_work_release(work);
    return status;
}

weft_status wf_cp_ask_merges(const weft_context *context, uint32_t dtype)
{
    const weft_kernel_table *kernels = context->plugin->kernel;
    const weft_merge none = {.struct_size = sizeof none, .dtype = dtype};
    weft_status status = WEFT_ERR_UNSUPPORTED;

    if ((context->features & WEFT_FEATURE_HOST_MEMORY) != 0) return WEFT_OK;
    if (kernels != NULL && kernels->merge_rows != NULL)
        status = kernels->merge_rows(context->device, &none, NULL);
    if (status != WEFT_ERR_UNSUPPORTED) return status;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "backend %s has no kernel that merges results of attention, and the host cannot "
                   "read its memory",
                   context->plugin->name);
}

weft_status wf_cp_clear(const struct wf_cp_pass *pass, float *memory, size_t count)
{
    const weft_context *context = pass->cp->context;

    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return context->plugin->device->fill(context->device, memory, 0, count * sizeof *memory,
                                             pass->stream);
    memset(memory, 0, count * sizeof *memory);
    return WEFT_OK;
}

weft_status wf_cp_unsee(const struct wf_cp_pass *pass, float *lse, size_t count)
{
    const weft_context *context = pass->cp->context;
    const float nothing = -INFINITY;

    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return context->plugin->kernel->fill(context->device, WEFT_DTYPE_F32, count, &nothing, lse,
                                             pass->stream);
    for (size_t i = 0; i < count; i++)
        lse[i] = nothing;
    return WEFT_OK;
}

weft_status wf_cp_convert(const struct wf_cp_pass *pass, const float *sums, void *target,
                          size_t count)
{
    const weft_context *context = pass->cp->context;
    uint32_t dtype = pass->cp->sizes.dtype;

    if (count == 0) return WEFT_OK;
    if (pass->cp->on_device)
        return context->plugin->kernel->cast(context->device, WEFT_DTYPE_F32, dtype, count, sums,
                                             target, pass->stream);
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
        return cp->context->plugin->kernel->merge_rows(cp->context->device, &merge, pass->stream);
    }
    WF_TRY(wf_cp_sync(cp, pass->stream));
    if (lse != NULL)
        wf_cp_merge(box, cp->sizes.dtype, out, lse, total, total_lse);
    else
        wf_cp_add(box, cp->sizes.dtype, out, total);
    return WEFT_OK;
}
