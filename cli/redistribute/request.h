/* request.h - the question to `weft plan`, `weft sim` and `weft redistribute`: from which layout to
 * which, and how to plan it. */
#ifndef WEFT_CLI_REQUEST_H
#define WEFT_CLI_REQUEST_H

#include "common/cli.h"

/* Its options, for a command's table. */
#define REQUEST_OPTIONS                                                                            \
    CLI_MESH, {"to-mesh", "M", "the target's mesh (default: the same mesh)", 0}, CLI_SHAPE,        \
        CLI_DTYPE, {"from", "P", "placements of the source: S(0),R", 0},                           \
        {"to", "P", "placements of the target: R,S(1)", 0},                                        \
        {"memory-limit", "B", "most scratch per rank: 65536, 64MiB", 0},                           \
        {"minimize", "X", "time (default), bytes or memory", 0},                                   \
        {"planner", "X", "search (default) or exchange", 0},                                       \
        {"without", "X,...", "kinds of steps to do without: exchange,permute", 0},                 \
    {                                                                                              \
        "costs", "T", "a cost table: default, cpu, dtensor, or a file (default: WEFT_COSTS)", 0    \
    }

struct request {
    weft_mesh *mesh, *to_mesh;
    weft_spec *from, *to;
    weft_cost_table *costs;
    weft_plan_options options;
};

/* Read REQUEST out of ARGS.  False after a complaint, with the exit code. */
bool request_read(const struct cli_command *command, const struct cli_args *args,
                  struct request *out, int *exit_code);
void request_free(struct request *request);

#endif
