/* search_bytes.c - the plan whose busiest rank receives the fewest bytes.
 *
 * Different steps may load different ranks, so the bytes of a plan are not the sum over its steps:
 * they are the largest sum over steps of any rank.  A label is a path to a state with the bytes
 * that each rank has received on it.  A label is dropped if another one at the same state is not
 * worse in the bytes of any rank, in time and in steps.  Labels are extended in order of a lower
 * bound on the bytes of complete plans (loads.c), then of one on their time.  With all ranks
 * visited, the first complete plan is the best.  With some of them, several complete plans are
 * collected and counted exactly. */
#include "queue.h"

enum {
    CANDIDATES = 16,
    LABELS_MAX = 1 << 16, /* then the best known plan is used */
    LABELS_MAX_SOME = 1 << 12,
    STEPS_MAX_SOME = 6, /* of a plan that is not shown to be the best */
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
    struct label *labels;
    struct wf_queue queue;
    int32_t spot_count, spot_room, label_count, label_room;
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

/* Make room for one more element of BYTES in *LIST, which has COUNT of *ROOM. */
static weft_status grow_list(void **list, int32_t count, int32_t *room, size_t bytes)
{
    int32_t wider = *room == 0 ? 64 : 2 * *room;
    void *moved;

    if (count < *room) return WEFT_OK;
    moved = wf_realloc(*list, (size_t)wider * bytes);
    if (moved == NULL) return wf_fail_memory((size_t)wider * bytes);
    *list = moved;
    *room = wider;
    return WEFT_OK;
}

/* The spot of STATE, which is measured when it is reached first. */
static weft_status find_spot(struct search *s, const struct wf_state *state, int32_t *out)
{
    uint64_t hash = wf_state_hash(state);
    struct spot *spot;
    void *spots = s->spots;

    for (int32_t i = 0; i < s->spot_count; i++)
        if (s->spots[i].hash == hash && wf_state_same(&s->spots[i].state, state)) {
            *out = i;
            return WEFT_OK;
        }
    WF_TRY(grow_list(&spots, s->spot_count, &s->spot_room, sizeof *s->spots));
    s->spots = spots;
    spot = &s->spots[s->spot_count];
    spot->state = *state;
    spot->hash = hash;
    spot->labels = NOBODY;
    spot->ns_left = wf_lower_bound_ns(&s->bound, state);
    WF_TRY(wf_loads_measure(&s->loads, state, &spot->load));
    *out = s->spot_count++;
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
    for (int32_t i = s->spots[made->spot].labels; i != NOBODY; i = s->labels[i].next) {
        if (s->labels[i].dropped) continue;
        if (dominates(s, &s->labels[i], made)) return true;
        if (dominates(s, made, &s->labels[i])) s->labels[i].dropped = true;
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
    void *labels = s->labels;

    WF_TRY(grow_list(&labels, s->label_count, &s->label_room, sizeof *s->labels));
    s->labels = labels;
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

    if (price->scratch > s->problem->memory_limit || made.steps > WF_PATH_MAX) return WEFT_OK;
    if (!s->loads.all && made.steps > STEPS_MAX_SOME) return WEFT_OK;
    rating = (struct wf_rating){
        from->least, wf_add_capped(made.ns, wf_lower_bound_ns(&s->bound, &edge->to)), made.steps};
    if (s->best.steps > 0 && wf_rating_compare(&rating, &s->best) >= 0) return WEFT_OK;
    WF_TRY(find_spot(s, &edge->to, &made.spot));
    from = &s->labels[s->here];
    wf_loads_edge(&s->loads, &s->spots[from->spot].state, &s->spots[from->spot].load, edge,
                  &s->spots[made.spot].load, made.loaded);
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
    wf_price_edge(s->problem, &from, edge, &price);
    s->status = wf_problem_scratch(s->problem, &from, edge, &price);
    if (s->status == WEFT_OK) s->status = reach_state(s, edge, &price);
}

static weft_status extend_label(struct search *s, int32_t label)
{
    struct wf_state state = s->spots[s->labels[label].spot].state;
    struct wf_edge edge;
    struct wf_price price;

    s->here = label;
    if (wf_may_exchange(s->problem, &state)) {
        wf_edge_exchange(s->problem, &state, &edge);
        if (!(s->problem->without >> edge.kind & 1)) {
            WF_TRY(wf_price_exchange(s->problem, &state, &edge, &price));
            WF_TRY(wf_problem_scratch(s->problem, &state, &edge, &price));
            WF_TRY(reach_state(s, &edge, &price));
        }
    }
    wf_edges(s->problem, &state, take_edge, s);
    return s->status;
}

/* Find one complete plan if all ranks are visited, otherwise several. */
static weft_status run_search(struct search *s)
{
    int32_t wanted = s->loads.all ? 1 : CANDIDATES;
    int32_t most = s->loads.all ? LABELS_MAX : LABELS_MAX_SOME;
    struct label first = {.before = NOBODY};
    struct wf_rating rating = {0};

    WF_TRY(find_spot(s, &s->problem->source, &first.spot));
    WF_TRY(add_label(s, &first, &rating));
    while (s->queue.count > 0 && s->found_count < wanted) {
        int32_t label = wf_queue_pop(&s->queue).item;
        if (s->labels[label].dropped) continue;
        if (is_target(s, s->labels[label].spot))
            s->found[s->found_count++] = label;
        else if (s->label_count < most)
            WF_TRY(extend_label(s, label));
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
    wf_lower_bound_set(&s.bound, problem);
    if (status == WEFT_OK) status = run_search(&s);
    if (status == WEFT_OK && s.found_count == 1) read_path(&s, s.found[0], out);
    if (status == WEFT_OK && s.found_count > 1) status = choose_candidate(&s, rate_path, out);
    wf_loads_close(&s.loads);
    wf_free(s.spots);
    wf_free(s.labels);
    wf_free(s.queue.heap);
    return status;
}
