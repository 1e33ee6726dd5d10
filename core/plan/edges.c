/* edges.c - the steps out of a state.
 *
 * Splits nest: an axis can leave a dimension only if it is the innermost split there, and it joins
 * a dimension as the innermost split.  Several innermost axes can leave together, and several
 * partial axes can be reduced together: one collective over their product.
 *
 * Where the target splits a dimension by strides, parts or sizes, an axis joins it in that way.  In
 * a wide problem, which minimizes bytes or scratch, it may also join as a plain split, and an
 * exchange may leave the replicas and sums that it would create to the steps after it. */
#include "plan.h"

#include <string.h>

struct walk {
    const struct wf_problem *problem;
    const struct wf_state *state;
    struct wf_orders orders;
    void (*take)(void *self, const struct wf_edge *edge);
    void *self;
};

static void emit_edge(const struct walk *walk, uint32_t kind, uint32_t axes,
                      const struct wf_state *to)
{
    struct wf_edge edge = {kind, axes, *to};

    if (wf_cast_mark(walk->problem, walk->state, &edge) && !(walk->problem->without >> kind & 1))
        walk->take(walk->self, &edge);
}

/* True if the axes that split DIM before turn TURN do so as in the target.  The target's sizes are
 * valid only there. */
static bool is_as_target(const struct wf_problem *problem, const struct wf_state *state,
                         int32_t dim, int turn)
{
    int before = 1;

    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code wanted = problem->target.axis[i];
        if (!wf_code_splits(wanted) || wanted.value != dim || wanted.turn >= turn) continue;
        if (!wf_code_same(state->axis[i], wanted)) return false;
        before++;
    }
    return before == turn;
}

/* AXIS as the innermost split of DIM in STATE; unless PLAIN, strided if the target is strided
 * there, and with the target's sizes if what is left is the same as there. */
static struct wf_code joined_code(const struct wf_problem *problem, const struct wf_state *state,
                                  int32_t axis, int32_t dim, int turn, bool plain)
{
    struct wf_code wanted = problem->target.axis[axis];
    uint8_t kind = WF_CODE_SHARD;

    if (!plain && wf_code_splits(wanted) && wanted.value == dim &&
        (!wf_code_lists(problem, axis, wanted) ||
         (wanted.turn == turn && is_as_target(problem, state, dim, turn))))
        kind = wanted.kind;
    return (struct wf_code){kind, (uint8_t)dim, (uint8_t)turn, 0};
}

/* True if some of AXES are plain splits in a wide problem only. */
static bool may_be_plain(const struct walk *walk, uint32_t axes, const struct wf_state *to)
{
    for (int32_t i = 0; walk->problem->wide && i < walk->problem->axes; i++)
        if ((axes >> i & 1) && to->axis[i].kind != WF_CODE_SHARD) return true;
    return false;
}

/* The last COUNT axes of dimension DIM join dimension OTHER instead. */
static void move_axes(const struct walk *walk, int32_t dim, int count, int32_t other, bool plain,
                      struct wf_state *to)
{
    const struct wf_orders *orders = &walk->orders;
    int first = orders->count[dim] - count;

    for (int i = first; i < orders->count[dim]; i++)
        to->axis[orders->axis[dim][i]] = joined_code(walk->problem, to, orders->axis[dim][i], other,
                                                     orders->count[other] + 1 + i - first, plain);
}

/* The last COUNT axes of dimension DIM leave it: they become replicas, or splits of another
 * dimension. */
static void leave_dim(const struct walk *walk, int32_t dim, int count)
{
    const struct wf_orders *orders = &walk->orders;
    int first = orders->count[dim] - count;
    struct wf_state to = *walk->state;
    uint32_t axes = 0;

    for (int i = first; i < orders->count[dim]; i++) {
        axes |= UINT32_C(1) << orders->axis[dim][i];
        to.axis[orders->axis[dim][i]] = (struct wf_code){0};
    }
    emit_edge(walk, WEFT_STEP_ALL_GATHER, axes, &to);
    for (int32_t other = 0; other < walk->problem->dims; other++) {
        if (other == dim) continue;
        move_axes(walk, dim, count, other, false, &to);
        emit_edge(walk, WEFT_STEP_ALL_TO_ALL, axes, &to);
        if (!may_be_plain(walk, axes, &to)) continue;
        move_axes(walk, dim, count, other, true, &to);
        emit_edge(walk, WEFT_STEP_ALL_TO_ALL, axes, &to);
    }
}

/* AXES join dimension DIM: in the target's order if it splits that dimension; otherwise from the
 * first to the last. */
