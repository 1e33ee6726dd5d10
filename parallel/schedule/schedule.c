/* schedule.c - lifetime and properties of schedules. */
#include "schedule.h"

#include <string.h>

weft_schedule *weft_schedule_retain(const weft_schedule *schedule)
{
    weft_schedule *mine = (weft_schedule *)(uintptr_t)schedule;

    if (mine != NULL) atomic_fetch_add_explicit(&mine->references, 1, memory_order_relaxed);
    return mine;
}

void weft_schedule_release(weft_schedule **schedule)
{
    weft_schedule *mine;

    if (schedule == NULL || *schedule == NULL) return;
    mine = *schedule;
    *schedule = NULL;
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) != 1) return;
    wf_free(mine->rank_of);
    wf_free(mine->first);
    wf_free(mine->actions);
    wf_free(mine);
}

weft_status weft_schedule_get(const weft_schedule *schedule, weft_schedule_info *out)
{
    weft_schedule_info info;

    WF_TRY(wf_require(schedule, "weft_schedule_get: schedule"));
    WF_TRY(wf_require(out, "weft_schedule_get: out"));
    memset(&info, 0, sizeof info);
    info.name = schedule->name;
    info.ranks = schedule->ranks;
    info.stages = schedule->stages;
    info.microbatches = schedule->microbatches;
    info.actions = (size_t)schedule->first[schedule->ranks];
    info.digest = schedule->digest;
    info.lowered = schedule->lowered;
    return wf_info_write("weft_schedule_info", &info, sizeof info, out);
}

int32_t weft_schedule_rank_of(const weft_schedule *schedule, int32_t stage)
{
    if (schedule == NULL || stage < 0 || stage >= schedule->stages) return -1;
    return schedule->rank_of[stage];
}

weft_status weft_schedule_actions(const weft_schedule *schedule, int32_t rank, size_t *count,
                                  const weft_schedule_action **out, size_t action_size)
{
    WF_TRY(wf_require(schedule, "weft_schedule_actions: schedule"));
    WF_TRY(wf_require(count, "weft_schedule_actions: count"));
    WF_TRY(wf_require(out, "weft_schedule_actions: out"));
    WF_TRY(wf_fail_named(wf_items_check("weft_schedule_action", action_size, sizeof **out),
                         "weft_schedule_actions"));
    if (rank < 0 || rank >= schedule->ranks)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_schedule_actions: rank %d; the schedule has %d ranks", rank,
                       schedule->ranks);
    *out = schedule->actions + schedule->first[rank];
    *count = schedule->first[rank + 1] - schedule->first[rank];
    return WEFT_OK;
}

size_t wf_send_between(const weft_schedule_action *actions, size_t count, size_t index)
{
    const weft_schedule_action *first = &actions[index], *a;
    uint8_t kind = first->kind == WEFT_SCHEDULE_ACTION_F ? WEFT_SCHEDULE_ACTION_SEND_F
                                                         : WEFT_SCHEDULE_ACTION_SEND_B;
    size_t i = index + 2;

    if (first->with_next == 0) return 0;
    while (i < count && (actions[i].kind == WEFT_SCHEDULE_ACTION_RECV_F ||
                         actions[i].kind == WEFT_SCHEDULE_ACTION_RECV_B))
        i++;
    a = &actions[i];
    return i < count && a->kind == kind && a->stage == first->stage &&
                   a->microbatch == first->microbatch
               ? i
               : 0;
}
