/* usage.c - does every element of a checkpoint go to one new tensor?
 *
 * Most tensors are used once and wholly, which their counts show.  For the others, the boxes that
 * are used are compared. */
#include "checkpoint/rules/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct use {
    size_t source, target;
    int64_t start[WEFT_MAX_DIMS], size[WEFT_MAX_DIMS];
};

struct usage {
    const struct wf_mapping *mapping;
    uint8_t *doubtful; /* by source */
    uint32_t *leaves;  /* by source */
    struct use *uses;
    size_t count, capacity;
    size_t target; /* that is visited */
};

static int64_t elements_of(const struct wf_tensor *tensor)
{
    int64_t elements = 1;

    for (int32_t d = 0; d < tensor->dims; d++)
        elements *= tensor->shape[d];
    return elements;
}

/* ---- the tensors whose boxes are compared ---- */

static void count_leaves(struct usage *u, const struct wf_view *view)
{
    if (view->kind == WF_VIEW_SOURCE && !view->tied) u->leaves[view->source]++;
    for (size_t i = 0; i < view->count; i++)
        count_leaves(u, view->children[i]);
}

static weft_status fail_unused(const struct wf_mapping *mapping, size_t index)
{
    bool tied = (mapping->state[index] & WF_USED_TIED) != 0;
    const char *name = mapping->base->tensors[index].name;

    return wf_fail(WEFT_ERR_NOT_FOUND,
                   "rules: no rule uses tensor \"%.200s\"%s; a last rule \"* = *\" keeps what is "
                   "left, and \"%.200s : drop\" drops it",
                   name, tied ? " other than as a tie" : "", name);
}

static weft_status find_doubtful(struct usage *u, bool *any)
{
    const struct wf_mapping *mapping = u->mapping;

    for (size_t i = 0; i < mapping->count; i++)
        count_leaves(u, mapping->targets[i].view);
    for (size_t i = 0; i < mapping->base->tensor_count; i++) {
        int64_t elements = elements_of(&mapping->base->tensors[i]);
        bool dropped = (mapping->state[i] & WF_USED_DROPPED) != 0;
        if (!dropped && (mapping->state[i] & WF_USED_NAMED) == 0) return fail_unused(mapping, i);
        u->doubtful[i] = u->leaves[i] > 1 || (!dropped && mapping->used[i] != elements);
        *any |= u->doubtful[i] != 0;
    }
    return WEFT_OK;
}

/* ---- their boxes ---- */

static weft_status add_use(void *state, const struct wf_view *leaf, const struct wf_view_box *box)
{
    struct usage *u = state;
    struct use *use;

    if (leaf->kind != WF_VIEW_SOURCE || leaf->tied || u->doubtful[leaf->source] == 0)
        return WEFT_OK;
    WF_TRY(wf_grow(&u->uses, sizeof *u->uses, u->count, &u->capacity));
    use = &u->uses[u->count++];
    use->source = leaf->source;
    use->target = u->target;
    memcpy(use->start, box->start, sizeof use->start);
    memcpy(use->size, box->size, sizeof use->size);
    return WEFT_OK;
}

static weft_status list_uses(struct usage *u)
{
    for (u->target = 0; u->target < u->mapping->count; u->target++) {
        const struct wf_view *view = u->mapping->targets[u->target].view;
        struct wf_view_box whole;
        bool empty = false;
        for (int32_t d = 0; d < view->dims; d++)
            empty |= view->shape[d] == 0;
        wf_view_whole(view, &whole);
        if (!empty) WF_TRY(wf_view_visit(view, &whole, add_use, u));
    }
    return WEFT_OK;
}

static int compare_uses(const void *left, const void *right)
{
    const struct use *a = left, *b = right;

    if (a->source != b->source) return a->source < b->source ? -1 : 1;
    return a->target < b->target ? -1 : a->target > b->target;
}

