/* place.c - the rows of all axes together become placements of each tensor. */
#include "strategy.h"

#include <string.h>

void wf_strategy_default_order(struct wf_strategy *s)
{
    for (uint8_t i = 0; i < WEFT_MAX_AXES; i++)
        s->order[i] = i;
}

static bool is_linear(uint32_t reduction)
{
    return reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_AVG;
}

/* Partials of one tensor have one kind, but for sums and averages. */
static bool kinds_mix(const weft_placement *placements, int32_t axes)
{
    int32_t first = -1;

    for (int32_t i = 0; i < axes; i++) {
        if (placements[i].kind != WEFT_PLACE_PARTIAL) continue;
        if (first < 0) first = i;
        if (placements[i].reduction != placements[first].reduction &&
            !(is_linear(placements[i].reduction) && is_linear(placements[first].reduction)))
            return false;
    }
    return true;
}

/* True if the given spec splits DIM by AXIS alone, and gives every rank the indices that the row of
 * AXIS wants. */
static bool is_placed(const struct wf_strategy *s, const struct wf_op_tensor *t, int32_t dim,
                      int32_t axis)
{
    const weft_placement *p;

    if (t->given == NULL) return false;
    p = &t->placements[axis];
    if (p->kind == s->rows[axis]->style.kind && p->kind == WEFT_PLACE_SHARD) return false;
    return wf_placement_splits(p) && p->dim == dim && wf_splits_alone(s->op, t->placements, axis) &&
           wf_style_places_same(s->op, axis, t->shape[dim], &s->rows[axis]->style, p);
}

/* Place the axes that split dimension DIM of the tensor. */
static bool place_dim(const struct wf_strategy *s, const struct wf_op_tensor *t, int32_t dim,
                      const struct wf_entry *entries, weft_placement *out)
{
    struct wf_product product = {s, t, dim, 0, {0}};
    int32_t alone = 0;

    for (int32_t i = 0; i < s->op->axes; i++) {
        int32_t axis = s->order[i];
        if (entries[axis].kind == WF_ENTRY_DIM && entries[axis].value == dim) {
            out[axis] = *wf_row_style(s->rows[axis], (uint32_t)(t - s->op->tensors));
            alone++;
        }
        if (entries[axis].kind != WF_ENTRY_SPLIT) continue;
        for (int32_t f = 0; f < t->dim[dim].count; f++)
            if (t->dim[dim].factor[f] == entries[axis].value)
                product.axes[product.axis_count++] = axis;
    }
    if (alone > 0) return alone + product.axis_count == 1;
    if (product.axis_count == 0) return true;
    if (t->dim[dim].count > 1) return wf_product_place(&product, out);
    if (product.axis_count == 1 && is_placed(s, t, dim, product.axes[0])) {
        out[product.axes[0]] = t->placements[product.axes[0]];
        return true;
    }
    for (int32_t i = 0; i < product.axis_count; i++) {
        int32_t axis = product.axes[i];
        out[axis] = s->rows[axis]->style;
        out[axis].dim = dim;
        out[axis].turn = i;
    }
    return true;
}

bool wf_strategy_place(const struct wf_strategy *s, uint32_t tensor, weft_placement *out)
{
    const struct wf_op_tensor *t = &s->op->tensors[tensor];
    struct wf_entry entries[WEFT_MAX_AXES] = {{0, 0}};
    int32_t axes = s->op->axes;
    bool splits = false;

    for (int32_t a = 0; a < axes; a++) {
        entries[a] = wf_row_entry(s->op, s->rows[a], tensor);
        splits = splits || entries[a].kind == WF_ENTRY_SPLIT || entries[a].kind == WF_ENTRY_DIM;
        out[a] = (weft_placement){.kind = WEFT_PLACE_REPLICATE};
        if (entries[a].kind == WF_ENTRY_PARTIAL)
            out[a] = (weft_placement){.kind = WEFT_PLACE_PARTIAL, .reduction = entries[a].value};
        if (entries[a].kind == WF_ENTRY_OWNER) out[a] = *wf_row_style(s->rows[a], tensor);
    }
    if (entries[0].kind == WF_ENTRY_ANY) { /* of all axes */
        memcpy(out, t->placements, (size_t)axes * sizeof *out);
        return true;
    }
    if (!kinds_mix(out, axes)) return false;
    for (int32_t d = 0; splits && d < t->dims; d++)
        if (!place_dim(s, t, d, entries, out)) return false;
    return true;
}

/* ---- even and step ---- */

static bool part_is_aligned(const struct wf_index *index, int64_t size, int64_t step)
{
    weft_index_run run;

    for (int64_t at = 0; wf_index_run(index, at, &run); at += run.length)
        if (run.start % step != 0 ||
            ((run.start + run.length) % step != 0 && run.start + run.length != size))
            return false;
    return true;
}

static bool factor_is_aligned(const struct wf_strategy *s, uint32_t factor)
{
    const struct wf_op_factor *f = &s->op->factors[factor];
    int32_t coord[WEFT_MAX_AXES] = {0}, axis;
    struct wf_layout layout;
    int64_t first = -1;

    if (!wf_factor_layout(s, factor, &layout)) return false;
    do {
        struct wf_shard shard;
        struct wf_index index;
        wf_shard_at(&layout, coord, &shard);
        index = wf_shard_index(&shard, 0);
        if (first < 0) first = index.length;
        if ((f->flags & WF_EVEN) != 0 && index.length != first) return false;
        if (f->step > 0 && !part_is_aligned(&index, f->size, f->step)) return false;
        for (axis = layout.axes - 1; axis >= 0; axis--) {
            if (!wf_placement_splits(&layout.placements[axis])) continue;
            if (++coord[axis] < layout.ranks[axis]) break;
            coord[axis] = 0;
        }
    } while (axis >= 0);
    return true;
}

bool wf_strategy_is_aligned(const struct wf_strategy *s)
{
    for (uint32_t i = 0; i < s->op->factor_count; i++) {
        const struct wf_op_factor *f = &s->op->factors[i];
        if (((f->flags & WF_EVEN) != 0 || f->step > 0) && !factor_is_aligned(s, i)) return false;
    }
    return true;
}
