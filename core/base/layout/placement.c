/* placement.c - placements checked, ordered and normalized. */
#include "layout.h"

#include <stdio.h>
#include <string.h>

/* True if the sizes of A and B are equal apart from parts of size 0. */
static bool same_sizes(const weft_placement *a, const weft_placement *b)
{
    bool parts = a->kind == WEFT_PLACE_PARTS;
    size_t i = 0, j = 0;

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
    int32_t ranks = layout->ranks[axis];

    if (p->kind == WEFT_PLACE_PARTS && (p->size_count < 1 || p->size_count > WEFT_MAX_PARTS))
        return refuse_placement(layout->placements, axis,
                                "it has %zu parts; the number of parts is from 1 to %d",
                                p->size_count, WEFT_MAX_PARTS);
    if (p->kind == WEFT_PLACE_SIZES && ranks > WEFT_MAX_SIZES)
        return refuse_placement(layout->placements, axis,
                                "the axis has %d ranks; G may have at most %d sizes", ranks,
                                WEFT_MAX_SIZES);
    if (p->kind == WEFT_PLACE_SIZES && p->size_count != (size_t)ranks)
        return refuse_placement(layout->placements, axis,
                                "it has %zu size%s, and the axis has %d rank%s; give one size for "
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
                       "placement %d, %s: weft_placement.sizes is NULL; it must point to %zu sizes",
                       axis, p->kind == WEFT_PLACE_PARTS ? "B" : "G", p->size_count);
    WF_TRY(check_count(layout, axis));
    for (size_t i = 0; i < p->size_count; i++) {
        if (p->sizes[i] < 0)
            return refuse_placement(layout->placements, axis,
                                    "size %zu is %lld; a size must not be negative", i,
                                    (long long)p->sizes[i]);
        if (!wf_add_i64(sum, p->sizes[i], &sum))
            return refuse_placement(layout->placements, axis, "the sizes add up beyond 2^63 - 1");
    }
    return WEFT_OK;
}

static weft_status check_owner(const struct wf_layout *layout, int32_t axis)
{
    int32_t ranks = layout->ranks[axis], owner = layout->placements[axis].owner;

    if (owner >= 0 && owner < ranks) return WEFT_OK;
    return refuse_placement(layout->placements, axis,
                            "the owner is coordinate %d, and the axis has %d rank%s; the owner is "
                            "from 0 to %d",
                            owner, ranks, WF_PLURAL(ranks), ranks - 1);
}

/* True if the turns of DIM are an order; false if all are 0, the default order. */
static bool has_turns(const struct wf_layout *layout, int32_t dim)
{
    for (int32_t i = 0; i < layout->axes; i++) {
        const weft_placement *p = &layout->placements[i];
        if (wf_placement_splits(p) && p->dim == dim && p->turn != 0) return true;
    }
    return false;
}

/* The placement of AXIS splits a dimension that the tensor does not have. */
static weft_status refuse_dim(const struct wf_layout *layout, int32_t axis)
{
    char which[48] = "";

    if (layout->dims == 1)
        snprintf(which, sizeof which, "; its dimension is 0");
    else if (layout->dims > 1)
        snprintf(which, sizeof which, "; its dimensions are 0 %s %d",
                 layout->dims == 2 ? "and" : "to", layout->dims - 1);
    return refuse_placement(layout->placements, axis, "the tensor has %d dimension%s%s",
                            layout->dims, WF_PLURAL(layout->dims), which);
}

