/* check.c - the layouts of a graph, line by line.
 *
 * Each line takes its inputs in the layouts that the lines above leave, and the cheapest strategy
 * with the moves of its inputs. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

struct checker {
    weft_graph *graph;
    weft_op_options options;
    bool strict;
};

static weft_status fail_line(const struct wf_graph_line *line, weft_status status)
{
    return wf_fail_context(status, "graph line %u", line->number);
}

/* ---- layouts that the text demands ---- */

/* Append placement INDEX of PLACEMENTS; false: there are fewer. */
static bool add_placement(const char *placements, int32_t index, struct wf_text *out)
{
    int depth = 0;

    for (const char *at = placements; *at != '\0'; at++) {
        depth += (*at == '(') - (*at == ')');
        if (*at == ',' && depth == 0)
            index--;
        else if (index == 0)
            wf_text_char(out, *at);
        if (index < 0) break;
    }
    return index <= 0;
}

/* SPEC, which is replaced, with the layout that the clauses `keep` demand of TENSOR.  WRITTEN: the
 * line of the tensor writes its layout, which must then be the same. */
static weft_status apply_keeps(const weft_graph *g, int32_t tensor, bool written, weft_spec **spec)
{
    uint32_t kept[WEFT_MAX_AXES] = {0}; /* the line that gives the placement on an axis */

    for (const struct wf_graph_keep *k = g->keeps; k != NULL; k = k->next) {
        struct wf_text with = {0}, before = {0};
        weft_spec *changed = NULL;
        weft_status status;
        int32_t axis;
        if (k->tensor != (uint32_t)tensor) continue;
        status = weft_mesh_find_axis(g->mesh, k->axis, &axis);
        wf_text_placements(&before, *spec);
        if (status == WEFT_OK) status = wf_text_status(&before);
        for (int32_t a = 0; status == WEFT_OK && a < weft_mesh_axes(g->mesh); a++) {
            wf_text_add(&with, "%s", a > 0 ? "," : "");
            if (a == axis)
                wf_text_add(&with, "%s", k->placement);
            else
                (void)add_placement(before.data, a, &with);
        }
        if (status == WEFT_OK) status = wf_text_status(&with);
        if (status == WEFT_OK) status = weft_spec_with(*spec, with.data, &changed);
        wf_text_free(&with);
        wf_text_free(&before);
        if (status != WEFT_OK)
            return wf_fail_context(status, "graph line %u: keep %.100s", k->line,
                                   g->tensors[tensor].name);
        if ((written || kept[axis] != 0) && changed != *spec) {
            weft_spec_release(&changed);
            return wf_fail(WEFT_ERR_INVALID,
                           "graph line %u: keep %.100s on %.50s=%.100s contradicts its layout, "
                           "which line %u writes",
                           k->line, g->tensors[tensor].name, k->axis, k->placement,
                           kept[axis] != 0 ? kept[axis] : g->tensors[tensor].line);
        }
        kept[axis] = k->line;
        weft_spec_release(spec);
        *spec = changed;
    }
    return WEFT_OK;
}

/* The spec of an input or a parameter.  Without placements every rank has all of it. */
static weft_status declare_tensor(struct checker *c, struct wf_graph_line *line)
{
    weft_graph *g = c->graph;
    struct wf_graph_tensor *t = &g->tensors[line->outputs[0]];
    const char *end = strchr(line->spec, ']');
    struct wf_text text = {0};
    weft_status status;

    if (g->styles != NULL && end != NULL && end[1] != '\0')
        return fail_line(line, wf_fail(WEFT_ERR_INVALID,
                                       "with --style, placements are those of the styles; the line "
                                       "writes%.100s",
                                       end + 1));
    wf_text_add(&text, "%s", line->spec);
    for (int32_t a = 0; end != NULL && end[1] == '\0' && a < weft_mesh_axes(g->mesh); a++)
        wf_text_add(&text, "%s", a > 0 ? ",R" : " R");
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = weft_spec_parse(g->mesh, text.data, &t->spec);
    wf_text_free(&text);
    if (status != WEFT_OK) return fail_line(line, status);
    WF_TRY(wf_graph_style(g, line->outputs[0], line->kind, &t->spec));
    return apply_keeps(g, line->outputs[0], end == NULL || end[1] != '\0', &t->spec);
}

