/* along.c - communicators of the axes of a mesh. */
#include "comm.h"

#include "mesh/mesh.h"

#include <stdio.h>

void wf_comm_advise_size(const weft_comm *comm, int32_t needed, char *out, size_t bytes)
{
    if (comm == comm->context->world)
        snprintf(out, bytes, "start more (`weft run -n %d`)", needed);
    else
        snprintf(out, bytes, "use a larger communicator");
}

static weft_status check_ranks(const weft_comm *parent, const weft_mesh *mesh)
{
    char help[64];
    int32_t last = 0;

    for (int32_t i = 0; i < mesh->size; i++)
        last = weft_mesh_rank_at(mesh, i) > last ? weft_mesh_rank_at(mesh, i) : last;
    if (last < parent->size) return WEFT_OK;
    wf_comm_advise_size(parent, last + 1, help, sizeof help);
    return wf_fail(WEFT_ERR_INVALID,
                   "weft_comm_along: the mesh has ranks up to %d and needs %d ranks; %s has %d: "
                   "%s, or use a smaller mesh",
                   last, last + 1, parent->name, parent->size, help);
}

/* "dp", "dp,tp", "axis 0" if the axes have no names.  Every rank makes the same name. */
static void name_group(const weft_mesh *mesh, const int32_t *axes, int32_t count, char *out,
                       size_t bytes)
{
    size_t used = 0;

    for (int32_t i = 0; i < count && used < bytes; i++) {
        const char *name = weft_mesh_axis_name(mesh, axes[i]);

        used += (size_t)(name[0] != '\0'
                             ? snprintf(out + used, bytes - used, "%s%s", i > 0 ? "," : "", name)
                             : snprintf(out + used, bytes - used, "%s%d", i > 0 ? "," : "axis ",
                                        axes[i]));
    }
}

static weft_status find_group(weft_comm *parent, const weft_mesh *slice, const char *name,
                              weft_comm **out)
{
    int32_t *ranks = wf_alloc((size_t)slice->size * sizeof *ranks);
    weft_status status = WEFT_OK;

    if (ranks == NULL)
        status = wf_fail_memory((size_t)slice->size * sizeof *ranks);
    else
        for (int32_t i = 0; i < slice->size; i++)
            ranks[i] = weft_mesh_rank_at(slice, i);
    if (status == WEFT_OK) status = wf_comm_axis_group(parent, ranks, slice->size, name, out);
    wf_free(ranks);
    return wf_fail_named(status, "weft_comm_along");
}

weft_status weft_comm_along(weft_comm *parent, const weft_mesh *mesh, const char *axes,
                            weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES], list[WEFT_MAX_AXES], count;
    char name[WF_SUBCOMM_NAME];
    weft_mesh *slice;
    weft_status status;

    if (parent == NULL) return wf_fail_null("weft_comm_along", "parent");
    WF_TRY(wf_comm_check(parent, "weft_comm_along"));
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_comm_along: mesh"));
    if (axes == NULL) return wf_fail_null("weft_comm_along", "axes");
    if (out == NULL) return wf_fail_null("weft_comm_along", "out");
    WF_TRY(check_ranks(parent, mesh));
    status = wf_mesh_read_axes(mesh, axes, list, &count);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_comm_along");
    if (!wf_mesh_coord(mesh, parent->rank, coord)) {
        *out = NULL;
        return WEFT_OK;
    }
    WF_TRY(wf_mesh_slice(mesh, count, list, parent->rank, &slice));
    name_group(mesh, list, count, name, sizeof name);
    status = find_group(parent, slice, name, out);
    weft_mesh_release(&slice);
    return status;
}
