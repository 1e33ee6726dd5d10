/* gathers.c - moves of parameters.
 *
 * A schedule without UNSHARD moves parameters in each microbatch, where the lines of the graph use
 * them.  A schedule with UNSHARD gathers the parameters of a stage together, and compute actions
 * find them gathered: lines that move one parameter to one layout share one gather. */
#include "prediction/prediction.h"

#include <string.h>

/* A parameter in the layout in which lines use it. */
struct wf_step_target {
    int32_t tensor;
    const weft_spec *spec;
    uint64_t ns, bytes; /* of the move, and of the result on a rank */
    uint32_t before;    /* another target of the tensor, from 1; 0: none */
};

struct wf_step_use {
    uint32_t target, line;
};

struct gatherer {
    const weft_graph *graph;
    struct wf_step_gathers *out;
    uint32_t *last; /* by tensor: its last target, from 1 */
    uint32_t target_room, use_room;
};

/* Make room for one more element of SIZE bytes in *LIST, which has COUNT. */
static weft_status grow(void *list, uint32_t count, uint32_t *room, size_t size)
{
    uint32_t more = *room != 0 ? 2 * *room : 16;
    void *old, *grown;

    if (count < *room) return WEFT_OK;
    memcpy(&old, list, sizeof old);
    grown = wf_realloc(old, more * size);
    if (grown == NULL) return wf_fail_memory(more * size);
    memcpy(list, &grown, sizeof grown);
    *room = more;
    return WEFT_OK;
}

/* The number of the target of TENSOR with the layout SPEC, from 1; 0 if TENSOR has no such target.
 */
static uint32_t find_target(const struct gatherer *g, int32_t tensor, const weft_spec *spec)
{
    uint32_t at = g->last[tensor];

    while (at != 0 && g->out->targets[at - 1].spec != spec)
        at = g->out->targets[at - 1].before;
    return at;
}

/* MOVE, which may be NULL, makes a copy. */
static bool is_copy(const weft_plan *move, weft_plan_info *info)
{
    *info = (weft_plan_info){.struct_size = sizeof *info};
    return move != NULL && weft_plan_get(move, info) == WEFT_OK && info->steps > 0;
}

/* Line LINE moves TENSOR to SPEC in NS; COPIED: to other memory. */
static weft_status add_use(struct gatherer *g, uint32_t line, int32_t tensor, const weft_spec *spec,
                           uint64_t ns, bool copied)
{
    struct wf_step_gathers *out = g->out;
    uint32_t target = find_target(g, tensor, spec);

    if (target == 0) {
        WF_TRY(grow(&out->targets, out->target_count, &g->target_room, sizeof *out->targets));
        out->targets[out->target_count++] = (struct wf_step_target){
            .tensor = tensor,
            .spec = spec,
            .bytes = copied ? weft_spec_shard_bytes(spec, weft_mesh_rank_at(g->graph->mesh, 0)) : 0,
            .before = g->last[tensor]};
        target = g->last[tensor] = out->target_count;
    }
    if (ns > out->targets[target - 1].ns) out->targets[target - 1].ns = ns;
    WF_TRY(grow(&out->uses, out->use_count, &g->use_room, sizeof *out->uses));
    out->uses[out->use_count++] = (struct wf_step_use){target - 1, line};
    out->line_ns[line] = wf_add_capped(out->line_ns[line], ns);
    return WEFT_OK;
}

/* A call that moves parameters which it reads. */
static weft_status add_call(struct gatherer *g, uint32_t index)
{
    const struct wf_graph_line *line = &g->graph->lines[index];

    for (uint32_t i = 0; i < line->input_count; i++) {
        weft_plan_info info;
        if (line->inputs[i] < 0 || g->out->copies[line->inputs[i]] == 0) continue;
        if (!is_copy(weft_op_choice_move(line->choice, i), &info)) continue;
        WF_TRY(add_use(g, index, line->inputs[i], weft_op_choice_input(line->choice, i),
                       info.cost_ns, true));
    }
    return WEFT_OK;
}

