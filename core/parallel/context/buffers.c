/* buffers.c - whole buffers become shards of the sequence, and whole again. */
#include "cp.h"

#include "base/range.h"

/* A buffer by its shape, and the copies between it and its shards. */
struct wf_cp_shape {
    struct wf_cp_shape *next;
    int64_t outer, inner; /* products of the sizes before and after the sequence */
    uint32_t element;     /* bytes */
    struct wf_cp_copies shard, restore;
};

void wf_cp_shapes_free(weft_cp *cp)
{
    while (cp->shapes != NULL) {
        struct wf_cp_shape *shape = cp->shapes;

        cp->shapes = shape->next;
        wf_cp_copies_free(cp, &shape->shard);
        wf_cp_copies_free(cp, &shape->restore);
        wf_free(shape);
    }
}

/* A buffer is [outer][sequence][inner]: the boxes of copies.c with one head. */
static weft_status add_boxes(const weft_cp *cp, const struct wf_cp_shape *shape, int32_t coordinate,
                             int64_t first, bool restore, struct wf_cp_boxes *boxes)
{
    const weft_cp_plan *plan = cp->plan;
    weft_cp_local whole = wf_cp_dense(2, 1, plan->length, shape->inner, NULL),
                  shard = wf_cp_dense(2, 1, cp->held[coordinate], shape->inner, NULL);

    for (size_t i = plan->first_run[coordinate]; i < plan->first_run[coordinate + 1]; i++) {
        const struct wf_cp_run *run = &plan->runs[i];
        struct wf_cp_box box = {shape->outer, 1, run->length, shape->inner};
        struct wf_cp_side of_whole = {0, run->start * shape->inner, whole},
                          of_shard = {0, first + run->position * shape->inner, shard};

        WF_TRY(restore ? wf_cp_boxes_add(boxes, &box, &of_shard, &of_whole)
                       : wf_cp_boxes_add(boxes, &box, &of_whole, &of_shard));
    }
    return WEFT_OK;
}

static weft_status make_copies(const weft_cp *cp, struct wf_cp_shape *shape)
{
    struct wf_cp_boxes boxes = {0};
    weft_status status = add_boxes(cp, shape, cp->coordinate, 0, false, &boxes);
    int64_t first = 0;

    if (status == WEFT_OK) status = wf_cp_copies_make(cp, shape->element, &boxes, &shape->shard);
    boxes.count = 0;
    for (int32_t c = 0; c < cp->plan->ranks && status == WEFT_OK; c++) {
        status = add_boxes(cp, shape, c, first, true, &boxes);
        first += shape->outer * cp->held[c] * shape->inner;
    }
    if (status == WEFT_OK) status = wf_cp_copies_make(cp, shape->element, &boxes, &shape->restore);
    wf_free(boxes.items);
    return status;
}

static weft_status find_shape(weft_cp *cp, const struct wf_cp_shape *wanted,
                              struct wf_cp_shape **out)
{
    struct wf_cp_shape *shape = cp->shapes;
    weft_status status;

    while (shape != NULL && (shape->outer != wanted->outer || shape->inner != wanted->inner ||
                             shape->element != wanted->element))
        shape = shape->next;
    if (shape == NULL) {
        shape = wf_calloc(1, sizeof *shape);
        if (shape == NULL) return wf_fail_memory(sizeof *shape);
        *shape = *wanted;
        status = make_copies(cp, shape);
        if (status != WEFT_OK) {
            wf_cp_copies_free(cp, &shape->shard);
            wf_free(shape);
            return status;
        }
        shape->next = cp->shapes;
        cp->shapes = shape;
    }
    *out = shape;
    return WEFT_OK;
}

/* ---- the calls ---- */

/* A call of one of both functions. */
struct request {
    const char *function;
    enum weft_dtype dtype;
    int32_t dims, dim;
    const int64_t *shape;
    const void *source;
    void *target;
    weft_stream *stream;
};

static weft_status check_request(const weft_cp *cp, const struct request *r,
                                 struct wf_cp_shape *out)
{
    int64_t bytes;

    WF_TRY(wf_cp_check(cp, r->function));
    if (r->shape == NULL) return wf_fail_null(r->function, "shape");
    if (r->dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_INVALID, "%s: dtype %d is not known", r->function, (int)r->dtype);
    if (r->dims < 1 || r->dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID, "%s: dims is %d; a buffer has 1 to %d dimensions",
                       r->function, r->dims, WEFT_MAX_DIMS);
    if (r->dim < 0 || r->dim >= r->dims)
        return wf_fail(WEFT_ERR_INVALID, "%s: dim is %d, but the buffer has the dimensions 0 to %d",
                       r->function, r->dim, r->dims - 1);
    *out = (struct wf_cp_shape){.outer = 1, .inner = 1};
    out->element = (uint32_t)wf_dtype_bytes(r->dtype);
    bytes = out->element;
    for (int32_t d = 0; d < r->dims; d++) {
        int64_t *side = d < r->dim ? &out->outer : &out->inner;

        if (r->shape[d] < 0 || (r->shape[d] > 0 && !wf_mul_i64(bytes, r->shape[d], &bytes)))
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: shape[%d] is %lld: it is negative or the buffer "
                           "is too large",
                           r->function, d, (long long)r->shape[d]);
        if (d != r->dim) *side *= r->shape[d];
    }
    if (r->shape[r->dim] != cp->plan->length)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s: dimension %d has size %lld, but the sequence of the plan has length %lld",
            r->function, r->dim, (long long)r->shape[r->dim], (long long)cp->plan->length);
    return wf_stream_check(cp->context, r->stream, r->function);
}

