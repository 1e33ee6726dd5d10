/* phase_cases.h - random calls of weft_op_apply_phases on random layouts, compared with the same
 * calls on whole tensors. */
#ifndef WEFT_TESTS_APPLY_PHASE_CASES_H
#define WEFT_TESTS_APPLY_PHASE_CASES_H

#include "weft/context.h"

/* Run COUNT calls on CONTEXT, a job of 4 ranks.  All ranks call it. */
weft_status run_phase_cases(weft_context *context, int count);

#endif
