/* refine.c - two reshapes of one rank list as one mesh.
 *
 * A mesh of 8 and one of 2x4 have the same ranks in the same order and differ only in their axes.
 * Both are split into their common refinement, here 2x4, and the specs are expressed on it if
 * possible.  The planner then has all steps of a single mesh, and sees which elements need no
 * step. */
#include "plan.h"

#include <string.h>

/* The axes of the common refinement, and the axis of either mesh that each is a part of. */
struct common {
    int32_t count;
    int32_t size[WEFT_MAX_AXES];
    int32_t of[2][WEFT_MAX_AXES];
};

/* The rest of the current axis in a walk over a mesh. */
struct rest {
    int32_t axis, size;
};

/* Go to the next axis with more than one rank, if this one is used up. */
static void advance_rest(const weft_mesh *mesh, struct rest *rest)
{
    while (rest->size == 1 && rest->axis + 1 < mesh->axes)
        rest->size = mesh->axis[++rest->axis].size;
}

/* False if the axes of one mesh cut across an axis of the other. */
static bool find_common(const weft_mesh *a, const weft_mesh *b, struct common *out)
{
    struct rest left = {-1, 1}, right = {-1, 1};

    out->count = 0;
    if (a->size != b->size) return false;
    for (;;) {
        int32_t part;
        advance_rest(a, &left);
        advance_rest(b, &right);
        part = left.size < right.size ? left.size : right.size;
        if (part == 1) break;
        if (left.size % part != 0 || right.size % part != 0 || out->count == WEFT_MAX_AXES)
            return false;
        out->size[out->count] = part;
        out->of[0][out->count] = left.axis;
        out->of[1][out->count++] = right.axis;
        left.size /= part;
        right.size /= part;
    }
    if (out->count == 0) { /* one rank */
        out->size[0] = 1;
        out->of[0][0] = out->of[1][0] = 0;
        out->count = 1;
    }
    return true;
}

static int32_t parts_of(const struct common *common, const int32_t *of, int32_t axis)
{
    int32_t parts = 0;

    for (int32_t i = 0; i < common->count; i++)
        parts += of[i] == axis;
    return parts;
}

/* Chunks of chunks are chunks if every division is even. */
static bool divides_evenly(const struct wf_layout *layout, int32_t dim)
{
    int64_t parts = 1;

    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        const weft_placement *p = &layout->placements[a];
        if (!wf_placement_splits(p) || p->dim != dim) continue;
        if (p->kind != WEFT_PLACE_SHARD) return false;
        parts *= layout->mesh->axis[a].size;
    }
    return layout->shape[dim] % parts == 0;
}

/* True if AXIS may be split into several axes.  Contributions may be counted along any axes. */
static bool may_cut(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];

    return !wf_placement_splits(p) || divides_evenly(layout, p->dim);
}

/* The owner's coordinate on axis INDEX of COMMON, which is a part of the axis with placement P. */
static int32_t part_owner(const struct common *common, const int32_t *of, int32_t index,
                          const weft_placement *p)
{
    int32_t inside = 1;

    for (int32_t i = index + 1; i < common->count; i++)
        if (of[i] == of[index]) inside *= common->size[i];
    return p->owner / inside % common->size[index];
}

/* SPEC on MESH, whose axes are those of COMMON; *OUT is NULL if SPEC cannot be expressed there. */
static weft_status write_down(const weft_spec *spec, const struct common *common, const int32_t *of,
                              const weft_mesh *mesh, weft_spec **out)
{
    struct wf_layout layout = spec->layout;

    *out = NULL;
    layout.mesh = mesh;
    memset(layout.placements, 0, sizeof layout.placements);
    for (int32_t i = 0; i < common->count; i++) {
        const weft_placement *p = &spec->layout.placements[of[i]];
        if (parts_of(common, of, of[i]) > 1 && !may_cut(&spec->layout, of[i])) return WEFT_OK;
        layout.placements[i] = *p;
        if (p->kind == WEFT_PLACE_OWNER) layout.placements[i].owner = part_owner(common, of, i, p);
        if (wf_placement_splits(p)) layout.placements[i].turn = p->turn * WEFT_MAX_AXES + i;
    }
    return wf_spec_intern(&layout, out);
}

/* The mesh of COMMON's axes with MESH's ranks.  Axes keep MESH's names if all of them are MESH's
 * own. */
static weft_status reshape_mesh(const weft_mesh *mesh, const struct common *common, weft_mesh **out)
{
    const char *names[WEFT_MAX_AXES];
    bool named = true;

    for (int32_t i = 0; i < common->count; i++) {
        names[i] = mesh->axis[common->of[0][i]].name;
        named =
            named && names[i][0] != '\0' && parts_of(common, common->of[0], common->of[0][i]) == 1;
    }
    return wf_mesh_reshape(mesh, common->count, common->size, named ? names : NULL, out);
}

/* Both refinements must be one mesh: then ranks, order and hosts are the same. */
static weft_status join_meshes(const weft_spec *from, const weft_spec *to,
                               const struct common *common, weft_mesh **out)
{
    weft_mesh *mine = NULL, *theirs = NULL;
    const char *names[WEFT_MAX_AXES];
    weft_status status = reshape_mesh(from->layout.mesh, common, &mine);

    for (int32_t i = 0; status == WEFT_OK && i < common->count; i++)
        names[i] = mine->axis[i].name;
    if (status == WEFT_OK)
        status = wf_mesh_reshape(to->layout.mesh, common->count, common->size,
                                 names[0][0] != '\0' ? names : NULL, &theirs);
    if (status == WEFT_OK) *out = mine == theirs ? weft_mesh_retain(mine) : NULL;
    weft_mesh_release(&mine);
    weft_mesh_release(&theirs);
    return status;
}

weft_status wf_refine(const weft_spec *from, const weft_spec *to, weft_spec **from_out,
                      weft_spec **to_out)
{
    struct common common;
    weft_mesh *mesh = NULL;
    weft_status status;

    *from_out = *to_out = NULL;
    if (!find_common(from->layout.mesh, to->layout.mesh, &common)) return WEFT_OK;
    WF_TRY(join_meshes(from, to, &common, &mesh));
    if (mesh == NULL) return WEFT_OK;
    status = write_down(from, &common, common.of[0], mesh, from_out);
    if (status == WEFT_OK && *from_out != NULL)
        status = write_down(to, &common, common.of[1], mesh, to_out);
    if (*to_out == NULL) weft_spec_release(from_out);
    weft_mesh_release(&mesh);
    return status;
}
