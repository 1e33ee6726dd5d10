/* vacant.c - tensors whose memory comes and goes, in a block of their owner.
 *
 * While such a tensor is vacant it is marked as ended, so that every call with it is refused.  Its
 * views know how often it was vacated before, and are refused from the next time on. */
#include "tensor.h"

#include <stdio.h>

static void refuse_calls(weft_tensor *tensor, const char *cause)
{
    snprintf(tensor->ended, sizeof tensor->ended, "%s", cause);
    tensor->made = wf_ended(WF_KIND_TENSOR);
}

weft_status wf_tensor_make_vacant(weft_context *context, const weft_spec *spec, const char *name,
                                  const char *cause, weft_tensor **out)
{
    WF_TRY(wf_tensor_begin(context, spec, name, out));
    wf_tensor_finish(*out, out);
    refuse_calls(*out, cause);
    return WEFT_OK;
}

void wf_tensor_occupy(weft_tensor *tensor, void *block, weft_stream *stream)
{
    wf_locals_place(tensor, block);
    wf_locals_finish(tensor);
    tensor->stream = stream;
    tensor->made = wf_made_now(WF_KIND_TENSOR);
}

void wf_tensor_vacate(weft_tensor *tensor, const char *cause)
{
    for (int32_t i = 0; i < tensor->local_count; i++)
        tensor->locals[i].memory = NULL;
    wf_locals_finish(tensor);
    tensor->vacated++;
    /* Lists of tensors remember memory. */
    atomic_fetch_add_explicit(&wf_exec_state(tensor->context)->tensors_ended, 1,
                              memory_order_relaxed);
    refuse_calls(tensor, cause);
}

void wf_tensor_retire(weft_tensor **tensor, const char *cause)
{
    if (*tensor == NULL) return;
    wf_dependent_remove(&(*tensor)->dependent);
    if ((*tensor)->context != NULL) wf_dense_free(*tensor);
    refuse_calls(*tensor, cause);
    weft_tensor_release(tensor);
}
