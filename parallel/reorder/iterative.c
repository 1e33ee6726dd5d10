/* iterative.c - starts up and waits down by swaps of neighbours, until they are hidden.
 *
 * A start takes the compute nodes that it needs along: they are its group.  A swap changes the
 * memory at two positions only, so the limit is checked there. */
#include "flow.h"

#include <string.h>

enum { GROUP = 8 }; /* nodes that move together */

struct walker {
    const struct wf_flow *flow;
    int32_t *order;
    int32_t *at;     /* by node: its position */
    int32_t *last;   /* by node: the last user of its memory */
    uint64_t *freed; /* by node: bytes freed behind it */
    uint64_t *held;  /* by position: bytes before its node runs */
    int64_t *hidden; /* by start: compute between it and its wait */
    uint64_t *alloc; /* by node: bytes that begin with it */
    uint64_t limit;
};

static uint64_t alloc_of(const weft_reorder_node *n)
{
    return n->kind == WEFT_REORDER_NODE_WAIT || n->flags & WEFT_REORDER_NODE_GIVEN ? 0 : n->alloc;
}

static int64_t compute_of(const struct walker *w, int32_t node)
{
    const weft_reorder_node *n = &w->flow->nodes[node];

    return n->kind == WEFT_REORDER_NODE_COMPUTE && n->comm < 0 ? (int64_t)n->time : 0;
}

/* Swap the nodes A at position and B behind it, without a check. */
static void swap(struct walker *w, int32_t position)
{
    int32_t a = w->order[position], b = w->order[position + 1];
    const struct wf_lists *uses = &w->flow->uses;

    for (uint32_t i = uses->first[b]; i < uses->first[b + 1]; i++) {
        int32_t owner = uses->item[i];
        if (w->last[owner] != b || !wf_list_has(uses, a, owner)) continue;
        w->last[owner] = a;
        w->freed[b] -= w->flow->nodes[owner].alloc;
        w->freed[a] += w->flow->nodes[owner].alloc;
    }
    w->order[position] = b;
    w->order[position + 1] = a;
    w->at[b] = position;
    w->at[a] = position + 1;
    w->held[position + 1] = w->held[position] + w->alloc[b] - w->freed[b];
}

/* The most bytes at POSITION and the next one. */
static uint64_t peak_at(const struct walker *w, int32_t position)
{
    uint64_t first = w->held[position] + w->alloc[w->order[position]];
    uint64_t second = w->held[position + 1] + w->alloc[w->order[position + 1]];

    return first > second ? first : second;
}

/* Swap the nodes at POSITION and behind it; false: memory would exceed the limit. */
static bool try_swap(struct walker *w, int32_t position)
{
    uint64_t after;

    swap(w, position);
    after = peak_at(w, position);
    if (after <= w->limit) return true;
    swap(w, position);
    if (after > peak_at(w, position)) return false;
    swap(w, position);
    return true;
}

/* ---- starts ---- */

struct group {
    int32_t first, size; /* position; nodes, the last of which is the start */
    int64_t compute;
};

static bool needs(const struct walker *w, const struct group *g, int32_t candidate)
{
    for (int32_t i = g->first; i < g->first + g->size; i++)
        if (wf_list_has(&w->flow->before, w->order[i], candidate)) return true;
    return false;
}

/* Why the group must stop below CANDIDATE, which it needs, unless the group takes it along. */
static uint32_t dependency_limit(const struct walker *w, int32_t start, int32_t candidate)
{
    const weft_reorder_node *c = &w->flow->nodes[candidate], *s = &w->flow->nodes[start];

    if (c->kind != WEFT_REORDER_NODE_WAIT && c->comm >= 0 && c->comm == s->comm)
        return WEFT_REORDER_LIMIT_ORDER;
    return wf_node_communicates(c) ? WEFT_REORDER_LIMIT_FENCE : WEFT_REORDER_LIMIT_DEPENDENCY;
}

/* Move CANDIDATE, above the group, below it.  False: memory would exceed the limit; nothing has
 * changed. */
static bool pass_group(struct walker *w, const struct group *g)
{
    for (int32_t i = 0; i < g->size; i++) {
        if (try_swap(w, g->first - 1 + i)) continue;
        while (i-- > 0)
            swap(w, g->first - 1 + i);
        return false;
    }
    return true;
}

/* Another start that compute of the group would no longer hide. */
static bool exposes(const struct walker *w, const struct group *g, int32_t candidate)
{
    const weft_reorder_node *c = &w->flow->nodes[candidate];

    return c->kind == WEFT_REORDER_NODE_START && g->compute > 0 &&
           w->hidden[candidate] - g->compute < (int64_t)c->time;
}

