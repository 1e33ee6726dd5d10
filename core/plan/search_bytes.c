/* search_bytes.c - the plan whose busiest rank receives the fewest bytes.
 *
 * Different steps may load different ranks, so the bytes of a plan are not the sum over its steps:
 * they are the largest sum over steps of any rank.  A label is a path to a state with the bytes
 * that each rank has received on it.  A label is dropped if another one at the same state is not
 * worse in the bytes of any rank, in time and in steps.  Labels are extended in order of a lower
 * bound on the bytes of complete plans (loads.c), then of one on their time.  With all ranks
 * visited, the first complete plan is the best.  With some of them, several complete plans are
 * collected and counted exactly.  A search that takes too long ends with the best plan known. */
#include "plan/figures/figures.h"
#include "queue.h"

enum {
    CANDIDATES = 16,
    FIRST_ROOM = 64,
    /* Comparisons of labels; then the best known plan is used.  A clock would not be the same on
     * all ranks. */
    WORK_MAX = 1 << 25,
    WORK_MAX_SOME = 1 << 22,
    EDGE_WORK = 64, /* an edge takes as long as so many comparisons */
    NOBODY = -1
};

/* A state that was reached. */
struct spot {
    struct wf_state state;
    struct wf_load_state load;
    uint64_t hash;
    uint64_t ns_left; /* lower bound */
    int32_t labels;   /* the last label here */
};

struct label {
    int32_t spot, before, next; /* next: another label of the spot */
    uint32_t kind, axes, steps;
    uint64_t ns;
    uint64_t least;        /* bytes of any plan through it, at least */
    struct wf_price price; /* of the last step */
    bool dropped;
    uint64_t loaded[WF_LOADS_MAX];
};

struct search {
    const struct wf_problem *problem;
    struct wf_loads loads;
    struct wf_lower_bound bound;
    struct spot *spots;
    int32_t *slots; /* open addressing by state: spots */
    struct label *labels;
    struct wf_queue queue;
    int32_t spot_count, spot_room, label_count, label_room;
    int64_t work;
    bool cut;     /* labels were not extended, because there was too much work */
    int32_t here; /* label being extended */
    int32_t found[CANDIDATES], found_count;
    struct wf_rating best; /* bytes, then ns, of complete plans */
    weft_status status;
};

static bool comes_first(const void *search, int32_t a, int32_t b)
{
    (void)search;
    return a < b;
}

/* ---- storage ---- */

static weft_status grow_labels(struct search *s)
{
    int32_t room = s->label_room == 0 ? FIRST_ROOM : 2 * s->label_room;
    struct label *labels;

    if (s->label_count < s->label_room) return WEFT_OK;
    labels = wf_realloc(s->labels, (size_t)room * sizeof *labels);
    if (labels == NULL) return wf_fail_memory((size_t)room * sizeof *labels);
    s->labels = labels;
    s->label_room = room;
    return WEFT_OK;
}

/* The slot of STATE, whose hash is HASH, or a free one. */
static int32_t *find_slot(const struct search *s, const struct wf_state *state, uint64_t hash)
{
    uint32_t mask = (uint32_t)(2 * s->spot_room - 1), at = (uint32_t)(hash >> 20) & mask;

    while (s->slots[at] != NOBODY && (s->spots[s->slots[at]].hash != hash ||
                                      !wf_state_same(&s->spots[s->slots[at]].state, state)))
        at = (at + 1) & mask;
    return &s->slots[at];
}

static weft_status grow_spots(struct search *s)
{
    int32_t room = s->spot_room == 0 ? FIRST_ROOM : 2 * s->spot_room;
    struct spot *spots;
    int32_t *slots;

    if (s->spot_count < s->spot_room) return WEFT_OK;
    spots = wf_realloc(s->spots, (size_t)room * sizeof *spots);
    if (spots == NULL) return wf_fail_memory((size_t)room * sizeof *spots);
    s->spots = spots;
    slots = wf_realloc(s->slots, 2 * (size_t)room * sizeof *slots);
    if (slots == NULL) return wf_fail_memory(2 * (size_t)room * sizeof *slots);
    s->slots = slots;
    s->spot_room = room;
    for (int32_t i = 0; i < 2 * room; i++)
        slots[i] = NOBODY;
    for (int32_t i = 0; i < s->spot_count; i++)
        *find_slot(s, &spots[i].state, spots[i].hash) = i;
    return WEFT_OK;
}

