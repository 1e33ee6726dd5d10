/* rows.c - layouts of what phases make of a tensor: a statistic of each row, or candidates. */
#include "phases.h"

#include <string.h>

static bool is_reduced(uint32_t reduced, int32_t dim)
{
    return (reduced >> dim & 1) != 0;
}

static bool splits_reduced(const weft_placement *p, uint32_t reduced)
{
    return wf_placement_splits(p) && is_reduced(reduced, p->dim);
}

bool wf_rows_are_split(const weft_spec *spec, uint32_t reduced)
{
    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (splits_reduced(&spec->layout.placements[a], reduced)) return true;
    return false;
}

int64_t wf_rows_length(const weft_spec *spec, uint32_t reduced)
{
    int64_t length = 1;

    for (int32_t d = 0; d < spec->layout.dims; d++)
        if (is_reduced(reduced, d)) length *= spec->layout.shape[d];
    return length;
}

/* The number of dimension DIM of a tensor without the dimensions REDUCED. */
static int32_t kept_number(uint32_t reduced, int32_t dim)
{
    return dim - __builtin_popcount(reduced & ((1u << dim) - 1));
}

/* SPEC without the dimensions REDUCED.  The axes that split them get PLACEMENT. */
static struct wf_layout rows_of(const weft_spec *spec, uint32_t reduced, bool keep,
                                weft_placement placement, uint32_t dtype)
{
    const struct wf_layout *x = &spec->layout;
    struct wf_layout out = {.mesh = x->mesh, .dtype = dtype};

    for (int32_t d = 0; d < x->dims; d++)
        if (!is_reduced(reduced, d) || keep)
            out.shape[out.dims++] = is_reduced(reduced, d) ? 1 : x->shape[d];
    for (int32_t a = 0; a < x->mesh->axes; a++) {
        out.placements[a] = x->placements[a];
        if (splits_reduced(&x->placements[a], reduced))
            out.placements[a] = placement;
        else if (wf_placement_splits(&x->placements[a]) && !keep)
            out.placements[a].dim = kept_number(reduced, x->placements[a].dim);
    }
    return out;
}

weft_status wf_rows_spec(const weft_spec *spec, uint32_t reduced, bool keep, uint32_t reduction,
                         uint32_t dtype, weft_spec **out)
{
    weft_placement placement = {.kind = WEFT_PLACE_REPLICATE};
    struct wf_layout layout;

    if (reduction != WEFT_REDUCE_COUNT)
        placement = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = reduction};
    layout = rows_of(spec, reduced, keep, placement, dtype);
    return wf_spec_intern(&layout, out);
}

/* The ranks along the axes that split the dimensions REDUCED. */
static int64_t holders(const weft_spec *spec, uint32_t reduced)
{
    int64_t ranks = 1;

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (splits_reduced(&spec->layout.placements[a], reduced))
            ranks *= spec->layout.mesh->axis[a].size;
    return ranks;
}

weft_status wf_candidates_spec(const weft_spec *spec, uint32_t reduced, int64_t slots, bool split,
                               uint32_t dtype, weft_spec **out)
{
    int32_t last = spec->layout.dims - __builtin_popcount(reduced);
    weft_placement placement = {.kind = WEFT_PLACE_REPLICATE};
    struct wf_layout layout;

    if (split) placement = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = last};
    layout = rows_of(spec, reduced, false, placement, dtype);
    layout.shape[layout.dims++] = slots * holders(spec, reduced);
    return wf_spec_intern(&layout, out);
}

weft_status wf_resized_spec(const weft_spec *spec, int32_t dim, int64_t size, uint32_t dtype,
                            weft_spec **out)
{
    struct wf_layout layout = rows_of(spec, 1u << dim, true, (weft_placement){0}, dtype);

    layout.shape[dim] = size;
    return wf_spec_intern(&layout, out);
}

weft_status wf_stacked_spec(const weft_spec *spec, uint32_t count, weft_spec **out)
{
    struct wf_layout layout = rows_of(spec, 0, true, (weft_placement){0}, spec->layout.dtype);

    memmove(layout.shape + 1, layout.shape, (size_t)layout.dims * sizeof *layout.shape);
    layout.shape[0] = count;
    layout.dims++;
    for (int32_t a = 0; a < layout.mesh->axes; a++)
        if (wf_placement_splits(&layout.placements[a])) layout.placements[a].dim++;
    return wf_spec_intern(&layout, out);
}

weft_status wf_columns_spec(const weft_spec *spec, uint32_t reduced, uint32_t reduction,
                            uint32_t dtype, weft_spec **out)
{
    uint32_t all = (1u << spec->layout.dims) - 1;

    return wf_rows_spec(spec, all & ~reduced, false, reduction, dtype, out);
}

static int64_t count_runs(const weft_spec *spec, int32_t rank, int32_t dim)
{
    int64_t count = 0;
    weft_run run;

    for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length)
        count++;
    return count;
}

int64_t wf_most_runs(const weft_spec *spec, int32_t dim)
{
    const weft_mesh *mesh = spec->layout.mesh;
    bool consecutive = true;
    int64_t most = 1;

    for (int32_t a = 0; a < mesh->axes; a++) {
        const weft_placement *p = &spec->layout.placements[a];
        if (wf_placement_splits(p) && p->dim == dim)
            consecutive =
                consecutive && (p->kind == WEFT_PLACE_SHARD || p->kind == WEFT_PLACE_SIZES);
    }
    for (int32_t i = 0; !consecutive && i < mesh->size; i++) {
        int64_t runs = count_runs(spec, weft_mesh_rank_at(mesh, i), dim);
        if (runs > most) most = runs;
    }
    return most;
}

weft_status wf_complete_spec(const weft_spec *spec, weft_spec **out)
{
    struct wf_layout layout = rows_of(spec, 0, true, (weft_placement){0}, spec->layout.dtype);

    for (int32_t a = 0; a < layout.mesh->axes; a++)
        if (layout.placements[a].kind == WEFT_PLACE_PARTIAL)
            layout.placements[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    return wf_spec_intern(&layout, out);
}

int64_t wf_largest_part(const weft_spec *spec, int32_t dim)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard shard;

    wf_layout_largest(&spec->layout, coord);
    wf_shard_at(&spec->layout, coord, &shard);
    return shard.shape[dim];
}
