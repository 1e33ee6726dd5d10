/* derive.c - meshes from meshes.
 *
 * A regular mesh gives a regular one by rearranging modes.  A listed one, or a change that strides
 * cannot express, is made from a list of ranks, in which build.c looks for strides again. */
#include "mesh.h"

#include <string.h>

static bool is_named(const weft_mesh *mesh)
{
    return mesh->axis[0].name[0] != '\0';
}

/* The axes of a new mesh: each is a list of old axes, the last varying fastest. */
struct regrouping {
    int32_t count, sizes[WEFT_MAX_AXES];
    int32_t members[WEFT_MAX_AXES][WEFT_MAX_AXES], member_count[WEFT_MAX_AXES];
    const char *names[WEFT_MAX_AXES];
};

static void add_group(struct regrouping *to, const weft_mesh *mesh, int32_t count,
                      const int32_t *axes)
{
    int32_t at = to->count++;

    to->sizes[at] = 1;
    to->member_count[at] = count;
    to->names[at] = mesh->axis[axes[0]].name;
    for (int32_t i = 0; i < count; i++) {
        to->members[at][i] = axes[i];
        to->sizes[at] *= mesh->axis[axes[i]].size;
    }
}

static void move_modes(const weft_mesh *mesh, const struct regrouping *to, weft_mesh *draft)
{
    for (int32_t i = 0; i < to->count; i++)
        for (int32_t j = 0; j < to->member_count[i]; j++)
            for (int32_t k = 0; k < mesh->mode_count; k++)
                if (mesh->modes[k].axis == to->members[i][j])
                    wf_mesh_add_mode(draft, i, mesh->modes[k].size, mesh->modes[k].stride);
}

static weft_status move_ranks(const weft_mesh *mesh, const struct regrouping *to,
                              const int32_t *origin, weft_mesh *draft)
{
    int32_t coord[WEFT_MAX_AXES];

    WF_TRY(wf_mesh_give_list(draft));
    memcpy(coord, origin, sizeof coord);
    for (int32_t position = 0; position < draft->size; position++) {
        int32_t rest = position;
        for (int32_t i = to->count - 1; i >= 0; i--)
            for (int32_t j = to->member_count[i] - 1; j >= 0; j--) {
                int32_t axis = to->members[i][j];
                coord[axis] = rest % mesh->axis[axis].size;
                rest /= mesh->axis[axis].size;
            }
        draft->ranks[position] = wf_mesh_rank(mesh, coord);
    }
    return WEFT_OK;
}

/* The mesh of the axes in TO whose first rank has coordinate ORIGIN in MESH. */
static weft_status regroup_axes(const weft_mesh *mesh, const struct regrouping *to,
                                const int32_t *origin, weft_mesh **out)
{
    weft_mesh *draft;
    weft_status status = WEFT_OK;
    bool named = to->names[0] != NULL && to->names[0][0] != '\0';

    WF_TRY(wf_mesh_draft(to->count, to->sizes, named ? to->names : NULL, &draft));
    draft->devices_per_host = mesh->devices_per_host;
    if (mesh->ranks == NULL) {
        draft->origin = wf_mesh_rank(mesh, origin);
        move_modes(mesh, to, draft);
    } else {
        status = move_ranks(mesh, to, origin, draft);
    }
    if (status == WEFT_OK) return wf_mesh_finish_take(draft, out);
    wf_mesh_free(draft);
    return status;
}

weft_status wf_mesh_slice(const weft_mesh *mesh, int32_t count, const int32_t *axes, int32_t rank,
                          weft_mesh **out)
{
    struct regrouping to = {0};
    int32_t origin[WEFT_MAX_AXES] = {0};

    if (!wf_mesh_coord(mesh, rank, origin))
        return wf_fail(WEFT_ERR_NOT_FOUND, "rank %d is not in the mesh", rank);
    for (int32_t i = 0; i < count; i++) {
        origin[axes[i]] = 0;
        add_group(&to, mesh, 1, &axes[i]);
    }
    return regroup_axes(mesh, &to, origin, out);
}

