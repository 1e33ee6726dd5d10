/* request.h - the input of `weft plan`, `weft sim` and `weft redistribute`: the two layouts, and
 * the options of the planner. */
#ifndef WEFT_CLI_REQUEST_H
#define WEFT_CLI_REQUEST_H

#include "common/cli.h"

/* The options of a request, for the table of a command. */
#define REQUEST_OPTIONS                                                                            \
    CLI_MESH, {"to-mesh", "M", "the target's mesh (default: the same mesh)", 0}, CLI_SHAPE,        \
        CLI_DTYPE, {"to-dtype", "T", "the target's dtype (default: the same dtype)", 0},           \
        {"from", "P", "the source: S(0),R, or a spec, f32[8,16] S(0),R", 0}, CLI_TO,               \
        CLI_MEMORY_LIMIT("the most scratch per rank: 65536, 64MiB"),                               \
        {"minimize", "X", "time (default), bytes or memory", 0},                                   \
        {"planner", "X", "search (default) or exchange", 0},                                       \
        {"without", "NAME", "kinds of steps to exclude: exchange,permute", 0}, CLI_COSTS

struct request {
    weft_mesh *mesh, *to_mesh;
    weft_spec *from, *to;
    weft_cost_table *costs;
    weft_plan_options options;
};

/* Read a request from ARGS.  False, with the exit code, after printing an error. */
bool request_read(const struct cli_command *command, const struct cli_args *args,
                  struct request *out, int *exit_code);
void request_free(struct request *request);

#endif
