/* cmd_check.c - `weft check FILE`: the layouts and moves of a graph of operators. */
#include "common/cli.h"

#include "common/describe.h"

#include <stdlib.h>
#include <string.h>

static weft_status add_layout(const weft_graph *graph, struct wf_text *out)
{
    wf_text_add(out, "# Written by weft check --style.\n");
    DESCRIBE_ADD(weft_graph_layout_print, graph, out);
    return WEFT_OK;
}

/* Write the layout file of GRAPH's parameters to the file that --layout-out names, if it does. */
static int write_layout(const struct cli_command *command, const struct cli_args *args,
                        const weft_graph *graph)
{
    const char *path = cli_value(command, args, "layout-out");
    struct wf_text text = {0};
    weft_status status;

    if (path == NULL) return CLI_OK;
    status = add_layout(graph, &text);
    if (status == WEFT_OK) return cli_print_to(command, path, &text);
    wf_text_free(&text);
    return cli_fail(command, status);
}

/* Styles, and the text that they were read from. */
struct styles {
    weft_styles *list; /* NULL: none are given */
    struct wf_text text;
};

static weft_status tell_unmatched(const struct cli_command *command, const weft_graph *graph,
                                  const struct styles *styles)
{
    size_t length = 0;
    char *lines, *rest = NULL;
    weft_status status;

    if (styles->list == NULL) return WEFT_OK;
    WF_TRY(weft_graph_unmatched_print(graph, styles->text.data, NULL, 0, &length));
    lines = wf_alloc(length + 1);
    if (lines == NULL) return wf_fail_memory(length + 1);
    status = weft_graph_unmatched_print(graph, styles->text.data, lines, length + 1, NULL);
    for (char *line = strtok_r(lines, "\n", &rest); status == WEFT_OK && line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        cli_complain(command, "%s", line);
    wf_free(lines);
    return status;
}

static weft_status describe(const weft_graph *graph, bool json, struct wf_text *out)
{
    if (!json) {
        DESCRIBE_ADD(weft_graph_print, graph, out);
        return WEFT_OK;
    }
    DESCRIBE_ADD(weft_graph_json_print, graph, out);
    wf_text_char(out, '\n');
    return wf_text_status(out);
}

static int check(const struct cli_command *command, const struct cli_args *args, const char *text,
                 const struct styles *styles)
{
    weft_graph_options how = {.struct_size = sizeof how,
                              .flags = cli_has(command, args, "strict") ? WEFT_GRAPH_STRICT : 0};
    weft_graph_info info = {.struct_size = sizeof info};
    struct wf_text out = {0};
    weft_cost_table *costs = NULL;
    weft_graph *graph = NULL;
    weft_status status;
    int exit_code;

    status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    how.costs = costs;
    if (status == WEFT_OK) status = weft_graph_parse(text, styles->list, &graph);
    if (status == WEFT_OK) status = tell_unmatched(command, graph, styles);
    if (status == WEFT_OK) status = weft_graph_check(graph, &how);
    if (status == WEFT_OK) status = weft_graph_get(graph, &info);
    if (status == WEFT_OK) status = describe(graph, cli_has(command, args, "json"), &out);
    exit_code = cli_answer(command, status, &out);
    if (exit_code == CLI_OK &&
        (info.refused > 0 || (info.memory_limit > 0 && info.held > info.memory_limit)))
        exit_code = CLI_NO;
    if (exit_code == CLI_OK) exit_code = write_layout(command, args, graph);
    weft_graph_release(&graph);
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
            CLI_COSTS,
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
