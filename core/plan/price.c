/* price.c - the price of one collective or local step, on its busiest rank. */
#include "plan.h"

/* The numbers from which the price of a step follows. */
struct measure {
    const struct wf_problem *problem;
    const struct wf_state *from;
    const struct wf_edge *edge;
    int64_t ranks, lanes;
    uint32_t link;
    int64_t before[WEFT_MAX_DIMS], after[WEFT_MAX_DIMS]; /* local shapes at coordinate 0 */
    struct wf_cast_work cast;
    uint64_t bytes_before, bytes_after; /* in the dtype that travels */
};

static uint64_t shape_bytes(const struct measure *m, const int64_t *shape)
{
    uint64_t bytes = m->cast.element;

    for (int32_t d = 0; d < m->problem->dims; d++)
        bytes *= (uint64_t)shape[d];
    return bytes;
}

static void measure_step(struct measure *m)
{
    const struct wf_problem *problem = m->problem;

    m->ranks = 1;
    m->lanes = 1;
    m->link = WF_WITHIN_HOST;
    for (int32_t i = 0; i < problem->axes; i++) {
        if (!(m->edge->axes >> i & 1)) continue;
        m->ranks *= problem->size[i];
        m->lanes *= problem->lanes[i];
        if (problem->link[i] > m->link) m->link = problem->link[i];
    }
    wf_state_shape(problem, m->from, 0, m->before);
    wf_state_shape(problem, &m->edge->to, 0, m->after);
    wf_cast_price(problem, m->from, m->edge, &m->cast);
    m->bytes_before = shape_bytes(m, m->before);
    m->bytes_after = shape_bytes(m, m->after);
}

/* The dimension that the step's axes split in STATE. */
static int32_t dim_of(const struct wf_state *state, uint32_t axes)
{
    int32_t axis = 0;

    while (!(axes >> axis & 1))
        axis++;
    return state->axis[axis].value;
}

static bool is_strided(const struct wf_problem *problem, const struct wf_state *state)
{
    for (int32_t i = 0; i < problem->axes; i++)
        if (wf_code_splits(state->axis[i]) && !wf_code_is_run(problem, i, state->axis[i]))
            return true;
    return false;
}

/* True if the step's axes split STATE by listed sizes. */
static bool lists_sizes(const struct measure *m, const struct wf_state *state)
{
    for (int32_t i = 0; i < m->problem->axes; i++)
        if ((m->edge->axes >> i & 1) && wf_code_lists(m->problem, i, state->axis[i])) return true;
    return false;
}

/* True if a slice along DIM is one block of memory, in a tensor of SHAPE.  True if all dimensions
 * before DIM have length 1 and the placements are not strided. */
static bool is_block(const struct measure *m, const int64_t *shape, int32_t dim)
{
    for (int32_t d = 0; d < dim; d++)
        if (shape[d] != 1) return false;
    return !is_strided(m->problem, m->from) && !is_strided(m->problem, &m->edge->to);
}

/* True if the shards of a group lie in the tensor in the order of its ranks. */
static bool in_rank_order(const struct measure *m, const struct wf_state *state)
{
    int turn = 0;

    for (int32_t i = 0; i < m->problem->axes; i++) {
        if (!(m->edge->axes >> i & 1)) continue;
        if (state->axis[i].turn < turn) return false;
        turn = state->axis[i].turn;
    }
    return true;
}

static void price_gather(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    int32_t dim = dim_of(m->from, m->edge->axes);
    int64_t least[WEFT_MAX_DIMS], own[WEFT_MAX_DIMS];

    /* The rank that holds the least receives the most: the last coordinate of the group. */
    wf_state_shape(m->problem, m->from, m->edge->axes, least);
    for (int32_t d = 0; d < m->problem->dims; d++)
        own[d] = d == dim ? least[d] : m->before[d];
    work->received = m->bytes_after - shape_bytes(m, own);
    work->copied = m->bytes_before;
    out->sent = wf_mul_capped(m->bytes_before, (uint64_t)(m->ranks - 1));
    if (!is_block(m, m->after, dim) || !in_rank_order(m, m->from)) work->packed = m->bytes_after;
}

static void price_scatter(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    int32_t dim = dim_of(&m->edge->to, m->edge->axes);

    work->received = wf_mul_capped(m->bytes_after, (uint64_t)(m->ranks - 1));
    work->reduced = wf_mul_capped(m->bytes_after, (uint64_t)m->ranks);
    out->sent = work->received < m->bytes_before ? work->received : m->bytes_before;
    if (!is_block(m, m->before, dim) || !in_rank_order(m, &m->edge->to))
        work->packed = m->bytes_before;
    /* Few backends scatter unequal shards; with others all contributions arrive and are reduced
     * locally. */
    if (m->before[dim] % m->ranks != 0 || is_strided(m->problem, &m->edge->to) ||
        lists_sizes(m, &m->edge->to))
        work->packed = wf_add_capped(work->packed, work->reduced);
}

