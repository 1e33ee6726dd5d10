/* calibrate.h - a cost table measured by ranks that run the steps it prices. */
#ifndef WEFT_CLI_BENCH_CALIBRATE_H
#define WEFT_CLI_BENCH_CALIBRATE_H

#include "cost/cost.h"
#include "weft/weft.h"

struct calibration {
    weft_cost_table *table;
    int32_t ranks, hosts;
    bool measured[WF_LINKS]; /* else the lines are those of BASE */
    char base[32];
};

/* Measure on all ranks of CONTEXT, about BUDGET_NS for each time that is taken.  Collective; what
 * rank 0 gets counts.  The caller releases the table. */
weft_status calibrate(weft_context *context, uint64_t budget_ns, struct calibration *out);

#endif
