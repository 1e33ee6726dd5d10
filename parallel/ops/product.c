/* product.c - splits of a dimension that is a product of factors.
 *
 * The local part of such a dimension is the product of the local parts of its factors, in row-major
 * order.  A placement is right if every coordinate holds exactly these indices in this order.  No
 * rule about divisibility is needed: candidates are compared run by run. */
#include "strategy.h"

#include <string.h>

enum { CANDIDATES = 8 };

/* The local parts of the factors of a dimension, at one coordinate. */
struct parts {
    int32_t count;
    int64_t size[WEFT_MAX_DIMS];
    struct wf_shard shard[WEFT_MAX_DIMS];
};

static bool splits_factor(const struct wf_strategy *s, int32_t axis, uint32_t factor)
{
    return s->rows[axis]->kind == WF_ROW_SPLIT && s->rows[axis]->factor == factor;
}

bool wf_factor_layout(const struct wf_strategy *s, uint32_t factor, struct wf_layout *out)
{
    int32_t turn = 0;

    wf_op_begin_layout(s->op, WEFT_DTYPE_U8, 1, out);
    out->shape[0] = s->op->factors[factor].size;
    memset(out->placements, 0, sizeof out->placements);
    for (int32_t i = 0; i < out->axes; i++) {
        int32_t axis = s->order[i];
        if (!splits_factor(s, axis, factor)) continue;
        out->placements[axis] = s->rows[axis]->style;
        out->placements[axis].turn = turn++;
    }
    if (wf_layout_settle(out) != WEFT_OK) return false;
    wf_sizes_set_starts(s->sizes, out);
    return true;
}

/* ---- comparison ---- */

/* The run of the product from local position AT on.  It need not be maximal. */
static bool product_run(const struct parts *parts, int64_t at, weft_index_run *out)
{
    int64_t stride = 1, start = 0;
    bool whole = true; /* the factors inside are complete, and AT is at their begin */

    out->length = 1;
    for (int32_t i = parts->count - 1; i >= 0; i--) {
        struct wf_index index = wf_shard_index(&parts->shard[i], 0);
        weft_index_run run;
        int64_t digit;
        if (index.length == 0) return false;
        digit = at % index.length;
        at /= index.length;
        if (!wf_index_run(&index, digit, &run)) return false;
        if (whole) out->length = run.length * stride;
        whole = whole && digit == 0 && run.length == parts->size[i];
        start += run.start * stride;
        stride *= parts->size[i];
    }
    out->start = start;
    return at == 0;
}

static bool same_at(const struct parts *parts, const struct wf_shard *shard)
{
    struct wf_index index = wf_shard_index(shard, 0);
    int64_t length = 1;

    for (int32_t i = 0; i < parts->count; i++)
        length *= parts->shard[i].shape[0];
    if (length != index.length) return false;
    for (int64_t at = 0; at < length;) {
        weft_index_run want, have;
        if (!product_run(parts, at, &want) || !wf_index_run(&index, at, &have)) return false;
        if (want.start != have.start) return false;
        at += wf_min_i64(want.length, have.length);
    }
    return true;
}

/* Go to the next coordinate of the axes that split the dimension. */
static bool next_coord(const struct wf_product *p, int32_t *coord)
{
    for (int32_t i = p->axis_count - 1; i >= 0; i--) {
        int32_t axis = p->axes[i];
        if (++coord[axis] < p->strategy->op->ranks[axis]) return true;
        coord[axis] = 0;
    }
    return false;
}

/* True if COORD holds the same of the product and of LAYOUT. */
static bool fits_at(const struct wf_product *p, const struct wf_layout *factors,
                    const struct wf_layout *layout, const int32_t *coord)
{
    const struct wf_op_dim *dim = &p->tensor->dim[p->dim];
    struct parts parts = {.count = dim->count};
    struct wf_shard shard;

    for (int32_t i = 0; i < dim->count; i++) {
        parts.size[i] = factors[i].shape[0];
        wf_shard_at(&factors[i], coord, &parts.shard[i]);
    }
    wf_shard_at(layout, coord, &shard);
    return same_at(&parts, &shard);
}

/* True if every split of LAYOUT, which has one dimension, gives all ranks as many indices.  Local
 * index i of a rank is then that of the first rank plus a multiple of each coordinate. */
static bool is_even(const struct wf_layout *layout)
{
    int64_t left = layout->shape[0];

    for (int32_t i = 0; i < layout->split_count; i++) {
        const struct wf_split *split = &layout->splits[i];
        int64_t ranks = layout->ranks[split->axis];
        int64_t pieces = split->kind == WEFT_PLACE_STRIDED ? split->factor : 1;
        if (split->kind != WEFT_PLACE_SHARD && split->kind != WEFT_PLACE_STRIDED) return false;
        if (left % pieces != 0 || left / pieces % ranks != 0) return false;
        left /= ranks;
    }
    return true;
}

