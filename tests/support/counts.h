/* counts.h - what was counted, as a value. */
#ifndef WEFT_TESTS_COUNTS_H
#define WEFT_TESTS_COUNTS_H

#include "weft/trace.h"

struct counted {
    uint64_t operations[WEFT_RECORD_OPERATION_COUNT], steps[WEFT_STEP_KINDS];
    weft_record_counts_info sums;
    size_t axes_count;
};

/* End and release COUNTS, and set *OUT to what they have counted. */
static inline weft_status counts_take(weft_record_counts *counts, struct counted *out)
{
    weft_status status = weft_record_counts_end(counts);

    *out = (struct counted){.sums.struct_size = sizeof out->sums,
                            .axes_count = weft_record_counts_axes_count(counts)};
    for (int i = 0; i < WEFT_RECORD_OPERATION_COUNT; i++)
        out->operations[i] = weft_record_counts_operations(counts, (enum weft_record_operation)i);
    for (int i = 0; i < WEFT_STEP_KINDS; i++)
        out->steps[i] = weft_record_counts_steps(counts, (enum weft_step_kind)i);
    if (status == WEFT_OK) status = weft_record_counts_get(counts, &out->sums);
    weft_record_counts_release(&counts);
    return status;
}

#endif