/* The spot of STATE, which is measured when it is reached first. */
static weft_status find_spot(struct search *s, const struct wf_state *state, int32_t *out)
{
    uint64_t hash = wf_state_hash(state);
    struct spot *spot;
    int32_t *slot;

    WF_TRY(grow_spots(s));
    slot = find_slot(s, state, hash);
    if (*slot != NOBODY) {
        *out = *slot;
        return WEFT_OK;
    }
    spot = &s->spots[s->spot_count];
    spot->state = *state;
    spot->hash = hash;
    spot->labels = NOBODY;
    spot->ns_left = wf_lower_bound_ns(&s->bound, state);
    WF_TRY(wf_loads_measure(&s->loads, state, &spot->load));
    *out = *slot = s->spot_count++;
    return WEFT_OK;
}

/* ---- labels ---- */

/* True if A is not worse than B in anything. */
static bool dominates(const struct search *s, const struct label *a, const struct label *b)
{
    if (a->ns > b->ns || a->steps > b->steps) return false;
    for (int32_t r = 0; r < s->loads.ranks; r++)
        if (a->loaded[r] > b->loaded[r]) return false;
    return true;
}

/* True if a label of the spot of MADE dominates it.  Drops those that MADE dominates. */
static bool is_dominated(struct search *s, const struct label *made)
{
    int32_t *link = &s->spots[made->spot].labels;

    while (*link != NOBODY) {
        struct label *other = &s->labels[*link];
        s->work++;
        if (dominates(s, other, made)) return true;
        if (dominates(s, made, other)) {
            other->dropped = true;
            *link = other->next;
        } else {
            link = &other->next;
        }
    }
    return false;
}

static struct wf_rating rate(const struct search *s, const struct label *label)
{
    const struct spot *spot = &s->spots[label->spot];

    return (struct wf_rating){wf_loads_bound(&s->loads, label->loaded, &spot->load),
                              wf_add_capped(label->ns, spot->ns_left), label->steps};
}

static weft_status add_label(struct search *s, const struct label *label,
                             const struct wf_rating *rating)
{
    struct spot *spot = &s->spots[label->spot];

    WF_TRY(grow_labels(s));
    s->labels[s->label_count] = *label;
    s->labels[s->label_count].next = spot->labels;
    spot->labels = s->label_count;
    return wf_queue_push(&s->queue, (struct wf_queued){*rating, s->label_count++});
}

static bool is_target(const struct search *s, int32_t spot)
{
    return wf_state_same(&s->spots[spot].state, &s->problem->target);
}

/* Extend the label being extended by EDGE, at PRICE. */
static weft_status reach_state(struct search *s, const struct wf_edge *edge,
                               const struct wf_price *price)
{
    const struct label *from = &s->labels[s->here];
    struct label made = {.before = s->here,
                         .kind = edge->kind,
                         .axes = edge->axes,
                         .steps = from->steps + 1,
                         .ns = wf_add_capped(from->ns, price->ns),
                         .price = *price};
    struct wf_rating rating;

    if (price->scratch > s->problem->memory_limit) return WEFT_OK;
    if (made.steps > s->problem->steps_max) return WEFT_OK;
    if (!s->loads.all && made.steps > WF_STEPS_MAX) return WEFT_OK;
    rating = (struct wf_rating){
        from->least, wf_add_capped(made.ns, wf_lower_bound_ns(&s->bound, &edge->to)), made.steps};
    if (s->best.steps > 0 && wf_rating_compare(&rating, &s->best) >= 0) return WEFT_OK;
    WF_TRY(find_spot(s, &edge->to, &made.spot));
    from = &s->labels[s->here];
    WF_TRY(wf_loads_edge(&s->loads, &s->spots[from->spot].state, &s->spots[from->spot].load, edge,
                         &s->spots[made.spot].load, made.loaded));
    for (int32_t r = 0; r < s->loads.ranks; r++)
        made.loaded[r] = wf_add_capped(made.loaded[r], from->loaded[r]);
    rating = rate(s, &made);
    made.least = rating.first;
    if (s->best.steps > 0 && wf_rating_compare(&rating, &s->best) >= 0) return WEFT_OK;
    if (is_dominated(s, &made)) return WEFT_OK;
    if (is_target(s, made.spot) && s->loads.all) s->best = rating;
    return add_label(s, &made, &rating);
}

