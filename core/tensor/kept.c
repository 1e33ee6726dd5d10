/* kept.c - tensors that libraries keep after their last reference is gone, and use again. */
#include "tensor.h"

bool wf_tensor_keep(weft_tensor *tensor)
{
    if (tensor->last_list != NULL || tensor->own.dense.memory != NULL) return false;
    if (wf_stream_check(tensor->context, tensor->stream, "weft_tensor_release") != WEFT_OK)
        return false;
    tensor->made = 0; /* refused until it is used again, which may be before this call ends */
    if (tensor->keeper(tensor->keeper_user, tensor)) return true;
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    return false;
}

void weft_tensor_set_keeper(weft_tensor *tensor, weft_tensor_keeper keeper, void *user)
{
    if (tensor == NULL || tensor->block == NULL) return;
    tensor->keeper = keeper;
    tensor->keeper_user = user;
}

void weft_tensor_reuse(weft_tensor *tensor)
{
    if (tensor == NULL || tensor->made != 0) return;
    atomic_store_explicit(&tensor->references, 1, memory_order_relaxed);
    tensor->made = wf_made_now(WF_KIND_TENSOR);
}

weft_stream *weft_tensor_stream(const weft_tensor *tensor)
{
    return tensor != NULL ? tensor->stream : NULL;
}
