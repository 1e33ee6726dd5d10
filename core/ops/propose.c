/* propose.c - the cheapest strategy, with the moves of the inputs.
 *
 * The cost of a strategy is the sum of the costs of the moves of its inputs, which the planner
 * prices on whole specs.  An input has few different targets, so each is priced at most once.
 * Strategies are taken in the order of a lower bound on their cost: the bytes that one rank lacks
 * at the best rate, and one start-up.  The search ends when the bound reaches the cost of the
 * best strategy found. */
#include "solve.h"

#include <string.h>

enum { STATES = 1 << 18 /* targets of one input */ };

/* One target of an input: what the rows of all axes say about it. */
struct target {
    uint64_t bound, cost; /* ns; UINT64_MAX: impossible; cost: also until it is priced */
    bool known;           /* bound and same are set */
    bool same;            /* the input is there */
    struct wf_path *path; /* of the move, if it is priced */
};

/* The targets of one input, by what the rows of the axes say about it. */
struct input {
    uint32_t offset[WEFT_MAX_AXES][WF_ROWS]; /* the target is the sum of the rows' offsets */
    uint32_t target_count;
    struct target *targets; /* NULL: the input is absent */
};

/* A combination of rows that may still be the best. */
struct item {
    uint64_t bound;
    uint32_t number; /* in the order of lists */
};

struct search {
    struct wf_solver *solver;
    struct wf_strategy strategy;
    uint32_t rows[WEFT_MAX_AXES]; /* their number, per axis */
    struct input *inputs;
    struct item *heap; /* the least bound first */
    uint32_t heap_count;
    uint64_t rate; /* the least, in femtoseconds per byte */
    uint64_t best;
    uint32_t best_changed;
    uint64_t best_number;
    uint64_t number; /* of the combination, in the order of lists */
    bool may_defer;
    bool found;
};

/* ---- targets ---- */

/* True if the entry is not all that a row says about a tensor. */
static bool has_style(struct wf_entry e)
{
    return e.kind == WF_ENTRY_SPLIT || e.kind == WF_ENTRY_DIM || e.kind == WF_ENTRY_OWNER;
}

/* Number the different entries that the rows of AXIS have for TENSOR.  Returns how many there
 * are. */
static uint32_t number_entries(const struct search *s, int32_t axis, uint32_t tensor, uint32_t *out)
{
    const struct wf_rows *rows = &s->solver->rows[axis];
    struct wf_entry entries[WF_ROWS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < s->rows[axis]; i++) {
        const weft_placement *style = wf_row_style(&rows->row[i], tensor);
        struct wf_entry e = entries[i] = wf_row_entry(&s->solver->op, &rows->row[i], tensor);
        uint32_t before = 0;
        while (before < i &&
               (entries[before].kind != e.kind || entries[before].value != e.value ||
                (has_style(e) && !wf_style_same(wf_row_style(&rows->row[before], tensor), style))))
            before++;
        out[i] = before < i ? out[before] : count++;
    }
    return count;
}

static weft_status begin_input(struct search *s, uint32_t tensor)
{
    const struct wf_op *op = &s->solver->op;
    struct input *in = &s->inputs[tensor];

    in->target_count = 1;
    for (int32_t a = 0; a < op->mesh->axes; a++) {
        uint32_t count = number_entries(s, a, tensor, in->offset[a]);
        for (uint32_t i = 0; i < s->rows[a]; i++)
            in->offset[a][i] = in->offset[a][i] * in->target_count;
        in->target_count *= count;
        if (in->target_count > STATES)
            return wf_op_refuse(op, "input %.*s has more than %d possible layouts",
                                WF_WORD(op->rule, wf_op_name(op, &op->tensors[tensor])), STATES);
    }
    in->targets = wf_calloc(in->target_count, sizeof *in->targets);
    if (in->targets == NULL) return wf_fail_memory(in->target_count * sizeof *in->targets);
    for (uint32_t i = 0; i < in->target_count; i++)
        in->targets[i].bound = in->targets[i].cost = UINT64_MAX;
    return WEFT_OK;
}

static inline struct target *target_of(const struct search *s, uint32_t tensor, const uint32_t *at)
{
    struct input *in = &s->inputs[tensor];
    uint32_t index = 0;

    for (int32_t a = 0; a < s->solver->op.mesh->axes; a++)
        index += in->offset[a][at[a]];
    return &in->targets[index];
}

/* ---- bounds ---- */

