/* model.c - the stages of a graph.
 *
 * Repeated lines are layers.  Without a list of the layers of each stage they are dealt evenly; if
 * there are more stages than layers, the last stages then have none.  The other lines of the
 * forward pass are in the first stage if they come before the layers, and in the last stage if they
 * come after.  Lines of the backward pass before the layers are in the last stage, and lines after
 * them in the first. */
#include "prediction/prediction.h"

#include <inttypes.h>
#include <string.h>

struct modeller {
    const weft_graph *graph;
    weft_prediction_stage_info *stages;
    int32_t count;
    const struct wf_step_deal *deal;
    uint32_t *used;              /* by tensor: bit per phase whose lines use it */
    uint32_t *line_of;           /* by tensor: the line that makes it */
    uint32_t *first_user;        /* by tensor: the first line that uses it; 0: none does */
    int32_t *owner;              /* by line: its stage; -1: it is repeated */
    bool sharded;                /* UNSHARD gathers: gathers are not in the times of microbatches */
    uint32_t flags;              /* enum weft_prediction_flag */
    uint32_t first[2], last[2];  /* lines of layers, by phase */
    struct wf_step_pass *passes; /* by stage, forward and backward; for overlap */
    struct wf_step_gathers gathers;
    uint32_t sync_axes;
    struct wf_step_clock *clocks; /* by stage and phase */
    struct wf_step_slowdown slow;
};

/* ---- stages of lines ---- */

static uint64_t share_of(const struct modeller *m, uint32_t line, int32_t stage)
{
    return wf_step_share(&m->graph->lines[line], m->owner[line], stage, m->deal);
}

/* The first and the last repeated line of PHASE; false: PHASE has no repeated line. */
static bool find_layers(const weft_graph *g, uint8_t phase, uint32_t *first, uint32_t *last)
{
    bool found = false;

    for (uint32_t i = 0; i < g->line_count; i++) {
        if (g->lines[i].repeat < 2 || g->lines[i].phase != phase ||
            g->lines[i].kind < WF_GRAPH_CALL)
            continue;
        if (!found) *first = i;
        *last = i;
        found = true;
    }
    return found;
}

/* Every line of the layers is repeated as often as the stages have layers. */
static weft_status check_deal(const struct modeller *m)
{
    uint64_t layers = 0;
    bool repeated = false;

    if (m->deal->layers == NULL) return WEFT_OK;
    for (int32_t s = 0; s < m->count; s++)
        layers += m->deal->layers[s];
    for (uint32_t i = 0; i < m->graph->line_count; i++) {
        const struct wf_graph_line *line = &m->graph->lines[i];
        if (line->repeat < 2) continue;
        repeated = true;
        if (line->repeat != layers)
            return wf_fail(WEFT_ERR_INVALID,
                           "the stages have %" PRIu64 " layers in sum, and graph line %u is "
                           "repeated %u times",
                           layers, line->number, line->repeat);
    }
    if (repeated) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "the graph has no repeated layers (clause x32), which stages could share");
}

static weft_status place_lines(struct modeller *m)
{
    const weft_graph *g = m->graph;
    uint32_t *first = m->first, *last = m->last;
    bool layers = true;

    for (int phase = WF_GRAPH_FORWARD; phase <= WF_GRAPH_BACKWARD; phase++)
        if (!find_layers(g, (uint8_t)phase, &first[phase], &last[phase])) {
            first[phase] = last[phase] = g->line_count;
            layers = layers && phase == WF_GRAPH_BACKWARD;
        }
    if (!layers && m->count > 1)
        return wf_fail(WEFT_ERR_INVALID,
                       "the graph has no repeated layers (clause x32), which %d "
                       "stages could share",
                       m->count);
    for (uint32_t i = 0; i < g->line_count; i++) {
        const struct wf_graph_line *line = &g->lines[i];
        bool backward = line->phase == WF_GRAPH_BACKWARD;
        m->owner[i] = -1;
        if (line->repeat > 1) continue;
        m->owner[i] = (i > last[backward]) != backward ? m->count - 1 : 0;
    }
    return WEFT_OK;
}

