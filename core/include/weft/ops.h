/* ops.h - how operators act on layouts.
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

#include "plan.h"
#include "spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rules --------------------------------------------------------------------- */

/* Register the rules of TEXT, one per line; `#` begins a comment.  A name may stand in several
 * lines: the first line whose guards hold applies.  The rules of a name replace weft's own rules of
 * that name until weft_op_remove.  Either all lines are registered or none.
 * WEFT_ERR_PARSE: TEXT is malformed; the error text gives the line and the position.
 * WEFT_ERR_INVALID: a rule is incomplete, or a name has other registered rules already. */
WEFT_API WEFT_NODISCARD weft_status weft_op_register(const char *text);

/* As weft_op_register, but rules that were registered before under the same names are replaced. */
WEFT_API WEFT_NODISCARD weft_status weft_op_replace(const char *text);

/* Remove the rules that were registered under NAME.  weft's own rules of that name apply again.
 * WEFT_ERR_NOT_FOUND: none were registered. */
WEFT_API WEFT_NODISCARD weft_status weft_op_remove(const char *name);

/* Check TEXT as weft_op_register does without registering it, and write the one form of its rules
 * to BUFFER: equal rules have equal texts.  BUFFER, CAPACITY and LENGTH as in weft_mesh_print
 * (mesh.h). */
WEFT_API WEFT_NODISCARD weft_status weft_op_format(const char *text, char *buffer, size_t capacity,
                                                   size_t *length);

/* Write the rules of the operator NAME to BUFFER, one per line.  WEFT_ERR_NOT_FOUND suggests a
 * similar name.  BUFFER, CAPACITY and LENGTH as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_op_print(const char *name, char *buffer, size_t capacity,
                                                  size_t *length);

/* Write the names of all operators, in alphabetical order and one per line, to BUFFER.  BUFFER,
 * CAPACITY and LENGTH as in weft_mesh_print. */
WEFT_API WEFT_NODISCARD weft_status weft_op_print_names(char *buffer, size_t capacity,
                                                        size_t *length);

/* A digest of all rules that apply now.  Equal on two ranks if they have the same rules, in
 * whatever order they were registered; 0: there is no memory for weft's own rules. */
WEFT_API uint64_t weft_op_digest(void);

#ifdef __cplusplus
}
#endif
#endif