static uint64_t least_rate(const weft_cost_table *costs)
{
    uint64_t least = UINT64_MAX;

    for (int kind = WEFT_STEP_ALL_GATHER; kind < WEFT_STEP_KINDS; kind++)
        for (int link = 0; link < WF_LINKS; link++)
            if (costs->rates[kind][link].femtoseconds < least)
                least = costs->rates[kind][link].femtoseconds;
    return least;
}

static bool loses_partial(const struct wf_layout *from, const struct wf_layout *to)
{
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL &&
            to->placements[a].kind != WEFT_PLACE_PARTIAL && from->mesh->axis[a].size > 1)
            return true;
    return false;
}

/* Time that a move needs at least, if some rank spends RECEIVE on what it receives; UINT64_MAX: the
 * move is not possible. */
static uint64_t bound_time(const weft_spec *from, const struct wf_layout *to,
                           const weft_cost_table *costs, uint64_t receive)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = costs};
    const weft_spec target = {.elements = from->elements, .layout = *to};
    struct wf_lower_bound bound;
    struct wf_problem problem;
    uint64_t ns, with_bytes;

    if (wf_problem_set(&problem, from, &target, &options) != WEFT_OK) return UINT64_MAX;
    wf_lower_bound_set(&bound, &problem);
    receive -=
        receive < WF_PATH_MAX ? receive : WF_PATH_MAX; /* the time of each step is rounded down */
    with_bytes = wf_lower_bound_ns(&bound, &problem.source);
    ns = wf_add_capped(wf_lower_bound_latency(&bound, &problem.source), receive);
    return ns > with_bytes ? ns : with_bytes;
}

/* Time that a move needs at least: the rank that has the most then receives what it lacks. */
static uint64_t bound_move(const struct search *s, const weft_spec *from,
                           const struct wf_layout *to)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard have, want;
    int64_t common = 1;
    uint64_t missing;

    wf_layout_largest(to, coord);
    wf_shard_at(&from->layout, coord, &have);
    wf_shard_at(to, coord, &want);
    for (int32_t d = 0; d < from->layout.dims; d++) {
        struct wf_index a = wf_shard_index(&have, d), b = wf_shard_index(&want, d);
        common *= wf_index_common(&a, &b);
    }
    missing = (uint64_t)(want.elements - common) * wf_dtype_bytes(from->layout.dtype);
    if (missing == 0 && !loses_partial(&from->layout, to)) return 0;
    return bound_time(from, to, s->solver->options.costs, wf_transfer_ns(missing, s->rate));
}

/* P(max) cannot become P(sum). */
static bool changes_kind(const struct wf_layout *from, const struct wf_layout *to)
{
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL &&
            to->placements[a].kind == WEFT_PLACE_PARTIAL && from->mesh->axis[a].size > 1 &&
            from->placements[a].reduction != to->placements[a].reduction)
            return true;
    return false;
}

/* A part that becomes a contribution puts its communication off, and makes it larger. */
static bool defers_work(const struct wf_layout *from, const struct wf_layout *to)
{
    for (int32_t a = 0; a < from->mesh->axes; a++)
        if ((wf_placement_splits(&from->placements[a]) ||
             from->placements[a].kind == WEFT_PLACE_OWNER) &&
            to->placements[a].kind == WEFT_PLACE_PARTIAL && from->mesh->axis[a].size > 1)
            return true;
    return false;
}

static bool is_written(const struct wf_op *op, uint32_t tensor)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->tensors[op->input_count + i].inplace == (int)tensor) return true;
    return false;
}

/* The layout of TENSOR under the rows of the strategy, settled.  False: it has none. */
static bool place_target(const struct search *s, uint32_t tensor, struct wf_layout *out)
{
    const struct wf_op *op = &s->solver->op;
    weft_placement placements[WEFT_MAX_AXES];

    if (!wf_strategy_place(&s->strategy, tensor, placements)) return false;
    *out = op->tensors[tensor].given->layout;
    memcpy(out->placements, placements, (size_t)op->mesh->axes * sizeof *placements);
    return wf_layout_settle(out) == WEFT_OK;
}

/* The target of TENSOR under the rows of the strategy: whether the input is there, or the bound. */
static void set_target(struct search *s, uint32_t tensor, struct target *t)
{
    const struct wf_op *op = &s->solver->op;
    const weft_spec *given = op->tensors[tensor].given;
    struct wf_layout layout;

    t->known = true;
    if (!place_target(s, tensor, &layout)) return;
    t->same = true;
    for (int32_t a = 0; a < op->mesh->axes; a++)
        t->same = t->same && wf_placement_same(&layout.placements[a], &given->layout.placements[a]);
    if (t->same) {
        t->bound = t->cost = 0;
        return;
    }
    if (is_written(op, tensor) || changes_kind(&given->layout, &layout) ||
        (!s->may_defer && defers_work(&given->layout, &layout)))
        return;
    t->bound = bound_move(s, given, &layout);
}