/* Put each parameter where its first user is, if that is in the update, or if it is not. */
static void place_params(struct modeller *m, bool by_update)
{
    const weft_graph *g = m->graph;

    for (uint32_t i = 0; i < g->line_count; i++) {
        const struct wf_graph_line *line = &g->lines[i];
        uint32_t user;
        if (line->kind > WF_GRAPH_PARAM || line->repeat > 1) continue;
        user = m->first_user[line->outputs[0]];
        if (user != 0 && (g->lines[user].phase == WF_GRAPH_UPDATE) == by_update &&
            m->owner[user] >= 0)
            m->owner[i] = m->owner[user];
    }
}

/* Put each line of the update where the first of its parameters is. */
static void place_updates(struct modeller *m)
{
    const weft_graph *g = m->graph;

    for (uint32_t i = 0; i < g->line_count; i++) {
        const struct wf_graph_line *line = &g->lines[i];
        if (line->phase != WF_GRAPH_UPDATE || line->repeat > 1 || line->kind < WF_GRAPH_CALL)
            continue;
        for (uint32_t k = 0; k < line->input_count; k++) {
            uint32_t from = line->inputs[k] >= 0 ? m->line_of[line->inputs[k]] : i;
            if (g->lines[from].kind != WF_GRAPH_PARAM || g->lines[from].repeat > 1) continue;
            m->owner[i] = m->owner[from];
            break;
        }
    }
}

/* ---- time ---- */

/* A backward line computes gradients of weights if the update alone uses its results. */
static bool makes_weights(const struct modeller *m, const struct wf_graph_line *line)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < line->output_count; i++)
        if (line->outputs[i] >= 0) used |= m->used[line->outputs[i]];
    return line->phase == WF_GRAPH_BACKWARD && used == 1u << WF_GRAPH_UPDATE;
}

static uint64_t moves_after(const struct wf_graph_line *line)
{
    weft_plan_info info = {.struct_size = sizeof info};
    uint64_t sum = 0;

    for (uint32_t i = 0; line->after != NULL && i < line->output_count; i++)
        if (line->after[i] != NULL && weft_plan_get(line->after[i], &info) == WEFT_OK)
            sum = wf_add_capped(sum, info.cost_ns);
    return sum;
}

static uint32_t axes_of(const struct wf_graph_line *line)
{
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint32_t axes = 0;

    for (uint32_t i = 0; line->choice != NULL && i < line->input_count; i++)
        for (uint32_t s = 0;
             weft_op_choice_move(line->choice, i) != NULL &&
             weft_plan_step_get(weft_op_choice_move(line->choice, i), s, &step) == WEFT_OK;
             s++)
            axes |= step.axes;
    for (uint32_t i = 0; line->after != NULL && i < line->output_count; i++)
        for (uint32_t s = 0;
             line->after[i] != NULL && weft_plan_step_get(line->after[i], s, &step) == WEFT_OK; s++)
            axes |= step.axes;
    return axes;
}

/* Sums of a few such times do not wrap. */
static weft_status check_time(const struct wf_graph_line *line, uint64_t ns)
{
    if (ns < UINT64_C(1) << 60) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "graph line %u: the time of a stage exceeds 2^60 ns",
                   line->number);
}

/* Add line INDEX of STAGE, which takes COMPUTE and, for moves, TRAVEL; return its time. */
static uint64_t spend(struct modeller *m, int32_t stage, uint32_t index, uint64_t compute,
                      uint64_t travel)
{
    const struct wf_graph_line *line = &m->graph->lines[index];
    struct wf_step_spent spent = {.index = index, .compute = compute, .travel = travel};
    uint64_t time;

    if (line->input_count > 0 && line->inputs[0] >= 0) spent.maker = m->line_of[line->inputs[0]];
    if (line->output_count > 0 && line->outputs[0] >= 0)
        spent.user = m->first_user[line->outputs[0]];
    time = wf_step_spend(m->graph, &spent, &m->slow, &m->clocks[3 * stage + line->phase]);
    if (line->phase != WF_GRAPH_UPDATE)
        m->stages[stage].communication += time > compute ? time - compute : 0;
    return time;
}

static bool gathers_by_layer(const struct modeller *m)
{
    return m->flags & WEFT_PREDICTION_FSDP;
}

/* Add the times of line INDEX in STAGE, SHARE repetitions, to its pass. */
static void add_to_pass(struct modeller *m, uint32_t index, int32_t stage, uint64_t share,
                        struct wf_step_unit times)
{
    uint8_t phase = m->graph->lines[index].phase;
    struct wf_step_pass *pass = &m->passes[2 * stage + phase];
    struct wf_step_unit *unit = m->owner[index] < 0       ? &pass->layer
                                : index < m->first[phase] ? &pass->before
                                                          : &pass->behind;

