/* view.c - tensors that share the memory of another one. */
#include "tensor.h"

#include <string.h>

weft_status wf_view_spec(const weft_spec *spec, int32_t dims, const int64_t *shape,
                         const weft_placement *placements, weft_spec **out)
{
    return weft_spec_create(spec->layout.mesh, (enum weft_dtype)spec->layout.dtype, dims, shape,
                            placements, out);
}

/* ---- refusals ---- */

/* The layout of TENSOR in which AXES are replicated. */
static weft_status replicate_axes(const weft_tensor *tensor, uint32_t axes, weft_spec **out)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    weft_placement placements[WEFT_MAX_AXES] = {{0}};

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if ((axes >> a & 1) == 0) placements[a] = layout->placements[a];
    return wf_view_spec(tensor->spec, layout->dims, layout->shape, placements, out);
}

/* Write "; move the tensor to ... first" to TEXT. */
static weft_status add_advice(const weft_tensor *tensor, uint32_t axes, struct wf_text *text)
{
    weft_plan_info info = {.struct_size = sizeof info};
    weft_plan *plan = NULL;
    weft_spec *spec = NULL;
    char layout[256];
    weft_status status = replicate_axes(tensor, axes, &spec);

    if (status == WEFT_OK) status = weft_spec_print(spec, layout, sizeof layout, NULL);
    if (status == WEFT_OK)
        status = weft_context_plan(tensor->context, tensor->spec, spec, NULL, &plan);
    if (status == WEFT_OK) status = weft_plan_get(plan, &info);
    if (status == WEFT_OK) {
        wf_text_add(text, "; move the tensor to %s first, which takes about ", layout);
        wf_text_time(text, info.cost_ns);
        wf_text_add(text, " and ");
        wf_text_bytes(text, info.bytes_received_max);
        wf_text_add(text, " per rank");
    }
    weft_plan_release(&plan);
    weft_spec_release(&spec);
    return status;
}

weft_status wf_view_refuse(const weft_tensor *tensor, uint32_t axes)
{
    struct wf_text text = {0};
    weft_status status;

    wf_text_add(&text, "%s", weft_last_error());
    status = add_advice(tensor, axes, &text);
    if (status == WEFT_OK) status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_UNSUPPORTED, "%s", text.data);
    wf_text_free(&text);
    return status;
}

static weft_status check_dim(const weft_tensor *tensor, const char *name, int32_t dim)
{
    if (dim >= 0 && dim < tensor->spec->layout.dims) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s is %d, but the tensor has %d dimension%s", name, dim,
                   tensor->spec->layout.dims, tensor->spec->layout.dims == 1 ? "" : "s");
}

/* ---- a part of a dimension ---- */

/* The indices BEGIN to END of dimension DIM. */
struct range {
    int32_t dim;
    int64_t begin, end;
};

static int64_t clamp(int64_t value, const struct range *range)
{
    return value < range->begin ? range->begin : value > range->end ? range->end : value;
}

/* How many indices of RANK are in RANGE, and how many are before it. */
static int64_t count_indices(const weft_spec *spec, int32_t rank, const struct range *range,
                             int64_t *before)
{
    int64_t inside = 0;
    weft_index_run run;

    *before = 0;
    for (int64_t at = 0; weft_spec_run(spec, rank, range->dim, at, &run); at += run.length) {
        int64_t end = run.start + run.length;

        inside += clamp(end, range) - clamp(run.start, range);
        if (run.start < range->begin)
            *before += (end < range->begin ? end : range->begin) - run.start;
    }
    return inside;
}

/* RANK holds the indices of RANGE in SPEC as it holds all indices in NARROW. */
static bool holds_alike(const weft_spec *spec, const weft_spec *narrow, int32_t rank,
                        const struct range *range)
{
    int64_t at, to = 0, before;
    weft_index_run run, part = {0, 0};

    count_indices(spec, rank, range, &before);
    for (at = before; weft_spec_run(spec, rank, range->dim, at, &run); at += run.length) {
        int64_t length = clamp(run.start + run.length, range) - run.start;

        for (int64_t done = 0; done < length; done += part.length) {
            if (!weft_spec_run(narrow, rank, range->dim, to, &part)) return false;
            if (part.start != run.start - range->begin + done || part.length > length - done)
                return false;
            to += part.length;
        }
        if (length < run.length) break;
    }
    return !weft_spec_run(narrow, rank, range->dim, to, &part);
}

