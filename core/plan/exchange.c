/* exchange.c - the price of an exchange, which moves each byte straight to its target rank.
 *
 * Where the source is replicated, or partial and stays partial, a rank reads from the holder at its
 * own coordinate.  It reads from all holders of a partial that is reduced.  If a partial is
 * created, only coordinate 0 receives the value; if it is an average, all coordinates do. */
#include "plan/figures/figures.h"
#include "plan.h"

struct sides {
    const struct wf_problem *problem;
    const struct wf_state *from, *to;
    struct wf_layout source, target;
    uint64_t holders; /* contributions per element */
    uint64_t element; /* bytes of one that travels */
};

static bool made_partial(const struct sides *s, int32_t axis)
{
    struct wf_code to = s->to->axis[axis];

    return to.kind == WF_CODE_PARTIAL && s->from->axis[axis].kind != WF_CODE_PARTIAL &&
           to.value != WEFT_REDUCE_AVG;
}

/* Bytes that the rank at the corner LAST receives from others, and bytes that it already holds.
 * The other axes are at BASE. */
static void measure_corner(const struct sides *s, const int32_t *base, uint32_t last,
                           uint64_t *received, uint64_t *kept)
{
    const struct wf_problem *problem = s->problem;
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard has, wants;

    *received = *kept = 0;
    for (int32_t i = 0; i < problem->axes; i++) {
        int32_t axis = problem->mesh_axis[i];
        coord[axis] = last >> i & 1 ? (int32_t)problem->size[i] - 1 : base[axis];
        if (coord[axis] != 0 && made_partial(s, i)) return;
    }
    wf_shard_at(&s->source, coord, &has);
    wf_shard_at(&s->target, coord, &wants);
    *kept = wf_shards_common_elements(&has, &wants);
    *received = wf_bytes_from((uint64_t)wants.elements, s->holders, *kept, s->element);
    *kept *= s->element;
}

static weft_status open_sides(struct sides *s)
{
    WF_TRY(wf_problem_layout(s->problem, s->from, &s->source));
    WF_TRY(wf_problem_layout(s->problem, s->to, &s->target));
    s->holders = 1;
    for (int32_t i = 0; i < s->problem->axes; i++)
        if (s->from->axis[i].kind == WF_CODE_PARTIAL && s->to->axis[i].kind != WF_CODE_PARTIAL)
            s->holders *= (uint64_t)s->problem->size[i];
    return WEFT_OK;
}

/* Bytes of all messages that a rank sends: its shard, once for each receiver. */
static uint64_t bytes_given(const struct wf_problem *problem, const struct wf_state *from,
                            const struct wf_state *to, uint64_t element)
{
    uint64_t bytes = wf_state_elements(problem, from) * element;

    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code has = from->axis[i], wants = to->axis[i];
        bool copied = wants.kind == WF_CODE_REPLICATE ||
                      (wants.kind == WF_CODE_PARTIAL && wants.value == WEFT_REDUCE_AVG &&
                       has.kind != WF_CODE_PARTIAL);
        if (copied && has.kind != WF_CODE_REPLICATE)
            bytes = wf_mul_capped(bytes, (uint64_t)problem->size[i]);
    }
    return bytes;
}

/* The busiest rank is at a corner: first or last on each axis.  With sizes and owners it may also
 * be one that holds the most before or after. */
static void measure_corners(const struct sides *s, uint32_t axes, struct wf_work *work)
{
    int32_t bases[3][WEFT_MAX_AXES] = {{0}};
    bool lists = s->source.owned || s->target.owned;

    for (int32_t i = 0; i < s->problem->axes; i++)
        lists = lists || wf_code_lists(s->problem, i, s->from->axis[i]) ||
                wf_code_lists(s->problem, i, s->to->axis[i]);
    wf_layout_largest(&s->source, bases[1]);
    wf_layout_largest(&s->target, bases[2]);
    for (int b = 0; b < (lists ? 3 : 1); b++)
        for (uint32_t last = axes;; last = (last - 1) & axes) {
            uint64_t received, kept;
            measure_corner(s, bases[b], last, &received, &kept);
            if (received > work->received) work->received = received;
            if (kept > work->copied) work->copied = kept;
            if (last == 0) break;
        }
}

