/* solve.c - combinations of rows become specs, if the caller's options allow them. */
#include "solve.h"

#include <string.h>

/* ---- orders ---- */

/* The order in which the axes split, as an order of all AXES: axes with a lower turn first. */
static void order_of(const weft_placement *placements, int32_t axes, uint8_t *out)
{
    int32_t count = 0;

    for (int32_t turn = 0; turn <= WEFT_MAX_AXES; turn++)
        for (int32_t a = 0; a < axes; a++) {
            const weft_placement *p = &placements[a];
            if ((wf_placement_splits(p) ? p->turn : 0) == turn) out[count++] = (uint8_t)a;
        }
}

static bool is_default_order(const weft_placement *placements, int32_t axes)
{
    for (int32_t a = 1; a < axes; a++)
        if (wf_placement_splits(&placements[a]) &&
            !wf_placements_in_order(placements, a + 1, placements[a].dim))
            return false;
    return true;
}

static void list_orders(struct wf_solver *solver)
{
    const struct wf_op *op = &solver->op;

    solver->order_count = 1;
    for (uint8_t i = 0; i < WEFT_MAX_AXES; i++)
        solver->orders[0][i] = i;
    for (uint32_t i = 0; i < op->input_count; i++) {
        uint8_t order[WEFT_MAX_AXES] = {0};
        bool known = false;
        const weft_placement *placements = op->tensors[i].placements;
        if (placements == NULL || is_default_order(placements, op->axes)) continue;
        order_of(placements, op->axes, order);
        for (uint32_t j = 0; j < solver->order_count; j++)
            known = known || memcmp(order, solver->orders[j], (size_t)op->axes) == 0;
        if (!known && solver->order_count < WF_ORDERS)
            memcpy(solver->orders[solver->order_count++], order, sizeof order);
    }
}

/* ---- the solver ---- */

/* True if an input splits AXIS in another way than S, or has an owner: the axis then has rows of
 * its own. */
static bool has_styles(const struct wf_op *op, int32_t axis)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const weft_placement *p;
        if (!op->tensors[i].present) continue;
        p = &op->tensors[i].placements[axis];
        if ((wf_placement_splits(p) && p->kind != WEFT_PLACE_SHARD) || p->kind == WEFT_PLACE_OWNER)
            return true;
    }
    return false;
}

static void list_rows(struct wf_solver *solver)
{
    const struct wf_op *op = &solver->op;
    int32_t plain = -1; /* an axis without rows of its own */

    solver->plain = true;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->rule->slots[op->tensors[i].slot].shape_only) solver->plain = false;
    for (int32_t a = 0; a < op->axes; a++) {
        bool own = has_styles(op, a);
        if (own) solver->plain = false;
        if (own || plain < 0) {
            wf_rows_list(op, a, own ? &solver->sizes : NULL, &solver->rows[a]);
            if (!own) plain = a;
            continue;
        }
        solver->rows[a].count = solver->rows[plain].count;
        memcpy(solver->rows[a].row, solver->rows[plain].row,
               solver->rows[plain].count * sizeof solver->rows[a].row[0]);
    }
}

/* True if an input may be partial as it is given. */
static bool has_partials(const struct wf_op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        if (!t->present) continue;
        if (op->rule->slots[t->slot].shape_only) return true;
        for (int32_t a = 0; a < op->axes; a++)
            if (t->placements[a].kind == WEFT_PLACE_PARTIAL) return true;
    }
    return false;
}

void wf_solver_complete(struct wf_solver *solver)
{
    uint32_t first = 0; /* partial row of the first axis */

    if (solver->complete) return;
    solver->complete = true;
    for (int32_t a = 0; a < solver->op.axes; a++) {
        struct wf_rows *rows = &solver->rows[a];
        uint32_t count = rows->count;
        if (a == 0 || solver->rows[0].count - first + count > WF_ROWS) {
            if (a == 0) first = count;
            wf_rows_add_partials(&solver->op, rows);
            continue;
        }
        rows->count += solver->rows[0].count - first; /* they are the same on every axis */
        memcpy(rows->row + count, solver->rows[0].row + first,
               (rows->count - count) * sizeof rows->row[0]);
    }
}

