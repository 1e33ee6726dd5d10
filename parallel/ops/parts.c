/* parts.c - rows of operators that cut a dimension into parts, or join tensors into one: the clause
 * `parts`.
 *
 * B splits each part of a dimension by itself.  A rank then has a piece of each part, so a cut
 * between two parts, and a join of split tensors, are local.  The sizes of placements that the rows
 * have are theirs. */
#include "strategy.h"

#include <string.h>

/* Sizes of consecutive parts of a dimension. */
struct cuts {
    int32_t count;
    int64_t sizes[WEFT_MAX_PARTS];
};

/* A tensor that is a part, or the whole. */
struct member {
    uint32_t tensor;
    int32_t dim;
};

static bool find_whole(const struct wf_op *op, struct member *out)
{
    for (uint32_t i = 0; i < op->input_count + op->output_count; i++) {
        out->tensor = i;
        out->dim = wf_op_dim_of(op, i, op->rule->cut.whole - 1u);
        if (out->dim >= 0) return true;
    }
    return false;
}

static bool append(struct cuts *cuts, int64_t size)
{
    if (cuts->count == WEFT_MAX_PARTS) return false;
    cuts->sizes[cuts->count++] = size;
    return true;
}

/* Append the parts that P splits a dimension of SIZE indices into.  False: P is of another kind. */
static bool add_cuts(const weft_placement *p, int64_t size, struct cuts *out)
{
    int64_t chunk = size;
    bool fits = true;

    if (p->kind == WEFT_PLACE_PARTS) {
        for (size_t i = 0; fits && i < p->size_count; i++)
            fits = append(out, p->sizes[i]);
        return fits;
    }
    if (p->kind == WEFT_PLACE_STRIDED)
        chunk = size / p->factor + (size % p->factor != 0);
    else if (p->kind != WEFT_PLACE_SHARD)
        return false;
    for (; fits && size > 0; size -= wf_min_i64(chunk, size))
        fits = append(out, wf_min_i64(chunk, size));
    return fits;
}

/* The placement that splits each of CUTS, in its one form.  Its sizes are allocated. */
static weft_status set_placement(const struct wf_op *op, struct member m, int32_t axis,
                                 const struct cuts *cuts, weft_placement *out)
{
    size_t bytes = (size_t)cuts->count * sizeof *cuts->sizes;
    int64_t *sizes;

    *out = (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = m.dim};
    if (cuts->count < 2) return WEFT_OK;
    sizes = wf_alloc(bytes);
    if (sizes == NULL) return wf_fail_memory(bytes);
    memcpy(sizes, cuts->sizes, bytes);
    *out = (weft_placement){
        .kind = WEFT_PLACE_PARTS, .dim = m.dim, .sizes = sizes, .size_count = (size_t)cuts->count};
    return wf_given_settle(op, &op->tensors[m.tensor], axis, out);
}

/* A copy of P that owns its sizes. */
static weft_status copy_placement(const weft_placement *p, weft_placement *out)
{
    size_t bytes = p->size_count * sizeof *p->sizes;
    int64_t *sizes = NULL;

    if (p->size_count > 0) {
        sizes = wf_alloc(bytes);
        if (sizes == NULL) return wf_fail_memory(bytes);
        memcpy(sizes, p->sizes, bytes);
    }
    *out = *p;
    out->sizes = sizes;
    out->turn = 0;
    return WEFT_OK;
}

/* Take the parts that cover the next SIZE indices out of ALL, from part *AT on.  False: a cut is
 * inside of a part. */
static bool take_cuts(const struct cuts *all, int32_t *at, int64_t size, struct cuts *out)
{
    out->count = 0;
    while (size > 0) {
        if (*at == all->count || all->sizes[*at] > size) return false;
        size -= all->sizes[*at];
        (void)append(out, all->sizes[(*at)++]);
    }
    return true;
}

