/* propose.c - the cheapest strategy, with the moves of the inputs.
 *
 * The cost of a strategy is the sum of the costs of the moves of its inputs, which the planner
 * prices on whole specs.  An input has few different targets, so each is priced at most once.
 * Strategies are taken in the order of a lower bound on their cost: the bytes that the first rank
 * lacks at the best rate, and one start-up.  The search ends when the bound reaches the cost of the
 * best strategy found. */
#include "solve.h"

#include <string.h>

enum { STATES = 4096 /* targets of one input */ };

/* One target of an input: what the rows of all axes say about it. */
struct target {
    uint64_t bound, cost; /* ns; cost: UINT64_MAX until it is priced */
    weft_spec *spec;      /* NULL: not possible */
    bool known;           /* spec and bound are set */
};

/* The targets of one input, by the number of its entry on each axis. */
struct input {
    uint8_t entry[WEFT_MAX_AXES][WF_ROWS]; /* of each row of the axis */
    uint32_t counts[WEFT_MAX_AXES];        /* different entries */
    uint32_t target_count;
    struct target *targets; /* NULL: the input is absent */
};

struct search {
    struct wf_solver *solver;
    struct wf_strategy strategy;
    uint32_t rows[WEFT_MAX_AXES]; /* their number, per axis */
    struct input *inputs;
    uint32_t *list; /* combinations that may still be the best, by their numbers */
    uint32_t list_count;
    uint64_t rate; /* the least, in femtoseconds per byte */
    uint64_t best;
    uint32_t best_changed;
    uint64_t best_number;
    uint64_t number; /* of the combination, in the order of lists */
    bool may_defer;
    bool found;
};

/* ---- targets ---- */

static bool same_entry(const struct wf_op *op, const struct wf_row *a, const struct wf_row *b,
                       uint32_t tensor)
{
    struct wf_entry x = wf_row_entry(op, a, tensor), y = wf_row_entry(op, b, tensor);

    return x.kind == y.kind && x.value == y.value &&
           (x.kind != WF_ENTRY_SPLIT || wf_style_same(&a->style, &b->style));
}

static weft_status begin_input(struct search *s, uint32_t tensor)
{
    const struct wf_op *op = &s->solver->op;
    struct input *in = &s->inputs[tensor];

    in->target_count = 1;
    for (int32_t a = 0; a < op->mesh->axes; a++) {
        const struct wf_rows *rows = &s->solver->rows[a];
        in->counts[a] = 0;
        for (uint32_t i = 0; i < s->rows[a]; i++) {
            uint32_t before = 0;
            while (before < i && !same_entry(op, &rows->row[before], &rows->row[i], tensor))
                before++;
            in->entry[a][i] = before < i ? in->entry[a][before] : (uint8_t)in->counts[a]++;
        }
        in->target_count *= in->counts[a];
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

static struct target *target_of(const struct search *s, uint32_t tensor, const uint32_t *at)
{
    struct input *in = &s->inputs[tensor];
    uint32_t index = 0;

    for (int32_t a = 0; a < s->solver->op.mesh->axes; a++)
        index = index * in->counts[a] + in->entry[a][at[a]];
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

/* Latency that a move needs at least; UINT64_MAX: it is not possible. */
static uint64_t bound_latency(const weft_spec *from, const weft_spec *to,
                              const weft_cost_table *costs)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = costs};
    struct wf_lower_bound bound;
    struct wf_problem problem;

    if (wf_problem_set(&problem, from, to, &options) != WEFT_OK) return UINT64_MAX;
    wf_lower_bound_set(&bound, &problem);
    return wf_lower_bound_ns(&bound, &problem.source);
}

/* Time that a move needs at least: the first rank receives what it lacks. */
static uint64_t bound_move(const struct search *s, const weft_spec *from, const weft_spec *to)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard have, want;
    const uint64_t unit = 1000000; /* femtoseconds in a nanosecond */
    int64_t common = 1;
    uint64_t missing, latency;

    wf_shard_at(&from->layout, coord, &have);
    wf_shard_at(&to->layout, coord, &want);
    for (int32_t d = 0; d < from->layout.dims; d++) {
        struct wf_index a = wf_shard_index(&have, d), b = wf_shard_index(&want, d);
        common *= wf_index_common(&a, &b);
    }
    missing = (uint64_t)(want.elements - common) * wf_dtype_bytes(from->layout.dtype);
    if (missing == 0 && !loses_partial(&from->layout, &to->layout)) return 0;
    latency = bound_latency(from, to, s->solver->options.costs);
    return wf_add_capped(latency, wf_add_capped(wf_mul_capped(missing / unit, s->rate),
                                                missing % unit * s->rate / unit));
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
        if (wf_placement_splits(&from->placements[a]) &&
            to->placements[a].kind == WEFT_PLACE_PARTIAL && from->mesh->axis[a].size > 1)
            return true;
    return false;
}

