/* ops.h - how operators act on layouts.
 *
 * Library: libweft_parallel (CMake weft::parallel, pkg-config weft-parallel).
 *
 * A rule is one line of text that states how an operator may be split (docs/operators.md):
 *
 *     mm: a[m k] b[k n] -> c[m n]; sum k; lin a | b
 *
 * weft has rules for the operators of tensor programs, and programs add their own.  From a rule and
 * the layouts of the inputs follow the strategies: the layouts in which every rank can run the
 * operator on its own shards.  weft does not run the operator.
 *
 *     const weft_spec *inputs[] = {x, w};
 *     weft_op_call call = {.struct_size = sizeof call, .name = "mm", .inputs = inputs,
 *                          .input_count = 2};
 *     weft_op_choice *choice;
 *     if (weft_op_check(&call, NULL, &choice) != WEFT_OK) fail(weft_last_error());
 *     output = weft_op_choice_output(choice, 0);
 *
 * Strategies depend on the arguments and the registered rules only, so every rank computes the
 * same.  All functions here may be called from any thread. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include "weft/plan.h"
#include "weft/spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rules --------------------------------------------------------------------- */

/* Register the rules of TEXT, one per line; `#` begins a comment.  A line "NAME is a; b" makes an
 * operator of others.  A name may stand in several lines: the first line whose guards hold applies.
 * The rules of a name replace weft's own rules of that name until weft_op_remove.  Either all lines
 * are registered or none.
 * WEFT_ERR_PARSE: TEXT is malformed; the error text gives the line and the position.
 * WEFT_ERR_INVALID: a rule is incomplete, or a name has other registered rules already. */
WEFT_API WEFT_NODISCARD weft_status weft_op_register(const char *text);

/* As weft_op_register, but rules that were registered before under the same names are replaced. */
WEFT_API WEFT_NODISCARD weft_status weft_op_replace(const char *text);

/* Remove the rules that were registered under NAME.  weft's own rules of that name apply again.
 * WEFT_ERR_NOT_FOUND: none were registered.  WEFT_ERR_INVALID: another operator is made of NAME,
 * and weft has no built-in rule for NAME. */
WEFT_API WEFT_NODISCARD weft_status weft_op_remove(const char *name);

/* Check RULES as weft_op_replace does without registering them, and write their one form to TEXT:
 * equal rules have equal texts.  TEXT, SIZE and NEEDED as in weft_mesh_print (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_op_rules_print(const char *rules, char *text, size_t size,
                                                        size_t *needed);

/* Write the rules of the operator NAME to TEXT, one per line.  WEFT_ERR_NOT_FOUND suggests a
 * similar name.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_op_print(const char *name, char *text, size_t size,
                                                  size_t *needed);

/* Write the rules of the operator NAME and what they mean in words to TEXT, in several lines.
 * WEFT_ERR_NOT_FOUND as in weft_op_print.  TEXT, SIZE and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_op_meaning_print(const char *name, char *text, size_t size,
                                                          size_t *needed);

/* Write the names of all operators, in alphabetical order and one per line, to TEXT.  TEXT, SIZE
 * and NEEDED as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_op_names_print(char *text, size_t size, size_t *needed);

/* A digest of all rules that apply now.  Equal on two ranks if they have the same rules, in
 * whatever order they were registered; 0 if memory ran out. */
WEFT_API uint64_t weft_op_digest(void);

/* ---- calls --------------------------------------------------------------------- */

enum weft_attr_kind {
    WEFT_ATTR_INT = 0,  /* a number; also true (1) and false (0) */
    WEFT_ATTR_REAL = 1, /* a number with a fraction, or infinite */
    WEFT_ATTR_LIST = 2, /* a list of numbers */
    WEFT_ATTR_TEXT = 3
};

/* An argument of an operator that is not a tensor. */
typedef struct weft_op_attr {
    const char *name;
    uint32_t kind;       /* enum weft_attr_kind */
    int64_t integer;     /* INT */
    double real;         /* REAL */
    size_t count;        /* LIST: length of the list */
    const int64_t *list; /* LIST [count entries] */
    const char *text;    /* TEXT */
} weft_op_attr;

