/* calibrate.h - a cost table measured by ranks that run the steps it prices. */
#ifndef WEFT_CLI_BENCH_CALIBRATE_H
#define WEFT_CLI_BENCH_CALIBRATE_H

#include "bench/calibrate/cost_sheet.h"
#include "weft/weft.h"

enum { CALIBRATED_STEPS = 7 }; /* kinds of steps that are measured */

struct calibration {
    /* Set by the caller: called before each kind of measurement. */
    void (*progress)(void *self, const char *what);
    void *progress_self;

    weft_cost_table *table;
    int32_t ranks, hosts;
    bool measured[COST_LINKS]; /* else the lines are those of BASE */
    bool computed;             /* flops and memory are measured; the same */
    char base[32];
};

/* Measure on all ranks of CONTEXT, about BUDGET_NS for each number.  Collective; rank 0's result is
 * the one to use.  The caller releases the table. */
weft_status calibrate(weft_context *context, uint64_t budget_ns, struct calibration *out);

#endif
