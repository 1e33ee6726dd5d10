/* along.c - communicators of the axes of a mesh. */
#include "comm.h"

#include "mesh/mesh.h"

static weft_status check_ranks(const weft_comm *parent, const weft_mesh *mesh)
{
    for (int32_t i = 0; i < mesh->size; i++)
        if (weft_mesh_rank_at(mesh, i) >= parent->size)
            return wf_fail(WEFT_ERR_INVALID,
                           "weft_comm_along: the mesh has rank %d; %s has ranks 0 to %d",
                           weft_mesh_rank_at(mesh, i), parent->name, parent->size - 1);
    return WEFT_OK;
}

static weft_status find_group(weft_comm *parent, const weft_mesh *slice, weft_comm **out)
{
    int32_t *ranks = wf_alloc((size_t)slice->size * sizeof *ranks);
    weft_status status = WEFT_OK;

    if (ranks == NULL)
        status = wf_fail_memory((size_t)slice->size * sizeof *ranks);
    else
        for (int32_t i = 0; i < slice->size; i++)
            ranks[i] = weft_mesh_rank_at(slice, i);
    if (status == WEFT_OK) status = wf_comm_group(parent, ranks, slice->size, WEFT_OK, out);
    wf_free(ranks);
    return status;
}

weft_status weft_comm_along(weft_comm *parent, const weft_mesh *mesh, const char *axes,
                            weft_comm **out)
{
    int32_t coord[WEFT_MAX_AXES];
    weft_mesh *slice;
    weft_status status;

    if (parent == NULL) return wf_fail_null("weft_comm_along", "parent");
    WF_TRY(wf_comm_check(parent, "weft_comm_along"));
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_comm_along: mesh"));
    if (axes == NULL) return wf_fail_null("weft_comm_along", "axes");
    if (out == NULL) return wf_fail_null("weft_comm_along", "out");
    WF_TRY(check_ranks(parent, mesh));
    status = weft_mesh_slice(mesh, axes, weft_mesh_rank_at(mesh, 0), &slice);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_comm_along");
    weft_mesh_release(&slice);
    if (!wf_mesh_coord(mesh, parent->rank, coord)) {
        *out = NULL;
        return WEFT_OK;
    }
    WF_TRY(weft_mesh_slice(mesh, axes, parent->rank, &slice));
    status = find_group(parent, slice, out);
    weft_mesh_release(&slice);
    return status;
}
