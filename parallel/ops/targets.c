/* targets.c - the layouts that strategies want of each tensor, and the time of the moves. */
#include "targets.h"

#include <string.h>

/* ---- targets ---- */

/* True if the entry is not all that a row says about a tensor. */
static bool has_style(struct wf_entry e)
{
    return e.kind == WF_ENTRY_SPLIT || e.kind == WF_ENTRY_DIM || e.kind == WF_ENTRY_OWNER;
}

/* Number the different entries that the rows of AXIS have for TENSOR.  Returns how many there
 * are. */
static uint32_t number_entries(const struct wf_pricing *p, int32_t axis, uint32_t tensor,
                               uint32_t *out)
{
    const struct wf_rows *rows = &p->solver->rows[axis];
    struct wf_entry entries[WF_ROWS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->rows[axis]; i++) {
        const weft_placement *style = wf_row_style(&rows->row[i], tensor);
        struct wf_entry e = entries[i] = wf_row_entry(&p->solver->op, &rows->row[i], tensor);
        uint32_t before = 0;
        while (before < i &&
               (entries[before].kind != e.kind || entries[before].value != e.value ||
                (has_style(e) && !wf_style_same(wf_row_style(&rows->row[before], tensor), style))))
            before++;
        out[i] = before < i ? out[before] : count++;
    }
    return count;
}

static weft_status begin_tensor(struct wf_pricing *p, uint32_t tensor)
{
    const struct wf_op *op = &p->solver->op;
    struct wf_targets *t = &p->tensors[tensor];

    t->count = 1;
    for (int32_t a = 0; a < op->axes; a++) {
        uint32_t count = number_entries(p, a, tensor, t->offset[a]);
        for (uint32_t i = 0; i < p->rows[a]; i++)
            t->offset[a][i] = t->offset[a][i] * t->count;
        t->count *= count;
    }
    t->targets = wf_calloc(t->count, sizeof *t->targets);
    if (t->targets == NULL) return wf_fail_memory(t->count * sizeof *t->targets);
    for (uint32_t i = 0; i < t->count; i++)
        t->targets[i].bound = t->targets[i].cost = UINT64_MAX;
    return WEFT_OK;
}

weft_status wf_pricing_begin(struct wf_pricing *p)
{
    const struct wf_op *op = &p->solver->op;

    WF_TRY(wf_check_combinations(op, p->rows)); /* a tensor has no more targets than that */
    p->tensor_count = op->input_count;
    if (wf_options_price_outputs(&p->solver->options)) p->tensor_count += op->output_count;
    p->tensors = wf_calloc(p->tensor_count + 1, sizeof *p->tensors);
    if (p->tensors == NULL) return wf_fail_memory((p->tensor_count + 1) * sizeof *p->tensors);
    for (uint32_t i = 0; i < p->tensor_count; i++)
        if (op->tensors[i].present) WF_TRY(begin_tensor(p, i));
    return WEFT_OK;
}

void wf_pricing_end(struct wf_pricing *p)
{
    for (uint32_t i = 0; p->tensors != NULL && i < p->tensor_count; i++) {
        const struct wf_targets *t = &p->tensors[i];
        for (uint32_t j = 0; t->targets != NULL && j < t->count; j++)
            weft_plan_release(&t->targets[j].move);
        wf_free(t->targets);
    }
    wf_free(p->tensors);
    p->tensors = NULL;
}

/* ---- bounds ---- */

/* Time that a move needs at least; UINT64_MAX: the move is not possible. */
static uint64_t bound_move(const struct wf_pricing *p, const weft_spec *from,
                           const weft_placement *to)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = p->solver->options.costs};
    uint64_t ns;

    return weft_plan_lower_bound_ns(from, to, &options, &ns) == WEFT_OK ? ns : UINT64_MAX;
}

/* P(max) cannot become P(sum). */
static bool changes_kind(const struct wf_op *op, const weft_placement *from,
                         const weft_placement *to)
{
    for (int32_t a = 0; a < op->axes; a++)
        if (from[a].kind == WEFT_PLACE_PARTIAL && to[a].kind == WEFT_PLACE_PARTIAL &&
            op->ranks[a] > 1 && from[a].reduction != to[a].reduction)
            return true;
    return false;
}

