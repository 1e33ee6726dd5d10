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
        WF_TRY(wf_parts_read(step->from, step->to, step->living, rank, out_strides, &out->parts));
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
