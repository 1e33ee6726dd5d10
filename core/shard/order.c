/* order.c - conversion between the order of splits and strided placements.
 *
 * In other systems SS(d,f) on an axis means "later axes whose sizes multiply to f have split d
 * before".  The two agree if sizes are even.  If they are not, the two may place elements on
 * different ranks, and no conversion exists.  A split in any order leaves each rank one run, so two
 * shards are equal if their first index and length are. */
#include "shard.h"

static int32_t count_splits(const struct wf_layout *layout, int32_t dim)
{
    int32_t count = 0;

    for (int32_t i = 0; i < layout->split_count; i++)
        count += layout->splits[i].dim == dim;
    return count;
}

static bool divides_evenly(const struct wf_layout *layout, int32_t dim)
{
    int64_t size = layout->shape[dim];

    for (int32_t i = 0; i < layout->split_count; i++) {
        int32_t n = layout->mesh->axis[layout->splits[i].axis].size;
        if (layout->splits[i].dim != dim) continue;
        if (size % n != 0) return false;
        size /= n;
    }
    return true;
}

/* True if a split of DIM lists sizes. */
static bool has_lists(const struct wf_layout *layout, int32_t dim)
{
    for (int32_t i = 0; i < layout->split_count; i++)
        if (layout->splits[i].dim == dim && layout->splits[i].sizes != NULL) return true;
    return false;
}

static weft_status refuse_lists(const char *function, int32_t dim)
{
    return wf_fail(WEFT_ERR_UNSUPPORTED,
                   "%s: dimension %d has a B or a G, which have no strided form; split the "
                   "dimension in the default order, without SS",
                   function, dim);
}

/* Next coordinate on the axes that split DIM; false after the last. */
static bool next_coord(const struct wf_layout *layout, int32_t dim, int32_t *coord)
{
    for (int32_t i = layout->mesh->axes - 1; i >= 0; i--) {
        const weft_placement *p = &layout->placements[i];
        if (!wf_placement_splits(p) || p->dim != dim) continue;
        if (++coord[i] < layout->mesh->axis[i].size) return true;
        coord[i] = 0;
    }
    return false;
}

/* ORDERED splits dimension DIM by S alone.  WEFT_OK if STRIDED places every element on the same
 * ranks. */
static weft_status check_same(const struct wf_layout *ordered, const struct wf_layout *strided,
                              int32_t dim)
{
    int32_t coord[WEFT_MAX_AXES] = {0};

    if (count_splits(ordered, dim) < 2 || divides_evenly(ordered, dim)) return WEFT_OK;
    if (has_lists(ordered, dim)) return WEFT_OK;      /* converted only if nothing changes */
    for (int32_t a = 0; a < ordered->mesh->axes; a++) /* the others hold nothing */
        if (ordered->placements[a].kind == WEFT_PLACE_OWNER)
            coord[a] = ordered->placements[a].owner;
    do {
        struct wf_shard a, b;
        struct wf_index index;
        weft_index_run run = {0, 0};
        wf_shard_at(ordered, coord, &a);
        wf_shard_at(strided, coord, &b);
        index = wf_shard_index(&b, dim);
        if (a.shape[dim] == b.shape[dim] && a.offset[dim] == b.offset[dim] &&
            (a.shape[dim] == 0 || (wf_index_run(&index, 0, &run) && run.length == a.shape[dim])))
            continue;
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "order and strides cannot be converted: dimension %d, of size %lld, is not "
                       "split evenly, and the shard of rank %d would have size %lld and begin at "
                       "%lld by order, but size %lld and begin at %lld by strides",
                       dim, (long long)ordered->shape[dim], wf_mesh_rank(ordered->mesh, coord),
                       (long long)a.shape[dim], (long long)a.offset[dim], (long long)b.shape[dim],
                       (long long)b.offset[dim]);
    } while (next_coord(ordered, dim, coord));
    return WEFT_OK;
}

