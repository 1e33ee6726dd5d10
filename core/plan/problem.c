/* problem.c - two specs of one mesh, reduced to the small form that the search works on. */
#include "plan/figures/figures.h"
#include "plan.h"

#include <string.h>

uint32_t wf_link_between(const weft_mesh *mesh, const weft_cost_table *costs, int32_t a, int32_t b)
{
    uint64_t within = costs->domains[WF_WITHIN_HOST], between = costs->domains[WF_BETWEEN_HOSTS];

    if (within == 0) within = (uint64_t)mesh->devices_per_host;
    if (within == 0 || (uint64_t)a / within == (uint64_t)b / within) return WF_WITHIN_HOST;
    return between == 0 || (uint64_t)a / between == (uint64_t)b / between ? WF_BETWEEN_HOSTS
                                                                          : WF_BEYOND;
}

/* The ranks along AXIS that are next to its first or, if LAST, its last rank, within a host. */
static int32_t ranks_near(const weft_mesh *mesh, const weft_cost_table *costs, int32_t axis,
                          bool last)
{
    int32_t coord[WEFT_MAX_AXES] = {0}, size = mesh->axis[axis].size, count = 1, end;

    if (last) coord[axis] = size - 1;
    end = wf_mesh_rank(mesh, coord);
    for (; count < size; count++) {
        coord[axis] += last ? -1 : 1;
        if (wf_link_between(mesh, costs, end, wf_mesh_rank(mesh, coord)) != WF_WITHIN_HOST) break;
    }
    return count;
}

/* Set the link of axis I of PROBLEM, which is AXIS of MESH, and its ranks on a host: the link is
 * that between its first and last rank. */
static void set_link(struct wf_problem *problem, const weft_mesh *mesh, int32_t axis, int32_t i)
{
    const weft_cost_table *costs = problem->costs;
    int32_t coord[WEFT_MAX_AXES] = {0};
    int32_t first, last;

    problem->link[i] = WF_WITHIN_HOST;
    problem->lanes[i] = mesh->axis[axis].size;
    if (mesh->devices_per_host == 0 && costs->domains[WF_WITHIN_HOST] == 0)
        return; /* hosts are not known */
    first = wf_mesh_rank(mesh, coord);
    coord[axis] = mesh->axis[axis].size - 1;
    last = wf_mesh_rank(mesh, coord);
    problem->link[i] = wf_link_between(mesh, costs, first, last);
    if (problem->link[i] == WF_WITHIN_HOST || !costs->shares_links) return;
    first = ranks_near(mesh, costs, axis, false);
    last = ranks_near(mesh, costs, axis, true);
    problem->lanes[i] = first < last ? first : last;
}

/* True if two splits of an axis differ in their dimensions and turns at most. */
static bool same_split(const struct wf_split *a, const struct wf_split *b)
{
    if (a->kind != b->kind || a->factor != b->factor || a->size_count != b->size_count)
        return false;
    return a->sizes == b->sizes ||
           memcmp(a->sizes, b->sizes, (size_t)a->size_count * sizeof a->sizes[0]) == 0;
}

/* The code of axis I, which SPLIT of side SIDE splits. */
static void set_split(struct wf_problem *problem, int side, int32_t i, const struct wf_split *split,
                      struct wf_code *code)
{
    problem->split[side][i] = *split;
    code->kind = WF_CODE_SHARD;
    if (split->kind == WEFT_PLACE_SHARD) return;
    code->kind = side == 0 || same_split(split, &problem->split[0][i]) ? WF_CODE_STRIDED_FROM
                                                                       : WF_CODE_STRIDED_TO;
    if (split->kind != WEFT_PLACE_SIZES) return;
    problem->most[side][i] = split->sizes[wf_split_most(split)];
    problem->least[side][i] = split->sizes[wf_split_least(split, (int32_t)problem->size[i])];
}

