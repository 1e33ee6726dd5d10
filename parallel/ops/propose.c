/* propose.c - the cheapest strategy, with the moves of the inputs.
 *
 * The cost of a strategy is the sum of the costs of the moves of its inputs, and of its outputs if
 * the options price them, which the planner prices on whole specs (targets.c).  Strategies are
 * taken in the order of a lower bound on their cost: the bytes that one rank lacks at the best
 * rate, and one start-up.  The search ends when the bound reaches the cost of the best strategy
 * found. */
#include "targets.h"

#include <string.h>

/* A combination of rows that may still be the best. */
struct item {
    uint64_t bound;
    uint32_t number; /* in the order of lists */
};

struct search {
    struct wf_pricing pricing;
    struct item *heap; /* the least bound first */
    uint32_t heap_count;
    uint64_t best;
    uint32_t best_changed;
    uint64_t best_number;
    uint64_t number; /* of the combination, in the order of lists */
    bool found;
};

/* What a combination costs. */
struct price {
    uint64_t moves, outputs; /* ns, of inputs and of outputs */
    uint32_t changed;        /* inputs */
};

/* ---- the search ---- */

static void set_rows(struct wf_pricing *p, const uint32_t *at)
{
    for (int32_t a = 0; a < p->solver->op.axes; a++)
        p->strategy.rows[a] = &p->solver->rows[a].row[at[a]];
}

/* A lower bound for the combination AT; UINT64_MAX: impossible. */
static weft_status bound_rows(struct wf_pricing *p, const uint32_t *at, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < p->tensor_count && *out != UINT64_MAX; i++) {
        struct wf_target *t;
        if (p->tensors[i].targets == NULL) continue;
        t = wf_target_of(p, i, at);
        if (!t->known) {
            set_rows(p, at);
            WF_TRY(wf_target_set(p, i, t));
        }
        *out = wf_add_capped(*out, t->cost != UINT64_MAX ? t->cost : t->bound);
    }
    return WEFT_OK;
}

/* Price the moves of the combination AT, whose bound is BOUND.  The sum is more than the best one
 * if the combination is not worth its prices. */
static weft_status price_rows(struct search *s, const uint32_t *at, uint64_t bound,
                              struct price *out)
{
    struct wf_pricing *p = &s->pricing;
    uint32_t inputs = p->solver->op.input_count;

    *out = (struct price){0};
    set_rows(p, at);
    for (uint32_t i = 0; i < p->tensor_count && bound <= s->best; i++) {
        struct wf_target *t;
        if (p->tensors[i].targets == NULL) continue;
        t = wf_target_of(p, i, at);
        if (i < inputs) out->changed += !t->same;
        if (t->cost == UINT64_MAX) {
            bound = wf_sub_capped(bound, t->bound);
            WF_TRY(wf_target_price(p, i, t));
            bound = wf_add_capped(bound, t->cost);
        }
        if (i >= inputs) out->outputs = wf_add_capped(out->outputs, t->cost);
    }
    out->moves = bound == UINT64_MAX ? bound : wf_sub_capped(bound, out->outputs);
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
    struct price price;
    uint64_t cost;
    bool legal;

    WF_TRY(price_rows(s, at, bound, &price));
    cost = wf_add_capped(price.moves, price.outputs);
    if (cost == UINT64_MAX || cost > s->best || !is_better(s, cost, price.changed)) return WEFT_OK;
    WF_TRY(wf_solver_try(s->pricing.solver, &s->pricing.strategy, trial, &legal));
    if (!legal) return WEFT_OK;
    s->best = cost;
    s->best_changed = price.changed;
    s->best_number = s->number;
    s->found = true;
    trial->cost_ns = price.moves;
    trial->output_ns = price.outputs;
    swap = *out;
    *out = *trial;
    *trial = swap;
    return WEFT_OK;
}

