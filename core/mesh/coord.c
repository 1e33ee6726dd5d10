/* coord.c - ranks to coordinates and back, in time that does not depend on the number of ranks. */
#include "mesh.h"

int32_t wf_mesh_rank(const weft_mesh *mesh, const int32_t *coord)
{
    int32_t rank = mesh->origin;

    if (mesh->ranks != NULL) {
        int32_t position = 0;
        for (int32_t i = 0; i < mesh->axes; i++)
            position = position * mesh->axis[i].size + coord[i];
        return mesh->ranks[position];
    }
    for (int32_t i = 0; i < mesh->mode_count; i++) {
        const struct wf_mode *m = &mesh->modes[i];
        rank += coord[m->axis] / m->weight % m->size * m->stride;
    }
    return rank;
}

void wf_mesh_coord_at(const weft_mesh *mesh, int32_t position, int32_t *coord)
{
    for (int32_t i = mesh->axes - 1; i >= 0; i--) {
        coord[i] = position % mesh->axis[i].size;
        position /= mesh->axis[i].size;
    }
}

int32_t wf_mesh_position(const weft_mesh *mesh, int32_t rank)
{
    uint32_t at = (uint32_t)wf_hash_mix(0, (uint32_t)rank) & mesh->position_mask;

    while (mesh->positions[at] >= 0 && mesh->ranks[mesh->positions[at]] != rank)
        at = (at + 1) & mesh->position_mask;
    return mesh->positions[at];
}

int32_t weft_mesh_rank_at(const weft_mesh *mesh, int32_t position)
{
    int32_t rank;

    if (!wf_is_kind(mesh, WF_KIND_MESH) || position < 0 || position >= mesh->size)
        return WF_MESH_NOBODY;
    rank = mesh->origin;
    if (mesh->ranks != NULL) return mesh->ranks[position];
    for (int32_t i = mesh->mode_count - 1; i >= 0; i--) {
        rank += position % mesh->modes[i].size * mesh->modes[i].stride;
        position /= mesh->modes[i].size;
    }
    return rank;
}

bool wf_mesh_coord(const weft_mesh *mesh, int32_t rank, int32_t *coord)
{
    int32_t found[WEFT_MAX_AXES] = {0};
    int32_t rest;

    if (rank < mesh->origin) return false; /* an origin is not negative */
    if (mesh->ranks != NULL) {
        int32_t position = wf_mesh_position(mesh, rank);
        if (position >= 0) wf_mesh_coord_at(mesh, position, coord);
        return position >= 0;
    }
    rest = rank - mesh->origin;
    for (int32_t i = 0; i < mesh->mode_count; i++) {
        const struct wf_mode *m = &mesh->modes[mesh->by_stride[i]];
        int32_t digit = rest / m->stride;
        if (digit >= m->size) return false;
        rest -= digit * m->stride;
        found[m->axis] += digit * m->weight;
    }
    if (rest != 0) return false;
    for (int32_t i = 0; i < mesh->axes; i++)
        coord[i] = found[i];
    return true;
}

weft_status weft_mesh_coord_of(const weft_mesh *mesh, int32_t rank, int32_t *coord)
{
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_coord_of: mesh"));
    WF_TRY(wf_require(coord, "weft_mesh_coord_of: coord"));
    if (wf_mesh_coord(mesh, rank, coord)) return WEFT_OK;
    return wf_fail(WEFT_ERR_NOT_FOUND, "weft_mesh_coord_of: rank %d is not in the mesh", rank);
}

weft_status wf_mesh_check_coord(const weft_mesh *mesh, const int32_t *coord)
{
    for (int32_t i = 0; i < mesh->axes; i++)
        if (coord[i] < 0 || coord[i] >= mesh->axis[i].size)
            return wf_fail(WEFT_ERR_INVALID,
                           "coordinate %d on mesh axis %d is out of range: the axis has size %d",
                           coord[i], i, mesh->axis[i].size);
    return WEFT_OK;
}

weft_status weft_mesh_rank(const weft_mesh *mesh, const int32_t *coord, int32_t *rank)
{
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_mesh_rank: mesh"));
    WF_TRY(wf_require(coord, "weft_mesh_rank: coord"));
    WF_TRY(wf_require(rank, "weft_mesh_rank: rank"));
    WF_TRY(wf_fail_named(wf_mesh_check_coord(mesh, coord), "weft_mesh_rank"));
    *rank = wf_mesh_rank(mesh, coord);
    return WEFT_OK;
}

int32_t wf_mesh_group(const weft_mesh *mesh, uint32_t axes, int32_t rank, int32_t *out)
{
    int32_t coord[WEFT_MAX_AXES], a, size = 1;

    if (!wf_mesh_coord(mesh, rank, coord)) return 0;
    for (a = 0; a < mesh->axes; a++) {
        if (!(axes >> a & 1)) continue;
        size *= mesh->axis[a].size;
        coord[a] = 0;
    }
    for (int32_t i = 0; i < size; i++) {
        out[i] = wf_mesh_rank(mesh, coord);
        for (a = mesh->axes - 1; a >= 0; a--) {
            if (!(axes >> a & 1)) continue;
            if (++coord[a] < mesh->axis[a].size) break;
            coord[a] = 0;
        }
    }
    return size;
}

int32_t wf_mesh_index(const weft_mesh *mesh, int32_t rank)
{
    int32_t coord[WEFT_MAX_AXES], position = 0;

    if (!wf_mesh_coord(mesh, rank, coord)) return -1;
    for (int32_t a = 0; a < mesh->axes; a++)
        position = position * mesh->axis[a].size + coord[a];
    return position;
}
