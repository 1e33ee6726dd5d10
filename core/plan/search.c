/* search.c - the cheapest path from the source to the target: A* over states.
 *
 * The graph is never built: states are created when they are reached.  They are expanded in order
 * of cost so far plus a lower bound on the remaining cost (lower_bound.c).  A state is dropped if
 * no plan through it can be better than the best complete plan known.  The first complete plan is
 * the one-step exchange, so most searches end after a few states.  The search does not depend on
 * the number of ranks, on a clock or on addresses: every rank finds the same plan. */
#include "plan/figures/figures.h"
#include "queue.h"

#include <string.h>

enum {
    FIRST_ROOM = 64,
    /* Then the best known plan is used; only seen with more than five axes.  A clock would not be
     * the same on all ranks. */
    STATES_MAX = 1 << 16,
    WORK_MAX = 1 << 19,   /* edges */
    SCRATCH_WORK = 16,    /* counting the scratch of an edge takes as long as so many edges, */
    MESSAGES_OF_WORK = 4, /* and comparing so many messages as long as one edge */
    NOBODY = -1
};

struct node {
    struct wf_state state;
    struct wf_rating total; /* the quantity to minimize, then its tie-breaker */
    struct wf_price price;  /* the step to this node */
    uint32_t kind, axes;
    int32_t before; /* predecessor */
    bool settled;
};

struct search {
    const struct wf_problem *problem;
    struct wf_lower_bound bound;
    bool minimize_peak;  /* minimize the largest scratch instead of a sum */
    bool counts_scratch; /* scratch decides, and is exact */
    struct node *nodes;
    struct wf_queue queue;
    int32_t *slots; /* open addressing by state */
    int32_t node_count, room;
    int32_t here;   /* node being expanded */
    int32_t target; /* node, once reached */
    int64_t work;
    bool gives_up; /* ends when there was too much work, even if no plan is known */
    bool cut;      /* states were not expanded, because there was too much work */
    weft_status status;
};

/* Costs are often equal (either axis of a square mesh), so the state itself is the last
 * tie-breaker. */
static bool comes_first(const void *search, int32_t a, int32_t b)
{
    const struct search *s = search;

    return memcmp(&s->nodes[a].state, &s->nodes[b].state, sizeof(struct wf_state)) < 0;
}

/* ---- storage ---- */

static uint32_t slot_of(const struct search *s, const struct wf_state *state)
{
    return (uint32_t)(wf_state_hash(state) >> 20) & (uint32_t)(2 * s->room - 1);
}

static int32_t find_node(const struct search *s, const struct wf_state *state, uint32_t *slot)
{
    uint32_t mask = (uint32_t)(2 * s->room - 1);

    *slot = slot_of(s, state);
    while (s->slots[*slot] != NOBODY) {
        if (wf_state_same(&s->nodes[s->slots[*slot]].state, state)) return s->slots[*slot];
        *slot = (*slot + 1) & mask;
    }
    return NOBODY;
}

/* Make room for twice as many states. */
static weft_status grow_nodes(struct search *s)
{
    int32_t room = s->room == 0 ? FIRST_ROOM : 2 * s->room;
    struct node *nodes = wf_realloc(s->nodes, (size_t)room * sizeof *nodes);
    int32_t *slots;

    if (nodes == NULL) return wf_fail_memory((size_t)room * sizeof *nodes);
    s->nodes = nodes;
    slots = wf_realloc(s->slots, 2 * (size_t)room * sizeof *slots);
    if (slots == NULL) return wf_fail_memory(2 * (size_t)room * sizeof *slots);
    s->slots = slots;
    s->room = room;
    for (int32_t i = 0; i < 2 * room; i++)
        slots[i] = NOBODY;
    for (int32_t i = 0; i < s->node_count; i++) {
        uint32_t slot;
        (void)find_node(s, &nodes[i].state, &slot);
        slots[slot] = i;
    }
    return WEFT_OK;
}

/* ---- the search ---- */