/* Price the target of TENSOR under the rows of the strategy. */
static weft_status price_target(const struct search *s, uint32_t tensor, struct target *t)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = s->solver->options.costs};
    struct wf_layout layout;
    weft_spec *spec = NULL;
    weft_status status = WEFT_OK;

    t->path = wf_alloc(sizeof *t->path);
    if (t->path == NULL) return wf_fail_memory(sizeof *t->path);
    if (place_target(s, tensor, &layout)) status = wf_spec_intern(&layout, &spec);
    if (status == WEFT_OK && spec != NULL)
        status =
            wf_plan_price(s->solver->op.tensors[tensor].given, spec, &options, t->path, &t->cost);
    weft_spec_release(&spec);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status != WEFT_OK) t->bound = t->cost = UINT64_MAX;
    return WEFT_OK;
}

/* ---- the search ---- */

static void set_rows(struct search *s, const uint32_t *at)
{
    for (int32_t a = 0; a < s->solver->op.mesh->axes; a++)
        s->strategy.rows[a] = &s->solver->rows[a].row[at[a]];
}

/* A lower bound for the combination AT; UINT64_MAX: impossible. */
static uint64_t bound_rows(struct search *s, const uint32_t *at)
{
    const struct wf_op *op = &s->solver->op;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        struct target *t;
        if (!op->tensors[i].present) continue;
        t = target_of(s, i, at);
        if (!t->known) {
            set_rows(s, at);
            set_target(s, i, t);
        }
        sum = wf_add_capped(sum, t->cost != UINT64_MAX ? t->cost : t->bound);
    }
    return sum;
}

/* Price the moves of the combination AT, whose bound is BOUND.  *COST is more than the best one if
 * the combination is not worth its prices. */
static weft_status price_rows(struct search *s, const uint32_t *at, uint64_t bound, uint64_t *cost,
                              uint32_t *changed)
{
    const struct wf_op *op = &s->solver->op;

    *changed = 0;
    set_rows(s, at);
    for (uint32_t i = 0; i < op->input_count && bound <= s->best; i++) {
        struct target *t;
        if (!op->tensors[i].present) continue;
        t = target_of(s, i, at);
        *changed += !t->same;
        if (t->cost != UINT64_MAX) continue;
        bound = wf_sub_capped(bound, t->bound);
        WF_TRY(price_target(s, i, t));
        bound = wf_add_capped(bound, t->cost);
    }
    *cost = bound;
    return WEFT_OK;
}

static bool is_better(const struct search *s, uint64_t cost, uint32_t changed)
{
    if (!s->found) return true;
    if (cost != s->best) return cost < s->best;
    if (changed != s->best_changed) return changed < s->best_changed;
    return s->number < s->best_number;
}

/* Price the combination AT, and keep it in OUT if it is the best so far. */
static weft_status visit_rows(struct search *s, const uint32_t *at, uint64_t bound,
                              struct wf_solution *trial, struct wf_solution *out)
{
    struct wf_solution swap;
    uint64_t cost;
    uint32_t changed;
    bool legal;

    WF_TRY(price_rows(s, at, bound, &cost, &changed));
    if (cost == UINT64_MAX || cost > s->best || !is_better(s, cost, changed)) return WEFT_OK;
    WF_TRY(wf_solver_try(s->solver, &s->strategy, trial, &legal));
    if (!legal) return WEFT_OK;
    s->best = cost;
    s->best_changed = changed;
    s->best_number = s->number;
    s->found = true;
    trial->cost_ns = cost;
    swap = *out;
    *out = *trial;
    *trial = swap;
    return WEFT_OK;
}

/* The rows of combination NUMBER, in the order of lists. */
static void rows_of(const struct search *s, uint32_t number, uint32_t *at)
{
    for (int32_t a = s->solver->op.mesh->axes - 1; a >= 0; a--) {
        at[a] = number % s->rows[a];
        number /= s->rows[a];
    }
}

/* ---- the heap ---- */

static bool is_before(const struct item *a, const struct item *b)
{
    return a->bound != b->bound ? a->bound < b->bound : a->number < b->number;
}

/* Let the item at AT sink to its place. */
static void sink(struct search *s, uint32_t at)
{
    struct item *heap = s->heap, item = heap[at];

    for (uint32_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && is_before(&heap[child + 1], &heap[child])) child++;
        if (!is_before(&heap[child], &item)) break;
        heap[at] = heap[child];
    }
    heap[at] = item;
}

