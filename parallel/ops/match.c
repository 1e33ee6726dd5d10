/* match.c - strategies that fit the inputs without communication. */
#include "solve.h"

#include <string.h>

/* Combinations of rows that fit, and how many placements each changes. */
struct fits {
    uint32_t count[WEFT_MAX_AXES];
    uint8_t row[WEFT_MAX_AXES][WF_ROWS];
    uint8_t changes[WEFT_MAX_AXES][WF_ROWS];
};

bool wf_row_fits(const struct wf_op *op, const struct wf_row *row, int32_t axis, uint32_t tensor,
                 bool free_moves)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];
    struct wf_entry e = wf_row_entry(op, row, tensor);
    const weft_placement *p, *style;
    int d;

    if (!t->present || e.kind == WF_ENTRY_ANY) return true;
    p = &t->placements[axis];
    if (p->kind == WEFT_PLACE_REPLICATE) return e.kind == WF_ENTRY_WHOLE || free_moves;
    if (e.kind == WF_ENTRY_PARTIAL) return p->kind == WEFT_PLACE_PARTIAL && p->reduction == e.value;
    style = wf_row_style(row, tensor);
    if (e.kind == WF_ENTRY_OWNER) return p->kind == WEFT_PLACE_OWNER && p->owner == style->owner;
    if (!wf_placement_splits(p)) return false;
    if (e.kind == WF_ENTRY_DIM) return p->dim == e.value && wf_style_same(style, p);
    if (e.kind != WF_ENTRY_SPLIT) return false;
    d = wf_op_dim_with(t, e.value);
    return p->dim == d && (t->dim[d].count > 1 || wf_style_same(style, p) ||
                           (wf_splits_alone(op, t->placements, axis) &&
                            wf_style_places_same(op, axis, t->shape[d], style, p)));
}

/* Placements of inputs on AXIS that ROW changes; UINT32_MAX: it does not fit. */
static uint32_t count_changes(const struct wf_op *op, const struct wf_row *row, int32_t axis,
                              bool free_moves)
{
    uint32_t changes = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        if (!wf_row_fits(op, row, axis, i, free_moves)) return UINT32_MAX;
        if (free_moves) changes += !wf_row_fits(op, row, axis, i, false);
    }
    return changes;
}

/* Inputs of which only the shape is used, and which do not look as the row would have them; and
 * inputs that list the parts of the row in another way. */
static uint32_t count_strays(const struct wf_op *op, const struct wf_row *row, int32_t axis)
{
    uint32_t strays = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        const weft_placement *p;
        struct wf_entry e;
        if (!t->present) continue;
        p = &t->placements[axis];
        if (!op->rule->slots[t->slot].shape_only) {
            strays += wf_placement_splits(p) && p->kind != WEFT_PLACE_SHARD &&
                      row->kind == WF_ROW_SPLIT && t->dim[p->dim].count == 1 &&
                      t->dim[p->dim].factor[0] == row->factor && !wf_style_same(&row->style, p);
            continue;
        }
        e = wf_row_natural(op, row, i);
        if (e.kind == WF_ENTRY_SPLIT || e.kind == WF_ENTRY_DIM)
            strays +=
                !wf_placement_splits(p) || !wf_style_same(wf_row_style(row, i), p) ||
                p->dim != (e.kind == WF_ENTRY_DIM ? (int)e.value : wf_op_dim_with(t, e.value));
        else if (e.kind == WF_ENTRY_OWNER)
            strays += p->kind != WEFT_PLACE_OWNER || p->owner != wf_row_style(row, i)->owner;
        else if (e.kind == WF_ENTRY_PARTIAL)
            strays += p->kind != WEFT_PLACE_PARTIAL || p->reduction != e.value;
        else
            strays += p->kind != WEFT_PLACE_REPLICATE;
    }
    return strays;
}