static struct wf_rating add_price(const struct search *s, const struct wf_rating *total,
                                  const struct wf_price *price)
{
    struct wf_rating sum = {.steps = total->steps + 1};

    if (s->minimize_peak) {
        sum.first = price->scratch > total->first ? price->scratch : total->first;
        sum.second = wf_add_capped(total->second, price->ns);
    } else if (s->problem->minimize == WEFT_MINIMIZE_BYTES) {
        sum.first = wf_add_capped(total->first, price->received);
        sum.second = wf_add_capped(total->second, price->ns);
    } else {
        sum.first = wf_add_capped(total->first, price->ns);
        sum.second = wf_add_capped(total->second, price->received);
    }
    return sum;
}

/* The cost of a node that EDGE leads to. */
struct arrival {
    struct wf_rating total, least; /* so far; a lower bound for plans through the node */
    int32_t known;                 /* the node, or NOBODY */
    uint32_t slot;
};

/* True if EDGE, out of the node being expanded, improves something at PRICE. */
static bool improves(const struct search *s, const struct wf_edge *edge,
                     const struct wf_price *price, struct arrival *out)
{
    out->total = out->least = add_price(s, &s->nodes[s->here].total, price);
    if (out->total.steps > s->problem->steps_max) return false;
    if (!s->minimize_peak && price->scratch > s->problem->memory_limit) return false;
    if (s->bound.counts)
        out->least.first = wf_add_capped(out->total.first, wf_lower_bound_ns(&s->bound, &edge->to));
    if (s->target != NOBODY && wf_rating_compare(&out->least, &s->nodes[s->target].total) >= 0)
        return false;
    out->known = find_node(s, &edge->to, &out->slot);
    return out->known == NOBODY ||
           (!s->nodes[out->known].settled &&
            wf_rating_compare(&out->total, &s->nodes[out->known].total) < 0);
}

/* Record that EDGE, at PRICE, leaves the node being expanded. */
static weft_status reach_state(struct search *s, const struct wf_edge *edge,
                               const struct wf_price *price)
{
    struct arrival a;
    struct node *node;

    if (!improves(s, edge, price, &a)) return WEFT_OK;
    if (a.known == NOBODY) {
        if (s->node_count >= STATES_MAX && !wf_state_same(&edge->to, &s->problem->target)) {
            s->cut = true;
            return WEFT_OK;
        }
        if (s->node_count == s->room) {
            WF_TRY(grow_nodes(s));
            (void)find_node(s, &edge->to, &a.slot);
        }
        a.known = s->node_count++;
        s->slots[a.slot] = a.known;
        s->nodes[a.known] = (struct node){.state = edge->to};
        if (wf_state_same(&edge->to, &s->problem->target)) s->target = a.known;
    }
    node = &s->nodes[a.known];
    node->total = a.total;
    node->price = *price;
    node->kind = edge->kind;
    node->axes = edge->axes;
    node->before = s->here;
    return wf_queue_push(&s->queue, (struct wf_queued){a.least, a.known});
}

/* True if the latency of EDGE, out of the node being expanded, is alone worse than the best known
 * plan. */
static bool is_hopeless(const struct search *s, const struct wf_edge *edge)
{
    struct wf_work waiting = {.kind = edge->kind, .ranks = 1, .link = WF_WITHIN_HOST};
    uint64_t ns;

    if (!s->bound.counts || s->target == NOBODY) return false;
    for (int32_t i = 0; i < s->problem->axes; i++) {
        if (!(edge->axes >> i & 1)) continue;
        waiting.ranks *= s->problem->size[i];
        if (s->problem->link[i] > waiting.link) waiting.link = s->problem->link[i];
    }
    ns = s->nodes[s->here].total.first + wf_cost_ns(s->problem->costs, &waiting);
    return ns > s->nodes[s->target].total.first;
}

/* True if the rank at coordinate 0 may not have the largest shard of STATE. */
static bool has_sizes_or_owner(const struct wf_problem *problem, const struct wf_state *state)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (state->axis[i].kind == WF_CODE_OWNER || wf_code_lists(problem, i, state->axis[i]))
            return true;
    return false;
}