static bool is_fixed_elsewhere(const struct wf_op *op, uint32_t tensor, const weft_spec *spec)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->tensors[op->input_count + i].inplace == (int)tensor &&
            spec != op->tensors[tensor].given)
            return true;
    return false;
}

/* The target of TENSOR under the rows of the strategy: its spec and the bound. */
static weft_status set_target(struct search *s, uint32_t tensor, struct target *t)
{
    const struct wf_op *op = &s->solver->op;
    const weft_spec *given = op->tensors[tensor].given;
    struct wf_layout layout = given->layout;
    weft_placement placements[WEFT_MAX_AXES];
    weft_status status;

    t->known = true;
    if (!wf_strategy_place(&s->strategy, tensor, placements)) return WEFT_OK;
    memcpy(layout.placements, placements, (size_t)op->mesh->axes * sizeof *placements);
    status = wf_spec_intern(&layout, &t->spec);
    if (status != WEFT_OK) return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
    if (is_fixed_elsewhere(op, tensor, t->spec) || changes_kind(&given->layout, &t->spec->layout) ||
        (!s->may_defer && defers_work(&given->layout, &t->spec->layout)))
        return WEFT_OK;
    t->bound = t->spec == given ? 0 : bound_move(s, given, t->spec);
    if (t->spec == given) t->cost = 0;
    return WEFT_OK;
}

static weft_status price_target(const struct search *s, uint32_t tensor, struct target *t)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = s->solver->options.costs};
    weft_status status;

    if (t->cost != UINT64_MAX || t->bound == UINT64_MAX) return WEFT_OK;
    status = wf_plan_price(s->solver->op.tensors[tensor].given, t->spec, &options, &t->cost);
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
static weft_status bound_rows(struct search *s, const uint32_t *at, uint64_t *out)
{
    const struct wf_op *op = &s->solver->op;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        struct target *t;
        if (!op->tensors[i].present) continue;
        t = target_of(s, i, at);
        if (!t->known) {
            set_rows(s, at);
            WF_TRY(set_target(s, i, t));
        }
        sum = wf_add_capped(sum, t->cost != UINT64_MAX ? t->cost : t->bound);
    }
    *out = sum;
    return WEFT_OK;
}

/* Price the moves of the combination AT, whose bound is BOUND.  *COST is more than the best one if
 * the combination is not worth its prices. */
