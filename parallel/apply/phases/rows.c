/* rows.c - layouts of what phases make of a tensor: a statistic of each row, or candidates. */
#include "phases.h"

#include "ops/bind/specs.h"

#include <string.h>

/* A spec that is made. */
struct rows {
    const weft_mesh *mesh;
    uint32_t dtype;
    int32_t dims;
    int64_t shape[WEFT_MAX_DIMS];
    weft_placement placements[WEFT_MAX_AXES];
};

static weft_status make_spec(const struct rows *rows, weft_spec **out)
{
    return weft_spec_create(rows->mesh, (enum weft_dtype)rows->dtype, rows->dims, rows->shape,
                            rows->placements, out);
}

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
    const weft_placement *placements = weft_spec_placements(spec);

    for (int32_t a = 0; a < wf_spec_axes(spec); a++)
        if (splits_reduced(&placements[a], reduced)) return true;
    return false;
}

int64_t wf_rows_length(const weft_spec *spec, uint32_t reduced)
{
    int64_t length = 1;

    for (int32_t d = 0; d < weft_spec_dims(spec); d++)
        if (is_reduced(reduced, d)) length *= weft_spec_shape(spec)[d];
    return length;
}

/* The number of dimension DIM of a tensor without the dimensions REDUCED. */
static int32_t kept_number(uint32_t reduced, int32_t dim)
{
    return dim - __builtin_popcount(reduced & ((1u << dim) - 1));
}

/* SPEC without the dimensions REDUCED.  The axes that split them get PLACEMENT. */
static struct rows rows_of(const weft_spec *spec, uint32_t reduced, bool keep,
                           weft_placement placement, uint32_t dtype)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const int64_t *shape = weft_spec_shape(spec);
    struct rows out = {.mesh = weft_spec_mesh(spec), .dtype = dtype};

    for (int32_t d = 0; d < weft_spec_dims(spec); d++)
        if (!is_reduced(reduced, d) || keep)
            out.shape[out.dims++] = is_reduced(reduced, d) ? 1 : shape[d];
    for (int32_t a = 0; a < wf_spec_axes(spec); a++) {
        out.placements[a] = placements[a];
        if (splits_reduced(&placements[a], reduced))
            out.placements[a] = placement;
        else if (wf_placement_splits(&placements[a]) && !keep)
            out.placements[a].dim = kept_number(reduced, placements[a].dim);
    }
    return out;
}

weft_status wf_rows_spec(const weft_spec *spec, uint32_t reduced, bool keep, uint32_t reduction,
                         uint32_t dtype, weft_spec **out)
{
    weft_placement placement = {.kind = WEFT_PLACE_REPLICATE};
    struct rows layout;

    if (reduction != WEFT_REDUCE_COUNT)
        placement = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = reduction};
    layout = rows_of(spec, reduced, keep, placement, dtype);
    return make_spec(&layout, out);
}

/* The ranks along the axes that split the dimensions REDUCED. */
static int64_t holders(const weft_spec *spec, uint32_t reduced)
{
    const weft_placement *placements = weft_spec_placements(spec);
    int64_t ranks = 1;

    for (int32_t a = 0; a < wf_spec_axes(spec); a++)
        if (splits_reduced(&placements[a], reduced))
            ranks *= weft_mesh_axis_size(weft_spec_mesh(spec), a);
    return ranks;
}

weft_status wf_candidates_spec(const weft_spec *spec, uint32_t reduced, int64_t slots, bool split,
                               uint32_t dtype, weft_spec **out)
{
    int32_t last = weft_spec_dims(spec) - __builtin_popcount(reduced);
    weft_placement placement = {.kind = WEFT_PLACE_REPLICATE};
    struct rows layout;

    if (split) placement = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = last};
    layout = rows_of(spec, reduced, false, placement, dtype);
    layout.shape[layout.dims++] = slots * holders(spec, reduced);
    return make_spec(&layout, out);
}

weft_status wf_resized_spec(const weft_spec *spec, int32_t dim, int64_t size, uint32_t dtype,
                            weft_spec **out)
{
    struct rows layout = rows_of(spec, 1u << dim, true, (weft_placement){0}, dtype);

    layout.shape[dim] = size;
    return make_spec(&layout, out);
}

weft_status wf_stacked_spec(const weft_spec *spec, uint32_t count, weft_spec **out)
{
    struct rows layout = rows_of(spec, 0, true, (weft_placement){0}, weft_spec_dtype(spec));

    memmove(layout.shape + 1, layout.shape, (size_t)layout.dims * sizeof *layout.shape);
    layout.shape[0] = count;
    layout.dims++;
    for (int32_t a = 0; a < wf_spec_axes(spec); a++)
        if (wf_placement_splits(&layout.placements[a])) layout.placements[a].dim++;
    return make_spec(&layout, out);
}

weft_status wf_columns_spec(const weft_spec *spec, uint32_t reduced, uint32_t reduction,
                            uint32_t dtype, weft_spec **out)
{
    uint32_t all = (1u << weft_spec_dims(spec)) - 1;

    return wf_rows_spec(spec, all & ~reduced, false, reduction, dtype, out);
}

static int64_t count_runs(const weft_spec *spec, int32_t rank, int32_t dim)
{
    int64_t count = 0;
    weft_index_run run;

    for (int64_t at = 0; weft_spec_run(spec, rank, dim, at, &run); at += run.length)
        count++;
    return count;
}

int64_t wf_most_runs(const weft_spec *spec, int32_t dim)
{
    const weft_placement *placements = weft_spec_placements(spec);
    const weft_mesh *mesh = weft_spec_mesh(spec);
    bool consecutive = true;
    int64_t most = 1;

    for (int32_t a = 0; a < wf_spec_axes(spec); a++) {
        const weft_placement *p = &placements[a];
        if (wf_placement_splits(p) && p->dim == dim)
            consecutive =
                consecutive && (p->kind == WEFT_PLACE_SHARD || p->kind == WEFT_PLACE_SIZES);
    }
    for (int32_t i = 0; !consecutive && i < weft_mesh_size(mesh); i++) {
        int64_t runs = count_runs(spec, weft_mesh_rank_at(mesh, i), dim);
        if (runs > most) most = runs;
    }
    return most;
}

weft_status wf_complete_spec(const weft_spec *spec, weft_spec **out)
{
    struct rows layout = rows_of(spec, 0, true, (weft_placement){0}, weft_spec_dtype(spec));

    for (int32_t a = 0; a < wf_spec_axes(spec); a++)
        if (layout.placements[a].kind == WEFT_PLACE_PARTIAL)
            layout.placements[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    return make_spec(&layout, out);
}

int64_t wf_largest_part(const weft_spec *spec, int32_t dim)
{
    weft_shard shard;

    weft_spec_shard(spec, wf_spec_largest_rank(spec), &shard);
    return shard.shape[dim];
}
