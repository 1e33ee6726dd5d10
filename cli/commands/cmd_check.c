/* cmd_check.c - `weft check FILE`: the layouts and moves of a graph of operators. */
#include "common/cli.h"

#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static int check(const struct cli_command *command, const struct cli_args *args, const char *text)
{
    bool json = cli_has(command, args, "json"), strict = cli_has(command, args, "strict"), fits;
    struct wf_text out = {0};
    weft_cost_table *costs = NULL;
    struct graph graph;
    weft_status status;
    int exit_code;

    memset(&graph, 0, sizeof graph);
    status = weft_cost_table_open(cli_value(command, args, "costs"), &costs);
    if (status == WEFT_OK) status = graph_read(text, &graph);
    if (status == WEFT_OK) status = graph_check(&graph, costs, strict);
    if (status == WEFT_OK)
        status = json ? graph_add_json(&graph, &out) : graph_add_text(&graph, &out);
    fits = graph.memory == 0 || graph.held <= (uint64_t)graph.memory;
    exit_code = status == WEFT_OK ? cli_print(command, stdout, &out) : cli_fail(command, status);
    if (status != WEFT_OK) wf_text_free(&out);
    if (exit_code == CLI_OK && (graph.refused > 0 || !fits)) exit_code = CLI_NO;
    graph_free(&graph);
    weft_cost_table_release(&costs);
    return exit_code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct wf_text text = {0};
    struct cli_args args;
    int exit_code;

    if (!cli_parse(command, argc, argv, false, &args, &exit_code)) return exit_code;
    if (args.rest_count == 0) {
        fprintf(stderr, "weft check: give a file with a graph; - is standard input\n");
        return CLI_USAGE;
    }
    wf_text_append(&text, "", 0);
    if (cli_read_file(command, args.rest[0], &text, &exit_code))
        exit_code = check(command, &args, text.data);
    wf_text_free(&text);
    return exit_code;
}

const struct cli_command cli_check = {
    .name = "check",
    .summary = "find the layouts and moves of a graph of operators",
    .arguments = "FILE [--strict] [--json]",
    .example = "weft check examples/graphs/llama-8b.graph",
    .options =
        (const struct cli_option[]){
            {"strict", NULL, "refuse every move that the graph does not write; exit code 1", 0},
            {"costs", "T", "a cost table: default, cpu, dtensor, or a file (default: WEFT_COSTS)",
             0},
            CLI_JSON,
            {0}},
    .rest_max = 1,
    .run = run,
};
