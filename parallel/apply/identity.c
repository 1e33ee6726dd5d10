/* identity.c - outputs of a rank that has no element of any input: it contributes nothing. */
#include "apply.h"

#include "base/number.h"
#include "ops/bind/specs.h"

/* The reduction of SPEC's partials; WEFT_REDUCE_COUNT: it has none. */
static uint32_t reduction_of(const weft_spec *spec)
{
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t i = 0; i < wf_spec_axes(spec); i++)
        if (placements[i].kind == WEFT_PLACE_PARTIAL) return placements[i].reduction;
    return WEFT_REDUCE_COUNT;
}

bool wf_are_partial(uint32_t count, weft_tensor *const *tensors)
{
    for (uint32_t i = 0; i < count; i++)
        if (reduction_of(weft_tensor_spec(tensors[i])) == WEFT_REDUCE_COUNT) return false;
    return true;
}

weft_status wf_shard_fill(weft_tensor *tensor, int32_t rank, const void *element,
                          weft_stream *stream)
{
    const weft_spec *spec = weft_tensor_spec(tensor);
    const weft_kernel_table *kernels;
    void *device, *memory;
    weft_shard shard;

    weft_spec_shard(spec, rank, &shard);
    if (shard.elements == 0) return WEFT_OK;
    WF_TRY(weft_tensor_pack(tensor, rank, stream, &memory));
    kernels = weft_context_kernels(weft_tensor_context(tensor), &device);
    WF_TRY(kernels->fill(device, weft_spec_dtype(spec), (uint64_t)shard.elements, element, memory,
                         stream));
    return weft_tensor_unpack(tensor, rank, stream);
}

weft_status wf_fill_identities(uint32_t count, weft_tensor *const *tensors, int32_t rank,
                               weft_stream *stream)
{
    for (uint32_t i = 0; i < count; i++) {
        const weft_spec *spec = weft_tensor_spec(tensors[i]);
        _Alignas(16) unsigned char element[16];

        wf_element_identity(weft_spec_dtype(spec), reduction_of(spec), element);
        WF_TRY(wf_shard_fill(tensors[i], rank, element, stream));
    }
    return WEFT_OK;
}
