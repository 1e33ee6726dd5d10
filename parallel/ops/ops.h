/* ops.h - calls of operators, for the modules above. */
#ifndef WEFT_OPS_OPS_H
#define WEFT_OPS_OPS_H

#include "ops/bind/local.h"

/* As weft_op_propose with MOVES, as weft_op_check without; errors name FUNCTION. */
weft_status wf_op_answer(const char *function, bool moves, const weft_op_call *call,
                         const weft_op_options *options, weft_op_choice **out) WF_NODISCARD;
/* WEFT_ERR_INVALID: a list of CALL has more than 2^31 - 1 entries. */
weft_status wf_call_check_counts(const char *function, const weft_op_call *call) WF_NODISCARD;
/* WEFT_ERR_INVALID: weft_op_call.flags has unknown bits. */
weft_status wf_call_check_flags(const char *function, const weft_op_call *call) WF_NODISCARD;
/* WEFT_ERR_INVALID: inputs of CALL have several dtypes where the rule wants one. */
weft_status wf_call_check_dtypes(const weft_op_call *call) WF_NODISCARD;
/* Changes whenever a function that computes rows is registered or removed (use.c). */
uint64_t wf_use_generation(void);
/* WEFT_ERR_INVALID: NAME, called WHAT in the text, has a control character.  FUNCTION may be NULL.
 */
weft_status wf_name_check(const char *function, const char *what, const char *name) WF_NODISCARD;
/* False if the strategies of operator NAME do not depend on the value of attribute ATTR, such as
 * the rate of an optimizer. */
bool wf_op_attr_matters(const char *name, const char *attr);
/* As weft_op_choice_get, without a copy. */
const weft_op_choice_info *wf_choice_info(const weft_op_choice *choice);
/* For each output of CHOICE 1 + the input whose memory it is; 0: it has its own. */
const uint32_t *wf_choice_memories(const weft_op_choice *choice);
/* The attributes of CHOICE's call that are sizes of parts, *COUNT of them. */
const struct wf_local_size *wf_choice_local_sizes(const weft_op_choice *choice, uint32_t *count);
/* What a kernel divides its sum by to get an average: the elements of the whole row, divided by the
 * number of ranks over whose contributions the first output is the average. */
double wf_choice_count(const weft_op_choice *choice);

#endif