/* ---- moves ---- */

static void count_plan(const weft_plan *plan, struct wf_graph_line *line)
{
    weft_plan_info info = {.struct_size = sizeof info};

    if (plan == NULL || weft_plan_get(plan, &info) != WEFT_OK || info.steps == 0) return;
    line->moves++;
    line->bytes = wf_add_capped(line->bytes, info.bytes_received_max);
    line->cost_ns = wf_add_capped(line->cost_ns, info.cost_ns);
}

/* Move result INDEX of LINE, which is TENSOR, to TARGET, which is taken over. */
static weft_status move_tensor(const struct checker *c, struct wf_graph_line *line, uint32_t index,
                               struct wf_graph_tensor *tensor, weft_spec *target)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = c->options.costs};
    weft_status status = WEFT_OK;

    if (target != tensor->spec && line->after == NULL) {
        size_t bytes = line->output_count * sizeof(weft_plan *);
        line->after = wf_graph_alloc(c->graph, bytes);
        if (line->after == NULL) status = wf_fail_memory(bytes);
    }
    if (target != tensor->spec && status == WEFT_OK)
        status = weft_plan_create(tensor->spec, target, &options, &line->after[index]);
    if (status == WEFT_OK) {
        if (line->after != NULL) count_plan(line->after[index], line);
        weft_spec_release(&tensor->spec);
        tensor->spec = target;
        return WEFT_OK;
    }
    weft_spec_release(&target);
    return fail_line(line, status);
}

/* Refuse LINE if the check is strict. */
static weft_status refuse_move(const struct checker *c, struct wf_graph_line *line,
                               const char *reason)
{
    if (!c->strict || line->error != NULL) return WEFT_OK;
    line->error = wf_strdup(reason);
    if (line->error == NULL) return wf_fail_memory(strlen(reason) + 1);
    c->graph->refused++;
    return WEFT_OK;
}

/* The move that `to`, `keep`, a style or an output with placements demands of TENSOR.  Moves by
 * `to` and by styles are written by the user, so a strict check accepts them. */
static weft_status demand_layout(const struct checker *c, struct wf_graph_line *line,
                                 uint32_t index)
{
    int32_t tensor = line->outputs[index];
    struct wf_graph_tensor *t = &c->graph->tensors[tensor];
    weft_spec *target = weft_spec_retain(t->spec);
    uint32_t before = line->moves;
    char reason[256];

    if (line->spec != NULL) {
        weft_status status;
        weft_spec_release(&target);
        status = weft_spec_with(t->spec, line->spec, &target);
        if (status != WEFT_OK) return fail_line(line, status);
    }
    if (line->kind != WF_GRAPH_OUTPUT) {
        weft_status status = WEFT_OK;
        if (line->spec == NULL) status = wf_graph_style(c->graph, tensor, line->kind, &target);
        if (status == WEFT_OK) status = apply_keeps(c->graph, tensor, line->spec != NULL, &target);
        if (status != WEFT_OK) {
            weft_spec_release(&target);
            return status;
        }
    }
    WF_TRY(move_tensor(c, line, index, t, target));
    if (line->moves == before ||
        (line->kind != WF_GRAPH_OUTPUT && (line->spec != NULL || c->graph->styles != NULL)))
        return WEFT_OK;
    snprintf(reason, sizeof reason, "%.100s must be moved to the layout that the graph demands",
             t->name);
    return refuse_move(c, line, reason);
}

/* ---- starts ---- */

/* Only a wait may use the result of a start. */
static weft_status check_started(const struct checker *c, const struct wf_graph_line *line)
{
    for (uint32_t i = 0; i < line->input_count; i++) {
        bool waits = line->kind == WF_GRAPH_WAIT && i == 0;
        const struct wf_graph_tensor *t =
            line->inputs[i] >= 0 ? &c->graph->tensors[line->inputs[i]] : NULL;
        if (t == NULL || t->started == waits) continue;
        return fail_line(line,
                         wf_fail(WEFT_ERR_INVALID,
                                 waits            ? "%.100s is not the result of a start"
                                 : t->waited == 0 ? "%.100s is started, and not waited for yet"
                                                  : "%.100s is started; use the result of its wait",
                                 t->name));
    }
    return WEFT_OK;
}

