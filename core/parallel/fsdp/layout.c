/* layout.c - layouts of gathered parameters and of gradients, derived from those of parameters. */
#include "fsdp.h"

#include <stdio.h>
#include <string.h>

weft_status wf_fsdp_axes(const weft_mesh *mesh, const char *text, uint32_t *out)
{
    int32_t axes[WEFT_MAX_AXES], count = 0;

    *out = 0;
    if (text == NULL || text[0] == '\0') return WEFT_OK;
    WF_TRY(wf_mesh_read_axes(mesh, text, axes, &count));
    for (int32_t i = 0; i < count; i++)
        *out |= 1U << axes[i];
    return WEFT_OK;
}

static weft_status make_spec(const weft_spec *spec, const weft_mesh *mesh,
                             const weft_placement *placements, int32_t dtype, weft_spec **out)
{
    const struct wf_layout *layout = &spec->layout;

    return weft_spec_create(mesh, (enum weft_dtype)(dtype >= 0 ? (uint32_t)dtype : layout->dtype),
                            layout->dims, layout->shape, placements, out);
}

weft_status wf_fsdp_replace(const weft_spec *spec, uint32_t axes, weft_placement placement,
                            int32_t dtype, weft_spec **out)
{
    const struct wf_layout *layout = &spec->layout;
    weft_placement placements[WEFT_MAX_AXES];

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        placements[a] = (axes >> a & 1) != 0 ? placement : layout->placements[a];
    return make_spec(spec, layout->mesh, placements, dtype, out);
}

weft_status wf_fsdp_partial(const weft_spec *spec, uint32_t axes, uint32_t op, int32_t dtype,
                            weft_spec **out)
{
    const weft_placement partial = {.kind = WEFT_PLACE_PARTIAL, .reduction = op};

    return wf_fsdp_replace(spec, axes, partial, dtype, out);
}

void wf_fsdp_clear_route(struct wf_fsdp_route *route)
{
    weft_spec_release(&route->given);
    weft_spec_release(&route->from);
    weft_spec_release(&route->to);
}

/* ---- a part of a gathered parameter ---- */

/* The placement of what is kept, on an axis after those that split the dimension already. */
static weft_placement kept_placement(const weft_spec *gathered, const weft_placement *stored)
{
    bool splits = wf_placement_splits(stored);
    weft_placement placement = {.kind = WEFT_PLACE_SHARD, .dim = splits ? stored->dim : 0};

    if (gathered->layout.dims == 0 || stored->kind == WEFT_PLACE_REPLICATE)
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    placement.turn = WEFT_MAX_AXES + 1;
    return placement;
}

weft_status wf_fsdp_kept_spec(const weft_spec *gathered, const weft_placement *placement,
                              int32_t axis, int32_t ranks, weft_spec **out)
{
    const weft_mesh *mesh = gathered->layout.mesh;
    int32_t sizes[2] = {weft_mesh_axis_size(mesh, axis) / ranks, ranks};
    char names[2][2 * WEFT_MAX_AXIS_NAME];
    const char *const both[2] = {names[0], names[1]};
    weft_placement placements[WEFT_MAX_AXES + 1];
    bool named = weft_mesh_axis_name(mesh, axis)[0] != '\0';
    weft_mesh *split = NULL;
    weft_status status;

    if (mesh->axes == WEFT_MAX_AXES)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "the mesh has %d axes; a part can be kept on a mesh "
                       "of fewer than that only",
                       WEFT_MAX_AXES);
    for (int i = 0; i < 2; i++) /* no other axis of the mesh has these names */
        snprintf(names[i], sizeof names[i], "_%d%d_%.*s", axis, i, WEFT_MAX_AXIS_NAME - 4,
                 weft_mesh_axis_name(mesh, axis));
    WF_TRY(weft_mesh_unflatten(mesh, axis, 2, sizes, named ? both : NULL, &split));
    memcpy(placements, gathered->layout.placements, (size_t)(axis + 1) * sizeof *placements);
    placements[axis + 1] = kept_placement(gathered, placement);
    for (int32_t a = axis + 1; a < mesh->axes; a++)
        placements[a + 1] = gathered->layout.placements[a];
    status = make_spec(gathered, split, placements, -1, out);
    weft_mesh_release(&split);
    return status;
}

/* ---- the stored layout ---- */

static weft_status check_replicated(const weft_spec *spec, uint32_t axes)
{
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if ((axes >> a & 1) != 0 && spec->layout.placements[a].kind != WEFT_PLACE_REPLICATE)
            return wf_fail(WEFT_ERR_INVALID,
                           "spec has another placement than R on axis %d, so it cannot be split "
                           "along this axis again",
                           a);
    return WEFT_OK;
}

weft_status weft_fsdp_shard_spec(const weft_spec *spec, const char *axes, int32_t dim,
                                 weft_spec **out)
{
    static const char what[] = "weft_fsdp_shard_spec";
    weft_placement placements[WEFT_MAX_AXES];
    int32_t listed[WEFT_MAX_AXES], count = 0, turn = 1;
    uint32_t set = 0;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_fsdp_shard_spec: spec"));
    if (axes == NULL) return wf_fail_null(what, "axes");
    if (out == NULL) return wf_fail_null(what, "out");
    if (dim < 0 || dim >= spec->layout.dims)
        return wf_fail(WEFT_ERR_INVALID, "%s: dim is %d; the tensor has %d dimensions", what, dim,
                       spec->layout.dims);
    WF_TRY(wf_fail_named(wf_mesh_read_axes(spec->layout.mesh, axes, listed, &count), what));
    WF_TRY(wf_fail_named(wf_fsdp_axes(spec->layout.mesh, axes, &set), what));
    WF_TRY(wf_fail_named(check_replicated(spec, set), what));
    memcpy(placements, spec->layout.placements, sizeof placements);
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (wf_placement_splits(&placements[a]) && placements[a].dim == dim) turn++;
    for (int32_t i = 0; i < count; i++)
        placements[listed[i]] =
            (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = dim, .turn = turn + i};
    return wf_fail_named(make_spec(spec, spec->layout.mesh, placements, -1, out), what);
}