static void join_axes(const struct walk *walk, uint32_t axes, int32_t dim, bool plain,
                      struct wf_state *to)
{
    const struct wf_problem *problem = walk->problem;
    int turn = walk->orders.count[dim];

    for (int wanted = 1; wanted <= problem->axes; wanted++)
        for (int32_t i = 0; i < problem->axes; i++) {
            struct wf_code code = problem->target.axis[i];
            if (!(axes >> i & 1) || !wf_code_splits(code) || code.value != dim ||
                code.turn != wanted)
                continue;
            to->axis[i] = joined_code(problem, to, i, dim, turn + 1, plain);
            turn++;
            axes &= ~(UINT32_C(1) << i);
        }
    for (int32_t i = 0; i < problem->axes; i++)
        if (axes >> i & 1) {
            to->axis[i] = joined_code(problem, to, i, dim, turn + 1, plain);
            turn++;
        }
}

/* The partial axes of AXES are reduced to replicas, or to shards of each dimension. */
static void reduce_axes(const struct walk *walk, uint32_t axes)
{
    const struct wf_problem *problem = walk->problem;
    struct wf_state to = *walk->state;

    for (int32_t i = 0; i < problem->axes; i++)
        if (axes >> i & 1) to.axis[i] = (struct wf_code){0};
    emit_edge(walk, WEFT_STEP_ALL_REDUCE, axes, &to);
    for (int32_t dim = 0; dim < problem->dims; dim++) {
        join_axes(walk, axes, dim, false, &to);
        emit_edge(walk, WEFT_STEP_REDUCE_SCATTER, axes, &to);
        if (!may_be_plain(walk, axes, &to)) continue;
        join_axes(walk, axes, dim, true, &to);
        emit_edge(walk, WEFT_STEP_REDUCE_SCATTER, axes, &to);
    }
}

/* The partial axes of AXES are reduced to their owners in the target. */
static void reduce_to_owners(const struct walk *walk, uint32_t axes)
{
    struct wf_state to = *walk->state;

    for (int32_t i = 0; i < walk->problem->axes; i++) {
        if (!(axes >> i & 1)) continue;
        if (walk->problem->target.axis[i].kind != WF_CODE_OWNER) return;
        to.axis[i] = walk->problem->target.axis[i];
    }
    emit_edge(walk, WEFT_STEP_REDUCE, axes, &to);
}

/* The owners of some axes give their shards to all ranks along these axes. */
static void broadcast_subsets(const struct walk *walk)
{
    uint32_t owned = 0;

    for (int32_t i = 0; i < walk->problem->axes; i++)
        if (walk->state->axis[i].kind == WF_CODE_OWNER) owned |= UINT32_C(1) << i;
    for (uint32_t axes = owned; axes != 0; axes = (axes - 1) & owned) {
        struct wf_state to = *walk->state;
        for (int32_t i = 0; i < walk->problem->axes; i++)
            if (axes >> i & 1) to.axis[i] = (struct wf_code){0};
        emit_edge(walk, WEFT_STEP_BROADCAST, axes, &to);
    }
}

static void reduce_subsets(const struct walk *walk)
{
    uint32_t partial = 0;

    for (int32_t i = 0; i < walk->problem->axes; i++)
        if (walk->state->axis[i].kind == WF_CODE_PARTIAL) partial |= UINT32_C(1) << i;
    for (uint32_t axes = partial; axes != 0; axes = (axes - 1) & partial)
        if (wf_state_reduces(walk->problem, walk->state, axes)) {
            reduce_axes(walk, axes);
            reduce_to_owners(walk, axes);
        }
}

/* One replicated axis becomes a split of a dimension, or partial or owned as in the target. */
static void begin_axis(const struct walk *walk, int32_t axis)
{
    const struct wf_problem *problem = walk->problem;
    struct wf_code wanted = problem->target.axis[axis];
    struct wf_state to = *walk->state;

    for (int32_t dim = 0; dim < problem->dims; dim++) {
        int turn = walk->orders.count[dim] + 1;
        to.axis[axis] = joined_code(problem, &to, axis, dim, turn, false);
        emit_edge(walk, WEFT_STEP_SLICE, UINT32_C(1) << axis, &to);
        if (!may_be_plain(walk, UINT32_C(1) << axis, &to)) continue;
        to.axis[axis] = joined_code(problem, &to, axis, dim, turn, true);
        emit_edge(walk, WEFT_STEP_SLICE, UINT32_C(1) << axis, &to);
    }
    if (wanted.kind == WF_CODE_OWNER) {
        to.axis[axis] = wanted;
        emit_edge(walk, WEFT_STEP_SLICE, UINT32_C(1) << axis, &to);
    }
    if (wanted.kind != WF_CODE_PARTIAL ||
        !wf_state_takes_partial(problem, walk->state, wanted.value))
        return;
    to.axis[axis] = wanted;
    emit_edge(walk, WEFT_STEP_PARTIAL, UINT32_C(1) << axis, &to);
}

