/* table.c - lengths and overlaps of one dimension, for all coordinates that they depend on.
 *
 * A dimension of a shard depends on the axes that split it, and not on the other axes.  A table
 * lists one dimension of two layouts of one mesh for all coordinates of those axes.  The number of
 * ranks is the product of all axes, so tables are usually much shorter. */
#include "figures.h"

uint32_t wf_layout_axes(const struct wf_layout *layout, int32_t dim)
{
    uint32_t axes = 0;

    for (int32_t i = 0; i < layout->split_count; i++)
        if (layout->splits[i].dim == dim) axes |= UINT32_C(1) << layout->splits[i].axis;
    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        const weft_placement *p = &layout->placements[a];
        if (layout->mesh->axis[a].size == 1) axes &= ~(UINT32_C(1) << a);
        /* any other placement may leave a coordinate without elements, by an empty first dimension
         */
        if (dim == 0 && layout->mesh->axis[a].size > 1 && p->kind != WEFT_PLACE_REPLICATE &&
            p->kind != WEFT_PLACE_PARTIAL && !wf_placement_splits(p))
            axes |= UINT32_C(1) << a;
    }
    return axes;
}

/* Runs of dimension DIM of a shard of LAYOUT, at most. */
static int64_t layout_runs(const struct wf_layout *layout, int32_t dim)
{
    int64_t runs = 1;

    for (int32_t i = 0; i < layout->split_count; i++) {
        const struct wf_split *split = &layout->splits[i];
        if (split->dim != dim || layout->mesh->axis[split->axis].size == 1) continue;
        if (split->kind == WEFT_PLACE_PARTS) runs += split->size_count - 1;
        if (split->kind == WEFT_PLACE_STRIDED)
            runs += wf_min_i64(split->factor, layout->shape[dim]) - 1;
        runs = wf_min_i64(runs, layout->shape[dim]);
    }
    return runs;
}

int64_t wf_layouts_runs(const struct wf_layout *a, const struct wf_layout *b, bool either)
{
    int64_t most = 1;

    for (int32_t d = 0; d < a->dims; d++) {
        int64_t runs[] = {layout_runs(a, d), layout_runs(b, d)};
        most =
            wf_max_i64(most, either ? wf_max_i64(runs[0], runs[1]) : wf_min_i64(runs[0], runs[1]));
    }
    return most;
}

bool wf_steps_walk(const struct wf_step *steps, uint32_t count, int64_t shards)
{
    int64_t most = 1;

    for (uint32_t i = 0; i < count; i++)
        if (!wf_step_stays(&steps[i]))
            most = wf_max_i64(most,
                              wf_layouts_runs(&steps[i].from->layout, &steps[i].to->layout, false));
    return most <= WF_RUNS_MAX && most * shards <= WF_RUNS_WALKED;
}

void wf_table_set(struct wf_table *table, const weft_mesh *mesh, uint32_t axes)
{
    table->axes = axes;
    table->count = 1;
    for (int32_t a = mesh->axes - 1; a >= 0; a--) {
        table->stride[a] = 0;
        if (!(axes >> a & 1)) continue;
        table->stride[a] = (int32_t)table->count;
        table->count *= mesh->axis[a].size;
    }
}

bool wf_coord_next(const weft_mesh *mesh, uint32_t axes, int32_t *coord)
{
    for (int32_t a = mesh->axes - 1; a >= 0; a--) {
        if (!(axes >> a & 1)) continue;
        if (++coord[a] < mesh->axis[a].size) return true;
        coord[a] = 0;
    }
    return false;
}

int64_t wf_shards_common(const struct wf_shard *a, const struct wf_shard *b, int32_t dim)
{
    struct wf_index has, gets;

    if (dim >= a->dims) return wf_min_i64(a->elements, b->elements); /* a scalar */
    has = wf_shard_index(a, dim);
    gets = wf_shard_index(b, dim);
    return wf_index_common_about(&has, &gets, WF_RUNS_MAX);
}

uint64_t wf_shards_common_elements(const struct wf_shard *a, const struct wf_shard *b)
{
    uint64_t common = 1;

    for (int32_t d = 0; d < (a->dims > 0 ? a->dims : 1); d++)
        common *= (uint64_t)wf_shards_common(a, b, d);
    return common;
}

void wf_table_fill(const struct wf_table *table, const struct wf_layout *from,
                   const struct wf_layout *to, int32_t dim, int64_t *wants, int64_t *common)
{
    int32_t coord[WEFT_MAX_AXES] = {0};
    struct wf_shard has, gets;
    int64_t i = 0;

    do {
        wf_shard_at(from, coord, &has);
        wf_shard_at(to, coord, &gets);
        wants[i] = dim < to->dims ? gets.shape[dim] : gets.elements;
        common[i++] = wf_shards_common(&has, &gets, dim);
    } while (wf_coord_next(to->mesh, table->axes, coord));
}
