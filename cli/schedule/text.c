/* text.c - a timeline as rows of time slots. */
#include "schedule/drawing.h"

#include <string.h>

enum { WIDEST = 240 }; /* columns; a longer timeline is not drawn */

void schedule_add_action(const weft_schedule_action *action, struct wf_text *out)
{
    char name[64];

    if (weft_schedule_action_print(action, NULL, name, sizeof name, NULL) == WEFT_OK)
        wf_text_add(out, "%s", name);
    else
        out->failed = true;
}

/* The most letters that a compute action of TIMELINE has. */
static weft_status find_width(const weft_timeline *timeline, int32_t ranks, size_t *out)
{
    const weft_schedule *schedule = weft_timeline_schedule(timeline);
    struct wf_text name = {0};
    const weft_schedule_action *row;
    size_t count;

    *out = 0;
    for (int32_t r = 0; r < ranks; r++) {
        WF_TRY(weft_schedule_actions(schedule, r, &count, &row, sizeof *row));
        for (size_t i = 0; i < count; i++) {
            if (row[i].kind > WEFT_SCHEDULE_ACTION_W) continue;
            name.length = 0;
            schedule_add_action(&row[i], &name);
            if (name.length > *out) *out = name.length;
        }
    }
    wf_text_free(&name);
    return WEFT_OK;
}

static weft_status add_row(const weft_timeline *timeline, int32_t rank, size_t width,
                           uint64_t makespan, struct wf_text *out)
{
    const weft_schedule_action *row;
    uint64_t at = 0, begin, end;
    size_t count;

    WF_TRY(
        weft_schedule_actions(weft_timeline_schedule(timeline), rank, &count, &row, sizeof *row));
    wf_text_add(out, "rank %-4d", rank);
    for (size_t i = 0; i < count; i++) {
        struct wf_text name = {0};
        if (row[i].kind > WEFT_SCHEDULE_ACTION_W) continue;
        WF_TRY(weft_timeline_span(timeline, rank, i, &begin, &end));
        for (; at < begin; at++)
            wf_text_add(out, " %-*s", (int)width, ".");
        schedule_add_action(&row[i], &name);
        for (; at < end; at++)
            wf_text_add(out, " %-*s", (int)width, at == begin && name.data ? name.data : "-");
        wf_text_free(&name);
    }
    for (; at < makespan; at++)
        wf_text_add(out, " %-*s", (int)width, ".");
    while (out->length > 0 && out->data[out->length - 1] == ' ')
        out->length--;
    if (out->data != NULL) out->data[out->length] = '\0';
    wf_text_char(out, '\n');
    return WEFT_OK;
}

weft_status schedule_add_text(const weft_timeline *timeline, struct wf_text *out)
{
    weft_schedule_info schedule = {.struct_size = sizeof schedule};
    weft_timeline_info info = {.struct_size = sizeof info};
    size_t width;

    WF_TRY(weft_schedule_get(weft_timeline_schedule(timeline), &schedule));
    WF_TRY(weft_timeline_get(timeline, &info));
    WF_TRY(find_width(timeline, schedule.ranks, &width));
    wf_text_add(out, "%s: %d rank%s, %d stage%s, %d microbatch%s, %lld action%s\n", schedule.name,
                schedule.ranks, WF_PLURAL(schedule.ranks), schedule.stages,
                WF_PLURAL(schedule.stages), schedule.microbatches,
                schedule.microbatches == 1 ? "" : "es", (long long)schedule.actions,
                WF_PLURAL(schedule.actions));
    wf_text_add(out,
                "time %llu, idle %.1f %%, at most %llu activation%s on a rank "
                "(F, I and W take 1, B takes 2)\n",
                (unsigned long long)info.makespan, 100 * info.idle_share,
                (unsigned long long)info.peak, WF_PLURAL(info.peak));
    if (schedule.lowered && schedule.stages > 1)
        wf_text_add(out, "Sends, receives and collectives are not drawn; --csv lists them.\n");
    if (info.makespan * (width + 1) > WIDEST || schedule.ranks > 64) {
        wf_text_add(out, "The timeline is too large for text; --svg FILE draws it.\n");
        return WEFT_OK;
    }
    for (int32_t r = 0; r < schedule.ranks; r++)
        WF_TRY(add_row(timeline, r, width, info.makespan, out));
    return WEFT_OK;
}
