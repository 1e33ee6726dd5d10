/* visit.c - boxes of views, followed down to boxes of tensors. */
#include "checkpoint/rules/view.h"

static weft_status visit_cat(const struct wf_view *view, const struct wf_view_box *box,
                             wf_view_visitor *visit, void *state)
{
    int32_t d = view->dim;
    int64_t first = box->start[d], end = first + box->size[d], at = 0;

    for (size_t i = 0; i < view->count && at < end; i++) {
        const struct wf_view *child = view->children[i];
        int64_t low = wf_max_i64(first, at), high = wf_min_i64(end, at + child->shape[d]);
        struct wf_view_box part = *box;
        if (low < high) {
            part.start[d] = low - at;
            part.size[d] = high - low;
            part.at += (low - first) * box->stride[d];
            WF_TRY(wf_view_visit(child, &part, visit, state));
        }
        at += child->shape[d];
    }
    return WEFT_OK;
}

/* Move the dimensions of BOX from DIM on by STEP places. */
static void shift_dims(struct wf_view_box *box, int32_t dims, int32_t dim, int32_t step)
{
    struct wf_view_box old = *box;

    for (int32_t d = dim; d < dims; d++) {
        box->start[d + step] = old.start[d];
        box->size[d + step] = old.size[d];
        box->stride[d + step] = old.stride[d];
    }
}

static void set_dim(struct wf_view_box *box, int32_t d, int64_t start, int64_t size, int64_t stride)
{
    box->start[d] = start;
    box->size[d] = size;
    box->stride[d] = stride;
}

static weft_status visit_stack(const struct wf_view *view, const struct wf_view_box *box,
                               wf_view_visitor *visit, void *state)
{
    int32_t d = view->dim;

    for (int64_t i = 0; i < box->size[d]; i++) {
        struct wf_view_box part = *box;
        part.at += i * box->stride[d];
        shift_dims(&part, view->dims, d + 1, -1);
        WF_TRY(wf_view_visit(view->children[box->start[d] + i], &part, visit, state));
    }
    return WEFT_OK;
}

static weft_status visit_permute(const struct wf_view *view, const struct wf_view_box *box,
                                 wf_view_visitor *visit, void *state)
{
    struct wf_view_box part = {.at = box->at};

    for (int32_t d = 0; d < view->dims; d++)
        set_dim(&part, view->order[d], box->start[d], box->size[d], box->stride[d]);
    return wf_view_visit(view->children[0], &part, visit, state);
}

/* Rows of the child's second dimension: a part of the first row, whole rows, a part of the last. */
static weft_status visit_merge(const struct wf_view *view, const struct wf_view_box *box,
                               wf_view_visitor *visit, void *state)
{
    const struct wf_view *child = view->children[0];
    int32_t d = view->dim;
    int64_t row = child->shape[d + 1], stride = box->stride[d];
    int64_t first = box->start[d], left = box->size[d];
    struct wf_view_box part = *box;

    shift_dims(&part, view->dims, d + 1, 1);
    while (left > 0) {
        int64_t column = first % row, rows = 1, columns = wf_min_i64(row - column, left);
        if (column == 0 && left >= row) {
            rows = left / row;
            columns = row;
        }
        set_dim(&part, d, first / row, rows, stride * row);
        set_dim(&part, d + 1, column, columns, stride);
        WF_TRY(wf_view_visit(child, &part, visit, state));
        part.at += rows * columns * stride;
        first += rows * columns;
        left -= rows * columns;
    }
    return WEFT_OK;
}

static weft_status visit_split(const struct wf_view *view, const struct wf_view_box *box,
                               wf_view_visitor *visit, void *state)
{
    const struct wf_view *child = view->children[0];
    int32_t d = view->dim;
    int64_t row = view->shape[d + 1], rows = box->size[d], columns = box->size[d + 1];
    int64_t stride = row == 1 ? box->stride[d] : box->stride[d + 1];
    bool is_run =
        rows == 1 || (columns == row && (row == 1 || box->stride[d] == row * box->stride[d + 1]));
    struct wf_view_box part = *box;

    shift_dims(&part, view->dims, d + 2, -1);
    if (is_run) {
        set_dim(&part, d, box->start[d] * row + box->start[d + 1], rows * columns, stride);
        return wf_view_visit(child, &part, visit, state);
    }
    for (int64_t i = 0; i < rows; i++) {
        set_dim(&part, d, (box->start[d] + i) * row + box->start[d + 1], columns, stride);
        part.at = box->at + i * box->stride[d];
        WF_TRY(wf_view_visit(child, &part, visit, state));
    }
    return WEFT_OK;
}

weft_status wf_view_visit(const struct wf_view *view, const struct wf_view_box *box,
                          wf_view_visitor *visit, void *state)
{
    struct wf_view_box part = *box;

    switch (view->kind) {
    case WF_VIEW_CAT:
        return visit_cat(view, box, visit, state);
    case WF_VIEW_STACK:
        return visit_stack(view, box, visit, state);
    case WF_VIEW_SLICE:
        part.start[view->dim] += view->at;
        return wf_view_visit(view->children[0], &part, visit, state);
    case WF_VIEW_SELECT:
        shift_dims(&part, view->dims, view->dim, 1);
        set_dim(&part, view->dim, view->at, 1, 0);
        return wf_view_visit(view->children[0], &part, visit, state);
    case WF_VIEW_PERMUTE:
        return visit_permute(view, box, visit, state);
    case WF_VIEW_SPLIT:
        return visit_split(view, box, visit, state);
    case WF_VIEW_MERGE:
        return visit_merge(view, box, visit, state);
    default:
        return visit(state, view, box);
    }
}

int32_t wf_view_fast_dim(const struct wf_view *view)
{
    int32_t dim = view->dim, fast = view->dims - 1;

    if (view->count == 0) return fast;
    fast = wf_view_fast_dim(view->children[0]);
    if (fast < 0) return -1;
    switch (view->kind) {
    case WF_VIEW_STACK:
        return fast >= dim ? fast + 1 : fast;
    case WF_VIEW_SELECT:
        return fast == dim ? -1 : fast > dim ? fast - 1 : fast;
    case WF_VIEW_PERMUTE:
        for (int32_t d = 0; d < view->dims; d++)
            if (view->order[d] == fast) return d;
        return -1;
    case WF_VIEW_SPLIT:
        return fast >= dim ? fast + 1 : fast;
    case WF_VIEW_MERGE:
        return fast == dim ? -1 : fast > dim ? fast - 1 : fast;
    default:
        return fast;
    }
}

void wf_view_whole(const struct wf_view *view, struct wf_view_box *out)
{
    *out = (struct wf_view_box){0};
    wf_row_major(view->dims, view->shape, out->stride);
    for (int32_t d = 0; d < view->dims; d++)
        out->size[d] = view->shape[d];
}
