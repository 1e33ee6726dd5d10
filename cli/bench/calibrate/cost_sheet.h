/* cost_sheet.h - a cost table with numbers that can be changed.  It is read from and written to
 * the text of a table (docs/cost-model.md). */
#ifndef WEFT_CLI_BENCH_COST_SHEET_H
#define WEFT_CLI_BENCH_COST_SHEET_H

#include "base/base.h"
#include "weft/cost.h"

enum cost_link { COST_WITHIN_HOST, COST_BETWEEN_HOSTS, COST_LINKS };

/* base_ns + peer_ns per further rank that takes part + femtoseconds per byte received. */
struct cost_rate {
    uint64_t base_ns, peer_ns, femtoseconds;
};

struct cost_sheet {
    char name[32];
    bool one_sided;              /* ranks read each other's memory */
    uint64_t copy, pack, reduce; /* femtoseconds per byte */
    uint64_t flops, memory;      /* of compute; 0: not known */
    struct cost_rate rates[WEFT_STEP_KINDS][COST_LINKS];
};

/* Read the numbers of TABLE. */
weft_status cost_sheet_read(const weft_cost_table *table, struct cost_sheet *out) WF_NODISCARD;
/* Create a table with the numbers of SHEET.  The caller releases it. */
weft_status cost_sheet_table(const struct cost_sheet *sheet, weft_cost_table **out) WF_NODISCARD;

#endif
