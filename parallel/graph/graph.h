/* graph.h - a graph of operators as text, and the layouts that its lines have.
 *
 *     mesh dp=2,tp=4
 *     rule shift: x[a b] -> y[a b]; whole a
 *     input x bf16[8,512,1024] S(0),R
 *     param w bf16[4096,1024] R,S(0)
 *     y = linear(x, w) ; x32
 *     output y
 *
 * table.c keeps the tensors by name, read.c reads lines, call.c the calls in them and work.c the
 * clauses about work; mesh.c replaces the mesh and batch.c looks at the batch, check.c finds the
 * layouts line by line, held.c the memory, print.c prints them, and program.c makes nodes for
 * weft_reorder_create.  With a list of styles, mesh and layouts come from it instead (style.c). */
#ifndef WEFT_GRAPH_GRAPH_H
#define WEFT_GRAPH_GRAPH_H

#include "base/base.h"
#include "kit/print.h"
#include "outside/texts.h"
#include "style/style.h"
#include "weft/graph.h"
#include "weft/ops.h"

enum {
    WF_GRAPH_INPUTS = 256, /* of one call */
    WF_GRAPH_ATTRS = 32,
    WF_GRAPH_REPEATS = 1000000
};

enum wf_graph_kind {
    WF_GRAPH_INPUT,
    WF_GRAPH_PARAM,
    WF_GRAPH_OUTPUT,
    WF_GRAPH_CALL,
    WF_GRAPH_MOVE,
    WF_GRAPH_START, /* of a move */
    WF_GRAPH_WAIT   /* for a start */
};

enum wf_graph_phase { WF_GRAPH_FORWARD, WF_GRAPH_BACKWARD, WF_GRAPH_UPDATE };

#define WF_GRAPH_UNKNOWN UINT64_MAX /* a time or a size that no clause gives */

struct wf_graph_tensor {
    const char *name;
    uint32_t line;   /* that defines it */
    bool hidden;     /* the tensor that an output line leaves: no other line can use it */
    bool started;    /* the result of a start: only a wait can use it */
    uint32_t waited; /* the line that waits for it; 0: none */
    uint32_t freed;  /* the line that frees it; 0: none */
    weft_spec *spec;
};

