/* edges.c - which nodes must keep their order, and which memory nodes use.
 *
 * Every node that touches a communicator is communication, whatever its kind.  Operations on one
 * communicator keep their order, and so do the waits for them.  Communication that is neither a
 * start nor a wait keeps its order with all starts: a rank that sends before it receives, and its
 * peer that receives before it sends, must meet no other collective in between. */
#include "flow.h"

#include <string.h>

/* Calls ADD(state, from, to) for every pair of nodes that keep their order. */
typedef void add_edge(void *state, int32_t from, int32_t to);

struct chains {
    int32_t *issued, *waited; /* by communicator: the last operation, and the last wait */
    int32_t fence;            /* the last communication that is not a start; -1: none */
    int32_t *starts;          /* since then */
    int32_t start_count;
};

static void add_after(int32_t from, int32_t to, add_edge *add, void *state)
{
    if (from >= 0) add(state, from, to);
}

static void add_communication(const struct wf_flow *flow, struct chains *c, int32_t index,
                              add_edge *add, void *state)
{
    const weft_reorder_node *node = &flow->nodes[index];

    if (node->kind == WEFT_REORDER_NODE_WAIT) {
        int32_t comm = flow->nodes[flow->start_of[index]].comm;
        add_after(c->waited[comm], index, add, state);
        c->waited[comm] = index;
        return;
    }
    if (node->comm < 0) return;
    add_after(c->issued[node->comm], index, add, state);
    c->issued[node->comm] = index;
    add_after(c->fence, index, add, state);
    if (node->kind == WEFT_REORDER_NODE_START) {
        c->starts[c->start_count++] = index;
        return;
    }
    for (int32_t i = 0; i < c->start_count; i++)
        add(state, c->starts[i], index);
    c->start_count = 0;
    c->fence = index;
}

static void visit_edges(const struct wf_flow *flow, struct chains *c, add_edge *add, void *state)
{
    memset(c->issued, 0xff, (size_t)flow->comms * sizeof *c->issued);
    memset(c->waited, 0xff, (size_t)flow->comms * sizeof *c->waited);
    c->fence = -1;
    c->start_count = 0;
    for (int32_t i = 0; i < flow->count; i++) {
        for (uint32_t j = 0; j < flow->nodes[i].input_count; j++)
            add(state, flow->nodes[i].inputs[j], i);
        add_communication(flow, c, i, add, state);
    }
}

/* ---- filling lists ---- */

static void count_edge(void *state, int32_t from, int32_t to)
{
    struct wf_flow *flow = state;

    flow->after.first[from + 1]++;
    flow->before.first[to + 1]++;
}

/* Before items are filled, first[i + 1] is where list i ends; filling counts it down. */
static void store_edge(void *state, int32_t from, int32_t to)
{
    struct wf_flow *flow = state;

    flow->after.item[--flow->after.first[from + 1]] = to;
    flow->before.item[--flow->before.first[to + 1]] = from;
}

static void sum_up(uint32_t *first, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        first[i + 1] += first[i];
}

/* After filling, first[i + 1] is where list i begins: move all one place down. */
static void shift_down(uint32_t *first, int32_t count, uint32_t total)
{
    memmove(first, first + 1, (size_t)count * sizeof *first);
    first[count] = total;
}

static weft_status connect(struct wf_flow *flow, struct chains *chains)
{
    size_t room = (size_t)flow->count + 1;
    uint32_t total;

    flow->after.first = wf_calloc(room, sizeof *flow->after.first);
    flow->before.first = wf_calloc(room, sizeof *flow->before.first);
    if (flow->after.first == NULL || flow->before.first == NULL)
        return wf_fail_memory(room * sizeof *flow->after.first);
    visit_edges(flow, chains, count_edge, flow);
    sum_up(flow->after.first, flow->count);
    sum_up(flow->before.first, flow->count);
    total = flow->after.first[flow->count];
    flow->after.item = wf_alloc(total * sizeof *flow->after.item);
    flow->before.item = wf_alloc(total * sizeof *flow->before.item);
    if (flow->after.item == NULL || flow->before.item == NULL)
        return wf_fail_memory(total * sizeof *flow->after.item);
    visit_edges(flow, chains, store_edge, flow);
    shift_down(flow->after.first, flow->count, total);
    shift_down(flow->before.first, flow->count, total);
    return WEFT_OK;
}

/* ---- memory ---- */

/* The node whose memory has the result of NODE: a wait has that of its start. */
static int32_t owner_of(const struct wf_flow *flow, int32_t node)
{
    return flow->start_of[node] >= 0 ? flow->start_of[node] : node;
}

/* SEEN: by node, the last node for which its memory was noted. */
static void add_use(struct wf_flow *flow, int32_t *seen, int32_t node, int32_t owner)
{
    if (seen[owner] == node) return;
    seen[owner] = node;
    flow->uses.item[flow->uses.first[node + 1]++] = owner;
}

static void fill_uses(struct wf_flow *flow, int32_t *seen)
{
    for (int32_t i = 0; i < flow->count; i++) {
        const weft_reorder_node *node = &flow->nodes[i];
        int32_t start = flow->start_of[i];
        flow->uses.first[i + 1] = flow->uses.first[i];
        add_use(flow, seen, i, owner_of(flow, i));
        for (uint32_t j = 0; j < node->input_count; j++)
            add_use(flow, seen, i, owner_of(flow, node->inputs[j]));
        for (uint32_t j = 0; start >= 0 && j < flow->nodes[start].input_count; j++)
            add_use(flow, seen, i, owner_of(flow, flow->nodes[start].inputs[j]));
    }
}

/* A collective reads its inputs until its wait has ended, so the wait uses them too. */
static weft_status find_uses(struct wf_flow *flow)
{
    size_t room = (size_t)flow->count;
    int32_t *seen;

    for (int32_t i = 0; i < flow->count; i++) {
        room += flow->nodes[i].input_count;
        if (flow->start_of[i] >= 0) room += flow->nodes[flow->start_of[i]].input_count;
    }
    if (room > UINT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "weft_reorder_create: the nodes have %zu inputs", room);
    flow->uses.first = wf_calloc((size_t)flow->count + 1, sizeof *flow->uses.first);
    flow->uses.item = wf_alloc(room * sizeof *flow->uses.item);
    seen = wf_alloc((size_t)flow->count * sizeof *seen);
    if (flow->uses.first == NULL || flow->uses.item == NULL || seen == NULL) {
        wf_free(seen);
        return wf_fail_memory(room * sizeof *flow->uses.item);
    }
    memset(seen, 0xff, (size_t)flow->count * sizeof *seen);
    fill_uses(flow, seen);
    wf_free(seen);
    return WEFT_OK;
}

weft_status wf_flow_connect(struct wf_flow *flow)
{
    size_t bytes = (size_t)flow->comms * sizeof(int32_t);
    struct chains chains = {.issued = wf_alloc(bytes), .waited = wf_alloc(bytes)};
    weft_status status;

    chains.starts = wf_alloc((size_t)flow->count * sizeof *chains.starts);
    if (chains.issued != NULL && chains.waited != NULL && chains.starts != NULL)
        status = connect(flow, &chains);
    else
        status = wf_fail_memory(bytes);
    wf_free(chains.issued);
    wf_free(chains.waited);
    wf_free(chains.starts);
    return status == WEFT_OK ? find_uses(flow) : status;
}
