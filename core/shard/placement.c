/* placement.c - placements checked, ordered and normalized. */
#include "shard.h"

#include <string.h>

/* True if the sizes of A and B are equal apart from parts of size 0. */
static bool same_sizes(const weft_placement *a, const weft_placement *b)
{
    bool parts = a->kind == WEFT_PLACE_PARTS;
    int32_t i = 0, j = 0;

    if (a->sizes == b->sizes && a->size_count == b->size_count) return true;
    if (!parts && a->size_count != b->size_count) return false;
    for (;; i++, j++) {
        while (parts && i < a->size_count && a->sizes[i] == 0)
            i++;
        while (parts && j < b->size_count && b->sizes[j] == 0)
            j++;
        if (i >= a->size_count || j >= b->size_count)
            return i >= a->size_count && j >= b->size_count;
        if (a->sizes[i] != b->sizes[j]) return false;
    }
}

bool wf_placement_same(const weft_placement *a, const weft_placement *b)
{
    return a->kind == b->kind && a->reduction == b->reduction && a->dim == b->dim &&
           a->turn == b->turn && a->factor == b->factor && a->owner == b->owner &&
           (!wf_placement_has_sizes(a) || same_sizes(a, b));
}

uint16_t wf_placement_code(const weft_placement *p)
{
    return (uint16_t)(p->kind << 12 | (uint32_t)p->dim << 8 | (uint32_t)p->turn << 4 |
                      p->reduction);
}

/* "placement 2, P(max): " and the reason. */
WF_PRINTF(3, 4)
static weft_status refuse_placement(const weft_placement *placements, int32_t axis,
                                    const char *format, ...)
{
    struct wf_text text = {0};
    va_list args;
    weft_status status;

    wf_placement_add_short_text(&placements[axis], &text);
    wf_text_add(&text, ": ");
    va_start(args, format);
    wf_text_addv(&text, format, args);
    va_end(args);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = wf_fail(WEFT_ERR_INVALID, "placement %d, %s", axis, text.data);
    wf_text_free(&text);
    return status;
}

static bool is_partial_kind(uint32_t reduction)
{
    return reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_AVG ||
           reduction == WEFT_REDUCE_MIN || reduction == WEFT_REDUCE_MAX ||
           reduction == WEFT_REDUCE_PROD;
}

static bool is_linear(uint32_t reduction)
{
    return reduction == WEFT_REDUCE_SUM || reduction == WEFT_REDUCE_AVG;
}

static weft_status check_partial(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = layout->placements;
    uint32_t reduction = p[axis].reduction;

    if (!is_partial_kind(reduction))
        return refuse_placement(p, axis, "the reductions are sum, avg, min, max and prod");
    if (!wf_reduction_defined(reduction, layout->dtype))
        return refuse_placement(p, axis, "%s is not defined for %s", wf_reduction_name(reduction),
                                wf_dtype_name(layout->dtype));
    for (int32_t i = 0; i < axis; i++)
        if (p[i].kind == WEFT_PLACE_PARTIAL && p[i].reduction != reduction &&
            !(is_linear(p[i].reduction) && is_linear(reduction)))
            return refuse_placement(p, axis, "it cannot be combined with P(%s) on axis %d",
                                    wf_reduction_name(p[i].reduction), i);
    return WEFT_OK;
}

static weft_status check_count(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];
    int32_t ranks = layout->mesh->axis[axis].size;

    if (p->kind == WEFT_PLACE_PARTS && (p->size_count < 1 || p->size_count > WEFT_MAX_PARTS))
        return refuse_placement(layout->placements, axis,
                                "it has %d parts; the number of parts is from 1 to %d",
                                p->size_count, WEFT_MAX_PARTS);
    if (p->kind == WEFT_PLACE_SIZES && ranks > WEFT_MAX_SIZES)
        return refuse_placement(layout->placements, axis,
                                "the axis has %d ranks; G may have at most %d sizes", ranks,
                                WEFT_MAX_SIZES);
    if (p->kind == WEFT_PLACE_SIZES && p->size_count != ranks)
        return refuse_placement(layout->placements, axis,
                                "it has %d size%s, and the axis has %d rank%s; give one size for "
                                "each rank",
                                p->size_count, WF_PLURAL(p->size_count), ranks, WF_PLURAL(ranks));
    return WEFT_OK;
}

