/* program.c - the nodes of a graph's lines. */
#include "reorder/program.h"

#include <string.h>

struct builder {
    struct program *program;
    const struct graph *graph;
    int32_t *line_of; /* by tensor: the index of the line that defines it */
    size_t used;      /* entries of `inputs` */
};

/* ---- communicators ---- */

/* The number of the communicator NAME. */
static weft_status number_of(struct program *p, const char *name, int32_t *out)
{
    char **comms;

    for (*out = 0; *out < p->comm_count; (*out)++)
        if (strcmp(p->comms[*out], name) == 0) return WEFT_OK;
    comms = wf_realloc(p->comms, ((size_t)p->comm_count + 1) * sizeof *comms);
    if (comms == NULL) return wf_fail_memory(sizeof *comms);
    p->comms = comms;
    comms[p->comm_count] = wf_strdup(name);
    if (comms[p->comm_count] == NULL) return wf_fail_memory(strlen(name) + 1);
    p->comm_count++;
    return WEFT_OK;
}

static uint32_t axes_of(const weft_plan *plan)
{
    weft_step_info step = {.struct_size = sizeof step};
    uint32_t axes = 0;

    for (uint32_t i = 0; plan != NULL && weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        axes |= step.axes;
    return axes;
}

/* The communicator of LINE: the one its clause names, or that of the axes of its moves; -1: none.
 */
static weft_status find_comm(const struct builder *b, const struct graph_line *line, int32_t *out)
{
    struct wf_text name = {0};
    uint32_t axes = 0;
    weft_status status;

    *out = -1;
    if (line->comm != NULL) return number_of(b->program, line->comm, out);
    for (uint32_t i = 0; line->choice != NULL && i < line->input_count; i++)
        axes |= axes_of(weft_op_choice_move(line->choice, i));
    for (uint32_t i = 0; line->after != NULL && i < line->output_count; i++)
        axes |= axes_of(line->after[i]);
    if (axes == 0) return WEFT_OK;
    for (int32_t a = 0; a < weft_mesh_axes(b->graph->mesh); a++) {
        const char *axis = weft_mesh_axis_name(b->graph->mesh, a);
        if (!(axes >> a & 1)) continue;
        if (name.length > 0) wf_text_char(&name, ',');
        if (axis != NULL && axis[0] != '\0')
            wf_text_add(&name, "%s", axis);
        else
            wf_text_add(&name, "%d", a);
    }
    status = wf_text_status(&name);
    if (status == WEFT_OK) status = number_of(b->program, name.data, out);
    wf_text_free(&name);
    return status;
}

/* ---- nodes ---- */

/* Bytes of the results of LINE on the first rank. */
static uint64_t bytes_of(const struct graph *g, const struct graph_line *line)
{
    uint64_t sum = 0;

    if (line->kind == GRAPH_OUTPUT) return 0;
    for (uint32_t i = 0; i < line->output_count; i++)
        if (line->outputs[i] >= 0)
            sum += weft_spec_shard_bytes(g->tensors[line->outputs[i]].spec,
                                         weft_mesh_rank_at(g->mesh, 0));
    return wf_mul_capped(sum, line->repeat);
}

static void add_input(struct builder *b, weft_node *node, int32_t line)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (b->program->inputs[b->used - 1 - i] == line) return;
    b->program->inputs[b->used++] = line;
    node->input_count++;
}

/* The nodes of LINE's inputs, and of all users of what it frees. */
static void add_inputs(struct builder *b, uint32_t index, weft_node *node)
{
    const struct graph_line *line = &b->graph->lines[index];

    node->inputs = b->program->inputs + b->used;
    for (uint32_t i = 0; i < line->input_count; i++)
        if (line->inputs[i] >= 0) add_input(b, node, b->line_of[line->inputs[i]]);
    for (uint32_t f = 0; f < line->free_count; f++) {
        add_input(b, node, b->line_of[line->frees[f]]);
        for (uint32_t i = 0; i < index; i++)
            for (uint32_t j = 0; j < b->graph->lines[i].input_count; j++)
                if (b->graph->lines[i].inputs[j] == line->frees[f]) {
                    add_input(b, node, (int32_t)i);
                    break;
                }
    }
}

