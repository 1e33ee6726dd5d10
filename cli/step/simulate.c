/* simulate.c - times of all ranks.
 *
 * Ranks with the same coordinate on the pipeline axis do the same work at the same time, so one of
 * them stands for all.  With jitter and stragglers they differ: ranks that communicate within a
 * microbatch wait for each other, and are as slow as the slowest of them; each group of ranks that
 * does not is a pipeline of its own. */
#include "step/step.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_DIFFERENT = 4096 }; /* ranks that are simulated one by one */

struct simulator {
    const struct step_request *request;
    struct step_result *result;
    weft_schedule_info info;
    weft_schedule_stage_cost *costs;
    double *factors; /* by pipeline, and coordinate on the pipeline axis */
    weft_timeline_options options;
};

/* ---- messages between stages ---- */

/* The first rank at coordinate P of the pipeline axis. */
static int32_t rank_at(const struct step_request *request, int32_t p)
{
    int32_t coord[WEFT_MAX_AXES] = {0}, rank = 0;

    if (request->pipeline >= 0) coord[request->pipeline] = p;
    return weft_mesh_rank(request->mesh, coord, &rank) == WEFT_OK ? rank : 0;
}

/* The time of a message of BYTES between the ranks A and B. */
static weft_status price_message(const struct step_request *request, int32_t a, int32_t b,
                                 uint64_t bytes, uint64_t *out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = request->costs};
    weft_plan_info info = {.struct_size = sizeof info};
    int32_t hosts = weft_mesh_devices_per_host(request->mesh);
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
            WF_TRY(price_message(s->request, rank_at(s->request, a), rank_at(s->request, b),
                                 s->result->boundary, &sent[a].time));
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

static double factor_of(const struct step_request *request, int32_t rank)
{
    double factor = 1 + request->jitter * chance(request->seed, rank);

    for (uint32_t i = 0; i < request->straggler_count; i++)
        if (request->stragglers[i].rank == rank) factor *= request->stragglers[i].factor;
    return factor;
}

/* The ranks along axis A of --mesh wait for each other in a microbatch.  The meshes may have their
 * axes in different orders. */
static bool is_synchronised(const struct simulator *s, int32_t a)
{
    const char *name = weft_mesh_axis_name(s->request->mesh, a);
    int32_t inner = a; /* axes without names are those of the graph's mesh */

    if (name[0] != '\0' && weft_mesh_find_axis(s->request->inner, name, &inner) != WEFT_OK)
        return false;
    return s->result->sync_axes >> inner & 1;
}

/* The pipeline of COORD: its coordinates on the axes on which no microbatch communicates. */
static int32_t pipeline_of(const struct simulator *s, const int32_t *coord)
{
    int32_t index = 0;

    for (int32_t a = 0; a < weft_mesh_axes(s->request->mesh); a++)
        if (a != s->request->pipeline && !is_synchronised(s, a))
            index = index * weft_mesh_axis_size(s->request->mesh, a) + coord[a];
    return index;
}

static weft_status find_factors(struct simulator *s)
{
    const struct step_request *request = s->request;
    int32_t size = weft_mesh_size(request->mesh), ranks = s->info.ranks;
    bool equal = request->jitter <= 0 && request->straggler_count == 0;

    s->result->pipelines = 1;
    for (uint32_t i = 0; i < request->straggler_count; i++)
        if (request->stragglers[i].rank >= size)
            return wf_fail(WEFT_ERR_INVALID, "--straggler: there is no rank %d among %d",
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
        WF_TRY(weft_mesh_coord_of(request->mesh, weft_mesh_rank_at(request->mesh, i), coord));
        if (request->pipeline >= 0) p = coord[request->pipeline];
        k = pipeline_of(s, coord);
        if (k >= s->result->pipelines) s->result->pipelines = k + 1;
        s->factors[k * ranks + p] = fmax(s->factors[k * ranks + p],
                                         factor_of(request, weft_mesh_rank_at(request->mesh, i)));
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
        const struct step_stage *stage = &s->result->stages[i];
        double factor = factors[weft_schedule_rank_of(s->result->schedule, i)];
        s->costs[i].forward = slower(stage->forward, factor);
        s->costs[i].input = slower(stage->input, factor);
        s->costs[i].weight = slower(stage->weight, factor);
        s->costs[i].reduce = stage->reduce;
        s->costs[i].unshard = stage->unshard;
        s->costs[i].parameters = stage->gathered;
        s->costs[i].activation = stage->activation;
    }
}

