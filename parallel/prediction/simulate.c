/* simulate.c - times of all ranks.
 *
 * Ranks with the same coordinate on the pipeline axis do the same work at the same time, so one of
 * them stands for all.  With jitter and stragglers they differ: ranks that communicate within a
 * microbatch wait for each other, and are as slow as the slowest of them; each group of ranks that
 * does not is a pipeline of its own. */
#include "prediction/prediction.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIFFERENT = 4096 }; /* ranks that are simulated one by one */

struct simulator {
    const weft_graph *graph;
    const weft_prediction_options *request;
    weft_prediction *result;
    weft_schedule_info info;
    weft_schedule_stage_cost *costs;
    double *factors; /* by pipeline, and coordinate on the pipeline axis */
    weft_timeline_options options;
};

/* ---- messages between stages ---- */

/* The first rank at coordinate P of the pipeline axis. */
static int32_t rank_at(const weft_graph *g, int32_t p)
{
    int32_t coord[WEFT_MAX_AXES] = {0}, rank = 0;

    if (g->pipeline >= 0) coord[g->pipeline] = p;
    return weft_mesh_rank(g->whole, coord, &rank) == WEFT_OK ? rank : 0;
}

/* The time of a message of BYTES between the ranks A and B. */
static weft_status price_message(const weft_graph *g, int32_t a, int32_t b, uint64_t bytes,
                                 uint64_t *out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = g->costs};
    weft_plan_info info = {.struct_size = sizeof info};
    int32_t hosts = weft_mesh_devices_per_host(g->whole);
    weft_spec *from = NULL, *to = NULL;
    weft_mesh *pair = NULL;
    weft_plan *plan = NULL;
    weft_status status;
    char text[128];

    *out = 0;
    if (bytes == 0) return WEFT_OK;
    status = weft_mesh_create(1, (int32_t[]){2},
                              &(weft_mesh_options){.struct_size = sizeof(weft_mesh_options),
                                                   .ranks = (int32_t[]){a, b},
                                                   .devices_per_host = hosts},
                              &pair);
    snprintf(text, sizeof text, "u8[%" PRIu64 "] O(0)", bytes);
    if (status == WEFT_OK) status = weft_spec_parse(pair, text, &from);
    if (status == WEFT_OK) status = weft_spec_with(from, "O(1)", &to);
    if (status == WEFT_OK) status = weft_plan_create(from, to, &options, &plan);
    if (status == WEFT_OK) status = weft_plan_get(plan, &info);
    if (status == WEFT_OK) *out = info.cost_ns;
    weft_plan_release(&plan);
    weft_spec_release(&from);
    weft_spec_release(&to);
    weft_mesh_release(&pair);
    return status;
}

/* The last message that a rank of the pipeline sends to a later stage, and its time. */
struct message {
    int32_t to;
    uint64_t time;
};

/* Many stages on few ranks send the same messages, each of which is priced about once. */
static weft_status price_each(struct simulator *s, struct message *sent)
{
    for (int32_t stage = 0; stage + 1 < s->info.stages; stage++) {
        int32_t a = weft_schedule_rank_of(s->result->schedule, stage);
        int32_t b = weft_schedule_rank_of(s->result->schedule, stage + 1);
        if (a == b) continue;
        if (sent[a].to != b)
            WF_TRY(price_message(s->graph, rank_at(s->graph, a), rank_at(s->graph, b),
                                 s->result->info.boundary, &sent[a].time));
        sent[a].to = b;
        s->costs[stage].send_forward = sent[a].time;
        s->costs[stage + 1].send_backward = sent[a].time;
    }
    return WEFT_OK;
}

static weft_status price_messages(struct simulator *s)
{
    struct message *sent = wf_alloc((size_t)s->info.ranks * sizeof *sent);
    weft_status status;

    if (sent == NULL) return wf_fail_memory((size_t)s->info.ranks * sizeof *sent);
    for (int32_t r = 0; r < s->info.ranks; r++)
        sent[r] = (struct message){.to = -1};
    status = price_each(s, sent);
    wf_free(sent);
    return status;
}

/* ---- slow ranks ---- */

/* A number from 0 to 1 that depends on the seed and the rank only. */
static double chance(uint64_t seed, int32_t rank)
{
    uint64_t h = wf_hash_mix(wf_hash_mix(seed, UINT64_C(0x5eed)), (uint64_t)(uint32_t)rank);

    h = wf_hash_mix(h ^ h >> 31, UINT64_C(0x94d049bb133111eb));
    return (double)(h >> 11) / 9007199254740992.0;
}

static double factor_of(const weft_prediction_options *request, int32_t rank)
{
    double factor = 1 + request->jitter * chance(request->seed, rank);

    for (size_t i = 0; i < request->straggler_count; i++)
        if (request->stragglers[i].rank == rank) factor *= request->stragglers[i].factor;
    return factor;
}

