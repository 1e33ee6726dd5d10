/* dense.c - the elements of a shard with strides, copied to memory without gaps and back.
 *
 * Moves take memory without gaps, which does not overlap.  A tensor without gaps is copied if its
 * target overlaps it; with gaps in either of them, the copy that this needs also parts them.  The
 * copy and the lists of regions stay with the shard, so that later moves allocate nothing. */
#include "tensor.h"

#include "exec/context/kept.h"
#include "exec/host/host.h"

static weft_status make_list(const weft_tensor *tensor, const struct wf_local *local, bool packs,
                             void **out)
{
    weft_context *context = tensor->context;
    const weft_shard *shard = &local->shard;
    weft_region region = {.dims = (uint32_t)shard->dims};
    int64_t *gaps = packs ? region.source_stride : region.target_stride;
    int64_t *dense = packs ? region.target_stride : region.source_stride, stride = 1;

    for (int32_t d = shard->dims - 1; d >= 0; d--) {
        region.extent[d] = shard->shape[d];
        gaps[d] = local->strides[d];
        dense[d] = stride;
        stride *= shard->shape[d];
    }
    return wf_kernels_of(context)->regions_create(
        wf_kernels_device(context), (uint32_t)wf_dtype_bytes(tensor->spec->layout.dtype), 1,
        &region, out);
}

weft_status wf_dense_follow(const weft_tensor *tensor, struct wf_dense *dense, weft_stream *stream,
                            const char *function)
{
    weft_work *work = NULL;
    weft_status status;

    if (dense->was_used && dense->stream == stream) return WEFT_OK;
    status = wf_stream_remember(tensor->context, stream);
    if (status == WEFT_OK && dense->was_used)
        status = wf_stream_record(tensor->context, dense->stream, function, &work);
    if (status == WEFT_OK && work != NULL) status = weft_stream_wait_work(stream, work);
    weft_work_release(&work);
    if (status != WEFT_OK) return status;
    dense->was_used = true;
    dense->stream = stream;
    return WEFT_OK;
}

static const char copying[] = "the copy without gaps"; /* in messages */

static weft_status make_parts(const weft_tensor *tensor, struct wf_local *local,
                              weft_stream *stream, bool packs)
{
    struct wf_dense *dense = &local->dense;
    void **list = packs ? &dense->packer : &dense->unpacker;

    if (dense->memory == NULL)
        WF_TRY(wf_memory_take(tensor->context, wf_local_bytes(tensor, local), stream, copying,
                              &dense->memory));
    if (*list == NULL) WF_TRY(make_list(tensor, local, packs, list));
    return wf_dense_follow(tensor, dense, stream, copying);
}

static weft_status prepare(const weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                           bool packs)
{
    return wf_fail_named(make_parts(tensor, local, stream, packs), copying);
}

static weft_status copy_local(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                              void **out)
{
    const void *source = local->memory;

    WF_TRY(prepare(tensor, local, stream, true));
    *out = local->dense.memory;
    return wf_kernels_of(tensor->context)
        ->regions_copy(local->dense.packer, &source, &local->dense.memory, stream);
}

weft_status wf_local_pack(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                          void **out)
{
    *out = local->memory;
    return local->is_dense ? WEFT_OK : copy_local(tensor, local, stream, out);
}

weft_status wf_local_begin(weft_tensor *tensor, struct wf_local *local, weft_stream *stream,
                           void **out)
{
    *out = local->memory;
    if (local->is_dense) return WEFT_OK;
    WF_TRY(prepare(tensor, local, stream, false));
    *out = local->dense.memory;
    return WEFT_OK;
}

weft_status wf_local_unpack(weft_tensor *tensor, struct wf_local *local, weft_stream *stream)
{
    const void *source = local->dense.memory;

    if (local->is_dense) return WEFT_OK;
    return wf_kernels_of(tensor->context)
        ->regions_copy(local->dense.unpacker, &source, &local->memory, stream);
}

/* ---- all shards here ---- */

/* Call ACT for every shard here, and set *OUT to what it gives. */
static weft_status for_each(weft_tensor *tensor, weft_stream *stream, void **out,
                            weft_status (*act)(weft_tensor *, struct wf_local *, weft_stream *,
                                               void **))
{
    const weft_mesh *mesh = tensor->spec->layout.mesh;

    if (tensor->list == NULL) return act(tensor, &tensor->own, stream, out);
    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);

        if (rank < tensor->local_count)
            WF_TRY(act(tensor, &tensor->locals[rank], stream, &tensor->list[i]));
    }
    *out = tensor->list;
    return WEFT_OK;
}

weft_status wf_pair_pack(weft_tensor *tensor, weft_tensor *target, weft_stream *stream,
                         const void **from, void **to)
{
    void *packed = tensor->held;

    *to = target->held;
    if (!tensor->is_dense)
        WF_TRY(for_each(tensor, stream, &packed, wf_local_pack));
    else if (target->is_dense)
        WF_TRY(copy_local(tensor, &tensor->own, stream, &packed));
    *from = packed;
    return target->is_dense ? WEFT_OK : for_each(target, stream, to, wf_local_begin);
}

weft_status wf_dense_unpack(weft_tensor *tensor, weft_stream *stream)
{
    for (int32_t i = 0; !tensor->is_dense && i < tensor->local_count; i++)
        WF_TRY(wf_local_unpack(tensor, &tensor->locals[i], stream));
    return WEFT_OK;
}

/* Work on the stream reads the lists until it is complete. */
static void free_lists(weft_context *context, struct wf_dense *dense)
{
    const weft_kernel_table *kernels = wf_kernels_of(context);

    if (dense->packer == NULL && dense->unpacker == NULL && dense->drawer == NULL) return;
    if (wf_stream_check(context, dense->stream, "weft_tensor_release") == WEFT_OK &&
        context->plugin->device->stream_wait(context->device, dense->stream, context->timeout_ns) ==
            WEFT_ERR_TIMEOUT) {
        wf_log(WF_LOG_WARNING, "weft_tensor_release: lists are not freed: %s", weft_last_error());
        return;
    }
    if (dense->packer != NULL) kernels->regions_destroy(dense->packer);
    if (dense->unpacker != NULL) kernels->regions_destroy(dense->unpacker);
    if (dense->drawer != NULL) kernels->regions_destroy(dense->drawer);
}

static void free_dense(const weft_tensor *tensor, struct wf_dense *dense)
{
    free_lists(tensor->context, dense);
    if (wf_memory_give(tensor->context, dense->memory, dense->stream, "weft_tensor_release") !=
        WEFT_OK)
        wf_log(WF_LOG_WARNING, "%s", weft_last_error());
    *dense = (struct wf_dense){0};
}

void wf_dense_free(weft_tensor *tensor)
{
    for (int32_t i = 0; i < tensor->local_count; i++)
        free_dense(tensor, &tensor->locals[i].dense);
}
