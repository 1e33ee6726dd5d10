/* request.h - what `weft plan`, `weft sim` and `weft redistribute` are asked: from which layout to
 * which, and how to plan it. */
#ifndef WEFT_CLI_REQUEST_H
#define WEFT_CLI_REQUEST_H

#include "common/cli.h"

/* The options that say it, to stand in a command's table. */
#define REQUEST_OPTIONS                                                                            \
    {"mesh", "M", "the mesh: 2x4, dp=2,tp=4, 2x2@4-7"},                                            \
        {"to-mesh", "M", "the target's mesh, where it is another"},                                \
        {"shape", "S", "the tensor's shape: 4096x4096"},                                           \
        {"dtype", "T", "its dtype, f32 unless given"},                                             \
        {"from", "P", "placements of the source: S(0),R"},                                         \
        {"to", "P", "placements of the target: R,S(1)"},                                           \
        {"memory-limit", "B", "most scratch per rank: 65536, 64MiB"},                              \
        {"minimize", "X", "time (default), bytes or memory"},                                      \
        {"planner", "X", "search (default), exchange, dtensor-greedy, dtensor-graph"},             \
    {                                                                                              \
        "costs", "T", "a cost table: default, cpu, dtensor, or a file"                             \
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