static weft_status fail_flaw(const struct wf_mapping *mapping, const struct wf_tensor *tensor,
                             const struct wf_cover_flaw *flaw, const struct use *uses)
{
    struct wf_text point = {0};
    weft_status status;

    wf_shape_add_text(tensor->dims, flaw->point, &point);
    status = wf_text_status(&point);
    if (status == WEFT_OK && flaw->kind == WF_COVER_GAP)
        status = wf_fail(
            WEFT_ERR_INVALID,
            "rules: no rule uses element %s of tensor \"%.200s\"; line %u uses others; \"%.200s : "
            "drop\" drops what rules leave of it",
            point.data, tensor->name, mapping->lines[uses[0].source], tensor->name);
    else if (status == WEFT_OK)
        status =
            wf_fail(WEFT_ERR_INVALID,
                    "rules: element %s of tensor \"%.200s\" goes to \"%.200s\" (line %u) and to "
                    "\"%.200s\" (line %u); tie(...) lets several tensors have it",
                    point.data, tensor->name, mapping->targets[uses[flaw->first].target].name,
                    mapping->targets[uses[flaw->first].target].line,
                    mapping->targets[uses[flaw->second].target].name,
                    mapping->targets[uses[flaw->second].target].line);
    wf_text_free(&point);
    return status;
}

/* The COUNT uses of one tensor. */
static weft_status check_uses(const struct wf_mapping *mapping, const struct use *uses,
                              size_t count)
{
    struct wf_tensor tensor = mapping->base->tensors[uses[0].source];
    bool dropped = (mapping->state[uses[0].source] & WF_USED_DROPPED) != 0;
    struct wf_piece *boxes = wf_calloc(count, sizeof *boxes);
    struct wf_cover_flaw flaw = {.kind = WF_COVER_EXACT};
    weft_status status;

    if (boxes == NULL) return wf_fail_memory(count * sizeof *boxes);
    for (size_t i = 0; i < count; i++) {
        boxes[i].offset = uses[i].start;
        boxes[i].shape = uses[i].size;
        boxes[i].dims = tensor.dims;
    }
    tensor.count = count;
    status = wf_cover_find(&tensor, boxes, dropped, &flaw);
    wf_free(boxes);
    if (status == WEFT_OK && flaw.kind != WF_COVER_EXACT)
        status = fail_flaw(mapping, &tensor, &flaw, uses);
    return status;
}

static weft_status check_boxes(struct usage *u)
{
    WF_TRY(list_uses(u));
    if (u->count > 0) qsort(u->uses, u->count, sizeof *u->uses, compare_uses);
    for (size_t i = 0, end; i < u->count; i = end) {
        for (end = i + 1; end < u->count && u->uses[end].source == u->uses[i].source;)
            end++;
        WF_TRY(check_uses(u->mapping, &u->uses[i], end - i));
    }
    /* tensors of which views use nothing, such as an empty slice */
    for (size_t i = 0; i < u->mapping->base->tensor_count; i++)
        if (u->doubtful[i] != 0 && u->mapping->used[i] == 0 &&
            elements_of(&u->mapping->base->tensors[i]) > 0)
            return fail_unused(u->mapping, i);
    return WEFT_OK;
}

weft_status wf_mapping_check(const struct wf_mapping *mapping)
{
    size_t count = mapping->base->tensor_count;
    struct usage u = {.mapping = mapping,
                      .doubtful = wf_calloc(count, sizeof *u.doubtful),
                      .leaves = wf_calloc(count, sizeof *u.leaves)};
    weft_status status = WEFT_OK;
    bool any = false;

    if (u.doubtful == NULL || u.leaves == NULL) status = wf_fail_memory(count * sizeof *u.leaves);
    if (status == WEFT_OK) status = find_doubtful(&u, &any);
    if (status == WEFT_OK && any) status = check_boxes(&u);
    wf_free(u.doubtful);
    wf_free(u.leaves);
    wf_free(u.uses);
    return status;
}