/* A part that becomes a contribution puts its communication off, and makes it larger. */
static bool defers_work(const struct wf_op *op, const weft_placement *from,
                        const weft_placement *to)
{
    for (int32_t a = 0; a < op->axes; a++)
        if ((wf_placement_splits(&from[a]) || from[a].kind == WEFT_PLACE_OWNER) &&
            to[a].kind == WEFT_PLACE_PARTIAL && op->ranks[a] > 1)
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
static bool place_target(const struct wf_pricing *p, uint32_t tensor, struct wf_layout *out)
{
    const struct wf_op_tensor *t = &p->solver->op.tensors[tensor];

    if (!wf_strategy_place(&p->strategy, tensor, out->placements)) return false;
    wf_op_begin_layout(&p->solver->op, t->dtype, t->dims, out);
    memcpy(out->shape, t->shape, t->dims * sizeof t->shape[0]);
    return wf_layout_settle(out) == WEFT_OK;
}

static weft_status make_spec(const struct wf_layout *layout, weft_spec **out)
{
    return weft_spec_create(layout->mesh, layout->dtype, layout->dims, layout->shape,
                            layout->placements, out);
}

static bool same_placements(const weft_placement *a, const weft_placement *b, int32_t axes)
{
    for (int32_t i = 0; i < axes; i++)
        if (!wf_placement_same(&a[i], &b[i])) return false;
    return true;
}

/* ---- inputs ---- */

/* The target of input TENSOR: whether the input is there, or the bound. */
static void set_input(struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    const struct wf_op *op = &p->solver->op;
    const weft_placement *given = op->tensors[tensor].placements;
    struct wf_layout layout;

    if (!place_target(p, tensor, &layout)) return;
    t->same = same_placements(layout.placements, given, op->axes);
    if (t->same) {
        t->bound = t->cost = 0;
        return;
    }
    if (is_written(op, tensor) || changes_kind(op, given, layout.placements) ||
        (!p->may_defer && defers_work(op, given, layout.placements)))
        return;
    t->bound = bound_move(p, op->tensors[tensor].given, layout.placements);
}

static weft_status price_input(const struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = p->solver->options.costs};
    struct wf_layout layout;
    weft_spec *spec = NULL;
    weft_status status = WEFT_OK;

    if (place_target(p, tensor, &layout)) status = make_spec(&layout, &spec);
    if (status == WEFT_OK && spec != NULL)
        status = weft_plan_create(p->solver->op.tensors[tensor].given, spec, &options, &t->move);
    weft_spec_release(&spec);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (t->move != NULL)
        t->cost = weft_plan_cost_ns(t->move);
    else
        t->bound = t->cost = UINT64_MAX;
    return WEFT_OK;
}

/* ---- outputs ---- */

bool wf_options_price_outputs(const weft_op_options *options)
{
    return (options->flags & WEFT_OP_FLAG_PRICE_PARTIALS) != 0 || options->wanted_outputs != NULL;
}

/* Goal NUMBER of an output with the placements FROM: WANTED; otherwise R, or parts of one
 * dimension, on the axes where it is partial. */
static void set_goal(const weft_placement *from, int32_t axes, const weft_spec *wanted,
                     int32_t number, weft_placement *out)
{
    int32_t turn = 0;

    memcpy(out, wanted != NULL ? weft_spec_placements(wanted) : from, (size_t)axes * sizeof *out);
    for (int32_t a = 0; a < axes; a++)
        turn += wf_placement_splits(&from[a]) && from[a].dim == number - 1;
    for (int32_t a = 0; wanted == NULL && a < axes; a++) {
        if (from[a].kind != WEFT_PLACE_PARTIAL) continue;
        out[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (number > 0)
            out[a] = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = number - 1, .turn = turn++};
    }
}

static int32_t count_goals(int32_t dims, const weft_spec *wanted)
{
    return wanted != NULL ? 1 : 1 + dims;
}

/* True if an output with the placements FROM need not be moved. */
static bool is_settled(const weft_op_options *options, const weft_placement *from, int32_t axes,
                       const weft_spec *wanted)
{
    if (wanted != NULL) return same_placements(from, weft_spec_placements(wanted), axes);
    if ((options->flags & WEFT_OP_FLAG_PRICE_PARTIALS) == 0) return true;
    for (int32_t a = 0; a < axes; a++)
        if (from[a].kind == WEFT_PLACE_PARTIAL) return false;
    return true;
}

/* The time to move OUTPUT to the layout GOAL; UINT64_MAX: there is no such move. */
static weft_status price_goal(const weft_op_options *options, const weft_spec *output,
                              const weft_placement *goal, uint64_t *ns)
{
    weft_plan_options plan_options = {.struct_size = sizeof plan_options, .costs = options->costs};
    weft_plan *plan = NULL;
    weft_spec *spec = NULL;
    weft_status status = wf_spec_place(output, goal, &spec);

    if (status == WEFT_OK) status = weft_plan_create(output, spec, &plan_options, &plan);
    *ns = status == WEFT_OK ? weft_plan_cost_ns(plan) : UINT64_MAX;
    weft_plan_release(&plan);
    weft_spec_release(&spec);
    return status == WEFT_ERR_NO_MEMORY ? status : WEFT_OK;
}