static weft_status check_memory(const struct request *r, int64_t source, int64_t target)
{
    if (r->source == NULL && source > 0) return wf_fail_null(r->function, "source");
    if (r->target == NULL && target > 0) return wf_fail_null(r->function, "target");
    return WEFT_OK;
}

/* WHOLE and SHARD are numbers of elements. */
static weft_status check_overlap(const struct request *r, int64_t whole, int64_t shard)
{
    uint64_t element = wf_dtype_bytes(r->dtype), from = (uint64_t)whole * element,
             to = (uint64_t)shard * element;

    if (!wf_ranges_overlap(r->source, from, r->target, to)) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID, "%s: source (%llu bytes at %p) and target (%llu bytes at %p) overlap",
        r->function, (unsigned long long)from, r->source, (unsigned long long)to, r->target);
}

weft_status weft_cp_shard(weft_cp *cp, enum weft_dtype dtype, int32_t dims, const int64_t *shape,
                          int32_t dim, const void *source, void *target, weft_stream *stream)
{
    const struct request r = {"weft_cp_shard", dtype, dims, dim, shape, source, target, stream};
    struct wf_cp_shape wanted, *known;
    int64_t elements;

    WF_TRY(check_request(cp, &r, &wanted));
    elements = wanted.outer * cp->held[cp->coordinate] * wanted.inner;
    WF_TRY(check_memory(&r, elements, elements));
    WF_TRY(check_overlap(&r, wanted.outer * cp->plan->length * wanted.inner, elements));
    WF_TRY(wf_fail_named(find_shape(cp, &wanted, &known), r.function));
    WF_TRY(wf_fail_named(wf_cp_use(cp, stream), r.function));
    return wf_fail_named(wf_cp_copies_run(cp, &known->shard, &source, &target, stream), r.function);
}

/* Gather the shards of KNOWN in staging, and copy them to their places. */
static weft_status gather(weft_cp *cp, const struct wf_cp_shape *known, const struct request *r,
                          void *staging, uint64_t *counts)
{
    uint64_t *offsets = counts + cp->plan->ranks, at = 0;

    for (int32_t c = 0; c < cp->plan->ranks; c++) {
        counts[c] = (uint64_t)(known->outer * cp->held[c] * known->inner);
        offsets[c] = at;
        at += counts[c];
    }
    WF_TRY(weft_all_gather_v(cp->comm, r->source, staging, counts, offsets, r->dtype, r->stream));
    return wf_cp_copies_run(cp, &known->restore, (const void *[]){staging}, (void *[]){r->target},
                            r->stream);
}

weft_status weft_cp_restore(weft_cp *cp, enum weft_dtype dtype, int32_t dims, const int64_t *shape,
                            int32_t dim, const void *source, void *target, weft_stream *stream)
{
    const struct request r = {"weft_cp_restore", dtype, dims, dim, shape, source, target, stream};
    struct wf_cp_shape wanted, *known = NULL;
    void *staging = NULL;
    uint64_t *counts;
    int64_t whole;
    weft_status status;

    WF_TRY(check_request(cp, &r, &wanted));
    whole = wanted.outer * cp->plan->length * wanted.inner;
    WF_TRY(check_memory(&r, wanted.outer * cp->held[cp->coordinate] * wanted.inner, whole));
    counts = wf_calloc((size_t)cp->plan->ranks, 2 * sizeof *counts);
    status = counts != NULL ? find_shape(cp, &wanted, &known)
                            : wf_fail_memory((size_t)cp->plan->ranks * 2 * sizeof *counts);
    if (status == WEFT_OK) status = wf_cp_use(cp, stream);
    if (status == WEFT_OK)
        status = weft_alloc_on(cp->context, (uint64_t)whole * wanted.element, stream, &staging);
    if (status == WEFT_OK) status = gather(cp, known, &r, staging, counts);
    if (status != WEFT_OK) status = wf_comm_give_up(cp->comm, status, r.function);
    if (staging != NULL && weft_free_on(cp->context, staging, stream) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "weft_cp_restore: staging is not freed: %s", weft_last_error());
    wf_free(counts);
    return status;
}
