/* order.c - where each action of a schedule is. */
#include "pipeline.h"

static void note(struct wf_order *order, const weft_schedule_action *a, int32_t index)
{
    struct wf_places *places =
        &order->places[(size_t)a->stage * (size_t)order->microbatches + (size_t)a->microbatch];

    if (a->kind == WEFT_SCHEDULE_ACTION_F) places->forward = index;
    if (a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_I)
        places->input = index;
    if (a->kind == WEFT_SCHEDULE_ACTION_B || a->kind == WEFT_SCHEDULE_ACTION_W)
        places->weight = index;
}

weft_status wf_order_make(const weft_schedule *schedule, struct wf_order *out)
{
    weft_schedule_info info = {.struct_size = sizeof info};
    const weft_schedule_action *actions;
    size_t count;

    WF_TRY(weft_schedule_get(schedule, &info));
    *out = (struct wf_order){.stages = info.stages, .microbatches = info.microbatches};
    count = (size_t)info.stages * (size_t)info.microbatches;
    out->places = wf_calloc(count, sizeof *out->places);
    if (out->places == NULL) return wf_fail_memory(count * sizeof *out->places);
    for (int32_t rank = 0; rank < info.ranks; rank++) {
        WF_TRY(weft_schedule_actions(schedule, rank, &count, &actions, sizeof *actions));
        for (size_t i = 0; i < count; i++)
            if (actions[i].kind <= WEFT_SCHEDULE_ACTION_W) note(out, &actions[i], (int32_t)i);
    }
    return WEFT_OK;
}

void wf_order_free(struct wf_order *order)
{
    wf_free(order->places);
    order->places = NULL;
}
