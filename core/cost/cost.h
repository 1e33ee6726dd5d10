/* cost.h - the cost of a step, in integer nanoseconds, so that every rank computes the same
 * number. */
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
    _Atomic(int64_t) references; /* not counted for a built-in table */
    bool built_in;
    char name[32];
    struct wf_rate rates[WEFT_STEP_KINDS][WF_LINKS];
    /* Femtoseconds per byte: a plain copy, a strided pack or unpack, one operand of a reduction. */
    uint64_t copy, pack, reduce;
    /* Compute of a rank: millions of floating-point operations per second, and femtoseconds per
     * byte that it reads or writes; 0: not known. */
    uint64_t flops, memory;
    /* Ranks read each other's memory, so nothing is packed or staged. */
    bool one_sided;
};

/* The work of one step, on its busiest rank. */
struct wf_work {
    uint32_t kind;                              /* enum weft_step_kind */
    uint32_t link;                              /* enum wf_link, the slowest it uses */
    int64_t ranks;                              /* ranks of one group */
    uint64_t received, copied, packed, reduced; /* bytes */
};

/* ---- model.c ---- */

/* BYTES at RATE femtoseconds each, in nanoseconds, rounded down. */
uint64_t wf_transfer_ns(uint64_t bytes, uint64_t rate);
uint64_t wf_cost_ns(const weft_cost_table *table, const struct wf_work *work);

/* ---- table.c ---- */

const weft_cost_table *wf_cost_default(void);
/* A reference to the built-in table NAME; NULL: there is none. */
weft_cost_table *wf_cost_built_in(const char *name);
/* A copy of TABLE with another NAME, which is truncated if it is too long.  The caller may change
 * the copy until it passes it on. */
weft_status wf_cost_copy(const weft_cost_table *table, const char *name,
                         weft_cost_table **out) WF_NODISCARD;

/* ---- derive.c ---- */

/* Answers the cost of a collective.  Any failure means that the cost is unknown. */
typedef weft_status wf_cost_answer(void *self, const weft_support_query *query, uint64_t bytes,
                                   weft_cost *out);

/* Set TABLE's rates within a host from ANSWER, for about RANKS ranks. */
void wf_cost_derive(weft_cost_table *table, int32_t ranks, wf_cost_answer *answer, void *self);

#endif
