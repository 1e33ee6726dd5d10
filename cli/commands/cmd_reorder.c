/* cmd_reorder.c - `weft reorder GRAPH`: an order in which communication is hidden by compute. */
#include "common/cli.h"

#include "reorder/report.h"

#include <string.h>

static const char *const passes[] = {[WEFT_REORDER_ITERATIVE] = "iterative",
                                     [WEFT_REORDER_RAISE] = "raise",
                                     [WEFT_REORDER_SINK] = "sink",
                                     [WEFT_REORDER_LIST] = "list"};

static weft_status reorder(const struct cli_command *command, const struct cli_args *args,
                           const weft_reorder_options *options, const char *text,
                           struct wf_text *out)
{
    weft_graph_options how = {.struct_size = sizeof how};
    const weft_reorder_node *nodes = NULL;
    weft_cost_table *costs = NULL;
    weft_reorder *result = NULL;
    weft_graph *graph = NULL;
    weft_status status;
    size_t count = 0;

    status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    how.costs = costs;
    if (status == WEFT_OK) status = weft_graph_parse(text, NULL, &graph);
    if (status == WEFT_OK) status = weft_graph_check(graph, &how);
    if (status == WEFT_OK) status = weft_graph_nodes(graph, &count, &nodes, sizeof *nodes);
    if (status == WEFT_OK)
        status = weft_reorder_create(count, nodes, sizeof *nodes, options, &result);
    if (status == WEFT_OK)
        status = (cli_has(command, args, "json") ? reorder_add_json : reorder_add_text)(
            graph, result, passes[options->pass], options->memory_limit, out);
    weft_reorder_release(&result);
    weft_graph_release(&graph);
    weft_cost_table_release(&costs);
    return status;
}

static bool read_pass(const struct cli_command *command, const struct cli_args *args, uint32_t *out)
{
    const char *name = cli_value(command, args, "pass");

    *out = WEFT_REORDER_ITERATIVE;
    for (uint32_t i = 0; name != NULL && i < WF_COUNT(passes); i++)
        if (strcmp(passes[i], name) == 0) {
            *out = i;
            return true;
        }
    if (name == NULL) return true;
    cli_complain(command, "--pass is iterative, raise, sink or list, not %s", name);
    return false;
}

static const char *find_complaint(const struct cli_command *command, const struct cli_args *args)
{
    (void)command;
    return args->rest_count == 0 ? "give a file with a graph; - is standard input" : NULL;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    weft_reorder_options options = {.struct_size = sizeof options};
    struct wf_text text = {0}, out = {0};
    struct cli_args args;
    weft_status status;
    int64_t memory;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (!read_pass(command, &args, &options.pass)) return CLI_USAGE;
    if (!cli_size(command, &args, "memory-limit", 0, &memory)) return CLI_USAGE;
    options.memory_limit = (uint64_t)memory;
    if (cli_read_file(command, args.rest[0], &text, &exit_code)) {
        status = reorder(command, &args, &options, text.data, &out);
        exit_code = cli_answer(command, status, &out);
    }
    wf_text_free(&text);
    return exit_code;
}

const struct cli_command cli_reorder = {
    .name = "reorder",
    .summary = "find an order of a graph's lines in which compute hides communication",
    .arguments = "GRAPH [--pass P] [--memory-limit SIZE] [--json]",
    .example = "weft reorder examples/graphs/gathers.graph --memory-limit 1G",
    .page = "training/reordering.md",
    .options =
        (const struct cli_option[]){
            {"pass", "P", "iterative (default), raise, sink or list", 0},
            CLI_MEMORY_LIMIT("the most memory of results (default: as in the given order)"),
            CLI_COSTS,
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .complaint = find_complaint,
    .run = run,
};