    if (unit == &pass->layer && share > pass->layers) pass->layers = share;
    unit->compute = wf_add_capped(unit->compute, times.compute);
    unit->gather = wf_add_capped(unit->gather, wf_mul_capped(times.gather, share));
    unit->reduce = wf_add_capped(unit->reduce, wf_mul_capped(times.reduce, share));
}

static weft_status add_time(struct modeller *m, uint32_t index)
{
    const struct wf_graph_line *line = &m->graph->lines[index];
    bool weights = makes_weights(m, line);
    uint64_t compute, travel = line->cost_ns, reduce = weights ? moves_after(line) : 0, gather;

    if (line->kind < WF_GRAPH_OUTPUT) return WEFT_OK;
    if (line->kind >= WF_GRAPH_CALL || line->time_ns != WF_GRAPH_UNKNOWN)
        WF_TRY(wf_step_compute_ns(m->graph, line, &compute));
    else
        compute = 0;
    if (line->kind == WF_GRAPH_MOVE || line->kind == WF_GRAPH_START) {
        if (line->time_ns != WF_GRAPH_UNKNOWN) travel = line->time_ns;
        reduce = weights ? travel : 0;
        compute = 0;
    }
    travel -= reduce < travel ? reduce : travel;
    gather = m->sharded || gathers_by_layer(m) ? m->gathers.line_ns[index] : 0;
    if (!weights && line->phase != WF_GRAPH_UPDATE && travel > 0) m->sync_axes |= axes_of(line);
    travel -= gather < travel ? gather : travel;
    for (int32_t s = 0; s < m->count; s++) {
        weft_prediction_stage_info *stage = &m->stages[s];
        uint64_t share = share_of(m, index, s), time;
        if (share == 0) continue;
        WF_TRY(check_time(line, wf_mul_capped(compute, share)));
        WF_TRY(check_time(line, wf_mul_capped(travel, share)));
        time = spend(m, s, index, compute * share, travel * share);
        WF_TRY(check_time(line, m->clocks[3 * s + line->phase].now));
        WF_TRY(check_time(line, m->clocks[3 * s + line->phase].started));
        WF_TRY(check_time(line, m->clocks[3 * s + line->phase].pieces));
        stage->reduce = wf_add_capped(stage->reduce, wf_mul_capped(reduce, share));
        WF_TRY(check_time(line, stage->reduce));
        WF_TRY(check_time(line, wf_mul_capped(gather, share)));
        if (line->phase != WF_GRAPH_UPDATE)
            add_to_pass(m, index, s, share, (struct wf_step_unit){time, gather, reduce});
        if (line->phase == WF_GRAPH_FORWARD) stage->forward += time;
        if (line->phase == WF_GRAPH_UPDATE) stage->update += time;
        if (line->phase == WF_GRAPH_BACKWARD && weights) stage->weight += time;
        if (line->phase == WF_GRAPH_BACKWARD && !weights) stage->input += time;
        if (line->phase == WF_GRAPH_UPDATE) continue;
        stage->flops += wf_step_flops(m->graph, line) * (double)share;
        if (line->recompute) stage->recomputed += wf_step_flops(m->graph, line) * (double)share;
    }
    return WEFT_OK;
}

/* ---- overlap ---- */

/* The times of all layers of PASS become those of one. */
static void divide_pass(struct wf_step_pass *pass)
{
    uint64_t layers = pass->layers > 0 ? pass->layers : 1;

    pass->layer.compute /= layers;
    pass->layer.gather /= layers;
    pass->layer.reduce /= layers;
}

/* What PASS takes longer than its compute, of which STAGE is told. */
static uint64_t wait_of(const struct wf_step_pass *pass, const struct wf_step_slowdown *slow,
                        uint64_t compute)
{
    uint64_t time = wf_step_overlap(pass, slow);

    return time > compute ? time - compute : 0;
}