weft_status wf_solver_begin(struct wf_solver *solver, const struct wf_op_entry *entry,
                            const weft_op_call *call, const weft_op_options *options,
                            uint32_t element)
{
    weft_status status;

    solver->options = *options;
    solver->sizes = (struct wf_sizes){0};
    WF_TRY(wf_op_bind(entry, call, element, &solver->op));
    list_rows(solver);
    list_orders(solver);
    status = wf_parts_add_rows(&solver->op, solver->rows);
    if (status == WEFT_OK) status = wf_use_add_rows(call, &solver->op, solver->rows);
    if (status == WEFT_OK && solver->sizes.failed) status = wf_fail_memory(sizeof(int64_t));
    if (status != WEFT_OK) {
        wf_solver_end(solver);
        return status;
    }
    solver->complete = false;
    if (has_partials(&solver->op)) wf_solver_complete(solver);
    solver->element = element;
    solver->members = 0;
    solver->is_foreach = solver->has_shared = solver->is_out = false;
    return WEFT_OK;
}

void wf_solver_end(struct wf_solver *solver)
{
    wf_op_end(&solver->op);
    wf_sizes_end(&solver->sizes);
}

weft_status wf_solution_begin(const struct wf_solver *solver, struct wf_solution *out)
{
    uint32_t count = solver->op.input_count + solver->op.output_count;

    *out = (struct wf_solution){.count = count};
    out->specs = wf_calloc(2 * (size_t)count, sizeof *out->specs);
    if (out->specs == NULL) return wf_fail_memory(2 * (size_t)count * sizeof *out->specs);
    out->moves = (weft_plan **)(void *)(out->specs + count);
    return WEFT_OK;
}

static void drop_specs(struct wf_solution *solution)
{
    for (uint32_t i = 0; i < solution->count; i++) {
        weft_spec_release(&solution->specs[i]);
        weft_plan_release(&solution->moves[i]);
    }
}

void wf_solution_end(struct wf_solution *solution)
{
    if (solution->specs == NULL) return;
    drop_specs(solution);
    wf_free(solution->specs);
    solution->specs = NULL;
}

weft_status wf_check_combinations(const struct wf_op *op, const uint32_t *counts)
{
    uint64_t count = 1;

    for (int32_t a = 0; a < op->axes; a++)
        count = wf_mul_capped(count, counts[a]);
    if (count <= WF_COMBINATIONS) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "operator %.100s: %llu combinations of what the ranks along %d axes may do are "
                   "more than the %d that weft compares; merge axes of the mesh",
                   op->name, (unsigned long long)count, op->axes, WF_COMBINATIONS);
}

bool wf_next_combination(int32_t axes, const uint32_t *counts, uint32_t *at)
{
    for (int32_t a = axes - 1; a >= 0; a--) {
        if (++at[a] < counts[a]) return true;
        at[a] = 0;
    }
    return false;
}

/* ---- options ---- */

static uint64_t shard_bytes(const weft_spec *spec)
{
    return weft_spec_shard_bytes(spec, wf_spec_largest_rank(spec));
}

static bool is_list(const struct wf_solver *solver, uint32_t slot)
{
    const struct wf_rule *rule = solver->op.rule;

    if (!solver->is_foreach) return rule->slots[slot].list;
    return !(solver->has_shared && slot + 1 == rule->input_count);
}

uint32_t wf_solver_position(const struct wf_solver *solver, uint32_t i)
{
    const struct wf_op *op = &solver->op;
    bool output = i >= op->input_count;
    uint32_t at = 0, first = output ? op->rule->input_count : 0, slot = op->tensors[i].slot;

    if (solver->members == 0) return output ? i - op->input_count : i;
    for (uint32_t s = first; s < slot; s++)
        at += is_list(solver, s) ? solver->members : 1;
    return at + (is_list(solver, slot) ? solver->element : 0);
}

