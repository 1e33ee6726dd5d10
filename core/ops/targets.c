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
    for (int32_t a = 0; a < op->mesh->axes; a++) {
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
            wf_free(t->targets[j].path);
        wf_free(t->targets);
    }
    wf_free(p->tensors);
    p->tensors = NULL;
}

/* ---- bounds ---- */

uint64_t wf_pricing_rate(const weft_cost_table *costs)
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
static uint64_t bound_move(const struct wf_pricing *p, const weft_spec *from,
                           const struct wf_layout *to)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard have, want;
    int64_t common = 1;
    uint64_t missing;

    if (from->elements == 0) return 0;
    wf_layout_largest(to, coord);
    wf_shard_at(&from->layout, coord, &have);
    wf_shard_at(to, coord, &want);
    for (int32_t d = 0; d < from->layout.dims; d++) {
        struct wf_index a = wf_shard_index(&have, d), b = wf_shard_index(&want, d);
        common *= wf_index_common(&a, &b);
    }
    missing = (uint64_t)(want.elements - common) * wf_dtype_bytes(from->layout.dtype);
    if (missing == 0 && !loses_partial(&from->layout, to)) return 0;
    return bound_time(from, to, p->solver->options.costs, wf_transfer_ns(missing, p->rate));
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
static bool place_target(const struct wf_pricing *p, uint32_t tensor, struct wf_layout *out)
{
    const struct wf_op *op = &p->solver->op;
    const struct wf_op_tensor *t = &op->tensors[tensor];
    weft_placement placements[WEFT_MAX_AXES];

    if (!wf_strategy_place(&p->strategy, tensor, placements)) return false;
    if (t->given != NULL) {
        *out = t->given->layout;
    } else {
        *out = (struct wf_layout){.mesh = op->mesh, .dtype = t->dtype, .dims = t->dims};
        memcpy(out->shape, t->shape, sizeof out->shape);
    }
    memcpy(out->placements, placements, (size_t)op->mesh->axes * sizeof *placements);
    return wf_layout_settle(out) == WEFT_OK;
}

/* ---- inputs ---- */

/* The target of input TENSOR: whether the input is there, or the bound. */
static void set_input(struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    const struct wf_op *op = &p->solver->op;
    const weft_spec *given = op->tensors[tensor].given;
    struct wf_layout layout;

    if (!place_target(p, tensor, &layout)) return;
    t->same = true;
    for (int32_t a = 0; a < op->mesh->axes; a++)
        t->same = t->same && wf_placement_same(&layout.placements[a], &given->layout.placements[a]);
    if (t->same) {
        t->bound = t->cost = 0;
        return;
    }
    if (is_written(op, tensor) || changes_kind(&given->layout, &layout) ||
        (!p->may_defer && defers_work(&given->layout, &layout)))
        return;
    t->bound = bound_move(p, given, &layout);
}

static weft_status price_input(const struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    weft_plan_options options = {.struct_size = sizeof options, .costs = p->solver->options.costs};
    struct wf_layout layout;
    weft_spec *spec = NULL;
    weft_status status = WEFT_OK;

    t->path = wf_alloc(sizeof *t->path);
    if (t->path == NULL) return wf_fail_memory(sizeof *t->path);
    if (place_target(p, tensor, &layout)) status = wf_spec_intern(&layout, &spec);
    if (status == WEFT_OK && spec != NULL)
        status =
            wf_plan_price(p->solver->op.tensors[tensor].given, spec, &options, t->path, &t->cost);
    weft_spec_release(&spec);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status != WEFT_OK) t->bound = t->cost = UINT64_MAX;
    return WEFT_OK;
}

/* ---- outputs ---- */

bool wf_options_price_outputs(const weft_op_options *options)
{
    return (options->flags & WEFT_OP_PRICE_PARTIALS) != 0 || options->wanted_outputs != NULL;
}

/* Goal NUMBER of an output with layout FROM: WANTED; otherwise R, or parts of one dimension, on the
 * axes where it is partial.  False: there is no such goal. */
static bool set_goal(const struct wf_layout *from, const weft_spec *wanted, int32_t number,
                     struct wf_layout *out)
{
    int32_t turn = 1;

