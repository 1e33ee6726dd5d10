/* phase_cases.h - random calls of weft_op_apply_phases on random layouts, compared with the same
 * calls on whole tensors. */
#ifndef WEFT_TESTS_APPLY_PHASE_CASES_H
#define WEFT_TESTS_APPLY_PHASE_CASES_H

#include "weft/apply.h"
#include "weft/context.h"

/* Where calls run. */
struct phase_place {
    weft_context *context;
    weft_stream *stream;
    /* NULL: kernels use the memory of tensors as it is.  Otherwise it runs USER, a struct mirror
     * (mirror.h), on the memory of a device. */
    weft_op_kernel kernel;
};

/* Run COUNT calls on meshes of at most 4 ranks of the job.  All ranks call it. */
weft_status run_phase_cases(const struct phase_place *place, int count);

#endif
