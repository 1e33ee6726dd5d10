/* ways.h - which collectives the steps of a plan may use.
 *
 * A step uses a collective of the backend, pull, an exchange of regions, or one of packed messages.
 * The latter is the backend's all_to_all_v, or what comm has in its place (comm/carry/carry.h). The
 * ranks agree on this before a plan is bound, so all of them choose the same way. */
#ifndef WEFT_EXEC_WAYS_H
#define WEFT_EXEC_WAYS_H

#include "comm/comm.h"
#include "plan/plan.h"

/* What the backend of a rank does not have. */
struct wf_ways {
    /* The dtypes, a bit each, for which it does not have a collective with the dtypes and
     * reductions of a plan. */
    uint32_t denied[WEFT_COLL_COUNT];
    uint32_t no_exchange; /* of regions */
};

/* Ask this rank's backend about the collectives of PLAN's steps. */
void wf_ways_find(const weft_plan *plan, const weft_comm *comm, struct wf_ways *out);
/* Deny what either of the two denies. */
void wf_ways_join(struct wf_ways *ways, const struct wf_ways *other);

static inline bool wf_ways_have(const struct wf_ways *ways, uint32_t collective, uint32_t dtype)
{
    return (ways->denied[collective] >> dtype & 1) == 0;
}

/* WEFT_OK if the ranks of TEAM can exchange packed messages of DTYPE; otherwise the error says what
 * the plugin lacks. */
weft_status wf_ways_require_exchange(const struct wf_ways *ways, weft_comm *team,
                                     uint32_t dtype) WF_NODISCARD;

#endif
