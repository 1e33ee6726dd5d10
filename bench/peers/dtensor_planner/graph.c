/* graph.c - DTensor's graph planner: Dijkstra over single-axis steps, with its own costs.
 *
 * Costs are in double precision, as in DTensor.  Ties go to the state that was pushed first, so
 * edges are listed in DTensor's order. */
#include "steps.h"

#include <string.h>

struct push {
    struct wf_state state;
    double cost;
    int32_t before; /* index of the push it came from; -1: the source */
    int32_t axis;   /* the axis that moved */
};

struct graph {
    const struct wf_problem *problem;
    struct push *pushes; /* in the order of pushing */
    int32_t *heap;       /* indices of pushes */
    int32_t *visited;    /* likewise */
    int32_t push_count, push_room, heap_count, visited_count;
    int32_t here;
};

/* ---- costs: microseconds, GiB, GiB/s ---- */

static double ring(const struct wf_problem *problem, int32_t axis, double gibibytes, int64_t hops)
{
    bool slow = problem->link[axis] == WF_BETWEEN_HOSTS;
    double bandwidth = slow ? 87.7 * 0.22 : 87.7, latency = slow ? 2.7 : 0.6;

    return 6.6 + (double)hops * latency +
           gibibytes * (double)hops / (double)problem->size[axis] / bandwidth * 1e6;
}

static double state_gibibytes(const struct wf_problem *problem, const struct wf_state *state)
{
    double bytes = (double)problem->elements[0];

    for (int32_t d = 0; d < problem->dims; d++)
        bytes *= (double)problem->shape[d];
    for (int32_t i = 0; i < problem->axes; i++)
        if (wf_code_splits(state->axis[i])) bytes /= (double)problem->size[i];
    return bytes / 1073741824.0;
}

static double step_cost(const struct wf_problem *problem, const struct wf_state *from, int32_t axis,
                        struct wf_code to)
{
    double size = state_gibibytes(problem, from);
    int64_t ranks = problem->size[axis];
    struct wf_code code = from->axis[axis];

    if (code.kind == WF_CODE_SHARD && to.kind == WF_CODE_REPLICATE)
        return ring(problem, axis, size * (double)ranks, ranks - 1);
    if (code.kind == WF_CODE_SHARD && to.kind == WF_CODE_SHARD)
        return ring(problem, axis, size, ranks - 1) + 1.0;
    if (code.kind == WF_CODE_PARTIAL && to.kind == WF_CODE_REPLICATE)
        return ring(problem, axis, size, 2 * (ranks - 1));
    if (code.kind == WF_CODE_PARTIAL && to.kind == WF_CODE_SHARD)
        return ring(problem, axis, size, ranks - 1);
    return 0;
}

/* ---- the heap ---- */

static bool comes_first(const struct graph *g, int32_t a, int32_t b)
{
    if (g->pushes[a].cost != g->pushes[b].cost) return g->pushes[a].cost < g->pushes[b].cost;
    return a < b;
}

static weft_status make_room(struct graph *g)
{
    int32_t room = g->push_room == 0 ? 64 : 2 * g->push_room;
    void *pushes, *heap, *visited;

    if (g->push_count < g->push_room) return WEFT_OK;
    pushes = wf_realloc(g->pushes, (size_t)room * sizeof *g->pushes);
    if (pushes != NULL) g->pushes = pushes;
    heap = wf_realloc(g->heap, (size_t)room * sizeof *g->heap);
    if (heap != NULL) g->heap = heap;
    visited = wf_realloc(g->visited, (size_t)room * sizeof *g->visited);
    if (visited != NULL) g->visited = visited;
    if (pushes == NULL || heap == NULL || visited == NULL)
        return wf_fail_memory((size_t)room * sizeof *g->pushes);
    g->push_room = room;
    return WEFT_OK;
}

static weft_status push(struct graph *g, const struct push *entry)
{
    int32_t at = g->heap_count;

    WF_TRY(make_room(g));
    g->pushes[g->push_count] = *entry;
    while (at > 0 && comes_first(g, g->push_count, g->heap[(at - 1) / 2])) {
        g->heap[at] = g->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    g->heap[at] = g->push_count++;
    g->heap_count++;
    return WEFT_OK;
}

static int32_t pop(struct graph *g)
{
    int32_t top = g->heap[0], last = g->heap[--g->heap_count], at = 0;

    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= g->heap_count) break;
        if (child + 1 < g->heap_count && comes_first(g, g->heap[child + 1], g->heap[child]))
            child++;
        if (!comes_first(g, g->heap[child], last)) break;
        g->heap[at] = g->heap[child];
        at = child;
    }
    g->heap[at] = last;
    return top;
}

/* ---- edges, in DTensor's order ---- */

static weft_status push_move(struct graph *g, int32_t axis, struct wf_code to)
{
    const struct push *from = &g->pushes[g->here];
    struct push entry = {.state = dtensor_moved(g->problem, &from->state, axis, to),
                         .cost = from->cost + step_cost(g->problem, &from->state, axis, to),
                         .before = g->here,
                         .axis = axis};

    return push(g, &entry);
}

