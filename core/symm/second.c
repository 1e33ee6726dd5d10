/* second.c - symmetric memory from a second plugin, beside the one that communicates.
 *
 * WEFT_BACKEND=nccl,nvshmem names two plugins.  The second one gets its own handle of the same
 * device, and a communicator of the world when the job begins: some libraries can start only once,
 * with all ranks.  For other communicators it gets one when they are first used for symmetric
 * memory; that one is attached to the first and ends with it. */
#include "symm.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* ---- the device ---- */

/* Each plugin must be able to use memory and streams of the other. */
static weft_status check_kind(const weft_context *context, const weft_plugin *plugin,
                              const weft_device_info *first, const weft_device_info *second)
{
    uint64_t bits = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE;

    if ((first->features & bits) == (second->features & bits) &&
        ((first->features & WEFT_FEATURE_HOST_MEMORY) != 0 ||
         strcmp(first->uuid, second->uuid) == 0))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s uses device %s (%s), but %s uses device %s (%s); a plugin for symmetric "
                   "memory must use the same device as the plugin that communicates",
                   context->plugin->name, first->name, first->uuid, plugin->name, second->name,
                   second->uuid);
}

/* Open the first plugin's device by its number.  A plugin for other devices may not know the
 * number: then open the one it chooses. */
static weft_status open_as(const weft_plugin *plugin, const weft_device_info *first,
                           int32_t local_rank, void **device)
{
    weft_device_options wanted = {
        .struct_size = sizeof wanted, .local_rank = local_rank, .device = -1};

    if ((first->features & WEFT_FEATURE_HOST_MEMORY) == 0) {
        wanted.device = first->device;
        if (wf_device_open(plugin, &wanted, device) == WEFT_OK) return WEFT_OK;
        wanted.device = -1;
    }
    return wf_device_open(plugin, &wanted, device);
}

/* *ELSEWHERE: the device is of another kind, as in a list of alternatives such as nccl,gloo-cpu. */
static weft_status open_second(weft_context *context, const weft_plugin *plugin, void **device,
                               bool *elsewhere)
{
    weft_device_info first = {.struct_size = sizeof first}, second = {.struct_size = sizeof second};
    weft_status status;

    WF_TRY(context->plugin->device->describe(context->device, &first));
    WF_TRY(open_as(plugin, &first, context->local_rank, device));
    status = plugin->device->describe(*device, &second);
    *elsewhere =
        status == WEFT_OK && ((first.features ^ second.features) & WEFT_FEATURE_HOST_MEMORY) != 0;
    if (status == WEFT_OK) status = check_kind(context, plugin, &first, &second);
    if (status == WEFT_OK && WF_HAS(plugin->device, bind_thread))
        status = plugin->device->bind_thread(*device);
    if (status != WEFT_OK) {
        plugin->device->close(*device);
        *device = NULL;
    }
    return status;
}

/* ---- communicators ---- */

/* Make a communicator of COMM's ranks on the second plugin, and attach it to COMM. */
static weft_status attach(weft_comm *comm, uint64_t number)
{
    weft_context *context = comm->context;
    const struct wf_symm_state *state = wf_symm_state(context);
    weft_comm *made = NULL;
    char name[sizeof comm->name];
    struct wf_comm_request request = {.origin = comm,
                                      .agree = comm->world_ranks,
                                      .ranks = comm->world_ranks,
                                      .agree_count = comm->size,
                                      .count = comm->size,
                                      .number = number,
                                      .name = name,
                                      .what = name,
                                      .timeout_ns = comm->timeout_ns,
                                      .deadline_ns = wf_deadline(comm->timeout_ns),
                                      .plugin = state->plugin,
                                      .device = state->device};

    snprintf(name, sizeof name, "%.80s on %s", comm->name, state->plugin->name);
    WF_TRY(wf_comm_make(context, &request, &made));
    made->owner = comm;
    pthread_mutex_lock(&context->lock); /* another thread may be failing COMM */
    comm->attached = made;
    pthread_mutex_unlock(&context->lock);
    comm->compares = context->config->check; /* neither plugin sees the other's calls */
    return WEFT_OK;
}

weft_status wf_symm_find_comm(weft_comm *comm, uint64_t number, weft_comm **out)
{
    if (wf_symm_state(comm->context)->plugin == comm->context->plugin) {
        *out = comm;
        return WEFT_OK;
    }
    if (comm->attached == NULL) WF_TRY(attach(comm, number));
    *out = comm->attached;
    return WEFT_OK;
}