static uint32_t raise_start(struct walker *w, int32_t start)
{
    struct group g = {.first = w->at[start], .size = 1};
    int64_t time = (int64_t)w->flow->nodes[start].time;

    while (g.first > 0) {
        int32_t candidate = w->order[g.first - 1];
        const weft_reorder_node *c = &w->flow->nodes[candidate];
        if (w->hidden[start] >= time) return WEFT_REORDER_LIMIT_HIDDEN;
        if (c->flags & WEFT_REORDER_NODE_GIVEN) return WEFT_REORDER_LIMIT_END;
        if (needs(w, &g, candidate)) {
            if (c->kind != WEFT_REORDER_NODE_COMPUTE || c->comm >= 0 || g.size == GROUP)
                return dependency_limit(w, start, candidate);
            g.first--;
            g.size++;
            g.compute += compute_of(w, candidate);
            continue;
        }
        if (exposes(w, &g, candidate)) return WEFT_REORDER_LIMIT_OTHER;
        if (!pass_group(w, &g)) return WEFT_REORDER_LIMIT_MEMORY;
        w->hidden[start] += compute_of(w, candidate);
        if (c->kind == WEFT_REORDER_NODE_START) w->hidden[candidate] -= g.compute;
        if (c->kind == WEFT_REORDER_NODE_WAIT) w->hidden[w->flow->start_of[candidate]] += g.compute;
        g.first--;
    }
    return WEFT_REORDER_LIMIT_END;
}

/* ---- waits ---- */

static uint32_t sink_wait(struct walker *w, int32_t wait)
{
    int32_t start = w->flow->start_of[wait];
    int64_t time = (int64_t)w->flow->nodes[start].time;

    for (int32_t at = w->at[wait]; at + 1 < w->flow->count; at++) {
        int32_t candidate = w->order[at + 1];
        const weft_reorder_node *c = &w->flow->nodes[candidate];
        if (w->hidden[start] >= time) return WEFT_REORDER_LIMIT_HIDDEN;
        if (wf_list_has(&w->flow->before, candidate, wait))
            return c->kind == WEFT_REORDER_NODE_WAIT ? WEFT_REORDER_LIMIT_ORDER
                                                     : WEFT_REORDER_LIMIT_DEPENDENCY;
        if (wf_node_communicates(c)) return WEFT_REORDER_LIMIT_FENCE;
        if (!try_swap(w, at)) return WEFT_REORDER_LIMIT_MEMORY;
        w->hidden[start] += compute_of(w, candidate);
    }
    return WEFT_REORDER_LIMIT_END;
}

/* ---- all ---- */

static void begin(struct walker *w)
{
    const struct wf_flow *flow = w->flow;
    uint64_t held = 0;
    int64_t computed = 0;

    wf_flow_freed(flow, w->order, w->last, w->freed);
    for (int32_t i = 0; i < flow->count; i++)
        if (flow->nodes[i].flags & WEFT_REORDER_NODE_GIVEN) held += flow->nodes[i].alloc;
    for (int32_t i = 0; i < flow->count; i++) {
        int32_t node = w->order[i];
        w->at[node] = i;
        w->held[i] = held;
        w->alloc[node] = alloc_of(&flow->nodes[node]);
        held += w->alloc[node] - w->freed[node];
        computed += compute_of(w, node);
        if (flow->nodes[node].kind == WEFT_REORDER_NODE_START) w->hidden[node] = -computed;
        if (flow->start_of[node] >= 0) w->hidden[flow->start_of[node]] += computed;
    }
}

weft_status wf_pass_iterative(const struct wf_flow *flow, uint64_t limit, int32_t *order,
                              const struct wf_limits *limits)
{
    size_t count = (size_t)flow->count;
    struct walker w = {.flow = flow, .order = order, .limit = limit};
    weft_status status = WEFT_OK;

    w.at = wf_alloc(count * sizeof *w.at);
    w.last = wf_alloc(count * sizeof *w.last);
    w.freed = wf_alloc(count * sizeof *w.freed);
    w.held = wf_alloc(count * sizeof *w.held);
    w.alloc = wf_alloc(count * sizeof *w.alloc);
    w.hidden = wf_calloc(count, sizeof *w.hidden);
    if (w.at == NULL || w.last == NULL || w.freed == NULL || w.held == NULL || w.alloc == NULL ||
        w.hidden == NULL) {
        status = wf_fail_memory(count * sizeof *w.freed);
    } else {
        begin(&w);
        for (int32_t i = 0; i < flow->count; i++)
            if (flow->wait_of[i] >= 0) limits->up[i] = raise_start(&w, i);
        for (int32_t i = flow->count - 1; i >= 0; i--)
            if (flow->start_of[i] >= 0) limits->down[flow->start_of[i]] = sink_wait(&w, i);
    }
    wf_free(w.at);
    wf_free(w.last);
    wf_free(w.freed);
    wf_free(w.held);
    wf_free(w.alloc);
    wf_free(w.hidden);
    return status;
}
