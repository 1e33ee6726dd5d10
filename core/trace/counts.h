/* counts.h - counters of operations, as an observer (counts.c), and as a file (counts_file.c). */
#ifndef WEFT_TRACE_COUNTS_H
#define WEFT_TRACE_COUNTS_H

#include "trace.h"

#define WF_COUNTED_AXES 16

/* Operations along AXES. */
struct wf_axes_sums {
    char axes[32];
    uint64_t operations, sent, received;
};

/* Sums over operations, as weft_record_counts_info has them. */
struct wf_sums {
    uint64_t operations[WEFT_RECORD_OPERATION_COUNT];
    uint64_t steps[WEFT_STEP_KINDS];
    uint64_t sent, received, implicit_moves, cache_hits, cache_misses, failed, axes_missed;
    uint32_t axes_count;
    struct wf_axes_sums axes[WF_COUNTED_AXES];
};

struct weft_record_counts {
    weft_record_counts *next; /* of those that have not ended */
    weft_context *context;    /* NULL: the counting has ended */
    struct wf_sums before;    /* when it began */
    struct wf_sums grown;     /* since then; 0 until the end */
};

/* Begin to count the operations of TRACE, which is that of CONTEXT.  The caller ends the counting,
 * unless TRACE ends, and frees *OUT by wf_free. */
weft_status wf_counts_begin(struct wf_trace *trace, weft_context *context,
                            weft_record_counts **out) WF_NODISCARD;
/* End the counting of COUNTS, which TRACE has. */
void wf_counts_end(struct wf_trace *trace, weft_record_counts *counts);
/* End every counting, and free COUNTER.  Accepts NULL. */
void wf_counter_free(struct wf_counter *counter);

/* Append COUNTS to the file PATTERN, in whose name "%r" becomes RANK; without it, ".RANK" is
 * appended to the name. */
weft_status wf_counts_append(const struct wf_sums *counts, const char *pattern,
                             int32_t rank) WF_NODISCARD;

#endif