/* A lower bound on the scratch of EDGE, out of FROM: its input and its output. */
static uint64_t least_scratch(const struct search *s, const struct wf_state *from,
                              const struct wf_edge *edge)
{
    const struct wf_problem *problem = s->problem;
    uint64_t in = 0, out = 0;

    if (!wf_state_same(from, &problem->source))
        in = wf_scratch_align(wf_state_bytes(problem, from));
    if (!wf_state_same(&edge->to, &problem->target))
        out = wf_scratch_align(wf_state_bytes(problem, &edge->to));
    if (in > 0 && out > 0 &&
        (has_sizes_or_owner(problem, from) || has_sizes_or_owner(problem, &edge->to)))
        return in > out ? in : out; /* maybe on different ranks */
    return wf_add_capped(in, out);
}

/* Set the scratch of PRICE to the exact one, unless there was too much work: no plan is known yet,
 * and estimates find one.  False: EDGE, out of FROM, improves nothing, even with the least
 * scratch. */
static bool count_scratch(struct search *s, const struct wf_state *from, const struct wf_edge *edge,
                          struct wf_price *price)
{
    struct arrival arrival;
    uint64_t estimate = price->scratch;
    int64_t messages = 0;

    if (s->minimize_peak && s->work > WORK_MAX) {
        s->cut = true;
        return true;
    }
    price->scratch = least_scratch(s, from, edge);
    if (!improves(s, edge, price, &arrival)) return false;
    price->scratch = estimate;
    s->status = wf_problem_scratch(s->problem, from, edge, price, &messages);
    s->work += SCRATCH_WORK + messages / MESSAGES_OF_WORK;
    return s->status == WEFT_OK;
}

/* Whether EDGE is worth a price; *FROM is where it begins. */
static bool begin_edge(struct search *s, const struct wf_edge *edge, struct wf_state *from)
{
    *from = s->nodes[s->here].state; /* reach may move the nodes */
    if (s->status != WEFT_OK) return false;
    s->work++;
    return !is_hopeless(s, edge);
}

static void end_edge(struct search *s, const struct wf_edge *edge, const struct wf_state *from,
                     struct wf_price *price)
{
    if (s->status != WEFT_OK) return;
    if (s->counts_scratch && !count_scratch(s, from, edge, price)) return;
    s->status = reach_state(s, edge, price);
}

static void take_edge(void *self, const struct wf_edge *edge)
{
    struct search *s = self;
    struct wf_state from;
    struct wf_price price;

    if (!begin_edge(s, edge, &from)) return;
    wf_price_edge(s->problem, &from, edge, &price);
    end_edge(s, edge, &from, &price);
}

static void take_exchange(void *self, const struct wf_edge *edge)
{
    struct search *s = self;
    struct wf_state from;
    struct wf_price price;

    if (!begin_edge(s, edge, &from)) return;
    s->status = wf_price_exchange(s->problem, &from, edge, &price);
    end_edge(s, edge, &from, &price);
}

static weft_status expand_node(struct search *s, int32_t node)
{
    struct wf_state state = s->nodes[node].state;

    s->here = node;
    s->nodes[node].settled = true;
    wf_exchanges(s->problem, &state, take_exchange, s);
    wf_edges(s->problem, &state, take_edge, s);
    return s->status;
}

static weft_status run_search(struct search *s)
{
    s->target = NOBODY;
    s->node_count = s->queue.count = 0;
    s->work = 0;
    s->bound.counts = false;
    if (!s->minimize_peak && s->problem->minimize == WEFT_MINIMIZE_TIME)
        wf_lower_bound_set(&s->bound, s->problem);
    for (int32_t i = 0; i < 2 * s->room; i++)
        s->slots[i] = NOBODY;
    if (s->room == 0) WF_TRY(grow_nodes(s));
    s->nodes[0] = (struct node){.state = s->problem->source, .before = NOBODY};
    s->slots[slot_of(s, &s->problem->source)] = 0;
    s->node_count = 1;
    WF_TRY(wf_queue_push(&s->queue, (struct wf_queued){{0}, 0}));
    while (s->queue.count > 0) {
        int32_t node = wf_queue_pop(&s->queue).item;
        if (s->nodes[node].settled) continue;
        if (node == s->target) return WEFT_OK;
        if (s->work > WORK_MAX && (s->target != NOBODY || s->gives_up))
            s->cut = true;
        else
            WF_TRY(expand_node(s, node));
    }
    return WEFT_OK;
}