/* The time of the step if the pipeline TIMELINE is the slowest. */
static weft_status measure(const struct simulator *s, const weft_timeline *timeline,
                           const double *factors, struct step_rank *ranks, uint64_t *update,
                           uint64_t *out)
{
    weft_timeline_rank_info info = {.struct_size = sizeof info};

    *out = 0;
    for (int32_t p = 0; p < s->info.ranks; p++) {
        WF_TRY(weft_timeline_rank_get(timeline, p, &info));
        ranks[p] = (struct step_rank){info.busy, info.end, info.exposed, info.peak};
        update[p] = 0;
    }
    for (int32_t i = 0; i < s->info.stages; i++) {
        const struct step_stage *stage = &s->result->stages[i];
        int32_t p = weft_schedule_rank_of(s->result->schedule, i);
        update[p] = wf_add_capped(update[p], slower(stage->update, factors[p]));
        ranks[p].exposed = wf_add_capped(
            ranks[p].exposed, wf_mul_capped(stage->communication, (uint64_t)s->info.microbatches));
        ranks[p].peak =
            wf_add_capped(ranks[p].peak, wf_add_capped(stage->parameters, stage->gradients));
    }
    for (int32_t p = 0; p < s->info.ranks; p++)
        if (wf_add_capped(ranks[p].end, update[p]) > *out)
            *out = wf_add_capped(ranks[p].end, update[p]);
    return WEFT_OK;
}

static weft_status run_pipeline(struct simulator *s, int32_t k, struct step_rank *ranks,
                                uint64_t *update)
{
    const double *factors = s->factors + (size_t)k * (size_t)s->info.ranks;
    weft_timeline *timeline = NULL;
    uint64_t time = 0;
    weft_status status;

    set_costs(s, factors);
    WF_TRY(weft_timeline_create(s->result->schedule, &s->options, &timeline));
    status = measure(s, timeline, factors, ranks, update, &time);
    if (status == WEFT_OK && (s->result->timeline == NULL || time > s->result->time)) {
        weft_timeline *before = s->result->timeline;
        s->result->timeline = timeline;
        s->result->time = time;
        memcpy(s->result->ranks, ranks, (size_t)s->info.ranks * sizeof *ranks);
        memcpy(s->result->update, update, (size_t)s->info.ranks * sizeof *update);
        timeline = before;
    }
    weft_timeline_release(&timeline);
    return status;
}

/* ---- figures ---- */

