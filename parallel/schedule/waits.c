/* waits.c - waits in the files of PyTorch.
 *
 * A file with all actions may have a wait for each send, and for each reduction of gradients.  Weft
 * finds by itself when memory of a send may be used again, so waits are dropped when they have been
 * checked (valid.c), and added when they are printed. */
#include "schedule.h"

void wf_waits_drop(weft_schedule *s)
{
    size_t kept = 0, at = 0;

    for (int32_t r = 0; r < s->ranks; r++) {
        for (; at < s->first[r + 1]; at++)
            if (s->actions[at].kind < WEFT_SCHEDULE_ACTION_KINDS)
                s->actions[kept++] = s->actions[at];
        s->first[r + 1] = kept;
    }
}

static void add_wait(struct wf_text *out, uint8_t kind, const weft_schedule_action *a)
{
    weft_schedule_action wait = {.stage = a->stage, .microbatch = a->microbatch, .kind = kind};

    wf_text_char(out, ',');
    wf_action_add(out, &wait, NULL);
}

/* The gradient of a forward result proves that it has arrived. */
void wf_waits_add(struct wf_text *out, const weft_schedule *s, const weft_schedule_action *a)
{
    if (a->kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT) add_wait(out, WF_WAIT_REDUCE_GRAD, a);
    if (a->kind != WEFT_SCHEDULE_ACTION_B && a->kind != WEFT_SCHEDULE_ACTION_I) return;
    if (s->lowered && wf_schedule_peer(s, a->stage, 1) >= 0) add_wait(out, WF_WAIT_SEND_F, a);
}

void wf_waits_end(struct wf_text *out, const weft_schedule *s, int32_t rank)
{
    for (size_t i = s->first[rank]; i < s->first[rank + 1]; i++)
        if (s->actions[i].kind == WEFT_SCHEDULE_ACTION_SEND_B)
            add_wait(out, WF_WAIT_SEND_B, &s->actions[i]);
}