typedef struct weft_op_tensor {
    uint32_t dtype; /* enum weft_dtype */
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS];
} weft_op_tensor;

/* What a call permits. */
enum weft_op_call_flag {
    /* Inputs that the rule's clause `same` names may have several dtypes: the kernel mixes them.
     * Without it, a call with such inputs is refused. */
    WEFT_OP_CALL_MIXED_DTYPES = 1
};

/* A call of an operator.  All pointers are borrowed until the function returns.  A list of structs
 * has the size of its elements beside its count; another size than that of weft is refused with
 * WEFT_ERR_VERSION, unless the list is empty. */
typedef struct weft_op_call {
    size_t struct_size;
    /* As in the rule.  `add_` is `add` in place of its first input; `add.out` has the memory of its
     * outputs as further inputs, which are never moved.  `foreach_add` takes a list for each input
     * of `add`, all of one length; the last input may be one tensor without dimensions, which all
     * elements share.  `foreach_add_` is in place of its first list; there is no
     * `foreach_add.out`.  A name of PyTorch stands for weft's operator: `aten.add.Tensor` is
     * `add`. */
    const char *name;
    size_t input_count;
    const weft_spec *const *inputs; /* in the order of the rule; NULL: an optional input is absent.
                                     * A list takes as many entries as it has tensors */
    size_t attr_count, attr_size;   /* attr_size: sizeof(weft_op_attr) */
    const weft_op_attr *attrs;
    size_t output_count, output_size; /* output_size: sizeof(weft_op_tensor) */
    /* Shapes and dtypes of the outputs.  NULL: they follow from the inputs and attributes; rules of
     * operators for which they do not, such as svd, need them. */
    const weft_op_tensor *outputs;
    uint32_t flags;        /* bits of enum weft_op_call_flag; others are refused */
    const weft_mesh *mesh; /* needed if the call has no input.  With inputs: NULL, or their mesh;
                            * another mesh is refused */
} weft_op_call;

/* ---- rows by a function ------------------------------------------------------- */

/* The question to a function that computes rows: a call, and one axis of its mesh. */
typedef struct weft_op_query {
    size_t struct_size;
    const weft_op_call *call;
    const weft_mesh *mesh;
    size_t input_count, output_count;
    size_t tensor_size;            /* sizeof(weft_op_tensor) of weft */
    const weft_op_tensor *tensors; /* shapes and dtypes of the inputs, then of the outputs */
    int32_t axis, parts;           /* parts: ranks along the axis */
} weft_op_query;

/* Writes rows, one per line, to TEXT, which has SIZE bytes with the final 0. */
typedef weft_status (*weft_op_rows)(void *user, const weft_op_query *query, char *text,
                                    size_t size);

/* Let ROWS add rows to rules with the clause `use NAME`, until weft_op_use_remove; a function that
 * was registered before is replaced.  A row is a choice of the ranks along the axis: a placement
 * for each input, "-" for an absent one, and for each output, as in "S(0) ; R -> P(sum)".  A
 * placement is as in spec.h, without a turn.  A dimension that such a row splits is split by no
 * other axis.  The rows must depend on the query only.  ROWS is called with USER by any thread that
 * checks or proposes; it must not call functions of ops.h. */
WEFT_API WEFT_NODISCARD weft_status weft_op_use_register(const char *name, weft_op_rows rows,
                                                         void *user);

/* Remove the function of NAME.  Calls that have begun may still run it.  WEFT_ERR_NOT_FOUND: none
 * is registered. */
WEFT_API WEFT_NODISCARD weft_status weft_op_use_remove(const char *name);

/* ---- choices ------------------------------------------------------------------- */

/* A strategy for one call: the layouts in which the operator reads its inputs and leaves its
 * outputs, and the plans that move the inputs there.  Immutable and shared. */
typedef struct weft_op_choice weft_op_choice;

