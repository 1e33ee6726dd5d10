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
    weft_placement x, y;

    if (a->kind == WEFT_PLACE_SHARD || b->kind == WEFT_PLACE_SHARD) return a->kind == b->kind;
    x = *a;
    y = *b;
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

static inline bool has_factor(uint64_t factors, uint32_t factor)
{
    return (factors >> factor & 1) != 0;
}

static struct wf_entry split_output(const struct wf_op *op, const struct wf_row *row,
                                    const struct wf_op_tensor *output)
{
    uint32_t leaves;

    if (has_factor(output->factors, row->factor))
        return (struct wf_entry){WF_ENTRY_SPLIT, row->factor};
    leaves = row_leaves(op, row);
    if (leaves == WEFT_REDUCE_COUNT || !has_factor(output->sources, row->factor))
        return (struct wf_entry){WF_ENTRY_WHOLE, 0};
    return (struct wf_entry){WF_ENTRY_PARTIAL, (uint8_t)leaves};
}

/* An input that is added to a sum is a contribution to it where the sum is partial. */
static struct wf_entry split_input(const struct wf_op *op, const struct wf_row *row,
                                   const struct wf_op_tensor *input)
{
    if (has_factor(input->factors, row->factor))
        return (struct wf_entry){WF_ENTRY_SPLIT, row->factor};
    if (op->rule->slots[input->slot].adds)
        for (uint32_t i = 0; i < op->output_count; i++) {
            struct wf_entry e = split_output(op, row, &op->tensors[op->input_count + i]);
            if (e.kind == WF_ENTRY_PARTIAL) return e;
        }
    return (struct wf_entry){WF_ENTRY_WHOLE, 0};
}

static struct wf_entry given_entry(const weft_placement *p)
{
    if (wf_placement_splits(p)) return (struct wf_entry){WF_ENTRY_DIM, (uint8_t)p->dim};
    if (p->kind == WEFT_PLACE_OWNER) return (struct wf_entry){WF_ENTRY_OWNER, 0};
    if (p->kind == WEFT_PLACE_PARTIAL)
        return (struct wf_entry){WF_ENTRY_PARTIAL, (uint8_t)p->reduction};
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
    if (row->kind == WF_ROW_OWNER) return (struct wf_entry){WF_ENTRY_OWNER, 0};
    if (row->kind == WF_ROW_GIVEN) return given_entry(&row->given[tensor]);
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

/* True if PARTIAL may be a partial of kind REDUCTION.  An average of integers truncates, so it
 * holds only where values pass through unchanged. */
static bool is_defined(const struct wf_op_tensor *partial, uint32_t reduction, bool passes)
{
    if (reduction == WEFT_REDUCE_AVG && !is_float(partial->dtype) && !passes) return false;
    return wf_reduction_defined(reduction, partial->dtype);
}

/* True if the partials that a split leaves are defined for their dtypes. */
static bool split_is_defined(const struct wf_op *op, const struct wf_row *row)
{
    if (row_leaves(op, row) == WEFT_REDUCE_COUNT) return true;
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        struct wf_entry e = wf_row_entry(op, row, i);
        if (!op->tensors[i].present || e.kind != WF_ENTRY_PARTIAL) continue;
        if (!is_defined(&op->tensors[i], e.value, false)) return false;
    }
    return true;
}

/* True if a cast keeps the order of numbers: negative ones must not become large ones. */
static bool keeps_order(uint32_t from, uint32_t to)
{
    bool to_signed = to % 2 == 1, from_signed = from % 2 == 1; /* of integers */

    if (from == to || from == WEFT_DTYPE_BOOL || is_float(to)) return true;
    if (to == WEFT_DTYPE_BOOL) return false;
    if (is_float(from)) return to_signed;
    return wf_dtype_bytes(to) > wf_dtype_bytes(from) && (to_signed || !from_signed);
}

/* True if CLAUSE holds between a contribution of dtype FROM and tensor OUTPUT, which depends on it.
 * Sums, products and copies hold in the arithmetic of one dtype. */