/* A line that moves a parameter: its result is a parameter too. */
static weft_status add_move(struct gatherer *g, uint32_t index)
{
    const struct wf_graph_line *line = &g->graph->lines[index];
    int32_t from = line->inputs[0], to = line->outputs[0];
    uint64_t ns = line->time_ns != WF_GRAPH_UNKNOWN ? line->time_ns : line->cost_ns;
    weft_plan_info info;

    if (from < 0 || to < 0 || g->out->copies[from] == 0) return WEFT_OK;
    g->out->copies[to] = g->out->copies[from];
    if (line->kind == WF_GRAPH_WAIT) return WEFT_OK;
    return add_use(g, index, from, g->graph->tensors[to].spec, ns,
                   line->after != NULL && is_copy(line->after[0], &info));
}

static weft_status find(struct gatherer *g)
{
    for (uint32_t i = 0; i < g->graph->line_count; i++) {
        const struct wf_graph_line *line = &g->graph->lines[i];
        if (line->kind == WF_GRAPH_PARAM) g->out->copies[line->outputs[0]] = line->repeat;
        if (line->phase == WF_GRAPH_UPDATE || line->kind < WF_GRAPH_CALL) continue;
        WF_TRY(line->kind == WF_GRAPH_CALL ? add_call(g, i) : add_move(g, i));
    }
    return WEFT_OK;
}

weft_status wf_step_gathers_find(const weft_graph *graph, struct wf_step_gathers *out)
{
    struct gatherer g = {.graph = graph, .out = out};
    weft_status status;

    g.last = wf_calloc((size_t)graph->tensor_count + 1, sizeof *g.last);
    out->copies = wf_calloc((size_t)graph->tensor_count + 1, sizeof *out->copies);
    out->line_ns = wf_calloc((size_t)graph->line_count + 1, sizeof *out->line_ns);
    if (g.last != NULL && out->copies != NULL && out->line_ns != NULL)
        status = find(&g);
    else
        status = wf_fail_memory(graph->line_count * sizeof *out->line_ns);
    wf_free(g.last);
    return status;
}

/* A stage has at most as many copies of a parameter as the graph. */
static uint64_t copies_of(const struct wf_step_gathers *gathers, const struct wf_step_use *use,
                          uint64_t share)
{
    uint32_t most = gathers->copies[gathers->targets[use->target].tensor];

    return share < most ? share : most;
}

weft_status wf_step_gathers_price(const struct wf_step_gathers *gathers, const weft_graph *graph,
                                  const int32_t *owner, const struct wf_step_deal *deal,
                                  uint64_t at_once, weft_prediction_stage_info *out)
{
    uint64_t *gathered = wf_alloc(((size_t)gathers->target_count + 1) * sizeof *gathered);

    if (gathered == NULL) return wf_fail_memory(gathers->target_count * sizeof *gathered);
    for (int32_t s = 0; s < deal->stages; s++) {
        memset(gathered, 0, gathers->target_count * sizeof *gathered);
        for (uint32_t i = 0; i < gathers->use_count; i++) {
            const struct wf_step_use *use = &gathers->uses[i];
            const struct wf_step_target *target = &gathers->targets[use->target];
            uint64_t copies = copies_of(
                gathers, use, wf_step_share(&graph->lines[use->line], owner[use->line], s, deal));
            uint64_t before = gathered[use->target];
            if (copies <= before) continue;
            gathered[use->target] = copies;
            out[s].unshard =
                wf_add_capped(out[s].unshard, wf_mul_capped(target->ns, copies - before));
            copies = copies < at_once ? copies : at_once;
            before = before < at_once ? before : at_once;
            out[s].gathered =
                wf_add_capped(out[s].gathered, wf_mul_capped(target->bytes, copies - before));
        }
    }
    wf_free(gathered);
    return WEFT_OK;
}

void wf_step_gathers_free(struct wf_step_gathers *gathers)
{
    wf_free(gathers->targets);
    wf_free(gathers->uses);
    wf_free(gathers->copies);
    wf_free(gathers->line_ns);
    memset(gathers, 0, sizeof *gathers);
}