weft_status weft_mesh_slice(const weft_mesh *mesh, const char *axes, int32_t rank, weft_mesh **out)
{
    int32_t list[WEFT_MAX_AXES], count;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_slice: mesh"));
    WF_TRY(wf_require(axes, "weft_mesh_slice: axes"));
    WF_TRY(wf_require(out, "weft_mesh_slice: out"));
    WF_TRY(wf_fail_named(wf_mesh_read_axes(mesh, axes, list, &count), "weft_mesh_slice"));
    return wf_fail_named(wf_mesh_slice(mesh, count, list, rank, out), "weft_mesh_slice");
}

/* NAME, or the joined names of the axes, written into BUFFER, which has room for eight names. */
static const char *joined_name(const weft_mesh *mesh, int32_t count, const int32_t *axes,
                               const char *name, char *buffer)
{
    if (name != NULL) return name;
    buffer[0] = '\0';
    for (int32_t i = 0; i < count; i++) {
        if (i > 0 && is_named(mesh)) strcat(buffer, "_");
        strcat(buffer, mesh->axis[axes[i]].name);
    }
    return buffer;
}

static weft_status flatten(const weft_mesh *mesh, const char *axes, const char *name,
                           weft_mesh **out)
{
    static const int32_t origin[WEFT_MAX_AXES];
    char buffer[WEFT_MAX_AXES * (WEFT_MAX_AXIS_NAME + 1) + 1];
    struct regrouping to = {0};
    int32_t list[WEFT_MAX_AXES] = {0, 1, 2, 3, 4, 5, 6, 7}, count;
    bool listed[WEFT_MAX_AXES] = {false};

    count = mesh->axes;
    if (axes != NULL) WF_TRY(wf_mesh_read_axes(mesh, axes, list, &count));
    if (name != NULL && !is_named(mesh) && count < mesh->axes)
        return wf_fail(
            WEFT_ERR_INVALID,
            "flattened axis \"%.40s\": the other axes of the mesh have no names, so the new axis "
            "cannot have one; pass NULL as its name",
            name);
    for (int32_t i = 0; i < count; i++)
        listed[list[i]] = true;
    for (int32_t i = 0; i < mesh->axes; i++) {
        if (i == list[0]) {
            add_group(&to, mesh, count, list);
            to.names[to.count - 1] = joined_name(mesh, count, list, name, buffer);
        } else if (!listed[i]) {
            add_group(&to, mesh, 1, &i);
        }
    }
    return regroup_axes(mesh, &to, origin, out);
}

weft_status weft_mesh_flatten(const weft_mesh *mesh, const char *axes, const char *name,
                              weft_mesh **out)
{
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_flatten: mesh"));
    WF_TRY(wf_require(out, "weft_mesh_flatten: out"));
    return wf_fail_named(flatten(mesh, axes, name, out), "weft_mesh_flatten");
}

/* Divide the digits of old axis AXIS, fastest first, among the COUNT new ones with SIZES; false if
 * the sizes cut through a mode.  New modes come fastest first. */
static bool split_modes(const weft_mesh *mesh, int32_t axis, int32_t count, const int32_t *sizes,
                        struct wf_mode *fresh, int32_t *fresh_count)
{
    int32_t at = mesh->mode_count, left = 1, stride = 0;

    *fresh_count = 0;
    for (int32_t i = count - 1; i >= 0; i--)
        for (int32_t want = sizes[i]; want > 1;) {
            int32_t part;
            if (left == 1) {
                do
                    at--;
                while (mesh->modes[at].axis != axis);
                left = mesh->modes[at].size;
                stride = mesh->modes[at].stride;
            }
            part = want < left ? want : left;
            if (want % part != 0 || left % part != 0) return false;
            fresh[(*fresh_count)++] = (struct wf_mode){part, stride, axis + i, 1};
            want /= part;
            left /= part;
            stride *= left > 1 ? part : 1;
        }
    return true;
}

static bool unflatten_modes(const weft_mesh *mesh, int32_t axis, int32_t count,
                            const int32_t *sizes, weft_mesh *draft)
{
    struct wf_mode fresh[WF_MESH_MODES];
    int32_t fresh_count = 0;

    if (mesh->ranks != NULL || !split_modes(mesh, axis, count, sizes, fresh, &fresh_count))
        return false;
    draft->origin = mesh->origin;
    for (int32_t i = 0; i < mesh->mode_count && mesh->modes[i].axis < axis; i++)
        wf_mesh_add_mode(draft, mesh->modes[i].axis, mesh->modes[i].size, mesh->modes[i].stride);
    while (fresh_count-- > 0)
        wf_mesh_add_mode(draft, fresh[fresh_count].axis, fresh[fresh_count].size,
                         fresh[fresh_count].stride);
    for (int32_t i = 0; i < mesh->mode_count; i++)
        if (mesh->modes[i].axis > axis)
            wf_mesh_add_mode(draft, mesh->modes[i].axis + count - 1, mesh->modes[i].size,
                             mesh->modes[i].stride);
    return true;
}

