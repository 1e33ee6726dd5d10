/* tally.h - counters of operations, added up over ranks. */
#ifndef WEFT_CLI_TALLY_H
#define WEFT_CLI_TALLY_H

#include "common/cli.h"
#include "weft/trace.h"

#define TALLY_AXES 16

/* Operations along AXES. */
struct tally_axes {
    char axes[32];
    uint64_t operations, sent, received;
};

/* It has no pointers: ranks send it to each other. */
struct tally {
    uint64_t operations[WEFT_RECORD_OPERATION_COUNT], steps[WEFT_STEP_KINDS];
    weft_record_counts_info sums;
    size_t axes_count;
    struct tally_axes axes[TALLY_AXES];
    int32_t ranks; /* whose counters are in it */
};

/* Add the counters of a rank, whose counting has ended. */
weft_status tally_add_counts(struct tally *tally, const weft_record_counts *counts) WF_NODISCARD;
/* Add OTHER. */
void tally_add(struct tally *tally, const struct tally *other);
/* Add the lines of FILE, which ranks wrote by WEFT_COUNTS.  False if it is missing or incomplete.
 */
bool tally_read(struct tally *tally, const char *path);

/* A line for each counter that is not 0, of all ranks together. */
void tally_print(const struct tally *tally, struct wf_text *out);
/* The members of a JSON object. */
void tally_print_json(const struct tally *tally, struct wf_json *json);

#endif