static weft_status price_rows(struct search *s, const uint32_t *at, uint64_t bound, uint64_t *cost,
                              uint32_t *changed)
{
    const struct wf_op *op = &s->solver->op;

    *changed = 0;
    for (uint32_t i = 0; i < op->input_count && bound <= s->best; i++) {
        struct target *t;
        if (!op->tensors[i].present) continue;
        t = target_of(s, i, at);
        *changed += t->spec != op->tensors[i].given;
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
    if (cost == UINT64_MAX || !is_better(s, cost, changed)) return WEFT_OK;
    set_rows(s, at);
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

/* Visit the combinations of LIST whose bound is FLOOR.  *NEXT is the least larger bound. */
static weft_status visit_bounds(struct search *s, uint64_t order, uint64_t floor,
                                struct wf_solution *trial, struct wf_solution *out, uint64_t *next)
{
    uint32_t at[WEFT_MAX_AXES];

    *next = UINT64_MAX;
    for (uint32_t i = 0; i < s->list_count; i++) {
        uint64_t bound;
        rows_of(s, s->list[i], at);
        WF_TRY(bound_rows(s, at, &bound));
        s->number = order << 32 | s->list[i];
        if (bound == floor && bound <= s->best)
            WF_TRY(visit_rows(s, at, bound, trial, out));
        else if (bound > floor && bound < *next)
            *next = bound;
    }
    return WEFT_OK;
}

/* Keep the combinations that are not worse than the best one found. */
static weft_status shorten_list(struct search *s)
{
    uint32_t at[WEFT_MAX_AXES], kept = 0;

    for (uint32_t i = 0; i < s->list_count; i++) {
        uint64_t bound;
        rows_of(s, s->list[i], at);
        WF_TRY(bound_rows(s, at, &bound));
        if (bound <= s->best && bound != UINT64_MAX) s->list[kept++] = s->list[i];
    }
    s->list_count = kept;
    return WEFT_OK;
}

/* List all combinations. */
static weft_status begin_list(struct search *s)
{
    uint64_t count = 1;

    for (int32_t a = 0; a < s->solver->op.mesh->axes; a++)
        count = wf_mul_capped(count, s->rows[a]);
    if (count > WF_COMBINATIONS) count = WF_COMBINATIONS;
    s->list = wf_alloc(count * sizeof *s->list);
    if (s->list == NULL) return wf_fail_memory(count * sizeof *s->list);
    s->list_count = (uint32_t)count;
    for (uint32_t i = 0; i < s->list_count; i++)
        s->list[i] = i;
    return WEFT_OK;
}

static void end_search(struct search *s)
{
    const struct wf_op *op = &s->solver->op;

    for (uint32_t i = 0; s->inputs != NULL && i < op->input_count; i++) {
        for (uint32_t j = 0; s->inputs[i].targets != NULL && j < s->inputs[i].target_count; j++)
            weft_spec_release(&s->inputs[i].targets[j].spec);
        wf_free(s->inputs[i].targets);
    }
    wf_free(s->inputs);
    wf_free(s->list);
    s->inputs = NULL;
    s->list = NULL;
}

static weft_status run_search(struct search *s, uint64_t order, struct wf_solution *trial,
                              struct wf_solution *out)
{
    const struct wf_op *op = &s->solver->op;
    uint64_t bound = 0, next;

    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->tensors[i].present) WF_TRY(begin_input(s, i));
    WF_TRY(begin_list(s));
    /* bounds turn into costs on the way, so a floor may be met again from above */
    while (bound != UINT64_MAX && bound <= s->best) {
        bool found = s->found;
        WF_TRY(visit_bounds(s, order, bound, trial, out, &next));
        if (s->found && !found) WF_TRY(shorten_list(s));
        bound = next;
    }
    return WEFT_OK;
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

/* Plan the moves of the strategy found. */
static weft_status plan_moves(const struct wf_solver *solver, struct wf_solution *out)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = solver->options.costs};

    for (uint32_t i = 0; i < solver->op.input_count; i++) {
        const weft_spec *given = solver->op.tensors[i].given;
        if (given != NULL && given != out->specs[i])
            WF_TRY(weft_plan_create(given, out->specs[i], &options, &out->moves[i]));
    }
    return WEFT_OK;
}

weft_status wf_solver_propose(struct wf_solver *solver, struct wf_solution *out, bool *found)
{
    struct search s = {
        .solver = solver, .rate = least_rate(solver->options.costs), .best = UINT64_MAX};
    struct wf_solution trial;
    weft_status status;

    wf_solver_complete(solver);
    s.strategy.op = &solver->op;
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
    return status == WEFT_OK && s.found ? plan_moves(solver, out) : status;
}