enum weft_op_flag {
    WEFT_OP_FLAG_EXACT = 1,    /* weft_op_check: inputs are taken as they are; without it, changes
                                * without communication are allowed: R to S, and R to P */
    WEFT_OP_FLAG_NO_MOVES = 2, /* weft_op_propose: as weft_op_check */
    WEFT_OP_FLAG_NO_PARTIALS = 4, /* no output may be partial */
    /* Operators without a rule: all inputs are moved to R, and the outputs, which the call must
     * state, are R.  weft_op_fallback_count counts such calls. */
    WEFT_OP_FLAG_FALLBACK = 8,
    /* weft_op_propose: the cost of a strategy includes the least time to reduce its partial
     * outputs, to R or to parts of one dimension.  Without it a strategy is chosen by the moves of
     * its inputs alone, and the reduction of a partial output is not counted. */
    WEFT_OP_FLAG_PRICE_PARTIALS = 16
};

/* May a strategy be used in which input INDEX, or output INDEX if IS_OUTPUT, has the layout SPEC?
 * It must not call functions of ops.h. */
typedef bool (*weft_op_allow)(void *user, bool is_output, size_t index, const weft_spec *spec);

typedef struct weft_op_options {
    size_t struct_size;
    uint32_t flags; /* bits of enum weft_op_flag */
    size_t element; /* weft_op_list_create, if the operator takes and returns lists: which of its
                     * tensors */
    /* NULL: the costs of the context if the call has one (apply.h), else the built-in table
     * "default" */
    const weft_cost_table *costs;
    uint64_t memory_limit; /* bytes of inputs and outputs on the rank that holds most; 0: none */
    /* Layouts that inputs must be moved to, or outputs must have; one entry per input or output of
     * the call, NULL: any.  The arrays may be NULL.  Another number of entries is refused. */
    size_t fixed_input_count;
    const weft_spec *const *fixed_inputs;
    size_t fixed_output_count;
    const weft_spec *const *fixed_outputs;
    /* Layouts to which the caller is going to move the outputs; one entry per output of the call,
     * NULL: not known.  The cost of a strategy includes these moves, which the choice does not
     * have.  The array may be NULL.  Another number of entries is refused. */
    size_t wanted_output_count;
    const weft_spec *const *wanted_outputs;
    weft_op_allow allow; /* NULL: all strategies that the other options allow */
    void *user;          /* of `allow` */
} weft_op_options;

/* Find out whether the inputs of CALL are legal without communication.  The answer depends on the
 * placements: it is the same for tensors without elements and on axes of one rank, where no move
 * communicates.  *OUT has the layouts of the outputs.  OPTIONS may be NULL.  The caller releases
 * *OUT. WEFT_ERR_NOT_FOUND: the operator has no rule. WEFT_ERR_INVALID: CALL does not fit the rule.
 * WEFT_ERR_MISMATCH: the inputs are not legal; the error text names an input, its placement, the
 * placements that the other inputs allow, and the cheapest move that makes the call legal. */
WEFT_API WEFT_NODISCARD weft_status weft_op_check(const weft_op_call *call,
                                                  const weft_op_options *options,
                                                  weft_op_choice **out);

/* Find the cheapest strategy for CALL, with the moves of its inputs.  A strategy that needs no move
 * is taken first, then one whose changes need no communication; if OPTIONS price the moves of
 * outputs, only where these take no time.  An input in parts, or with an owner, becomes partial
 * only if the call has no other strategy: that move costs little and leaves more to reduce.  Among
 * equal costs, the one that changes fewest inputs is taken, then the first in the order of
 * weft_op_list_create.  OPTIONS may be NULL.  The caller releases *OUT.  Errors as in
 * weft_op_check; WEFT_ERR_MISMATCH: OPTIONS exclude every strategy; WEFT_ERR_UNSUPPORTED: inputs
 * must be moved, and the rows of the axes have more than 262,144 combinations, which are not
 * compared.  A rule with 8 rows has that many on 6 axes. */
WEFT_API WEFT_NODISCARD weft_status weft_op_propose(const weft_op_call *call,
                                                    const weft_op_options *options,
                                                    weft_op_choice **out);

/* How many calls of this process were answered by WEFT_OP_FLAG_FALLBACK. */
WEFT_API uint64_t weft_op_fallback_count(void);

