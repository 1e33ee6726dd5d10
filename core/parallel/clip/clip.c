/* clip.c - the calls: their arguments, and the elements of tensors as pieces of a job. */
#include "clip.h"

#include "base/number.h"

/* ---- arguments ---- */

enum partials { PARTIALS_REFUSED, PARTIALS_BY_OPTION, PARTIALS_ALLOWED };

static weft_status check_partial(const weft_tensor *tensor, enum partials partials)
{
    const struct wf_layout *layout = &tensor->spec->layout;

    for (int32_t a = 0; a < layout->mesh->axes; a++) {
        const weft_placement *placement = &layout->placements[a];

        if (placement->kind != WEFT_PLACE_PARTIAL) continue;
        if (partials != PARTIALS_ALLOWED)
            return wf_fail(WEFT_ERR_INVALID,
                           "the gradient is partial on axis %d: reduce it first%s", a,
                           partials == PARTIALS_BY_OPTION ? ", or set `reduce_partials`" : "");
        if (placement->reduction != WEFT_REDUCE_SUM && placement->reduction != WEFT_REDUCE_AVG)
            return wf_fail(WEFT_ERR_INVALID,
                           "the gradient is P(%s) on axis %d; expected a sum or "
                           "an average",
                           wf_reduction_name(placement->reduction), a);
    }
    return WEFT_OK;
}

static weft_status check_tensors(const weft_context *context, uint32_t count,
                                 weft_tensor *const *tensors, enum partials partials,
                                 const char *function)
{
    if (count > 0 && tensors == NULL) return wf_fail_null(function, "tensors");
    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *tensor = tensors[i];
        weft_status status = WEFT_OK;

        if (tensor == NULL) continue;
        WF_TRY(wf_tensor_check(tensor, function, "tensor"));
        WF_TRY(wf_tensor_check_writable(tensor, function));
        if (tensor->context != context)
            status = wf_fail(WEFT_ERR_INVALID, "the tensor belongs to another context");
        else if (!wf_dtype_is_float(tensor->spec->layout.dtype))
            status = wf_fail(WEFT_ERR_INVALID, "the tensor is of %s; expected floats",
                             weft_dtype_name((enum weft_dtype)tensor->spec->layout.dtype));
        else
            status = check_partial(tensor, partials);
        if (status != WEFT_OK)
            return wf_tensor_fail(tensor, wf_fail_context(status, "tensor %u", i), function);
    }
    return WEFT_OK;
}

/* ---- pieces ---- */

/* Add the shard LOCAL to JOB, in parts that fit into the stage. */
static weft_status add_local(struct wf_clip_job *job, const weft_tensor *tensor,
                             const struct wf_local *local, void *memory, struct wf_clip_piece piece)
{
    size_t bytes = wf_dtype_bytes(tensor->spec->layout.dtype);
    uint64_t left = (uint64_t)local->shard.elements;
    uint64_t most = job->stage != NULL ? WF_CLIP_STAGE / bytes : left;

    piece.dtype = tensor->spec->layout.dtype;
    for (piece.memory = memory; left > 0; left -= piece.count) {
        piece.count = left < most ? left : most;
        WF_TRY(wf_clip_add(job, piece));
        piece.memory = (char *)piece.memory + piece.count * bytes;
    }
    return WEFT_OK;
}

weft_status wf_clip_add_tensor(struct wf_clip_job *job, weft_tensor *tensor, uint32_t first,
                               struct wf_clip_piece piece, weft_stream *stream)
{
    for (int32_t i = 0; i < tensor->local_count; i++) {
        struct wf_local *local = &tensor->locals[i];
        void *dense = NULL;

        if (local->shard.elements == 0) continue;
        WF_TRY(wf_local_pack(tensor, local, stream, &dense));
        piece.sum = first + (uint32_t)i;
        WF_TRY(add_local(job, tensor, local, dense, piece));
    }
    wf_tensor_use(tensor, stream);
    return WEFT_OK;
}

weft_status wf_clip_unpack(uint32_t count, weft_tensor *const *tensors, weft_stream *stream)
{
    for (uint32_t i = 0; i < count; i++) {
        weft_tensor *tensor = tensors[i];

        for (int32_t j = 0; tensor != NULL && !tensor->is_dense && j < tensor->local_count; j++) {
            void *unused = NULL;

            if (tensor->locals[j].shard.elements == 0) continue;
            WF_TRY(wf_local_begin(tensor, &tensor->locals[j], stream, &unused));
            WF_TRY(wf_local_unpack(tensor, &tensor->locals[j], stream));
        }
    }
    return WEFT_OK;
}

