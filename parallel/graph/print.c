/* print.c - a checked graph as text and as JSON. */
#include "graph/graph.h"

#include <string.h>

static const char *name_of(const weft_graph *g, int32_t tensor)
{
    return tensor >= 0 ? g->tensors[tensor].name : "_";
}

/* The spec of result INDEX of LINE, which may have no name. */
static const weft_spec *spec_of(const weft_graph *g, const struct wf_graph_line *line,
                                uint32_t index)
{
    return line->outputs[index] >= 0 ? g->tensors[line->outputs[index]].spec
                                     : weft_op_choice_output(line->choice, index);
}

/* Call ADD for each move of LINE: of its inputs, then of its results. */
static weft_status each_move(const weft_graph *g, const struct wf_graph_line *line,
                             weft_status (*add)(const char *, const weft_plan_info *, void *),
                             void *argument)
{
    weft_plan_info info = {.struct_size = sizeof info};

    for (uint32_t i = 0; line->choice != NULL && i < line->input_count; i++) {
        const weft_plan *plan = weft_op_choice_move(line->choice, i);
        if (plan == NULL || weft_plan_get(plan, &info) != WEFT_OK) continue;
        WF_TRY(add(name_of(g, line->inputs[i]), &info, argument));
    }
    for (uint32_t i = 0; line->after != NULL && i < line->output_count; i++) {
        if (line->after[i] == NULL || weft_plan_get(line->after[i], &info) != WEFT_OK) continue;
        WF_TRY(add(name_of(g, line->outputs[i]), &info, argument));
    }
    return WEFT_OK;
}

/* ---- text ---- */

static weft_status add_text_move(const char *name, const weft_plan_info *info, void *argument)
{
    struct wf_text *out = argument;

    wf_text_add(out, "        move %s from ", name);
    wf_text_placements(out, info->from);
    wf_text_add(out, " to ");
    wf_text_placements(out, info->to);
    wf_text_add(out, ": ");
    wf_text_bytes(out, info->bytes_received_max);
    wf_text_add(out, ", ");
    wf_text_time(out, info->cost_ns);
    wf_text_char(out, '\n');
    return WEFT_OK;
}

static weft_status add_line(const weft_graph *g, const struct wf_graph_line *line,
                            struct wf_text *out)
{
    static const char *const words[] = {"input", "param", "output"};

    wf_text_add(out, "%5u  ", line->number);
    if (line->kind <= WF_GRAPH_OUTPUT) {
        const struct wf_graph_tensor *t = &g->tensors[line->outputs[0]];
        wf_text_add(out, "%s %s: ", words[line->kind], t->name);
        wf_text_spec(out, t->spec);
    } else {
        for (uint32_t i = 0; i < line->output_count; i++) {
            wf_text_add(out, "%s%s: ", i > 0 ? ", " : "", name_of(g, line->outputs[i]));
            wf_text_spec(out, spec_of(g, line, i));
        }
        wf_text_add(out, " = %s(", line->op);
        for (uint32_t i = 0; i < line->input_count; i++)
            wf_text_add(out, "%s%s", i > 0 ? ", " : "",
                        line->inputs[i] >= 0 ? name_of(g, line->inputs[i]) : "-");
        wf_text_char(out, ')');
    }
    if (line->repeat > 1) wf_text_add(out, "  x%u", line->repeat);
    wf_text_char(out, '\n');
    WF_TRY(each_move(g, line, add_text_move, out));
    if (line->error != NULL) wf_text_add(out, "        error: %s\n", line->error);
    return WEFT_OK;
}

weft_status wf_graph_add_text(const weft_graph *g, struct wf_text *out)
{
    for (uint32_t i = 0; i < g->line_count; i++)
        WF_TRY(add_line(g, &g->lines[i], out));
    wf_text_add(out, "inputs and parameters: ");
    wf_text_bytes(out, g->held);
    wf_text_add(out, " on the rank that holds most");
    if (g->memory > 0) {
        wf_text_add(out, "; the limit is ");
        wf_text_bytes(out, (uint64_t)g->memory);
    }
    wf_text_add(out, "\nmoves: %u, ", g->moves);
    wf_text_bytes(out, g->bytes);
    wf_text_add(out, " received by a rank, ");
    wf_text_time(out, g->cost_ns);
    wf_text_add(out, ", repeats included\n");
    if (g->refused > 0)
        wf_text_add(out, g->refused == 1 ? "%u line needs moves\n" : "%u lines need moves\n",
                    g->refused);
    return wf_text_status(out);
}

