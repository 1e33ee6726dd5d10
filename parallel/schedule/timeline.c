/* timeline.c - when a schedule's actions run, and the memory that ranks hold. */
#include "timeline.h"

#include <string.h>

/* What ACTION adds to the memory of its rank when it begins, and takes from it when it ends. */
static uint64_t held_by(const weft_schedule_stage_cost *cost, uint8_t kind)
{
    if (kind == WEFT_SCHEDULE_ACTION_F) return cost->activation;
    return kind == WEFT_SCHEDULE_ACTION_UNSHARD ? cost->parameters : 0;
}

static uint64_t freed_by(const weft_schedule_stage_cost *cost, uint8_t kind)
{
    if (kind == WEFT_SCHEDULE_ACTION_B || kind == WEFT_SCHEDULE_ACTION_W) return cost->activation;
    return kind == WEFT_SCHEDULE_ACTION_RESHARD ? cost->parameters : 0;
}

static weft_status measure_rank(weft_timeline *t, const weft_schedule_stage_cost *costs,
                                uint64_t limit, int32_t rank)
{
    static const weft_schedule_stage_cost unit = {.activation = 1};
    const weft_schedule *s = t->schedule;
    weft_timeline_rank_info *info = &t->ranks[rank];
    uint64_t held = 0;

    for (size_t i = s->first[rank]; i < s->first[rank + 1]; i++) {
        const weft_schedule_action *a = &s->actions[i];
        const weft_schedule_stage_cost *cost = costs != NULL ? &costs[a->stage] : &unit;
        held += held_by(cost, a->kind);
        if (limit != 0 && held > limit)
            return wf_schedule_refuse(s, i,
                                      "the rank would hold %llu, and its memory limit is %llu",
                                      (unsigned long long)held, (unsigned long long)limit);
        if (held > info->peak) info->peak = held;
        held -= freed_by(cost, a->kind);
        if (wf_action_computes(a)) info->busy += t->end[i] - t->begin[i];
        if (t->end[i] > info->end) info->end = t->end[i];
    }
    info->exposed = t->exposed[rank];
    t->info.busy += info->busy;
    if (info->peak > t->info.peak) t->info.peak = info->peak;
    if (info->end > t->info.makespan) t->info.makespan = info->end;
    return WEFT_OK;
}

static weft_status check_stages(const weft_schedule *s, const weft_timeline_options *options)
{
    if (options->stage_count == (options->stages != NULL ? (size_t)s->stages : 0)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_timeline_create: the options have costs of %zu stages; the schedule "
                   "has %d stages",
                   options->stage_count, (int)s->stages);
}

static weft_status check_costs(const weft_schedule *s, const weft_timeline_options *options)
{
    const weft_schedule_stage_cost *costs = options->stages;
    uint64_t most = 1, actions = s->first[s->ranks];

    for (int32_t i = 0; costs != NULL && i < s->stages; i++) {
        const weft_schedule_stage_cost *c = &costs[i];
        const uint64_t all[] = {c->forward,      c->input,         c->weight,
                                c->send_forward, c->send_backward, c->unshard,
                                c->reduce,       c->activation,    c->parameters};
        for (size_t j = 0; j < WF_COUNT(all); j++)
            if (all[j] > most) most = all[j];
    }
    if (wf_mul_capped(most, 3 * actions) < UINT64_C(1) << 62) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "a stage has the cost %llu; with %llu actions, times can "
                   "exceed 2^62",
                   (unsigned long long)most, (unsigned long long)actions);
}

static weft_status fill(weft_timeline *t, const weft_timeline_options *options)
{
    const weft_schedule *s = t->schedule;
    size_t count = s->first[s->ranks];
    double whole;

    t->begin = wf_alloc(count * sizeof *t->begin);
    t->end = wf_alloc(count * sizeof *t->end);
    t->exposed = wf_calloc((size_t)s->ranks, sizeof *t->exposed);
    t->ranks = wf_calloc((size_t)s->ranks, sizeof *t->ranks);
    if (t->begin == NULL || t->end == NULL || t->exposed == NULL || t->ranks == NULL)
        return wf_fail_memory(count * sizeof *t->begin);
    WF_TRY(wf_clockwork(s, options->stages, &(struct wf_spans){t->begin, t->end, t->exposed}));
    for (int32_t r = 0; r < s->ranks; r++)
        WF_TRY(measure_rank(t, options->stages, options->memory_limit, r));
    whole = (double)t->info.makespan * s->ranks;
    t->info.idle_share = whole > 0 ? 1 - (double)t->info.busy / whole : 0;
    return WEFT_OK;
}

