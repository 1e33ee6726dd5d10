/* graph.h - a graph of operators as text, and the layouts and moves of its lines.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 *     weft_graph *graph;
 *     TRY(weft_graph_parse("mesh tp=4\n"
 *                          "input x bf16[512,1024] R\n"
 *                          "param w bf16[4096,1024] S(0)\n"
 *                          "y = linear(x, w) ; x32\n"
 *                          "output y\n", NULL, &graph));
 *     TRY(weft_graph_check(graph, NULL));
 *
 * docs/operators.md has the lines and their clauses.  A check finds the layouts of all lines and
 * the cheapest moves between them.  It communicates nothing, and equal arguments give equal results
 * on all ranks.  A graph belongs to one thread at a time. */
#ifndef WEFT_GRAPH_H
#define WEFT_GRAPH_H

#include "weft/cost.h"
#include "weft/reorder.h"
#include "weft/style.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_graph weft_graph;

/* Read the graph TEXT.  Lines `rule` in it replace the rules of operators (weft_op_replace).
 * STYLES may be NULL; otherwise the mesh and the layouts come from them instead of TEXT.  The
 * caller releases *OUT.  WEFT_ERR_PARSE: TEXT is malformed; the error text gives the line and the
 * position. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_parse(const char *text, const weft_styles *styles,
                                                     weft_graph **out);

/* Free GRAPH and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_graph_release(weft_graph **graph);

enum weft_graph_flag {
    WEFT_GRAPH_STRICT = 1 << 0, /* lines that need a move which no line writes get an error */
    /* An input whose dimension 0, the batch, does not divide evenly over its ranks is refused. */
    WEFT_GRAPH_EVEN_BATCH = 1 << 1
};

typedef struct weft_graph_options {
    size_t struct_size;
    /* The axes of the graph's mesh with other sizes, and maybe one more, `pp`, whose ranks have
     * stages of a pipeline.  NULL: the mesh of the text. */
    const weft_mesh *mesh;
    const weft_cost_table *costs; /* NULL: as weft_cost_table_open without a name */
    uint32_t flags;               /* bits of enum weft_graph_flag */
} weft_graph_options;

/* Find the layouts and moves of all lines of GRAPH, once.  OPTIONS may be NULL.  WEFT_ERR_INVALID:
 * a line cannot be run, and the error text begins with its number; the mesh has not the axes of the
 * graph; the batch is not even; or GRAPH was checked before. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_check(weft_graph *graph,
                                                     const weft_graph_options *options);

typedef struct weft_graph_info {
    size_t struct_size;
    size_t lines;          /* without comments, meshes, rules and phases */
    bool checked;          /* otherwise the fields below are 0 */
    size_t moves;          /* of all lines */
    size_t refused;        /* lines with an error of a strict check */
    uint64_t bytes;        /* that moves bring to a rank, repeats included */
    uint64_t cost_ns;      /* of the moves, repeats included */
    uint64_t held;         /* bytes of inputs and parameters on the rank that holds most */
    uint64_t memory_limit; /* of a clause `memory`; 0: the graph has none */
} weft_graph_info;

/* Copy the figures of GRAPH to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_get(const weft_graph *graph, weft_graph_info *out);

typedef struct weft_graph_line_info {
    size_t struct_size;
    uint32_t number;  /* of the line in the text, from 1 */
    uint32_t repeat;  /* how often it is repeated */
    const char *op;   /* "input", "param", "output", or the operator; valid as long as the graph */
    const char *name; /* of its first result, "_" without a name; valid as long as the graph */
    const char *comm; /* the communicator of its node (weft_graph_nodes); NULL: it has none */
    /* Compute, in ns with repeats, of a line whose node is communication: nothing can be put
     * between its moves and its compute. */
    uint64_t inner_compute;
} weft_graph_line_info;

/* Copy the properties of line INDEX of GRAPH to *OUT, whose struct_size the caller sets.
 * WEFT_ERR_INVALID: there is no such line. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_line_get(const weft_graph *graph, size_t index,
                                                        weft_graph_line_info *out);

/* Set *OUT to the lines of GRAPH, which is checked, as a program for weft_reorder_create, and
 * *COUNT to their number.  Valid as long as GRAPH.  NODE_SIZE is sizeof(weft_reorder_node).
 * WEFT_ERR_INVALID: GRAPH is not checked; a line frees what is started; a start moves nothing; or
 * NODE_SIZE is another size. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_nodes(weft_graph *graph, size_t *count,
                                                     const weft_reorder_node **out,
                                                     size_t node_size);

/* Write the layouts and moves of GRAPH, which is checked, to TEXT, and the sums of them.  TEXT,
 * SIZE and NEEDED as in weft_mesh_print (mesh.h).  WEFT_ERR_INVALID: GRAPH is not checked. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_print(const weft_graph *graph, char *text,
                                                     size_t size, size_t *needed);

/* As weft_graph_print, as JSON.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_json_print(const weft_graph *graph, char *text,
                                                          size_t size, size_t *needed);

/* Write the layouts of the parameters of GRAPH, which is checked and has styles, as a layout file
 * (weft_layout_file_parse) to TEXT.  TEXT, SIZE and NEEDED as in weft_mesh_print.
 * WEFT_ERR_INVALID: GRAPH is not checked, or has no styles. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_layout_print(const weft_graph *graph, char *text,
                                                            size_t size, size_t *needed);

/* Write a line for each line of STYLES_TEXT, of which the styles of GRAPH were made, that decides
 * nothing: it matches no name of GRAPH, or earlier lines leave none to it.  TEXT, SIZE and NEEDED
 * as in weft_mesh_print.  WEFT_ERR_INVALID: GRAPH has no styles. */
WEFT_API WEFT_NODISCARD weft_status weft_graph_unmatched_print(const weft_graph *graph,
                                                               const char *styles_text, char *text,
                                                               size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif

#endif
