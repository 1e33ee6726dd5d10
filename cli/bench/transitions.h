/* transitions.h - the five redistributions of a square tensor that benchmarks measure. */
#ifndef WEFT_CLI_BENCH_TRANSITIONS_H
#define WEFT_CLI_BENCH_TRANSITIONS_H

#include "base/base.h"
#include "weft/weft.h"

enum { TRANSITIONS = 5 };

struct transition {
    const char *from, *to;
};
extern const struct transition transitions[TRANSITIONS];

/* The specs of f32[SIZE,SIZE] on MESH, which has one axis.  After a failure *FROM may be set. */
weft_status transition_specs(const struct transition *transition, const weft_mesh *mesh,
                             int64_t size, weft_spec **from, weft_spec **to);
/* Add "S(0) -> R", 14 columns wide. */
void transition_add_name(const struct transition *transition, struct wf_text *text);

#endif