/* ---- streams ---- */

/* A stream of the vendor, and the second plugin's handle of it. */
struct wf_wrapped {
    struct wf_wrapped *next;
    void *native, *stream;
};

/* Keeps the wrapper, since many calls use one stream.  The context's lock is held. */
static weft_status wrap(struct wf_symm_state *state, void *native, void **out)
{
    struct wf_wrapped *wrapped = state->wrapped;
    weft_status status;

    while (wrapped != NULL && wrapped->native != native)
        wrapped = wrapped->next;
    if (wrapped == NULL) {
        wrapped = wf_alloc(sizeof *wrapped);
        if (wrapped == NULL) return wf_fail_memory(sizeof *wrapped);
        wrapped->native = native;
        status = state->plugin->device->stream_wrap(state->device, native, &wrapped->stream);
        if (status != WEFT_OK) {
            wf_free(wrapped);
            return status;
        }
        wrapped->next = state->wrapped;
        state->wrapped = wrapped;
    }
    *out = wrapped->stream;
    return WEFT_OK;
}

static void unwrap_all(struct wf_symm_state *state)
{
    while (state->wrapped != NULL) {
        struct wf_wrapped *wrapped = state->wrapped;

        state->wrapped = wrapped->next;
        state->plugin->device->stream_destroy(state->device, wrapped->stream);
        wf_free(wrapped);
    }
}

weft_status wf_symm_stream(const weft_symm *symm, const char *function, weft_stream *stream,
                           void **out)
{
    weft_context *context = symm->comm->context;
    weft_status status;
    void *native;

    WF_TRY(wf_stream_check(context, stream, function));
    if (stream == NULL || symm->symm_comm == symm->comm) {
        *out = stream;
        return WEFT_OK;
    }
    native = WF_HAS(context->plugin->device, stream_native)
                 ? context->plugin->device->stream_native(context->device, stream)
                 : NULL;
    if (native == NULL || !WF_HAS(symm->plugin->device, stream_wrap))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "symmetric memory on %s comes from %s, which cannot use a stream of %s; "
                       "both can use the default stream, NULL",
                       symm->comm->name, symm->plugin->name, context->plugin->name);
    pthread_mutex_lock(&context->lock);
    status = wrap(wf_symm_state(context), native, out);
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* ---- beginning and ending with the context ---- */

/* The second plugin cannot be used because of WHY: use the communicating plugin's own symmetric
 * memory, or none. */
static void fall_back(weft_context *context, const char *why, int level)
{
    struct wf_symm_state *state = wf_symm_state(context);
    const weft_plugin *own = context->plugin;

    if (own->symm == NULL) {
        state->plugin = NULL;
        snprintf(state->reason, sizeof state->reason, "%s", why);
        return;
    }
    if (context->rank == 0) wf_log(level, "symmetric memory comes from %s: %s", own->name, why);
    state->plugin = own;
    state->device = context->device;
}

weft_status wf_symm_start(weft_context *context)
{
    struct wf_symm_state *state = wf_symm_state(context);
    struct wf_gathered got;
    bool elsewhere = false;
    weft_status status;

    if (state->plugin == NULL || state->plugin == context->plugin || context->is_simulated) {
        state->device = context->device;
        return WEFT_OK;
    }
    status = open_second(context, state->plugin, &state->device, &elsewhere);
    status = wf_comm_agree(context->world, "the start of symmetric memory", status,
                           (weft_blob){"", 0}, &got);
    if (status == WEFT_OK) {
        uint64_t number = got.serial;

        wf_gathered_free(&got);
        status = attach(context->world, number);
    }
    if (status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_ABORTED)
        return status;
    if (status != WEFT_OK) {
        wf_symm_close(context);
        fall_back(context, weft_last_error(), elsewhere ? WF_LOG_INFO : WF_LOG_NOTICE);
    }
    return WEFT_OK;
}

void wf_symm_close(weft_context *context)
{
    struct wf_symm_state *state = wf_symm_state(context);

    unwrap_all(state);
    wf_device_reader_close(context);
    if (state->device != NULL && state->device != context->device)
        state->plugin->device->close(state->device);
    state->device = NULL;
}
