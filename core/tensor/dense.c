/* dense.c - the elements of a tensor with strides, copied to memory without gaps and back.
 *
 * Moves take memory without gaps.  The copy and the lists of regions stay with the tensor, so that
 * later moves allocate nothing. */
#include "tensor.h"

#include "exec/host/host.h"

static weft_status make_list(const weft_tensor *tensor, bool packs, void **out)
{
    weft_context *context = tensor->context;
    const weft_shard *shard = &tensor->shard;
    weft_region region = {.dims = (uint32_t)shard->dims};
    int64_t *gaps = packs ? region.source_stride : region.target_stride;
    int64_t *dense = packs ? region.target_stride : region.source_stride, stride = 1;

    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        region.extent[d] = shard->shape[d];
        gaps[d] = tensor->strides[d];
        dense[d] = stride;
        stride *= shard->shape[d];
    }
    return wf_kernels_of(context)->regions_create(
        wf_kernels_device(context), (uint32_t)wf_dtype_bytes(tensor->spec->layout.dtype), 1,
        &region, out);
}

/* Work on STREAM begins after the work on the stream that has used the memory before. */
static weft_status follow(weft_tensor *tensor, weft_stream *stream)
{
    struct wf_dense *dense = &tensor->dense;
    weft_work *work = NULL;
    weft_status status;

    if (dense->was_used && dense->stream == stream) return WEFT_OK;
    status = wf_stream_remember(tensor->context, stream);
    if (status == WEFT_OK && dense->was_used)
        status = wf_stream_record(tensor->context, dense->stream, "weft_tensor_move", &work);
    if (status == WEFT_OK && work != NULL) status = weft_stream_wait_work(stream, work);
    weft_work_release(&work);
    if (status != WEFT_OK) return status;
    dense->was_used = true;
    dense->stream = stream;
    return WEFT_OK;
}

static weft_status prepare(weft_tensor *tensor, weft_stream *stream, bool packs)
{
    struct wf_dense *dense = &tensor->dense;
    void **list = packs ? &dense->packer : &dense->unpacker;

    if (dense->memory == NULL)
        WF_TRY(weft_alloc(tensor->context,
                          weft_spec_shard_bytes(tensor->spec, tensor->context->rank),
                          WEFT_MEMORY_DEVICE, &dense->memory));
    if (*list == NULL) WF_TRY(make_list(tensor, packs, list));
    return follow(tensor, stream);
}

weft_status wf_dense_pack(weft_tensor *tensor, weft_stream *stream, void **out)
{
    const void *source = tensor->memory;

    *out = tensor->memory;
    if (tensor->is_dense) return WEFT_OK;
    WF_TRY(prepare(tensor, stream, true));
    *out = tensor->dense.memory;
    return wf_kernels_of(tensor->context)
        ->regions_copy(tensor->dense.packer, &source, &tensor->dense.memory, stream);
}

weft_status wf_dense_begin(weft_tensor *tensor, weft_stream *stream, void **out)
{
    *out = tensor->memory;
    if (tensor->is_dense) return WEFT_OK;
    WF_TRY(prepare(tensor, stream, false));
    *out = tensor->dense.memory;
    return WEFT_OK;
}

weft_status wf_dense_unpack(weft_tensor *tensor, weft_stream *stream)
{
    const void *source = tensor->dense.memory;

    if (tensor->is_dense) return WEFT_OK;
    return wf_kernels_of(tensor->context)
        ->regions_copy(tensor->dense.unpacker, &source, &tensor->memory, stream);
}

void wf_dense_free(weft_tensor *tensor)
{
    struct wf_dense *dense = &tensor->dense;
    const weft_kernel_table *kernels = wf_kernels_of(tensor->context);

    if (dense->packer != NULL) kernels->regions_destroy(dense->packer);
    if (dense->unpacker != NULL) kernels->regions_destroy(dense->unpacker);
    if (dense->memory != NULL && weft_free(tensor->context, dense->memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "weft_tensor_release: %s", weft_last_error());
    *dense = (struct wf_dense){0};
}