/* Add a reference and return CHOICE; NULL for NULL. */
WEFT_API weft_op_choice *weft_op_choice_retain(const weft_op_choice *choice);
/* Drop a reference and set *CHOICE to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_op_choice_release(weft_op_choice **choice);

typedef struct weft_op_choice_info {
    size_t struct_size;
    const char *rule; /* its text; valid as long as the choice */
    size_t inputs, outputs;
    size_t moves;     /* inputs that must be moved */
    bool local;       /* no move communicates */
    uint64_t cost_ns; /* predicted time of the moves */
    /* Predicted time of the moves of outputs, if the options price them:
     * WEFT_OP_FLAG_PRICE_PARTIALS, wanted_outputs */
    uint64_t output_ns;
} weft_op_choice_info;

/* Copy the properties of CHOICE to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_op_choice_get(const weft_op_choice *choice,
                                                       weft_op_choice_info *out);

/* ---- properties; borrowed, valid as long as the choice; NULL: absent, or no such index ---- */

/* The layout in which the operator reads input INDEX. */
WEFT_API const weft_spec *weft_op_choice_input(const weft_op_choice *choice, size_t index);
/* The layout in which it leaves output INDEX. */
WEFT_API const weft_spec *weft_op_choice_output(const weft_op_choice *choice, size_t index);
/* The input whose memory output INDEX is: of an operator in place, or of the form `NAME.out`.
 * SIZE_MAX: it has its own memory. */
WEFT_API size_t weft_op_choice_memory(const weft_op_choice *choice, size_t index);
/* The plan that moves input INDEX there; NULL: it is there already. */
WEFT_API const weft_plan *weft_op_choice_move(const weft_op_choice *choice, size_t index);
/* The layout of the gradient with regard to input INDEX, if the gradients of the outputs have the
 * layouts of weft_op_choice_output_gradient.  NULL also for tensors without a gradient (integers,
 * inputs whose shape only is used), where a partial other than P(sum) has none, and without
 * memory. */
WEFT_API const weft_spec *weft_op_choice_gradient(const weft_op_choice *choice, size_t index);
/* The layout of the gradient with regard to output INDEX.  NULL as for inputs. */
WEFT_API const weft_spec *weft_op_choice_output_gradient(const weft_op_choice *choice,
                                                         size_t index);

/* ---- gradients ----------------------------------------------------------------- */

/* The calls that compute the gradients of a call, as data: an engine's tape runs them with
 * weft_op_apply (apply.h), or weft_op_backward_apply runs them all.  Immutable.  It depends on the
 * call only, so a tape may keep it for the next step. */
typedef struct weft_op_backward weft_op_backward;

/* Where a tensor comes from. */
enum weft_op_source {
    WEFT_OP_FROM_INPUT = 0,    /* an input of the forward call */
    WEFT_OP_FROM_OUTPUT = 1,   /* an output of the forward call */
    WEFT_OP_FROM_GRADIENT = 2, /* the gradient of an output */
    WEFT_OP_FROM_RESULT = 3,   /* an output of a call of the backward; all are numbered in order */
    WEFT_OP_FROM_NOTHING = 4   /* an optional input that is absent */
};

typedef struct weft_op_operand {
    uint32_t source; /* enum weft_op_source */
    size_t index;
} weft_op_operand;

/* One call of a backward.  Its outputs are the results FIRST_RESULT and following. */
typedef struct weft_op_gradient_call {
    const weft_op_call *call;           /* its inputs are layouts, which the call may move */
    size_t operand_count, operand_size; /* operand_count: call->input_count; operand_size:
                                         * sizeof(weft_op_operand) of weft */
    const weft_op_operand *operands;    /* of its inputs */
    size_t first_result, result_count;
} weft_op_gradient_call;

typedef struct weft_op_backward_info {
    size_t struct_size;
    size_t inputs, outputs; /* of the forward call */
    size_t calls, results;
    bool local;       /* no call moves an input by communication */
    uint64_t cost_ns; /* predicted time of the moves of all calls */
} weft_op_backward_info;

typedef struct weft_op_backward_options {
    size_t struct_size;
    size_t wanted_count;          /* the inputs of the call; another number is refused */
    const bool *wanted;           /* is the gradient of the input wanted?  NULL: all gradients */
    const weft_cost_table *costs; /* by which layouts are chosen; NULL: the table "default".  Give
                                   * the context's (weft_context_costs) to a backward that runs
                                   * there */
} weft_op_backward_options;

