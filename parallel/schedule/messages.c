/* messages.c - messages from one rank to another are received in the order in which they are sent,
 * because backends without tags match them so. */
#include "schedule.h"

#include <string.h>

static bool sends(const weft_schedule_action *a)
{
    return a->kind == WEFT_SCHEDULE_ACTION_SEND_F || a->kind == WEFT_SCHEDULE_ACTION_SEND_B;
}

/* The rank to which SEND goes. */
static int32_t target_of(const weft_schedule *s, const weft_schedule_action *send)
{
    return wf_schedule_peer(s, send->stage, send->kind == WEFT_SCHEDULE_ACTION_SEND_F ? 1 : -1);
}

/* AT, which is at or behind the begin of the actions of a rank, moves to its next send to TARGET.
 */
static bool find_send(const weft_schedule *s, size_t end, int32_t target, size_t *at)
{
    while (*at < end && !(sends(&s->actions[*at]) && target_of(s, &s->actions[*at]) == target))
        (*at)++;
    return *at < end;
}

static weft_status check_receives(const weft_schedule *s, int32_t rank, size_t *next)
{
    memcpy(next, s->first, (size_t)s->ranks * sizeof *next);
    for (size_t i = s->first[rank]; i < s->first[rank + 1]; i++) {
        const weft_schedule_action *a = &s->actions[i], *send;
        bool forward = a->kind == WEFT_SCHEDULE_ACTION_RECV_F;
        int32_t step = forward ? -1 : 1, from;
        if (!forward && a->kind != WEFT_SCHEDULE_ACTION_RECV_B) continue;
        from = wf_schedule_peer(s, a->stage, step);
        if (!find_send(s, s->first[from + 1], rank, &next[from]))
            return wf_schedule_refuse(s, i, "rank %d sends nothing more to rank %d", from, rank);
        send = &s->actions[next[from]++];
        if (send->stage != a->stage + step || send->microbatch != a->microbatch ||
            send->kind != (forward ? WEFT_SCHEDULE_ACTION_SEND_F : WEFT_SCHEDULE_ACTION_SEND_B))
            return wf_schedule_refuse(
                s, i, "the next message from rank %d is %d%s%d", from, send->stage,
                weft_schedule_action_name((enum weft_schedule_action_kind)send->kind),
                send->microbatch);
    }
    return WEFT_OK;
}

weft_status wf_messages_validate(const weft_schedule *s)
{
    size_t *next = wf_alloc((size_t)s->ranks * sizeof *next);
    weft_status status = WEFT_OK;

    if (next == NULL) return wf_fail_memory((size_t)s->ranks * sizeof *next);
    for (int32_t r = 0; status == WEFT_OK && r < s->ranks; r++)
        status = check_receives(s, r, next);
    wf_free(next);
    return status;
}
