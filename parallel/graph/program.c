/* program.c - the nodes of a graph's lines. */
#include "graph/graph.h"

#include <string.h>

struct builder {
    struct wf_program *program;
    const weft_graph *graph;
    int32_t *line_of;  /* by tensor: the index of the line that defines it */
    int32_t *last_use; /* by tensor: its last use, 1 + the index of an input; 0: none */
    int32_t *next_use; /* by input: the use before, as in last_use */
    int32_t *user;     /* by input: the index of its line */
    int32_t *noted;    /* by line: 1 + the last line of which it was made an input */
    size_t used;       /* entries of `inputs` */
};

/* ---- communicators ---- */

/* The number of the communicator NAME. */
static weft_status number_of(struct wf_program *p, const char *name, int32_t *out)
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
    weft_plan_step_info step = {.struct_size = sizeof step};
    uint32_t axes = 0;

    for (uint32_t i = 0; plan != NULL && weft_plan_step_get(plan, i, &step) == WEFT_OK; i++)
        axes |= step.axes;
    return axes;
}

/* The communicator of LINE: the one its clause names, or that of the axes of its moves; -1: none.
 */
static weft_status find_comm(const struct builder *b, const struct wf_graph_line *line,
                             int32_t *out)
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
static uint64_t bytes_of(const weft_graph *g, const struct wf_graph_line *line)
{
    uint64_t sum = 0;

    if (line->kind == WF_GRAPH_OUTPUT) return 0;
    for (uint32_t i = 0; i < line->output_count; i++)
        if (line->outputs[i] >= 0)
            sum += weft_spec_shard_bytes(g->tensors[line->outputs[i]].spec,
                                         weft_mesh_rank_at(g->mesh, 0));
    return wf_mul_capped(sum, line->repeat);
}

/* LINE is an input of node INDEX. */
static void add_input(struct builder *b, uint32_t index, int32_t line)
{
    if (b->noted[line] == (int32_t)index + 1) return;
    b->noted[line] = (int32_t)index + 1;
    b->program->inputs[b->used++] = line;
    b->program->nodes[index].input_count++;
}

/* A line that frees TENSOR needs all users of TENSOR before it. */
static weft_status add_freed(struct builder *b, uint32_t index, int32_t tensor)
{
    const struct wf_graph_tensor *t = &b->graph->tensors[tensor];

    if (t->started)
        return wf_fail(WEFT_ERR_INVALID,
                       "graph line %u: %.100s is started; free the result of its wait",
                       b->graph->lines[index].number, t->name);
    add_input(b, index, b->line_of[tensor]);
    for (int32_t use = b->last_use[tensor]; use != 0; use = b->next_use[use - 1])
        if (b->user[use - 1] != (int32_t)index) add_input(b, index, b->user[use - 1]);
    return WEFT_OK;
}

static weft_status add_inputs(struct builder *b, uint32_t index)
{
    const struct wf_graph_line *line = &b->graph->lines[index];

    b->program->nodes[index].inputs = b->program->inputs + b->used;
    for (uint32_t i = 0; i < line->input_count; i++)
        if (line->inputs[i] >= 0) add_input(b, index, b->line_of[line->inputs[i]]);
    for (uint32_t i = 0; i < line->free_count; i++)
        WF_TRY(add_freed(b, index, line->frees[i]));
    return WEFT_OK;
}

/* Lines whose results stay: what an output line names, and what is given and not freed. */
static bool is_kept(const struct builder *b, uint32_t index)
{
    const struct wf_graph_line *line = &b->graph->lines[index];

    for (uint32_t i = 0; i < line->output_count; i++) {
        if (line->outputs[i] < 0) continue;
        if (line->kind <= WF_GRAPH_PARAM && b->graph->tensors[line->outputs[i]].freed == 0)
            return true;
    }
    return false;
}

