/* model.c - time of a step: latency, bytes over bandwidth, and local work. */
#include "cost.h"

/* The order of operations prevents overflow for any tensor that fits an address space, at any rate
 * of a real device. */
uint64_t wf_transfer_ns(uint64_t bytes, uint64_t rate)
{
    const uint64_t unit = 1000000; /* femtoseconds in a nanosecond */

    if (bytes == 0) return 0;
    return wf_add_capped(wf_mul_capped(bytes / unit, rate), bytes % unit * rate / unit);
}

bool wf_cost_may_share(uint32_t kind)
{
    return kind == WEFT_STEP_ALL_GATHER || kind == WEFT_STEP_REDUCE_SCATTER ||
           kind == WEFT_STEP_ALL_REDUCE || kind == WEFT_STEP_BROADCAST || kind == WEFT_STEP_REDUCE;
}

/* Bytes that the links of a host carry together still travel to each of its ranks. */
uint64_t wf_cost_rate(const weft_cost_table *table, uint32_t kind, uint32_t link, int64_t lanes)
{
    const struct wf_rate *rates = table->rates[kind];
    uint64_t rate = rates[link].femtoseconds, within = rates[WF_WITHIN_HOST].femtoseconds;

    if (lanes <= 1 || link == WF_WITHIN_HOST || rate <= within) return rate;
    rate /= (uint64_t)lanes;
    return rate > within ? rate : within;
}

uint64_t wf_cost_ns(const weft_cost_table *table, const struct wf_work *work)
{
    const struct wf_rate *rate = &table->rates[work->kind][work->link];
    uint64_t peers = (uint64_t)(work->ranks - 1), fs = rate->femtoseconds, ns;

    if (work->kind == WEFT_STEP_ALL_REDUCE) peers *= 2; /* reduce-scatter, then all-gather */
    ns = wf_add_capped(rate->base_ns, wf_mul_capped(peers, rate->peer_ns));
    if (work->lanes > 1) fs = wf_cost_rate(table, work->kind, work->link, work->lanes);
    ns = wf_add_capped(ns, wf_transfer_ns(work->received, fs));
    ns = wf_add_capped(ns, wf_transfer_ns(work->copied, table->copy));
    ns = wf_add_capped(ns, wf_transfer_ns(work->packed, table->pack));
    return wf_add_capped(ns, wf_transfer_ns(work->reduced, table->reduce));
}

/* Thousandths of a table's rate at which products run, by the power of two of the elements of
 * their weight, from 2^FIRST_SIZE on.  The slope is that of the rates which meet the four rows with
 * selective recompute of Korthikanti et al. 2022, table 5: 191, 200, 214 and 231 TFLOP/s, with
 * weights of 19, 75, 210 and 328 million elements.  It is 1.044 a power of two. */
enum { FIRST_SIZE = 16 };
static const uint64_t curve[] = {650, 679, 708, 740,  772,  806,  842,
                                 879, 918, 958, 1000, 1044, 1090, 1138};

/* Thousandths of the rate for a product whose weight has ELEMENTS; linear between powers of two. */
static uint64_t rate_by_size(uint64_t elements)
{
    const uint64_t last = WF_COUNT(curve) - 1;
    uint64_t power = 0, rest;

    if (elements < UINT64_C(1) << FIRST_SIZE) return curve[0];
    while (elements >> (FIRST_SIZE + power + 1) != 0)
        power++;
    if (power >= last) return curve[last];
    rest = elements - (UINT64_C(1) << (FIRST_SIZE + power));
    return curve[power] + ((curve[power + 1] - curve[power]) * rest >> (FIRST_SIZE + power));
}

/* The time of FLOPS operations at THOUSANDTHS of TABLE's rate, BYTES of traffic, or a launch. */
static uint64_t compute_ns(const weft_cost_table *table, uint64_t flops, uint64_t bytes,
                           uint64_t thousandths)
{
    uint64_t rate = table->flops * thousandths / 1000, work, traffic;

    if (rate == 0) rate = 1;
    work = wf_add_capped(wf_mul_capped(flops / rate, 1000), flops % rate * 1000 / rate);
    traffic = wf_transfer_ns(bytes, table->memory);
    if (traffic > work) work = traffic;
    return work > table->launch ? work : table->launch;
}

uint64_t weft_cost_table_compute_ns(const weft_cost_table *table, uint64_t flops, uint64_t bytes)
{
    return table != NULL && table->flops > 0 ? compute_ns(table, flops, bytes, 1000) : UINT64_MAX;
}

uint64_t weft_cost_table_product_ns(const weft_cost_table *table, uint64_t flops, uint64_t bytes,
                                    uint64_t elements)
{
    if (table == NULL || table->flops == 0) return UINT64_MAX;
    return compute_ns(table, flops, bytes, table->by_size ? rate_by_size(elements) : 1000);
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
    if (s.lanes < 0)
        return wf_fail(WEFT_ERR_INVALID, "%s: lanes is %d; it must not be negative", function,
                       s.lanes);
    work = (struct wf_work){.kind = s.kind,
                            .link = s.beyond          ? WF_BEYOND
                                    : s.between_hosts ? WF_BETWEEN_HOSTS
                                                      : WF_WITHIN_HOST,
                            .ranks = s.ranks,
                            .lanes = table->shares_links && wf_cost_may_share(s.kind) ? s.lanes : 0,
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

uint64_t weft_cost_table_peak_flops(const weft_cost_table *table)
{
    if (table == NULL) return 0;
    return wf_mul_capped(table->peak > 0 ? table->peak : table->flops, 1000000);
}
