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

uint64_t weft_cost_table_compute_ns(const weft_cost_table *table, uint64_t flops, uint64_t bytes)
{
    uint64_t work, traffic;

    if (table == NULL || table->flops == 0) return UINT64_MAX;
    work = wf_add_capped(wf_mul_capped(flops / table->flops, 1000),
                         flops % table->flops * 1000 / table->flops);
    traffic = wf_transfer_ns(bytes, table->memory);
    return work > traffic ? work : traffic;
}

weft_status weft_cost_table_step_ns(const weft_cost_table *table, const weft_cost_step *step,
                                    uint64_t *ns)
{
    static const char function[] = "weft_cost_table_step_ns";
    weft_cost_step s = {0};
    struct wf_work work;

    if (table == NULL) return wf_fail_null(function, "table");
    if (step == NULL) return wf_fail_null(function, "step");
    if (ns == NULL) return wf_fail_null(function, "ns");
    WF_TRY(wf_fail_named(wf_options_read("weft_cost_step", step, &s, sizeof s), function));
    if (s.kind >= WEFT_STEP_KINDS)
        return wf_fail(WEFT_ERR_INVALID, "%s: kind %u is not an enum weft_step_kind", function,
                       s.kind);
    if (s.ranks < 1)
        return wf_fail(WEFT_ERR_INVALID, "%s: ranks is %d; it must be at least 1", function,
                       s.ranks);
    work = (struct wf_work){.kind = s.kind,
                            .link = s.between_hosts ? WF_BETWEEN_HOSTS : WF_WITHIN_HOST,
                            .ranks = s.ranks,
                            .received = s.received,
                            .copied = s.copied,
                            .packed = s.packed,
                            .reduced = s.reduced};
    *ns = wf_cost_ns(table, &work);
    return WEFT_OK;
}

uint64_t weft_cost_table_flops(const weft_cost_table *table)
{
    return table != NULL ? wf_mul_capped(table->flops, 1000000) : 0;
}
