/* placement.c - placements checked, ordered and normalized. */
#include "shard.h"

#include <string.h>

bool wf_placement_same(const weft_placement *a, const weft_placement *b)
{
    return a->kind == b->kind && a->reduction == b->reduction && a->dim == b->dim &&
           a->turn == b->turn && a->factor == b->factor;
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

    wf_placement_add_text(&placements[axis], &text);
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

static weft_status check_split(const struct wf_layout *layout, int32_t axis)
{
    const weft_placement *p = &layout->placements[axis];

    if (p->dim < 0 || p->dim >= layout->dims)
        return refuse_placement(layout->placements, axis, "the tensor has %d dimension%s",
                                layout->dims, layout->dims == 1 ? "" : "s");
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
        return check_split(layout, axis);
    case WEFT_PLACE_PARTIAL:
        return check_partial(layout, axis);
    default:
        return wf_fail(WEFT_ERR_INVALID, "placement %d: kind %u is not known", axis,
                       layout->placements[axis].kind);
    }
}

static weft_placement one_form(const weft_placement *p)
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
    default:
        return (weft_placement){.kind = WEFT_PLACE_REPLICATE};
    }
}

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
    splits[at] = (struct wf_split){p[axis].dim, axis,
                                   p[axis].kind == WEFT_PLACE_STRIDED ? p[axis].factor : 1};
}

weft_status wf_layout_settle(struct wf_layout *layout)
{
    int32_t axes = layout->mesh->axes;

    for (int32_t i = 0; i < axes; i++)
        WF_TRY(check_placement(layout, i));
    layout->split_count = 0;
    for (int32_t i = 0; i < axes; i++) {
        layout->placements[i] = one_form(&layout->placements[i]);
        if (wf_placement_splits(&layout->placements[i])) insert_split(layout, i);
    }
    for (int32_t i = 0, turn = 0; i < layout->split_count; i++) {
        turn = i > 0 && layout->splits[i - 1].dim == layout->splits[i].dim ? turn + 1 : 1;
        layout->placements[layout->splits[i].axis].turn = turn;
    }
    return WEFT_OK;
}