/* The heap of all combinations that are possible. */
static weft_status begin_heap(struct search *s)
{
    int32_t axes = s->solver->op.mesh->axes;
    uint32_t at[WEFT_MAX_AXES] = {0}, number = 0;
    uint64_t count = 1;

    for (int32_t a = 0; a < axes; a++)
        count = wf_mul_capped(count, s->rows[a]);
    if (count > WF_COMBINATIONS) count = WF_COMBINATIONS;
    s->heap = wf_alloc(count * sizeof *s->heap);
    if (s->heap == NULL) return wf_fail_memory(count * sizeof *s->heap);
    s->heap_count = 0;
    do {
        uint64_t bound = bound_rows(s, at);
        if (bound != UINT64_MAX)
            s->heap[s->heap_count++] = (struct item){.bound = bound, .number = number};
    } while (++number < count && wf_next_combination(axes, s->rows, at));
    for (uint32_t i = s->heap_count / 2; i-- > 0;)
        sink(s, i);
    return WEFT_OK;
}

static void end_search(struct search *s)
{
    for (uint32_t i = 0; s->inputs != NULL && i < s->solver->op.input_count; i++) {
        for (uint32_t j = 0; s->inputs[i].targets != NULL && j < s->inputs[i].target_count; j++)
            wf_free(s->inputs[i].targets[j].path);
        wf_free(s->inputs[i].targets);
    }
    wf_free(s->inputs);
    wf_free(s->heap);
    s->inputs = NULL;
    s->heap = NULL;
}

/* Plan the moves of OUT, which is the best combination of this order. */
static weft_status plan_moves(const struct search *s, struct wf_solution *out)
{
    const struct wf_op *op = &s->solver->op;
    weft_plan_options options = {.struct_size = sizeof options, .costs = s->solver->options.costs};
    uint32_t at[WEFT_MAX_AXES];

    rows_of(s, (uint32_t)s->best_number, at);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const weft_spec *given = op->tensors[i].given;
        if (given == NULL || given == out->specs[i]) continue;
        WF_TRY(wf_plan_take(given, out->specs[i], &options, target_of(s, i, at)->path,
                            &out->moves[i]));
    }
    return WEFT_OK;
}

static weft_status run_search(struct search *s, uint64_t order, struct wf_solution *trial,
                              struct wf_solution *out)
{
    const struct wf_op *op = &s->solver->op;
    uint32_t at[WEFT_MAX_AXES];

    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->tensors[i].present) WF_TRY(begin_input(s, i));
    WF_TRY(begin_heap(s));
    while (s->heap_count > 0 && s->heap[0].bound <= s->best) {
        struct item *first = &s->heap[0];
        uint64_t bound;
        rows_of(s, first->number, at);
        bound = bound_rows(s, at); /* prices that other combinations have paid raise it */
        s->number = order << 32 | first->number;
        if (bound == first->bound) {
            WF_TRY(visit_rows(s, at, bound, trial, out));
            *first = s->heap[--s->heap_count];
        } else {
            first->bound = bound;
        }
        if (s->heap_count > 0) sink(s, 0);
    }
    return s->found && s->best_number >> 32 == order ? plan_moves(s, out) : WEFT_OK;
}

/* Search in all orders of the axes. */
static weft_status search_orders(struct search *s, struct wf_solution *trial,
                                 struct wf_solution *out)
{
    struct wf_solver *solver = s->solver;
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; status == WEFT_OK && i < solver->order_count; i++) {
        s->inputs = wf_calloc(solver->op.input_count, sizeof *s->inputs);
        if (s->inputs == NULL) return wf_fail_memory(solver->op.input_count * sizeof *s->inputs);
        memcpy(s->strategy.order, solver->orders[i], sizeof s->strategy.order);
        status = run_search(s, i, trial, out);
        end_search(s);
    }
    return status;
}

weft_status wf_solver_propose(struct wf_solver *solver, struct wf_solution *out, bool *found)
{
    struct search s = {
        .solver = solver, .rate = least_rate(solver->options.costs), .best = UINT64_MAX};
    struct wf_solution trial;
    weft_status status;

    wf_solver_complete(solver);
    s.strategy.op = &solver->op;
    s.strategy.sizes = &solver->sizes;
    for (int32_t a = 0; a < solver->op.mesh->axes; a++)
        s.rows[a] = solver->rows[a].count;
    WF_TRY(wf_solution_begin(solver, &trial));
    status = search_orders(&s, &trial, out);
    if (status == WEFT_OK && !s.found) { /* what is written in place may be partial */
        s.may_defer = true;
        status = search_orders(&s, &trial, out);
    }
    wf_solution_end(&trial);
    *found = s.found;
    return status;
}
