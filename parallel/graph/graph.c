/* graph.c - the functions of weft/graph.h. */
#include "graph/graph.h"

#include <string.h>

weft_status weft_graph_parse(const char *text, const weft_styles *styles, weft_graph **out)
{
    weft_graph *g;
    weft_status status;

    WF_TRY(wf_require(text, "weft_graph_parse: text"));
    if (styles != NULL) WF_TRY(wf_require_kind(styles, WF_KIND_STYLES, "weft_graph_parse: styles"));
    WF_TRY(wf_require(out, "weft_graph_parse: out"));
    g = wf_calloc(1, sizeof *g);
    if (g == NULL) return wf_fail_memory(sizeof *g);
    g->styles = wf_styles_retain(styles);
    status = wf_graph_read(text, g);
    if (status == WEFT_OK)
        *out = g;
    else
        weft_graph_release(&g);
    return status;
}

static weft_status check(weft_graph *g, const weft_graph_options *options)
{
    if (options->flags & ~(uint32_t)(WEFT_GRAPH_STRICT | WEFT_GRAPH_EVEN_BATCH))
        return wf_fail(WEFT_ERR_INVALID, "weft_graph_check: flags is %#x, with unknown bits",
                       options->flags);
    if (g->whole != NULL)
        return wf_fail(WEFT_ERR_INVALID, "weft_graph_check: the graph was checked before");
    if (options->costs != NULL)
        g->costs = weft_cost_table_retain(options->costs);
    else
        WF_TRY(weft_cost_table_open(NULL, &g->costs));
    WF_TRY(wf_graph_set_mesh(g, options->mesh));
    if (options->flags & WEFT_GRAPH_EVEN_BATCH) WF_TRY(wf_graph_check_batch(g));
    WF_TRY(wf_graph_check_lines(g, options->flags & WEFT_GRAPH_STRICT));
    g->checked = true;
    return WEFT_OK;
}

weft_status weft_graph_check(weft_graph *graph, const weft_graph_options *options)
{
    weft_graph_options given;

    WF_TRY(wf_require(graph, "weft_graph_check: graph"));
    memset(&given, 0, sizeof given);
    WF_TRY(wf_fail_named(wf_options_read("weft_graph_options", options, &given, sizeof given),
                         "weft_graph_check"));
    return check(graph, &given);
}

weft_status wf_graph_require_checked(const weft_graph *graph, const char *function)
{
    if (graph == NULL) return wf_fail_null(function, "graph");
    if (graph->checked) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: the graph is not checked (weft_graph_check)", function);
}

/* ---- properties ---- */

weft_status weft_graph_get(const weft_graph *graph, weft_graph_info *out)
{
    weft_graph_info info;

    WF_TRY(wf_require(graph, "weft_graph_get: graph"));
    WF_TRY(wf_require(out, "weft_graph_get: out"));
    memset(&info, 0, sizeof info);
    info.lines = graph->line_count;
    info.checked = graph->checked;
    if (graph->checked) {
        info.moves = graph->moves;
        info.refused = graph->refused;
        info.bytes = graph->bytes;
        info.cost_ns = graph->cost_ns;
        info.held = graph->held;
        info.memory_limit = (uint64_t)graph->memory;
    }
    return wf_info_write("weft_graph_info", &info, sizeof info, out);
}

/* The communicator of line INDEX, and the compute in a node of communication. */
static void describe_node(const weft_graph *g, size_t index, weft_graph_line_info *out)
{
    const struct wf_graph_line *line = &g->lines[index];
    int32_t comm = g->program != NULL ? g->program->nodes[index].comm : -1;

    if (comm < 0) return;
    out->comm = g->program->comms[comm];
    if (line->kind == WF_GRAPH_CALL && line->comm == NULL && line->time_ns != WF_GRAPH_UNKNOWN)
        out->inner_compute = wf_mul_capped(line->time_ns, line->repeat);
}

