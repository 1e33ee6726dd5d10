/* solve.h - strategies of a bound call that meet the caller's options.
 *
 * solve.c tries combinations of rows, match.c finds those that fit the inputs as they are,
 * propose.c the cheapest one with moves, refuse.c explains why inputs are refused, choice.c makes
 * the object that the caller gets. */
#ifndef WEFT_OPS_SOLVE_H
#define WEFT_OPS_SOLVE_H

#include "strategy.h"
#include "weft/plan.h"

enum {
    WF_ORDERS = 4,
    WF_COMBINATIONS = 1 << 18 /* of rows that are looked at */
};

/* A call with the rows of its axes. */
struct wf_solver {
    struct wf_op op;
    weft_op_options options;
    /* If the operator takes and returns lists: which of their members, and their length.  Otherwise
     * 0 and 0. */
    uint32_t element, members;
    bool is_foreach; /* every input and output is a list, but for a last input beside them */
    bool has_shared; /* there is such an input */
    bool is_out;     /* the call is of the form `NAME.out` */
    bool complete;   /* the rows have those with partial inputs */
    bool plain;      /* the values of all inputs are used, and none is split but by S or owned */
    struct wf_sizes sizes;
    struct wf_rows rows[WEFT_MAX_AXES];
    uint32_t order_count;
    uint8_t orders[WF_ORDERS][WEFT_MAX_AXES];
};

/* One strategy, as specs.  It holds references. */
struct wf_solution {
    uint32_t count;    /* tensors */
    weft_spec **specs; /* inputs, then outputs; NULL: absent */
    weft_plan **moves; /* of inputs; NULL: none */
    const struct wf_row *rows[WEFT_MAX_AXES];
    uint64_t cost_ns, output_ns; /* of the moves of inputs, and of priced moves of outputs */
    uint32_t changed;
};

/* ---- solve.c ---- */

weft_status wf_solver_begin(struct wf_solver *solver, const struct wf_op_entry *entry,
                            const weft_op_call *call, const weft_op_options *options,
                            uint32_t element) WF_NODISCARD;
void wf_solver_end(struct wf_solver *solver);
/* Add the rows with partial inputs, which most calls that match do not need. */
void wf_solver_complete(struct wf_solver *solver);
weft_status wf_solution_begin(const struct wf_solver *solver, struct wf_solution *out) WF_NODISCARD;
void wf_solution_end(struct wf_solution *solution);
/* Make the specs of STRATEGY.  *LEGAL is false if there are none or the options exclude them.  The
 * specs that SOLUTION had are dropped. */
weft_status wf_solver_try(struct wf_solver *solver, const struct wf_strategy *strategy,
                          struct wf_solution *solution, bool *legal) WF_NODISCARD;
/* WEFT_ERR_UNSUPPORTED: COUNTS rows of the axes have more than WF_COMBINATIONS combinations. */
weft_status wf_check_combinations(const struct wf_op *op, const uint32_t *counts) WF_NODISCARD;
/* The next combination: AT[axis] counts to COUNTS[axis], the last axis fastest. */
bool wf_next_combination(int32_t axes, const uint32_t *counts, uint32_t *at);

/* True if the options allow the specs of SOLUTION. */
bool wf_solver_allows(const struct wf_solver *solver, const struct wf_solution *solution);
/* Where tensor I belongs among the inputs or the outputs of the whole call. */
uint32_t wf_solver_position(const struct wf_solver *solver, uint32_t i);
/* The spec that the options fix for TENSOR, or NULL. */
const weft_spec *wf_solver_fixed(const struct wf_solver *solver, uint32_t tensor);

/* ---- match.c ---- */

/* A strategy that needs no move, or only changes without communication (unless the options demand
 * exactness).  *FOUND: whether there is one. */
weft_status wf_solver_match(struct wf_solver *solver, struct wf_solution *out,
                            bool *found) WF_NODISCARD;
/* True if ROW fits input TENSOR on AXIS as it is given; FREE: or if it is replicated there. */
bool wf_row_fits(const struct wf_op *op, const struct wf_row *row, int32_t axis, uint32_t tensor,
                 bool free_moves);

/* ---- propose.c ---- */

weft_status wf_solver_propose(struct wf_solver *solver, struct wf_solution *out,
                              bool *found) WF_NODISCARD;

/* ---- targets.c ---- */

/* True if the moves of outputs are priced. */
bool wf_options_price_outputs(const weft_op_options *options);
/* The time to move OUTPUT to WANTED; NULL: to the cheapest layout without partials, if the options
 * price that.  UINT64_MAX: there is no such move. */
weft_status wf_price_output(const weft_op_options *options, const weft_spec *output,
                            const weft_spec *wanted, uint64_t *ns) WF_NODISCARD;
/* WEFT_ERR_INVALID: a list of the options does not have one entry for each of the OUTPUTS of the
 * call. */
weft_status wf_check_output_lists(const weft_op_options *options, uint32_t outputs) WF_NODISCARD;
/* WEFT_ERR_INVALID: the spec that the options want of output INDEX, which is OUTPUT, is another
 * tensor's. */
weft_status wf_check_wanted(const weft_op_options *options, uint32_t index,
                            const struct wf_tensor_type *output) WF_NODISCARD;

/* ---- refuse.c ---- */

/* WEFT_ERR_MISMATCH: why the inputs are not legal, and what makes them so. */
weft_status wf_solver_refuse(struct wf_solver *solver, const char *function) WF_NODISCARD;

