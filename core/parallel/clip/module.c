/* module.c - host memory that the jobs of a context use, one after the other. */
#include "clip.h"

static weft_status create(weft_context *context)
{
    struct wf_clip_state *state = wf_calloc(1, sizeof *state);

    if (state == NULL) return wf_fail_memory(sizeof *state);
    context->kept[WF_MODULE_PARALLEL] = state;
    return WEFT_OK;
}

static void free_pinned(weft_context *context, void *memory)
{
    if (memory != NULL && context->plugin->device->free(context->device, memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "host memory was not freed: %s", weft_last_error());
}

static void destroy(weft_context *context)
{
    struct wf_clip_state *state = context->kept[WF_MODULE_PARALLEL];

    free_pinned(context, state->stage);
    free_pinned(context, state->sums);
    for (uint32_t i = 0; i < state->outgrown_count; i++)
        free_pinned(context, state->outgrown[i]);
    wf_free(state);
    context->kept[WF_MODULE_PARALLEL] = NULL;
}

const struct wf_module wf_parallel_module = {.create = create, .destroy = destroy};

static weft_status take_pinned(weft_context *context, uint64_t bytes, void **out)
{
    return context->plugin->device->allocate(context->device, bytes, WEFT_MEMORY_PINNED, out);
}

/* Work on STREAM begins after the last job. */
static weft_status follow(weft_context *context, struct wf_clip_state *state, weft_stream *stream)
{
    weft_work *work = NULL;
    weft_status status;

    if (state->was_used && state->stream == stream) return WEFT_OK;
    WF_TRY(wf_stream_remember(context, stream));
    if (state->was_used) {
        WF_TRY(wf_stream_record(context, state->stream, "weft_clip_grad_norm", &work));
        status = work != NULL ? weft_stream_wait_work(stream, work) : WEFT_OK;
        weft_work_release(&work);
        WF_TRY(status);
    }
    state->was_used = true;
    state->stream = stream;
    return WEFT_OK;
}

/* Room for COUNT sums.  Jobs before may still use memory that is too small now. */
static weft_status give_sums(weft_context *context, struct wf_clip_state *state, uint32_t count)
{
    uint32_t room = 2 * count;
    void *sums = NULL;

    if (count <= state->sum_room) return WEFT_OK;
    WF_TRY(take_pinned(context, room * sizeof *state->sums, &sums));
    if (state->sums != NULL) state->outgrown[state->outgrown_count++] = state->sums;
    state->sums = sums;
    state->sum_room = room;
    return WEFT_OK;
}

weft_status wf_clip_memory(weft_context *context, uint32_t count, weft_stream *stream,
                           struct wf_clip_state **out)
{
    struct wf_clip_state *state = context->kept[WF_MODULE_PARALLEL];
    bool needs_stage = (context->features & WEFT_FEATURE_HOST_MEMORY) == 0;

    WF_TRY(follow(context, state, stream));
    WF_TRY(give_sums(context, state, count));
    if (needs_stage && state->stage == NULL)
        WF_TRY(take_pinned(context, WF_CLIP_STAGE, &state->stage));
    *out = state;
    return WEFT_OK;
}