/* Layouts that differ mostly do so at the ends or in the middle of an axis. */
static bool fits_at_ends(const struct wf_product *p, const struct wf_layout *factors,
                         const struct wf_layout *layout)
{
    const struct wf_op *op = p->strategy->op;

    for (int32_t k = -2; k < p->axis_count; k++) {
        int32_t coord[WEFT_MAX_AXES] = {0};
        for (int32_t i = 0; i < p->axis_count; i++) {
            int32_t size = op->ranks[p->axes[i]];
            if (k < 0 || k == i) coord[p->axes[i]] = k == -2 ? size / 2 : size - 1;
        }
        if (!fits_at(p, factors, layout, coord)) return false;
    }
    return true;
}

static bool layout_fits(const struct wf_product *p, const struct wf_layout *factors,
                        const struct wf_layout *layout)
{
    enum { MANY = 64 /* ranks */ };
    int32_t coord[WEFT_MAX_AXES] = {0};
    bool even = is_even(layout), many = weft_mesh_size(layout->mesh) > MANY;

    for (int32_t i = 0; i < p->tensor->dim[p->dim].count; i++)
        even = even && is_even(&factors[i]);
    if (many && !fits_at_ends(p, factors, layout)) return false;
    if (even && many) return fits_at(p, factors, layout, coord);
    do {
        if (!fits_at(p, factors, layout, coord)) return false;
    } while (next_coord(p, coord));
    return true;
}

/* ---- candidates ---- */

static void add_candidate(weft_placement *list, int32_t *count, int64_t factor)
{
    weft_placement p = {.kind = factor > 1 ? WEFT_PLACE_STRIDED : WEFT_PLACE_SHARD,
                        .factor = factor > 1 ? factor : 0};

    for (int32_t i = 0; i < *count; i++)
        if (wf_style_same(&list[i], &p)) return;
    if (*count < CANDIDATES) list[(*count)++] = p;
}

/* Indices of FACTOR that the axes before the I-th of the product leave on the first rank. */
static int64_t count_left(const struct wf_product *p, int32_t i, uint32_t factor)
{
    const struct wf_strategy *s = p->strategy;
    int64_t rest = s->op->factors[factor].size;

    for (int32_t j = 0; j < i; j++)
        if (splits_factor(s, p->axes[j], factor)) {
            int64_t n = s->op->ranks[p->axes[j]];
            rest = (rest + n - 1) / n;
        }
    return rest;
}

/* The list of STYLE, for a dimension with OUTER indices outside of the factor and INNER inside. */
static void add_listed(const struct wf_product *p, const weft_placement *style, int64_t outer,
                       int64_t inner, weft_placement *list, int32_t *count)
{
    weft_placement made = {.kind = style->kind};

    if (outer != 1 && style->kind != WEFT_PLACE_PARTS) return;
    if (outer < 1 || inner < 1 || outer > WEFT_MAX_PARTS ||
        (outer > 1 && (size_t)outer * style->size_count > WEFT_MAX_PARTS))
        return;
    made.size_count = (size_t)outer * style->size_count;
    made.sizes =
        wf_sizes_keep(p->strategy->sizes, style->sizes, (int32_t)style->size_count, inner, outer);
    if (made.sizes != NULL) list[(*count)++] = made;
}

/* The sizes of the parts that S makes of the factor, which is the outermost one of the product and
 * which AXIS splits alone; INNER indices are inside of it. */
static void add_uneven(const struct wf_product *p, int32_t axis, uint32_t factor, int64_t inner,
                       weft_placement *list, int32_t *count)
{
    int32_t ranks = p->strategy->op->ranks[axis];
    int64_t size = p->strategy->op->factors[factor].size;
    int64_t few[WEFT_MAX_PARTS], *sizes = few, chunk = size / ranks + (size % ranks != 0);
    weft_placement made = {.kind = WEFT_PLACE_SIZES, .size_count = (size_t)ranks};

    if (size % ranks == 0 || *count == CANDIDATES) return; /* then S gives these parts */
    if (ranks > WEFT_MAX_PARTS) {
        sizes = wf_alloc((size_t)ranks * sizeof *sizes);
        if (sizes == NULL) {
            p->strategy->sizes->failed = true;
            return;
        }
    }
    for (int32_t i = 0; i < ranks; i++, size -= wf_min_i64(chunk, size))
        sizes[i] = wf_min_i64(chunk, size);
    made.sizes = wf_sizes_keep(p->strategy->sizes, sizes, ranks, inner, 1);
    if (sizes != few) wf_free(sizes);
    if (made.sizes != NULL) list[(*count)++] = made;
}