static void set_state(struct wf_problem *problem, const weft_spec *spec, int side,
                      struct wf_state *state)
{
    const struct wf_layout *layout = &spec->layout;
    uint8_t turns[WEFT_MAX_DIMS] = {0};

    memset(state, 0, sizeof *state);
    for (int32_t i = 0; i < problem->axes; i++) {
        const weft_placement *p = &layout->placements[problem->mesh_axis[i]];
        struct wf_code *code = &state->axis[i];
        problem->owner[side][i] = p->kind == WEFT_PLACE_OWNER ? p->owner : -1;
        if (p->kind == WEFT_PLACE_PARTIAL)
            *code = (struct wf_code){WF_CODE_PARTIAL, (uint8_t)p->reduction, 0, 0};
        if (p->kind == WEFT_PLACE_OWNER)
            *code = (struct wf_code){WF_CODE_OWNER, problem->owner[0][i] != p->owner, 0, 0};
    }
    for (int32_t s = 0; s < layout->split_count; s++) /* in the order of their turns */
        for (int32_t i = 0; i < problem->axes; i++) {
            const struct wf_split *split = &layout->splits[s];
            if (problem->mesh_axis[i] != split->axis) continue;
            set_split(problem, side, i, split, &state->axis[i]);
            state->axis[i].value = (uint8_t)split->dim;
            state->axis[i].turn = ++turns[split->dim];
        }
}

static weft_status check_partials(const struct wf_problem *problem)
{
    for (int32_t i = 0; i < problem->axes; i++) {
        struct wf_code from = problem->source.axis[i], to = problem->target.axis[i];
        if (from.kind == WF_CODE_PARTIAL && to.kind == WF_CODE_PARTIAL && from.value != to.value)
            return wf_fail(
                WEFT_ERR_UNSUPPORTED, "axis %d: P(%s) cannot become P(%s); go through R or a shard",
                problem->mesh_axis[i], wf_reduction_name(from.value), wf_reduction_name(to.value));
        if (from.kind == WF_CODE_PARTIAL && to.kind == WF_CODE_PARTIAL &&
            problem->cast == WF_CAST_NARROWS)
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "axis %d: P(%s) of %s cannot become P(%s) of %s, because each "
                           "contribution would be rounded before the reduction; go through R or a "
                           "shard, or keep the dtype",
                           problem->mesh_axis[i], wf_reduction_name(from.value),
                           wf_dtype_name(problem->from->layout.dtype), wf_reduction_name(to.value),
                           wf_dtype_name(problem->to->layout.dtype));
    }
    return WEFT_OK;
}

weft_status wf_problem_set(struct wf_problem *problem, const weft_spec *from, const weft_spec *to,
                           const weft_plan_options *options)
{
    const weft_mesh *mesh = from->layout.mesh;

    memset(problem, 0, sizeof *problem);
    problem->from = from;
    problem->to = to;
    problem->costs = options->costs != NULL ? options->costs : wf_cost_default();
    problem->minimize = options->minimize;
    problem->without = options->without;
    problem->memory_limit = options->memory_limit != 0 ? options->memory_limit : UINT64_MAX;
    for (int32_t a = 0; a < mesh->axes; a++) {
        if (mesh->axis[a].size == 1) continue;
        problem->mesh_axis[problem->axes] = a;
        problem->size[problem->axes] = mesh->axis[a].size;
        set_link(problem, mesh, a, problem->axes++);
    }
    problem->dims = from->layout.dims;
    memcpy(problem->shape, from->layout.shape, sizeof problem->shape);
    problem->elements[0] = wf_dtype_bytes(from->layout.dtype);
    problem->elements[1] = wf_dtype_bytes(to->layout.dtype);
    problem->cast = wf_cast_kind(from->layout.dtype, to->layout.dtype);
    problem->steps_max = WF_PATH_MAX;
    problem->wide = options->minimize != WEFT_MINIMIZE_TIME && mesh->size <= WF_LOADS_MAX;
    set_state(problem, from, 0, &problem->source);
    set_state(problem, to, 1, &problem->target);
    problem->target.cast = problem->cast != WF_CAST_NONE;
    return check_partials(problem);
}

