/* state.c - memory and lists of spans that the jobs of a context use, one after the other. */
#include "clip.h"

#include <string.h>

static const weft_plugin *plugin_of(const struct wf_clip_state *state)
{
    return weft_context_plugin(state->context);
}

static void free_pinned(const struct wf_clip_state *state, void *memory)
{
    void *device = weft_context_device(state->context);

    if (memory != NULL && plugin_of(state)->device->free(device, memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "host memory was not freed: %s", weft_last_error());
}

static void drop_list(const struct wf_clip_state *state, struct wf_clip_list *list)
{
    if (list->list != NULL) plugin_of(state)->kernel->spans_destroy(list->list);
    wf_free(list->spans);
    *list = (struct wf_clip_list){0};
}

static void leave(void *user)
{
    struct wf_clip_state *state = user;

    weft_work_release(&state->last);
}

/* The context is about to end. */
static void end(void *user, const char *cause)
{
    struct wf_clip_state *state = user;

    (void)cause;
    for (int i = 0; i < WF_CLIP_LISTS; i++)
        drop_list(state, &state->lists[i]);
    free_pinned(state, state->stage);
    free_pinned(state, state->sums);
    for (uint32_t i = 0; i < state->outgrown_count; i++)
        free_pinned(state, state->outgrown[i]);
    weft_dependent_release(&state->dependent);
    wf_free(state);
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .leave = leave, .end = end};

static weft_status make_state(weft_context *context, struct wf_clip_state **out)
{
    weft_device_info info = {.struct_size = sizeof info};
    struct wf_clip_state *state = wf_calloc(1, sizeof *state);
    weft_status status;

    if (state == NULL) return wf_fail_memory(sizeof *state);
    state->context = context;
    status = weft_device_get(context, &info);
    state->reaches = (info.features & WEFT_FEATURE_HOST_MEMORY) != 0;
    if (status == WEFT_OK) status = wf_clip_ask_device(context, &state->on_device);
    if (status == WEFT_OK)
        status = weft_dependent_create(weft_world(context), &calls, state, &state->dependent);
    if (status != WEFT_OK)
        wf_free(state);
    else
        *out = state;
    return status;
}

static weft_status take_pinned(const struct wf_clip_state *state, uint64_t bytes, void **out)
{
    return plugin_of(state)->device->allocate(weft_context_device(state->context), bytes,
                                              WEFT_MEMORY_PINNED, out);
}

weft_status wf_clip_enter(weft_context *context, weft_stream *stream, struct wf_clip_state **out)
{
    struct wf_clip_state *state = weft_dependent_find(weft_world(context), &calls);

    if (state == NULL) WF_TRY(make_state(context, &state));
    if (state->last != NULL && state->stream != stream)
        WF_TRY(weft_stream_wait_work(stream, state->last));
    if (!state->on_device && !state->reaches && state->stage == NULL)
        WF_TRY(take_pinned(state, WF_CLIP_STAGE, &state->stage));
    *out = state;
    return WEFT_OK;
}

weft_status wf_clip_leave(struct wf_clip_state *state, weft_stream *stream)
{
    weft_status status;

    weft_work_release(&state->last);
    state->stream = stream;
    status = weft_work_record(state->context, stream, &state->last);
    if (status != WEFT_OK) /* nobody can wait for it later */
        (void)!weft_context_wait(state->context, stream,
                                 weft_comm_timeout(weft_world(state->context)));
    return status;
}

/* Jobs before may still use memory that is too small now. */
weft_status wf_clip_give_sums(struct wf_clip_state *state, uint32_t count)
{
    uint32_t room = 2 * count;
    void *sums = NULL;

    if (count <= state->sum_room) return WEFT_OK;
    WF_TRY(take_pinned(state, room * sizeof *state->sums, &sums));
    if (state->sums != NULL) state->outgrown[state->outgrown_count++] = state->sums;
    state->sums = sums;
    state->sum_room = room;
    return WEFT_OK;
}

/* ---- lists of spans ---- */

static bool is_equal(const struct wf_clip_list *list, uint64_t count, const weft_span *spans,
                     uint32_t sums)
{
    return list->list != NULL && list->count == count && list->sums == sums &&
           (count == 0 || memcmp(list->spans, spans, count * sizeof *spans) == 0);
}

static weft_status make_list(const struct wf_clip_state *state, uint64_t count,
                             const weft_span *spans, uint32_t sums, struct wf_clip_list *out)
{
    size_t bytes = (count + 1) * sizeof *spans;
    weft_status status;

    drop_list(state, out); /* waits for work that uses it */
    out->spans = wf_calloc(1, bytes);
    if (out->spans == NULL) return wf_fail_memory(bytes);
    if (count > 0) memcpy(out->spans, spans, count * sizeof *spans);
    out->count = count;
    out->sums = sums;
    status = plugin_of(state)->kernel->spans_create(weft_context_device(state->context), count,
                                                    spans, sums, &out->list);
    if (status != WEFT_OK) drop_list(state, out);
    return status;
}

weft_status wf_clip_list(struct wf_clip_state *state, uint64_t count, const weft_span *spans,
                         uint32_t sums, void **out)
{
    struct wf_clip_list *oldest = &state->lists[0], *found = NULL;

    for (int i = 0; i < WF_CLIP_LISTS; i++) {
        struct wf_clip_list *list = &state->lists[i];

        if (is_equal(list, count, spans, sums)) found = list;
        if (list->used < oldest->used) oldest = list;
    }
    if (found == NULL) {
        WF_TRY(make_list(state, count, spans, sums, oldest));
        found = oldest;
    }
    found->used = ++state->uses;
    *out = found->list;
    return WEFT_OK;
}
