/* lower_bound.c - the A* heuristic: a lower bound, in ns, on the remaining cost of a state.
 *
 * The bound is the sum of two: of latency, and of bytes.
 *
 * Bytes: a share is the tensor's bytes over the number of ranks.  An element with K contributions
 * that T ranks want needs K + T - 2 more messages (see least.c), so ranks must receive K + T - 2
 * shares in the mean, and reduce K shares.  With one contribution, on r replicas, T - r shares are
 * missing.  The rank that a step is priced by receives at least the mean.
 *
 * Latency: start-up and per peer.  A step changes only the axes that
 * take part in it.  So every axis that cannot reach its target locally takes part in at least one
 * more communicating step, which costs the latency of at least that axis's peers.  A step along
 * several axes starts once, but its group is the product of the axes, at least each axis times the
 * smallest other one.  The remaining cost is therefore at least
 *  1. the peer latency of all such axes plus one start-up, and
 *  2. the peer latency plus, per axis, the smaller of a start-up and that product.
 *
 * The bound is the smaller one of two cases:
 *  1. The plan has no final exchange: collectives alone, as above.
 *  2. The plan ends with an exchange.  Only partials have changed since the source then.  The
 *     exchange goes along all axes on which source and target differ, except partials that were
 *     reduced before, and costs the latency of their product. */
#include "plan.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Nanoseconds per peer of a step of KIND over LINK or, if another axis needs it, a farther one. */
static uint64_t peer_ns(const struct wf_problem *problem, uint32_t kind, uint32_t link)
{
    const struct wf_rate *rates = problem->costs->rates[kind];
    uint64_t peer = rates[link].peer_ns;

    while (++link < WF_LINKS)
        peer = least(peer, rates[link].peer_ns);
    return peer;
}

static uint64_t least_base(const struct wf_problem *problem)
{
    uint64_t base = UINT64_MAX;

    for (int kind = WEFT_STEP_ALL_GATHER; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++)
            base = least(base, problem->costs->rates[kind][link].base_ns);
    return base;
}

/* Could a permutation of whole shards change all axes that are not partial? */
static bool may_permute(const struct wf_problem *problem)
{
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code from = problem->source.axis[i], to = problem->target.axis[i];
        if (from.kind == WF_CODE_PARTIAL || wf_code_same(from, to)) continue;
        if (!wf_code_splits(from) || !wf_code_splits(to) || from.value != to.value) return false;
    }
    return true;
}

/* Does an owner take part in the problem, so that plans may have broadcasts and reductions to
 * owners? */
static bool has_owner(const struct wf_problem *problem)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (problem->source.axis[i].kind == WF_CODE_OWNER ||
            problem->target.axis[i].kind == WF_CODE_OWNER)
            return true;
    return false;
}

/* EXTRA: nanoseconds that a start-up, or one more axis in a step, adds. */
static void set_axis(const struct wf_problem *problem, uint64_t exchange, int32_t axis,
                     uint64_t extra, struct wf_latency *out)
{
    uint64_t peers = (uint64_t)problem->size[axis] - 1;
    uint32_t link = problem->link[axis];

    out->leave = extra + peers * least(peer_ns(problem, WEFT_STEP_ALL_GATHER, link),
                                       peer_ns(problem, WEFT_STEP_ALL_TO_ALL, link));
    out->scatter = extra + peers * peer_ns(problem, WEFT_STEP_REDUCE_SCATTER, link);
    if (has_owner(problem)) {
        out->leave = least(out->leave, extra + peers * peer_ns(problem, WEFT_STEP_BROADCAST, link));
        out->scatter =
            least(out->scatter, extra + peers * peer_ns(problem, WEFT_STEP_REDUCE, link));
    }
    out->reduce = least(extra + 2 * peers * peer_ns(problem, WEFT_STEP_ALL_REDUCE, link),
                        out->scatter + out->leave);
    out->scatter = least(out->scatter, out->reduce);
    out->exchange = peers * exchange;
}

/* The least that AXIS adds to a step: a start-up, or the peers of a product with another axis. */
static uint64_t extra_of(const struct wf_problem *problem, int32_t axis, uint64_t base)
{
    uint64_t peer = UINT64_MAX, smallest = UINT64_MAX;

    for (uint32_t kind = WEFT_STEP_ALL_GATHER; kind <= WEFT_STEP_ALL_TO_ALL; kind++)
        peer = least(peer, peer_ns(problem, kind, problem->link[axis]));
    for (uint32_t kind = WEFT_STEP_BROADCAST; has_owner(problem) && kind <= WEFT_STEP_REDUCE;
         kind++)
        peer = least(peer, peer_ns(problem, kind, problem->link[axis]));
    for (int32_t i = 0; i < problem->axes; i++)
        if (i != axis) smallest = least(smallest, (uint64_t)problem->size[i] - 1);
    if (smallest == UINT64_MAX) return base;
    return least(base, peer * smallest * ((uint64_t)problem->size[axis] - 1));
}

uint64_t wf_lower_bound_shares(const struct wf_problem *problem, const struct wf_state *state,
                               uint64_t *holders)
{
    uint64_t replicas = 1, wanted = 1;

    *holders = 1;
    for (int32_t i = 0; i < problem->axes; i++) {
        uint64_t size = (uint64_t)problem->size[i];
        uint8_t to = problem->target.axis[i].kind;
        if (to == WF_CODE_PARTIAL) return 0;
        if (to == WF_CODE_REPLICATE) wanted *= size;
        if (state->axis[i].kind == WF_CODE_REPLICATE) replicas *= size;
        if (state->axis[i].kind == WF_CODE_PARTIAL) *holders *= size;
    }
    if (*holders > 1) return *holders + wanted - 2;
    return wanted > replicas ? wanted - replicas : 0;
}

