/* rows.c - what the ranks along one mesh axis may do, by the clauses of the rule. */
#include "strategy.h"

#include <string.h>

int wf_op_dim_with(const struct wf_op_tensor *tensor, uint32_t factor)
{
    for (int d = 0; d < tensor->dims; d++)
        for (int i = 0; i < tensor->dim[d].count; i++)
            if (tensor->dim[d].factor[i] == factor) return d;
    return -1;
}

bool wf_style_same(const weft_placement *a, const weft_placement *b)
{
    weft_placement x = *a, y = *b;

    x.dim = y.dim = 0;
    x.turn = y.turn = 0;
    return wf_placement_same(&x, &y);
}

static bool is_float(uint32_t dtype)
{
    return dtype >= WEFT_DTYPE_F16 && dtype < WEFT_DTYPE_COUNT;
}

/* ---- entries ---- */

/* The reduction that a split of the row's factor leaves in outputs that lack it. */
static uint32_t row_leaves(const struct wf_op *op, const struct wf_row *row)
{
    const struct wf_op_factor *f = &op->factors[row->factor];

    if ((f->flags & WF_MASK) != 0) return WEFT_REDUCE_SUM;
    return f->reduce != WF_REDUCE_NONE ? wf_reduce_placement(f->reduce) : WEFT_REDUCE_COUNT;
}

/* True if OUTPUT depends on an input that has FACTOR. */
static bool depends_on(const struct wf_op *op, const struct wf_op_tensor *output, uint32_t factor)
{
    uint32_t depends = op->rule->slots[output->slot].depends;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        if (t->present && (depends >> t->slot & 1) != 0 && !op->rule->slots[t->slot].shape_only &&
            wf_op_dim_with(t, factor) >= 0)
            return true;
    }
    return false;
}

static struct wf_entry split_output(const struct wf_op *op, const struct wf_row *row,
                                    const struct wf_op_tensor *output)
{
    uint32_t leaves = row_leaves(op, row);

    if (wf_op_dim_with(output, row->factor) >= 0)
        return (struct wf_entry){WF_ENTRY_SPLIT, row->factor};
    if (leaves == WEFT_REDUCE_COUNT || !depends_on(op, output, row->factor))
        return (struct wf_entry){WF_ENTRY_WHOLE, 0};
    return (struct wf_entry){WF_ENTRY_PARTIAL, (uint8_t)leaves};
}

/* An input that is added to a sum is a contribution to it where the sum is partial. */
static struct wf_entry split_input(const struct wf_op *op, const struct wf_row *row,
                                   const struct wf_op_tensor *input)
{
    if (wf_op_dim_with(input, row->factor) >= 0)
        return (struct wf_entry){WF_ENTRY_SPLIT, row->factor};
    if (op->rule->slots[input->slot].adds)
        for (uint32_t i = 0; i < op->output_count; i++) {
            struct wf_entry e = split_output(op, row, &op->tensors[op->input_count + i]);
            if (e.kind == WF_ENTRY_PARTIAL) return e;
        }
    return (struct wf_entry){WF_ENTRY_WHOLE, 0};
}

struct wf_entry wf_row_natural(const struct wf_op *op, const struct wf_row *row, uint32_t tensor)
{
    const struct wf_op_tensor *t = &op->tensors[tensor];
    const struct wf_slot *slot = &op->rule->slots[t->slot];
    bool input = tensor < op->input_count;

    if (row->kind == WF_ROW_SPLIT)
        return input ? split_input(op, row, t) : split_output(op, row, t);
    if (row->kind == WF_ROW_WHOLE) return (struct wf_entry){WF_ENTRY_WHOLE, 0};
    if (input && (row->inputs >> t->slot & 1) != 0)
        return (struct wf_entry){WF_ENTRY_PARTIAL, row->from};
    if (!input && (row->inputs & slot->depends) != 0)
        return (struct wf_entry){WF_ENTRY_PARTIAL, row->to};
    return (struct wf_entry){WF_ENTRY_WHOLE, 0};
}

struct wf_entry wf_row_entry(const struct wf_op *op, const struct wf_row *row, uint32_t tensor)
{
    if (tensor < op->input_count && op->rule->slots[op->tensors[tensor].slot].shape_only)
        return (struct wf_entry){WF_ENTRY_ANY, 0};
    return wf_row_natural(op, row, tensor);
}

/* ---- which rows hold ---- */

/* Every partial of the row must be defined for its dtype.  An average of integers truncates, so it
 * holds only where values pass through unchanged. */
static bool partials_defined(const struct wf_op *op, const struct wf_row *row, bool passes)
{
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        struct wf_entry e = wf_row_entry(op, row, i);
        uint32_t dtype = op->tensors[i].dtype;
        if (!op->tensors[i].present || e.kind != WF_ENTRY_PARTIAL) continue;
        if (!wf_reduction_defined(e.value, dtype)) return false;
        if (e.value == WEFT_REDUCE_AVG && !is_float(dtype) && !passes) return false;
    }
    return true;
}

