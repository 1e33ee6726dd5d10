/* properties.c - what a tensor tells about itself, and what it is told of its use. */
#include "tensor.h"

const weft_spec *weft_tensor_spec(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->spec : NULL;
}

weft_context *weft_tensor_context(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->context : NULL;
}

bool weft_tensor_is_read_only(const weft_tensor *tensor)
{
    return tensor != NULL && tensor->is_read_only;
}

weft_status weft_tensor_use(weft_tensor *tensor, weft_stream *stream)
{
    static const char function[] = "weft_tensor_use";

    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    WF_TRY(wf_stream_check(tensor->context, stream, function));
    wf_tensor_use(tensor, stream);
    return WEFT_OK;
}

const char *weft_tensor_name(const weft_tensor *tensor)
{
    if (tensor == NULL) return NULL;
    return tensor->name != NULL ? tensor->name : "";
}

void *weft_tensor_memory(const weft_tensor *tensor)
{
    bool has_memory = tensor != NULL && (tensor->base == NULL || wf_view_is_current(tensor));

    return has_memory ? tensor->locals[0].memory : NULL;
}

const int64_t *weft_tensor_strides(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->locals[0].strides : NULL;
}

const weft_shard *weft_tensor_shard(const weft_tensor *tensor)
{
    return tensor != NULL ? &tensor->locals[0].shard : NULL;
}