static uint64_t least_rate(const struct wf_problem *problem)
{
    uint64_t rate = UINT64_MAX;
    int64_t lanes = 1;

    for (int32_t i = 0; problem->costs->shares_links && i < problem->axes; i++)
        lanes *= problem->lanes[i];
    for (uint32_t kind = WEFT_STEP_ALL_GATHER; kind < WEFT_STEP_KINDS; kind++)
        for (int32_t i = 0; i < problem->axes; i++)
            rate = least(rate, wf_cost_rate(problem->costs, kind, problem->link[i],
                                            wf_cost_may_share(kind) ? lanes : 1));
    return rate;
}

static void set_transfers(struct wf_transfers *out, const struct wf_problem *problem)
{
    uint64_t bytes =
        (uint64_t)problem->from->elements * least(problem->elements[0], problem->elements[1]);

    *out = (struct wf_transfers){.bytes = bytes / (uint64_t)problem->from->layout.mesh->size};
    out->rate = least_rate(problem);
    out->ns = wf_transfer_ns(out->bytes, out->rate);
    out->reduce_ns = wf_transfer_ns(out->bytes, problem->costs->reduce);
}

static uint64_t by_bytes(const struct wf_lower_bound *bound, const struct wf_state *state)
{
    uint64_t holders, shares = wf_lower_bound_shares(bound->problem, state, &holders), ns;

    if (shares == 0) return 0;
    ns = wf_mul_capped(shares, bound->transfers.ns);
    return holders > 1 ? wf_add_capped(ns, wf_mul_capped(holders, bound->transfers.reduce_ns)) : ns;
}

void wf_lower_bound_set(struct wf_lower_bound *bound, const struct wf_problem *problem)
{
    uint64_t exchange = peer_ns(problem, WEFT_STEP_EXCHANGE, WF_WITHIN_HOST), product = 1;

    bound->problem = problem;
    bound->counts = true;
    bound->parts = wf_axes_to_spread(problem, false) != 0 || wf_axes_to_spread(problem, true) != 0;
    bound->base = least_base(problem);
    if (may_permute(problem))
        exchange = least(exchange, peer_ns(problem, WEFT_STEP_PERMUTE, WF_WITHIN_HOST));
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code from = problem->source.axis[i];
        set_axis(problem, exchange, i, 0, &bound->latency[0][i]);
        set_axis(problem, exchange, i, extra_of(problem, i, bound->base), &bound->latency[1][i]);
        if (from.kind != WF_CODE_PARTIAL && !wf_code_same(from, problem->target.axis[i]))
            product *= (uint64_t)problem->size[i];
    }
    set_transfers(&bound->transfers, problem);
    bound->alone = product == 1;
    bound->exchange = (product - 1) * exchange;
}

/* True if an axis can get from AT to WANTED without communication. */
static bool is_local(struct wf_code at, struct wf_code wanted)
{
    if (wf_code_same(at, wanted) || at.kind == WF_CODE_REPLICATE) return true;
    return at.kind != WF_CODE_PARTIAL && wanted.kind == WF_CODE_PARTIAL &&
           wanted.value == WEFT_REDUCE_SUM;
}

/* Case 1: no final exchange. */
static uint64_t by_collectives(const struct wf_lower_bound *bound, const struct wf_state *state)
{
    const struct wf_problem *problem = bound->problem;
    uint64_t sums[2] = {0, 0};
    bool any = false;

    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code at = state->axis[i], wanted = problem->target.axis[i];
        if (is_local(at, wanted)) continue;
        for (int k = 0; k < 2; k++) {
            const struct wf_latency *latency = &bound->latency[k][i];
            sums[k] += at.kind != WF_CODE_PARTIAL         ? latency->leave
                       : wanted.kind == WF_CODE_REPLICATE ? latency->reduce
                                                          : latency->scatter;
        }
        any = true;
    }
    if (!any) return 0;
    return sums[0] + bound->base > sums[1] ? sums[0] + bound->base : sums[1];
}

/* Case 2: a final exchange.  A partial that is reduced before may still be an axis of the exchange.
 * This at least doubles the ranks of the exchange, unless it is the only axis. */
static uint64_t by_exchange(const struct wf_lower_bound *bound, const struct wf_state *state)
{
    const struct wf_problem *problem = bound->problem;
    uint64_t sum = bound->exchange, spared = 0;

    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code at = state->axis[i], wanted = problem->target.axis[i];
        const struct wf_latency *latency = &bound->latency[1][i];
        uint64_t mine;
        if (problem->source.axis[i].kind != WF_CODE_PARTIAL || is_local(at, wanted)) continue;
        if (at.kind != WF_CODE_PARTIAL)
            mine = latency->leave;
        else
            mine = wanted.kind == WF_CODE_REPLICATE ? latency->reduce : latency->scatter;
        mine = least(mine, 2 * latency->exchange);
        sum += mine;
        if (mine > latency->exchange && mine - latency->exchange > spared)
            spared = mine - latency->exchange;
    }
    return bound->base + sum - (bound->alone ? spared : 0);
}

uint64_t wf_lower_bound_latency(const struct wf_lower_bound *bound, const struct wf_state *state)
{
    uint64_t latency;

    if (wf_state_same(state, &bound->problem->target)) return 0;
    latency = least(by_collectives(bound, state), by_exchange(bound, state));
    return bound->parts ? least(latency, bound->base) : latency;
}

uint64_t wf_lower_bound_ns(const struct wf_lower_bound *bound, const struct wf_state *state)
{
    if (wf_state_same(state, &bound->problem->target)) return 0;
    return wf_add_capped(wf_lower_bound_latency(bound, state), by_bytes(bound, state));
}
