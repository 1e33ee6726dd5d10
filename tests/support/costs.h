/* costs.h - cost tables by name for tests, among them one whose domains are small. */
#ifndef WEFT_TESTS_COSTS_H
#define WEFT_TESTS_COSTS_H

#include "support/suite.h"
#include "weft/cost.h"

#include <string.h>

/* Open the table NAME: a built-in one, or "domains", in which two ranks are within and four between
 * hosts, links are shared, and some rates beyond are less than between. */
static inline void open_costs(const char *name, weft_cost_table **out)
{
    static const char domains[] = "weft-cost 2\nbase h100\nname domains\n"
                                  "domain within 2\ndomain between 4\n"
                                  "all-gather beyond 9000 100 60000\n"
                                  "all-reduce beyond 5000 4000 8000\n"
                                  "all-to-all beyond 6600 2700 90000\n"
                                  "permute between 6600 0 2000\n"
                                  "exchange beyond 3000 300 30000\n";

    if (strcmp(name, "domains") == 0)
        ck_assert_msg(weft_cost_table_parse(domains, out) == WEFT_OK, "%s", weft_last_error());
    else
        ck_assert_int_eq(weft_cost_table_open(name, out), WEFT_OK);
}

#endif