/* The ranks along axis A of --mesh wait for each other in a microbatch.  The meshes may have their
 * axes in different orders. */
static bool is_synchronised(const struct simulator *s, int32_t a)
{
    const char *name = weft_mesh_axis_name(s->graph->whole, a);
    int32_t inner = a; /* axes without names are those of the graph's mesh */

    if (name[0] != '\0' && weft_mesh_find_axis(s->graph->mesh, name, &inner) != WEFT_OK)
        return false;
    return s->result->sync_axes >> inner & 1;
}

/* The pipeline of COORD: its coordinates on the axes on which no microbatch communicates. */
static int32_t pipeline_of(const struct simulator *s, const int32_t *coord)
{
    int32_t index = 0;

    for (int32_t a = 0; a < weft_mesh_axes(s->graph->whole); a++)
        if (a != s->graph->pipeline && !is_synchronised(s, a))
            index = index * weft_mesh_axis_size(s->graph->whole, a) + coord[a];
    return index;
}

static weft_status find_factors(struct simulator *s)
{
    const weft_prediction_options *request = s->request;
    int32_t size = weft_mesh_size(s->graph->whole), ranks = s->info.ranks;
    bool equal = request->jitter <= 0 && request->straggler_count == 0;

    s->result->info.pipelines = 1;
    for (size_t i = 0; i < request->straggler_count; i++)
        if (request->stragglers[i].rank >= size)
            return wf_fail(WEFT_ERR_INVALID, "stragglers: there is no rank %d among %d",
                           request->stragglers[i].rank, size);
    if (!equal && size > MOST_DIFFERENT)
        return wf_fail(WEFT_ERR_INVALID,
                       "%d ranks that differ; jitter and stragglers are for at most %d", size,
                       MOST_DIFFERENT);
    s->factors = wf_alloc((size_t)(equal ? ranks : size) * sizeof *s->factors);
    if (s->factors == NULL) return wf_fail_memory((size_t)size * sizeof *s->factors);
    for (int32_t i = 0; i < (equal ? ranks : size); i++)
        s->factors[i] = 1;
    for (int32_t i = 0; i < size && !equal; i++) {
        int32_t coord[WEFT_MAX_AXES] = {0}, p = 0, k;
        WF_TRY(weft_mesh_coord_of(s->graph->whole, weft_mesh_rank_at(s->graph->whole, i), coord));
        if (s->graph->pipeline >= 0) p = coord[s->graph->pipeline];
        k = pipeline_of(s, coord);
        if (k >= s->result->info.pipelines) s->result->info.pipelines = k + 1;
        s->factors[k * ranks + p] = fmax(s->factors[k * ranks + p],
                                         factor_of(request, weft_mesh_rank_at(s->graph->whole, i)));
    }
    return WEFT_OK;
}

/* ---- one pipeline ---- */

static uint64_t slower(uint64_t ns, double factor)
{
    double product = (double)ns * factor;

    if (product > 1e18) return UINT64_MAX; /* the timeline refuses it */
    return factor > 1 ? (uint64_t)llround(product) : ns;
}

static void set_costs(struct simulator *s, const double *factors)
{
    for (int32_t i = 0; i < s->info.stages; i++) {
        const weft_prediction_stage_info *stage = &s->result->stages[i];
        double factor = factors[weft_schedule_rank_of(s->result->schedule, i)];
        s->costs[i].forward = slower(stage->forward, factor);
        s->costs[i].input = slower(stage->input, factor);
        s->costs[i].weight = slower(stage->weight, factor);
        s->costs[i].reduce = stage->reduce;
        s->costs[i].unshard = stage->unshard;
        s->costs[i].parameters = stage->gathered;
        s->costs[i].activation = wf_add_capped(stage->activation, stage->logits);
    }
}

/* The time of the step if the pipeline TIMELINE is the slowest. */
static weft_status measure(const struct simulator *s, const weft_timeline *timeline,
                           const double *factors, weft_prediction_rank_info *ranks, uint64_t *out)
{
    weft_timeline_rank_info info = {.struct_size = sizeof info};

    *out = 0;
    for (int32_t p = 0; p < s->info.ranks; p++) {
        WF_TRY(weft_timeline_rank_get(timeline, p, &info));
        ranks[p] = (weft_prediction_rank_info){
            .busy = info.busy, .end = info.end, .exposed = info.exposed, .peak = info.peak};
    }
    for (int32_t i = 0; i < s->info.stages; i++) {
        const weft_prediction_stage_info *stage = &s->result->stages[i];
        int32_t p = weft_schedule_rank_of(s->result->schedule, i);
        ranks[p].update = wf_add_capped(ranks[p].update, slower(stage->update, factors[p]));
        ranks[p].exposed = wf_add_capped(
            ranks[p].exposed, wf_mul_capped(stage->communication, (uint64_t)s->info.microbatches));
        ranks[p].peak = wf_add_capped(ranks[p].peak, wf_step_held(stage));
        ranks[p].peak = wf_add_capped(ranks[p].peak, stage->logit_gradients);
        if (!s->result->info.sharded) /* otherwise the timeline counts it */
            ranks[p].peak = wf_add_capped(ranks[p].peak, stage->gathered);
    }
    for (int32_t p = 0; p < s->info.ranks; p++)
        if (wf_add_capped(ranks[p].end, ranks[p].update) > *out)
            *out = wf_add_capped(ranks[p].end, ranks[p].update);
    return WEFT_OK;
}