/* A start has one wait. */
static weft_status note_wait(const struct wf_graph_line *line, struct wf_graph_tensor *started)
{
    if (started->waited != 0)
        return fail_line(line, wf_fail(WEFT_ERR_INVALID, "line %u waits for %.100s already",
                                       started->waited, started->name));
    started->waited = line->number;
    return WEFT_OK;
}

static weft_status check_waits(const weft_graph *g)
{
    for (uint32_t i = 0; i < g->line_count; i++) {
        const struct wf_graph_line *line = &g->lines[i];
        if (line->kind == WF_GRAPH_START && g->tensors[line->outputs[0]].waited == 0)
            return fail_line(line, wf_fail(WEFT_ERR_INVALID, "no line waits for %.100s",
                                           g->tensors[line->outputs[0]].name));
    }
    return WEFT_OK;
}

/* ---- calls ---- */

static weft_status fill_call(const struct checker *c, const struct wf_graph_line *line,
                             const weft_spec **inputs, weft_op_call *out)
{
    for (uint32_t i = 0; i < line->input_count; i++)
        inputs[i] = line->inputs[i] >= 0 ? c->graph->tensors[line->inputs[i]].spec : NULL;
    *out = (weft_op_call){.struct_size = sizeof *out,
                          .name = line->op,
                          .inputs = inputs,
                          .input_count = line->input_count,
                          .attr_count = line->attr_count,
                          .attr_size = sizeof(weft_op_attr),
                          .attrs = line->attrs,
                          .output_size = sizeof *line->given,
                          .outputs = line->given,
                          .output_count = line->given_count,
                          .flags = line->mixed ? WEFT_OP_CALL_MIXED_DTYPES : 0,
                          .mesh = c->graph->mesh};
    return WEFT_OK;
}

/* Give the names of LINE the specs of the results. */
static weft_status take_results(const struct checker *c, struct wf_graph_line *line)
{
    weft_op_choice_info info = {.struct_size = sizeof info};

    WF_TRY(weft_op_choice_get(line->choice, &info));
    if (info.outputs < line->output_count)
        return fail_line(line, wf_fail(WEFT_ERR_INVALID,
                                       "operator %.100s has %zu output%s, and the line names %u",
                                       line->op, info.outputs, WF_PLURAL(info.outputs),
                                       line->output_count));
    for (uint32_t i = 0; i < line->output_count; i++) {
        if (line->outputs[i] < 0) continue;
        c->graph->tensors[line->outputs[i]].spec =
            weft_spec_retain(weft_op_choice_output(line->choice, i));
    }
    return WEFT_OK;
}

/* The cheapest strategy of CALL, which is LINE.  Inputs that are legal as they are stay.  Otherwise
 * the moves of the results count: a clause `to` says where a result is moved, and other results
 * that are partial have to be reduced some time. */
static weft_status propose_call(const struct checker *c, struct wf_graph_line *line,
                                const weft_op_call *call)
{
    weft_op_options options = c->options;
    const weft_spec *wanted[1] = {NULL};
    weft_op_choice *first = NULL;
    weft_spec *target = NULL;
    weft_status status;

    options.flags = WEFT_OP_FLAG_EXACT;
    status = weft_op_check(call, &options, &line->choice);
    if (status == WEFT_OK || status == WEFT_ERR_NO_MEMORY) return status;
    options.flags = WEFT_OP_FLAG_PRICE_PARTIALS;
    if (line->spec == NULL || line->output_count != 1)
        return weft_op_propose(call, &options, &line->choice);
    status = weft_op_propose(call, &options, &first);
    if (status != WEFT_OK) return status;
    status = weft_spec_with(weft_op_choice_output(first, 0), line->spec, &target);
    weft_op_choice_release(&first);
    if (status != WEFT_OK) return status;
    wanted[0] = target;
    options.wanted_outputs = wanted;
    options.wanted_output_count = 1;
    status = weft_op_propose(call, &options, &line->choice);
    weft_spec_release(&target);
    return status;
}

