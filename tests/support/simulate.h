/* simulate.h - a plan of one tensor, run for all ranks. */
#ifndef WEFT_TESTS_SIMULATE_H
#define WEFT_TESTS_SIMULATE_H

#include "weft/exec.h"

static inline weft_status simulate_one(const weft_plan *plan, const void *const *sources,
                                       void *const *targets)
{
    return weft_simulate(plan, &sources, &targets);
}

#endif