weft_status wf_exchange_work(const struct wf_problem *problem, const struct wf_state *from,
                             const struct wf_edge *edge, struct wf_work *out)
{
    struct sides s = {.problem = problem, .from = from, .to = &edge->to};
    struct wf_work work = {.kind = edge->kind, .ranks = 1, .link = WF_WITHIN_HOST};
    struct wf_cast_work cast;
    uint64_t target, shares, holders, mean;

    wf_cast_price(problem, from, edge, &cast);
    s.element = cast.element;
    target = wf_state_elements(problem, &edge->to) * cast.element;
    WF_TRY(open_sides(&s));
    for (int32_t i = 0; i < problem->axes; i++) {
        if (!(edge->axes >> i & 1)) continue;
        work.ranks *= problem->size[i];
        if (problem->link[i] > work.link) work.link = problem->link[i];
    }
    measure_corners(&s, edge->axes, &work);
    /* The corners may miss the rank that receives most, which receives at least the mean. */
    shares = wf_state_same(&edge->to, &problem->target)
                 ? wf_lower_bound_shares(problem, from, &holders)
                 : 0;
    mean = wf_mul_capped(shares, (uint64_t)problem->from->elements * cast.element /
                                     (uint64_t)problem->from->layout.mesh->size);
    if (mean > work.received) work.received = mean;
    if (s.holders > 1) work.reduced = wf_mul_capped(target, s.holders);
    work.copied = wf_add_capped(work.copied, cast.copied);
    work.packed = wf_add_capped(bytes_given(problem, from, &edge->to, cast.element),
                                wf_mul_capped(target, s.holders));
    *out = work;
    return WEFT_OK;
}

/* Is each message one run of the shard of STATE, where AXES of the other side split it as OTHER
 * says?  Only a cut along the first dimension that is longer than 1 leaves runs. */
static bool lies_in_runs(const struct wf_problem *problem, const struct wf_state *state,
                         const struct wf_state *other, uint32_t axes)
{
    int64_t shape[WEFT_MAX_DIMS];
    int32_t first = 0;

    wf_state_shape(problem, state, 0, shape);
    while (first < problem->dims && shape[first] == 1)
        first++;
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code code = other->axis[i];
        if (wf_code_splits(state->axis[i]) && !wf_code_is_run(problem, i, state->axis[i]))
            return false;
        if (!wf_code_splits(code)) continue;
        if (!wf_code_is_run(problem, i, code) || ((axes >> i & 1) && code.value > first))
            return false;
    }
    return true;
}

weft_status wf_price_exchange(const struct wf_problem *problem, const struct wf_state *from,
                              const struct wf_edge *edge, struct wf_price *out)
{
    const struct wf_state *to = &edge->to;
    struct wf_cast_work cast;
    struct wf_work work;

    WF_TRY(wf_exchange_work(problem, from, edge, &work));
    wf_cast_price(problem, from, edge, &cast);
    if (lies_in_runs(problem, from, to, edge->axes))
        work.packed = wf_sub_capped(work.packed, bytes_given(problem, from, to, cast.element));
    if (work.reduced == 0 && lies_in_runs(problem, to, from, edge->axes))
        work.packed = wf_sub_capped(work.packed, wf_state_elements(problem, to) * cast.element);
    if (problem->costs->one_sided) work.packed = 0;
    out->ns = wf_cost_ns(problem->costs, &work);
    out->received = out->sent = work.received;
    out->scratch = wf_add_capped(work.packed, cast.scratch);
    if (!wf_state_same(from, &problem->source))
        out->scratch = wf_add_capped(out->scratch, wf_state_bytes(problem, from));
    if (!wf_state_same(to, &problem->target))
        out->scratch = wf_add_capped(out->scratch, wf_state_bytes(problem, to));
    return WEFT_OK;
}