/* The axes of SPEC that split DIM, a bit per axis. */
static uint32_t axes_of(const weft_spec *spec, int32_t dim)
{
    uint32_t axes = 0;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (wf_placement_splits(&spec->layout.placements[a]) &&
            spec->layout.placements[a].dim == dim)
            axes |= UINT32_C(1) << a;
    return axes;
}

/* True if NARROW describes RANGE of SPEC on every rank.  Ranks that differ along other axes than
 * AXES hold the same indices of the dimension, or none. */
static bool describes(const weft_spec *spec, const weft_spec *narrow, const struct range *range,
                      uint32_t axes)
{
    const weft_mesh *mesh = spec->layout.mesh;
    int32_t coord[WEFT_MAX_AXES] = {0};

    for (int32_t i = 0; i < mesh->size; i++) {
        int32_t rank = weft_mesh_rank_at(mesh, i);
        bool skip = weft_mesh_coord_of(mesh, rank, coord) != WEFT_OK;

        for (int32_t a = 0; a < mesh->axes && !spec->layout.owned; a++)
            skip = skip || ((axes >> a & 1) == 0 && coord[a] != 0);
        if (!skip && !holds_alike(spec, narrow, rank, range)) return false;
    }
    return true;
}

/* The placements of SPEC with G instead of the split along AXIS, the only one of the dimension. */
static weft_status place_sizes(const weft_spec *spec, const struct range *range, int32_t axis,
                               const int64_t *shape, weft_spec **out)
{
    const weft_mesh *mesh = spec->layout.mesh;
    weft_placement placements[WEFT_MAX_AXES];
    int32_t count = weft_mesh_axis_size(mesh, axis), coord[WEFT_MAX_AXES] = {0};
    int64_t *sizes = wf_calloc((size_t)count, sizeof *sizes), before;
    weft_status status;

    if (sizes == NULL) return wf_fail_memory((size_t)count * sizeof *sizes);
    for (int32_t a = 0; a < mesh->axes; a++)
        if (spec->layout.placements[a].kind == WEFT_PLACE_OWNER)
            coord[a] = spec->layout.placements[a].owner;
    status = WEFT_OK;
    for (coord[axis] = 0; coord[axis] < count && status == WEFT_OK; coord[axis]++) {
        int32_t rank = 0;

        status = weft_mesh_rank(mesh, coord, &rank);
        sizes[coord[axis]] = count_indices(spec, rank, range, &before);
    }
    memcpy(placements, spec->layout.placements, sizeof placements);
    placements[axis] = (weft_placement){
        .kind = WEFT_PLACE_SIZES, .dim = range->dim, .sizes = sizes, .size_count = (size_t)count};
    if (status == WEFT_OK) status = wf_view_spec(spec, spec->layout.dims, shape, placements, out);
    wf_free(sizes);
    return status;
}

/* Find the layout of RANGE of TENSOR: its placements as they are, or with a G. */
static weft_status find_narrow(const weft_tensor *tensor, const struct range *range,
                               weft_spec **out)
{
    const weft_spec *spec = tensor->spec;
    uint32_t axes = axes_of(spec, range->dim);
    int64_t shape[WEFT_MAX_DIMS];
    weft_spec *found = NULL;
    weft_status status;

    memcpy(shape, spec->layout.shape, sizeof shape);
    shape[range->dim] = range->end - range->begin;
    status = wf_view_spec(spec, spec->layout.dims, shape, spec->layout.placements, &found);
    if (status == WEFT_ERR_NO_MEMORY) return status;
    if (status == WEFT_OK && (axes == 0 || describes(spec, found, range, axes))) goto done;
    weft_spec_release(&found);
    if (axes != 0 && (axes & (axes - 1)) == 0) {
        WF_TRY(place_sizes(spec, range, __builtin_ctz(axes), shape, &found));
        if (describes(spec, found, range, axes)) goto done;
        weft_spec_release(&found);
    }
    (void)wf_fail(WEFT_ERR_UNSUPPORTED,
                  "no placements describe the indices %lld to %lld of dimension %d, which is split",
                  (long long)range->begin, (long long)range->end - 1, range->dim);
    return wf_view_refuse(tensor, axes);
done:
    *out = found;
    return WEFT_OK;
}

