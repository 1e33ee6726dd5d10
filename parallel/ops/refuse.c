/* refuse.c - why inputs are not legal, in words: which input, what it is, what it might be, and the
 * cheapest move that helps. */
#include "solve.h"

#include <string.h>

/* The placement that ROW wants of TENSOR on one axis. */
static void add_wanted(const struct wf_op *op, const struct wf_row *row, uint32_t tensor,
                       struct wf_text *out)
{
    struct wf_entry e = wf_row_entry(op, row, tensor);
    weft_placement p = {.kind = WEFT_PLACE_REPLICATE};

    if (e.kind == WF_ENTRY_PARTIAL)
        p = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = e.value};
    if (e.kind == WF_ENTRY_DIM || e.kind == WF_ENTRY_OWNER) p = *wf_row_style(row, tensor);
    if (e.kind == WF_ENTRY_SPLIT) {
        p = row->style;
        p.dim = wf_op_dim_with(&op->tensors[tensor], e.value);
    }
    wf_placement_add_short_text(&p, out);
    if (e.kind == WF_ENTRY_SPLIT && op->tensors[tensor].dim[p.dim].count > 1)
        wf_text_add(out, " (or a strided part of dimension %d)", p.dim);
}

static void add_axis(const weft_mesh *mesh, int32_t axis, struct wf_text *out)
{
    const char *name = weft_mesh_axis_name(mesh, axis);

    if (name[0] != '\0')
        wf_text_add(out, "axis %s", name);
    else
        wf_text_add(out, "axis %d", axis);
}

/* True if an output is written in place of input INPUT, which is never moved. */
static bool is_written(const struct wf_op *op, uint32_t input)
{
    for (uint32_t i = 0; i < op->output_count; i++)
        if (op->tensors[op->input_count + i].inplace == (int)input) return true;
    return false;
}

/* Inputs that ROW does not fit.  One that is never moved counts more than all that can be. */
static uint32_t count_misfits(const struct wf_solver *solver, const struct wf_row *row,
                              int32_t axis, uint32_t *first)
{
    bool free_moves = (solver->options.flags & WEFT_OP_FLAG_EXACT) == 0;
    const struct wf_op *op = &solver->op;
    uint32_t misfits = 0;

    for (uint32_t i = op->input_count; i-- > 0;)
        if (!wf_row_fits(op, row, axis, i, free_moves)) {
            misfits += is_written(op, i) ? op->input_count : 1;
            *first = i;
        }
    return misfits;
}

/* The row of AXIS that fits most inputs, and the first input that it does not fit. */
static const struct wf_row *nearest_row(const struct wf_solver *solver, int32_t axis,
                                        uint32_t *misfits, uint32_t *tensor)
{
    const struct wf_row *nearest = NULL;

    *misfits = UINT32_MAX;
    for (uint32_t i = 0; i < solver->rows[axis].count; i++) {
        uint32_t first = 0, count = count_misfits(solver, &solver->rows[axis].row[i], axis, &first);
        if (count >= *misfits) continue;
        *misfits = count;
        *tensor = first;
        nearest = &solver->rows[axis].row[i];
    }
    return nearest;
}

/* ", where a is S(1), " for the inputs besides TENSOR. */
static void add_others(const struct wf_op *op, int32_t axis, uint32_t tensor, struct wf_text *out)
{
    uint32_t listed = 0;

    for (uint32_t i = 0; i < op->input_count && listed < 8; i++) {
        if (i == tensor || !op->tensors[i].present) continue;
        wf_text_add(out, "%s%.*s is ", listed++ > 0 ? ", " : ", and ",
                    WF_WORD(op->rule, wf_op_name(op, &op->tensors[i])));
        wf_placement_add_short_text(&op->tensors[i].placements[axis], out);
    }
}

/* Add what ROW wants of TENSOR, unless it is in SEEN: texts with a line break before and behind. */
static void add_once(const struct wf_op *op, const struct wf_row *row, uint32_t tensor,
                     struct wf_text *seen, struct wf_text *out)
{
    struct wf_text wanted = {0};