static bool holds_between(const struct wf_op *op, const struct wf_op_tensor *output,
                          const struct wf_row *row, uint32_t clause, uint32_t from)
{
    const struct wf_slot *slot = &op->rule->slots[output->slot];
    bool order = clause == WF_MONO || clause == WF_ANTI ||
                 (clause >= WF_HOM && row->from != WEFT_REDUCE_PROD);

    /* the negative of an unsigned number is not negative */
    if (clause == WF_ANTI && !is_float(output->dtype) && output->dtype % 2 == 0 &&
        output->dtype != WEFT_DTYPE_BOOL)
        return false;
    if (!order) return output->dtype == from || (is_float(output->dtype) && is_float(from));
    return slot->type != WF_TYPE_ATTR || keeps_order(from, output->dtype);
}

/* True if the contributions of ROW are defined for their dtypes.  Linearity holds in the arithmetic
 * of one dtype: integers wrap, and truth values saturate. */
static bool partials_are_defined(const struct wf_op *op, const struct wf_row *row, uint32_t clause)
{
    bool linear = clause == WF_LIN || clause == WF_AFF;
    uint32_t dtype = WEFT_DTYPE_COUNT;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        const struct wf_slot *slot = &op->rule->slots[t->slot];
        bool input = i < op->input_count;
        uint32_t touched = input ? UINT32_C(1) << t->slot : slot->depends;
        if (!t->present || slot->shape_only || (touched & row->inputs) == 0) continue;
        if (!is_defined(t, input ? row->from : row->to, clause == WF_PASS)) return false;
        if (linear && t->dtype == WEFT_DTYPE_BOOL) return false;
        if (dtype == WEFT_DTYPE_COUNT) dtype = t->dtype;
        if (linear && t->dtype != dtype && !(is_float(t->dtype) && is_float(dtype))) return false;
        if (!input && !holds_between(op, t, row, clause, dtype)) return false;
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

static void add_split(const struct wf_op *op, uint32_t factor, int32_t axis, struct wf_sizes *lists,
                      struct wf_rows *rows)
{
    struct wf_row row = {.kind = WF_ROW_SPLIT, .factor = (uint8_t)factor};

    row.style.kind = WEFT_PLACE_SHARD;
    if ((op->factors[factor].flags & WF_WHOLE) != 0 || !split_is_defined(op, &row)) return;
    add_row(rows, &row);
    for (uint32_t i = 0; lists != NULL && i < op->input_count; i++) { /* as the inputs split it */
        const struct wf_op_tensor *t = &op->tensors[i];
        const weft_placement *p;
        if (!t->present || !has_factor(t->factors, factor)) continue;
        p = &t->placements[axis];
        if (!wf_placement_splits(p) || p->kind == WEFT_PLACE_SHARD ||
            wf_op_dim_with(t, factor) != p->dim)
            continue;
        if (wf_factor_style(op, t, p, factor, lists, &row.style)) add_row(rows, &row);
    }
}

/* ---- owners ---- */

/* An operator whose tensors are all on one rank runs there. */
static void add_owners(const struct wf_op *op, int32_t axis, struct wf_rows *rows)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        struct wf_row row = {.kind = WF_ROW_OWNER};
        if (!op->tensors[i].present) continue;
        row.style = op->tensors[i].placements[axis];
        if (row.style.kind == WEFT_PLACE_OWNER) add_row(rows, &row);
    }
}

/* ---- partials ---- */

static void add_partial(const struct wf_op *op, const struct wf_term *term, uint32_t from,
                        uint32_t to, struct wf_rows *rows)
{
    struct wf_row row = {.kind = WF_ROW_PARTIAL, .from = (uint8_t)from, .to = (uint8_t)to};

    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        if ((term->inputs >> t->slot & 1) == 0) continue;
        if (t->present)
            row.inputs |= UINT32_C(1) << t->slot;
        else if (term->clause == WF_LIN && !op->rule->slots[t->slot].adds)
            return; /* its place is taken by a constant, which is not 0 */
    }
    if (row.inputs != 0 && partials_are_defined(op, &row, term->clause)) add_row(rows, &row);
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

void wf_rows_list(const struct wf_op *op, int32_t axis, struct wf_sizes *lists, struct wf_rows *out)
{
    out->count = 1;
    out->row[0] = (struct wf_row){.kind = WF_ROW_WHOLE};
    for (uint32_t i = 0; i < op->factor_count; i++)
        add_split(op, i, axis, lists, out);
    if (lists != NULL) add_owners(op, axis, out);
}

void wf_rows_add_partials(const struct wf_op *op, struct wf_rows *out)
{
    for (int i = 0; i < op->rule->term_count; i++)
        add_term(op, &op->rule->terms[i], out);
}