/* The tensor is cut: each part has the cuts of its own. */
static weft_status cut_whole(const struct wf_op *op, struct member whole, int32_t axis,
                             weft_placement *out, bool *legal)
{
    const struct wf_op_tensor *t = &op->tensors[whole.tensor];
    const weft_placement *p = &t->placements[axis];
    struct cuts all = {0}, mine;
    int32_t at = 0;

    if (!wf_placement_splits(p) || p->dim != whole.dim ||
        !wf_splits_alone(op, t->placements, axis) || !add_cuts(p, t->shape[whole.dim], &all) ||
        !take_cuts(&all, &at, op->rule->cut.skip, &mine))
        return WEFT_OK;
    WF_TRY(copy_placement(p, &out[whole.tensor]));
    for (int32_t k = 0; k < op->rule->cut.count; k++)
        for (uint32_t i = op->input_count; i < op->input_count + op->output_count; i++) {
            struct member m = {i, wf_op_dim_of(op, i, op->rule->cut.parts[k])};
            if (m.dim < 0) continue;
            if (!take_cuts(&all, &at, op->tensors[i].shape[m.dim], &mine)) return WEFT_OK;
            WF_TRY(set_placement(op, m, axis, &mine, &out[i]));
        }
    *legal = true;
    return WEFT_OK;
}

/* Tensors are joined: the whole has the cuts of all of them.  Those that AXIS does not split that
 * way are split by S. */
static weft_status join_parts(const struct wf_op *op, struct member whole, int32_t axis,
                              weft_placement *out, bool *legal)
{
    static const weft_placement shard = {.kind = WEFT_PLACE_SHARD};
    struct cuts all = {0};
    int64_t total = 0;
    bool any = false;

    for (int32_t k = 0; k < op->rule->cut.count; k++)
        for (uint32_t i = 0; i < op->input_count; i++) {
            struct member m = {i, wf_op_dim_of(op, i, op->rule->cut.parts[k])};
            const weft_placement *p;
            struct cuts mine = {0};
            bool splits;
            if (m.dim < 0) continue;
            p = &op->tensors[i].placements[axis];
            splits = wf_placement_splits(p) && p->kind != WEFT_PLACE_SIZES && p->dim == m.dim &&
                     wf_splits_alone(op, op->tensors[i].placements, axis);
            any = any || splits;
            if (!splits) p = &shard;
            if (!add_cuts(p, op->tensors[i].shape[m.dim], &mine)) return WEFT_OK;
            WF_TRY(copy_placement(p, &out[i]));
            out[i].dim = m.dim;
            total += op->tensors[i].shape[m.dim];
            for (int32_t j = 0; j < mine.count; j++)
                if (!append(&all, mine.sizes[j])) return WEFT_OK;
        }
    if (!any || total != op->tensors[whole.tensor].shape[whole.dim]) return WEFT_OK;
    *legal = true;
    return set_placement(op, whole, axis, &all, &out[whole.tensor]);
}

/* True if every output is the whole or a part, and the parts are on the other side. */
static bool is_simple(const struct wf_op *op, struct member whole)
{
    bool joins = whole.tensor >= op->input_count;

    if (joins) return op->output_count == 1 && op->rule->cut.skip == 0;
    for (uint32_t i = op->input_count; i < op->input_count + op->output_count; i++) {
        bool part = false;
        for (int32_t k = 0; k < op->rule->cut.count; k++)
            part = part || wf_op_dim_of(op, i, op->rule->cut.parts[k]) >= 0;
        if (!part) return false;
    }
    return true;
}

static weft_status add_row(struct wf_op *op, struct member whole, int32_t axis, struct wf_rows *out)
{
    uint32_t count = op->input_count + op->output_count;
    size_t bytes = sizeof(struct wf_given) + count * sizeof(weft_placement);
    struct wf_given *given = wf_calloc(1, bytes);
    bool legal = false;

    if (given == NULL) return wf_fail_memory(bytes);
    given->next = op->given;
    op->given = given;
    if (whole.tensor >= op->input_count)
        WF_TRY(join_parts(op, whole, axis, given->placements, &legal));
    else
        WF_TRY(cut_whole(op, whole, axis, given->placements, &legal));
    if (legal && out->count < WF_ROWS)
        out->row[out->count++] = (struct wf_row){.kind = WF_ROW_GIVEN, .given = given->placements};
    return WEFT_OK;
}

weft_status wf_parts_add_rows(struct wf_op *op, struct wf_rows *rows)
{
    struct member whole;

    if (op->rule->cut.whole == 0 || !find_whole(op, &whole) || !is_simple(op, whole))
        return WEFT_OK;
    for (int32_t a = 0; a < op->axes; a++)
        WF_TRY(add_row(op, whole, a, &rows[a]));
    return WEFT_OK;
}