    wf_text_add(&wanted, "\n");
    add_wanted(op, row, tensor, &wanted);
    wf_text_add(&wanted, "\n");
    if (wf_text_status(&wanted) == WEFT_OK &&
        (seen->length == 0 || strstr(seen->data, wanted.data) == NULL)) {
        if (seen->length > 0) wf_text_add(out, " or ");
        add_wanted(op, row, tensor, out);
        wf_text_add(seen, "%s", wanted.data);
    }
    wf_text_free(&wanted);
}

/* The placements of TENSOR in rows that fit all other inputs; if there are none, that of ROW. */
static void add_allowed(const struct wf_solver *solver, const struct wf_row *row, int32_t axis,
                        uint32_t tensor, struct wf_text *out)
{
    const struct wf_op *op = &solver->op;
    bool free_moves = (solver->options.flags & WEFT_OP_FLAG_EXACT) == 0;
    struct wf_text seen = {0};

    for (uint32_t i = 0; i < solver->rows[axis].count; i++) {
        const struct wf_row *other = &solver->rows[axis].row[i];
        bool fits = true;
        for (uint32_t j = 0; j < op->input_count; j++)
            fits = fits && (j == tensor || wf_row_fits(op, other, axis, j, free_moves));
        if (fits) add_once(op, other, tensor, &seen, out);
    }
    if (seen.length == 0) add_wanted(op, row, tensor, out);
    wf_text_free(&seen);
}

/* Which element of the lists the solver is at. */
static void add_element(const struct wf_solver *solver, struct wf_text *out)
{
    if (solver->members > 0) wf_text_add(out, "in element %u of the lists, ", solver->element);
}

/* False if every axis has a row that fits all inputs. */
static bool add_misfit(const struct wf_solver *solver, struct wf_text *out)
{
    const struct wf_op *op = &solver->op;

    for (int32_t a = 0; a < op->axes; a++) {
        uint32_t misfits, tensor = 0;
        const struct wf_row *row = nearest_row(solver, a, &misfits, &tensor);
        if (misfits == 0 || row == NULL) continue;
        add_element(solver, out);
        wf_text_add(out, "on ");
        add_axis(op->mesh, a, out);
        wf_text_add(out, ", input %.*s", WF_WORD(op->rule, wf_op_name(op, &op->tensors[tensor])));
        if (solver->members > 0)
            wf_text_add(out, " (input %u of the call)", wf_solver_position(solver, tensor));
        wf_text_add(out, " is ");
        wf_placement_add_short_text(&op->tensors[tensor].placements[a], out);
        add_others(op, a, tensor, out);
        wf_text_add(out, "; %.*s must be ",
                    WF_WORD(op->rule, wf_op_name(op, &op->tensors[tensor])));
        add_allowed(solver, row, a, tensor, out);
        return true;
    }
    return false;
}

/* The spec that tensor I must have: that of the memory it is written to, or that which the options
 * fix.  NULL: any.  *REASON is put before it in the text. */
static const weft_spec *demanded_spec(const struct wf_solver *solver, uint32_t i,
                                      const char **reason)
{
    const struct wf_op *op = &solver->op;
    int memory = i < op->input_count ? -1 : op->tensors[i].inplace;

    *reason = memory >= 0      ? "the memory of"
              : solver->is_out ? "the memory that is given for output"
                               : "the spec that is fixed for";
    return memory >= 0 ? op->tensors[memory].given : wf_solver_fixed(solver, i);
}

/* A tensor that must have a spec of another shape, dtype or mesh. */
static bool add_unlike(const struct wf_solver *solver, struct wf_text *out)
{
    const struct wf_op *op = &solver->op;

    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        const struct wf_op_tensor *t = &op->tensors[i];
        struct wf_tensor_type is = wf_op_type(op, t), demanded;
        const char *reason;
        const weft_spec *spec = demanded_spec(solver, i, &reason);
        if (spec == NULL || !t->present) continue;
        demanded = wf_spec_type(spec);
        if (wf_type_same(&is, &demanded)) continue;
        add_element(solver, out);
        wf_text_add(out, "%s %.*s is ", reason, WF_WORD(op->rule, wf_op_name(op, t)));
        wf_type_add_text(&demanded, out);
        wf_text_add(out, ", and %.*s is ", WF_WORD(op->rule, wf_op_name(op, t)));
        wf_type_add_text(&is, out);
        return true;
    }
    return false;
}