/* Linearity holds in the arithmetic of one dtype: integers wrap, and truth values saturate. */
static bool is_linear_here(const struct wf_op *op, const struct wf_row *row)
{
    uint32_t dtype = WEFT_DTYPE_COUNT;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        uint32_t mine = op->tensors[i].dtype;
        if (!op->tensors[i].present || wf_row_entry(op, row, i).kind != WF_ENTRY_PARTIAL) continue;
        if (mine == WEFT_DTYPE_BOOL) return false;
        if (dtype == WEFT_DTYPE_COUNT) dtype = mine;
        if (mine != dtype && !(is_float(mine) && is_float(dtype))) return false;
    }
    return true;
}

static void add_row(struct wf_rows *rows, const struct wf_row *row)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct wf_row *r = &rows->row[i];
        if (r->kind == row->kind && r->factor == row->factor && r->from == row->from &&
            r->to == row->to && r->inputs == row->inputs && wf_style_same(&r->style, &row->style))
            return;
    }
    if (rows->count < WF_ROWS) rows->row[rows->count++] = *row;
}

/* ---- splits ---- */

static void add_split(const struct wf_op *op, uint32_t factor, int32_t axis, struct wf_rows *rows)
{
    struct wf_row row = {.kind = WF_ROW_SPLIT, .factor = (uint8_t)factor};

    row.style.kind = WEFT_PLACE_SHARD;
    if ((op->factors[factor].flags & WF_WHOLE) != 0 || !partials_defined(op, &row, false)) return;
    add_row(rows, &row);
    for (uint32_t i = 0; i < op->input_count; i++) { /* as the inputs split it on this axis */
        const struct wf_op_tensor *t = &op->tensors[i];
        int d = t->present ? wf_op_dim_with(t, factor) : -1;
        const weft_placement *p;
        if (d < 0 || t->dim[d].count != 1) continue;
        p = &t->given->layout.placements[axis];
        if (!wf_placement_splits(p) || p->dim != d) continue;
        row.style = *p;
        row.style.dim = row.style.turn = 0;
        add_row(rows, &row);
    }
}

/* ---- partials ---- */

static void add_partial(const struct wf_op *op, const struct wf_term *term, uint32_t from,
                        uint32_t to, struct wf_rows *rows)
{
    struct wf_row row = {.kind = WF_ROW_PARTIAL, .from = (uint8_t)from, .to = (uint8_t)to};

    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->tensors[i].present && (term->inputs >> op->tensors[i].slot & 1) != 0)
            row.inputs |= UINT32_C(1) << op->tensors[i].slot;
    if (row.inputs == 0 || !partials_defined(op, &row, term->clause == WF_PASS)) return;
    if ((term->clause == WF_LIN || term->clause == WF_AFF) && !is_linear_here(op, &row)) return;
    add_row(rows, &row);
}

static void add_term(const struct wf_op *op, const struct wf_term *term, struct wf_rows *rows)
{
    static const uint8_t all[] = {WEFT_REDUCE_SUM, WEFT_REDUCE_AVG, WEFT_REDUCE_MAX,
                                  WEFT_REDUCE_MIN, WEFT_REDUCE_PROD};

    switch (term->clause) {
    case WF_LIN:
        add_partial(op, term, WEFT_REDUCE_SUM, WEFT_REDUCE_SUM, rows);
        add_partial(op, term, WEFT_REDUCE_AVG, WEFT_REDUCE_AVG, rows);
        return;
    case WF_AFF:
        add_partial(op, term, WEFT_REDUCE_AVG, WEFT_REDUCE_AVG, rows);
        return;
    case WF_MONO:
        add_partial(op, term, WEFT_REDUCE_MAX, WEFT_REDUCE_MAX, rows);
        add_partial(op, term, WEFT_REDUCE_MIN, WEFT_REDUCE_MIN, rows);
        return;
    case WF_ANTI:
        add_partial(op, term, WEFT_REDUCE_MAX, WEFT_REDUCE_MIN, rows);
        add_partial(op, term, WEFT_REDUCE_MIN, WEFT_REDUCE_MAX, rows);
        return;
    case WF_PASS:
        for (size_t i = 0; i < WF_COUNT(all); i++)
            add_partial(op, term, all[i], all[i], rows);
        return;
    default: /* hom, turn */
        add_partial(op, term, wf_reduce_placement(term->from), wf_reduce_placement(term->to), rows);
    }
}

void wf_rows_list(const struct wf_op *op, int32_t axis, struct wf_rows *out)
{
    const struct wf_row whole = {.kind = WF_ROW_WHOLE};

    out->count = 0;
    add_row(out, &whole);
    for (uint32_t i = 0; i < op->factor_count; i++)
        add_split(op, i, axis, out);
    for (int i = 0; i < op->rule->term_count; i++)
        add_term(op, &op->rule->terms[i], out);
}