static weft_status create(const weft_schedule *schedule, const weft_timeline_options *options,
                          weft_timeline **out)
{
    weft_timeline *t;
    weft_status status;

    WF_TRY(check_costs(schedule, options));
    t = wf_calloc(1, sizeof *t);
    if (t == NULL) return wf_fail_memory(sizeof *t);
    t->schedule = weft_schedule_retain(schedule);
    status = fill(t, options);
    if (status == WEFT_OK)
        *out = t;
    else
        weft_timeline_release(&t);
    return status;
}

weft_status weft_timeline_create(const weft_schedule *schedule,
                                 const weft_timeline_options *options, weft_timeline **out)
{
    static const char function[] = "weft_timeline_create";
    weft_timeline_options given;
    void *copy = NULL;
    weft_status status;

    WF_TRY(wf_require(schedule, "weft_timeline_create: schedule"));
    WF_TRY(wf_require(out, "weft_timeline_create: out"));
    memset(&given, 0, sizeof given);
    WF_TRY(wf_options_read("weft_timeline_options", options, &given, sizeof given));
    WF_TRY(check_stages(schedule, &given));
    if (given.stages != NULL)
        WF_TRY(
            wf_fail_named(wf_items_read("weft_schedule_stage_cost", given.stage_count, given.stages,
                                        given.stage_size, sizeof *given.stages, &copy),
                          function));
    if (copy != NULL) given.stages = copy;
    status = wf_fail_named(create(schedule, &given, out), function);
    wf_free(copy);
    return status;
}

void weft_timeline_release(weft_timeline **timeline)
{
    weft_timeline *mine;

    if (timeline == NULL || *timeline == NULL) return;
    mine = *timeline;
    *timeline = NULL;
    weft_schedule_release(&mine->schedule);
    wf_free(mine->begin);
    wf_free(mine->end);
    wf_free(mine->exposed);
    wf_free(mine->ranks);
    wf_free(mine);
}

weft_status weft_timeline_get(const weft_timeline *timeline, weft_timeline_info *out)
{
    WF_TRY(wf_require(timeline, "weft_timeline_get: timeline"));
    WF_TRY(wf_require(out, "weft_timeline_get: out"));
    return wf_info_write("weft_timeline_info", &timeline->info, sizeof timeline->info, out);
}

static weft_status check_rank(const weft_timeline *timeline, const char *function, int32_t rank)
{
    if (rank >= 0 && rank < timeline->schedule->ranks) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: rank %d; the schedule has %d ranks", function, rank,
                   timeline->schedule->ranks);
}

weft_status weft_timeline_rank_get(const weft_timeline *timeline, int32_t rank,
                                   weft_timeline_rank_info *out)
{
    WF_TRY(wf_require(timeline, "weft_timeline_rank_get: timeline"));
    WF_TRY(wf_require(out, "weft_timeline_rank_get: out"));
    WF_TRY(check_rank(timeline, "weft_timeline_rank_get", rank));
    return wf_info_write("weft_timeline_rank_info", &timeline->ranks[rank],
                         sizeof timeline->ranks[rank], out);
}

weft_status weft_timeline_span(const weft_timeline *timeline, int32_t rank, size_t index,
                               uint64_t *begin, uint64_t *end)
{
    size_t count;

    WF_TRY(wf_require(timeline, "weft_timeline_span: timeline"));
    WF_TRY(wf_require(begin, "weft_timeline_span: begin"));
    WF_TRY(wf_require(end, "weft_timeline_span: end"));
    WF_TRY(check_rank(timeline, "weft_timeline_span", rank));
    count = timeline->schedule->first[rank + 1] - timeline->schedule->first[rank];
    if (index >= count)
        return wf_fail(WEFT_ERR_INVALID, "weft_timeline_span: action %zu; rank %d has %zu actions",
                       index, rank, count);
    *begin = timeline->begin[timeline->schedule->first[rank] + index];
    *end = timeline->end[timeline->schedule->first[rank] + index];
    return WEFT_OK;
}

const weft_schedule *weft_timeline_schedule(const weft_timeline *timeline)
{
    return timeline != NULL ? timeline->schedule : NULL;
}