weft_status wf_price_output(const weft_op_options *options, const weft_spec *output,
                            const weft_spec *wanted, uint64_t *ns)
{
    const weft_placement *from = weft_spec_placements(output);
    weft_placement goal[WEFT_MAX_AXES];
    int32_t axes = wf_spec_axes(output);

    *ns = 0;
    if (is_settled(options, from, axes, wanted)) return WEFT_OK;
    *ns = UINT64_MAX;
    for (int32_t i = 0; i < count_goals(weft_spec_dims(output), wanted); i++) {
        uint64_t cost;
        set_goal(from, axes, wanted, i, goal);
        WF_TRY(price_goal(options, output, goal, &cost));
        if (cost < *ns) *ns = cost;
    }
    return WEFT_OK;
}

weft_status wf_check_output_lists(const weft_op_options *options, uint32_t outputs)
{
    bool is_fixed = options->fixed_outputs != NULL && options->fixed_output_count != outputs;

    if (!is_fixed && (options->wanted_outputs == NULL || options->wanted_output_count == outputs))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_op_options.%s_outputs has %zu entries (%s_output_count), and the call has "
                   "%u output%s",
                   is_fixed ? "fixed" : "wanted",
                   is_fixed ? options->fixed_output_count : options->wanted_output_count,
                   is_fixed ? "fixed" : "wanted", outputs, WF_PLURAL(outputs));
}

weft_status wf_check_wanted(const weft_op_options *options, uint32_t index,
                            const struct wf_tensor_type *output)
{
    const weft_spec *spec = options->wanted_outputs != NULL ? options->wanted_outputs[index] : NULL;
    struct wf_tensor_type wanted;
    struct wf_text text = {0};

    if (spec == NULL) return WEFT_OK;
    WF_TRY(wf_spec_require(spec, "weft_op_options", "wanted_outputs"));
    wanted = wf_spec_type(spec);
    if (wf_type_same(&wanted, output)) return WEFT_OK;
    wf_type_add_text(&wanted, &text);
    wf_text_add(&text, ", and the output is ");
    wf_type_add_text(output, &text);
    return wf_fail_text(WEFT_ERR_INVALID, &text, "the spec that is wanted of output %u is %s",
                        index, text.data);
}

static const weft_spec *wanted_of(const struct wf_pricing *p, uint32_t tensor)
{
    const weft_spec *const *list = p->solver->options.wanted_outputs;

    return list != NULL ? list[wf_solver_position(p->solver, tensor)] : NULL;
}

/* *OUT stays NULL if there is no such spec, such as P(max) of complex numbers. */
static weft_status make_output(const struct wf_layout *layout, weft_spec **out)
{
    weft_status status = make_spec(layout, out);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

/* The target of output TENSOR: the bound of its cheapest goal. */
static weft_status set_output(struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    const struct wf_op *op = &p->solver->op;
    const weft_spec *wanted = wanted_of(p, tensor);
    weft_placement goal[WEFT_MAX_AXES];
    struct wf_layout layout;
    weft_spec *spec = NULL;

    if (!place_target(p, tensor, &layout)) return WEFT_OK;
    if (is_settled(&p->solver->options, layout.placements, op->axes, wanted)) {
        t->bound = t->cost = 0;
        return WEFT_OK;
    }
    WF_TRY(make_output(&layout, &spec));
    for (int32_t i = 0; spec != NULL && i < count_goals(layout.dims, wanted); i++) {
        uint64_t bound;
        set_goal(layout.placements, op->axes, wanted, i, goal);
        if (changes_kind(op, layout.placements, goal)) continue;
        bound = bound_move(p, spec, goal);
        if (bound < t->bound) t->bound = bound;
    }
    weft_spec_release(&spec);
    return WEFT_OK;
}

static weft_status price_output(const struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    struct wf_layout layout;
    weft_spec *spec = NULL;
    weft_status status;

    if (!place_target(p, tensor, &layout)) return WEFT_OK;
    WF_TRY(make_output(&layout, &spec));
    if (spec == NULL) return WEFT_OK;
    status = wf_price_output(&p->solver->options, spec, wanted_of(p, tensor), &t->cost);
    weft_spec_release(&spec);
    if (t->cost == UINT64_MAX) t->bound = UINT64_MAX;
    return status;
}

weft_status wf_target_set(struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    t->known = true;
    if (tensor >= p->solver->op.input_count) return set_output(p, tensor, t);
    set_input(p, tensor, t);
    return WEFT_OK;
}

weft_status wf_target_price(const struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    return tensor < p->solver->op.input_count ? price_input(p, tensor, t)
                                              : price_output(p, tensor, t);
}
