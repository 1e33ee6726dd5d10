/* flow.h - a program of nodes: which comes before which, and which memory each uses. */
#ifndef WEFT_SCHEDULE_REORDER_FLOW_H
#define WEFT_SCHEDULE_REORDER_FLOW_H

#include "base/base.h"
#include "weft/reorder.h"

/* Lists of numbers, one for each node: that of node i is item[first[i]] to item[first[i + 1] - 1].
 */
struct wf_lists {
    uint32_t *first;
    int32_t *item;
};

struct wf_flow {
    const weft_reorder_node *nodes; /* borrowed */
    int32_t count, comms;           /* nodes; one more than the largest number of a communicator */
    struct wf_lists before, after;  /* nodes that must run earlier, later */
    struct wf_lists uses;           /* nodes whose memory it uses, each once */
    int32_t *wait_of;               /* by start; -1 for other nodes */
    int32_t *start_of;              /* by wait; -1 for other nodes */
};

static inline bool wf_list_has(const struct wf_lists *lists, int32_t node, int32_t item)
{
    for (uint32_t i = lists->first[node]; i < lists->first[node + 1]; i++)
        if (lists->item[i] == item) return true;
    return false;
}

static inline bool wf_node_communicates(const weft_reorder_node *node)
{
    return node->kind == WEFT_REORDER_NODE_COMPUTE && node->comm >= 0;
}

/* ---- flow.c ---- */

weft_status wf_flow_create(const weft_reorder_node *nodes, size_t count,
                           struct wf_flow *out) WF_NODISCARD;
void wf_flow_free(struct wf_flow *flow);

/* ---- edges.c ---- */

/* Fill the lists `before`, `after` and `uses` of FLOW, whose other members are set. */
weft_status wf_flow_connect(struct wf_flow *flow) WF_NODISCARD;

/* ---- measure.c ---- */

struct wf_measure {
    uint64_t time, exposed, peak;
};

/* Find the figures of ORDER, and by start the time that its wait waits in EXPOSED (may be NULL).
 */
weft_status wf_flow_measure(const struct wf_flow *flow, const int32_t *order, uint64_t *exposed,
                            struct wf_measure *out) WF_NODISCARD;
/* By node, the bytes that are freed behind it in ORDER.  LAST has room for each node, and gets the
 * last user of its memory; -1: it is not freed. */
void wf_flow_freed(const struct wf_flow *flow, const int32_t *order, int32_t *last,
                   uint64_t *freed);

/* ---- passes; ORDER holds the given order and gets the new one ---- */

/* What ended the moves of collectives, by start. */
struct wf_limits {
    uint32_t *up, *down;
};

weft_status wf_pass_raise(const struct wf_flow *flow, int32_t *order) WF_NODISCARD;
weft_status wf_pass_sink(const struct wf_flow *flow, int32_t *order) WF_NODISCARD;
weft_status wf_pass_iterative(const struct wf_flow *flow, uint64_t limit, int32_t *order,
                              const struct wf_limits *limits) WF_NODISCARD;
weft_status wf_pass_list(const struct wf_flow *flow, uint64_t limit, int32_t *order) WF_NODISCARD;

/* ---- raise.c ---- */

/* By node, the number of the first start that needs it, counted in the order of nodes; INT32_MAX:
 * none does. */
void wf_flow_leads_to(const struct wf_flow *flow, int32_t *out);

/* ---- heap.c: the smallest of numbers ---- */

struct wf_ready {
    uint64_t *keys;
    size_t count;
};

void wf_ready_push(struct wf_ready *ready, uint64_t key);
uint64_t wf_ready_pop(struct wf_ready *ready);

#endif