static weft_status place_narrow(const void *self, const weft_tensor *tensor,
                                const struct wf_local *base, const weft_shard *shard,
                                int64_t *offset, int64_t *strides)
{
    const struct range *range = self;
    int64_t before;

    (void)shard;
    (void)count_indices(tensor->spec, base->rank, range, &before);
    *offset = before * strides[range->dim];
    return WEFT_OK;
}

static weft_status narrow(weft_tensor *tensor, int32_t dim, int64_t start, int64_t length,
                          weft_tensor **out)
{
    struct range range = {.dim = dim, .begin = start};
    weft_spec *spec = NULL;
    int64_t size;
    weft_status status;

    WF_TRY(check_dim(tensor, "dim", dim));
    size = tensor->spec->layout.shape[dim];
    if (start < 0 || length < 0 || start > size || length > size - start)
        return wf_fail(WEFT_ERR_INVALID,
                       "start is %lld and length is %lld, but dimension %d has %lld indices",
                       (long long)start, (long long)length, dim, (long long)size);
    range.end = start + length;
    WF_TRY(find_narrow(tensor, &range, &spec));
    status = wf_tensor_view(tensor, spec, place_narrow, &range, out);
    weft_spec_release(&spec);
    return status;
}

weft_status weft_tensor_narrow(weft_tensor *tensor, int32_t dim, int64_t start, int64_t length,
                               weft_tensor **out)
{
    WF_TRY(wf_tensor_check(tensor, "weft_tensor_narrow", "tensor"));
    if (out == NULL) return wf_fail_null("weft_tensor_narrow", "out");
    return wf_tensor_fail(tensor, narrow(tensor, dim, start, length, out), "weft_tensor_narrow");
}

/* ---- two dimensions swapped ---- */

static weft_status place_transposed(const void *self, const weft_tensor *tensor,
                                    const struct wf_local *base, const weft_shard *shard,
                                    int64_t *offset, int64_t *strides)
{
    const int32_t *dims = self;

    (void)tensor;
    (void)shard;
    *offset = 0;
    strides[dims[0]] = base->strides[dims[1]];
    strides[dims[1]] = base->strides[dims[0]];
    return WEFT_OK;
}

static weft_status transpose(weft_tensor *tensor, int32_t a, int32_t b, weft_tensor **out)
{
    const struct wf_layout *layout = &tensor->spec->layout;
    weft_placement placements[WEFT_MAX_AXES];
    const int32_t dims[] = {a, b};
    int64_t shape[WEFT_MAX_DIMS];
    weft_spec *spec = NULL;
    weft_status status;

    WF_TRY(check_dim(tensor, "a", a));
    WF_TRY(check_dim(tensor, "b", b));
    memcpy(placements, layout->placements, sizeof placements);
    memcpy(shape, layout->shape, sizeof shape);
    shape[a] = layout->shape[b];
    shape[b] = layout->shape[a];
    for (int32_t i = 0; i < layout->mesh->axes; i++) {
        if (!wf_placement_splits(&placements[i])) continue;
        if (layout->placements[i].dim == a) placements[i].dim = b;
        if (layout->placements[i].dim == b) placements[i].dim = a;
    }
    WF_TRY(wf_view_spec(tensor->spec, layout->dims, shape, placements, &spec));
    status = wf_tensor_view(tensor, spec, place_transposed, dims, out);
    weft_spec_release(&spec);
    return status;
}

weft_status weft_tensor_transpose(weft_tensor *tensor, int32_t a, int32_t b, weft_tensor **out)
{
    WF_TRY(wf_tensor_check(tensor, "weft_tensor_transpose", "tensor"));
    if (out == NULL) return wf_fail_null("weft_tensor_transpose", "out");
    return wf_tensor_fail(tensor, transpose(tensor, a, b, out), "weft_tensor_transpose");
}
