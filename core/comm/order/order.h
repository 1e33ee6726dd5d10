/* order.h - do the orders of several ranks' runs fit together? */
#ifndef WEFT_COMM_ORDER_H
#define WEFT_COMM_ORDER_H

#include "runs.h"

/* The recent runs of one rank, the oldest first. */
struct wf_order {
    int32_t rank; /* of the world */
    uint32_t count, next;
    struct {
        uint32_t binding;
        uint64_t number;
    } runs[WF_RUNS_RECENT];
    struct wf_reader counts; /* pairs of a binding and the number of its runs that have begun */
};

/* The number of runs of BINDING that ORDER's rank has begun.  False: it does not run the plan. */
bool wf_order_count(const struct wf_reader *counts, uint32_t binding, uint64_t *begun);

/* Merge ORDERS into one order of all runs, and change `next` of each.  Without such an order, OUT
 * gets a text that names a circle of ranks of which each runs a plan before the next rank's. */
void wf_order_merge(struct wf_order *orders, int32_t count, struct wf_text *out);

#endif
