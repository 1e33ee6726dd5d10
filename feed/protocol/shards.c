/* shards.c - replicas and checksums of shards. */
#include "protocol.h"

static bool is_replicated(const weft_spec *spec, int32_t axis)
{
    return weft_spec_placements(spec)[axis].kind == WEFT_PLACE_REPLICATE;
}

bool wf_feed_replica(const weft_spec *spec, int32_t rank, int32_t *replica)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t axes = weft_mesh_axes(mesh), coord[WEFT_MAX_AXES], found = 0;

    if (weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK) return false;
    for (int32_t i = 0; i < axes; i++)
        if (is_replicated(spec, i)) found = found * weft_mesh_axis_size(mesh, i) + coord[i];
    *replica = found;
    return true;
}

int32_t wf_feed_replicas(const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    int32_t count = 1;

    for (int32_t i = 0; i < weft_mesh_axes(mesh); i++)
        if (is_replicated(spec, i)) count *= weft_mesh_axis_size(mesh, i);
    return count;
}

weft_status wf_feed_check_spec(const weft_spec *spec, const char *name)
{
    for (int32_t i = 0; i < weft_mesh_axes(weft_spec_mesh(spec)); i++)
        if (weft_spec_placements(spec)[i].kind == WEFT_PLACE_PARTIAL)
            return wf_fail(WEFT_ERR_INVALID,
                           "tensor \"%.200s\" has a partial placement on axis %d; move it to a "
                           "layout without one first",
                           name, i);
    return WEFT_OK;
}

uint64_t wf_feed_sum(const weft_spec *spec, int32_t rank, const void *elements)
{
    uint64_t bytes = weft_dtype_bytes(weft_spec_dtype(spec)), sum = 0;
    uint64_t unit = bytes > 8 ? 8 : bytes, parts = bytes / unit;
    weft_segment segment;

    for (int64_t at = 0; weft_spec_segment(spec, rank, NULL, at, &segment); at += segment.length)
        sum += wf_checksum_run((uint32_t)unit, (uint64_t)segment.global * parts,
                               (const char *)elements + (uint64_t)segment.local * bytes,
                               (uint64_t)segment.length * parts);
    return sum;
}
