/* moves.c - moves of tensors, by the moves of exec. */
#include "tensor.h"

#include <string.h>

/* Both tensors can be used, have one context and dense memory. */
static weft_status check_pair(const weft_tensor *tensor, const weft_tensor *target,
                              const char *function)
{
    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    WF_TRY(wf_tensor_check(target, function, "target"));
    if (tensor->context != target->context)
        return wf_tensor_fail(
            tensor, wf_fail(WEFT_ERR_INVALID, "target belongs to another context"), function);
    if (!tensor->is_dense || !target->is_dense)
        return wf_tensor_fail(tensor,
                              wf_fail(WEFT_ERR_UNSUPPORTED,
                                      "%s has strides with gaps; bind a plan with strides "
                                      "(weft_plan_bind) to move it",
                                      tensor->is_dense ? "target" : "the tensor"),
                              function);
    return WEFT_OK;
}

weft_status weft_tensor_move_into(weft_tensor *tensor, weft_tensor *target, weft_stream *stream,
                                  weft_work **work)
{
    WF_TRY(check_pair(tensor, target, "weft_tensor_move_into"));
    return wf_tensor_fail(tensor,
                          weft_move(tensor->context, tensor->spec, tensor->memory, target->spec,
                                    target->memory, stream, work),
                          "weft_tensor_move_into");
}

weft_status weft_tensor_move(weft_tensor *tensor, const weft_spec *spec, weft_stream *stream,
                             weft_tensor **out)
{
    weft_tensor *made;
    weft_status status;

    WF_TRY(wf_tensor_check(tensor, "weft_tensor_move", "tensor"));
    WF_TRY(wf_tensor_make(tensor->context, spec, tensor->name, "weft_tensor_move", &made));
    if (out == NULL)
        status = wf_fail_null("weft_tensor_move", "out");
    else
        status =
            wf_fail_named(weft_tensor_move_into(tensor, made, stream, NULL), "weft_tensor_move");
    if (status == WEFT_OK)
        *out = made;
    else
        weft_tensor_release(&made);
    return status;
}

/* ---- lists ---- */

static weft_status move_list(uint32_t count, weft_tensor *const *tensors,
                             weft_tensor *const *targets, weft_move_item *items,
                             weft_stream *stream, weft_work **work)
{
    for (uint32_t i = 0; i < count; i++) {
        WF_TRY(check_pair(tensors[i], targets[i], "weft_tensors_move_into"));
        if (tensors[i]->context != tensors[0]->context)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_tensors_move_into: tensor %u belongs to another context than "
                           "tensor 0",
                           i);
        items[i] = (weft_move_item){tensors[i]->name, tensors[i]->spec, tensors[i]->memory,
                                    targets[i]->spec, targets[i]->memory};
    }
    return wf_fail_named(weft_move_batch(tensors[0]->context, count, items, stream, work),
                         "weft_tensors_move_into");
}

weft_status weft_tensors_move_into(uint32_t count, weft_tensor *const *tensors,
                                   weft_tensor *const *targets, weft_stream *stream,
                                   weft_work **work)
{
    weft_move_item few[64], *items = few;
    weft_status status;

    if (tensors == NULL) return wf_fail_null("weft_tensors_move_into", "tensors");
    if (targets == NULL) return wf_fail_null("weft_tensors_move_into", "targets");
    if (count == 0)
        return wf_fail(WEFT_ERR_INVALID, "weft_tensors_move_into: count is 0; expected at least 1");
    if (count > WF_COUNT(few)) {
        items = wf_calloc(count, sizeof *items);
        if (items == NULL) return wf_fail_memory(count * sizeof *items);
    }
    status = move_list(count, tensors, targets, items, stream, work);
    if (items != few) wf_free(items);
    return status;
}
