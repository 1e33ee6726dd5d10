/* local.c - the public queries of a shard: the arithmetic of base/layout by spec and rank. */
#include "shard.h"

#include <string.h>

void wf_shard_of(const weft_spec *spec, int32_t rank, struct wf_shard *out)
{
    int32_t coord[WEFT_MAX_AXES];
    bool member = wf_mesh_coord(spec->layout.mesh, rank, coord);

    wf_shard_at(&spec->layout, member ? coord : NULL, out);
}

void weft_spec_shard(const weft_spec *spec, int32_t rank, weft_shard *out)
{
    struct wf_shard shard;
    size_t bytes;

    if (out == NULL) return;
    *out = (weft_shard){0};
    if (!wf_is_kind(spec, WF_KIND_SPEC)) return;
    bytes = (size_t)spec->layout.dims * sizeof out->shape[0];
    wf_shard_of(spec, rank, &shard);
    out->member = shard.member;
    out->dims = shard.dims;
    out->elements = shard.elements;
    memcpy(out->shape, shard.shape, bytes);
    memcpy(out->offset, shard.offset, bytes);
}

uint64_t weft_spec_shard_bytes(const weft_spec *spec, int32_t rank)
{
    struct wf_shard shard;

    if (spec == NULL) return 0;
    wf_shard_of(spec, rank, &shard);
    return (uint64_t)shard.elements * weft_dtype_bytes(weft_spec_dtype(spec));
}

weft_status weft_spec_counts(const weft_spec *spec, size_t count, const int32_t *ranks,
                             uint64_t *counts, uint64_t *offsets)
{
    uint64_t sum = 0;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_counts: spec"));
    WF_TRY(wf_require(counts, "weft_spec_counts: counts"));
    for (size_t i = 0; i < count; i++) {
        struct wf_shard shard;

        wf_shard_of(spec, ranks != NULL ? ranks[i] : (int32_t)i, &shard);
        counts[i] = (uint64_t)shard.elements;
        if (offsets != NULL) offsets[i] = sum;
        sum += counts[i];
    }
    return WEFT_OK;
}

bool weft_spec_run(const weft_spec *spec, int32_t rank, int32_t dim, int64_t position,
                   weft_index_run *out)
{
    struct wf_shard shard;
    struct wf_index index;

    if (!wf_is_kind(spec, WF_KIND_SPEC) || out == NULL || dim < 0 || dim >= spec->layout.dims)
        return false;
    wf_shard_of(spec, rank, &shard);
    index = wf_shard_index(&shard, dim);
    return wf_index_run(&index, position, out);
}

bool weft_spec_intersection(const weft_spec *first, int32_t first_rank, const weft_spec *second,
                            int32_t second_rank, int32_t dim, int64_t from, weft_intersection *out)
{
    struct wf_shard a, b;
    struct wf_index of_a, of_b;

    if (!wf_is_kind(first, WF_KIND_SPEC) || !wf_is_kind(second, WF_KIND_SPEC) || out == NULL)
        return false;
    if (dim < 0 || dim >= first->layout.dims || dim >= second->layout.dims) return false;
    wf_shard_of(first, first_rank, &a);
    wf_shard_of(second, second_rank, &b);
    of_a = wf_shard_index(&a, dim);
    of_b = wf_shard_index(&b, dim);
    return wf_index_overlap(&of_a, &of_b, from, out);
}

bool weft_spec_segment(const weft_spec *spec, int32_t rank, const int64_t *strides,
                       int64_t position, weft_segment *out)
{
    struct wf_shard shard;

    if (!wf_is_kind(spec, WF_KIND_SPEC) || out == NULL) return false;
    wf_shard_of(spec, rank, &shard);
    return wf_shard_segment(&shard, spec->layout.shape, strides, position, out);
}