/* All replicated axes that the target splits, and whose turn has come, or that have an owner there,
 * at once. */
static void begin_all(const struct walk *walk)
{
    const struct wf_problem *problem = walk->problem;
    struct wf_orders wanted;
    struct wf_state to = *walk->state;
    uint32_t axes = 0;

    wf_state_orders(&problem->target, problem->axes, &wanted);
    for (int32_t dim = 0; dim < problem->dims; dim++)
        for (int t = 0; t < wanted.count[dim]; t++) {
            int32_t axis = wanted.axis[dim][t];
            if (wf_code_same(to.axis[axis], problem->target.axis[axis])) continue;
            if (to.axis[axis].kind != WF_CODE_REPLICATE || t < walk->orders.count[dim]) break;
            to.axis[axis] = problem->target.axis[axis];
            axes |= UINT32_C(1) << axis;
        }
    for (int32_t i = 0; i < problem->axes; i++)
        if (to.axis[i].kind == WF_CODE_REPLICATE && problem->target.axis[i].kind == WF_CODE_OWNER) {
            to.axis[i] = problem->target.axis[i];
            axes |= UINT32_C(1) << i;
        }
    if ((axes & (axes - 1)) != 0) emit_edge(walk, WEFT_STEP_SLICE, axes, &to);
}

/* An innermost shard, or an owner's, becomes a contribution to a sum: zero outside the shard. */
static void spread_shard(const struct walk *walk, int32_t axis)
{
    const struct wf_problem *problem = walk->problem;
    struct wf_code wanted = problem->target.axis[axis], code = walk->state->axis[axis];
    struct wf_state to = *walk->state;

    if (wanted.kind != WF_CODE_PARTIAL || wanted.value != WEFT_REDUCE_SUM) return;
    if (wf_code_splits(code) && code.turn != walk->orders.count[code.value]) return;
    if (!wf_state_takes_partial(problem, walk->state, wanted.value)) return;
    to.axis[axis] = wanted;
    emit_edge(walk, WEFT_STEP_PARTIAL, UINT32_C(1) << axis, &to);
}

void wf_edges(const struct wf_problem *problem, const struct wf_state *state,
              void (*take)(void *self, const struct wf_edge *edge), void *self)
{
    struct walk walk = {.problem = problem, .state = state, .take = take, .self = self};

    wf_state_orders(state, problem->axes, &walk.orders);
    begin_all(&walk);
    for (int32_t dim = 0; dim < problem->dims; dim++)
        for (int count = 1; count <= walk.orders.count[dim]; count++)
            leave_dim(&walk, dim, count);
    reduce_subsets(&walk);
    broadcast_subsets(&walk);
    for (int32_t axis = 0; axis < problem->axes; axis++) {
        if (state->axis[axis].kind == WF_CODE_REPLICATE) begin_axis(&walk, axis);
        if (wf_code_splits(state->axis[axis]) || state->axis[axis].kind == WF_CODE_OWNER)
            spread_shard(&walk, axis);
    }
}

/* The axes from the first difference of two orders of one dimension on. */
static uint32_t reordered_axes(const struct wf_orders *a, const struct wf_orders *b,
                               const struct wf_state *s, const struct wf_state *t, int32_t dim)
{
    uint32_t axes = 0;
    int same = 0;

    while (same < a->count[dim] && same < b->count[dim] &&
           a->axis[dim][same] == b->axis[dim][same] &&
           wf_code_same(s->axis[a->axis[dim][same]], t->axis[a->axis[dim][same]]))
        same++;
    for (int i = same; i < a->count[dim]; i++)
        axes |= UINT32_C(1) << a->axis[dim][i];
    for (int i = same; i < b->count[dim]; i++)
        axes |= UINT32_C(1) << b->axis[dim][i];
    return axes;
}

/* True if the step is a permutation of whole shards: plain splits in another order, all of one
 * size. */
