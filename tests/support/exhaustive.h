/* exhaustive.h - the minimum total of any sequence of steps, found by relaxing every step out of
 * every state until nothing changes: without a heap, a bound or an early end.  For problems with
 * few states. */
#ifndef WEFT_TESTS_EXHAUSTIVE_H
#define WEFT_TESTS_EXHAUSTIVE_H

#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

struct exhaustive {
    const struct wf_problem *problem;
    struct wf_state *states;
    uint64_t *totals;
    size_t count, room, here;
    bool changed;
};

static uint64_t exhaustive_measure(const struct wf_problem *problem, const struct wf_price *price)
{
    return problem->minimize == WEFT_MINIMIZE_BYTES ? price->received : price->ns;
}

static void exhaustive_reach(struct exhaustive *all, const struct wf_edge *edge,
                             const struct wf_price *price)
{
    uint64_t total = all->totals[all->here] + exhaustive_measure(all->problem, price);
    size_t i = 0;

    while (i < all->count && memcmp(&all->states[i], &edge->to, sizeof edge->to) != 0)
        i++;
    if (i == all->count) {
        if (all->count == all->room) {
            all->room = 2 * all->room + 64;
            all->states = realloc(all->states, all->room * sizeof *all->states);
            all->totals = realloc(all->totals, all->room * sizeof *all->totals);
            if (all->states == NULL || all->totals == NULL) abort();
        }
        all->states[all->count] = edge->to;
        all->totals[all->count++] = UINT64_MAX;
    }
    if (total >= all->totals[i]) return;
    all->totals[i] = total;
    all->changed = true;
}

static void exhaustive_take(void *self, const struct wf_edge *edge)
{
    struct exhaustive *all = self;
    struct wf_state from = all->states[all->here];
    struct wf_price price;

    wf_price_edge(all->problem, &from, edge, &price);
    exhaustive_reach(all, edge, &price);
}

/* True if an exchange from STATE would reduce some, but not all, partial axes of a tensor of
 * integers with averages. */
static bool exhaustive_splits_average(const struct wf_problem *problem,
                                      const struct wf_state *state)
{
    int averages = 0, left = 0, given = 0, kept = 0;

    if (problem->from->layout.dtype >= WEFT_DTYPE_F16) return false;
    for (int32_t i = 0; i < problem->axes; i++) {
        if (problem->source.axis[i].kind != WF_CODE_PARTIAL) continue;
        given++;
        averages += problem->source.axis[i].value == WEFT_REDUCE_AVG;
        if (state->axis[i].kind != WF_CODE_PARTIAL) continue;
        left++;
        kept += problem->target.axis[i].kind == WF_CODE_PARTIAL;
    }
    return averages > 0 && left == given && kept != 0 && kept != given;
}

static bool exhaustive_may_exchange(const struct wf_problem *problem, const struct wf_state *state)
{
    if (exhaustive_splits_average(problem, state)) return false;
    for (int32_t i = 0; i < problem->axes; i++)
        if (memcmp(&state->axis[i], &problem->source.axis[i], sizeof state->axis[i]) != 0 &&
            problem->source.axis[i].kind != WF_CODE_PARTIAL)
            return false;
    return true;
}

/* The minimum nanoseconds, or bytes received, from the source to the target of PROBLEM. */
static uint64_t exhaustive_least(const struct wf_problem *problem)
{
    struct exhaustive all = {.problem = problem, .room = 64, .count = 1, .changed = true};
    uint64_t least = UINT64_MAX;

    all.states = malloc(all.room * sizeof *all.states);
    all.totals = malloc(all.room * sizeof *all.totals);
    if (all.states == NULL || all.totals == NULL) abort();
    all.states[0] = problem->source;
    all.totals[0] = 0;
    while (all.changed) {
        all.changed = false;
        for (all.here = 0; all.here < all.count; all.here++) {
            struct wf_state state = all.states[all.here];
            struct wf_edge edge;
            struct wf_price price;
            wf_edges(problem, &state, exhaustive_take, &all);
            wf_edge_exchange(problem, &state, &edge);
            if (edge.axes != 0 && exhaustive_may_exchange(problem, &state) &&
                wf_price_exchange(problem, &state, &edge, &price) == WEFT_OK)
                exhaustive_reach(&all, &edge, &price);
        }
    }
    for (size_t i = 0; i < all.count; i++)
        if (memcmp(&all.states[i], &problem->target, sizeof problem->target) == 0)
            least = all.totals[i];
    free(all.states);
    free(all.totals);
    return least;
}

#endif