static weft_status check_unflatten(const weft_mesh *mesh, int32_t axis, int32_t count,
                                   const int32_t *sizes, const char *const *names)
{
    int64_t product = 1;

    if (axis < 0 || axis >= mesh->axes)
        return wf_fail(WEFT_ERR_INVALID, "weft_mesh_unflatten: axis is %d; the mesh has %d axes",
                       axis, mesh->axes);
    if (count < 1 || count > WEFT_MAX_AXES || mesh->axes + count - 1 > WEFT_MAX_AXES)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_mesh_unflatten: axis %d into %d: the mesh would have %lld axes; a "
                       "mesh must have 1 to %d",
                       axis, count, mesh->axes + (long long)count - 1, WEFT_MAX_AXES);
    for (int32_t i = 0; i < count; i++) {
        product *= sizes[i] > 0 ? sizes[i] : 0;
        if (product > INT32_MAX) break;
    }
    if (product != mesh->axis[axis].size)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_mesh_unflatten: axis %d has size %d, but the new sizes multiply to %lld", axis,
            mesh->axis[axis].size, (long long)product);
    if ((names != NULL) != is_named(mesh))
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_mesh_unflatten: axis %d: names is %s, but the mesh's axes have %s",
                       axis, names == NULL ? "NULL" : "not NULL",
                       names == NULL ? "names" : "no names");
    return WEFT_OK;
}

/* MESH with AXIS unflattened, and the given sizes and names of all axes. */
static weft_status take_apart(const weft_mesh *mesh, int32_t axis, int32_t count,
                              const int32_t *sizes, const char *const *names, weft_mesh **out)
{
    weft_mesh *draft;
    weft_status status = WEFT_OK;

    WF_TRY(wf_mesh_draft(mesh->axes + count - 1, sizes, names, &draft));
    draft->devices_per_host = mesh->devices_per_host;
    if (!unflatten_modes(mesh, axis, count, sizes + axis, draft)) {
        draft->mode_count = 0;
        status = wf_mesh_give_list(draft);
        for (int32_t i = 0; status == WEFT_OK && i < draft->size; i++)
            draft->ranks[i] = weft_mesh_rank_at(mesh, i);
    }
    if (status == WEFT_OK) return wf_mesh_finish_take(draft, out);
    wf_mesh_free(draft);
    return status;
}

weft_status wf_mesh_reshape(const weft_mesh *mesh, int32_t axes, const int32_t *sizes,
                            const char *const *names, weft_mesh **out)
{
    weft_mesh *flat = NULL;
    weft_status status;

    WF_TRY(flatten(mesh, NULL, "all", &flat));
    status = take_apart(flat, 0, axes, sizes, names, out);
    weft_mesh_release(&flat);
    return status;
}

weft_status weft_mesh_unflatten(const weft_mesh *mesh, int32_t axis, size_t new_axes,
                                const int32_t *sizes, const char *const *names, weft_mesh **out)
{
    int32_t count = new_axes > INT32_MAX ? INT32_MAX : (int32_t)new_axes; /* refused: too many */
    int32_t all_sizes[WEFT_MAX_AXES];
    const char *all_names[WEFT_MAX_AXES];

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_unflatten: mesh"));
    WF_TRY(wf_require(sizes, "weft_mesh_unflatten: sizes"));
    WF_TRY(wf_require(out, "weft_mesh_unflatten: out"));
    WF_TRY(check_unflatten(mesh, axis, count, sizes, names));
    for (int32_t i = 0; i < mesh->axes + count - 1; i++) {
        bool fresh = i >= axis && i < axis + count;
        int32_t old = i < axis ? i : i - count + 1;
        all_sizes[i] = fresh ? sizes[i - axis] : mesh->axis[old].size;
        all_names[i] = fresh && names != NULL ? names[i - axis] : mesh->axis[fresh ? 0 : old].name;
    }
    return take_apart(mesh, axis, count, all_sizes, names != NULL ? all_names : NULL, out);
}
