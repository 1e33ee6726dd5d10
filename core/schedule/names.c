/* names.c - the words of schedules: kinds of actions and known schedules. */
#include "schedule.h"

#include <string.h>

const char *weft_action_name(enum weft_action_kind kind)
{
#define NAME(name, value, text) [value] = (text),
    static const char *const names[WEFT_ACTION_KINDS] = {WEFT_ACTION_LIST(NAME)};
#undef NAME

    return (unsigned)kind < WEFT_ACTION_KINDS ? names[kind] : NULL;
}

const char *wf_text_kind_name(int kind)
{
    static const char *const names[] = {"WAIT_SEND_F", "WAIT_SEND_B", "WAIT_REDUCE_GRAD"};

    if (kind < WF_WAIT_SEND_F || kind >= WF_TEXT_KINDS)
        return weft_action_name((enum weft_action_kind)kind);
    return names[kind - WF_WAIT_SEND_F];
}

static void add_one(struct wf_text *out, const weft_action *a)
{
    const char *name = wf_text_kind_name(a->kind);

    wf_text_add(out, "%d%s", a->stage, name != NULL ? name : "?");
    if (a->microbatch >= 0) wf_text_add(out, "%d", a->microbatch);
}

void wf_action_add(struct wf_text *out, const weft_action *action, const weft_action *next)
{
    bool together = action->with_next != 0 && next != NULL;

    if (together) wf_text_char(out, '(');
    add_one(out, action);
    if (!together) return;
    wf_text_char(out, ';');
    add_one(out, next);
    wf_text_add(out, ")OVERLAP_F_B");
}

weft_status weft_action_print(const weft_action *action, const weft_action *next, char *buffer,
                              size_t capacity, size_t *length)
{
    struct wf_text text = {0};

    WF_TRY(wf_require(action, "weft_action_print: action"));
    if (capacity > 0) WF_TRY(wf_require(buffer, "weft_action_print: buffer"));
    wf_action_add(&text, action, next);
    return wf_text_copy_out(&text, buffer, capacity, length);
}
