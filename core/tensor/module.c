/* module.c - what tensor keeps in the life of a context. */
#include "tensor.h"

static weft_status create(weft_context *context)
{
    struct wf_tensor_state *state = wf_calloc(1, sizeof *state);

    if (state == NULL) return wf_fail_memory(sizeof *state);
    context->kept[WF_MODULE_TENSOR] = state;
    return WEFT_OK;
}

static void destroy(weft_context *context)
{
    wf_free(context->kept[WF_MODULE_TENSOR]);
    context->kept[WF_MODULE_TENSOR] = NULL;
}

const struct wf_module wf_tensor_module = {.create = create, .destroy = destroy};
