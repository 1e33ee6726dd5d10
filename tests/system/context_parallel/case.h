/* case.h - one random attention, the same on all ranks, and its comparison with one rank's. */
#ifndef WEFT_TESTS_CP_CASE_RUN_H
#define WEFT_TESTS_CP_CASE_RUN_H

#include "attention.h"

struct drawn_case {
    struct cp_case c;
    char mesh[32];
    struct cp_sizes sizes;
    struct reference reference;
    bool uses_stream;
};

extern struct drawn_case drawn;

/* Draw a case whose axis has RANKS ranks, beside OTHERS ranks of another axis.  The caller frees
 * drawn.reference. */
void draw_case(struct random *r, int32_t ranks, int32_t others);
/* The case as text, for failures. */
const char *case_text(void);
/* Run the case on this rank, forward and backward, and compare. */
weft_status run_case(weft_context *ctx);

#endif