    if (wanted != NULL) {
        *out = wanted->layout;
        return number == 0;
    }
    *out = *from;
    for (int32_t i = 0; i < from->split_count; i++)
        turn += from->splits[i].dim == number - 1;
    for (int32_t a = 0; a < from->mesh->axes; a++) {
        if (from->placements[a].kind != WEFT_PLACE_PARTIAL) continue;
        out->placements[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (number > 0)
            out->placements[a] =
                (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = number - 1, .turn = turn++};
    }
    return wf_layout_settle(out) == WEFT_OK;
}

static int32_t count_goals(const struct wf_layout *from, const weft_spec *wanted)
{
    return wanted != NULL ? 1 : 1 + from->dims;
}

/* True if an output with layout FROM need not be moved. */
static bool is_settled(const weft_op_options *options, const struct wf_layout *from,
                       const weft_spec *wanted)
{
    if (wanted == NULL && (options->flags & WEFT_OP_PRICE_PARTIALS) == 0) return true;
    for (int32_t a = 0; a < from->mesh->axes; a++) {
        if (wanted == NULL && from->placements[a].kind == WEFT_PLACE_PARTIAL) return false;
        if (wanted != NULL &&
            !wf_placement_same(&from->placements[a], &wanted->layout.placements[a]))
            return false;
    }
    return true;
}

weft_status wf_price_output(const weft_op_options *options, const weft_spec *output,
                            const weft_spec *wanted, uint64_t *ns)
{
    weft_plan_options plan = {.struct_size = sizeof plan, .costs = options->costs};
    struct wf_layout goal;
    struct wf_path path;
    weft_status status = WEFT_OK;

    *ns = 0;
    if (is_settled(options, &output->layout, wanted)) return WEFT_OK;
    *ns = UINT64_MAX;
    for (int32_t i = 0; i < count_goals(&output->layout, wanted); i++) {
        weft_spec *spec = NULL;
        uint64_t cost;
        if (!set_goal(&output->layout, wanted, i, &goal)) continue;
        status = wf_spec_intern(&goal, &spec);
        if (status == WEFT_OK) status = wf_plan_price(output, spec, &plan, &path, &cost);
        weft_spec_release(&spec);
        if (status == WEFT_ERR_NO_MEMORY) return status;
        if (status == WEFT_OK && cost < *ns) *ns = cost;
    }
    return WEFT_OK;
}

weft_status wf_check_output_lists(const weft_op_options *options, uint32_t outputs)
{
    bool is_fixed = options->fixed_outputs != NULL && options->fixed_output_count != outputs;

    if (!is_fixed && (options->wanted_outputs == NULL || options->wanted_output_count == outputs))
        return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID,
        "weft_op_options.%s_outputs has %u entries (%s_output_count), and the call has %u output%s",
        is_fixed ? "fixed" : "wanted",
        is_fixed ? options->fixed_output_count : options->wanted_output_count,
        is_fixed ? "fixed" : "wanted", outputs, WF_PLURAL(outputs));
}

weft_status wf_check_wanted(const weft_op_options *options, uint32_t index,
                            const struct wf_layout *output)
{
    const weft_spec *wanted =
        options->wanted_outputs != NULL ? options->wanted_outputs[index] : NULL;
    struct wf_text text = {0};
    weft_status status;

    if (wanted == NULL) return WEFT_OK;
    WF_TRY(wf_require_kind(wanted, WF_KIND_SPEC, "weft_op_options.wanted_outputs"));
    if (wanted->layout.mesh == output->mesh && wanted->layout.dtype == output->dtype &&
        wanted->layout.dims == output->dims &&
        memcmp(wanted->layout.shape, output->shape, (size_t)output->dims * sizeof(int64_t)) == 0)
        return WEFT_OK;
    for (int i = 0; i < 2; i++) {
        const struct wf_layout *layout = i == 0 ? &wanted->layout : output;
        wf_text_add(&text, "%s%s", i == 0 ? "" : ", and the output is ",
                    wf_dtype_name(layout->dtype));
        wf_shape_add_text(layout->dims, layout->shape, &text);
        wf_text_add(&text, " on a mesh of %d rank%s", layout->mesh->size,
                    WF_PLURAL(layout->mesh->size));
    }
    status = wf_text_status(&text);
    if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_INVALID, "the spec that is wanted of output %u is %s", index,
                         text.data);
    wf_text_free(&text);
    return status;
}

static const weft_spec *wanted_of(const struct wf_pricing *p, uint32_t tensor)
{
    const weft_spec *const *list = p->solver->options.wanted_outputs;

    return list != NULL ? list[wf_solver_position(p->solver, tensor)] : NULL;
}

/* *OUT stays NULL if there is no such spec, such as P(max) of complex numbers. */
static weft_status intern_output(struct wf_layout *layout, weft_spec **out)
{
    weft_status status = wf_spec_intern(layout, out);

    return status == WEFT_ERR_INVALID ? WEFT_OK : status;
}

/* The target of output TENSOR: the bound of its cheapest goal. */
static weft_status set_output(struct wf_pricing *p, uint32_t tensor, struct wf_target *t)
{
    const weft_spec *wanted = wanted_of(p, tensor);
    struct wf_layout layout, goal;
    weft_spec *spec = NULL;

    if (!place_target(p, tensor, &layout)) return WEFT_OK;
    if (is_settled(&p->solver->options, &layout, wanted)) {
        t->bound = t->cost = 0;
        return WEFT_OK;
    }
    WF_TRY(intern_output(&layout, &spec));
    for (int32_t i = 0; spec != NULL && i < count_goals(&layout, wanted); i++) {
        uint64_t bound;
        if (!set_goal(&layout, wanted, i, &goal) || changes_kind(&layout, &goal)) continue;
        bound = bound_move(p, spec, &goal);
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
    WF_TRY(intern_output(&layout, &spec));
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
