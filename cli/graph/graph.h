/* graph.h - a graph of operators as text, and the layouts that its lines have.
 *
 *     mesh dp=2,tp=4
 *     rule shift: x[a b] -> y[a b]; whole a
 *     input x bf16[8,512,1024] S(0),R
 *     param w bf16[4096,1024] R,S(0)
 *     y = linear(x, w) ; x32
 *     output y
 *
 * table.c keeps the tensors by name, read.c reads lines and call.c the calls in them; check.c finds
 * the layouts line by line, held.c the memory, print.c prints them.  With a list of styles, mesh
 * and layouts come from it instead (style.c). */
#ifndef WEFT_CLI_GRAPH_H
#define WEFT_CLI_GRAPH_H

#include "common/cli.h"

enum {
    GRAPH_INPUTS = 256, /* of one call */
    GRAPH_ATTRS = 32,
    GRAPH_REPEATS = 1000000
};

enum graph_kind {
    GRAPH_INPUT,
    GRAPH_PARAM,
    GRAPH_OUTPUT,
    GRAPH_CALL,
    GRAPH_MOVE,
    GRAPH_START, /* of a move */
    GRAPH_WAIT   /* for a start */
};

enum graph_phase { GRAPH_FORWARD, GRAPH_BACKWARD, GRAPH_UPDATE };

#define GRAPH_UNKNOWN UINT64_MAX /* a time or a size that no clause gives */

struct graph_tensor {
    const char *name;
    uint32_t line;   /* that defines it */
    bool hidden;     /* the tensor that an output line leaves: no other line can use it */
    bool started;    /* the result of a start: only a wait can use it */
    uint32_t waited; /* the line that waits for it; 0: none */
    uint32_t freed;  /* the line that frees it; 0: none */
    weft_spec *spec;
};

/* A line, and what the check finds. */
struct graph_line {
    uint32_t number; /* in the file, from 1 */
    uint8_t kind;
    uint8_t phase; /* enum graph_phase */
    bool repeated; /* a clause gives `repeat` */
    bool mixed;    /* the inputs may have several dtypes where the rule wants one */
    uint32_t repeat;
    const char *op;   /* CALL */
    const char *spec; /* INPUT and PARAM: the spec; OUTPUT and `to`: placements, or NULL */
    uint32_t input_count, output_count, attr_count, given_count;
    int32_t *inputs, *outputs; /* tensors; -1: absent, or without a name */
    weft_op_attr *attrs;
    weft_op_tensor *given; /* shapes of the outputs that the line states */
    /* Clauses about the work of the line; each as often as the line is repeated. */
    uint64_t time_ns, alloc; /* or GRAPH_UNKNOWN */
    double flops;            /* negative: no clause, or auto */
    const char *comm;        /* the communicator that it uses; NULL: no clause */
    uint32_t free_count;
    int32_t *frees; /* tensors whose memory it frees */
    weft_op_choice *choice;
    weft_plan **after; /* moves of the results that the text demands; NULL: no result is moved */
    uint32_t moves;
    uint64_t bytes, cost_ns; /* of the moves, once */
    char *error;             /* why a strict check refuses the line; NULL: it does not */
};

struct graph_block;

/* Demands of the clauses `keep`. */
struct graph_keep {
    uint32_t tensor, line;
    const char *axis, *placement;
    struct graph_keep *next;
};

struct graph {
    weft_mesh *mesh;
    const weft_styles *styles; /* NULL: the text has the mesh and the layouts */
    struct graph_line *lines;
    uint32_t line_count, line_room;
    struct graph_tensor *tensors;
    uint32_t tensor_count, tensor_room;
    uint32_t *slots; /* of the hash table: 1 + the tensor */
    uint32_t slot_count;
    struct graph_keep *keeps;
    uint8_t phase;        /* of the lines that are read now */
    struct wf_text rules; /* of lines `rule`, each at its line */
    uint32_t rule_line;   /* the line at which `rules` ends */
    int64_t memory;       /* bytes that inputs and parameters may take on a rank; 0: any number */
    uint64_t held;        /* bytes that they take on the rank that holds most */
    struct graph_block *blocks;
    uint32_t moves, refused; /* refused: lines */
    uint64_t bytes, cost_ns; /* of all moves, with repeats */
};

