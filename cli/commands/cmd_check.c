/* cmd_check.c - `weft check FILE`: the layouts and moves of a graph of operators. */
#include "common/cli.h"

#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* Write the layout file of GRAPH's parameters to the file that --layout-out names, if it does. */
static int write_layout(const struct cli_command *command, const struct cli_args *args,
                        const struct graph *graph)
{
    const char *path = cli_value(command, args, "layout-out");
    struct wf_text text = {0};
    weft_status status;

    if (path == NULL) return CLI_OK;
    status = graph_add_layout(graph, &text);
    if (status == WEFT_OK) return cli_print_to(command, path, &text);
    wf_text_free(&text);
    return cli_fail(command, status);
}

/* Styles, and the text that they were read from. */
struct styles {
    weft_styles *list; /* NULL: none are given */
    struct wf_text text;
};

static weft_status tell_unmatched(const struct graph *graph, const struct styles *styles)
{
    struct wf_text out = {0};
    weft_status status = WEFT_OK;

    if (styles->list != NULL)
        status = graph_add_unmatched(graph, styles->list, styles->text.data, &out);
    if (status == WEFT_OK && out.data != NULL) fputs(out.data, stderr);
    wf_text_free(&out);
    return status;
}

static int check(const struct cli_command *command, const struct cli_args *args, const char *text,
                 const struct styles *styles)
{
    bool json = cli_has(command, args, "json"), strict = cli_has(command, args, "strict"), fits;
    struct wf_text out = {0};
    weft_cost_table *costs = NULL;
    struct graph graph;
    weft_status status;
    int exit_code;

    memset(&graph, 0, sizeof graph);
    status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    if (status == WEFT_OK) status = graph_read(text, styles->list, &graph);
    if (status == WEFT_OK) status = tell_unmatched(&graph, styles);
    if (status == WEFT_OK) status = graph_check(&graph, costs, strict);
    if (status == WEFT_OK)
        status = json ? graph_add_json(&graph, &out) : graph_add_text(&graph, &out);
    fits = graph.memory == 0 || graph.held <= (uint64_t)graph.memory;
    exit_code = status == WEFT_OK ? cli_print(command, stdout, &out) : cli_fail(command, status);
    if (status != WEFT_OK) wf_text_free(&out);
    if (exit_code == CLI_OK && (graph.refused > 0 || !fits)) exit_code = CLI_NO;
    if (exit_code == CLI_OK) exit_code = write_layout(command, args, &graph);
    graph_free(&graph);
    weft_cost_table_release(&costs);
    return exit_code;
}

static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    const char *style = cli_value(command, args, "style"),
               *layout = cli_value(command, args, "layout-out");

    if (args->rest_count == 0) return "give a file with a graph; - is standard input";
    if (style == NULL && (layout != NULL || cli_has(command, args, "mesh")))
        return "--mesh and --layout-out need --style";
    if (style != NULL && strcmp(style, "-") == 0 && strcmp(args->rest[0], "-") == 0)
        return "the graph and the styles cannot both be standard input";
    if (layout != NULL && strcmp(layout, "-") == 0 && cli_has(command, args, "json"))
        return "--json needs standard output for itself; give --layout-out a file";
    return NULL;
}

/* Read the styles that --style names, on the mesh of --mesh if it is given.  False after printing
 * an error. */
static bool read_styles(const struct cli_command *command, const struct cli_args *args,
                        struct styles *out, int *exit_code)
{
    const char *path = cli_value(command, args, "style");
    weft_mesh *mesh = NULL;
    weft_status status;

    if (path == NULL) return true;
    if (!cli_read_file(command, path, &out->text, exit_code)) return false;
    status = cli_mesh(command, args, "mesh", &mesh);
    if (status == WEFT_OK) status = weft_styles_parse(out->text.data, mesh, &out->list);
    weft_mesh_release(&mesh);
    if (status != WEFT_OK) *exit_code = cli_fail(command, status);
    return status == WEFT_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_text text = {0};
    struct cli_args args;
    struct styles styles = {0};
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (read_styles(command, &args, &styles, &exit_code) &&
        cli_read_file(command, args.rest[0], &text, &exit_code))
        exit_code = check(command, &args, text.data, &styles);
    wf_text_free(&text);
    wf_text_free(&styles.text);
    weft_styles_release(&styles.list);
    return exit_code;
}

const struct cli_command cli_check = {
    .name = "check",
    .summary = "find the layouts and moves of a graph of operators",
    .arguments = "FILE [--strict] [--json]",
    .example = "weft check examples/graphs/llama-8b.graph",
    .page = "operators.md",
    .options =
        (const struct cli_option[]){
            {"strict", NULL, "refuse every move that the graph does not write; exit code 1", 0},
            {"costs", "T", "a cost table of `weft costs`, or a file (default: WEFT_COSTS)", 0},
            {"style", "FILE", "styles: the mesh, and layouts by patterns of names", 0},
            CLI_MESH, /* with --style: in place of that of the styles */
            CLI_MESH_RANKS,
            {"layout-out", "FILE",
             "with --style: write the layouts of the parameters, for weft reshard", 0},
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .complaint = find_complaint,
    .run = run,
};