/* What leaves no strategy: memory that is written in place, and options. */
static void add_limits(const struct wf_solver *solver, struct wf_text *out)
{
    const weft_op_options *o = &solver->options;
    const struct wf_op *op = &solver->op;
    const char *between = out->length > 0 ? "; no strategy is left: " : "no strategy is left: ";

    for (uint32_t i = 0; i < op->output_count; i++) {
        int in = op->tensors[op->input_count + i].inplace;
        if (in < 0) continue;
        wf_text_add(out,
                    "%soutput %.*s is written in place of %.*s, which is never moved: move it "
                    "before the call",
                    between, WF_WORD(op->rule, wf_op_name(op, &op->tensors[op->input_count + i])),
                    WF_WORD(op->rule, wf_op_name(op, &op->tensors[in])));
        between = ", ";
    }
    if (o->fixed_inputs != NULL || o->fixed_outputs != NULL) {
        wf_text_add(out, "%s%s", between,
                    solver->is_out ? "the outputs have the layouts of the memory that is given"
                                   : "layouts are fixed");
        between = ", ";
    }
    if (o->memory_limit != 0) {
        wf_text_add(out, "%smemory_limit is %llu bytes", between,
                    (unsigned long long)o->memory_limit);
        between = ", ";
    }
    if ((o->flags & WEFT_OP_FLAG_NO_PARTIALS) != 0) {
        wf_text_add(out, "%soutputs must not be partial", between);
        between = ", ";
    }
    if (o->allow != NULL) wf_text_add(out, "%sallow refuses the others", between);
}

static void add_reason(const struct wf_solver *solver, bool found, struct wf_text *out)
{
    size_t before;

    if (!found && add_unlike(solver, out)) return;
    (void)add_misfit(solver, out);
    before = out->length;
    if (!found) add_limits(solver, out);
    if (out->length == before && before == 0 && solver->is_out)
        wf_text_add(out, "the inputs as they are do not give outputs in the layouts of the memory "
                         "that is given");
    else if (out->length == before && before == 0)
        wf_text_add(
            out, "the parts of the inputs are not those of one split of the rule's factors: %.600s",
            solver->op.rule->text);
}

static void add_fix(struct wf_solver *solver, struct wf_solution *fix, struct wf_text *out)
{
    const struct wf_op *op = &solver->op;
    uint32_t listed = 0;

    for (uint32_t i = 0; i < op->input_count; i++) {
        const weft_spec *from = op->tensors[i].given, *to = fix->specs[i];
        if (to == NULL || from == to) continue;
        wf_text_add(out, "%s%.*s from ", listed++ > 0 ? " and " : "; the cheapest fix moves ",
                    WF_WORD(op->rule, wf_op_name(op, &op->tensors[i])));
        wf_placements_add_short_text(op->tensors[i].placements, op->axes, out);
        wf_text_add(out, " to ");
        wf_placements_add_short_text(weft_spec_placements(to), op->axes, out);
    }
    if (listed == 0) return;
    wf_text_add(out, ", in ");
    wf_text_time(out, fix->cost_ns);
}

weft_status wf_solver_refuse(struct wf_solver *solver, const char *function)
{
    struct wf_text text = {0};
    struct wf_solution fix;
    weft_status status;
    bool found = false;

    WF_TRY(wf_solution_begin(solver, &fix));
    status = wf_solver_propose(solver, &fix, &found);
    if (status == WEFT_ERR_UNSUPPORTED) status = WEFT_OK; /* the cheapest fix is not known */
    if (status == WEFT_OK) {
        add_reason(solver, found, &text);
        if (found) add_fix(solver, &fix, &text);
        status = wf_text_status(&text);
    }
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_MISMATCH, "%s: operator %s%.100s%s: %s", function,
                         solver->is_foreach ? "foreach_" : "", solver->op.name,
                         solver->is_out ? ".out" : "", text.data);
    wf_text_free(&text);
    wf_solution_end(&fix);
    return status;
}