static weft_status check_split(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];

    if (wf_placement_has_sizes(p)) WF_TRY(check_sizes(layout, axis));
    if (p->dim < 0 || p->dim >= layout->dims) return refuse_dim(layout, axis);
    if (p->kind == WEFT_PLACE_STRIDED && p->factor < 1)
        return refuse_placement(layout->placements, axis, "the factor must be at least 1");
    if (p->turn < 0)
        return refuse_placement(layout->placements, axis, "turn is %d; it must not be negative",
                                p->turn);
    for (int32_t i = 0; i < axis; i++) {
        const weft_placement *q = &layout->placements[i];
        if (!wf_placement_splits(q) || q->dim != p->dim || q->turn != p->turn) continue;
        if (p->turn != 0 || has_turns(layout, p->dim))
            return refuse_placement(layout->placements, axis,
                                    "it has the same turn as axis %d, %d; the turns of dimension "
                                    "%d must differ, or all be 0",
                                    i, p->turn, p->dim);
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

/* Fields that some kinds do not use, in the order in which they are refused. */
enum { SIZES = 1, SIZE_COUNT = 2, OWNER = 4, FACTOR = 8, REDUCTION = 16, DIM = 32, TURN = 64 };

static uint32_t set_fields(const weft_placement *p)
{
    uint32_t set = (p->reduction != 0 ? REDUCTION : 0u) | (p->dim != 0 ? DIM : 0u) |
                   (p->turn != 0 ? TURN : 0u);

    if (((uintptr_t)p->sizes | p->size_count | (uint64_t)p->factor | (uint32_t)p->owner) == 0)
        return set; /* most placements */
    return set | (p->sizes != NULL ? SIZES : 0u) | (p->size_count != 0 ? SIZE_COUNT : 0u) |
           (p->owner != 0 ? OWNER : 0u) | (p->factor != 0 ? FACTOR : 0u);
}

/* P sets the fields UNUSED, which its kind does not use. */
static weft_status refuse_fields(const weft_placement *p, int32_t axis, uint32_t unused)
{
    static const struct {
        const char *name, *users; /* users: the kinds that use it */
    } fields[] = {
        {"sizes", "PARTS and SIZES use"},
        {"size_count", "PARTS and SIZES use"},
        {"owner", "OWNER uses"},
        {"factor", "STRIDED uses"},
        {"reduction", "PARTIAL uses"},
        {"dim", "SHARD, STRIDED, PARTS and SIZES use"},
        {"turn", "SHARD, STRIDED, PARTS and SIZES use"},
    };
    int first = __builtin_ctz(unused);
    struct wf_text text = {0};

    wf_placement_add_text(p, &text);
    return wf_fail_text(WEFT_ERR_INVALID, &text,
                        "placement %d, %s: weft_placement.%s is set, but only WEFT_PLACE_%s it; "
                        "change the kind, or set the field to 0",
                        axis, text.data, fields[first].name, fields[first].users);
}

weft_status wf_placements_check_fields(const weft_placement *placements, int32_t axes,
                                       const char *function)
{
    static const uint8_t used[] = {
        [WEFT_PLACE_REPLICATE] = 0,
        [WEFT_PLACE_SHARD] = DIM | TURN,
        [WEFT_PLACE_STRIDED] = DIM | TURN | FACTOR,
        [WEFT_PLACE_PARTIAL] = REDUCTION,
        [WEFT_PLACE_PARTS] = DIM | TURN | SIZES | SIZE_COUNT,
        [WEFT_PLACE_SIZES] = DIM | TURN | SIZES | SIZE_COUNT,
        [WEFT_PLACE_OWNER] = OWNER,
    };

    for (int32_t i = 0; i < axes; i++) {
        uint32_t unused = placements[i].kind <= WEFT_PLACE_OWNER
                              ? set_fields(&placements[i]) & ~(uint32_t)used[placements[i].kind]
                              : 0;
        if (unused != 0) return wf_fail_named(refuse_fields(&placements[i], i, unused), function);
    }
    return WEFT_OK;
}

/* ---- one form for equal layouts ---- */

/* The number of parts whose sizes are not 0, and their sum. */
static int32_t count_parts(const weft_placement *p, int64_t *sum)
{
    int32_t count = 0;

    *sum = 0;
    for (size_t i = 0; i < p->size_count; i++) {
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
    for (size_t i = 0; i < p->size_count; i++) {
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
    int64_t sum = 0, count = (int64_t)p->size_count, chunk, left;

    for (size_t i = 0; i < p->size_count; i++)
        sum += p->sizes[i];
    chunk = sum / count + (sum % count != 0);
    left = sum;
    for (size_t i = 0; i < p->size_count; i++) {
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
                          .size_count = (int32_t)p[axis].size_count,
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
    int32_t ranks = layout->ranks[split->axis];
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
    for (int32_t i = 0; i < layout->axes; i++)
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
    for (int32_t i = 0; i < layout->axes; i++)
        WF_TRY(check_placement(layout, i));
    return WEFT_OK;
}

weft_status wf_layout_settle(struct wf_layout *layout)
{
    int32_t axes = layout->axes;
    bool listed = false;

    WF_TRY(wf_layout_check(layout));
    for (int32_t i = 0; i < axes; i++)
        listed = listed || wf_placement_has_sizes(&layout->placements[i]);
    if (listed) WF_TRY(check_sums(layout));
    layout->split_count = 0;
    layout->owned = false;
    for (int32_t i = 0; i < axes; i++) {
        weft_placement *p = &layout->placements[i];
        *p = one_form(p, layout->ranks[i]);
        layout->owned = layout->owned || p->kind == WEFT_PLACE_OWNER;
        if (wf_placement_splits(p)) insert_split(layout, i);
    }
    for (int32_t i = 0, turn = 0; i < layout->split_count; i++) {
        turn = i > 0 && layout->splits[i - 1].dim == layout->splits[i].dim ? turn + 1 : 0;
        layout->placements[layout->splits[i].axis].turn = turn;
    }
    return WEFT_OK;
}