static weft_status read_path(const struct search *s, struct wf_path *out)
{
    uint32_t at = s->nodes[s->target].total.steps;

    if (at > WF_PATH_MAX) return wf_fail(WEFT_ERR_INTERNAL, "the plan has %u steps, too many", at);
    out->count = at;
    for (int32_t node = s->target; s->nodes[node].before != NOBODY; node = s->nodes[node].before) {
        const struct node *n = &s->nodes[node];
        out->edges[--at] = (struct wf_edge){n->kind, n->axes, n->state};
        out->prices[at] = n->price;
    }
    return WEFT_OK;
}

static weft_status refuse_steps(const struct wf_problem *problem)
{
    struct wf_text names = {0};

    wf_plan_add_step_names(&names, problem->without);
    return wf_fail_text(WEFT_ERR_UNSUPPORTED, &names,
                        "no plan exists without the excluded step kinds: %s",
                        names.length > 0 ? names.data : "none");
}

/* The path that takes the least scratch, and that scratch.  *FOUND is false if no path exists. */
static weft_status find_least_scratch(struct search *s, struct wf_path *out, uint64_t *bytes,
                                      bool *found)
{
    struct wf_state from = s->problem->source;
    int64_t messages = 0;

    s->minimize_peak = true;
    s->gives_up = false;
    WF_TRY(run_search(s));
    *found = s->target != NOBODY;
    if (!*found) return WEFT_OK;
    WF_TRY(read_path(s, out));
    *bytes = 0;
    for (uint32_t i = 0; i < out->count; i++) { /* some steps may have been estimated */
        WF_TRY(wf_problem_scratch(s->problem, &from, &out->edges[i], &out->prices[i], &messages));
        if (out->prices[i].scratch > *bytes) *bytes = out->prices[i].scratch;
        from = out->edges[i].to;
    }
    return WEFT_OK;
}

/* MINIMIZE_MEMORY: find the least scratch, then the fastest plan within it.  LIMITED is a copy of
 * the problem. */
static weft_status search_by_memory(struct search *s, struct wf_problem *limited,
                                    struct wf_path *out)
{
    uint64_t bytes = 0;
    bool found;

    WF_TRY(find_least_scratch(s, out, &bytes, &found));
    if (!found) return refuse_steps(s->problem);
    if (bytes > limited->memory_limit)
        return wf_plan_refuse_memory("", limited->memory_limit, bytes);
    limited->minimize = WEFT_MINIMIZE_TIME;
    limited->memory_limit = bytes;
    s->problem = limited;
    s->minimize_peak = false;
    s->gives_up = true;
    WF_TRY(run_search(s));
    return s->target != NOBODY ? read_path(s, out) : WEFT_OK;
}

/* The path that takes the least scratch, if that is within the limit: no other is known to be. */
static weft_status search_within_limit(struct search *s, struct wf_path *out)
{
    uint64_t bytes = 0;
    bool found;

    WF_TRY(find_least_scratch(s, out, &bytes, &found));
    if (!found) return refuse_steps(s->problem);
    if (bytes > s->problem->memory_limit)
        return wf_plan_refuse_memory("", s->problem->memory_limit, bytes);
    return WEFT_OK;
}

static weft_status search_by_sum(struct search *s, struct wf_path *out)
{
    s->gives_up = s->counts_scratch;
    WF_TRY(run_search(s));
    return s->target != NOBODY ? read_path(s, out) : search_within_limit(s, out);
}

weft_status wf_search(const struct wf_problem *problem, struct wf_path *out)
{
    struct search s = {.problem = problem,
                       .counts_scratch = wf_problem_counts(problem),
                       .queue = {.comes_first = comes_first, .search = &s}};
    struct wf_problem limited = *problem;
    weft_status status = problem->minimize == WEFT_MINIMIZE_MEMORY
                             ? search_by_memory(&s, &limited, out)
                             : search_by_sum(&s, out);

    out->least = !s.cut;
    wf_free(s.nodes);
    wf_free(s.slots);
    wf_free(s.queue.heap);
    return status;
}
