/* names.c - the words of schedules: kinds of actions and known schedules. */
#include "schedule.h"

#include <string.h>

const char *weft_schedule_action_name(enum weft_schedule_action_kind kind)
{
#define NAME(name, value, text) [value] = (text),
    static const char *const names[WEFT_SCHEDULE_ACTION_KINDS] = {WEFT_SCHEDULE_ACTION_LIST(NAME)};
#undef NAME

    return (unsigned)kind < WEFT_SCHEDULE_ACTION_KINDS ? names[kind] : NULL;
}

const char *wf_text_kind_name(int kind)
{
    static const char *const names[] = {"WAIT_SEND_F", "WAIT_SEND_B", "WAIT_REDUCE_GRAD"};

    if (kind < WF_WAIT_SEND_F || kind >= WF_TEXT_KINDS)
        return weft_schedule_action_name((enum weft_schedule_action_kind)kind);
    return names[kind - WF_WAIT_SEND_F];
}

static void add_one(struct wf_text *out, const weft_schedule_action *a)
{
    const char *name = wf_text_kind_name(a->kind);

    wf_text_add(out, "%d%s", a->stage, name != NULL ? name : "?");
    if (a->microbatch >= 0) wf_text_add(out, "%d", a->microbatch);
}

void wf_action_add(struct wf_text *out, const weft_schedule_action *action,
                   const weft_schedule_action *next)
{
    bool together = action->with_next != 0 && next != NULL;

    if (together) wf_text_char(out, '(');
    add_one(out, action);
    if (!together) return;
    wf_text_char(out, ';');
    add_one(out, next);
    wf_text_add(out, ")OVERLAP_F_B");
}

weft_status weft_schedule_action_print(const weft_schedule_action *action,
                                       const weft_schedule_action *next, char *text, size_t size,
                                       size_t *needed)
{
    struct wf_text printed = {0};

    WF_TRY(wf_require(action, "weft_schedule_action_print: action"));
    if (size > 0) WF_TRY(wf_require(text, "weft_schedule_action_print: text"));
    wf_action_add(&printed, action, next);
    return wf_text_copy_out(&printed, text, size, needed);
}