/* How the I-th axis of the product might split the dimension: S, SS by what is outside of its
 * factor, as a whole or as the axes before have left it, the sizes that its row lists, and those
 * that S makes of its factor. */
static int32_t list_candidates(const struct wf_product *p, int32_t i, weft_placement *out)
{
    const struct wf_op *op = p->strategy->op;
    const struct wf_op_dim *dim = &p->tensor->dim[p->dim];
    const struct wf_row *row = p->strategy->rows[p->axes[i]];
    int64_t outer = 1, left = 1, inner = 1, style;
    int32_t count = 0, f = 0;

    for (; f < dim->count && dim->factor[f] != row->factor; f++) {
        outer *= op->factors[dim->factor[f]].size;
        left *= count_left(p, i, dim->factor[f]);
    }
    for (f++; f < dim->count; f++)
        inner *= count_left(p, i, dim->factor[f]);
    if (wf_placement_has_sizes(&row->style)) add_listed(p, &row->style, left, inner, out, &count);
    style = row->style.kind == WEFT_PLACE_STRIDED ? row->style.factor : 1;
    add_candidate(out, &count, 1);
    add_candidate(out, &count, outer);
    add_candidate(out, &count, left);
    add_candidate(out, &count, style);
    add_candidate(out, &count, outer * style);
    add_candidate(out, &count, left * style);
    if (row->style.kind == WEFT_PLACE_SHARD && p->axis_count == 1 && outer == 1 && inner > 1)
        add_uneven(p, p->axes[i], row->factor, inner, out, &count);
    return count;
}

/* The dimension as a tensor of its own, split by the placements in CHOSEN. */
static bool settle_candidate(const struct wf_product *p, const weft_placement *chosen,
                             struct wf_layout *layout)
{
    wf_op_begin_layout(p->strategy->op, WEFT_DTYPE_U8, 1, layout);
    layout->shape[0] = p->tensor->shape[p->dim];
    memset(layout->placements, 0, sizeof layout->placements);
    for (int32_t i = 0; i < p->axis_count; i++) {
        layout->placements[p->axes[i]] = chosen[p->axes[i]];
        layout->placements[p->axes[i]].dim = 0;
    }
    if (wf_layout_settle(layout) != WEFT_OK) return false;
    wf_sizes_set_starts(p->strategy->sizes, layout);
    return true;
}

/* True if the given spec splits the dimension by exactly the axes of the product. */
static bool given_splits(const struct wf_product *p)
{
    const weft_placement *given = p->tensor->placements;
    int32_t count = 0;

    if (given == NULL) return false;
    for (int32_t a = 0; a < p->strategy->op->axes; a++)
        count += wf_placement_splits(&given[a]) && given[a].dim == p->dim;
    for (int32_t i = 0; i < p->axis_count; i++) {
        const weft_placement *q = &given[p->axes[i]];
        if (!wf_placement_splits(q) || q->dim != p->dim) return false;
    }
    return count == p->axis_count;
}

static void take_placements(const struct wf_product *p, const weft_placement *from,
                            weft_placement *out)
{
    for (int32_t i = 0; i < p->axis_count; i++) {
        out[p->axes[i]] = from[p->axes[i]];
        out[p->axes[i]].dim = p->dim;
    }
}

bool wf_product_place(const struct wf_product *p, weft_placement *out)
{
    const struct wf_op_dim *dim = &p->tensor->dim[p->dim];
    struct wf_layout factors[WEFT_MAX_DIMS], layout;
    weft_placement list[WEFT_MAX_AXES][CANDIDATES], chosen[WEFT_MAX_AXES];
    int32_t counts[WEFT_MAX_AXES], at[WEFT_MAX_AXES] = {0}, i;

    for (i = 0; i < dim->count; i++)
        if (!wf_factor_layout(p->strategy, dim->factor[i], &factors[i])) return false;
    if (given_splits(p) && settle_candidate(p, p->tensor->placements, &layout) &&
        layout_fits(p, factors, &layout)) {
        take_placements(p, p->tensor->placements, out);
        return true;
    }
    for (i = 0; i < p->axis_count; i++)
        counts[i] = list_candidates(p, i, list[i]);
    do {
        for (i = 0; i < p->axis_count; i++) {
            chosen[p->axes[i]] = list[i][at[i]];
            chosen[p->axes[i]].turn = i;
        }
        if (settle_candidate(p, chosen, &layout) && layout_fits(p, factors, &layout)) {
            take_placements(p, chosen, out);
            return true;
        }
        for (i = p->axis_count - 1; i >= 0 && ++at[i] == counts[i]; i--)
            at[i] = 0;
    } while (i >= 0);
    return false;
}
