/* device_word.c - reads one word of device memory from the host.  A stream of its own keeps the
 * read from waiting for work on the user's streams. */
#include "symm.h"

/* The target is pinned memory: a copy to other memory may wait for more than its stream. */
static weft_status prepare(struct wf_symm_state *state)
{
    const weft_device_table *device = state->plugin->device;
    struct wf_device_reader *reader = &state->reader;

    if (reader->stream == NULL) WF_TRY(device->stream_create(state->device, &reader->stream));
    if (reader->word == NULL)
        WF_TRY(
            device->allocate(state->device, sizeof(uint64_t), WEFT_MEMORY_PINNED, &reader->word));
    return WEFT_OK;
}

static weft_status read_word(struct wf_symm_state *state, const uint64_t *at, int64_t timeout_ns,
                             uint64_t *out)
{
    const weft_device_table *device = state->plugin->device;
    struct wf_device_reader *reader = &state->reader;

    WF_TRY(prepare(state));
    WF_TRY(device->copy(state->device, reader->word, at, sizeof *at, reader->stream));
    WF_TRY(device->stream_wait(state->device, reader->stream, timeout_ns));
    *out = *(uint64_t *)reader->word;
    return WEFT_OK;
}

weft_status wf_device_read_u64(weft_context *context, const uint64_t *at, int64_t timeout_ns,
                               uint64_t *out)
{
    struct wf_symm_state *state = wf_symm_state(context);
    weft_status status;

    pthread_mutex_lock(&state->reader.lock);
    status = read_word(state, at, timeout_ns, out);
    pthread_mutex_unlock(&state->reader.lock);
    return status;
}

void wf_device_reader_close(weft_context *context)
{
    struct wf_symm_state *state = wf_symm_state(context);
    struct wf_device_reader *reader = &state->reader;

    if (reader->stream != NULL)
        state->plugin->device->stream_destroy(state->device, reader->stream);
    if (reader->word != NULL && state->plugin->device->free(state->device, reader->word) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "memory could not be freed: %s", weft_last_error());
    reader->stream = reader->word = NULL;
}