/* The rows of combination NUMBER, in the order of lists. */
static void rows_of(const struct wf_pricing *p, uint32_t number, uint32_t *at)
{
    for (int32_t a = p->solver->op.axes - 1; a >= 0; a--) {
        at[a] = number % p->rows[a];
        number /= p->rows[a];
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
    int32_t axes = s->pricing.solver->op.axes;
    uint32_t at[WEFT_MAX_AXES] = {0}, number = 0;
    uint64_t count = 1;

    for (int32_t a = 0; a < axes; a++)
        count = wf_mul_capped(count, s->pricing.rows[a]);
    s->heap = wf_alloc(count * sizeof *s->heap);
    if (s->heap == NULL) return wf_fail_memory(count * sizeof *s->heap);
    s->heap_count = 0;
    do {
        uint64_t bound;
        WF_TRY(bound_rows(&s->pricing, at, &bound));
        if (bound != UINT64_MAX)
            s->heap[s->heap_count++] = (struct item){.bound = bound, .number = number};
    } while (++number < count && wf_next_combination(axes, s->pricing.rows, at));
    for (uint32_t i = s->heap_count / 2; i-- > 0;)
        sink(s, i);
    return WEFT_OK;
}

/* Take the moves of OUT, which is the best combination of this order. */
static void take_moves(const struct search *s, struct wf_solution *out)
{
    const struct wf_solver *solver = s->pricing.solver;
    uint32_t at[WEFT_MAX_AXES];

    rows_of(&s->pricing, (uint32_t)s->best_number, at);
    for (uint32_t i = 0; i < solver->op.input_count; i++) {
        const weft_spec *given = solver->op.tensors[i].given;
        if (given == NULL || given == out->specs[i]) continue;
        out->moves[i] = weft_plan_retain(wf_target_of(&s->pricing, i, at)->move);
    }
}

static weft_status run_search(struct search *s, uint64_t order, struct wf_solution *trial,
                              struct wf_solution *out)
{
    uint32_t at[WEFT_MAX_AXES];

    WF_TRY(wf_pricing_begin(&s->pricing));
    WF_TRY(begin_heap(s));
    while (s->heap_count > 0 && s->heap[0].bound <= s->best) {
        struct item *first = &s->heap[0];
        uint64_t bound;
        rows_of(&s->pricing, first->number, at);
        /* prices that other combinations have paid raise it */
        WF_TRY(bound_rows(&s->pricing, at, &bound));
        s->number = order << 32 | first->number;
        if (bound == first->bound) {
            WF_TRY(visit_rows(s, at, bound, trial, out));
            *first = s->heap[--s->heap_count];
        } else {
            first->bound = bound;
        }
        if (s->heap_count > 0) sink(s, 0);
    }
    if (s->found && s->best_number >> 32 == order) take_moves(s, out);
    return WEFT_OK;
}

/* Search in all orders of the axes. */
static weft_status search_orders(struct search *s, struct wf_solution *trial,
                                 struct wf_solution *out)
{
    struct wf_pricing *p = &s->pricing;
    weft_status status = WEFT_OK;

    for (uint32_t i = 0; status == WEFT_OK && i < p->solver->order_count; i++) {
        memcpy(p->strategy.order, p->solver->orders[i], sizeof p->strategy.order);
        status = run_search(s, i, trial, out);
        wf_pricing_end(p);
        wf_free(s->heap);
        s->heap = NULL;
    }
    return status;
}

weft_status wf_solver_propose(struct wf_solver *solver, struct wf_solution *out, bool *found)
{
    struct search s = {.pricing = {.solver = solver}, .best = UINT64_MAX};
    struct wf_solution trial;
    weft_status status;

    wf_solver_complete(solver);
    s.pricing.strategy.op = &solver->op;
    s.pricing.strategy.sizes = &solver->sizes;
    for (int32_t a = 0; a < solver->op.axes; a++)
        s.pricing.rows[a] = solver->rows[a].count;
    WF_TRY(wf_solution_begin(solver, &trial));
    status = search_orders(&s, &trial, out);
    if (status == WEFT_OK && !s.found) { /* what is written in place may be partial */
        s.pricing.may_defer = true;
        status = search_orders(&s, &trial, out);
    }
    wf_solution_end(&trial);
    *found = s.found;
    return status;
}