static weft_status finish_layout(const weft_spec *spec, struct wf_layout *made,
                                 bool made_is_ordered, weft_spec **out)
{
    WF_TRY(wf_layout_settle(made));
    for (int32_t dim = 0; dim < made->dims; dim++)
        WF_TRY(check_same(made_is_ordered ? made : &spec->layout,
                          made_is_ordered ? &spec->layout : made, dim));
    return wf_spec_intern(made, out);
}

weft_status weft_spec_order_to_strides(const weft_spec *spec, weft_spec **out)
{
    struct wf_layout made;
    const struct wf_split *splits;

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_order_to_strides: spec"));
    WF_TRY(wf_require(out, "weft_spec_order_to_strides: out"));
    made = spec->layout;
    splits = spec->layout.splits;
    for (int32_t i = 0; i < made.split_count; i++) {
        weft_placement *p = &made.placements[splits[i].axis];
        int64_t factor = 1;
        if (i > 0 && splits[i].dim == splits[i - 1].dim && splits[i].axis < splits[i - 1].axis &&
            has_lists(&spec->layout, splits[i].dim))
            return refuse_lists("weft_spec_order_to_strides", splits[i].dim);
        if (p->kind == WEFT_PLACE_STRIDED)
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "placement %d is strided already, so strides cannot stand for its order",
                           splits[i].axis);
        for (int32_t j = 0; j < i; j++)
            if (splits[j].dim == splits[i].dim && splits[j].axis > splits[i].axis)
                factor *= made.mesh->axis[splits[j].axis].size;
        p->turn = 0;
        if (factor == 1) continue;
        p->factor = factor;
        p->kind = WEFT_PLACE_STRIDED;
    }
    return finish_layout(spec, &made, false, out);
}

/* The axes that split one dimension, in the order of their turns. */
struct order {
    int32_t count, axes[WEFT_MAX_AXES];
};

/* Insert AXIS into ORDER behind as many of the later axes as multiply to FACTOR; false if none
 * do. */
static bool insert_axis(struct order *order, const weft_mesh *mesh, int32_t axis, int64_t factor)
{
    int64_t before = 1;
    int32_t position = 0;

    while (before != factor && position < order->count)
        before *= mesh->axis[order->axes[position++]].size;
    if (before != factor) return false;
    for (int32_t i = order->count++; i > position; i--)
        order->axes[i] = order->axes[i - 1];
    order->axes[position] = axis;
    return true;
}

weft_status weft_spec_strides_to_order(const weft_spec *spec, weft_spec **out)
{
    struct wf_layout made;
    struct order orders[WEFT_MAX_DIMS] = {{0, {0}}};

    WF_TRY(wf_require_kind(spec, WF_KIND_SPEC, "weft_spec_strides_to_order: spec"));
    WF_TRY(wf_require(out, "weft_spec_strides_to_order: out"));
    made = spec->layout;
    for (int32_t i = 1; i < made.split_count; i++)
        if (made.splits[i].dim == made.splits[i - 1].dim &&
            made.splits[i].axis < made.splits[i - 1].axis)
            return wf_fail(WEFT_ERR_UNSUPPORTED, "dimension %d has an order already",
                           made.splits[i].dim);
    for (int32_t axis = made.mesh->axes - 1; axis >= 0; axis--) {
        weft_placement *p = &made.placements[axis];
        int64_t factor = p->kind == WEFT_PLACE_STRIDED ? p->factor : 1;
        if (!wf_placement_splits(p)) continue;
        if (factor > 1 && has_lists(&spec->layout, p->dim))
            return refuse_lists("weft_spec_strides_to_order", p->dim);
        if (!insert_axis(&orders[p->dim], made.mesh, axis, factor))
            return wf_fail(WEFT_ERR_UNSUPPORTED,
                           "placement %d, SS(%d,%lld): no later axes that split dimension %d "
                           "have sizes that multiply to %lld",
                           axis, p->dim, (long long)factor, p->dim, (long long)factor);
        if (!wf_placement_has_sizes(p))
            *p = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = p->dim};
    }
    for (int32_t dim = 0; dim < made.dims; dim++)
        for (int32_t i = 0; i < orders[dim].count; i++)
            made.placements[orders[dim].axes[i]].turn = i;
    return finish_layout(spec, &made, true, out);
}