static void summarize(struct simulator *s)
{
    struct step_result *r = s->result;
    double rate = (double)weft_cost_table_peak_flops(s->request->costs), work = 0;
    uint64_t idle = 0;

    for (int32_t i = 0; i < s->info.stages; i++)
        work += r->stages[i].flops * s->info.microbatches;
    for (int32_t p = 0; p < s->info.ranks; p++) {
        uint64_t used = wf_add_capped(r->ranks[p].busy, r->update[p]);
        idle += r->time > used ? r->time - used : 0;
        if (r->ranks[p].exposed > r->exposed) r->exposed = r->ranks[p].exposed;
        if (r->ranks[p].peak > r->peak) r->peak = r->ranks[p].peak;
    }
    r->bubble = idle / (uint64_t)s->info.ranks;
    r->flops = work * weft_mesh_size(s->request->inner);
    if (rate > 0 && r->time > 0)
        r->utilisation = work / s->info.ranks / (rate * (double)r->time * 1e-9);
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
static weft_status lower_schedule(struct simulator *s)
{
    weft_schedule *given = s->request->schedule;
    uint32_t kinds = kinds_of(given, NULL);

    s->info.struct_size = sizeof s->info;
    WF_TRY(weft_schedule_get(given, &s->info));
    if (kinds >> (WEFT_SCHEDULE_ACTION_W + 1) == 0)
        WF_TRY(weft_schedule_lower(given, WEFT_LOWER_REDUCE, &s->result->schedule));
    else if (s->info.lowered)
        s->result->schedule = weft_schedule_retain(given);
    else
        return wf_fail(WEFT_ERR_INVALID,
                       "the schedule has other actions than F, B, I and W, but no sends; no "
                       "pipeline runs it");
    s->result->sharded = kinds >> WEFT_SCHEDULE_ACTION_UNSHARD & 1;
    return weft_schedule_get(s->result->schedule, &s->info);
}

/* A stage without REDUCE_GRAD does not reduce. */
static weft_status drop_reductions(struct simulator *s)
{
    bool *reduced = wf_calloc((size_t)s->info.stages, sizeof *reduced);

    if (reduced == NULL) return wf_fail_memory((size_t)s->info.stages * sizeof *reduced);
    (void)kinds_of(s->result->schedule, reduced);
    for (int32_t i = 0; i < s->info.stages; i++) {
        struct step_stage *stage = &s->result->stages[i];
        if (reduced[i] || stage->reduce == 0) continue;
        stage->reduce = 0;
        s->result->unreduced++;
    }
    wf_free(reduced);
    return WEFT_OK;
}

weft_status step_simulate(const struct graph *graph, const struct step_request *request,
                          struct step_result *out)
{
    struct simulator s = {.request = request, .result = out};
    struct step_rank *ranks;
    uint64_t *update;
    weft_status status;

    memset(out, 0, sizeof *out);
    WF_TRY(lower_schedule(&s));
    out->stages = wf_calloc((size_t)s.info.stages, sizeof *out->stages);
    out->ranks = wf_calloc((size_t)s.info.ranks, sizeof *out->ranks);
    out->update = wf_calloc((size_t)s.info.ranks, sizeof *out->update);
    s.costs = wf_calloc((size_t)s.info.stages, sizeof *s.costs);
    ranks = wf_calloc((size_t)s.info.ranks, sizeof *ranks);
    update = wf_calloc((size_t)s.info.ranks, sizeof *update);
    s.options = (weft_timeline_options){.struct_size = sizeof s.options,
                                        .stage_count = (size_t)s.info.stages,
                                        .stages = s.costs,
                                        .stage_size = sizeof *s.costs};
    status = out->stages != NULL && out->ranks != NULL && out->update != NULL && s.costs != NULL &&
                     ranks != NULL && update != NULL
                 ? step_model(graph, request->costs, s.info.stages, out)
                 : wf_fail_memory((size_t)s.info.stages * sizeof *out->stages);
    if (status == WEFT_OK) status = drop_reductions(&s);
    if (status == WEFT_OK) status = price_messages(&s);
    if (status == WEFT_OK) status = find_factors(&s);
    for (int32_t k = 0; status == WEFT_OK && k < out->pipelines; k++)
        status = run_pipeline(&s, k, ranks, update);
    if (status == WEFT_OK) summarize(&s);
    wf_free(s.costs);
    wf_free(s.factors);
    wf_free(ranks);
    wf_free(update);
    return status;
}

void step_free(struct step_result *result)
{
    weft_timeline_release(&result->timeline);
    weft_schedule_release(&result->schedule);
    wf_free(result->stages);
    wf_free(result->ranks);
    wf_free(result->update);
    memset(result, 0, sizeof *result);
}