static weft_status check_sizes(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];
    int64_t sum = 0;

    if (p->sizes == NULL && p->size_count == 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "placement %d, %s: weft_placement.sizes is NULL and size_count is 0; it "
                       "needs a list of sizes, and weft_placements_free clears it",
                       axis, p->kind == WEFT_PLACE_PARTS ? "B" : "G");
    if (p->sizes == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "placement %d, %s: weft_placement.sizes is NULL; it must point to %d sizes",
                       axis, p->kind == WEFT_PLACE_PARTS ? "B" : "G", p->size_count);
    WF_TRY(check_count(layout, axis));
    for (int32_t i = 0; i < p->size_count; i++) {
        if (p->sizes[i] < 0)
            return refuse_placement(layout->placements, axis,
                                    "size %d is %lld; a size must not be negative", i,
                                    (long long)p->sizes[i]);
        if (!wf_add_i64(sum, p->sizes[i], &sum))
            return refuse_placement(layout->placements, axis, "the sizes add up beyond 2^63 - 1");
    }
    return WEFT_OK;
}

static weft_status check_owner(const struct wf_layout *layout, int32_t axis)
{
    int32_t ranks = layout->mesh->axis[axis].size, owner = layout->placements[axis].owner;

    if (owner >= 0 && owner < ranks) return WEFT_OK;
    return refuse_placement(layout->placements, axis,
                            "the owner is coordinate %d, and the axis has %d rank%s; the owner is "
                            "from 0 to %d",
                            owner, ranks, WF_PLURAL(ranks), ranks - 1);
}

static weft_status check_split(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];

    if (wf_placement_has_sizes(p)) WF_TRY(check_sizes(layout, axis));
    if (p->dim < 0 || p->dim >= layout->dims)
        return refuse_placement(layout->placements, axis, "the tensor has %d dimension%s",
                                layout->dims, WF_PLURAL(layout->dims));
    if (p->kind == WEFT_PLACE_STRIDED && p->factor < 1)
        return refuse_placement(layout->placements, axis, "the factor must be at least 1");
    if (p->turn < 0)
        return refuse_placement(layout->placements, axis, "turn is %d; it must not be negative",
                                p->turn);
    for (int32_t i = 0; i < axis; i++) {
        const weft_placement *q = &layout->placements[i];
        if (!wf_placement_splits(q) || q->dim != p->dim) continue;
        if ((q->turn == 0) != (p->turn == 0))
            return refuse_placement(
                layout->placements, axis,
                "axes that split dimension %d must all give a turn; only axis %d does "
                "(weft_placement.turn counts from 1; 0 means none)",
                p->dim, p->turn != 0 ? axis : i);
        if (p->turn != 0 && p->turn == q->turn)
            return refuse_placement(layout->placements, axis,
                                    "it has the same turn as axis %d; turns must differ", i);
    }
    return WEFT_OK;
}

static weft_status check_placement(const struct wf_layout *layout, int32_t axis)
{
    switch (layout->placements[axis].kind) {
    case WEFT_PLACE_REPLICATE:
        return WEFT_OK;
    case WEFT_PLACE_SHARD:
    case WEFT_PLACE_STRIDED:
    case WEFT_PLACE_PARTS:
    case WEFT_PLACE_SIZES:
        return check_split(layout, axis);
    case WEFT_PLACE_OWNER:
        return check_owner(layout, axis);
    case WEFT_PLACE_PARTIAL:
        return check_partial(layout, axis);
    default:
        return wf_fail(WEFT_ERR_INVALID, "placement %d: kind %u is not known", axis,
                       layout->placements[axis].kind);
    }
}

