/* json.c - timelines as JSON. */
#include "timeline.h"

static void add_action(struct wf_json *json, const weft_timeline *t, size_t index)
{
    const weft_schedule_action *a = &t->schedule->actions[index];
    struct wf_text name = {0};

    wf_action_add(&name, a, NULL);
    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "action", name.data);
    wf_json_uint(json, "begin", t->begin[index]);
    wf_json_uint(json, "end", t->end[index]);
    if (a->with_next != 0) wf_json_bool(json, "with_next", true);
    wf_json_end(json, '}');
    json->out->failed |= name.failed;
    wf_text_free(&name);
}

static void add_rank(struct wf_json *json, const weft_timeline *t, int32_t rank)
{
    const weft_timeline_rank_info *info = &t->ranks[rank];

    wf_json_begin(json, NULL, '{');
    wf_json_uint(json, "busy", info->busy);
    wf_json_uint(json, "end", info->end);
    wf_json_uint(json, "exposed", info->exposed);
    wf_json_uint(json, "peak", info->peak);
    wf_json_begin(json, "actions", '[');
    for (size_t i = t->schedule->first[rank]; i < t->schedule->first[rank + 1]; i++)
        add_action(json, t, i);
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}

static void add_timeline(struct wf_json *json, const weft_timeline *t)
{
    const weft_schedule *s = t->schedule;

    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "schedule", s->name);
    wf_json_int(json, "ranks", s->ranks);
    wf_json_int(json, "stages", s->stages);
    wf_json_int(json, "microbatches", s->microbatches);
    wf_json_bool(json, "lowered", s->lowered);
    wf_json_uint(json, "actions", s->first[s->ranks]);
    wf_json_uint(json, "makespan", t->info.makespan);
    wf_json_uint(json, "busy", t->info.busy);
    wf_json_real(json, "idle_share", t->info.idle_share);
    wf_json_uint(json, "peak", t->info.peak);
    wf_json_begin(json, "stage_ranks", '[');
    for (int32_t i = 0; i < s->stages; i++)
        wf_json_int(json, NULL, s->rank_of[i]);
    wf_json_end(json, ']');
    wf_json_begin(json, "timeline", '[');
    for (int32_t r = 0; r < s->ranks; r++)
        add_rank(json, t, r);
    wf_json_end(json, ']');
    wf_json_end(json, '}');
}

weft_status weft_timeline_json_print(const weft_timeline *timeline, char *text, size_t size,
                                     size_t *needed)
{
    struct wf_text printed = {0};
    struct wf_json json = {.out = &printed};

    WF_TRY(wf_require(timeline, "weft_timeline_json_print: timeline"));
    if (size > 0) WF_TRY(wf_require(text, "weft_timeline_json_print: text"));
    add_timeline(&json, timeline);
    return wf_text_copy_out(&printed, text, size, needed);
}
