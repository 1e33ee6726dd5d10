/* axes.c - accessors of a mesh, and its axes by name. */
#include "mesh.h"

#include <string.h>

int32_t weft_mesh_axes(const weft_mesh *mesh)
{
    return wf_is_kind(mesh, WF_KIND_MESH) ? mesh->axes : 0;
}

int32_t weft_mesh_size(const weft_mesh *mesh)
{
    return wf_is_kind(mesh, WF_KIND_MESH) ? mesh->size : 0;
}

int32_t weft_mesh_axis_size(const weft_mesh *mesh, int32_t axis)
{
    return wf_is_kind(mesh, WF_KIND_MESH) && axis >= 0 && axis < mesh->axes ? mesh->axis[axis].size
                                                                            : 0;
}

const char *weft_mesh_axis_name(const weft_mesh *mesh, int32_t axis)
{
    return wf_is_kind(mesh, WF_KIND_MESH) && axis >= 0 && axis < mesh->axes ? mesh->axis[axis].name
                                                                            : NULL;
}

uint64_t weft_mesh_hash(const weft_mesh *mesh)
{
    return wf_is_kind(mesh, WF_KIND_MESH) ? mesh->head.hash : 0;
}

static weft_status unknown_axis(const weft_mesh *mesh, const char *name, size_t length)
{
    char known[WEFT_MAX_AXES * (WEFT_MAX_AXIS_NAME + 5) + 1] = "";
    bool named = mesh->axis[0].name[0] != '\0';

    for (int32_t i = 0; named && i < mesh->axes; i++) {
        if (i > 0) strcat(known, i + 1 < mesh->axes ? ", " : " and ");
        strcat(known, mesh->axis[i].name);
    }
    if (!named)
        return wf_fail(WEFT_ERR_NOT_FOUND,
                       "the mesh has no axis \"%.*s\": its axes have no names; their indices are "
                       "from 0 to %d",
                       (int)length, name, mesh->axes - 1);
    return wf_fail(WEFT_ERR_NOT_FOUND, "the mesh has no axis \"%.*s\": %s %s", (int)length, name,
                   mesh->axes == 1 ? "its only axis is" : "the axes are", known);
}

static weft_status find_axis(const weft_mesh *mesh, const char *name, size_t length, int32_t *axis)
{
    for (int32_t i = 0; i < mesh->axes; i++)
        if (strlen(mesh->axis[i].name) == length && length > 0 &&
            memcmp(mesh->axis[i].name, name, length) == 0) {
            *axis = i;
            return WEFT_OK;
        }
    if (length == 1 && name[0] >= '0' && name[0] < '0' + mesh->axes) {
        *axis = name[0] - '0';
        return WEFT_OK;
    }
    return unknown_axis(mesh, name, length < 100 ? length : 100);
}

weft_status weft_mesh_find_axis(const weft_mesh *mesh, const char *name, int32_t *axis)
{
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_find_axis: mesh"));
    WF_TRY(wf_require(name, "weft_mesh_find_axis: name"));
    WF_TRY(wf_require(axis, "weft_mesh_find_axis: axis"));
    return find_axis(mesh, name, strlen(name), axis);
}

weft_status wf_mesh_read_axes(const weft_mesh *mesh, const char *text, int32_t *axes,
                              int32_t *count)
{
    bool taken[WEFT_MAX_AXES] = {false};
    int32_t found = 0;

    for (const char *name = text;; name += strcspn(name, ",") + 1) {
        size_t length = strcspn(name, ",");
        int32_t axis = 0;
        WF_TRY(find_axis(mesh, name, length, &axis));
        if (taken[axis])
            return wf_fail(WEFT_ERR_INVALID,
                           "axes \"%.100s\", position %zu: axis %d is listed twice", text,
                           (size_t)(name - text) + 1, axis);
        taken[axis] = true;
        axes[found++] = axis;
        if (name[length] == '\0') break;
    }
    *count = found;
    return WEFT_OK;
}
