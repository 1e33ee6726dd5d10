/* backward.h - the calls that compute the gradients of a call.
 *
 *     formulas.c  the gradients of operators, as text
 *     evaluate.c  reads a formula and makes its calls
 *     einsum.c    the gradients of einsum, which depend on its equation
 *     values.c    attributes of these calls
 *     steps.c     the list of calls, with the layouts of their results
 *     written.c   gradients by an operator NAME_bwd, whose tensors have the names of NAME's
 *     backward.c  the public functions */
#ifndef WEFT_OPS_BACKWARD_H
#define WEFT_OPS_BACKWARD_H

#include "ops/ops.h"
#include "ops/solve.h"

/* Memory that lives as long as the object. */
struct wf_piece {
    struct wf_piece *next;
    _Alignas(16) unsigned char data[];
};

struct weft_op_backward {
    weft_op_backward_info info;
    weft_op_choice *forward;
    struct wf_piece *pieces;
    weft_op_gradient_call *calls;
    weft_spec **results;
    size_t call_room, result_room;
    weft_spec **inputs;     /* of the forward call */
    weft_spec **gradients;  /* of its outputs; NULL: an output has none */
    weft_op_operand *found; /* of each input; WEFT_OP_FROM_NOTHING: it has no gradient */
};

/* A backward in the making. */
struct wf_derivation {
    weft_op_backward *backward;
    const weft_op_call *forward;
    const bool *wanted;             /* per input; NULL: all */
    const weft_op_options *options; /* costs, by which layouts are chosen */
    struct wf_rule *rule;           /* of the forward call; a reference of its own */
    bool is_registered;             /* by the program, in place of weft's rule or beside them */
};

/* Some tensors of the forward call, or results. */
struct wf_operands {
    weft_op_operand *list;
    size_t count, room;
};

/* ---- formulas.c ---- */

/* The formulas of the operator of CALL, one of weft's own: "a = ...; b = ...".  NULL if they are
 * not known. */
const char *wf_formula_find(const weft_op_call *call);

/* ---- evaluate.c ---- */

weft_status wf_formula_evaluate(struct wf_derivation *d, const char *formula) WF_NODISCARD;

/* ---- einsum.c ---- */

weft_status wf_einsum_evaluate(struct wf_derivation *d) WF_NODISCARD;

/* ---- values.c ---- */

/* Read "NAME = value" at SCAN, where NAME was taken, and append the attribute to CALL, which has
 * room for it.  An attribute of the forward call that is absent is left out. */
weft_status wf_value_read(struct wf_derivation *d, struct wf_scan *scan, const char *name,
                          size_t length, weft_op_call *call) WF_NODISCARD;
/* Append a copy of attribute FROM under NAME. */
weft_status wf_value_add(struct wf_derivation *d, const char *name, const weft_op_attr *from,
                         weft_op_call *call) WF_NODISCARD;
weft_status wf_value_add_list(struct wf_derivation *d, const char *name, const int64_t *list,
                              size_t count, weft_op_call *call) WF_NODISCARD;
weft_status wf_value_add_int(struct wf_derivation *d, const char *name, int64_t value,
                             weft_op_call *call) WF_NODISCARD;
/* Append the attributes of the forward call that the operator of CALL knows and CALL lacks. */
weft_status wf_value_add_known(struct wf_derivation *d, weft_op_call *call) WF_NODISCARD;

/* ---- steps.c ---- */

enum { WF_STEP_ATTRS = 16 };

void *wf_backward_room(weft_op_backward *backward, size_t count, size_t bytes) WF_NODISCARD;
char *wf_backward_text(weft_op_backward *backward, const char *text, size_t length) WF_NODISCARD;
const weft_spec *wf_backward_spec(const weft_op_backward *backward, weft_op_operand operand);
/* The tensors of the forward rule's slot SLOT: inputs, then outputs.  GRADIENT: their gradients. */
weft_status wf_derive_slot(struct wf_derivation *d, uint32_t slot, bool gradient,
                           struct wf_operands *out) WF_NODISCARD;
/* The slot of that name; -1: none. */
int wf_derive_find(const struct wf_derivation *d, const char *name, size_t length);
/* Begin a call with room for WF_STEP_ATTRS attributes. */
weft_status wf_step_begin(struct wf_derivation *d, const char *name, size_t length,
                          weft_op_call *out) WF_NODISCARD;
/* Add CALL on OPERANDS, and find the layouts of its results, whose first is *RESULT. */
weft_status wf_step_add(struct wf_derivation *d, weft_op_call *call,
                        const struct wf_operands *operands, weft_op_operand *result) WF_NODISCARD;
/* OPERAND is the gradient of input INDEX, once it is summed over what broadcasts and has the
 * dtype of the input. */
weft_status wf_derive_set(struct wf_derivation *d, size_t index,
                          weft_op_operand operand) WF_NODISCARD;
/* True if the caller wants the gradient of input INDEX, and it can have one. */
bool wf_derive_wants(const struct wf_derivation *d, size_t index);

/* ---- written.c ---- */

/* *FOUND is false if there is no operator NAME_bwd. */
weft_status wf_written_evaluate(struct wf_derivation *d, bool *found) WF_NODISCARD;

#endif
