/* global.c - the global shape from the local ones, on which the ranks must agree. */
#include "shard.h"

#include <string.h>

struct locals {
    const struct wf_layout *layout;
    const int64_t *sizes; /* [position * dims + dim] */
};

static bool splits_dim(const weft_placement *p, int32_t dim)
{
    return wf_placement_splits(p) && p->dim == dim;
}

/* Sum of the local sizes over the axes that split DIM; the other axes are at coordinate 0. */
static weft_status sum_sizes(const struct locals *locals, int32_t dim, int64_t *out)
{
    const weft_mesh *mesh = locals->layout->mesh;
    int32_t dims = locals->layout->dims, coord[WEFT_MAX_AXES] = {0}, axis;
    int64_t sum = 0;

    do {
        int32_t position = 0;
        for (int32_t i = 0; i < mesh->axes; i++)
            position = position * mesh->axis[i].size + coord[i];
        if (!wf_add_i64(sum, locals->sizes[(int64_t)position * dims + dim], &sum))
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

static int64_t size_at(const struct locals *locals, int32_t position, int32_t dim)
{
    return locals->sizes[(int64_t)position * locals->layout->dims + dim];
}

static int64_t share_at(const struct locals *locals, int32_t position, int32_t dim)
{
    int32_t coord[WEFT_MAX_AXES];
    struct wf_shard shard;

    wf_mesh_coord_at(locals->layout->mesh, position, coord);
    wf_shard_at(locals->layout, coord, &shard);
    return shard.shape[dim];
}

/* The position that holds the same part of DIM as POSITION, on the line that was summed. */
static int32_t replica_of(const struct locals *locals, int32_t position, int32_t dim)
{
    const struct wf_layout *layout = locals->layout;
    int32_t coord[WEFT_MAX_AXES], replica = 0;

    wf_mesh_coord_at(layout->mesh, position, coord);
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        replica = replica * layout->mesh->axis[i].size +
                  (splits_dim(&layout->placements[i], dim) ? coord[i] : 0);
    return replica;
}

/* The first rank that does not hold its share is at POSITION, in dimension DIM.  If its replica
 * holds its share, the two disagree.  Otherwise the rank itself is on the line that was summed;
 * since the sum is right, a later rank of the line deviates in the other direction. */
static weft_status refuse_sizes(const struct locals *locals, int32_t position, int32_t dim)
{
    const weft_mesh *mesh = locals->layout->mesh;
    int32_t replica = replica_of(locals, position, dim), other = position + 1;
    bool too_little = size_at(locals, position, dim) < share_at(locals, position, dim);

    if (replica != position)
        return wf_fail(WEFT_ERR_MISMATCH,
                       "ranks %d and %d hold the same part of dimension %d, but their shards "
                       "have sizes %lld and %lld there",
                       weft_mesh_rank_at(mesh, replica), weft_mesh_rank_at(mesh, position), dim,
                       (long long)size_at(locals, replica, dim),
                       (long long)size_at(locals, position, dim));
    while (replica_of(locals, other, dim) != other ||
           size_at(locals, other, dim) == share_at(locals, other, dim) ||
           (size_at(locals, other, dim) < share_at(locals, other, dim)) == too_little)
        other++;
    return wf_fail(WEFT_ERR_MISMATCH,
                   "dimension %d has %lld indices in all, so the shard of rank %d must have %lld, "
                   "but has %lld, and the shard of rank %d must have %lld, but has %lld",
                   dim, (long long)locals->layout->shape[dim], weft_mesh_rank_at(mesh, position),
                   (long long)share_at(locals, position, dim),
                   (long long)size_at(locals, position, dim), weft_mesh_rank_at(mesh, other),
                   (long long)share_at(locals, other, dim), (long long)size_at(locals, other, dim));
}

weft_status weft_shape_from_shards(const weft_mesh *mesh, int32_t dims,
                                   const weft_placement *placements, const int64_t *shards,
                                   int64_t *shape)
{
    struct wf_layout layout = {.mesh = mesh, .dtype = WEFT_DTYPE_U8, .dims = dims};
    struct locals locals = {&layout, shards};

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_shape_from_shards: mesh"));
    WF_TRY(wf_require(placements, "weft_shape_from_shards: placements"));
    if (dims != 0) {
        WF_TRY(wf_require(shards, "weft_shape_from_shards: shards"));
        WF_TRY(wf_require(shape, "weft_shape_from_shards: shape"));
    }
    if (dims < 0 || dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "the tensor has %d dimensions; the maximum is %d", dims,
                       WEFT_MAX_DIMS);
    for (int64_t i = 0; i < (int64_t)mesh->size * dims; i++)
        if (shards[i] < 0)
            return wf_fail(
                WEFT_ERR_INVALID,
                "the shard of rank %d has size %lld in dimension %d; a size must not be negative",
                weft_mesh_rank_at(mesh, (int32_t)(i / dims)), (long long)shards[i],
                (int32_t)(i % dims));
    memcpy(layout.placements, placements, (size_t)mesh->axes * sizeof *placements);
    WF_TRY(wf_layout_settle(&layout));
    for (int32_t d = 0; d < dims; d++)
        WF_TRY(sum_sizes(&locals, d, &layout.shape[d]));
    WF_TRY(wf_shape_check(dims, layout.shape, layout.dtype));
    for (int32_t position = 0; position < mesh->size; position++) {
        int32_t coord[WEFT_MAX_AXES];
        struct wf_shard want;
        wf_mesh_coord_at(mesh, position, coord);
        wf_shard_at(&layout, coord, &want);
        for (int32_t d = 0; d < dims; d++)
            if (shards[(int64_t)position * dims + d] != want.shape[d])
                return refuse_sizes(&locals, position, d);
    }
    if (dims > 0) memcpy(shape, layout.shape, (size_t)dims * sizeof *shape);
    return WEFT_OK;
}