static bool is_permute(const struct wf_problem *problem, const struct wf_state *state,
                       const struct wf_edge *edge)
{
    int64_t parts[WEFT_MAX_DIMS];

    for (int32_t d = 0; d < problem->dims; d++)
        parts[d] = 1;
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code from = state->axis[i], to = edge->to.axis[i];
        if (wf_code_splits(from)) parts[from.value] *= problem->size[i];
        if (wf_code_lists(problem, i, from)) return false;
        if (!(edge->axes >> i & 1)) continue;
        if (from.kind != WF_CODE_SHARD || to.kind != WF_CODE_SHARD || from.value != to.value)
            return false;
    }
    for (int32_t d = 0; d < problem->dims; d++)
        if (problem->shape[d] % parts[d] != 0) return false;
    return true;
}

/* Set the kind and the axes of EDGE, which leads from STATE to EDGE->to. */
static void set_exchange(const struct wf_problem *problem, const struct wf_state *state,
                         struct wf_edge *edge)
{
    struct wf_orders from, to;

    edge->axes = 0;
    wf_state_orders(state, problem->axes, &from);
    wf_state_orders(&edge->to, problem->axes, &to);
    for (int32_t d = 0; d < problem->dims; d++)
        edge->axes |= reordered_axes(&from, &to, state, &edge->to, d);
    for (int32_t i = 0; i < problem->axes; i++)
        if (!wf_code_same(state->axis[i], edge->to.axis[i])) edge->axes |= UINT32_C(1) << i;
    edge->kind = is_permute(problem, state, edge) ? WEFT_STEP_PERMUTE : WEFT_STEP_EXCHANGE;
}

void wf_edge_exchange(const struct wf_problem *problem, const struct wf_state *state,
                      struct wf_edge *out)
{
    out->to = problem->target;
    set_exchange(problem, state, out);
}

/* An exchange may start at the source, or at a state that differs from it only by reduced
 * partials. */
bool wf_may_exchange(const struct wf_problem *problem, const struct wf_state *state)
{
    uint32_t reduced = 0;

    for (int32_t i = 0; i < problem->axes; i++)
        if (problem->target.axis[i].kind != WF_CODE_PARTIAL) reduced |= UINT32_C(1) << i;
    if (!wf_state_reduces(problem, state, reduced)) return false;
    for (int32_t i = 0; i < problem->axes; i++)
        if (!wf_code_same(state->axis[i], problem->source.axis[i]) &&
            problem->source.axis[i].kind != WF_CODE_PARTIAL)
            return false;
    return true;
}

uint32_t wf_axes_to_spread(const struct wf_problem *problem, bool sums)
{
    uint32_t axes = 0;

    for (int32_t i = 0; problem->wide && i < problem->axes; i++) {
        struct wf_code from = problem->source.axis[i], to = problem->target.axis[i];
        bool is_sum = to.kind == WF_CODE_PARTIAL && to.value == WEFT_REDUCE_SUM;
        if (from.kind == WF_CODE_PARTIAL || from.kind == to.kind) continue;
        if (sums ? is_sum : to.kind == WF_CODE_REPLICATE) axes |= UINT32_C(1) << i;
    }
    return axes;
}

/* AXES become the innermost splits of DIM in STATE. */
static void split_by(const struct wf_problem *problem, uint32_t axes, int32_t dim,
                     struct wf_state *state)
{
    struct wf_orders orders;

    wf_state_orders(state, problem->axes, &orders);
    for (int32_t i = 0; i < problem->axes; i++)
        if (axes >> i & 1)
            state->axis[i] =
                (struct wf_code){WF_CODE_SHARD, (uint8_t)dim, (uint8_t)++orders.count[dim], 0};
}

void wf_exchanges(const struct wf_problem *problem, const struct wf_state *state,
                  void (*take)(void *self, const struct wf_edge *edge), void *self)
{
    uint32_t copies, sums;
    struct wf_edge edge;

    if (!wf_may_exchange(problem, state)) return;
    wf_edge_exchange(problem, state, &edge);
    if (!(problem->without >> edge.kind & 1)) take(self, &edge);
    copies = wf_axes_to_spread(problem, false);
    sums = wf_axes_to_spread(problem, true);
    for (int32_t d = -1; d < (copies != 0 ? problem->dims : 0); d++)
        for (int32_t e = -1; e < (sums != 0 ? problem->dims : 0); e++) {
            if (d < 0 && e < 0) continue; /* the target */
            edge.to = problem->target;
            edge.to.cast = state->cast;
            if (d >= 0) split_by(problem, copies, d, &edge.to);
            if (e >= 0) split_by(problem, sums, e, &edge.to);
            set_exchange(problem, state, &edge);
            if (edge.axes != 0 && !(problem->without >> edge.kind & 1) &&
                wf_cast_mark(problem, state, &edge))
                take(self, &edge);
        }
}