static weft_placement placement_of(const struct wf_problem *problem, int32_t axis,
                                   struct wf_code code)
{
    const struct wf_split *split = wf_code_split(problem, axis, code);

    switch (code.kind) {
    case WF_CODE_REPLICATE:
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    case WF_CODE_PARTIAL:
        return (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = code.value};
    case WF_CODE_OWNER:
        return (weft_placement){.kind = WEFT_PLACE_OWNER,
                                .owner = problem->owner[code.value][axis]};
    case WF_CODE_SHARD:
        return (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = code.value, .turn = code.turn - 1};
    default:
        return (weft_placement){.kind = split->kind,
                                .dim = code.value,
                                .turn = code.turn - 1,
                                .factor = split->factor,
                                .sizes = split->sizes,
                                .size_count = (size_t)split->size_count};
    }
}

weft_status wf_problem_layout(const struct wf_problem *problem, const struct wf_state *state,
                              struct wf_layout *out)
{
    const struct wf_layout *like = state->cast ? &problem->to->layout : &problem->from->layout;

    memset(out, 0, offsetof(struct wf_layout, splits)); /* wf_layout_settle sets these */
    out->mesh = like->mesh;
    out->axes = like->axes;
    memcpy(out->ranks, like->ranks, sizeof out->ranks);
    out->dtype = like->dtype;
    out->dims = like->dims;
    memcpy(out->shape, like->shape, sizeof out->shape);
    for (int32_t i = 0; i < problem->axes; i++)
        out->placements[problem->mesh_axis[i]] = placement_of(problem, i, state->axis[i]);
    return wf_layout_settle(out);
}

weft_status wf_problem_spec(const struct wf_problem *problem, const struct wf_state *state,
                            weft_spec **out)
{
    struct wf_layout layout;

    if (wf_state_same(state, &problem->source)) {
        *out = weft_spec_retain(problem->from);
        return WEFT_OK;
    }
    if (wf_state_same(state, &problem->target)) {
        *out = weft_spec_retain(problem->to);
        return WEFT_OK;
    }
    WF_TRY(wf_problem_layout(problem, state, &layout));
    return wf_spec_intern(&layout, out);
}

uint32_t wf_problem_mesh_axes(const struct wf_problem *problem, uint32_t axes)
{
    uint32_t mesh_axes = 0;

    for (int32_t i = 0; i < problem->axes; i++)
        if (axes >> i & 1) mesh_axes |= UINT32_C(1) << problem->mesh_axis[i];
    return mesh_axes;
}

bool wf_problem_counts(const struct wf_problem *problem)
{
    return (problem->minimize == WEFT_MINIMIZE_MEMORY || problem->memory_limit != UINT64_MAX) &&
           problem->from->layout.mesh->size <= WF_LOADS_MAX;
}

weft_status wf_problem_scratch(const struct wf_problem *problem, const struct wf_state *from,
                               const struct wf_edge *edge, struct wf_price *price,
                               int64_t *messages)
{
    struct wf_step step = {.kind = edge->kind, .axes = wf_problem_mesh_axes(problem, edge->axes)};
    int64_t compared = 0;
    weft_status status;
    bool counted;

    if (!wf_problem_counts(problem)) return WEFT_OK;
    status = wf_problem_spec(problem, from, &step.from);
    if (status == WEFT_OK) status = wf_problem_spec(problem, &edge->to, &step.to);
    if (status == WEFT_OK)
        status = wf_step_scratch(
            &step, problem->costs->one_sided, wf_state_same(from, &problem->source),
            wf_state_same(&edge->to, &problem->target), &price->scratch, &compared, &counted);
    *messages += compared;
    weft_spec_release(&step.from);
    weft_spec_release(&step.to);
    return status;
}