/* Lines whose results stay: what an output line names, and what is given and not freed. */
static bool is_kept(const struct builder *b, uint32_t index)
{
    const struct graph_line *line = &b->graph->lines[index];

    for (uint32_t i = 0; i < line->output_count; i++) {
        if (line->outputs[i] < 0) continue;
        if (line->kind <= GRAPH_PARAM && b->graph->tensors[line->outputs[i]].freed == 0)
            return true;
    }
    return false;
}

static weft_status add_node(struct builder *b, uint32_t index)
{
    const struct graph_line *line = &b->graph->lines[index];
    weft_node *node = &b->program->nodes[index];
    uint64_t time = line->time_ns;

    if (time == GRAPH_UNKNOWN) time = line->kind == GRAPH_CALL ? 0 : line->cost_ns;
    if (line->kind == GRAPH_CALL) time += line->cost_ns;
    node->time = wf_mul_capped(time, line->repeat);
    node->alloc = line->alloc != GRAPH_UNKNOWN ? wf_mul_capped(line->alloc, line->repeat)
                                               : bytes_of(b->graph, line);
    if (line->kind == GRAPH_START) node->kind = WEFT_NODE_START;
    if (line->kind == GRAPH_WAIT) node->kind = WEFT_NODE_WAIT;
    if (line->kind <= GRAPH_PARAM) node->flags |= WEFT_NODE_GIVEN;
    if (is_kept(b, index)) node->flags |= WEFT_NODE_KEPT;
    WF_TRY(find_comm(b, line, &node->comm));
    if (line->kind == GRAPH_WAIT) node->comm = -1;
    if (line->kind == GRAPH_START && node->comm < 0)
        return wf_fail(WEFT_ERR_INVALID, "graph line %u: the start moves nothing", line->number);
    add_inputs(b, index, node);
    if (line->kind == GRAPH_OUTPUT)
        b->program->nodes[b->line_of[line->inputs[0]]].flags |= WEFT_NODE_KEPT;
    return WEFT_OK;
}

static size_t count_inputs(const struct graph *g)
{
    size_t count = 1;

    for (uint32_t i = 0; i < g->line_count; i++)
        count += g->lines[i].input_count + (size_t)g->lines[i].free_count * (g->line_count + 1);
    return count;
}

static weft_status build(struct builder *b)
{
    const struct graph *g = b->graph;
    struct program *p = b->program;

    p->nodes = wf_calloc(g->line_count, sizeof *p->nodes);
    p->inputs = wf_alloc(count_inputs(g) * sizeof *p->inputs);
    if (p->nodes == NULL || p->inputs == NULL)
        return wf_fail_memory(g->line_count * sizeof *p->nodes);
    for (uint32_t i = 0; i < g->line_count; i++)
        for (uint32_t j = 0; j < g->lines[i].output_count; j++)
            if (g->lines[i].outputs[j] >= 0) b->line_of[g->lines[i].outputs[j]] = (int32_t)i;
    for (uint32_t i = 0; i < g->line_count; i++)
        WF_TRY(add_node(b, i));
    return WEFT_OK;
}

weft_status program_create(const struct graph *graph, struct program *out)
{
    struct builder b = {.program = out, .graph = graph};
    weft_status status;

    *out = (struct program){.graph = graph};
    b.line_of = wf_calloc((size_t)graph->tensor_count + 1, sizeof *b.line_of);
    status = b.line_of != NULL ? build(&b) : wf_fail_memory(graph->tensor_count);
    wf_free(b.line_of);
    return status;
}

void program_free(struct program *program)
{
    for (int32_t i = 0; i < program->comm_count; i++)
        wf_free(program->comms[i]);
    wf_free(program->comms);
    wf_free(program->nodes);
    wf_free(program->inputs);
    *program = (struct program){0};
}
