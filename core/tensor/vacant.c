/* vacant.c - tensors whose memory comes and goes, in a block of their owner.
 *
 * While such a tensor is vacant it is marked as ended, so that every call with it is refused.  Its
 * views know how often it was vacated before, and are refused from the next time on. */
#include "tensor.h"

#include "weft/extend.h"

#include <string.h>

static void refuse_calls(weft_tensor *tensor, const char *cause)
{
    size_t length = strnlen(cause, sizeof tensor->ended - 1);

    memcpy(tensor->ended, cause, length);
    tensor->ended[length] = '\0';
    tensor->made = wf_ended(WF_KIND_TENSOR);
}

weft_status weft_tensor_create_vacant(weft_context *context, const weft_spec *spec,
                                      const char *name, const char *reason, weft_tensor **out)
{
    static const char what[] = "weft_tensor_create_vacant";
    weft_tensor *tensor = NULL;

    WF_TRY(wf_tensor_check_spec(context, spec, what));
    if (reason == NULL) return wf_fail_null(what, "reason");
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_fail_named(wf_tensor_begin(context, spec, name, &tensor), what));
    tensor->comes_and_goes = true;
    wf_tensor_finish(tensor, &tensor);
    refuse_calls(tensor, reason);
    *out = tensor;
    return WEFT_OK;
}

uint64_t weft_tensor_bytes(const weft_tensor *tensor)
{
    if (tensor == NULL) return 0;
    return tensor->end != 0 ? tensor->end - (uintptr_t)tensor->held : wf_tensor_room(tensor);
}

weft_status weft_tensor_occupy(weft_tensor *tensor, void *memory, weft_stream *stream)
{
    static const char what[] = "weft_tensor_occupy";

    if (tensor == NULL) return wf_fail_null(what, "tensor");
    if (memory == NULL && wf_tensor_room(tensor) > 0) return wf_fail_null(what, "memory");
    if (tensor->made != wf_ended(WF_KIND_TENSOR) || !tensor->comes_and_goes ||
        tensor->context == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: tensor is not vacant: weft_tensor_create_vacant did not create it, it "
                       "has memory, or its context was released",
                       what);
    WF_TRY(wf_stream_check(tensor->context, stream, what));
    wf_locals_place(tensor, memory);
    wf_locals_finish(tensor);
    tensor->stream = stream;
    tensor->made = wf_made_now(WF_KIND_TENSOR);
    return WEFT_OK;
}

void weft_tensor_vacate(weft_tensor *tensor, const char *reason)
{
    if (tensor == NULL || !tensor->comes_and_goes || tensor->context == NULL) return;
    for (int32_t i = 0; i < tensor->local_count; i++)
        tensor->locals[i].memory = NULL;
    wf_locals_finish(tensor);
    tensor->vacated++;
    wf_tensor_forget(tensor->context);
    refuse_calls(tensor, reason != NULL ? reason : "it has no memory");
}
