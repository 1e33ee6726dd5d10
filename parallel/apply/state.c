/* state.c - what operators keep with a context. */
#include "apply.h"

/* The rank is about to leave the job. */
static void leave(void *user)
{
    struct wf_apply_state *state = user;

    state->is_leaving = true;
    wf_spares_free(state);
}

/* The context is about to end. */
static void end(void *user, const char *cause)
{
    struct wf_apply_state *state = user;

    (void)cause;
    for (uint32_t i = 0; i < state->mesh_count; i++)
        weft_mesh_release(&state->meshes[i]);
    wf_free(state->meshes);
    wf_long_calls_free(state);
    wf_free(state->room);
    weft_dependent_release(&state->dependent);
    wf_free(state);
}

const weft_dependent_calls wf_apply_calls = {
    .struct_size = sizeof wf_apply_calls, .leave = leave, .end = end};

static weft_status make_state(weft_context *context, struct wf_apply_state **out)
{
    weft_device_info info = {.struct_size = sizeof info};
    struct wf_apply_state *state = wf_calloc(1, sizeof *state);
    weft_status status;

    if (state == NULL) return wf_fail_memory(sizeof *state);
    state->context = context;
    state->is_simulated = weft_is_simulated(context);
    state->first_rank = wf_here_rank(context, 0);
    state->last_rank = state->first_rank + wf_here_count(context);
    state->checks = weft_context_checks(context);
    state->plain.strategy.struct_size = sizeof state->plain.strategy;
    state->plain.strategy.costs = weft_context_costs(context);
    status = weft_device_get(context, &info);
    state->waits = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0;
    if (status == WEFT_OK)
        status =
            weft_dependent_create(weft_world(context), &wf_apply_calls, state, &state->dependent);
    if (status == WEFT_OK)
        *out = state;
    else
        wf_free(state);
    return status;
}

/* Other ranks may wait for a rank that has no state. */
weft_status wf_apply_begin(weft_context *context, const char *function, struct wf_apply_state **out)
{
    weft_status status = make_state(context, out);

    if (status == WEFT_OK) return WEFT_OK;
    return weft_moves_leave(context, weft_comm_fail(weft_world(context), function, status));
}
