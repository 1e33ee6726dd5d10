/* module.c - memory and lists of spans that the jobs of a context use, one after the other. */
#include "clip.h"

#include <string.h>

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

static void drop_list(const weft_context *context, struct wf_clip_list *list)
{
    if (list->list != NULL) context->plugin->kernel->spans_destroy(list->list);
    wf_free(list->spans);
    *list = (struct wf_clip_list){0};
}

static void destroy(weft_context *context)
{
    struct wf_clip_state *state = context->kept[WF_MODULE_PARALLEL];

    for (int i = 0; i < WF_CLIP_LISTS; i++)
        drop_list(context, &state->lists[i]);
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
    bool needs_stage;

    if (!state->is_asked) WF_TRY(wf_clip_ask_device(context, &state->on_device));
    state->is_asked = true;
    needs_stage = !state->on_device && (context->features & WEFT_FEATURE_HOST_MEMORY) == 0;
    WF_TRY(follow(context, state, stream));
    WF_TRY(give_sums(context, state, count));
    if (needs_stage && state->stage == NULL)
        WF_TRY(take_pinned(context, WF_CLIP_STAGE, &state->stage));
    *out = state;
    return WEFT_OK;
}

/* ---- lists of spans ---- */

static bool is_equal(const struct wf_clip_list *list, uint64_t count, const weft_span *spans,
                     uint32_t sums)
{
    return list->list != NULL && list->count == count && list->sums == sums &&
           (count == 0 || memcmp(list->spans, spans, count * sizeof *spans) == 0);
}

static weft_status make_list(weft_context *context, uint64_t count, const weft_span *spans,
                             uint32_t sums, struct wf_clip_list *out)
{
    size_t bytes = (count + 1) * sizeof *spans;
    weft_status status;

    drop_list(context, out); /* waits for work that uses it */
    out->spans = wf_calloc(1, bytes);
    if (out->spans == NULL) return wf_fail_memory(bytes);
    if (count > 0) memcpy(out->spans, spans, count * sizeof *spans);
    out->count = count;
    out->sums = sums;
    status = context->plugin->kernel->spans_create(context->device, count, spans, sums, &out->list);
    if (status != WEFT_OK) drop_list(context, out);
    return status;
}

weft_status wf_clip_list(weft_context *context, uint64_t count, const weft_span *spans,
                         uint32_t sums, void **out)
{
    struct wf_clip_state *state = context->kept[WF_MODULE_PARALLEL];
    struct wf_clip_list *oldest = &state->lists[0], *found = NULL;

    for (int i = 0; i < WF_CLIP_LISTS; i++) {
        struct wf_clip_list *list = &state->lists[i];

        if (is_equal(list, count, spans, sums)) found = list;
        if (list->used < oldest->used) oldest = list;
    }
    if (found == NULL) {
        WF_TRY(make_list(context, count, spans, sums, oldest));
        found = oldest;
    }
    found->used = ++state->uses;
    *out = found->list;
    return WEFT_OK;
}