static weft_status add_node(struct builder *b, uint32_t index)
{
    const struct wf_graph_line *line = &b->graph->lines[index];
    weft_reorder_node *node = &b->program->nodes[index];
    uint64_t time = line->time_ns;

    if (time == WF_GRAPH_UNKNOWN) time = line->kind == WF_GRAPH_CALL ? 0 : line->cost_ns;
    if (line->kind == WF_GRAPH_CALL) time += line->cost_ns;
    node->time = wf_mul_capped(time, line->repeat);
    node->alloc = line->alloc != WF_GRAPH_UNKNOWN ? wf_mul_capped(line->alloc, line->repeat)
                                                  : bytes_of(b->graph, line);
    if (line->kind == WF_GRAPH_START) node->kind = WEFT_REORDER_NODE_START;
    if (line->kind == WF_GRAPH_WAIT) node->kind = WEFT_REORDER_NODE_WAIT;
    if (line->kind <= WF_GRAPH_PARAM) node->flags |= WEFT_REORDER_NODE_GIVEN;
    if (is_kept(b, index)) node->flags |= WEFT_REORDER_NODE_KEPT;
    WF_TRY(find_comm(b, line, &node->comm));
    if (line->kind == WF_GRAPH_WAIT) node->comm = -1;
    if (line->kind == WF_GRAPH_START && node->comm < 0)
        return wf_fail(WEFT_ERR_INVALID, "graph line %u: the start moves nothing", line->number);
    WF_TRY(add_inputs(b, index));
    if (line->kind == WF_GRAPH_OUTPUT)
        b->program->nodes[b->line_of[line->inputs[0]]].flags |= WEFT_REORDER_NODE_KEPT;
    return WEFT_OK;
}

static size_t count_inputs(const weft_graph *g)
{
    size_t count = 1;

    for (uint32_t i = 0; i < g->line_count; i++)
        count += g->lines[i].input_count;
    return count;
}

/* List the uses of each tensor. */
static void find_uses(struct builder *b)
{
    const weft_graph *g = b->graph;
    int32_t count = 0;

    for (uint32_t i = 0; i < g->line_count; i++) {
        for (uint32_t j = 0; j < g->lines[i].output_count; j++)
            if (g->lines[i].outputs[j] >= 0) b->line_of[g->lines[i].outputs[j]] = (int32_t)i;
        for (uint32_t j = 0; j < g->lines[i].input_count; j++) {
            int32_t tensor = g->lines[i].inputs[j];
            if (tensor < 0) continue;
            b->user[count] = (int32_t)i;
            b->next_use[count] = b->last_use[tensor];
            b->last_use[tensor] = ++count;
        }
    }
}

static weft_status build(struct builder *b)
{
    const weft_graph *g = b->graph;
    struct wf_program *p = b->program;
    size_t inputs = count_inputs(g), tensors = (size_t)g->tensor_count + 1;

    p->nodes = wf_calloc((size_t)g->line_count + 1, sizeof *p->nodes);
    /* a tensor is freed once, so frees add no more than all inputs and one for each tensor */
    p->inputs = wf_alloc((2 * inputs + tensors) * sizeof *p->inputs);
    b->line_of = wf_calloc(tensors, sizeof *b->line_of);
    b->last_use = wf_calloc(tensors, sizeof *b->last_use);
    b->next_use = wf_calloc(inputs, sizeof *b->next_use);
    b->user = wf_calloc(inputs, sizeof *b->user);
    b->noted = wf_calloc((size_t)g->line_count + 1, sizeof *b->noted);
    if (p->nodes == NULL || p->inputs == NULL || b->line_of == NULL || b->last_use == NULL ||
        b->next_use == NULL || b->user == NULL || b->noted == NULL)
        return wf_fail_memory(inputs * sizeof *p->inputs);
    find_uses(b);
    for (uint32_t i = 0; i < g->line_count; i++)
        WF_TRY(add_node(b, i));
    return WEFT_OK;
}

weft_status wf_program_create(const weft_graph *g, struct wf_program **out)
{
    struct wf_program *program = wf_calloc(1, sizeof *program);
    struct builder b = {.program = program, .graph = g};
    weft_status status;

    if (program == NULL) return wf_fail_memory(sizeof *program);
    status = build(&b);
    wf_free(b.line_of);
    wf_free(b.last_use);
    wf_free(b.next_use);
    wf_free(b.user);
    wf_free(b.noted);
    if (status == WEFT_OK)
        *out = program;
    else
        wf_program_free(program);
    return status;
}

void wf_program_free(struct wf_program *program)
{
    if (program == NULL) return;
    for (int32_t i = 0; i < program->comm_count; i++)
        wf_free(program->comms[i]);
    wf_free(program->comms);
    wf_free(program->nodes);
    wf_free(program->inputs);
    wf_free(program);
}