static void take_edge(void *self, const struct wf_edge *edge)
{
    struct search *s = self;
    struct wf_state from = s->spots[s->labels[s->here].spot].state;
    struct wf_price price;

    if (s->status != WEFT_OK) return;
    s->work += EDGE_WORK;
    wf_price_edge(s->problem, &from, edge, &price);
    s->status = wf_problem_scratch(s->problem, &from, edge, &price, &s->work);
    if (s->status == WEFT_OK) s->status = reach_state(s, edge, &price);
}

static void take_exchange(void *self, const struct wf_edge *edge)
{
    struct search *s = self;
    struct wf_state from = s->spots[s->labels[s->here].spot].state;
    struct wf_price price;

    if (s->status != WEFT_OK) return;
    s->work += EDGE_WORK;
    s->status = wf_price_exchange(s->problem, &from, edge, &price);
    if (s->status == WEFT_OK)
        s->status = wf_problem_scratch(s->problem, &from, edge, &price, &s->work);
    if (s->status == WEFT_OK) s->status = reach_state(s, edge, &price);
}

static weft_status extend_label(struct search *s, int32_t label)
{
    struct wf_state state = s->spots[s->labels[label].spot].state;

    s->here = label;
    wf_exchanges(s->problem, &state, take_exchange, s);
    wf_edges(s->problem, &state, take_edge, s);
    return s->status;
}

/* Find one complete plan if all ranks are visited, otherwise several. */
static weft_status run_search(struct search *s)
{
    int32_t wanted = s->loads.all ? 1 : CANDIDATES;
    int64_t most = s->loads.all ? WORK_MAX : WORK_MAX_SOME;
    struct label first = {.before = NOBODY};
    struct wf_rating rating = {0};

    WF_TRY(find_spot(s, &s->problem->source, &first.spot));
    WF_TRY(add_label(s, &first, &rating));
    while (s->queue.count > 0 && s->found_count < wanted) {
        int32_t label = wf_queue_pop(&s->queue).item;
        if (s->labels[label].dropped) continue;
        if (is_target(s, s->labels[label].spot))
            s->found[s->found_count++] = label;
        else if (s->work < most)
            WF_TRY(extend_label(s, label));
        else
            s->cut = true;
    }
    return WEFT_OK;
}

/* ---- the answer ---- */

static void read_path(const struct search *s, int32_t label, struct wf_path *out)
{
    uint32_t at = out->count = s->labels[label].steps;

    for (; s->labels[label].before != NOBODY; label = s->labels[label].before) {
        const struct label *l = &s->labels[label];
        out->edges[--at] = (struct wf_edge){l->kind, l->axes, s->spots[l->spot].state};
        out->prices[at] = l->price;
    }
}

/* The candidate that receives least by exact counts, then the fastest. */
static weft_status choose_candidate(const struct search *s, wf_path_rate *rate_path,
                                    struct wf_path *out)
{
    struct wf_rating best = {UINT64_MAX, UINT64_MAX, UINT32_MAX};
    struct wf_path path;

    path.least = false;
    for (int32_t i = 0; i < s->found_count; i++) {
        struct wf_rating rating;
        read_path(s, s->found[i], &path);
        rating.steps = path.count;
        WF_TRY(rate_path(s->problem, &path, &rating.first, &rating.second));
        if (wf_rating_compare(&rating, &best) >= 0) continue;
        best = rating;
        *out = path;
    }
    return WEFT_OK;
}

weft_status wf_search_bytes(const struct wf_problem *problem, wf_path_rate *rate_path,
                            struct wf_path *out)
{
    struct search s = {.problem = problem, .queue = {.comes_first = comes_first}};
    weft_status status = wf_loads_open(&s.loads, problem);

    out->count = 0;
    out->least = false;
    wf_lower_bound_set(&s.bound, problem);
    if (status == WEFT_OK) status = run_search(&s);
    if (status == WEFT_OK && s.found_count == 1) read_path(&s, s.found[0], out);
    if (status == WEFT_OK && s.found_count > 1) status = choose_candidate(&s, rate_path, out);
    out->least =
        s.loads.all && !s.cut &&
        wf_layouts_runs(&problem->from->layout, &problem->to->layout, false) <= WF_RUNS_MAX;
    wf_loads_close(&s.loads);
    wf_free(s.spots);
    wf_free(s.slots);
    wf_free(s.labels);
    wf_free(s.queue.heap);
    return status;
}
