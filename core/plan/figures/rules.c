/* rules.c - what a step does, told from the step alone. */
#include "figures.h"

uint32_t wf_step_dim_axes(const struct wf_step *step, int32_t dim)
{
    return wf_layout_axes(&step->from->layout, dim) | wf_layout_axes(&step->to->layout, dim);
}

bool wf_step_keeps_partial(const struct wf_step *step, int32_t axis)
{
    const struct wf_layout *from = &step->from->layout, *to = &step->to->layout;

    return from->mesh == to->mesh && from->placements[axis].kind == WEFT_PLACE_PARTIAL &&
           to->placements[axis].kind == WEFT_PLACE_PARTIAL;
}

uint32_t wf_step_made(const struct wf_step *step)
{
    const struct wf_layout *to = &step->to->layout;
    uint32_t made = 0;

    for (int32_t a = 0; a < to->mesh->axes; a++)
        if (to->placements[a].kind == WEFT_PLACE_PARTIAL && !wf_step_keeps_partial(step, a) &&
            to->placements[a].reduction != WEFT_REDUCE_AVG)
            made |= UINT32_C(1) << a;
    return made;
}

uint64_t wf_step_holders(const struct wf_step *step)
{
    const struct wf_layout *from = &step->from->layout;
    uint64_t holders = 1;

    for (int32_t a = 0; a < from->mesh->axes; a++)
        if (from->placements[a].kind == WEFT_PLACE_PARTIAL && !wf_step_keeps_partial(step, a))
            holders *= (uint64_t)from->mesh->axis[a].size;
    return holders;
}

uint64_t wf_step_ranks(const struct wf_step *step)
{
    const weft_mesh *mesh = step->from->layout.mesh;
    uint64_t ranks = 1;

    for (int32_t a = 0; a < mesh->axes; a++)
        if (step->axes >> a & 1) ranks *= (uint64_t)mesh->axis[a].size;
    return ranks;
}

bool wf_layout_is_regular(const struct wf_layout *layout)
{
    int64_t parts[WEFT_MAX_DIMS];

    for (int32_t d = 0; d < layout->dims; d++)
        parts[d] = 1;
    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        const weft_placement *p = &layout->placements[a];
        if (layout->mesh->axis[a].size == 1 || p->kind == WEFT_PLACE_REPLICATE ||
            p->kind == WEFT_PLACE_PARTIAL)
            continue;
        if (p->kind != WEFT_PLACE_SHARD) return false;
        parts[p->dim] *= layout->mesh->axis[a].size;
    }
    for (int32_t d = 0; d < layout->dims; d++)
        if (layout->shape[d] % parts[d] != 0) return false;
    return true;
}

/* ---- gathers and scatters of whole shards, under any name ---- */

static const weft_placement *placement_of(const weft_spec *spec, int32_t axis)
{
    return &spec->layout.placements[axis];
}

static bool one_mesh(const struct wf_step *step)
{
    return step->from->layout.mesh == step->to->layout.mesh;
}

/* The axis that splits the result of split INDEX, or -1.  Axes of one rank do not split. */
static int32_t next_inside(const struct wf_layout *layout, int32_t index)
{
    for (int32_t i = index + 1; i < layout->split_count; i++) {
        if (layout->splits[i].dim != layout->splits[index].dim) break;
        if (layout->mesh->axis[layout->splits[i].axis].size > 1) return layout->splits[i].axis;
    }
    return -1;
}

/* True if all axes of AXES split SPEC, inside of all other axes that split the same dimension. */
static bool splits_innermost(const weft_spec *spec, uint32_t axes)
{
    const struct wf_layout *layout = &spec->layout;
    uint32_t found = 0;

    for (int32_t i = 0; i < layout->split_count; i++) {
        int32_t inside = next_inside(layout, i);
        if (!(axes >> layout->splits[i].axis & 1)) continue;
        if (inside >= 0 && !(axes >> inside & 1)) return false;
        found |= UINT32_C(1) << layout->splits[i].axis;
    }
    return found == axes;
}

/* Number of axes that split the dimension of AXIS before it, without those of AXES and those of one
 * rank. */
static int32_t splits_before(const weft_spec *spec, int32_t axis, uint32_t axes)
{
    const weft_placement *mine = placement_of(spec, axis);
    int32_t count = 0;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
        const weft_placement *p = placement_of(spec, a);
        if (wf_placement_splits(p) && p->dim == mine->dim && p->turn < mine->turn)
            count += spec->layout.mesh->axis[a].size > 1 && !(axes >> a & 1);
    }
    return count;
}

/* True if AXIS is placed in the same way before and after, apart from the step's axes. */
static bool axis_stays(const struct wf_step *step, int32_t axis)
{
    weft_placement from = *placement_of(step->from, axis), to = *placement_of(step->to, axis);

    if (step->from->layout.mesh->axis[axis].size == 1) return true;
    from.turn = to.turn = 0;
    return wf_placement_same(&from, &to) &&
           (!wf_placement_splits(&from) || splits_before(step->from, axis, step->axes) ==
                                               splits_before(step->to, axis, step->axes));
}

/* Are the step's axes of KIND in SPEC, and do all other axes, except those of one rank, stay
 * unchanged? */
static bool only_axes_of_kind(const struct wf_step *step, const weft_spec *spec, uint32_t kind)
{
    if (!one_mesh(step) || step->axes == 0) return false;
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++) {
        if (step->axes >> a & 1) {
            if (placement_of(spec, a)->kind != kind) return false;
        } else if (!axis_stays(step, a)) {
            return false;
        }
    }
    return true;
}

bool wf_step_gathers_shards(const struct wf_step *step)
{
    return only_axes_of_kind(step, step->to, WEFT_PLACE_REPLICATE) &&
           splits_innermost(step->from, step->axes);
}

bool wf_step_sends_copies(const struct wf_step *step)
{
    for (int32_t a = 0; one_mesh(step) && a < step->to->layout.mesh->axes; a++) {
        const weft_placement *to = placement_of(step->to, a);
        bool all_want = to->kind == WEFT_PLACE_REPLICATE ||
                        (to->kind == WEFT_PLACE_PARTIAL && to->reduction == WEFT_REDUCE_AVG);
        if (all_want &&
            (wf_placement_splits(placement_of(step->from, a)) ||
             placement_of(step->from, a)->kind == WEFT_PLACE_OWNER) &&
            step->to->layout.mesh->axis[a].size > 1)
            return true;
    }
    return false;
}

bool wf_step_scatters_shards(const struct wf_step *step)
{
    return only_axes_of_kind(step, step->from, WEFT_PLACE_PARTIAL) &&
           splits_innermost(step->to, step->axes);
}
