/* cost.h - what a step costs, in integer nanoseconds, so that every rank gets the same number. */
#ifndef WEFT_COST_COST_H
#define WEFT_COST_COST_H

#include "base/base.h"
#include "weft/cost.h"

#include <stdatomic.h>

enum wf_link { WF_WITHIN_HOST, WF_BETWEEN_HOSTS, WF_LINKS };

/* base_ns + peer_ns per further rank that takes part + femtoseconds per byte received. */
struct wf_rate {
    uint64_t base_ns, peer_ns, femtoseconds;
};

struct weft_cost_table {
    _Atomic(int64_t) references; /* of a built-in table: not counted */
    bool built_in;
    char name[32];
    struct wf_rate rates[WEFT_STEP_KINDS][WF_LINKS];
    /* Femtoseconds per byte: a plain copy, a strided pack or unpack, one operand of a reduction. */
    uint64_t copy, pack, reduce;
    /* Ranks read each other's memory: nothing is packed, nothing staged. */
    bool one_sided;
};

/* The work of one step on the rank that has most to do. */
struct wf_work {
    uint32_t kind;                              /* enum weft_step_kind */
    uint32_t link;                              /* enum wf_link, the slowest it uses */
    int64_t ranks;                              /* that take part in one group */
    uint64_t received, copied, packed, reduced; /* bytes */
};

/* ---- model.c ---- */

uint64_t wf_cost_ns(const weft_cost_table *table, const struct wf_work *work);

/* ---- table.c ---- */

const weft_cost_table *wf_cost_default(void);
/* A copy of TABLE under another NAME, which is cut if it is too long; the caller's own to change
 * until it hands it on. */
weft_status wf_cost_copy(const weft_cost_table *table, const char *name,
                         weft_cost_table **out) WF_NODISCARD;

/* ---- derive.c ---- */

/* What a collective costs; any failure means that nothing is known of it. */
typedef weft_status wf_cost_answer(void *self, const weft_support_query *query, uint64_t bytes,
                                   weft_cost *out);

/* Change TABLE's rates within a host to what ANSWER says for about RANKS ranks. */
void wf_cost_derive(weft_cost_table *table, int32_t ranks, wf_cost_answer *answer, void *self);

#endif
