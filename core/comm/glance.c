/* glance.c - a word of a device's memory, read by the host now: on a stream of its own, so that it
 * waits for nothing that the program has put on others. */
#include "comm.h"

/* Pinned memory, since copies to other memory may wait for more than their stream. */
static weft_status prepare(weft_context *context)
{
    const weft_device_table *device = context->symm_plugin->device;
    struct wf_glance *glance = &context->glance;

    if (glance->stream == NULL)
        WF_TRY(device->stream_create(context->symm_device, &glance->stream));
    if (glance->word == NULL)
        WF_TRY(device->allocate(context->symm_device, sizeof(uint64_t), WEFT_MEMORY_PINNED,
                                &glance->word));
    return WEFT_OK;
}

static weft_status look(weft_context *context, const uint64_t *at, int64_t timeout_ns,
                        uint64_t *out)
{
    const weft_device_table *device = context->symm_plugin->device;
    struct wf_glance *glance = &context->glance;

    WF_TRY(prepare(context));
    WF_TRY(device->copy(context->symm_device, glance->word, at, sizeof *at, glance->stream));
    WF_TRY(device->stream_wait(context->symm_device, glance->stream, timeout_ns));
    *out = *(uint64_t *)glance->word;
    return WEFT_OK;
}

weft_status wf_glance(weft_context *context, const uint64_t *at, int64_t timeout_ns, uint64_t *out)
{
    weft_status status;

    pthread_mutex_lock(&context->glance.lock);
    status = look(context, at, timeout_ns, out);
    pthread_mutex_unlock(&context->glance.lock);
    return status;
}

void wf_glance_end(weft_context *context)
{
    struct wf_glance *glance = &context->glance;

    if (glance->stream != NULL)
        context->symm_plugin->device->stream_destroy(context->symm_device, glance->stream);
    if (glance->word != NULL &&
        context->symm_plugin->device->free(context->symm_device, glance->word) != WEFT_OK)
        wf_log(WF_WARNING, "memory could not be freed: %s", weft_last_error());
    glance->stream = glance->word = NULL;
}
