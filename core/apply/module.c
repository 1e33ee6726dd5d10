/* module.c - what operators keep with a context. */
#include "apply.h"

#include "exec/context/guard.h"

static weft_status create(weft_context *context)
{
    struct wf_apply_state *state = wf_calloc(1, sizeof *state);

    if (state == NULL) return wf_fail_memory(sizeof *state);
    context->kept[WF_MODULE_APPLY] = state;
    return WEFT_OK;
}

static void destroy(weft_context *context)
{
    struct wf_apply_state *state = wf_apply_state(context);

    for (uint32_t i = 0; i < state->mesh_count; i++)
        weft_mesh_release(&state->meshes[i]);
    wf_free(state->meshes);
    wf_long_calls_free(state);
    wf_free(state->room);
    wf_free(state);
    context->kept[WF_MODULE_APPLY] = NULL;
}

const struct wf_module wf_apply_module = {.create = create,
                                          .stream_ends = wf_spares_stream_ends,
                                          .leave = wf_spares_free,
                                          .destroy = destroy};

weft_status weft_op_moves_set(weft_context *context, enum weft_op_moves moves,
                              enum weft_op_moves *before)
{
    static const char function[] = "weft_op_moves_set";
    struct wf_apply_state *state;

    WF_TRY(wf_context_check(context, function));
    if ((uint32_t)moves > WEFT_OP_MOVES_SHOWN)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_op_moves_set: moves is %u; expected a value of enum weft_op_moves",
                       (unsigned)moves);
    WF_TRY(wf_apply_enter(context, function));
    state = wf_apply_state(context);
    if (before != NULL) *before = state->moves;
    state->moves = moves;
    return wf_apply_leave(context, WEFT_OK);
}
