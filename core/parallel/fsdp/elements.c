/* elements.c - local arithmetic on tensors: scale, add, cast, on all shards of this process. */
#include "fsdp.h"

#include "base/number.h"
#include "exec/host/host.h"

static weft_status refuse(const char *work)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "the backend has no kernel that can %s elements; kernels are needed for "
                   "`divide`, `sum_only`, accumulation, a tensor that is listed twice, and sums in "
                   "another dtype than f32 and bf16",
                   work);
}

weft_status wf_fsdp_scale(weft_tensor *tensor, double factor, weft_stream *stream)
{
    weft_context *context = tensor->context;
    const weft_kernel_table *kernels = wf_kernels_of(context);
    uint32_t dtype = tensor->spec->layout.dtype;
    const struct wf_number number = {.re = factor};
    _Alignas(16) char element[16];

    if (factor == 1) return WEFT_OK;
    if (kernels->scale == NULL) return refuse("scale");
    wf_number_store(dtype, number, element);
    for (int32_t i = 0; i < tensor->local_count; i++) {
        struct wf_local *local = &tensor->locals[i];

        if (local->shard.elements == 0) continue;
        WF_TRY(kernels->scale(wf_kernels_device(context), dtype, (uint64_t)local->shard.elements,
                              element, local->memory, stream));
    }
    wf_tensor_use(tensor, stream);
    return WEFT_OK;
}

weft_status wf_fsdp_add(weft_tensor *source, weft_tensor *target, weft_stream *stream)
{
    weft_context *context = target->context;
    const weft_kernel_table *kernels = wf_kernels_of(context);

    if (kernels->reduce == NULL) return refuse("add");
    for (int32_t i = 0; i < target->local_count; i++) {
        const struct wf_local *local = &target->locals[i];
        const void *const both[2] = {local->memory, source->locals[i].memory};

        if (local->shard.elements == 0) continue;
        WF_TRY(kernels->reduce(wf_kernels_device(context), target->spec->layout.dtype,
                               WEFT_REDUCE_SUM, (uint64_t)local->shard.elements, 2, both,
                               local->memory, stream));
    }
    wf_tensor_use(source, stream);
    wf_tensor_use(target, stream);
    return WEFT_OK;
}

static weft_status cast_local(weft_context *context, const weft_tensor *source,
                              const weft_tensor *target, const struct wf_local *from,
                              const struct wf_local *to, weft_stream *stream)
{
    uint32_t in = source->spec->layout.dtype, out = target->spec->layout.dtype;
    uint64_t count = (uint64_t)to->shard.elements;
    weft_status status;

    if (in == out)
        return context->plugin->device->copy(context->device, to->memory, from->memory,
                                             count * wf_dtype_bytes(in), stream);
    status = wf_kernels_of(context)->cast(wf_kernels_device(context), in, out, count, from->memory,
                                          to->memory, stream);
    if (status != WEFT_ERR_UNSUPPORTED) return status;
    wf_host_log_casts(context);
    return wf_host_cast(context, in, out, count, from->memory, to->memory, stream);
}

weft_status wf_fsdp_cast(weft_tensor *source, weft_tensor *target, weft_stream *stream)
{
    for (int32_t i = 0; i < target->local_count; i++)
        if (target->locals[i].shard.elements > 0)
            WF_TRY(cast_local(target->context, source, target, &source->locals[i],
                              &target->locals[i], stream));
    wf_tensor_use(source, stream);
    wf_tensor_use(target, stream);
    return WEFT_OK;
}
