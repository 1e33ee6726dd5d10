/* program.h - a checked graph as a program of compute, starts and waits: a node for each line. */
#ifndef WEFT_CLI_REORDER_PROGRAM_H
#define WEFT_CLI_REORDER_PROGRAM_H

#include "graph/graph.h"

struct program {
    const struct graph *graph; /* borrowed */
    weft_reorder_node *nodes;  /* by line */
    int32_t *inputs;           /* of all nodes */
    char **comms;              /* names of communicators, by number */
    int32_t comm_count;
    uint64_t compute; /* ns of compute in nodes of communication, whose lines also move tensors */
};

/* The caller frees *OUT, also after a failure. */
weft_status program_create(const struct graph *graph, struct program *out) WF_NODISCARD;
void program_free(struct program *program);

/* The report of REORDER, which PASS has made of PROGRAM under the memory limit LIMIT, 0 for none.
 */
weft_status program_add_text(const struct program *program, const weft_reorder *reorder,
                             const char *pass, uint64_t limit, struct wf_text *out) WF_NODISCARD;
weft_status program_add_json(const struct program *program, const weft_reorder *reorder,
                             const char *pass, uint64_t limit, struct wf_text *out) WF_NODISCARD;

#endif
