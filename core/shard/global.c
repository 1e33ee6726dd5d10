/* global.c - the global shape from the local ones, on which the ranks must agree. */
#include "shard.h"

#include <string.h>

struct locals {
    const struct wf_layout *layout;
    const int64_t *sizes; /* [place * dims + dim] */
};

static bool splits_dim(const weft_placement *p, int32_t dim)
{
    return wf_placement_splits(p) && p->dim == dim;
}

/* Sum of the local sizes over the axes that split DIM, elsewhere at coordinate 0. */
static weft_status sum_sizes(const struct locals *locals, int32_t dim, int64_t *out)
{
    const weft_mesh *mesh = locals->layout->mesh;
    int32_t dims = locals->layout->dims, coord[WEFT_MAX_AXES] = {0}, axis;
    int64_t sum = 0;

    do {
        int32_t place = 0;
        for (int32_t i = 0; i < mesh->axes; i++)
            place = place * mesh->axis[i].size + coord[i];
        if (!wf_add_i64(sum, locals->sizes[(int64_t)place * dims + dim], &sum))
            return wf_fail(WEFT_ERR_INVALID, "dimension %d: the local sizes add up beyond 2^63 - 1",
                           dim);
        for (axis = mesh->axes - 1; axis >= 0; axis--) {
            if (!splits_dim(&locals->layout->placements[axis], dim)) continue;
            if (++coord[axis] < mesh->axis[axis].size) break;
            coord[axis] = 0;
        }
    } while (axis >= 0);
    *out = sum;
    return WEFT_OK;
}

/* RANK, at PLACE, contradicts the others in dimension DIM.  Name one of them: the rank at the same
 * coordinates on the axes that split DIM if its size differs, else the first of the mesh. */
static weft_status disagree(const struct locals *locals, int32_t place, int32_t dim, int64_t want)
{
    const struct wf_layout *layout = locals->layout;
    int32_t coord[WEFT_MAX_AXES], twin = 0;
    int64_t have = locals->sizes[(int64_t)place * layout->dims + dim], of_twin;

    wf_mesh_coord_at(layout->mesh, place, coord);
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        twin = twin * layout->mesh->axis[i].size +
               (splits_dim(&layout->placements[i], dim) ? coord[i] : 0);
    of_twin = locals->sizes[(int64_t)twin * layout->dims + dim];
    if (of_twin != have)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "ranks %d and %d hold the same part of dimension %d, but %lld and %lld "
                       "indices of it",
                       weft_mesh_rank_at(layout->mesh, twin),
                       weft_mesh_rank_at(layout->mesh, place), dim, (long long)of_twin,
                       (long long)have);
    return wf_fail(WEFT_ERR_MISMATCH,
                   "rank %d holds %lld indices of dimension %d; of the %lld that it and the ranks "
                   "with rank %d hold together, its share is %lld",
                   weft_mesh_rank_at(layout->mesh, place), (long long)have, dim,
                   (long long)layout->shape[dim], weft_mesh_rank_at(layout->mesh, 0),
                   (long long)want);
}

weft_status weft_shape_from_shards(const weft_mesh *mesh, int32_t dims,
                                   const weft_placement *placements, const int64_t *shards,
                                   int64_t *shape)
{
    struct wf_layout layout = {.mesh = mesh, .dtype = WEFT_DTYPE_U8, .dims = dims};
    struct locals locals = {&layout, shards};

    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "a tensor of %d dimensions; %d are the most", dims,
                       WEFT_MAX_DIMS);
    for (int64_t i = 0; i < (int64_t)mesh->size * dims; i++)
        if (shards[i] < 0)
            return wf_fail(WEFT_ERR_INVALID, "rank %d has size %lld in dimension %d",
                           weft_mesh_rank_at(mesh, (int32_t)(i / dims)), (long long)shards[i],
                           (int32_t)(i % dims));
    memcpy(layout.placements, placements, (size_t)mesh->axes * sizeof *placements);
    WF_TRY(wf_layout_settle(&layout));
    for (int32_t d = 0; d < dims; d++)
        WF_TRY(sum_sizes(&locals, d, &layout.shape[d]));
    WF_TRY(wf_shape_check(dims, layout.shape, layout.dtype));
    for (int32_t place = 0; place < mesh->size; place++) {
        int32_t coord[WEFT_MAX_AXES];
        struct wf_shard want;
        wf_mesh_coord_at(mesh, place, coord);
        wf_shard_at(&layout, coord, &want);
        for (int32_t d = 0; d < dims; d++)
            if (shards[(int64_t)place * dims + d] != want.shape[d])
                return disagree(&locals, place, d, want.shape[d]);
    }
    memcpy(shape, layout.shape, (size_t)dims * sizeof *shape);
    return WEFT_OK;
}