/* ---- the public functions ---- */

/* weft_clip_grad_norm for the function WHAT. */
static weft_status clip_by_norm(const char *what, weft_context *context, uint32_t count,
                                weft_tensor *const *tensors, double max_norm,
                                const weft_clip_options *options, weft_stream *stream,
                                double *total)
{
    weft_clip_options given = {0};

    WF_TRY(wf_context_check(context, what));
    WF_TRY(
        wf_fail_named(wf_options_read("weft_clip_options", options, &given, sizeof given), what));
    WF_TRY(wf_stream_check(context, stream, what));
    if (given.p == 0) given.p = 2;
    if (!(given.p > 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: p is %g; expected a number above 0", what, given.p);
    if (!(max_norm >= 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: max_norm is %g; expected 0 or more", what, max_norm);
    if (given.nonfinite > WEFT_CLIP_ERROR)
        return wf_fail(WEFT_ERR_INVALID,
                       "%s: nonfinite is %u; expected a value of enum weft_clip_nonfinite", what,
                       given.nonfinite);
    WF_TRY(check_tensors(context, count, tensors,
                         given.reduce_partials ? PARTIALS_ALLOWED : PARTIALS_BY_OPTION, what));
    WF_TRY(wf_fail_named(wf_clip_check_distinct(count, tensors), what));
    return wf_fail_named(wf_clip_by_norm(context, count, tensors, max_norm, &given, stream, total),
                         what);
}

weft_status weft_clip_grad_norm(weft_context *context, uint32_t count, weft_tensor *const *tensors,
                                double max_norm, const weft_clip_options *options,
                                weft_stream *stream, double *total)
{
    return clip_by_norm("weft_clip_grad_norm", context, count, tensors, max_norm, options, stream,
                        total);
}

weft_status weft_clip_grad_norm_wait(weft_context *context, uint32_t count,
                                     weft_tensor *const *tensors, double max_norm,
                                     const weft_clip_options *options, weft_stream *stream,
                                     double *norm)
{
    static const char what[] = "weft_clip_grad_norm_wait";
    void *total = NULL;
    weft_status status, freed;

    WF_TRY(wf_context_check(context, what));
    WF_TRY(wf_stream_check(context, stream, what));
    if (norm == NULL) return wf_fail_null(what, "norm");
    WF_TRY(wf_fail_named(weft_alloc(context, sizeof *norm, WEFT_MEMORY_DEVICE, &total), what));
    status = weft_memory_fill(context, total, 0, sizeof *norm, stream);
    if (status == WEFT_OK)
        status = clip_by_norm(what, context, count, tensors, max_norm, options, stream, total);
    if (status == WEFT_OK) status = weft_memory_copy(context, total, norm, sizeof *norm, stream);
    if (status == WEFT_OK) status = weft_stream_wait(context, stream, WEFT_FOREVER);
    freed = weft_free(context, total);
    return wf_fail_named(status != WEFT_OK ? status : freed, what);
}

weft_status weft_clip_grad_value(weft_context *context, uint32_t count, weft_tensor *const *tensors,
                                 double most, weft_stream *stream)
{
    static const char what[] = "weft_clip_grad_value";
    const struct wf_clip_piece piece = {.is_written = true};
    struct wf_clip_job *job = NULL;
    weft_status status = WEFT_OK;

    WF_TRY(wf_context_check(context, what));
    WF_TRY(wf_stream_check(context, stream, what));
    if (!(most >= 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: most is %g; expected 0 or more", what, most);
    WF_TRY(check_tensors(context, count, tensors, PARTIALS_REFUSED, what));
    WF_TRY(wf_fail_named(wf_clip_check_distinct(count, tensors), what));
    WF_TRY(wf_fail_named(wf_clip_begin(context, 1, most, stream, &job), what));
    job->by_value = true;
    for (uint32_t i = 0; i < count && status == WEFT_OK; i++)
        if (tensors[i] != NULL) status = wf_clip_add_tensor(job, tensors[i], 0, piece, stream);
    if (status == WEFT_OK) status = wf_clip_post_change(job, stream);
    if (status == WEFT_OK) status = wf_clip_unpack(count, tensors, stream);
    return wf_fail_named(wf_clip_end(job, stream, status), what);
}