static weft_status check_fields(const weft_placement *p, int32_t axis)
{
    const bool splits = wf_placement_splits(p), lists = wf_placement_has_sizes(p);
    const struct {
        const char *name;
        bool is_set, is_used;
        const char *users; /* the kinds that use it */
    } fields[] = {
        {"sizes", p->sizes != NULL, lists, "PARTS and SIZES use"},
        {"size_count", p->size_count != 0, lists, "PARTS and SIZES use"},
        {"owner", p->owner != 0, p->kind == WEFT_PLACE_OWNER, "OWNER uses"},
        {"factor", p->factor != 0, p->kind == WEFT_PLACE_STRIDED, "STRIDED uses"},
        {"reduction", p->reduction != 0, p->kind == WEFT_PLACE_PARTIAL, "PARTIAL uses"},
        {"dim", p->dim != 0, splits, "SHARD, STRIDED, PARTS and SIZES use"},
        {"turn", p->turn != 0, splits, "SHARD, STRIDED, PARTS and SIZES use"},
    };
    struct wf_text text = {0};
    weft_status status = WEFT_OK;

    for (size_t i = 0; i < WF_COUNT(fields) && status == WEFT_OK; i++) {
        if (!fields[i].is_set || fields[i].is_used) continue;
        wf_placement_add_text(p, &text);
        status = wf_text_status(&text);
        if (status == WEFT_OK)
            status = wf_fail(WEFT_ERR_INVALID,
                             "placement %d, %s: weft_placement.%s is set, but only WEFT_PLACE_%s "
                             "it; change the kind, or set the field to 0",
                             axis, text.data, fields[i].name, fields[i].users);
    }
    wf_text_free(&text);
    return status;
}

weft_status wf_placements_check_fields(const weft_placement *placements, int32_t axes,
                                       const char *function)
{
    for (int32_t i = 0; i < axes; i++) {
        weft_status status =
            placements[i].kind <= WEFT_PLACE_OWNER ? check_fields(&placements[i], i) : WEFT_OK;
        if (status != WEFT_OK) return wf_fail_named(status, function);
    }
    return WEFT_OK;
}

/* ---- one form for equal layouts ---- */

/* The number of parts whose sizes are not 0, and their sum. */
static int32_t count_parts(const weft_placement *p, int64_t *sum)
{
    int32_t count = 0;

    *sum = 0;
    for (int32_t i = 0; i < p->size_count; i++) {
        count += p->sizes[i] != 0;
        *sum += p->sizes[i];
    }
    return count;
}

/* B as S or SS if its parts are chunks.  All chunks of SS(d,f) but the last have ceil(size/f)
 * indices, so f can only be the number of parts. */
static weft_placement form_of_parts(const weft_placement *p)
{
    weft_placement form = {.kind = WEFT_PLACE_SHARD, .dim = p->dim, .turn = p->turn};
    int64_t sum, chunk, left;
    int32_t count = count_parts(p, &sum);

    if (count <= 1) return form;
    chunk = sum / count + (sum % count != 0);
    left = sum;
    for (int32_t i = 0; i < p->size_count; i++) {
        if (p->sizes[i] == 0) continue;
        if (p->sizes[i] != wf_min_i64(chunk, left)) {
            form = *p;
            form.reduction = 0;
            form.factor = 0;
            form.owner = 0;
            return form;
        }
        left -= p->sizes[i];
    }
    form.kind = WEFT_PLACE_STRIDED;
    form.factor = count;
    return form;
}

/* G as S if its sizes are chunks. */
static weft_placement form_of_sizes(const weft_placement *p)
{
    weft_placement form = {.kind = WEFT_PLACE_SHARD, .dim = p->dim, .turn = p->turn};
    int64_t sum = 0, chunk, left;

    for (int32_t i = 0; i < p->size_count; i++)
        sum += p->sizes[i];
    chunk = sum / p->size_count + (sum % p->size_count != 0);
    left = sum;
    for (int32_t i = 0; i < p->size_count; i++) {
        if (p->sizes[i] != wf_min_i64(chunk, left)) {
            form.kind = p->kind;
            form.sizes = p->sizes;
            form.size_count = p->size_count;
            return form;
        }
        left -= p->sizes[i];
    }
    return form;
}

/* RANKS: of the axis. */
static weft_placement one_form(const weft_placement *p, int32_t ranks)
{
    switch (p->kind) {
    case WEFT_PLACE_PARTIAL:
        return (weft_placement){.kind = p->kind, .reduction = p->reduction};
    case WEFT_PLACE_STRIDED:
        if (p->factor > 1)
            return (weft_placement){
                .kind = p->kind, .dim = p->dim, .turn = p->turn, .factor = p->factor};
        return (weft_placement){.kind = WEFT_PLACE_SHARD, .dim = p->dim, .turn = p->turn};
    case WEFT_PLACE_SHARD:
        return (weft_placement){.kind = p->kind, .dim = p->dim, .turn = p->turn};
    case WEFT_PLACE_PARTS:
        return form_of_parts(p);
    case WEFT_PLACE_SIZES:
        return form_of_sizes(p);
    case WEFT_PLACE_OWNER:
        if (ranks > 1) return (weft_placement){.kind = p->kind, .owner = p->owner};
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    default:
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    }
}