/* Put the gathers and reductions of stage S beside its compute. */
static void overlap_stage(struct modeller *m, int32_t s)
{
    struct wf_step_pass *passes = &m->passes[2 * s];
    weft_prediction_stage_info *stage = &m->stages[s];
    uint64_t forward, backward, compute = stage->input + stage->weight;

    divide_pass(&passes[WF_GRAPH_FORWARD]);
    divide_pass(&passes[WF_GRAPH_BACKWARD]);
    backward = wait_of(&passes[WF_GRAPH_BACKWARD], &m->slow, compute);
    if (!gathers_by_layer(m)) { /* reductions are beside the last backward pass */
        stage->reduce = backward;
        return;
    }
    forward = wait_of(&passes[WF_GRAPH_FORWARD], &m->slow, stage->forward);
    stage->forward = wf_add_capped(stage->forward, forward);
    stage->input = wf_add_capped(stage->input, backward);
    stage->communication = wf_add_capped(stage->communication, wf_add_capped(forward, backward));
    stage->reduce = 0;
}

/* ---- memory ---- */

static void add_bytes(uint64_t *sum, uint64_t bytes)
{
    *sum = wf_add_capped(*sum, bytes);
}

static uint64_t bytes_of(const weft_graph *g, const weft_spec *spec)
{
    return spec != NULL ? weft_spec_shard_bytes(spec, weft_mesh_rank_at(g->mesh, 0)) : 0;
}

/* Bytes of the gradient that is result INDEX of LINE: until the last microbatch it has the layout
 * from which it is reduced, unless each microbatch reduces it. */
static uint64_t gradient_bytes(const struct modeller *m, const struct wf_graph_line *line,
                               uint32_t index)
{
    const weft_graph *g = m->graph;
    uint64_t after = bytes_of(g, g->tensors[line->outputs[index]].spec), before = 0;

    if (gathers_by_layer(m)) return after;
    if (line->kind == WF_GRAPH_CALL)
        before = bytes_of(g, weft_op_choice_output(line->choice, index));
    else if (line->inputs[0] >= 0)
        before = bytes_of(g, g->tensors[line->inputs[0]].spec);
    return before > after ? before : after;
}

/* Line INDEX is of the head or the loss: of the forward pass behind its layers, or of the backward
 * pass before them. */
static bool is_of_loss(const struct modeller *m, uint32_t index)
{
    uint8_t phase = m->graph->lines[index].phase;

    if (phase > WF_GRAPH_BACKWARD || m->owner[index] < 0) return false;
    if (m->first[phase] == m->graph->line_count) return false; /* there are no layers */
    return phase == WF_GRAPH_FORWARD ? index > m->last[phase] : index < m->first[phase];
}

/* Add BYTES, a result of line INDEX of a microbatch, of which the backward pass reads what the
 * forward pass made. */
static void add_result(const struct modeller *m, uint32_t index, int32_t tensor, uint64_t bytes,
                       weft_prediction_stage_info *out)
{
    const struct wf_graph_line *line = &m->graph->lines[index];
    bool of_loss = is_of_loss(m, index);

    if ((m->sharded || gathers_by_layer(m)) && m->gathers.copies[tensor] > 0) return;
    if (line->phase == WF_GRAPH_FORWARD && m->used[tensor] >> WF_GRAPH_BACKWARD & 1)
        add_bytes(of_loss ? &out->logits : &out->activation, bytes);
    if (line->phase == WF_GRAPH_BACKWARD && of_loss && line->kind == WF_GRAPH_CALL &&
        !makes_weights(m, line))
        add_bytes(&out->logit_gradients, bytes);
}

static void add_memory(struct modeller *m, uint32_t index)
{
    const weft_graph *g = m->graph;
    const struct wf_graph_line *line = &g->lines[index];

    for (uint32_t i = 0; i < line->output_count && line->kind != WF_GRAPH_OUTPUT; i++) {
        int32_t tensor = line->outputs[i];
        bool is_state = tensor >= 0 && m->used[tensor] == 1u << WF_GRAPH_UPDATE;
        uint64_t bytes;
        if (tensor < 0) continue;
        bytes = bytes_of(g, g->tensors[tensor].spec);
        for (int32_t s = 0; s < m->count; s++) {
            uint64_t all = wf_mul_capped(bytes, share_of(m, index, s));
            if (line->kind == WF_GRAPH_PARAM)
                add_bytes(is_state ? &m->stages[s].optimizer : &m->stages[s].parameters, all);
            if (makes_weights(m, line))
                add_bytes(&m->stages[s].gradients,
                          wf_mul_capped(gradient_bytes(m, line, i), share_of(m, index, s)));
            else if (line->kind != WF_GRAPH_PARAM)
                add_result(m, index, tensor, all, &m->stages[s]);
        }
    }
}

