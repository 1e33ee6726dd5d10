/* kernels.h - plain kernels of some operators for weft_op_apply, on f32 in host memory. */
#ifndef WEFT_TESTS_APPLY_KERNELS_H
#define WEFT_TESTS_APPLY_KERNELS_H

#include "weft/apply.h"

/* Runs the operator that run->name names; WEFT_ERR_UNSUPPORTED for others.  USER is not used. */
weft_status plain_kernel(void *user, const weft_op_run *run);
/* Whether `is_written` is true for the outputs, and the inputs whose memory an output has, alone.
 */
bool kernel_is_told_writes(const weft_op_run *run);

#endif