static weft_status run_pipeline(struct simulator *s, int32_t k, weft_prediction_rank_info *ranks)
{
    const double *factors = s->factors + (size_t)k * (size_t)s->info.ranks;
    weft_timeline *timeline = NULL;
    uint64_t time = 0;
    weft_status status;

    set_costs(s, factors);
    WF_TRY(weft_timeline_create(s->result->schedule, &s->options, &timeline));
    status = measure(s, timeline, factors, ranks, &time);
    if (status == WEFT_OK && (s->result->timeline == NULL || time > s->result->info.time)) {
        weft_timeline *before = s->result->timeline;
        s->result->timeline = timeline;
        s->result->info.time = time;
        memcpy(s->result->ranks, ranks, (size_t)s->info.ranks * sizeof *ranks);
        timeline = before;
    }
    weft_timeline_release(&timeline);
    return status;
}

/* ---- figures ---- */

static void summarize(struct simulator *s)
{
    weft_prediction *r = s->result;
    double rate = (double)weft_cost_table_peak_flops(s->graph->costs), work = 0, again = 0;
    uint64_t idle = 0;

    r->info.ranks = weft_mesh_size(r->mesh);
    r->info.stages = s->info.stages;
    r->info.pipeline_ranks = s->info.ranks;
    r->info.microbatches = s->info.microbatches;
    r->info.peak_flops = rate;
    r->info.costs = weft_cost_table_name(r->costs);
    r->info.source = weft_cost_table_source(r->costs);
    for (int32_t i = 0; i < s->info.stages; i++)
        r->stages[i].rank = weft_schedule_rank_of(r->schedule, i);
    for (int32_t i = 0; i < s->info.stages; i++) {
        work += r->stages[i].flops * s->info.microbatches;
        again += r->stages[i].recomputed * s->info.microbatches;
    }
    for (int32_t p = 0; p < s->info.ranks; p++) {
        uint64_t used = wf_add_capped(r->ranks[p].busy, r->ranks[p].update);
        idle += r->info.time > used ? r->info.time - used : 0;
        if (r->ranks[p].exposed > r->info.exposed) r->info.exposed = r->ranks[p].exposed;
        if (r->ranks[p].peak > r->info.peak) r->info.peak = r->ranks[p].peak;
    }
    r->info.bubble = idle / (uint64_t)s->info.ranks;
    r->info.flops = work * weft_mesh_size(s->graph->mesh);
    r->info.recomputed = again * weft_mesh_size(s->graph->mesh);
    if (rate > 0 && r->info.time > 0) {
        double possible = rate * (double)r->info.time * 1e-9 * s->info.ranks;
        r->info.utilisation = (work - again) / possible;
        r->info.hardware_utilisation = work / possible;
    }
}

/* ---- what the schedule has ---- */

/* The kinds of actions in SCHEDULE, a bit each.  Sets REDUCED, which may be NULL, of stages that
 * have REDUCE_GRAD. */
static uint32_t kinds_of(const weft_schedule *schedule, bool *reduced)
{
    const weft_schedule_action *actions = NULL;
    size_t count = 0;
    uint32_t kinds = 0;

    for (int32_t r = 0;
         weft_schedule_actions(schedule, r, &count, &actions, sizeof *actions) == WEFT_OK; r++)
        for (size_t i = 0; i < count; i++) {
            kinds |= 1u << actions[i].kind;
            if (reduced != NULL && actions[i].kind == WEFT_SCHEDULE_ACTION_REDUCE_GRADIENT)
                reduced[actions[i].stage] = true;
        }
    return kinds;
}

