/* exhaustive.h - the minimum total of any sequence of steps, found by relaxing every step out of
 * every state until nothing changes: without a heap, a bound or an early end.  And whether any
 * sequence of steps has a busiest rank that receives less than a number of bytes.  The steps are
 * those of core/plan/edges.c, through the layouts that docs/planner.md lists under "Layouts on the
 * way"; test_plan_edges.c compares the two.  For problems with few states. */
#ifndef WEFT_TESTS_EXHAUSTIVE_H
#define WEFT_TESTS_EXHAUSTIVE_H

#include "plan/figures/figures.h"
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

/* The exact scratch of EDGE, out of FROM. */
static uint64_t exhaustive_scratch(const struct wf_problem *problem, const struct wf_state *from,
                                   const struct wf_edge *edge)
{
    struct wf_step step = {.kind = edge->kind, .axes = wf_problem_mesh_axes(problem, edge->axes)};
    uint64_t bytes = 0;
    int64_t messages;
    bool counted;

    if (wf_problem_spec(problem, from, &step.from) != WEFT_OK ||
        wf_problem_spec(problem, &edge->to, &step.to) != WEFT_OK ||
        wf_step_scratch(&step, problem->costs->one_sided,
                        memcmp(from, &problem->source, sizeof *from) == 0,
                        memcmp(&edge->to, &problem->target, sizeof *from) == 0, &bytes, &messages,
                        &counted) != WEFT_OK ||
        !counted)
        abort();
    weft_spec_release(&step.from);
    weft_spec_release(&step.to);
    return bytes;
}

static void exhaustive_reach(struct exhaustive *all, const struct wf_edge *edge,
                             const struct wf_price *price)
{
    uint64_t before = all->totals[all->here], total = before + price->ns;
    size_t i = 0;

    if (all->problem->minimize == WEFT_MINIMIZE_MEMORY) {
        struct wf_state from = all->states[all->here];
        total = exhaustive_scratch(all->problem, &from, edge);
        if (before > total) total = before;
    }
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

static void exhaustive_take_exchange(void *self, const struct wf_edge *edge)
{
    struct exhaustive *all = self;
    struct wf_state from = all->states[all->here];
    struct wf_price price;

    if (edge->axes == 0) return;
    if (wf_price_exchange(all->problem, &from, edge, &price) != WEFT_OK) abort();
    exhaustive_reach(all, edge, &price);
}

/* The minimum nanoseconds, or bytes of scratch, from the source to the target of PROBLEM. */
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
            wf_edges(problem, &state, exhaustive_take, &all);
            if (exhaustive_may_exchange(problem, &state))
                wf_exchanges(problem, &state, exhaustive_take_exchange, &all);
        }
    }
    for (size_t i = 0; i < all.count; i++)
        if (memcmp(&all.states[i], &problem->target, sizeof problem->target) == 0)
            least = all.totals[i];
    free(all.states);
    free(all.totals);
    return least;
}

/* ---- bytes, rank by rank ---- */

enum { EXHAUSTIVE_RANKS = 64 };

/* The bytes that each rank has received on a way to a state. */
struct way {
    size_t state;
    uint64_t received[EXHAUSTIVE_RANKS];
};

struct ways {
    const struct wf_problem *problem;
    uint64_t limit; /* ways on which a rank receives as much are dropped */
    int32_t ranks;
    struct wf_state *states;
    weft_spec **specs;
    size_t state_count, state_room;
    struct way *list;
    size_t count, room, here;
    bool found;
};

static size_t ways_state(struct ways *all, const struct wf_state *state)
{
    size_t i = 0;

    while (i < all->state_count && memcmp(&all->states[i], state, sizeof *state) != 0)
        i++;
    if (i < all->state_count) return i;
    if (i == all->state_room) {
        all->state_room = 2 * all->state_room + 64;
        all->states = realloc(all->states, all->state_room * sizeof *all->states);
        all->specs = realloc(all->specs, all->state_room * sizeof *all->specs);
        if (all->states == NULL || all->specs == NULL) abort();
    }
    all->states[i] = *state;
    if (wf_problem_spec(all->problem, state, &all->specs[i]) != WEFT_OK) abort();
    all->state_count++;
    return i;
}

/* Keep WAY unless another one is nowhere worse. */
static void ways_keep(struct ways *all, const struct way *way)
{
    for (size_t i = 0; i < all->count; i++) {
        int32_t r = 0;
        if (all->list[i].state != way->state) continue;
        while (r < all->ranks && all->list[i].received[r] <= way->received[r])
            r++;
        if (r == all->ranks) return;
    }
    if (all->count == all->room) {
        all->room = 2 * all->room + 64;
        all->list = realloc(all->list, all->room * sizeof *all->list);
        if (all->list == NULL) abort();
    }
    all->list[all->count++] = *way;
}

static void ways_take(void *self, const struct wf_edge *edge)
{
    struct ways *all = self;
    struct way way = all->list[all->here];
    struct wf_counter counter;
    struct wf_step step = {.kind = edge->kind,
                           .axes = wf_problem_mesh_axes(all->problem, edge->axes),
                           .from = all->specs[way.state]};
    int32_t coord[WEFT_MAX_AXES];
    bool over = false;

    way.state = ways_state(all, &edge->to);
    step.to = all->specs[way.state];
    if (wf_counter_open(&counter, &step, 1) != WEFT_OK) abort();
    for (int32_t r = 0; r < all->ranks; r++) {
        wf_mesh_coord_at(step.to->layout.mesh, r, coord);
        way.received[r] += wf_counter_at(&counter, coord);
        over = over || way.received[r] >= all->limit;
    }
    wf_counter_close(&counter);
    if (over) return;
    if (memcmp(&edge->to, &all->problem->target, sizeof edge->to) == 0) all->found = true;
    ways_keep(all, &way);
}

/* True if some sequence of steps exists in which every rank receives less than LIMIT bytes. */
static bool exhaustive_beats(const struct wf_problem *problem, uint64_t limit)
{
    struct ways all = {.problem = problem, .limit = limit, .room = 64, .count = 1};

    all.ranks = weft_mesh_size(problem->from->layout.mesh);
    if (limit == 0) return false;
    if (all.ranks > EXHAUSTIVE_RANKS) abort();
    all.list = calloc(all.room, sizeof *all.list);
    if (all.list == NULL) abort();
    all.list[0].state = ways_state(&all, &problem->source);
    for (all.here = 0; all.here < all.count && !all.found; all.here++) {
        struct wf_state state = all.states[all.list[all.here].state];
        wf_edges(problem, &state, ways_take, &all);
        if (exhaustive_may_exchange(problem, &state))
            wf_exchanges(problem, &state, ways_take, &all);
    }
    for (size_t i = 0; i < all.state_count; i++)
        weft_spec_release(&all.specs[i]);
    free(all.states);
    free(all.specs);
    free(all.list);
    return all.found;
}

#endif