static void price_all_reduce(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    uint64_t elements = m->bytes_before / m->cast.element, ranks = (uint64_t)m->ranks;
    uint64_t slice = (elements + ranks - 1) / ranks * m->cast.element;

    work->received = wf_mul_capped(2 * (ranks - 1), slice);
    work->reduced = wf_mul_capped(ranks, slice);
    out->sent = work->received;
}

/* Coordinates of a group, one of which receives the most: the first, the last, and the ones where
 * the chunks of the old dimension stop being full. */
static int corner_coordinates(const struct measure *m, int64_t length, int64_t *at)
{
    int64_t full = length / m->ranks + (length % m->ranks != 0);
    int64_t short_one = full > 0 ? length / full : 0;
    int count = 0;

    at[count++] = 0;
    at[count++] = m->ranks - 1;
    if (short_one > 0 && short_one < m->ranks - 1) at[count++] = short_one;
    if (short_one + 1 < m->ranks - 1) at[count++] = short_one + 1;
    return count;
}

static void price_all_to_all(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    int32_t old = dim_of(m->from, m->edge->axes), new = dim_of(&m->edge->to, m->edge->axes);
    uint64_t rest = 1;
    int64_t at[4];
    int count = corner_coordinates(m, m->after[old], at);

    for (int32_t d = 0; d < m->problem->dims; d++)
        if (d != old && d != new) rest *= (uint64_t)m->after[d];
    rest *= m->cast.element;
    for (int i = 0; i < count; i++) {
        int64_t had = wf_split_length(m->after[old], m->ranks, 1, at[i]);
        int64_t has = wf_split_length(m->before[new], m->ranks, 1, at[i]);
        uint64_t in = (uint64_t)(m->after[old] - had) * (uint64_t)has * rest;
        uint64_t sent = (uint64_t)had * (uint64_t)(m->before[new] - has) * rest;
        if (in > work->received) work->received = in;
        if (sent > out->sent) out->sent = sent;
    }
    if (lists_sizes(m, m->from) || lists_sizes(m, &m->edge->to)) { /* upper bounds */
        work->received = m->bytes_after;
        out->sent = m->bytes_before;
    }
    work->copied = m->bytes_after > work->received ? m->bytes_after - work->received : 0;
    if (!is_block(m, m->before, new)) work->packed += m->bytes_before;
    if (!is_block(m, m->after, old)) work->packed += m->bytes_after;
}

static void price_broadcast(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    work->received = m->bytes_after;
    out->sent = wf_mul_capped(m->bytes_before, (uint64_t)(m->ranks - 1));
}

static void price_reduce(const struct measure *m, struct wf_work *work, struct wf_price *out)
{
    work->received = wf_mul_capped(m->bytes_after, (uint64_t)(m->ranks - 1));
    work->reduced = wf_mul_capped(m->bytes_after, (uint64_t)m->ranks);
    out->sent = m->bytes_before;
}

void wf_price_edge(const struct wf_problem *problem, const struct wf_state *from,
                   const struct wf_edge *edge, struct wf_price *out)
{
    struct measure m = {.problem = problem, .from = from, .edge = edge};
    struct wf_work work = {.kind = edge->kind};
    bool casts = from->cast != edge->to.cast;

    measure_step(&m);
    work.ranks = m.ranks;
    work.link = m.link;
    if (m.link != WF_WITHIN_HOST && problem->costs->shares_links && wf_cost_may_share(edge->kind))
        work.lanes = m.lanes;
    *out = (struct wf_price){0};
    if (edge->kind == WEFT_STEP_ALL_GATHER)
        price_gather(&m, &work, out);
    else if (edge->kind == WEFT_STEP_REDUCE_SCATTER)
        price_scatter(&m, &work, out);
    else if (edge->kind == WEFT_STEP_ALL_REDUCE)
        price_all_reduce(&m, &work, out);
    else if (edge->kind == WEFT_STEP_ALL_TO_ALL)
        price_all_to_all(&m, &work, out);
    else if (edge->kind == WEFT_STEP_BROADCAST)
        price_broadcast(&m, &work, out);
    else if (edge->kind == WEFT_STEP_REDUCE)
        price_reduce(&m, &work, out);
    else
        work.copied = m.bytes_after;
    if (problem->costs->one_sided) work.packed = 0;
    work.copied = wf_add_capped(work.copied, m.cast.copied);
    out->ns = wf_cost_ns(problem->costs, &work);
    out->received = work.received;
    out->scratch = wf_add_capped(work.packed, m.cast.scratch);
    if (!wf_state_same(from, &problem->source))
        out->scratch =
            wf_add_capped(out->scratch, casts ? wf_state_bytes(problem, from) : m.bytes_before);
    if (!wf_state_same(&edge->to, &problem->target))
        out->scratch =
            wf_add_capped(out->scratch, casts ? wf_state_bytes(problem, &edge->to) : m.bytes_after);
}