/* The innermost axis of every dimension: to each other dimension, then to replicas. */
static weft_status move_innermost(struct graph *g, const struct wf_state *state)
{
    struct wf_orders orders;

    wf_state_orders(state, g->problem->axes, &orders);
    for (int32_t a = 0; a < g->problem->dims; a++) {
        int32_t last = orders.count[a] > 0 ? orders.axis[a][orders.count[a] - 1] : -1;
        if (last < 0 || state->axis[last].kind != WF_CODE_SHARD) continue;
        for (int32_t b = 0; b < g->problem->dims; b++)
            if (b != a)
                WF_TRY(push_move(g, last, (struct wf_code){WF_CODE_SHARD, (uint8_t)b, 0, 0}));
    }
    for (int32_t a = 0; a < g->problem->dims; a++) {
        int32_t last = orders.count[a] > 0 ? orders.axis[a][orders.count[a] - 1] : -1;
        if (last >= 0 && state->axis[last].kind == WF_CODE_SHARD)
            WF_TRY(push_move(g, last, (struct wf_code){0}));
    }
    return WEFT_OK;
}

static weft_status split(struct graph *g, const struct wf_state *state, uint8_t kind)
{
    for (int32_t i = 0; i < g->problem->axes; i++)
        for (int32_t b = 0; state->axis[i].kind == kind && b < g->problem->dims; b++)
            WF_TRY(push_move(g, i, (struct wf_code){WF_CODE_SHARD, (uint8_t)b, 0, 0}));
    return WEFT_OK;
}

/* Replicas become partial, with any reduction of the source or the target. */
static weft_status make_partial(struct graph *g, const struct wf_state *state)
{
    uint32_t reductions = 0;

    for (int32_t i = 0; i < g->problem->axes; i++) {
        if (g->problem->source.axis[i].kind == WF_CODE_PARTIAL)
            reductions |= UINT32_C(1) << g->problem->source.axis[i].value;
        if (g->problem->target.axis[i].kind == WF_CODE_PARTIAL)
            reductions |= UINT32_C(1) << g->problem->target.axis[i].value;
    }
    for (int32_t i = 0; i < g->problem->axes; i++)
        for (uint8_t r = 0; state->axis[i].kind == WF_CODE_REPLICATE && r < WEFT_REDUCE_COUNT; r++)
            if (reductions >> r & 1 && wf_state_takes_partial(g->problem, state, r))
                WF_TRY(push_move(g, i, (struct wf_code){WF_CODE_PARTIAL, r, 0, 0}));
    return WEFT_OK;
}

/* Steps that cost nothing in DTensor's model: strided shards are gathered, or made where the target
 * has them; shards become contributions to a sum where the target has one. */
static weft_status free_moves(struct graph *g, const struct wf_state *state)
{
    const struct wf_problem *problem = g->problem;
    struct wf_orders orders;

    wf_state_orders(state, problem->axes, &orders);
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code code = state->axis[i], wanted = problem->target.axis[i];
        bool innermost = wf_code_splits(code) && code.turn == orders.count[code.value];
        if (innermost && code.kind != WF_CODE_SHARD) WF_TRY(push_move(g, i, (struct wf_code){0}));
        if (code.kind == WF_CODE_REPLICATE && wf_code_splits(wanted) &&
            wanted.kind != WF_CODE_SHARD)
            WF_TRY(push_move(g, i, wanted));
        if (dtensor_may_spread(problem, state, i, wanted)) WF_TRY(push_move(g, i, wanted));
    }
    return WEFT_OK;
}

static weft_status expand(struct graph *g)
{
    struct wf_state state = g->pushes[g->here].state; /* pushing may move it */

    WF_TRY(move_innermost(g, &state));
    for (int32_t i = 0; i < g->problem->axes; i++)
        if (state.axis[i].kind == WF_CODE_PARTIAL) WF_TRY(push_move(g, i, (struct wf_code){0}));
    WF_TRY(split(g, &state, WF_CODE_REPLICATE));
    WF_TRY(split(g, &state, WF_CODE_PARTIAL));
    WF_TRY(make_partial(g, &state));
    return free_moves(g, &state);
}

static bool visit(struct graph *g)
{
    for (int32_t i = 0; i < g->visited_count; i++)
        if (wf_state_same(&g->pushes[g->visited[i]].state, &g->pushes[g->here].state)) return false;
    g->visited[g->visited_count++] = g->here;
    return true;
}

static weft_status search(struct graph *g, const struct wf_state *from)
{
    WF_TRY(push(g, &(struct push){.state = *from, .before = -1}));
    while (g->heap_count > 0) {
        g->here = pop(g);
        if (wf_state_same(&g->pushes[g->here].state, &g->problem->target)) return WEFT_OK;
        if (visit(g)) WF_TRY(expand(g));
    }
    return wf_fail(WEFT_ERR_UNSUPPORTED, "DTensor's graph planner finds no plan");
}

/* Append the steps from AT to the push HERE. */
static weft_status read_path(const struct graph *g, struct wf_state at, struct wf_path *out)
{
    int32_t chain[WF_PATH_MAX], count = 0;

    for (int32_t i = g->here; g->pushes[i].before >= 0; i = g->pushes[i].before) {
        if (count == WF_PATH_MAX) return wf_fail(WEFT_ERR_INTERNAL, "a plan of too many steps");
        chain[count++] = i;
    }
    while (count-- > 0) {
        const struct push *p = &g->pushes[chain[count]];
        WF_TRY(dtensor_step(g->problem, &at, p->axis, p->state.axis[p->axis], out));
    }
    return WEFT_OK;
}

weft_status dtensor_graph(const struct wf_problem *problem, struct wf_path *out)
{
    struct graph g = {.problem = problem};
    struct wf_state from;
    weft_status status;

    dtensor_begin(problem, &from, out);
    status = search(&g, &from);
    if (status == WEFT_OK) status = read_path(&g, from, out);
    wf_free(g.pushes);
    wf_free(g.heap);
    wf_free(g.visited);
    return status;
}
