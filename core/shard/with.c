/* with.c - the tensor of a spec in another layout or dtype; a spec from shards and text. */
#include "shard.h"

#include <string.h>

static struct wf_layout tensor_of(const weft_spec *spec)
{
    struct wf_layout layout = {
        .mesh = spec->layout.mesh, .dtype = spec->layout.dtype, .dims = spec->layout.dims};

    memcpy(layout.shape, spec->layout.shape, sizeof layout.shape);
    return layout;
}

static weft_status place(struct wf_layout *layout, const char *placements, weft_spec **out)
{
    weft_placement read[WEFT_MAX_AXES];
    weft_status status;

    WF_TRY(wf_placements_parse_on(layout->mesh, placements, read));
    memcpy(layout->placements, read, (size_t)layout->mesh->axes * sizeof *read);
    status = wf_spec_intern(layout, out);
    weft_placements_free(layout->mesh->axes, read);
    return status == WEFT_ERR_INVALID ? wf_fail_context(status, "placements \"%.200s\"", placements)
                                      : status;
}

weft_status weft_spec_with(const weft_spec *spec, const char *placements, weft_spec **out)
{
    struct wf_layout layout;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_with: spec"));
    WF_TRY(wf_require(placements, "weft_spec_with: placements"));
    WF_TRY(wf_require(out, "weft_spec_with: out"));
    layout = tensor_of(spec);
    return place(&layout, placements, out);
}

weft_status weft_spec_with_mesh(const weft_spec *spec, const weft_mesh *mesh,
                                const char *placements, weft_spec **out)
{
    struct wf_layout layout;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_with_mesh: spec"));
    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_with_mesh: mesh"));
    WF_TRY(wf_require(placements, "weft_spec_with_mesh: placements"));
    WF_TRY(wf_require(out, "weft_spec_with_mesh: out"));
    layout = tensor_of(spec);
    layout.mesh = mesh;
    return place(&layout, placements, out);
}

weft_status weft_spec_parse_placements(const weft_mesh *mesh, enum weft_dtype dtype, int32_t dims,
                                       const int64_t *shape, const char *placements,
                                       weft_spec **out)
{
    struct wf_layout layout = {.mesh = mesh, .dtype = dtype, .dims = dims};

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_parse_placements: mesh"));
    if (dims > 0) WF_TRY(wf_require(shape, "weft_spec_parse_placements: shape"));
    WF_TRY(wf_require(placements, "weft_spec_parse_placements: placements"));
    WF_TRY(wf_require(out, "weft_spec_parse_placements: out"));
    WF_TRY(wf_shape_check(dims, shape, dtype));
    if (dims > 0) memcpy(layout.shape, shape, (size_t)dims * sizeof *shape);
    return place(&layout, placements, out);
}

weft_status weft_spec_parse_shards(const weft_mesh *mesh, enum weft_dtype dtype,
                                   const char *placements, int32_t dims, size_t count,
                                   const int64_t *shards, weft_spec **out)
{
    weft_placement read[WEFT_MAX_AXES];
    weft_status status;

    WF_TRY(wf_require_kind(mesh, WF_KIND_MESH, "weft_spec_parse_shards: mesh"));
    WF_TRY(wf_require(placements, "weft_spec_parse_shards: placements"));
    if (dims < 0 || count != (uint64_t)dims * (uint64_t)mesh->size)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_spec_parse_shards: shards has %zu sizes; expected %d for each of %d "
                       "ranks",
                       count, dims, mesh->size);
    WF_TRY(wf_placements_parse_on(mesh, placements, read));
    status = wf_spec_from_shards("weft_spec_parse_shards", mesh, dtype, dims, read, shards, out);
    weft_placements_free(mesh->axes, read);
    return status;
}

weft_status weft_spec_with_dtype(const weft_spec *spec, enum weft_dtype dtype, weft_spec **out)
{
    struct wf_layout layout;
    weft_status status;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_with_dtype: spec"));
    WF_TRY(wf_require(out, "weft_spec_with_dtype: out"));
    layout = tensor_of(spec);
    layout.dtype = dtype;
    memcpy(layout.placements, spec->layout.placements, sizeof layout.placements);
    status = wf_spec_intern(&layout, out);
    return status == WEFT_OK ? status : wf_fail_context(status, "weft_spec_with_dtype");
}
