/* share.c - one rank's share of a step, for communicators and for the simulation. */
#include "exec.h"

#include <string.h>

static const weft_placement *placement_of(const weft_spec *spec, int32_t axis)
{
    return &spec->layout.placements[axis];
}

static bool one_mesh(const struct wf_step *step)
{
    return step->from->layout.mesh == step->to->layout.mesh;
}

/* True if the step creates the partial of AXIS of the target's mesh. */
static bool makes_partial(const struct wf_step *step, int32_t axis)
{
    if (step->created >> axis & 1) return true;
    return placement_of(step->to, axis)->kind == WEFT_PLACE_PARTIAL &&
           !(one_mesh(step) && placement_of(step->from, axis)->kind == WEFT_PLACE_PARTIAL);
}

uint32_t wf_step_created_partials(const struct wf_step *step)
{
    uint32_t axes = 0;

    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++)
        if (makes_partial(step, a)) axes |= UINT32_C(1) << a;
    return axes;
}

/* The reduction of the partials that the step creates. */
static uint32_t made_reduction(const struct wf_step *step)
{
    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++)
        if (makes_partial(step, a) && placement_of(step->to, a)->reduction != WEFT_REDUCE_AVG)
            return placement_of(step->to, a)->reduction;
    return WEFT_REDUCE_SUM;
}

bool wf_step_is_local(const struct wf_step *step)
{
    return step->kind == WEFT_STEP_SLICE || step->kind == WEFT_STEP_PARTIAL;
}

bool wf_step_needs_dense_output(const struct wf_step *step)
{
    if (step->kind == WEFT_STEP_ALL_REDUCE || step->kind == WEFT_STEP_PARTIAL ||
        step->kind == WEFT_STEP_BROADCAST || step->kind == WEFT_STEP_REDUCE)
        return true;
    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++)
        if (makes_partial(step, a)) return true;
    return false;
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

/* The effect of a local step on the value: replicas become partials that coordinate 0 holds, an
 * owner's shard becomes a partial that the owner holds, and a shard becomes a contribution to a
 * sum, with zeros around it. */
static void place_partials(const struct wf_step *step, int32_t rank, struct wf_share *out)
{
    int32_t coord[WEFT_MAX_AXES];

    if (step->kind != WEFT_STEP_PARTIAL && step->created == 0) return;
    if (!wf_mesh_coord(step->to->layout.mesh, rank, coord)) return;
    for (int32_t a = 0; a < step->to->layout.mesh->axes; a++) {
        if (!makes_partial(step, a)) continue;
        if (placement_of(step->from, a)->kind == WEFT_PLACE_OWNER) {
            if (coord[a] != placement_of(step->from, a)->owner)
                out->filled = out->parts.identity = true;
        } else if (wf_placement_splits(placement_of(step->from, a)))
            out->filled = true;
        else if (placement_of(step->to, a)->reduction != WEFT_REDUCE_AVG && coord[a] != 0)
            out->filled = out->parts.identity = true;
    }
}

static weft_status share_locally(const struct wf_step *step, int32_t rank,
                                 const int64_t *in_strides, const int64_t *out_strides,
                                 struct wf_share *out)
{
    int64_t a_strides[WEFT_MAX_DIMS], b_strides[WEFT_MAX_DIMS];
    struct wf_region_list list = {0};
    struct wf_shard a, b;
    weft_status status;

    out->parts.holders = 1;
    out->parts.divisor = 1;
    place_partials(step, rank, out);
    if (out->parts.identity) return WEFT_OK;
    wf_shard_of(step->from, rank, &a);
    wf_shard_of(step->to, rank, &b);
    wf_row_major(a.dims, a.shape, a_strides);
    wf_row_major(b.dims, b.shape, b_strides);
    out->parts.ranks = wf_alloc(sizeof *out->parts.ranks);
    if (out->parts.ranks == NULL) return wf_fail_memory(sizeof *out->parts.ranks);
    out->parts.ranks[out->parts.rank_count++] = rank;
    status = wf_regions_add(&list, &a, in_strides != NULL ? in_strides : a_strides, &b,
                            out_strides != NULL ? out_strides : b_strides, 0, 0);
    out->parts.regions = list.regions;
    out->parts.region_count = list.count;
    return status;
}

weft_status wf_share_of(const struct wf_step *step, int32_t rank, const int64_t *in_strides,
                        const int64_t *out_strides, struct wf_share *out)
{
    struct wf_shard shard;
    weft_status status;

    memset(out, 0, sizeof *out);
    wf_shard_of(step->to, rank, &shard);
    out->elements = shard.elements;
    out->fill = made_reduction(step);
    if (!wf_step_is_local(step)) {
        WF_TRY(wf_parts_read(step->from, step->to, rank, out_strides, &out->parts));
        out->filled = out->parts.identity;
        return WEFT_OK;
    }
    status = share_locally(step, rank, in_strides, out_strides, out);
    if (status != WEFT_OK) wf_share_free(out);
    return status;
}

void wf_share_free(struct wf_share *share)
{
    wf_parts_free(&share->parts);
}