/* ---- JSON ---- */

static void json_spec(struct wf_json *json, const char *key, const weft_spec *spec)
{
    struct wf_text text = {0};

    if (spec != NULL) wf_text_spec(&text, spec);
    wf_json_string(json, key, text.data);
    json->out->failed = json->out->failed || text.failed;
    wf_text_free(&text);
}

static weft_status add_json_move(const char *name, const weft_plan_info *info, void *argument)
{
    struct wf_json *json = argument;

    wf_json_begin(json, NULL, '{');
    wf_json_string(json, "tensor", name);
    json_spec(json, "from", info->from);
    json_spec(json, "to", info->to);
    wf_json_uint(json, "bytes", info->bytes_received_max);
    wf_json_uint(json, "cost_ns", info->cost_ns);
    wf_json_end(json, '}');
    return WEFT_OK;
}

static weft_status json_line(const weft_graph *g, const struct wf_graph_line *line,
                             struct wf_json *json)
{
    static const char *const words[] = {"input", "param", "output"};

    wf_json_begin(json, NULL, '{');
    wf_json_uint(json, "line", line->number);
    wf_json_string(json, "op", line->kind <= WF_GRAPH_OUTPUT ? words[line->kind] : line->op);
    wf_json_uint(json, "repeat", line->repeat);
    wf_json_begin(json, "inputs", '[');
    for (uint32_t i = 0; i < line->input_count; i++)
        wf_json_string(json, NULL, line->inputs[i] >= 0 ? name_of(g, line->inputs[i]) : NULL);
    wf_json_end(json, ']');
    wf_json_begin(json, "outputs", '[');
    for (uint32_t i = 0; i < line->output_count; i++) {
        wf_json_begin(json, NULL, '{');
        wf_json_string(json, "name", name_of(g, line->outputs[i]));
        json_spec(json, "spec", spec_of(g, line, i));
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
    wf_json_begin(json, "moves", '[');
    WF_TRY(each_move(g, line, add_json_move, json));
    wf_json_end(json, ']');
    wf_json_uint(json, "bytes", line->bytes);
    wf_json_uint(json, "cost_ns", line->cost_ns);
    wf_json_string(json, "error", line->error);
    wf_json_end(json, '}');
    return WEFT_OK;
}

weft_status wf_graph_add_json(const weft_graph *g, struct wf_text *out)
{
    struct wf_json json = {.out = out};
    struct wf_text mesh = {0};

    wf_text_mesh(&mesh, g->mesh);
    wf_json_begin(&json, NULL, '{');
    wf_json_string(&json, "mesh", mesh.data);
    out->failed = out->failed || mesh.failed;
    wf_text_free(&mesh);
    wf_json_begin(&json, "lines", '[');
    for (uint32_t i = 0; i < g->line_count; i++)
        WF_TRY(json_line(g, &g->lines[i], &json));
    wf_json_end(&json, ']');
    wf_json_uint(&json, "held_bytes", g->held);
    if (g->memory > 0)
        wf_json_int(&json, "memory_limit", g->memory);
    else
        wf_json_null(&json, "memory_limit");
    wf_json_uint(&json, "moves", g->moves);
    wf_json_uint(&json, "bytes", g->bytes);
    wf_json_uint(&json, "cost_ns", g->cost_ns);
    wf_json_uint(&json, "refused", g->refused);
    wf_json_bool(&json, "legal",
                 g->refused == 0 && (g->memory == 0 || g->held <= (uint64_t)g->memory));
    wf_json_end(&json, '}');
    wf_text_char(out, '\n');
    return wf_text_status(out);
}