/* Find the calls that compute the gradients of CALL with regard to its inputs.  OPTIONS may be
 * NULL.  The gradient of an output has the output's layout, R where it is partial.  The
 * gradients of weft's operators are formulas (docs/operators.md); those of another operator NAME
 * are computed by the operator NAME_bwd, whose inputs have the names of NAME's inputs and outputs,
 * g for the gradient of the first output or dY for that of output Y, and whose outputs are named dX
 * for input X.  The caller releases *OUT.  Errors as in weft_op_propose; WEFT_ERR_UNSUPPORTED: the
 * gradients of the operator are not known, or it is a form in place, on lists or with given
 * outputs. */
WEFT_API WEFT_NODISCARD weft_status weft_op_backward_create(const weft_op_call *call,
                                                            const weft_op_backward_options *options,
                                                            weft_op_backward **out);
/* Free BACKWARD and set it to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_op_backward_release(weft_op_backward **backward);

/* Copy the properties of BACKWARD to *OUT, whose struct_size the caller sets. */
WEFT_API WEFT_NODISCARD weft_status weft_op_backward_get(const weft_op_backward *backward,
                                                         weft_op_backward_info *out);
/* How many inputs and outputs the forward call has; 0 for NULL. */
WEFT_API size_t weft_op_backward_inputs(const weft_op_backward *backward);
WEFT_API size_t weft_op_backward_outputs(const weft_op_backward *backward);
/* Call INDEX, in the order in which they run; borrowed.  NULL: INDEX is too large. */
WEFT_API const weft_op_gradient_call *weft_op_backward_call(const weft_op_backward *backward,
                                                            size_t index);
/* The gradient with regard to input INPUT: a result, or the gradient of an output; borrowed.  NULL:
 * the input has none, or it is not wanted. */
WEFT_API const weft_op_operand *weft_op_backward_gradient(const weft_op_backward *backward,
                                                          size_t input);
/* The layout of OPERAND; borrowed, valid as long as BACKWARD.  NULL: there is no such tensor. */
WEFT_API const weft_spec *weft_op_backward_spec(const weft_op_backward *backward,
                                                const weft_op_operand *operand);

/* ---- the cache ----------------------------------------------------------------- */

/* weft keeps the choices of about 4096 calls of weft_op_check and weft_op_propose, by the rules of
 * the operator, the specs of the inputs, the attributes that the rules list and the options.  Calls
 * with fixed or wanted layouts or a function `allow` are not kept.  Kept choices hold references to
 * specs, plans and meshes; weft_op_cache_clear drops them. */
WEFT_API void weft_op_cache_clear(void);

/* ---- lists --------------------------------------------------------------------- */

typedef struct weft_op_list weft_op_list; /* all strategies for one call */

/* List all strategies of CALL that OPTIONS allow, without the plans of moves.  The order is: a row
 * of the first axis, then of the second, and so on; a row is first every rank alike, then the split
 * of each factor, then parts of a join, then the rows of a function, then partial inputs.  Inputs
 * of which only the shape is used have every layout in turn; if the list would be too long, they
 * keep theirs.  OPTIONS may be NULL.  The caller releases *OUT.  Errors as in weft_op_check;
 * WEFT_ERR_UNSUPPORTED: there are more than 65,536 strategies, or more than 262,144 combinations of
 * rows. */
WEFT_API WEFT_NODISCARD weft_status weft_op_list_create(const weft_op_call *call,
                                                        const weft_op_options *options,
                                                        weft_op_list **out);
/* Number of strategies; 0 for NULL. */
WEFT_API size_t weft_op_list_count(const weft_op_list *list);
/* Strategy INDEX, borrowed; NULL: INDEX is too large. */
WEFT_API const weft_op_choice *weft_op_list_choice(const weft_op_list *list, size_t index);
/* Free the list and set *LIST to NULL.  Accepts NULL and a pointer to NULL. */
WEFT_API void weft_op_list_release(weft_op_list **list);

#ifdef __cplusplus
}
#endif
#endif