/* List the rows that fit, those first that a shape-only input suggests. */
static bool list_fits(const struct wf_solver *solver, bool free_moves, struct fits *out)
{
    const struct wf_op *op = &solver->op;

    for (int32_t a = 0; a < op->axes; a++) {
        const struct wf_rows *rows = &solver->rows[a];
        uint8_t strays[WF_ROWS];
        out->count[a] = 0;
        for (uint32_t i = 0; i < rows->count; i++) {
            uint32_t changes = count_changes(op, &rows->row[i], a, free_moves);
            uint32_t mine, at;
            if (changes == UINT32_MAX) continue;
            mine = solver->plain ? 0 : count_strays(op, &rows->row[i], a);
            for (at = out->count[a]++; at > 0 && strays[at - 1] > mine; at--) {
                strays[at] = strays[at - 1];
                out->row[a][at] = out->row[a][at - 1];
                out->changes[a][at] = out->changes[a][at - 1];
            }
            strays[at] = (uint8_t)mine;
            out->row[a][at] = (uint8_t)i;
            out->changes[a][at] = (uint8_t)changes;
        }
        if (out->count[a] == 0) return false;
    }
    return true;
}

/* Plan the changes of inputs by steps without communication.  *LEGAL is false if that cannot be. */
static weft_status plan_local(const struct wf_solver *solver, struct wf_solution *solution,
                              bool *legal)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = solver->options.costs};

    for (uint32_t kind = 0; kind < WEFT_STEP_KINDS; kind++)
        if (kind != WEFT_STEP_SLICE && kind != WEFT_STEP_PARTIAL)
            options.without |= UINT32_C(1) << kind;
    for (uint32_t i = 0; i < solver->op.input_count && *legal; i++) {
        const weft_spec *given = solver->op.tensors[i].given;
        weft_status status;
        if (given == NULL || solution->specs[i] == given) continue;
        status = weft_plan_create(given, solution->specs[i], &options, &solution->moves[i]);
        if (status == WEFT_ERR_NO_MEMORY) return status;
        *legal = status == WEFT_OK;
        if (status == WEFT_OK)
            solution->cost_ns =
                wf_add_capped(solution->cost_ns, weft_plan_cost_ns(solution->moves[i]));
    }
    return WEFT_OK;
}

/* Try one combination in all orders. */
static weft_status try_rows(struct wf_solver *solver, const struct fits *fits, const uint32_t *at,
                            bool free_moves, struct wf_solution *out, bool *found)
{
    struct wf_strategy s = {.op = &solver->op, .sizes = &solver->sizes};

    for (int32_t a = 0; a < solver->op.axes; a++)
        s.rows[a] = &solver->rows[a].row[fits->row[a][at[a]]];
    for (uint32_t i = 0; i < solver->order_count && !*found; i++) {
        memcpy(s.order, solver->orders[i], sizeof s.order);
        WF_TRY(wf_solver_try(solver, &s, out, found));
        if (*found && !free_moves) *found = out->changed == 0;
        if (*found && free_moves) WF_TRY(plan_local(solver, out, found));
    }
    return WEFT_OK;
}

static uint32_t sum_changes(const struct fits *fits, const uint32_t *at, int32_t axes)
{
    uint32_t sum = 0;

    for (int32_t a = 0; a < axes; a++)
        sum += fits->changes[a][at[a]];
    return sum;
}

/* Try all combinations that change CHANGES placements.  *NEXT is the least larger number of
 * changes that a combination has. */
static weft_status try_changes(struct wf_solver *solver, const struct fits *fits, uint32_t changes,
                               bool free_moves, struct wf_solution *out, bool *found,
                               uint32_t *next)
{
    uint32_t at[WEFT_MAX_AXES] = {0}, tried = 0;
    int32_t axes = solver->op.axes;

    *next = UINT32_MAX;
    do {
        uint32_t sum = sum_changes(fits, at, axes);
        if (sum > changes && sum < *next) *next = sum;
        if (sum == changes) WF_TRY(try_rows(solver, fits, at, free_moves, out, found));
    } while (!*found && ++tried < WF_COMBINATIONS && wf_next_combination(axes, fits->count, at));
    return WEFT_OK;
}

weft_status wf_solver_match(struct wf_solver *solver, struct wf_solution *out, bool *found)
{
    struct fits fits;
    uint32_t changes = 0, next;

    *found = false;
    if (list_fits(solver, false, &fits))
        WF_TRY(try_changes(solver, &fits, 0, false, out, found, &next));
    if (*found || (solver->options.flags & WEFT_OP_FLAG_EXACT) != 0) return WEFT_OK;
    wf_solver_complete(solver);
    if (!list_fits(solver, true, &fits)) return WEFT_OK;
    for (; !*found && changes != UINT32_MAX; changes = next)
        WF_TRY(try_changes(solver, &fits, changes, true, out, found, &next));
    return WEFT_OK;
}
