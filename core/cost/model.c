/* model.c - time of a step: latency, bytes over bandwidth, and local work. */
#include "cost.h"

/* The order of operations prevents overflow for any tensor that fits an address space, at any rate
 * of a real device. */
uint64_t wf_transfer_ns(uint64_t bytes, uint64_t rate)
{
    const uint64_t unit = 1000000; /* femtoseconds in a nanosecond */

    return wf_add_capped(wf_mul_capped(bytes / unit, rate), bytes % unit * rate / unit);
}

uint64_t wf_cost_ns(const weft_cost_table *table, const struct wf_work *work)
{
    const struct wf_rate *rate = &table->rates[work->kind][work->link];
    uint64_t peers = (uint64_t)(work->ranks - 1), ns;

    if (work->kind == WEFT_STEP_ALL_REDUCE) peers *= 2; /* reduce-scatter, then all-gather */
    ns = wf_add_capped(rate->base_ns, wf_mul_capped(peers, rate->peer_ns));
    ns = wf_add_capped(ns, wf_transfer_ns(work->received, rate->femtoseconds));
    ns = wf_add_capped(ns, wf_transfer_ns(work->copied, table->copy));
    ns = wf_add_capped(ns, wf_transfer_ns(work->packed, table->pack));
    return wf_add_capped(ns, wf_transfer_ns(work->reduced, table->reduce));
}