/* A line, and what the check finds. */
struct wf_graph_line {
    uint32_t number; /* in the file, from 1 */
    uint8_t kind;
    uint8_t phase;  /* enum wf_graph_phase */
    bool repeated;  /* a clause gives `repeat` */
    bool mixed;     /* the inputs may have several dtypes where the rule wants one */
    bool recompute; /* a line of the backward pass does what one of the forward pass has done */
    bool pieces;    /* MOVE: beside the call that makes its input or uses its result */
    bool f8;        /* CALL: a product in fp8 */
    uint32_t repeat;
    const char *op;   /* CALL */
    const char *spec; /* INPUT and PARAM: the spec; OUTPUT and `to`: placements, or NULL */
    uint32_t input_count, output_count, attr_count, given_count;
    int32_t *inputs, *outputs; /* tensors; -1: absent, or without a name */
    weft_op_attr *attrs;
    weft_op_tensor *given; /* shapes of the outputs that the line states */
    /* Clauses about the work of the line; each as often as the line is repeated. */
    uint64_t time_ns, alloc; /* or WF_GRAPH_UNKNOWN */
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

struct wf_graph_block;

/* Demands of the clauses `keep`. */
struct wf_graph_keep {
    uint32_t tensor, line;
    const char *axis, *placement;
    struct wf_graph_keep *next;
};

struct weft_graph {
    weft_mesh *mesh;  /* the ranks of a stage */
    weft_mesh *whole; /* with the axis of stages; checked graphs only */
    int32_t pipeline; /* that axis; -1: there is none */
    bool checked;
    weft_cost_table *costs; /* of the check */
    weft_styles *styles;    /* NULL: the text has the mesh and the layouts */
    struct wf_graph_line *lines;
    uint32_t line_count, line_room;
    struct wf_graph_tensor *tensors;
    uint32_t tensor_count, tensor_room;
    uint32_t *slots; /* of the hash table: 1 + the tensor */
    uint32_t slot_count;
    struct wf_graph_keep *keeps;
    uint8_t phase;        /* of the lines that are read now */
    struct wf_text rules; /* of lines `rule`, each at its line */
    uint32_t rule_line;   /* the line at which `rules` ends */
    int64_t memory;       /* bytes that inputs and parameters may take on a rank; 0: any number */
    uint64_t held;        /* bytes that they take on the rank that holds most */
    struct wf_graph_block *blocks;
    uint32_t moves, refused;    /* refused: lines */
    uint64_t bytes, cost_ns;    /* of all moves, with repeats */
    struct wf_program *program; /* NULL: not made yet */
};

/* Fails unless GRAPH is a graph that has been checked. */
weft_status wf_graph_require_checked(const weft_graph *graph, const char *function) WF_NODISCARD;

/* ---- read.c ---- */

/* Read TEXT into G, which is new and has its styles. */
weft_status wf_graph_read(const char *text, weft_graph *g) WF_NODISCARD;

/* ---- mesh.c ---- */

/* Replace the mesh of G by the ranks of a stage of MESH; NULL: one stage has all ranks. */
weft_status wf_graph_set_mesh(weft_graph *g, const weft_mesh *mesh) WF_NODISCARD;

/* ---- batch.c ---- */

/* Refuse inputs of G whose dimension 0, the batch, the ranks that split it do not divide. */
weft_status wf_graph_check_batch(const weft_graph *g) WF_NODISCARD;

/* ---- check.c ---- */

/* Find the layouts of all lines.  STRICT: lines that need a move get an error.  A line that cannot
 * be run ends the check; the error text begins with its number. */
weft_status wf_graph_check_lines(weft_graph *g, bool strict) WF_NODISCARD;

/* ---- print.c ---- */

weft_status wf_graph_add_text(const weft_graph *g, struct wf_text *out) WF_NODISCARD;
weft_status wf_graph_add_json(const weft_graph *g, struct wf_text *out) WF_NODISCARD;

/* ---- style.c ---- */

/* *SPEC, which is replaced, with the layout that the styles of G give TENSOR, which a line of KIND
 * defines. */
weft_status wf_graph_style(const weft_graph *g, int32_t tensor, uint8_t kind,
                           weft_spec **spec) WF_NODISCARD;
/* Append the layout file of the parameters of G, which has been checked. */
weft_status wf_graph_add_layout(const weft_graph *g, struct wf_text *out) WF_NODISCARD;

/* ---- unmatched.c ---- */

/* Append a line for each line of TEXT, which the styles of G were made of, that matches no name of
 * G, or no name that earlier lines leave to it. */
weft_status wf_graph_add_unmatched(const weft_graph *g, const char *text,
                                   struct wf_text *out) WF_NODISCARD;

/* ---- program.c ---- */

/* The nodes of a checked graph: one for each line. */
struct wf_program {
    weft_reorder_node *nodes;
    int32_t *inputs; /* of all nodes */
    char **comms;    /* names of communicators, by number */
    int32_t comm_count;
};

weft_status wf_program_create(const weft_graph *g, struct wf_program **out) WF_NODISCARD;
void wf_program_free(struct wf_program *program);

/* ---- held.c ---- */

/* Set G->held. */
weft_status wf_graph_count_held(weft_graph *g) WF_NODISCARD;

/* ---- table.c ---- */

/* Memory that lives as long as the graph; NULL: memory ran out. */
void *wf_graph_alloc(weft_graph *graph, size_t bytes) WF_NODISCARD;
/* The tensor NAME; -1: no line defines it. */
int32_t wf_graph_find(const weft_graph *graph, const char *name, size_t length);
/* Define the tensor NAME, which does not exist unless it is HIDDEN. */
weft_status wf_graph_define(weft_graph *graph, const char *name, size_t length, uint32_t line,
                            bool hidden, int32_t *out) WF_NODISCARD;
weft_status wf_graph_add_line(weft_graph *graph, struct wf_graph_line **out) WF_NODISCARD;

/* ---- call.c ---- */

struct wf_graph_reader {
    weft_graph *graph;
    struct wf_scan scan;
    uint32_t line;
};

weft_status wf_graph_fail(const struct wf_graph_reader *r, const char *expected) WF_NODISCARD;
/* Take a name: letters, digits, _ and dots. */
bool wf_graph_take_name(struct wf_graph_reader *r, const char **start, size_t *length);
/* Take text up to a `;` that is not in parentheses, a comment or the end of the line, without
 * blanks at its ends. */
weft_status wf_graph_take_text(struct wf_graph_reader *r, const char **out) WF_NODISCARD;
/* Take the name of a tensor that exists. */
weft_status wf_graph_take_tensor(struct wf_graph_reader *r, int32_t *out) WF_NODISCARD;
/* Take WORD and the blanks behind it. */
bool wf_graph_take_keyword(struct wf_graph_reader *r, const char *word);
/* Read "a, b = op(x, y, key=value)", behind the first name. */
weft_status wf_graph_read_call(struct wf_graph_reader *r, const char *first,
                               size_t length) WF_NODISCARD;

/* ---- work.c ---- */

/* Read a clause about the work of LINE, if one is next; *FOUND tells. */
weft_status wf_graph_read_work(struct wf_graph_reader *r, struct wf_graph_line *line,
                               bool *found) WF_NODISCARD;

#endif
