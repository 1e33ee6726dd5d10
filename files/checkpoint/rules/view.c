/* view.c - views are made: shapes are checked and computed. */
#include "checkpoint/rules/view.h"

#include <inttypes.h>
#include <string.h>

weft_status wf_view_list_add(struct wf_view_list *list, const struct wf_view *view)
{
    WF_TRY(wf_grow(&list->items, sizeof *list->items, list->count, &list->capacity));
    list->items[list->count++] = view;
    return WEFT_OK;
}

void wf_view_list_free(struct wf_view_list *list)
{
    wf_free(list->items);
    *list = (struct wf_view_list){0};
}

#define MOST_ELEMENTS (INT64_C(1) << 56)

/* Products of sizes must not overflow, also without those that are 0. */
static weft_status check_size(int32_t dims, const int64_t *shape)
{
    int64_t elements = 1;

    for (int32_t d = 0; d < dims; d++)
        if (shape[d] > 0 &&
            (!wf_mul_i64(elements, shape[d], &elements) || elements > MOST_ELEMENTS))
            return wf_fail(WEFT_ERR_INVALID, "the tensor would have more than 2^56 elements");
    return WEFT_OK;
}

/* A view of KIND with COUNT children and SHAPE, which are copied. */
static weft_status make(struct wf_arena *arena, enum wf_view_kind kind, int32_t dims,
                        const int64_t *shape, const struct wf_view *const *children, size_t count,
                        struct wf_view **out)
{
    struct wf_view *view = wf_arena_alloc(arena, sizeof *view);
    const struct wf_view **copies = wf_arena_alloc(arena, count * sizeof *copies);
    int64_t *sizes = wf_arena_sizes(arena, dims, shape);

    if (view == NULL || sizes == NULL || copies == NULL) return wf_fail_memory(sizeof *view);
    WF_TRY(check_size(dims, shape));
    for (size_t i = 0; i < count; i++)
        copies[i] = children[i];
    *view = (struct wf_view){.kind = (uint8_t)kind,
                             .dims = (int8_t)dims,
                             .shape = sizes,
                             .children = copies,
                             .count = count,
                             .dtype = count > 0 ? children[0]->dtype : 0};
    *out = view;
    return WEFT_OK;
}

static weft_status check_dim(const struct wf_view *view, int32_t dim)
{
    if (dim < view->dims) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the tensor has %d dimension%s, so there is no dimension %d",
                   view->dims, view->dims == 1 ? "" : "s", dim);
}

static weft_status check_room(const struct wf_view *view)
{
    if (view->dims < WEFT_MAX_DIMS) return WEFT_OK;
    return wf_fail(WEFT_ERR_UNSUPPORTED, "more than %d dimensions are needed", WEFT_MAX_DIMS);
}

weft_status wf_view_source(struct wf_arena *arena, const struct wf_tensor *tensor, size_t index,
                           const struct wf_view **out)
{
    struct wf_view *view = NULL;

    WF_TRY(make(arena, WF_VIEW_SOURCE, tensor->dims, tensor->shape, NULL, 0, &view));
    view->dtype = tensor->dtype;
    view->source = index;
    *out = view;
    return WEFT_OK;
}

/* ---- several tensors become one ---- */

/* All of LIST must have one dtype and one shape, except in dimension EXCEPT. */
static weft_status check_alike(const struct wf_view_list *list, int32_t except)
{
    const struct wf_view *first;

    if (list->count == 0) return wf_fail(WEFT_ERR_INVALID, "there are no tensors to join");
    first = list->items[0];
    for (size_t i = 1; i < list->count; i++) {
        const struct wf_view *view = list->items[i];
        bool same = view->dims == first->dims;
        struct wf_text text = {0};
        for (int32_t d = 0; d < first->dims && same; d++)
            same = d == except || view->shape[d] == first->shape[d];
        if (same && view->dtype == first->dtype) continue;
        wf_shape_add_text(first->dims, first->shape, &text);
        wf_text_add(&text, ", but part %zu is %s", i, wf_file_dtype(view->dtype)->name);
        wf_shape_add_text(view->dims, view->shape, &text);
        return wf_fail_text(WEFT_ERR_INVALID, &text, "part 0 is %s%s; they cannot be joined",
                            wf_file_dtype(first->dtype)->name, text.data);
    }
    return WEFT_OK;
}