weft_status weft_graph_line_get(const weft_graph *graph, size_t index, weft_graph_line_info *out)
{
    static const char *const words[] = {"input", "param", "output"};
    weft_graph_line_info info;
    const struct wf_graph_line *line;

    WF_TRY(wf_require(graph, "weft_graph_line_get: graph"));
    WF_TRY(wf_require(out, "weft_graph_line_get: out"));
    if (index >= graph->line_count)
        return wf_fail(WEFT_ERR_INVALID, "weft_graph_line_get: line %zu; the graph has %u lines",
                       index, graph->line_count);
    line = &graph->lines[index];
    memset(&info, 0, sizeof info);
    info.number = line->number;
    info.repeat = line->repeat;
    info.op = line->kind <= WF_GRAPH_OUTPUT ? words[line->kind] : line->op;
    info.name = line->output_count > 0 && line->outputs[0] >= 0
                    ? graph->tensors[line->outputs[0]].name
                    : "_";
    describe_node(graph, index, &info);
    return wf_info_write("weft_graph_line_info", &info, sizeof info, out);
}

weft_status weft_graph_nodes(weft_graph *graph, size_t *count, const weft_reorder_node **out,
                             size_t node_size)
{
    static const char function[] = "weft_graph_nodes";

    WF_TRY(wf_require(count, "weft_graph_nodes: count"));
    WF_TRY(wf_require(out, "weft_graph_nodes: out"));
    WF_TRY(wf_graph_require_checked(graph, function));
    WF_TRY(wf_fail_named(wf_items_check("weft_reorder_node", node_size, sizeof **out), function));
    if (graph->program == NULL) WF_TRY(wf_program_create(graph, &graph->program));
    *out = graph->program->nodes;
    *count = graph->line_count;
    return WEFT_OK;
}

/* ---- texts ---- */

/* Write what ADD appends for GRAPH, if that is WEFT_OK. */
static weft_status print(const weft_graph *graph, const char *function,
                         weft_status (*add)(const weft_graph *, struct wf_text *), char *text,
                         size_t size, size_t *needed)
{
    struct wf_text printed = {0};
    weft_status status;

    WF_TRY(wf_graph_require_checked(graph, function));
    if (size > 0 && text == NULL) return wf_fail_null(function, "text");
    status = add(graph, &printed);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return status;
}

weft_status weft_graph_print(const weft_graph *graph, char *text, size_t size, size_t *needed)
{
    return print(graph, "weft_graph_print", wf_graph_add_text, text, size, needed);
}

weft_status weft_graph_json_print(const weft_graph *graph, char *text, size_t size, size_t *needed)
{
    return print(graph, "weft_graph_json_print", wf_graph_add_json, text, size, needed);
}

static weft_status require_styles(const weft_graph *graph, const char *function)
{
    if (graph == NULL) return wf_fail_null(function, "graph");
    if (graph->styles != NULL) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: the graph has no styles", function);
}

weft_status weft_graph_layout_print(const weft_graph *graph, char *text, size_t size,
                                    size_t *needed)
{
    static const char function[] = "weft_graph_layout_print";

    WF_TRY(require_styles(graph, function));
    return print(graph, function, wf_graph_add_layout, text, size, needed);
}

weft_status weft_graph_unmatched_print(const weft_graph *graph, const char *styles_text, char *text,
                                       size_t size, size_t *needed)
{
    static const char function[] = "weft_graph_unmatched_print";
    struct wf_text printed = {0};
    weft_status status;

    WF_TRY(require_styles(graph, function));
    WF_TRY(wf_require(styles_text, "weft_graph_unmatched_print: styles_text"));
    if (size > 0) WF_TRY(wf_require(text, "weft_graph_unmatched_print: text"));
    status = wf_graph_add_unmatched(graph, styles_text, &printed);
    if (status == WEFT_OK) return wf_text_copy_out(&printed, text, size, needed);
    wf_text_free(&printed);
    return status;
}
