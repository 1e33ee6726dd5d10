/* module.c - symmetric memory in the life of a context. */
#include "symm.h"

#include "plugin/plugin.h"

#include <stdio.h>

/* Choose the plugin that provides symmetric memory. */
static void choose_plugin(const weft_context *context, struct wf_symm_state *state)
{
    size_t index = context->backends != NULL
                       ? wf_backends_pick(context->backends, WEFT_BACKEND_ROLE_SYMM)
                       : WF_NO_CANDIDATE;

    if (index != WF_NO_CANDIDATE)
        state->plugin = wf_backends_plugin(context->backends, index);
    else if (context->backends == NULL && context->plugin != NULL && context->plugin->symm != NULL)
        state->plugin = context->plugin;
    if (state->plugin == NULL)
        snprintf(state->reason, sizeof state->reason,
                 "%s has no symmetric memory; name a second plugin that has it, such as "
                 "WEFT_BACKEND=nccl,nvshmem",
                 context->plugin != NULL ? context->plugin->name : "the backend");
}

static weft_status create(weft_context *context)
{
    struct wf_symm_state *state = wf_calloc(1, sizeof *state);

    if (state == NULL) return wf_fail_memory(sizeof *state);
    pthread_mutex_init(&state->reader.lock, NULL);
    choose_plugin(context, state);
    context->kept[WF_MODULE_SYMM] = state;
    return WEFT_OK;
}

static void add_choices(const weft_context *context, struct wf_choices *choices)
{
    const weft_plugin *plugin = wf_symm_state(context)->plugin;

    wf_choices_add(choices, "symmetric memory", plugin != NULL ? plugin->name : "none");
    wf_choices_add(choices, "symmetric memory's build", plugin != NULL ? plugin->build : "");
}

/* Bind the thread to the second plugin's device; comm has bound it to the context's. */
static weft_status bind_thread(weft_context *context)
{
    const struct wf_symm_state *state = wf_symm_state(context);

    if (state->device == NULL || state->device == context->device ||
        !WF_HAS(state->plugin->device, bind_thread))
        return WEFT_OK;
    return state->plugin->device->bind_thread(state->device);
}

static void destroy(weft_context *context)
{
    struct wf_symm_state *state = wf_symm_state(context);

    wf_symm_close(context);
    pthread_mutex_destroy(&state->reader.lock);
    context->kept[WF_MODULE_SYMM] = NULL;
    wf_free(state);
}

const struct wf_module wf_symm_module = {
    .create = create,
    .add_choices = add_choices,
    .start = wf_symm_start,
    .bind_thread = bind_thread,
    .check_free = wf_symm_check_free,
    .check_wait = wf_symm_check_wait,
    .comm_ends = wf_symm_comm_ends,
    .stop = wf_symm_stop,
    .destroy = destroy,
};