/* ---- splits ---- */

/* Insert the split of AXIS behind those of earlier dimensions and turns. */
static void insert_split(struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = layout->placements;
    struct wf_split *splits = layout->splits;
    int32_t at = layout->split_count++;

    for (; at > 0; at--) {
        const struct wf_split *before = &splits[at - 1];
        if (before->dim < p[axis].dim ||
            (before->dim == p[axis].dim && p[before->axis].turn <= p[axis].turn))
            break;
        splits[at] = *before;
    }
    splits[at] =
        (struct wf_split){.dim = p[axis].dim,
                          .axis = axis,
                          .kind = p[axis].kind,
                          .size_count = p[axis].size_count,
                          .factor = p[axis].kind == WEFT_PLACE_STRIDED ? p[axis].factor : 1,
                          .sizes = p[axis].sizes};
}

/* The indices of a dimension that the splits so far leave on a rank. */
struct rest {
    int64_t most, least; /* on different ranks */
};

/* Check the sum of SPLIT's sizes, and go to the rest inside it. */
static weft_status enter_split(const struct wf_layout *layout, const struct wf_split *split,
                               struct rest *rest)
{
    int32_t ranks = layout->mesh->axis[split->axis].size;
    int64_t sum = 0;

    if (split->sizes != NULL) {
        for (int32_t i = 0; i < split->size_count; i++)
            sum += split->sizes[i];
        if (rest->most != rest->least)
            return refuse_placement(layout->placements, split->axis,
                                    "the axes before it leave %lld %s of dimension %d on some "
                                    "ranks and %lld on others; listed sizes need the same number "
                                    "on all ranks",
                                    (long long)rest->most, wf_index_word(rest->most), split->dim,
                                    (long long)rest->least);
        if (sum != rest->most)
            return refuse_placement(
                layout->placements, split->axis,
                "the sizes add up to %lld, but %s %lld %s of dimension %d", (long long)sum,
                rest->most != layout->shape[split->dim] ? "the axes before it leave"
                : rest->most == 1                       ? "there is"
                                                        : "there are",
                (long long)rest->most, wf_index_word(rest->most), split->dim);
    }
    if (ranks == 1) return WEFT_OK;
    rest->most = wf_split_share(split, rest->most, ranks, wf_split_most(split));
    rest->least = wf_split_share(split, rest->least, ranks, wf_split_least(split, ranks));
    return WEFT_OK;
}

/* Compare listed sizes with the shape.  Leaves the splits of the placements as they are given. */
static weft_status check_sums(struct wf_layout *layout)
{
    struct rest rest = {0, 0};

    layout->split_count = 0;
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        if (wf_placement_splits(&layout->placements[i])) insert_split(layout, i);
    for (int32_t i = 0; i < layout->split_count; i++) {
        const struct wf_split *split = &layout->splits[i];
        if (i == 0 || layout->splits[i - 1].dim != split->dim)
            rest.most = rest.least = layout->shape[split->dim];
        WF_TRY(enter_split(layout, split, &rest));
    }
    return WEFT_OK;
}

weft_status wf_layout_check(const struct wf_layout *layout)
{
    for (int32_t i = 0; i < layout->mesh->axes; i++)
        WF_TRY(check_placement(layout, i));
    return WEFT_OK;
}

weft_status wf_layout_settle(struct wf_layout *layout)
{
    int32_t axes = layout->mesh->axes;
    bool listed = false;

    WF_TRY(wf_layout_check(layout));
    for (int32_t i = 0; i < axes; i++)
        listed = listed || wf_placement_has_sizes(&layout->placements[i]);
    if (listed) WF_TRY(check_sums(layout));
    layout->split_count = 0;
    layout->owned = false;
    for (int32_t i = 0; i < axes; i++) {
        weft_placement *p = &layout->placements[i];
        *p = one_form(p, layout->mesh->axis[i].size);
        layout->owned = layout->owned || p->kind == WEFT_PLACE_OWNER;
        if (wf_placement_splits(p)) insert_split(layout, i);
    }
    for (int32_t i = 0, turn = 0; i < layout->split_count; i++) {
        turn = i > 0 && layout->splits[i - 1].dim == layout->splits[i].dim ? turn + 1 : 1;
        layout->placements[layout->splits[i].axis].turn = turn;
    }
    return WEFT_OK;
}