/* As weft_pipeline_create does for a program that reduces gradients. */
static weft_status lower_schedule(struct simulator *s, const weft_schedule *given)
{
    int32_t ranks =
        s->graph->pipeline >= 0 ? weft_mesh_axis_size(s->graph->whole, s->graph->pipeline) : 1;
    uint32_t kinds = kinds_of(given, NULL);

    s->info.struct_size = sizeof s->info;
    WF_TRY(weft_schedule_get(given, &s->info));
    if (s->info.ranks != ranks)
        return wf_fail(WEFT_ERR_INVALID, "the schedule has %d ranks, and the axis pp %d",
                       s->info.ranks, ranks);
    if (kinds >> (WEFT_SCHEDULE_ACTION_W + 1) == 0)
        WF_TRY(weft_schedule_lower(given, WEFT_LOWER_REDUCE, &s->result->schedule));
    else if (s->info.lowered)
        s->result->schedule = weft_schedule_retain(given);
    else
        return wf_fail(WEFT_ERR_INVALID,
                       "the schedule has other actions than F, B, I and W, but no sends; no "
                       "pipeline runs it");
    s->result->info.sharded = kinds >> WEFT_SCHEDULE_ACTION_UNSHARD & 1;
    if (s->result->info.sharded && s->request->flags & WEFT_PREDICTION_FSDP)
        return wf_fail(WEFT_ERR_INVALID,
                       "the schedule has UNSHARD, which gathers whole stages; FSDP gathers layers");
    return weft_schedule_get(s->result->schedule, &s->info);
}

/* A stage without REDUCE_GRAD does not reduce. */
static weft_status drop_reductions(struct simulator *s)
{
    bool *reduced = wf_calloc((size_t)s->info.stages, sizeof *reduced);

    if (reduced == NULL) return wf_fail_memory((size_t)s->info.stages * sizeof *reduced);
    (void)kinds_of(s->result->schedule, reduced);
    for (int32_t i = 0; i < s->info.stages; i++) {
        weft_prediction_stage_info *stage = &s->result->stages[i];
        if (reduced[i] || stage->reduce == 0) continue;
        stage->reduce = 0;
        s->result->info.unreduced++;
    }
    wf_free(reduced);
    return WEFT_OK;
}

static weft_status check_stages(const struct simulator *s)
{
    if (s->request->stage_count == 0 || s->request->stage_count == (size_t)s->info.stages)
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "layers are given for %zu stage%s, and the schedule has %d",
                   s->request->stage_count, WF_PLURAL(s->request->stage_count), s->info.stages);
}

/* The schedule of the options; without one, 1F1B of twice as many microbatches as stages. */
static weft_status set_schedule(struct simulator *s)
{
    const weft_graph *g = s->graph;
    int32_t ranks = g->pipeline >= 0 ? weft_mesh_axis_size(g->whole, g->pipeline) : 1;
    weft_schedule *made = NULL;
    weft_status status;

    if (s->request->schedule != NULL) return lower_schedule(s, s->request->schedule);
    WF_TRY(weft_schedule_create("1f1b", ranks, 0, g->pipeline >= 0 ? 2 * ranks : 1, &made));
    status = lower_schedule(s, made);
    weft_schedule_release(&made);
    return status;
}

static weft_status run(struct simulator *s, weft_prediction_rank_info *ranks)
{
    const struct wf_step_deal deal = {
        s->info.stages, s->request->stage_count > 0 ? s->request->stage_layers : NULL};

    s->result->even = deal.layers == NULL;
    WF_TRY(wf_step_model(s->graph, &deal, s->request->flags, s->result));
    WF_TRY(drop_reductions(s));
    WF_TRY(price_messages(s));
    WF_TRY(find_factors(s));
    for (int32_t k = 0; k < s->result->info.pipelines; k++)
        WF_TRY(run_pipeline(s, k, ranks));
    summarize(s);
    return WEFT_OK;
}

weft_status wf_step_simulate(const weft_graph *graph, const weft_prediction_options *options,
                             weft_prediction *out)
{
    struct simulator s = {.graph = graph, .request = options, .result = out};
    weft_prediction_rank_info *ranks;
    weft_status status;

    WF_TRY(set_schedule(&s));
    WF_TRY(check_stages(&s));
    out->mesh = weft_mesh_retain(graph->whole);
    out->costs = weft_cost_table_retain(graph->costs);
    out->stages = wf_calloc((size_t)s.info.stages, sizeof *out->stages);
    out->ranks = wf_calloc((size_t)s.info.ranks, sizeof *out->ranks);
    s.costs = wf_calloc((size_t)s.info.stages, sizeof *s.costs);
    ranks = wf_calloc((size_t)s.info.ranks, sizeof *ranks);
    s.options = (weft_timeline_options){.struct_size = sizeof s.options,
                                        .stage_count = (size_t)s.info.stages,
                                        .stages = s.costs,
                                        .stage_size = sizeof *s.costs};
    if (out->stages != NULL && out->ranks != NULL && s.costs != NULL && ranks != NULL)
        status = run(&s, ranks);
    else
        status = wf_fail_memory((size_t)s.info.stages * sizeof *out->stages);
    wf_free(s.costs);
    wf_free(s.factors);
    wf_free(ranks);
    return status;
}