static weft_status check_call(const struct checker *c, struct wf_graph_line *line)
{
    const weft_spec *inputs[WF_GRAPH_INPUTS];
    weft_op_choice *exact = NULL;
    weft_op_options options = c->options;
    weft_op_call call;
    weft_status status;

    WF_TRY(check_started(c, line));
    WF_TRY(fill_call(c, line, inputs, &call));
    status = propose_call(c, line, &call);
    if (status != WEFT_OK) return fail_line(line, status);
    for (uint32_t i = 0; i < line->input_count; i++)
        count_plan(weft_op_choice_move(line->choice, i), line);
    if (c->strict && line->moves > 0) {
        options.flags = WEFT_OP_FLAG_EXACT;
        status = weft_op_check(&call, &options, &exact);
        weft_op_choice_release(&exact);
        if (status == WEFT_ERR_NO_MEMORY) return status;
        WF_TRY(refuse_move(c, line,
                           status != WEFT_OK ? weft_last_error() : "the inputs must be moved"));
    }
    return take_results(c, line);
}

/* Moves, starts and waits are written in one way each. */
static weft_status check_form(const struct checker *c, const struct wf_graph_line *line)
{
    static const char *const forms[] = {[WF_GRAPH_MOVE] = "a move is written y = move(x) ; to S(0)",
                                        [WF_GRAPH_START] =
                                            "a start is written h = start(x) ; to S(0)",
                                        [WF_GRAPH_WAIT] = "a wait is written y = wait(h)"};
    bool guards = line->kind == WF_GRAPH_START; /* inputs behind the first must exist only */

    if (line->kind == WF_GRAPH_OUTPUT ||
        (line->attr_count == 0 && line->input_count >= 1 && (line->input_count == 1 || guards) &&
         line->output_count == 1 && line->inputs[0] >= 0 && line->outputs[0] >= 0 &&
         (line->kind == WF_GRAPH_WAIT ? line->spec == NULL
                                      : line->spec != NULL || c->graph->styles != NULL)))
        return WEFT_OK;
    return fail_line(line, wf_fail(WEFT_ERR_INVALID, "%s", forms[line->kind]));
}

/* The result of a move or of an output line is its input, until a layout is demanded. */
static weft_status copy_input(const struct checker *c, struct wf_graph_line *line)
{
    WF_TRY(check_form(c, line));
    WF_TRY(check_started(c, line));
    if (line->kind == WF_GRAPH_WAIT) WF_TRY(note_wait(line, &c->graph->tensors[line->inputs[0]]));
    c->graph->tensors[line->outputs[0]].spec =
        weft_spec_retain(c->graph->tensors[line->inputs[0]].spec);
    c->graph->tensors[line->outputs[0]].started = line->kind == WF_GRAPH_START;
    return WEFT_OK;
}

static weft_status check_line(struct checker *c, struct wf_graph_line *line)
{
    if (line->kind == WF_GRAPH_INPUT || line->kind == WF_GRAPH_PARAM)
        return declare_tensor(c, line);
    if (line->kind == WF_GRAPH_CALL)
        WF_TRY(check_call(c, line));
    else
        WF_TRY(copy_input(c, line));
    for (uint32_t i = 0; i < line->output_count; i++) {
        if (line->spec != NULL && (line->output_count > 1 || line->outputs[i] < 0))
            return fail_line(line, wf_fail(WEFT_ERR_INVALID,
                                           "`to` needs a line with one result, which has a name"));
        if (line->outputs[i] >= 0) WF_TRY(demand_layout(c, line, i));
    }
    return WEFT_OK;
}

weft_status wf_graph_check_lines(weft_graph *g, bool strict)
{
    struct checker c = {.graph = g,
                        .options = {.struct_size = sizeof c.options, .costs = g->costs},
                        .strict = strict};

    for (uint32_t i = 0; i < g->line_count; i++) {
        struct wf_graph_line *line = &g->lines[i];
        WF_TRY(check_line(&c, line));
        g->moves += line->moves;
        g->bytes = wf_add_capped(g->bytes, wf_mul_capped(line->bytes, line->repeat));
        g->cost_ns = wf_add_capped(g->cost_ns, wf_mul_capped(line->cost_ns, line->repeat));
    }
    WF_TRY(check_waits(g));
    return wf_graph_count_held(g);
}