weft_status wf_view_cat(struct wf_arena *arena, int32_t dim, const struct wf_view_list *list,
                        const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS], length = 0;
    struct wf_view *view = NULL;

    WF_TRY(check_alike(list, dim));
    WF_TRY(check_dim(list->items[0], dim));
    for (size_t i = 0; i < list->count; i++)
        if (!wf_add_i64(length, list->items[i]->shape[dim], &length))
            return wf_fail(WEFT_ERR_INVALID, "the joined tensor is too large");
    memcpy(shape, list->items[0]->shape, (size_t)list->items[0]->dims * sizeof *shape);
    shape[dim] = length;
    WF_TRY(make(arena, WF_VIEW_CAT, list->items[0]->dims, shape, list->items, list->count, &view));
    view->dim = (int8_t)dim;
    *out = view;
    return WEFT_OK;
}

weft_status wf_view_stack(struct wf_arena *arena, int32_t dim, const struct wf_view_list *list,
                          const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;
    int32_t dims;

    WF_TRY(check_alike(list, -1));
    WF_TRY(check_room(list->items[0]));
    dims = list->items[0]->dims;
    if (dim > dims) return check_dim(list->items[0], dim);
    for (int32_t d = 0; d < dims; d++)
        shape[d < dim ? d : d + 1] = list->items[0]->shape[d];
    shape[dim] = (int64_t)list->count;
    WF_TRY(make(arena, WF_VIEW_STACK, dims + 1, shape, list->items, list->count, &view));
    view->dim = (int8_t)dim;
    *out = view;
    return WEFT_OK;
}

/* ---- one tensor becomes another ---- */

weft_status wf_view_slice(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          int64_t first, int64_t end, const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;

    WF_TRY(check_dim(of, dim));
    if (first < 0 || end < first || end > of->shape[dim])
        return wf_fail(WEFT_ERR_INVALID,
                       "indices %" PRId64 " to %" PRId64
                       " are wanted, but dimension %d has %" PRId64,
                       first, end, dim, of->shape[dim]);
    memcpy(shape, of->shape, (size_t)of->dims * sizeof *shape);
    shape[dim] = end - first;
    WF_TRY(make(arena, WF_VIEW_SLICE, of->dims, shape, &of, 1, &view));
    view->dim = (int8_t)dim;
    view->at = first;
    *out = view;
    return WEFT_OK;
}

weft_status wf_view_select(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                           int64_t index, const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;

    WF_TRY(check_dim(of, dim));
    for (int32_t d = 0; d < of->dims - 1; d++)
        shape[d] = of->shape[d < dim ? d : d + 1];
    WF_TRY(make(arena, WF_VIEW_SELECT, of->dims - 1, shape, &of, 1, &view));
    view->dim = (int8_t)dim;
    view->at = index;
    *out = view;
    return WEFT_OK;
}

weft_status wf_view_pad(struct wf_arena *arena, const struct wf_view *of, int32_t dim, int64_t end,
                        const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    const struct wf_view *both[2] = {of, NULL};
    struct wf_view_list list = {both, 2, 2};
    struct wf_view *zeros = NULL;

    WF_TRY(check_dim(of, dim));
    if (wf_file_dtype(of->dtype)->bits < 8)
        return wf_fail(WEFT_ERR_UNSUPPORTED, "tensors of dtype %s cannot be padded",
                       wf_file_dtype(of->dtype)->name);
    if (end < of->shape[dim])
        return wf_fail(WEFT_ERR_INVALID,
                       "dimension %d has %" PRId64 " indices, which cannot be padded to %" PRId64,
                       dim, of->shape[dim], end);
    if (end == of->shape[dim]) {
        *out = of;
        return WEFT_OK;
    }
    memcpy(shape, of->shape, (size_t)of->dims * sizeof *shape);
    shape[dim] = end - of->shape[dim];
    WF_TRY(make(arena, WF_VIEW_ZEROS, of->dims, shape, NULL, 0, &zeros));
    zeros->dtype = of->dtype;
    both[1] = zeros;
    return wf_view_cat(arena, dim, &list, out);
}

weft_status wf_view_permute(struct wf_arena *arena, const struct wf_view *of, const int64_t *order,
                            size_t count, const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;
    uint32_t seen = 0;

    if (count != (size_t)of->dims)
        return wf_fail(WEFT_ERR_INVALID, "the tensor has %d dimensions, but %zu are listed",
                       of->dims, count);
    for (size_t d = 0; d < count; d++) {
        if (order[d] < 0 || order[d] >= of->dims || (seen >> order[d] & 1) != 0)
            return wf_fail(WEFT_ERR_INVALID, "each dimension from 0 to %d must be listed once",
                           of->dims - 1);
        seen |= UINT32_C(1) << order[d];
        shape[d] = of->shape[order[d]];
    }
    WF_TRY(make(arena, WF_VIEW_PERMUTE, of->dims, shape, &of, 1, &view));
    for (size_t d = 0; d < count; d++)
        view->order[d] = (int8_t)order[d];
    *out = view;
    return WEFT_OK;
}

