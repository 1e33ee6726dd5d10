/* list.c - all nodes anew, in simulated time.
 *
 * At each step the first of these runs: a start that is ready and has room; a wait whose collective
 * has ended; the compute that leads to the earliest start; the oldest wait.  Where memory has no
 * room for compute, the oldest wait runs before it. */
#include "flow.h"

#include <string.h>

enum { STARTS, WAITS, OTHERS, QUEUES };

struct simulation {
    const struct wf_flow *flow;
    struct wf_ready queue[QUEUES];
    int32_t *priority;
    uint32_t *left, *users; /* by node: nodes to come before it; users of its memory to come */
    uint64_t *ends, *lanes; /* by start; by communicator */
    uint64_t clock, held, limit;
};

static uint64_t key_of(const struct simulation *s, int32_t node)
{
    bool in_order = s->flow->nodes[node].kind != WEFT_REORDER_NODE_COMPUTE;

    return (uint64_t)(uint32_t)(in_order ? 0 : s->priority[node]) << 32 | (uint32_t)node;
}

static void make_ready(struct simulation *s, int32_t node)
{
    uint32_t kind = s->flow->nodes[node].kind;
    int queue = kind == WEFT_REORDER_NODE_START  ? STARTS
                : kind == WEFT_REORDER_NODE_WAIT ? WAITS
                                                 : OTHERS;

    wf_ready_push(&s->queue[queue], key_of(s, node));
}

static int32_t first_of(const struct simulation *s, int queue)
{
    return s->queue[queue].count > 0 ? (int32_t)(uint32_t)s->queue[queue].keys[0] : -1;
}

static bool has_room(const struct simulation *s, int32_t node)
{
    const weft_reorder_node *n = &s->flow->nodes[node];

    return n->flags & WEFT_REORDER_NODE_GIVEN || s->held + n->alloc <= s->limit;
}

static int choose(const struct simulation *s)
{
    int32_t start = first_of(s, STARTS), wait = first_of(s, WAITS), other = first_of(s, OTHERS);

    if (other >= 0 && s->flow->nodes[other].flags & WEFT_REORDER_NODE_GIVEN) return OTHERS;
    if (start >= 0 && has_room(s, start)) return STARTS;
    if (wait >= 0 && s->ends[s->flow->start_of[wait]] <= s->clock) return WAITS;
    if (other >= 0 && (has_room(s, other) || wait < 0)) return OTHERS;
    if (wait >= 0) return WAITS;
    return start >= 0 ? STARTS : OTHERS;
}

static void run_node(struct simulation *s, int32_t index)
{
    const struct wf_flow *flow = s->flow;
    const weft_reorder_node *n = &flow->nodes[index];
    uint64_t begin = s->clock;

    if (n->kind == WEFT_REORDER_NODE_WAIT) {
        uint64_t end = s->ends[flow->start_of[index]];
        if (end > s->clock) s->clock = end;
    } else if (n->comm >= 0) {
        if (s->lanes[n->comm] > begin) begin = s->lanes[n->comm];
        s->lanes[n->comm] = s->ends[index] = begin + n->time;
        if (n->kind == WEFT_REORDER_NODE_COMPUTE) s->clock = s->ends[index];
    } else {
        s->clock += n->time;
    }
    if (n->kind != WEFT_REORDER_NODE_WAIT && !(n->flags & WEFT_REORDER_NODE_GIVEN))
        s->held += n->alloc;
    for (uint32_t i = flow->uses.first[index]; i < flow->uses.first[index + 1]; i++) {
        int32_t owner = flow->uses.item[i], wait = flow->wait_of[owner];
        uint32_t flags = flow->nodes[owner].flags | (wait >= 0 ? flow->nodes[wait].flags : 0);
        if (--s->users[owner] == 0 && !(flags & WEFT_REORDER_NODE_KEPT) &&
            flow->start_of[owner] < 0)
            s->held -= flow->nodes[owner].alloc;
    }
    for (uint32_t i = flow->after.first[index]; i < flow->after.first[index + 1]; i++)
        if (--s->left[flow->after.item[i]] == 0) make_ready(s, flow->after.item[i]);
}

static void simulate(struct simulation *s, int32_t *order)
{
    const struct wf_flow *flow = s->flow;

    wf_flow_leads_to(flow, s->priority);
    for (int32_t i = 0; i < flow->count; i++) {
        bool given = flow->nodes[i].flags & WEFT_REORDER_NODE_GIVEN;
        if (given) {
            s->priority[i] = -1;
            s->held += flow->nodes[i].alloc;
        }
        s->priority[i] += s->priority[i] < INT32_MAX;
        for (uint32_t j = flow->uses.first[i]; j < flow->uses.first[i + 1]; j++)
            s->users[flow->uses.item[j]]++;
    }
    for (int32_t i = 0; i < flow->count; i++) {
        s->left[i] = flow->before.first[i + 1] - flow->before.first[i];
        if (s->left[i] == 0) make_ready(s, i);
    }
    for (int32_t i = 0; i < flow->count; i++) {
        order[i] = (int32_t)(uint32_t)wf_ready_pop(&s->queue[choose(s)]);
        run_node(s, order[i]);
    }
}

weft_status wf_pass_list(const struct wf_flow *flow, uint64_t limit, int32_t *order)
{
    size_t count = (size_t)flow->count;
    struct simulation s = {.flow = flow, .limit = limit};
    bool room = true;

    for (int i = 0; i < QUEUES; i++) {
        s.queue[i].keys = wf_alloc(count * sizeof *s.queue[i].keys);
        room &= s.queue[i].keys != NULL;
    }
    s.priority = wf_alloc(count * sizeof *s.priority);
    s.left = wf_alloc(count * sizeof *s.left);
    s.users = wf_calloc(count, sizeof *s.users);
    s.ends = wf_calloc(count, sizeof *s.ends);
    s.lanes = wf_calloc((size_t)flow->comms, sizeof *s.lanes);
    room &= s.priority != NULL && s.left != NULL && s.users != NULL && s.ends != NULL &&
            s.lanes != NULL;
    if (room) simulate(&s, order);
    for (int i = 0; i < QUEUES; i++)
        wf_free(s.queue[i].keys);
    wf_free(s.priority);
    wf_free(s.left);
    wf_free(s.users);
    wf_free(s.ends);
    wf_free(s.lanes);
    return room ? WEFT_OK : wf_fail_memory(count * sizeof *s.ends);
}
