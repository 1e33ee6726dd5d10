/* order.h - do the orders of several ranks' runs fit together? */
#ifndef WEFT_COMM_ORDER_H
#define WEFT_COMM_ORDER_H

#include "runs.h"

/* Another rank's counts. */
struct wf_runs_answer {
    int32_t rank;         /* of the world */
    uint64_t collectives; /* on the communicator */
    uint32_t binding, step;
    uint32_t note_count;
    struct wf_reader notes, counts;
    char waits_in[WF_STEP_TEXT]; /* the step in which it waits for this rank, or "" */
};

/* Read RANK's answer to a question about a communicator.  False: it has no counts. */
bool wf_runs_answer_read(weft_blob blob, int32_t rank, struct wf_runs_answer *out);

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

/* Add the runs of ANSWER to *OUT, which has none. */
void wf_order_set(const struct wf_runs_answer *answer, struct wf_order *out);
/* The number of runs of BINDING that ORDER's rank has begun.  False: it does not run the plan. */
bool wf_order_count(const struct wf_reader *counts, uint32_t binding, uint64_t *begun);

/* Merge ORDERS into one order of all runs, and change `next` of each.  Without such an order, OUT
 * gets a text that names a circle of ranks of which each runs a plan before the next rank's. */
void wf_order_merge(struct wf_order *orders, int32_t count, struct wf_text *out);

#endif