weft_status wf_view_split(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          int64_t inner, const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;

    WF_TRY(check_dim(of, dim));
    WF_TRY(check_room(of));
    if (inner < 1 || of->shape[dim] % inner != 0)
        return wf_fail(WEFT_ERR_INVALID,
                       "dimension %d has %" PRId64 " indices, which are not groups of %" PRId64,
                       dim, of->shape[dim], inner);
    for (int32_t d = 0; d < of->dims; d++)
        shape[d <= dim ? d : d + 1] = of->shape[d];
    shape[dim] /= inner;
    shape[dim + 1] = inner;
    WF_TRY(make(arena, WF_VIEW_SPLIT, of->dims + 1, shape, &of, 1, &view));
    view->dim = (int8_t)dim;
    *out = view;
    return WEFT_OK;
}

weft_status wf_view_merge(struct wf_arena *arena, const struct wf_view *of, int32_t dim,
                          const struct wf_view **out)
{
    int64_t shape[WEFT_MAX_DIMS] = {0};
    struct wf_view *view = NULL;

    WF_TRY(check_dim(of, dim + 1));
    for (int32_t d = 0; d < of->dims - 1; d++)
        shape[d] = of->shape[d <= dim ? d : d + 1];
    if (!wf_mul_i64(of->shape[dim], of->shape[dim + 1], &shape[dim]))
        return wf_fail(WEFT_ERR_INVALID, "the tensor is too large");
    WF_TRY(make(arena, WF_VIEW_MERGE, of->dims - 1, shape, &of, 1, &view));
    view->dim = (int8_t)dim;
    *out = view;
    return WEFT_OK;
}

/* ---- reshape ---- */

/* The size that is -1, so that SHAPE has as many elements as OF. */
static weft_status infer_size(const struct wf_view *of, int64_t *shape, size_t dims)
{
    int64_t elements = 1, others = 1;
    size_t inferred = dims;

    for (int32_t d = 0; d < of->dims; d++)
        elements *= of->shape[d]; /* a tensor of a checkpoint: below 2^62 */
    for (size_t d = 0; d < dims; d++) {
        if (shape[d] == -1 && inferred == dims) {
            inferred = d;
        } else if (shape[d] < 0 || !wf_mul_i64(others, shape[d], &others)) {
            return wf_fail(WEFT_ERR_INVALID,
                           "the sizes must be 0 or more, except for one that is -1");
        }
    }
    if (inferred < dims && others > 0 && elements % others == 0) {
        shape[inferred] = elements / others;
        others = elements;
    }
    if (others == elements && (inferred == dims || shape[inferred] >= 0)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the tensor has %" PRId64 " elements, which the sizes do not",
                   elements);
}

weft_status wf_view_reshape(struct wf_arena *arena, const struct wf_view *of, const int64_t *shape,
                            size_t dims, const struct wf_view **out)
{
    int64_t wanted[WEFT_MAX_DIMS];
    struct wf_view *empty = NULL;
    int64_t inner = 1;

    if (dims > WEFT_MAX_DIMS) return check_room(of);
    if (dims > 0) memcpy(wanted, shape, dims * sizeof *wanted);
    WF_TRY(infer_size(of, wanted, dims));
    for (size_t d = 0; d < dims; d++)
        inner *= wanted[d];
    if (inner == 0) { /* there are no elements to map */
        WF_TRY(make(arena, WF_VIEW_ZEROS, (int32_t)dims, wanted, NULL, 0, &empty));
        empty->dtype = of->dtype;
        *out = empty;
        return WEFT_OK;
    }
    /* one dimension, then those that are wanted */
    if (of->dims == 0) {
        struct wf_view_list list = {&of, 1, 1};
        WF_TRY(wf_view_stack(arena, 0, &list, &of));
    }
    while (of->dims > 1)
        WF_TRY(wf_view_merge(arena, of, of->dims - 2, &of));
    if (dims == 0) return wf_view_select(arena, of, 0, 0, out);
    for (int32_t d = 0; d + 1 < (int32_t)dims; d++) {
        inner /= wanted[d];
        WF_TRY(wf_view_split(arena, of, d, inner, &of));
    }
    *out = of;
    return WEFT_OK;
}