/* The result that goes from layer to layer is what the first line of the layers reads. */
static void describe_layers(const weft_graph *g, weft_prediction *out)
{
    uint32_t first = 0, last = 0;

    if (!find_layers(g, WF_GRAPH_FORWARD, &first, &last)) return;
    out->info.layers = g->lines[first].repeat;
    if (g->lines[first].input_count == 0 || g->lines[first].inputs[0] < 0) return;
    out->info.boundary = weft_spec_shard_bytes(g->tensors[g->lines[first].inputs[0]].spec,
                                               weft_mesh_rank_at(g->mesh, 0));
}

/* ---- all ---- */

static void find_uses(struct modeller *m)
{
    const weft_graph *g = m->graph;

    for (uint32_t i = 0; i < g->line_count; i++) {
        const struct wf_graph_line *line = &g->lines[i];
        for (uint32_t j = 0; j < line->output_count; j++)
            if (line->outputs[j] >= 0) m->line_of[line->outputs[j]] = i;
        for (uint32_t j = 0; j < line->input_count; j++) {
            int32_t tensor = line->inputs[j];
            if (tensor < 0) continue;
            m->used[tensor] |=
                1u << (line->kind == WF_GRAPH_OUTPUT ? WF_GRAPH_UPDATE : line->phase);
            if (m->first_user[tensor] == 0) m->first_user[tensor] = i;
        }
    }
}

static weft_status fill(struct modeller *m)
{
    const weft_graph *g = m->graph;

    find_uses(m);
    WF_TRY(check_deal(m));
    WF_TRY(place_lines(m));
    place_params(m, false);
    place_updates(m);
    place_params(m, true);
    WF_TRY(wf_step_gathers_find(g, &m->gathers));
    if (m->sharded || gathers_by_layer(m))
        WF_TRY(wf_step_gathers_price(&m->gathers, g, m->owner, m->deal, m->sharded ? UINT64_MAX : 2,
                                     m->stages));
    for (uint32_t i = 0; i < g->line_count; i++) {
        WF_TRY(add_time(m, i));
        add_memory(m, i);
    }
    for (int32_t s = 0; m->flags != 0 && s < m->count; s++)
        overlap_stage(m, s);
    for (int32_t s = 0; gathers_by_layer(m) && s < m->count; s++)
        m->stages[s].unshard = 0;
    return WEFT_OK;
}

weft_status wf_step_model(const weft_graph *graph, const struct wf_step_deal *deal, uint32_t flags,
                          weft_prediction *out)
{
    struct modeller m = {.graph = graph,
                         .stages = out->stages,
                         .count = deal->stages,
                         .deal = deal,
                         .sharded = out->info.sharded,
                         .flags = flags};
    weft_cost_table_info costs = {.struct_size = sizeof costs};
    weft_status status;

    WF_TRY(weft_cost_table_get(graph->costs, &costs));
    m.slow = (struct wf_step_slowdown){costs.compute_beside, costs.moves_beside};
    memset(out->stages, 0, (size_t)deal->stages * sizeof *out->stages);
    m.used = wf_calloc((size_t)graph->tensor_count + 1, sizeof *m.used);
    m.owner = wf_calloc((size_t)graph->line_count + 1, sizeof *m.owner);
    m.clocks = wf_calloc(3 * (size_t)deal->stages, sizeof *m.clocks);
    m.passes = wf_calloc(2 * (size_t)deal->stages, sizeof *m.passes);
    m.line_of = wf_calloc((size_t)graph->tensor_count + 1, sizeof *m.line_of);
    m.first_user = wf_calloc((size_t)graph->tensor_count + 1, sizeof *m.first_user);
    if (m.used != NULL && m.owner != NULL && m.clocks != NULL && m.passes != NULL &&
        m.line_of != NULL && m.first_user != NULL)
        status = fill(&m);
    else
        status = wf_fail_memory(graph->line_count * sizeof *m.owner);
    describe_layers(graph, out);
    out->sync_axes = m.sync_axes;
    wf_step_gathers_free(&m.gathers);
    wf_free(m.used);
    wf_free(m.owner);
    wf_free(m.line_of);
    wf_free(m.first_user);
    wf_free(m.clocks);
    wf_free(m.passes);
    return status;
}