/* Read TEXT.  STYLES, which may be NULL, must live as long as *OUT.  WEFT_ERR_PARSE gives the line
 * and the position.  The caller frees *OUT, also after a failure. */
weft_status graph_read(const char *text, const weft_styles *styles, struct graph *out) WF_NODISCARD;
void graph_free(struct graph *graph);

/* Find the layouts of all lines.  STRICT: lines that need a move get an error.  A line that cannot
 * be run ends the check; the error text begins with its number. */
weft_status graph_check(struct graph *graph, const weft_cost_table *costs,
                        bool strict) WF_NODISCARD;

weft_status graph_add_text(const struct graph *graph, struct wf_text *out) WF_NODISCARD;
weft_status graph_add_json(const struct graph *graph, struct wf_text *out) WF_NODISCARD;

/* ---- style.c ---- */

/* *SPEC, which is replaced, with the layout that the styles of G give TENSOR, which a line of KIND
 * defines. */
weft_status graph_style(const struct graph *g, int32_t tensor, uint8_t kind,
                        weft_spec **spec) WF_NODISCARD;
/* Append the layout file of the parameters of G, which has been checked. */
weft_status graph_add_layout(const struct graph *g, struct wf_text *out) WF_NODISCARD;

/* ---- unmatched.c ---- */

/* Append a line for each line of TEXT, which STYLES were made of, that matches no name of G, or no
 * name that earlier lines leave to it. */
weft_status graph_add_unmatched(const struct graph *g, const weft_styles *styles, const char *text,
                                struct wf_text *out) WF_NODISCARD;

/* ---- held.c ---- */

/* Set G->held. */
weft_status graph_count_held(struct graph *g) WF_NODISCARD;

/* ---- table.c ---- */

/* Memory that lives as long as the graph; NULL: memory ran out. */
void *graph_alloc(struct graph *graph, size_t bytes) WF_NODISCARD;
/* The tensor NAME; -1: no line defines it. */
int32_t graph_find(const struct graph *graph, const char *name, size_t length);
/* Define the tensor NAME, which does not exist unless it is HIDDEN. */
weft_status graph_define(struct graph *graph, const char *name, size_t length, uint32_t line,
                         bool hidden, int32_t *out) WF_NODISCARD;
weft_status graph_add_line(struct graph *graph, struct graph_line **out) WF_NODISCARD;

/* ---- call.c ---- */

struct graph_reader {
    struct graph *graph;
    struct wf_scan scan;
    uint32_t line;
};

weft_status graph_fail(const struct graph_reader *r, const char *expected) WF_NODISCARD;
/* Take a name: letters, digits, _ and dots. */
bool graph_take_name(struct graph_reader *r, const char **start, size_t *length);
/* Take text up to a `;` that is not in parentheses, a comment or the end of the line, without
 * blanks at its ends. */
weft_status graph_take_text(struct graph_reader *r, const char **out) WF_NODISCARD;
/* Take the name of a tensor that exists. */
weft_status graph_take_tensor(struct graph_reader *r, int32_t *out) WF_NODISCARD;
/* Take WORD and the blanks behind it. */
bool graph_take_keyword(struct graph_reader *r, const char *word);
/* Read "a, b = op(x, y, key=value)", behind the first name. */
weft_status graph_read_call(struct graph_reader *r, const char *first, size_t length) WF_NODISCARD;

/* ---- work.c ---- */

/* Read a clause about the work of LINE, if one is next; *FOUND tells. */
weft_status graph_read_work(struct graph_reader *r, struct graph_line *line,
                            bool *found) WF_NODISCARD;

#endif