const weft_spec *wf_solver_fixed(const struct wf_solver *solver, uint32_t tensor)
{
    const weft_op_options *o = &solver->options;
    uint32_t inputs = solver->op.input_count;
    bool output = tensor >= inputs;
    const weft_spec *const *list = output ? o->fixed_outputs : o->fixed_inputs;

    if (list == NULL) return NULL;
    return list[wf_solver_position(solver, tensor)];
}

bool wf_solver_allows(const struct wf_solver *solver, const struct wf_solution *solution)
{
    const weft_op_options *o = &solver->options;
    uint32_t inputs = solver->op.input_count;
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < solution->count; i++) {
        const weft_spec *spec = solution->specs[i], *fixed = wf_solver_fixed(solver, i);
        bool output = i >= inputs;
        if (spec == NULL) continue;
        /* a tensor beside lists is read by all their members, so none may move it */
        if (!output && solver->members > 0 && spec != solver->op.tensors[i].given &&
            !is_list(solver, solver->op.tensors[i].slot))
            return false;
        if (fixed != NULL && fixed != spec) return false;
        if (output && (o->flags & WEFT_OP_FLAG_NO_PARTIALS) != 0 && wf_spec_has_partial(spec))
            return false;
        if (o->allow != NULL && !o->allow(o->user, output, wf_solver_position(solver, i), spec))
            return false;
        if (o->memory_limit != 0) bytes = wf_add_capped(bytes, shard_bytes(spec));
    }
    return o->memory_limit == 0 || bytes <= o->memory_limit;
}

/* ---- trying ---- */

static weft_status make_spec(const struct wf_op *op, uint32_t tensor,
                             const weft_placement *placements, weft_spec **out)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];

    return weft_spec_create(op->mesh, t->dtype, t->dims, t->shape, placements, out);
}

/* True if PLACEMENTS are those that the input has. */
static bool is_given(const struct wf_op *op, uint32_t tensor, const weft_placement *placements)
{
    const weft_placement *given = op->tensors[tensor].placements;

    for (int32_t a = 0; a < op->axes; a++)
        if (!wf_placement_same(&placements[a], &given[a])) return false;
    return true;
}

/* The spec of TENSOR under the strategy; *OUT stays NULL if no placement fits. */
static weft_status place_tensor(const struct wf_strategy *s, uint32_t tensor, weft_spec **out)
{
    weft_placement placements[WEFT_MAX_AXES];
    weft_status status;

    if (!wf_strategy_place(s, tensor, placements)) return WEFT_OK;
    if (tensor < s->op->input_count && is_given(s->op, tensor, placements)) {
        *out = weft_spec_retain(s->op->tensors[tensor].given);
        return WEFT_OK;
    }
    status = make_spec(s->op, tensor, placements, out);
    return status == WEFT_ERR_INVALID ? WEFT_OK : status; /* such as P(max) of complex numbers */
}

static bool inplace_holds(const struct wf_op *op, const struct wf_solution *solution)
{
    for (uint32_t i = 0; i < op->output_count; i++) {
        int in = op->tensors[op->input_count + i].inplace;
        if (in < 0) continue;
        if (solution->specs[in] != op->tensors[in].given ||
            solution->specs[op->input_count + i] != op->tensors[in].given)
            return false;
    }
    return true;
}

weft_status wf_solver_try(struct wf_solver *solver, const struct wf_strategy *strategy,
                          struct wf_solution *solution, bool *legal)
{
    const struct wf_op *op = &solver->op;

    *legal = false;
    drop_specs(solution);
    solution->changed = 0;
    solution->cost_ns = solution->output_ns = 0;
    memcpy(solution->rows, strategy->rows, sizeof solution->rows);
    if (!wf_strategy_is_aligned(strategy)) return WEFT_OK;
    for (uint32_t i = 0; i < solution->count; i++) {
        if (!op->tensors[i].present) continue;
        WF_TRY(place_tensor(strategy, i, &solution->specs[i]));
        if (solver->sizes.failed) return wf_fail_memory(sizeof(int64_t));
        if (solution->specs[i] == NULL) return WEFT_OK;
        solution->changed += i < op->input_count && solution->specs[i] != op->tensors[i].given;
    }
    *legal = inplace_holds(op, solution) && wf_solver_allows(solver, solution);
    return WEFT_OK;
}