/* ---- elements.c ---- */

/* The tensors of one element of a foreach operator, as a call of the operator itself. */
struct wf_element {
    weft_op_call call;
    uint32_t members;
    bool has_shared;
    const weft_spec *inputs[WF_RULE_TENSORS];
};

/* True if NAME is the form on lists of another operator. */
bool wf_is_foreach(const char *name);
/* Find out how many lists the inputs of CALL are.  *OUT points into itself. */
weft_status wf_element_begin(const char *function, const struct wf_op_entry *entry,
                             const weft_op_call *call, struct wf_element *out) WF_NODISCARD;
void wf_element_set(struct wf_element *element, const weft_op_call *call, uint32_t at);

/* ---- forms.c ---- */

/* Read the arguments of FUNCTION, with defaults in place of what is not set. */
weft_status wf_call_read(const char *function, const weft_op_call *given,
                         const weft_op_options *options, weft_op_call *call,
                         weft_op_options *read) WF_NODISCARD;

/* A call of `NAME.out`, as a call of NAME whose outputs have given layouts. */
struct wf_out {
    weft_op_call call;
    weft_op_options options;
    uint32_t count; /* outputs */
    char name[128];
};

bool wf_is_out(const char *name, const struct wf_op_entry *entry);
/* *OUT points into itself and into CALL. */
weft_status wf_out_begin(const char *function, const struct wf_op_entry *entry,
                         const weft_op_call *call, const weft_op_options *options,
                         struct wf_out *out) WF_NODISCARD;

/* A rule for an operator that has none: all tensors are replicated.  The call is counted.  The
 * caller ends *OUT, also after a failure. */
weft_status wf_fallback_begin(const char *function, const weft_op_call *call,
                              struct wf_op_entry *out) WF_NODISCARD;
void wf_fallback_end(struct wf_op_entry *entry);

/* ---- use.c ---- */

/* Append the rows that the function of the rule's clause `use` gives, if one is registered, to the
 * rows of all axes.  Between wf_op_enter and wf_op_leave. */
weft_status wf_use_add_rows(const weft_op_call *call, struct wf_op *op,
                            struct wf_rows *rows) WF_NODISCARD;

/* ---- chain.c ---- */

enum { WF_CHAIN_INPUTS = 64 };

/* An operator that is made of others. */
struct wf_chain_parts {
    struct wf_rule *rule; /* a reference of its own */
    struct wf_op_step steps[WF_OP_STEPS];
    uint32_t count;
};

/* The parts of ENTRY, for CALL.  Between wf_op_enter and wf_op_leave.  The caller drops the rule,
 * also after a failure. */
weft_status wf_chain_read(const char *function, const struct wf_op_entry *entry,
                          const weft_op_call *call, struct wf_chain_parts *out) WF_NODISCARD;
/* Solve CALL.  MOVES: its inputs may be moved by communication.  Not between wf_op_enter and
 * wf_op_leave. */
weft_status wf_chain_solve(const char *function, const struct wf_chain_parts *parts, bool moves,
                           const weft_op_call *call, const weft_op_options *options,
                           weft_op_choice **out) WF_NODISCARD;
/* Append all strategies of CALL to LIST.  Not between wf_op_enter and wf_op_leave. */
weft_status wf_chain_list(const struct wf_chain_parts *parts, const weft_op_call *call,
                          const weft_op_options *options, weft_op_list *list) WF_NODISCARD;

/* ---- list.c ---- */

/* Append CHOICE, which is taken over, unless the list has an equal one. */
weft_status wf_list_append(weft_op_list *list, weft_op_choice *choice) WF_NODISCARD;

/* ---- choice.c ---- */

/* A choice with room for the tensors of all elements. */
weft_status wf_choice_make(const struct wf_rule *rule, uint32_t inputs, uint32_t outputs,
                           weft_op_choice **out) WF_NODISCARD;
/* Set input INDEX, and MOVE, which is taken over; NULL: it is not moved. */
void wf_choice_set_input(weft_op_choice *choice, uint32_t index, const weft_spec *spec,
                         weft_plan *move);
void wf_choice_set_output(weft_op_choice *choice, uint32_t index, const weft_spec *spec);
/* Output OUTPUT has the memory of input INPUT. */
void wf_choice_set_memory(weft_op_choice *choice, uint32_t output, uint32_t input);
/* Set the number that wf_choice_count returns. */
void wf_choice_set_count(weft_op_choice *choice, double count);
/* Set the time of the moves of outputs. */
void wf_choice_set_output_ns(weft_op_choice *choice, uint64_t ns);
/* The gradient of tensor INDEX, inputs, then outputs, which is valid as long as CHOICE; NULL: it
 * has none. */
weft_status wf_choice_gradient(const weft_op_choice *choice, size_t index,
                               const weft_spec **out) WF_NODISCARD;
/* Set the gradient of tensor INDEX: inputs, then outputs.  NULL: it has none. */
void wf_choice_set_gradient(weft_op_choice *choice, uint32_t index, const weft_spec *spec);
/* True if tensors of DTYPE have gradients. */
bool wf_choice_has_gradient(uint32_t dtype);
/* Add SOLUTION, whose references go to CHOICE, as the tensors of one element. */
weft_status wf_choice_add(weft_op_choice *choice, const struct wf_solver *solver,
                          struct wf_solution *solution) WF_NODISCARD;

#endif
