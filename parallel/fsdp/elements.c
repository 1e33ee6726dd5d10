/* elements.c - local arithmetic on tensors: scale, add, cast, on all shards of this process. */
#include "fsdp.h"

#include "base/number.h"

static weft_status refuse(const char *work)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "the backend has no kernel that can %s elements; kernels are needed for "
                   "`divide`, `sum_only`, accumulation, a tensor that is listed twice, and sums in "
                   "another dtype than f32 and bf16",
                   work);
}

static enum weft_dtype dtype_of(const weft_tensor *tensor)
{
    return weft_spec_dtype(weft_tensor_spec(tensor));
}

weft_status wf_fsdp_scale(weft_tensor *tensor, double factor, weft_stream *stream)
{
    weft_context *context = weft_tensor_context(tensor);
    const struct wf_number number = {.re = factor};
    const weft_kernel_table *kernels;
    _Alignas(16) char element[16];
    void *device = NULL;

    if (factor == 1) return WEFT_OK;
    kernels = weft_context_kernels(context, &device);
    if (kernels->scale == NULL) return refuse("scale");
    wf_number_store(dtype_of(tensor), number, element);
    for (int32_t i = 0; i < wf_here_count(context); i++) {
        weft_tensor_local_info local;

        WF_TRY(wf_here_get(tensor, i, &local));
        if (local.shard.elements > 0)
            WF_TRY(kernels->scale(device, dtype_of(tensor), (uint64_t)local.shard.elements, element,
                                  local.memory, stream));
    }
    return weft_tensor_use(tensor, stream);
}

weft_status wf_fsdp_add(weft_tensor *source, weft_tensor *target, weft_stream *stream)
{
    weft_context *context = weft_tensor_context(target);
    void *device = NULL;
    const weft_kernel_table *kernels = weft_context_kernels(context, &device);

    if (kernels->reduce == NULL) return refuse("add");
    for (int32_t i = 0; i < wf_here_count(context); i++) {
        weft_tensor_local_info to, from;

        WF_TRY(wf_here_get(target, i, &to));
        WF_TRY(wf_here_get(source, i, &from));
        if (to.shard.elements > 0)
            WF_TRY(kernels->reduce(
                device, dtype_of(target), WEFT_REDUCE_SUM, (uint64_t)to.shard.elements, 2,
                (const void *const[]){to.memory, from.memory}, to.memory, stream));
    }
    WF_TRY(weft_tensor_use(source, stream));
    return weft_tensor_use(target, stream);
}

weft_status wf_fsdp_cast(weft_tensor *source, weft_tensor *target, weft_stream *stream)
{
    weft_context *context = weft_tensor_context(target);

    for (int32_t i = 0; i < wf_here_count(context); i++) {
        weft_tensor_local_info to, from;

        WF_TRY(wf_here_get(target, i, &to));
        WF_TRY(wf_here_get(source, i, &from));
        if (to.shard.elements > 0)
            WF_TRY(weft_memory_cast(context, dtype_of(source), dtype_of(target),
                                    (uint64_t)to.shard.elements, from.memory, to.memory, stream));
    }
    WF_TRY(weft_tensor_use(source, stream));
    return weft_tensor_use(target, stream);
}
