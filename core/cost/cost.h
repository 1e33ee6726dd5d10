/* cost.h - the cost of a step, in integer nanoseconds, so that every rank computes the same
 * number. */
#ifndef WEFT_COST_COST_H
#define WEFT_COST_COST_H

#include "base/base.h"
#include "weft/cost.h"

#include <stdatomic.h>

enum wf_link { WF_WITHIN_HOST, WF_BETWEEN_HOSTS, WF_BEYOND, WF_LINKS };

/* base_ns + peer_ns per further rank that takes part + femtoseconds per byte received. */
struct wf_rate {
    uint64_t base_ns, peer_ns, femtoseconds;
};

struct weft_cost_table {
    _Atomic(int64_t) references; /* not counted for a built-in table */
    bool built_in;
    char name[32];
    char source[256]; /* where the numbers come from; "": not known */
    struct wf_rate rates[WEFT_STEP_KINDS][WF_LINKS];
    /* Consecutive ranks that links within, and between, reach; 0: those of a host, and all. */
    uint64_t domains[WF_LINKS - 1];
    /* Femtoseconds per byte: a plain copy, a strided pack or unpack, one operand of a reduction. */
    uint64_t copy, pack, reduce;
    /* Compute of a rank: millions of floating-point operations per second, and femtoseconds per
     * byte that it reads or writes; 0: not known. */
    uint64_t flops, memory;
    uint64_t peak; /* what the device's maker states for `flops`; 0: not known */
    /* The same as `flops` of fused attention, and of products in fp8; 0: as `flops`, and not known.
     */
    uint64_t attention, flops_f8;
    /* Percent that compute, and a move, take longer while they run beside each other. */
    uint64_t compute_beside, moves_beside;
    uint64_t launch; /* nanoseconds: no compute takes less */
    /* `flops` is the rate of products of one size; other products are slower or faster, by one
     * curve. */
    bool by_size;
    /* A collective of a group that has several ranks on each host uses the links of all of them. */
    bool shares_links;
    /* Ranks read each other's memory, so nothing is packed or staged. */
    bool one_sided;
};

/* The work of one step, on its busiest rank. */
struct wf_work {
    uint32_t kind; /* enum weft_step_kind */
    uint32_t link; /* enum wf_link, the slowest it uses */
    int64_t ranks; /* ranks of one group */
    int64_t lanes; /* ranks of one group on each host, whose links share the bytes; 0: as 1 */
    uint64_t received, copied, packed, reduced; /* bytes */
};

/* ---- model.c ---- */

/* BYTES at RATE femtoseconds each, in nanoseconds, rounded down. */
uint64_t wf_transfer_ns(uint64_t bytes, uint64_t rate);
uint64_t wf_cost_ns(const weft_cost_table *table, const struct wf_work *work);
/* Femtoseconds per byte of a step of KIND over LINK, if LANES ranks of a host share the bytes. */
uint64_t wf_cost_rate(const weft_cost_table *table, uint32_t kind, uint32_t link, int64_t lanes);
/* Do the ranks of a host share the bytes of a step of KIND, so that all their links carry them? */
bool wf_cost_may_share(uint32_t kind);

/* ---- machines.c ---- */

/* The built-in tables of GPUs, first the one that "default" means; NULL after the last. */
extern const weft_cost_table *const wf_cost_machines[];

/* ---- table.c ---- */

/* The names of the built-in tables, for error texts. */
#define WF_COST_NAMES                                                                              \
    "default (which is h100), h100, h100-500w, a100-80, h200, b200, gb200, mi300x, cpu, dtensor"

/* The table h100. */
const weft_cost_table *wf_cost_default(void);
/* A reference to the built-in table NAME, or to the one that "default" means; NULL: there is none.
 */
weft_cost_table *wf_cost_built_in(const char *name);
/* Give TABLE all numbers and the source of BASE. */
void wf_cost_inherit(weft_cost_table *table, const weft_cost_table *base);
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
