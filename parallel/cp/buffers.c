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
    bool restore;
    int32_t dim;
    weft_cp_copy_options options;
    weft_stream *stream;
    weft_work **work;
    struct wf_held held[2]; /* source, target */
    enum weft_dtype dtype;
    const void *source;
    void *target;
};

/* WHOLE has the sequence in dimension DIM, and PART this rank's part of it. */
static weft_status check_shapes(const weft_cp *cp, const struct request *r,
                                const struct wf_held *whole, const struct wf_held *part)
{
    int64_t mine = cp->held[cp->coordinate];

    if (r->dim < 0 || r->dim >= whole->dims)
        return wf_fail(WEFT_ERR_INVALID, "%s: dim is %d, but the buffer has %d dimension%s",
                       r->function, r->dim, whole->dims, whole->dims == 1 ? "" : "s");
    if (whole->dtype != part->dtype)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: source has dtype %s and target %s; they must be the same", r->function,
                       weft_dtype_name(r->held[0].dtype), weft_dtype_name(r->held[1].dtype));
    if (whole->dims != part->dims)
        return wf_fail(
            WEFT_ERR_INVALID, "%s: source has %d dimension%s and target %d; they must be the same",
            r->function, r->held[0].dims, r->held[0].dims == 1 ? "" : "s", r->held[1].dims);
    if (whole->shape[r->dim] != cp->plan->length || part->shape[r->dim] != mine)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: in dimension %d the whole buffer has size %lld and the part %lld, but "
                       "the sequence of the plan has length %lld and this rank's part %lld",
                       r->function, r->dim, (long long)whole->shape[r->dim],
                       (long long)part->shape[r->dim], (long long)cp->plan->length,
                       (long long)mine);
    for (int32_t d = 0; d < whole->dims; d++)
        if (d != r->dim && whole->shape[d] != part->shape[d])
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: the whole buffer has size %lld in dimension %d, and the part %lld",
                           r->function, (long long)whole->shape[d], d, (long long)part->shape[d]);
    return WEFT_OK;
}

/* Memory of the caller for the whole buffer, TARGET. */
static weft_status check_staging(const struct request *r)
{
    const weft_cp_copy_options *o = &r->options;
    uint64_t from = wf_held_span(&r->held[0]), to = wf_held_span(&r->held[1]);

    if (o->staging == NULL) return WEFT_OK;
    if (o->staging_bytes < to)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: staging has %llu bytes, but the whole buffer has %llu", r->function,
                       (unsigned long long)o->staging_bytes, (unsigned long long)to);
    if (!wf_ranges_overlap(o->staging, to, r->source, from) &&
        !wf_ranges_overlap(o->staging, to, r->target, to))
        return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: staging (%llu bytes at %p) overlaps source or target",
                   r->function, (unsigned long long)to, o->staging);
}

static weft_status check_request(const weft_cp *cp, struct request *r, weft_tensor *source,
                                 weft_tensor *target, const weft_cp_copy_options *options,
                                 struct wf_cp_shape *out)
{
    const struct wf_held *whole = &r->held[r->restore ? 1 : 0],
                         *part = &r->held[r->restore ? 0 : 1];

    WF_TRY(wf_cp_check(cp, r->function));
    WF_TRY(wf_fail_named(
        wf_options_read("weft_cp_copy_options", options, &r->options, sizeof r->options),
        r->function));
    WF_TRY(wf_held_of(cp->context, source, false, r->function, "source", &r->held[0]));
    WF_TRY(wf_held_of(cp->context, target, true, r->function, "target", &r->held[1]));
    WF_TRY(check_shapes(cp, r, whole, part));
    WF_TRY(wf_held_require_dense(&r->held[0], r->function, "source"));
    WF_TRY(wf_held_require_dense(&r->held[1], r->function, "target"));
    r->dtype = whole->dtype;
    r->source = r->held[0].memory;
    r->target = r->held[1].memory;
    if (r->restore) WF_TRY(check_staging(r));
    *out = (struct wf_cp_shape){.outer = 1, .inner = 1};
    out->element = (uint32_t)wf_dtype_bytes(r->dtype);
    for (int32_t d = 0; d < whole->dims; d++)
        if (d != r->dim) *(d < r->dim ? &out->outer : &out->inner) *= whole->shape[d];
    return weft_stream_check(cp->context, r->stream, r->function);
}

static weft_status check_overlap(const struct request *r)
{
    uint64_t from = wf_held_span(&r->held[0]), to = wf_held_span(&r->held[1]);

    if (!wf_ranges_overlap(r->source, from, r->target, to)) return WEFT_OK;
    return wf_fail(
        WEFT_ERR_INVALID, "%s: source (%llu bytes at %p) and target (%llu bytes at %p) overlap",
        r->function, (unsigned long long)from, r->source, (unsigned long long)to, r->target);
}

weft_status weft_cp_shard(weft_cp *cp, weft_tensor *source, int32_t dim, weft_tensor *target,
                          const weft_cp_copy_options *options, weft_stream *stream,
                          weft_work **work)
{
    struct request r = {.function = "weft_cp_shard", .dim = dim, .stream = stream, .work = work};
    struct wf_cp_shape wanted, *known;

    WF_TRY(check_request(cp, &r, source, target, options, &wanted));
    WF_TRY(check_overlap(&r));
    WF_TRY(wf_fail_named(find_shape(cp, &wanted, &known), r.function));
    WF_TRY(wf_fail_named(wf_cp_use(cp, stream), r.function));
    WF_TRY(wf_fail_named(wf_cp_copies_run(cp, &known->shard, &r.source, &r.target, stream),
                         r.function));
    return wf_fail_named(wf_held_posted(cp->context, 2, r.held, stream, work), r.function);
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

weft_status weft_cp_restore(weft_cp *cp, weft_tensor *source, int32_t dim, weft_tensor *target,
                            const weft_cp_copy_options *options, weft_stream *stream,
                            weft_work **work)
{
    struct request r = {
        .function = "weft_cp_restore", .restore = true, .dim = dim, .stream = stream, .work = work};
    struct wf_cp_shape wanted, *known = NULL;
    void *staging = NULL; /* NULL: the caller's */
    uint64_t *counts;
    weft_status status;

    WF_TRY(check_request(cp, &r, source, target, options, &wanted));
    counts = wf_calloc((size_t)cp->plan->ranks, 2 * sizeof *counts);
    status = counts != NULL ? find_shape(cp, &wanted, &known)
                            : wf_fail_memory((size_t)cp->plan->ranks * 2 * sizeof *counts);
    if (status == WEFT_OK) status = wf_cp_use(cp, stream);
    if (status == WEFT_OK && r.options.staging == NULL)
        status = weft_alloc_on(cp->context, wf_held_span(&r.held[1]), stream, &staging);
    if (status == WEFT_OK)
        status = gather(cp, known, &r, staging != NULL ? staging : r.options.staging, counts);
    if (status == WEFT_OK) status = wf_held_posted(cp->context, 2, r.held, stream, work);
    if (status != WEFT_OK) status = weft_comm_fail(cp->comm, r.function, status);
    if (staging != NULL && weft_free_on(cp->context, staging, stream) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "weft_cp_restore: staging is not freed: %s", weft_last_error());
    wf_free(counts);
    return status;
}
