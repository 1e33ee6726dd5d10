/* cover.c - do the boxes of a tensor cover it exactly once?
 *
 * Dimension 0 is cut where boxes begin and end.  Between two cuts the set of boxes does not change,
 * so the other dimensions are checked for that set.  Boxes of a grid are visited once for each
 * dimension.  Work is limited, since a hostile file could list many boxes that overlap. */
#include "file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORK INT64_C(100000000)

struct cover {
    const struct wf_tensor *tensor;
    const struct wf_piece *boxes;
    bool gaps; /* they are not flaws */
    struct wf_cover_flaw *flaw;
    int64_t work;
};

static int64_t start_of(const struct wf_piece *box, int32_t dim)
{
    return box->offset != NULL ? box->offset[dim] : 0;
}

static int64_t end_of(const struct wf_piece *box, int32_t dim)
{
    return start_of(box, dim) + box->shape[dim];
}

/* A flaw is found: the search ends. */
static weft_status stop_at(struct cover *c, enum wf_cover_kind kind, const size_t *ids)
{
    c->flaw->kind = (uint8_t)kind;
    if (kind == WF_COVER_OVERLAP) {
        c->flaw->first = ids[0] < ids[1] ? ids[0] : ids[1];
        c->flaw->second = ids[0] < ids[1] ? ids[1] : ids[0];
    }
    return WEFT_ERR_MISMATCH;
}

/* Move ids so that they ascend by their starts in DIM: a heap sort, without memory of its own. */
static void sift(const struct cover *c, int32_t dim, size_t *ids, size_t root, size_t count)
{
    for (size_t child = 2 * root + 1; child < count; root = child, child = 2 * root + 1) {
        size_t kept = ids[root];
        if (child + 1 < count &&
            start_of(&c->boxes[ids[child]], dim) < start_of(&c->boxes[ids[child + 1]], dim))
            child++;
        if (start_of(&c->boxes[kept], dim) >= start_of(&c->boxes[ids[child]], dim)) return;
        ids[root] = ids[child];
        ids[child] = kept;
    }
}

static void sort_ids(const struct cover *c, int32_t dim, size_t *ids, size_t count)
{
    for (size_t i = count / 2; i-- > 0;)
        sift(c, dim, ids, i, count);
    for (size_t end = count; end > 1; end--) {
        size_t largest = ids[0];
        ids[0] = ids[end - 1];
        ids[end - 1] = largest;
        sift(c, dim, ids, 0, end - 1);
    }
}

/* Check dimensions from DIM on for COUNT boxes; behind them IDS has room for COUNT ids for every
 * further dimension. */
static weft_status check_from(struct cover *c, int32_t dim, size_t *ids, size_t count)
{
    size_t *active = ids + count, active_count = 0, next = 0;

    c->work += (int64_t)count + 1;
    if (c->work > MOST_WORK)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "tensor \"%s\" has too many boxes that overlap",
                       c->tensor->name);
    if (dim == c->tensor->dims)
        return count == 1 ? WEFT_OK : stop_at(c, count == 0 ? WF_COVER_GAP : WF_COVER_OVERLAP, ids);
    sort_ids(c, dim, ids, count);
    for (int64_t at = 0, end; at < c->tensor->shape[dim]; at = end) {
        size_t kept = 0;
        for (size_t i = 0; i < active_count; i++)
            if (end_of(&c->boxes[active[i]], dim) > at) active[kept++] = active[i];
        active_count = kept;
        for (; next < count && start_of(&c->boxes[ids[next]], dim) <= at; next++)
            if (end_of(&c->boxes[ids[next]], dim) > at) active[active_count++] = ids[next];
        end = next < count ? start_of(&c->boxes[ids[next]], dim) : c->tensor->shape[dim];
        for (size_t i = 0; i < active_count; i++)
            end = wf_min_i64(end, end_of(&c->boxes[active[i]], dim));
        c->flaw->point[dim] = at;
        memset(&c->flaw->point[dim + 1], 0,
               (size_t)(WEFT_MAX_DIMS - 1 - dim) * sizeof *c->flaw->point);
        if (active_count == 0) {
            if (c->gaps) continue;
            return stop_at(c, WF_COVER_GAP, NULL);
        }
        /* the boxes of this slab move behind the active ones, where they can be sorted */
        memcpy(active + count, active, active_count * sizeof *active);
        WF_TRY(check_from(c, dim + 1, active + count, active_count));
    }
    return WEFT_OK;
}

static bool is_empty(const struct wf_piece *box)
{
    for (int32_t d = 0; d < box->dims; d++)
        if (box->shape[d] == 0) return true;
    return false;
}

weft_status wf_cover_find(const struct wf_tensor *tensor, const struct wf_piece *boxes, bool gaps,
                          struct wf_cover_flaw *flaw)
{
    struct cover c = {.tensor = tensor, .boxes = boxes, .gaps = gaps, .flaw = flaw};
    size_t levels = 2 * ((size_t)tensor->dims + 1), bytes, count = 0, *ids;
    weft_status status;

    *flaw = (struct wf_cover_flaw){.kind = WF_COVER_EXACT};
    for (int32_t d = 0; d < tensor->dims; d++)
        if (tensor->shape[d] == 0) return WEFT_OK;
    if (__builtin_mul_overflow(levels * sizeof *ids, tensor->count, &bytes))
        return wf_fail_memory(SIZE_MAX);
    ids = wf_alloc(bytes);
    if (ids == NULL) return wf_fail_memory(bytes);
    for (size_t i = 0; i < tensor->count; i++)
        if (!is_empty(&boxes[i])) ids[count++] = i;
    status = gaps && count == 0 ? WEFT_OK : check_from(&c, 0, ids, count);
    wf_free(ids);
    return status == WEFT_ERR_MISMATCH ? WEFT_OK : status;
}

weft_status wf_cover_check(const struct wf_tensor *tensor, const struct wf_piece *boxes,
                           const struct wf_inputs *inputs)
{
    struct wf_text point = {0};
    struct wf_cover_flaw flaw;
    weft_status status;

    WF_TRY(wf_cover_find(tensor, boxes, false, &flaw));
    if (flaw.kind == WF_COVER_EXACT) return WEFT_OK;
    wf_shape_add_text(tensor->dims, flaw.point, &point);
    status = wf_text_status(&point);
    if (status == WEFT_OK && flaw.kind == WF_COVER_GAP)
        status =
            wf_fail(WEFT_ERR_PARSE,
                    "tensor \"%s\": no file has element %s; a part of the checkpoint is missing",
                    tensor->name, point.data);
    else if (status == WEFT_OK)
        status = wf_fail(WEFT_ERR_PARSE, "tensor \"%s\": element %s stands in %s and in %s",
                         tensor->name, point.data, inputs->list[boxes[flaw.first].file]->name,
                         inputs->list[boxes[flaw.second].file]->name);
    wf_text_free(&point);
    return status;
}
