/* second.c - symmetric memory from a second plugin, beside the one that communicates.
 *
 * WEFT_BACKEND=nccl,nvshmem names two.  The second gets a device of its own, which must be the same
 * one, and a communicator of the world as the job begins, while all ranks are there: some libraries
 * start once and with everybody.  Communicators of other ranks are made when they are first used
 * for symmetric memory, and are kept with those they belong to. */
#include "symm.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* Memory and streams of the two must go together. */
static weft_status check_kind(const weft_context *context, const weft_plugin *plugin,
                              const weft_device_info *first, const weft_device_info *second)
{
    uint64_t bits = WEFT_FEATURE_HOST_MEMORY | WEFT_FEATURE_INLINE;

    if ((first->features & bits) == (second->features & bits) &&
        ((first->features & WEFT_FEATURE_HOST_MEMORY) != 0 ||
         strcmp(first->uuid, second->uuid) == 0))
        return WEFT_OK;
    return wf_fail(
        WEFT_ERR_UNSUPPORTED,
        "%s works on %s (%s) and %s on %s (%s); symmetric memory of the one is no use to "
        "the other",
        context->plugin->name, first->name, first->uuid, plugin->name, second->name, second->uuid);
}

/* The same device as the first plugin's, by its number; a plugin for other devices may not know the
 * number, and then gives what it has. */
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

/* *ELSEWHERE: it is no device of the kind, as in a list of alternatives such as nccl,gloo-cpu. */
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

static weft_status make_twin(weft_comm *comm, uint64_t number)
{
    weft_context *context = comm->context;
    const weft_plugin *plugin = context->symm_plugin;
    weft_comm *twin = NULL;
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
                                      .plugin = plugin,
                                      .device = context->symm_device};

    snprintf(name, sizeof name, "%.80s on %s", comm->name, plugin->name);
    WF_TRY(wf_comm_make(context, &request, &twin));
    twin->keeper = comm;
    pthread_mutex_lock(
        &context->lock); /* other threads look for it when the ranks are in trouble */
    comm->twin = twin;
    pthread_mutex_unlock(&context->lock);
    return WEFT_OK;
}

weft_status wf_symm_carrier(weft_comm *comm, uint64_t number, weft_comm **out)
{
    if (comm->context->symm_plugin == comm->context->plugin) {
        *out = comm;
        return WEFT_OK;
    }
    if (comm->twin == NULL) WF_TRY(make_twin(comm, number));
    *out = comm->twin;
    return WEFT_OK;
}

/* ---- streams ---- */

/* The vendor's stream, and what the second plugin calls it. */
struct wf_wrapped {
    struct wf_wrapped *next;
    void *native, *stream;
};

/* Wrapped once: streams are many calls' worth.  The context's lock is held. */
static weft_status wrap(weft_context *context, void *native, void **out)
{
    struct wf_wrapped *wrapped = context->wrapped;
    weft_status status;

    while (wrapped != NULL && wrapped->native != native)
        wrapped = wrapped->next;
    if (wrapped == NULL) {
        wrapped = wf_alloc(sizeof *wrapped);
        if (wrapped == NULL) return wf_fail_memory(sizeof *wrapped);
        wrapped->native = native;
        status = context->symm_plugin->device->stream_wrap(context->symm_device, native,
                                                           &wrapped->stream);
        if (status != WEFT_OK) {
            wf_free(wrapped);
            return status;
        }
        wrapped->next = context->wrapped;
        context->wrapped = wrapped;
    }
    *out = wrapped->stream;
    return WEFT_OK;
}

static void unwrap_all(weft_context *context)
{
    while (context->wrapped != NULL) {
        struct wf_wrapped *wrapped = context->wrapped;

        context->wrapped = wrapped->next;
        context->symm_plugin->device->stream_destroy(context->symm_device, wrapped->stream);
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
    if (stream == NULL || symm->carrier == symm->comm) {
        *out = stream;
        return WEFT_OK;
    }
    native = weft_stream_native(context, stream);
    if (native == NULL || !WF_HAS(symm->plugin->device, stream_wrap))
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "symmetric memory on %s is of %s, which has no use for a stream of %s; the "
                       "default stream, NULL, serves both",
                       symm->comm->name, symm->plugin->name, context->plugin->name);
    pthread_mutex_lock(&context->lock);
    status = wrap(context, native, out);
    pthread_mutex_unlock(&context->lock);
    return status;
}

/* ---- beginning and ending with the context ---- */

/* Nobody else serves: who communicates may, or there is none. */
static void fall_back(weft_context *context, const char *why, int level)
{
    const weft_plugin *own = context->plugin;

    if (own->symm == NULL) {
        context->symm_plugin = NULL;
        snprintf(context->symm_reason, sizeof context->symm_reason, "%s", why);
        return;
    }
    if (context->rank == 0) wf_log(level, "symmetric memory comes from %s: %s", own->name, why);
    context->symm_plugin = own;
    context->symm_device = context->device;
}

weft_status wf_symm_begin(weft_context *context)
{
    const weft_plugin *plugin = context->symm_plugin;
    struct wf_gathered got;
    bool elsewhere = false;
    weft_status status;

    if (plugin == NULL || plugin == context->plugin) {
        context->symm_device = context->device;
        return WEFT_OK;
    }
    status = open_second(context, plugin, &context->symm_device, &elsewhere);
    status = wf_comm_agree(context->world, "the beginning of symmetric memory", status,
                           (weft_blob){"", 0}, &got);
    if (status == WEFT_OK) {
        uint64_t number = got.serial;

        wf_gathered_free(&got);
        status = make_twin(context->world, number);
    }
    if (status == WEFT_ERR_PEER || status == WEFT_ERR_TIMEOUT || status == WEFT_ERR_ABORTED)
        return status;
    if (status != WEFT_OK) {
        wf_symm_end(context);
        fall_back(context, weft_last_error(), elsewhere ? WF_INFO : WF_NOTICE);
    }
    return WEFT_OK;
}

void wf_symm_end(weft_context *context)
{
    unwrap_all(context);
    wf_glance_end(context);
    if (context->symm_device != NULL && context->symm_device != context->device)
        context->symm_plugin->device->close(context->symm_device);
    context->symm_device = NULL;
}

void wf_symm_choose(weft_context *context)
{
    size_t index = context->backends != NULL ? wf_backends_pick(context->backends, WEFT_ROLE_SYMM)
                                             : WF_NO_CANDIDATE;

    if (index != WF_NO_CANDIDATE)
        context->symm_plugin = wf_backends_plugin(context->backends, index);
    else if (context->backends == NULL && context->plugin != NULL && context->plugin->symm != NULL)
        context->symm_plugin = context->plugin;
    if (context->symm_plugin == NULL)
        snprintf(context->symm_reason, sizeof context->symm_reason,
                 "%s has no symmetric memory; WEFT_BACKEND may name a second plugin that has, such "
                 "as nccl,nvshmem",
                 context->plugin != NULL ? context->plugin->name : "the backend");
}
