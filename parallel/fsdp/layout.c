/* layout.c - layouts of gathered parameters and of gradients, derived from those of parameters. */
#include "fsdp.h"

#include <stdio.h>
#include <string.h>

/* The axes of MESH that TEXT lists, in its order. */
static weft_status list_axes(const weft_mesh *mesh, const char *text, int32_t *axes, int32_t *count)
{
    uint32_t taken = 0;

    for (const char *at = text;; at += strcspn(at, ",") + 1) {
        size_t length = strcspn(at, ",");
        char name[128];
        int32_t axis = 0;

        snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 100, at);
        WF_TRY(weft_mesh_find_axis(mesh, name, &axis));
        if ((taken >> axis & 1) != 0)
            return wf_fail(WEFT_ERR_INVALID, "axes \"%.100s\", position %zu: %s is listed twice",
                           text, (size_t)(at - text) + 1, wf_axis_text(mesh, axis).text);
        taken |= 1U << axis;
        axes[(*count)++] = axis;
        if (at[length] == '\0') return WEFT_OK;
    }
}

weft_status wf_fsdp_axes(const weft_mesh *mesh, const char *text, uint32_t *out)
{
    int32_t axes[WEFT_MAX_AXES], count = 0;

    *out = 0;
    if (text == NULL || text[0] == '\0') return WEFT_OK;
    WF_TRY(list_axes(mesh, text, axes, &count));
    for (int32_t i = 0; i < count; i++)
        *out |= 1U << axes[i];
    return WEFT_OK;
}

weft_status wf_fsdp_apart(const weft_mesh *mesh, uint32_t shards, uint32_t replicates,
                          const char *shard, const char *replicate)
{
    if ((shards & replicates) == 0) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID,
                   "%s is a shard axis (\"%s\") and a replicate axis (\"%s\"); list it in one of "
                   "them",
                   wf_axis_text(mesh, __builtin_ctz(shards & replicates)).text, shard, replicate);
}

static weft_status make_spec(const weft_spec *spec, const weft_mesh *mesh,
                             const weft_placement *placements, int32_t dtype, weft_spec **out)
{
    return weft_spec_create(mesh, dtype >= 0 ? (enum weft_dtype)dtype : weft_spec_dtype(spec),
                            weft_spec_dims(spec), weft_spec_shape(spec), placements, out);
}

weft_status wf_fsdp_replace(const weft_spec *spec, uint32_t axes, weft_placement placement,
                            int32_t dtype, weft_spec **out)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    weft_placement placements[WEFT_MAX_AXES];

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        placements[a] = (axes >> a & 1) != 0 ? placement : weft_spec_placements(spec)[a];
    return make_spec(spec, mesh, placements, dtype, out);
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

static bool splits(const weft_placement *placement)
{
    return placement->kind == WEFT_PLACE_SHARD || placement->kind == WEFT_PLACE_STRIDED ||
           placement->kind == WEFT_PLACE_PARTS || placement->kind == WEFT_PLACE_SIZES;
}

/* The placement of what is kept, on an axis after those that split the dimension already. */
static weft_placement kept_placement(const weft_spec *gathered, const weft_placement *stored)
{
    weft_placement placement = {.kind = WEFT_PLACE_SHARD, .dim = splits(stored) ? stored->dim : 0};

    if (weft_spec_dims(gathered) == 0 || stored->kind == WEFT_PLACE_REPLICATE)
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    placement.turn = WEFT_MAX_AXES;
    return placement;
}

weft_status wf_fsdp_kept_spec(const weft_spec *gathered, const weft_placement *placement,
                              int32_t axis, int32_t ranks, weft_spec **out)
{
    const weft_placement *given = weft_spec_placements(gathered);
    const weft_mesh *mesh = weft_spec_mesh(gathered);
    int32_t sizes[2] = {weft_mesh_axis_size(mesh, axis) / ranks, ranks};
    char names[2][2 * WEFT_MAX_AXIS_NAME];
    const char *const both[2] = {names[0], names[1]};
    weft_placement placements[WEFT_MAX_AXES + 1];
    bool named = weft_mesh_axis_name(mesh, axis)[0] != '\0';
    weft_mesh *split = NULL;
    weft_status status;

    if (weft_mesh_axes(mesh) == WEFT_MAX_AXES)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "the mesh has %d axes; a part can be kept on a mesh "
                       "of fewer than that only",
                       WEFT_MAX_AXES);
    for (int i = 0; i < 2; i++) /* no other axis of the mesh has these names */
        snprintf(names[i], sizeof names[i], "_%d%d_%.*s", axis, i, WEFT_MAX_AXIS_NAME - 4,
                 weft_mesh_axis_name(mesh, axis));
    WF_TRY(weft_mesh_unflatten(mesh, axis, 2, sizes, named ? both : NULL, &split));
    memcpy(placements, given, (size_t)(axis + 1) * sizeof *placements);
    placements[axis + 1] = kept_placement(gathered, placement);
    for (int32_t a = axis + 1; a < weft_mesh_axes(mesh); a++)
        placements[a + 1] = given[a];
    status = make_spec(gathered, split, placements, -1, out);
    weft_mesh_release(&split);
    return status;
}

/* ---- the stored layout ---- */

static weft_status check_replicated(const weft_spec *spec, uint32_t axes)
{
    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if ((axes >> a & 1) != 0 && weft_spec_placements(spec)[a].kind != WEFT_PLACE_REPLICATE)
            return wf_fail(WEFT_ERR_INVALID,
                           "spec has another placement than R on %s, so it cannot be split "
                           "along this axis again",
                           wf_axis_text(weft_spec_mesh(spec), a).text);
    return WEFT_OK;
}

weft_status weft_fsdp_shard_spec(const weft_spec *spec, const char *axes, int32_t dim,
                                 weft_spec **out)
{
    static const char what[] = "weft_fsdp_shard_spec";
    weft_placement placements[WEFT_MAX_AXES];
    int32_t listed[WEFT_MAX_AXES], count = 0, turn = 0;
    const weft_mesh *mesh;
    uint32_t set = 0;

    WF_TRY(weft_object_check(spec, "weft_spec", what, "spec"));
    if (axes == NULL) return wf_fail_null(what, "axes");
    if (out == NULL) return wf_fail_null(what, "out");
    mesh = weft_spec_mesh(spec);
    if (dim < 0 || dim >= weft_spec_dims(spec))
        return wf_fail(WEFT_ERR_INVALID, "%s: dim is %d; the tensor has %d dimension%s", what, dim,
                       weft_spec_dims(spec), weft_spec_dims(spec) == 1 ? "" : "s");
    WF_TRY(wf_fail_named(list_axes(mesh, axes, listed, &count), what));
    WF_TRY(wf_fail_named(wf_fsdp_axes(mesh, axes, &set), what));
    WF_TRY(wf_fail_named(check_replicated(spec, set), what));
    memcpy(placements, weft_spec_placements(spec),
           (size_t)weft_mesh_axes(mesh) * sizeof *placements);
    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if (splits(&placements[a]) && placements[a].dim == dim) turn++;
    for (int32_t i = 0; i < count; i++)
        placements[listed[i]] =
            (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = dim, .turn = turn + i};
    return wf_fail_named(make_spec(spec, mesh, placements, -1, out), what);
}
