/* clip.c - the calls: their arguments, and the elements of tensors as pieces of a job. */
#include "clip.h"

#include "base/number.h"

#include <stdio.h>
#include <string.h>

/* ---- arguments ---- */

enum partials { PARTIALS_REFUSED, PARTIALS_BY_OPTION, PARTIALS_ALLOWED };

static weft_status check_partial(const weft_tensor *tensor, enum partials partials)
{
    const weft_spec *spec = weft_tensor_spec(tensor);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++) {
        const weft_placement *placement = &weft_spec_placements(spec)[a];

        if (placement->kind != WEFT_PLACE_PARTIAL) continue;
        if (partials != PARTIALS_ALLOWED)
            return wf_fail(WEFT_ERR_INVALID, "the gradient is partial on %s: reduce it first%s",
                           wf_axis_text(weft_spec_mesh(spec), a).text,
                           partials == PARTIALS_BY_OPTION ? ", or set `reduce_partials`" : "");
        if (placement->reduction != WEFT_REDUCE_SUM && placement->reduction != WEFT_REDUCE_AVG)
            return wf_fail(WEFT_ERR_INVALID,
                           "the gradient is P(%s) on %s; expected a sum or an average",
                           wf_reduction_name(placement->reduction),
                           wf_axis_text(weft_spec_mesh(spec), a).text);
    }
    return WEFT_OK;
}

static weft_status check_tensor(const weft_context *context, const weft_tensor *tensor,
                                enum partials partials)
{
    enum weft_dtype dtype = weft_spec_dtype(weft_tensor_spec(tensor));

    if (weft_tensor_is_read_only(tensor))
        return wf_fail(WEFT_ERR_INVALID, "the tensor is read-only");
    if (weft_tensor_context(tensor) != context)
        return wf_fail(WEFT_ERR_INVALID, "the tensor belongs to another context");
    if (!wf_dtype_is_float(dtype))
        return wf_fail(WEFT_ERR_INVALID, "the tensor is of %s; expected floats",
                       weft_dtype_name(dtype));
    return check_partial(tensor, partials);
}

/* Put the number of TENSOR, and its name if it has one, before the error text. */
static weft_status fail_tensor(const weft_tensor *tensor, size_t index, weft_status status,
                               const char *function)
{
    char about[256];

    status = wf_fail_context(status, "tensor %zu", index);
    if (weft_tensor_name(tensor)[0] == '\0') return wf_fail_named(status, function);
    snprintf(about, sizeof about, "tensor \"%s\"", weft_tensor_name(tensor));
    wf_text_clean(about, strlen(about)); /* names may come from files */
    return wf_fail_about(status, function, about);
}

static weft_status check_tensors(const weft_context *context, size_t count,
                                 weft_tensor *const *tensors, enum partials partials,
                                 const char *function)
{
    if (count > 0 && tensors == NULL) return wf_fail_null(function, "tensors");
    if (count > UINT32_MAX)
        return wf_fail(WEFT_ERR_INVALID, "%s: count is %zu; it must be below 2^32", function,
                       count);
    for (size_t i = 0; i < count; i++) {
        weft_status status;

        if (tensors[i] == NULL) continue;
        WF_TRY(weft_object_check(tensors[i], "weft_tensor", function, "tensor"));
        status = check_tensor(context, tensors[i], partials);
        if (status != WEFT_OK) return fail_tensor(tensors[i], i, status, function);
    }
    return WEFT_OK;
}

/* ---- pieces ---- */

/* Add LEFT elements at MEMORY to JOB, in parts that fit into the stage. */
static weft_status add_elements(struct wf_clip_job *job, uint64_t left, void *memory,
                                struct wf_clip_piece piece)
{
    size_t bytes = wf_dtype_bytes(piece.dtype);
    uint64_t most = job->stage != NULL ? WF_CLIP_STAGE / bytes : left;

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
    piece.dtype = weft_spec_dtype(weft_tensor_spec(tensor));
    for (int32_t i = 0; i < wf_here_count(job->context); i++) {
        weft_tensor_local_info local;
        void *dense = NULL;

        WF_TRY(wf_here_get(tensor, i, &local));
        if (local.shard.elements == 0) continue;
        WF_TRY(weft_tensor_pack(tensor, wf_here_rank(job->context, i), stream, &dense));
        piece.sum = first + (uint32_t)i;
        WF_TRY(add_elements(job, (uint64_t)local.shard.elements, dense, piece));
    }
    return WEFT_OK;
}

weft_status wf_clip_unpack(uint32_t count, weft_tensor *const *tensors, weft_stream *stream)
{
    for (uint32_t i = 0; i < count; i++) {
        const weft_context *context = weft_tensor_context(tensors[i]);

        for (int32_t j = 0; tensors[i] != NULL && j < wf_here_count(context); j++)
            WF_TRY(weft_tensor_unpack(tensors[i], wf_here_rank(context, j), stream));
    }
    return WEFT_OK;
}

/* ---- the public functions ---- */

/* weft_clip_gradient_norm for the function WHAT. */
static weft_status clip_by_norm(const char *what, weft_context *context, size_t count,
                                weft_tensor *const *tensors, double max_norm,
                                const weft_clip_options *options, weft_stream *stream,
                                double *total)
{
    weft_clip_options given = {0};

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    WF_TRY(
        wf_fail_named(wf_options_read("weft_clip_options", options, &given, sizeof given), what));
    WF_TRY(weft_stream_check(context, stream, what));
    if (given.p == 0) given.p = 2;
    if (!(given.p > 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: weft_clip_options.p is %g; expected a number above 0",
                       what, given.p);
    if (!(max_norm >= 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: max_norm is %g; expected 0 or more", what, max_norm);
    if (given.nonfinite > WEFT_NONFINITE_ZERO)
        return wf_fail(
            WEFT_ERR_INVALID,
            "%s: weft_clip_options.nonfinite is %u; expected a value of enum weft_nonfinite", what,
            given.nonfinite);
    if (given.nonfinite_is_error) given.nonfinite = WEFT_NONFINITE_KEEP;
    WF_TRY(check_tensors(context, count, tensors,
                         given.reduce_partials ? PARTIALS_ALLOWED : PARTIALS_BY_OPTION, what));
    WF_TRY(wf_fail_named(wf_clip_check_distinct(context, (uint32_t)count, tensors), what));
    return wf_fail_named(
        wf_clip_by_norm(context, (uint32_t)count, tensors, max_norm, &given, stream, total), what);
}

/* Unless WORK is NULL, *WORK records the work on STREAM. */
static weft_status record(weft_context *context, weft_stream *stream, weft_work **work,
                          const char *what)
{
    return work == NULL ? WEFT_OK : wf_fail_named(weft_work_record(context, stream, work), what);
}

weft_status weft_clip_gradient_norm(weft_context *context, size_t count,
                                    weft_tensor *const *tensors, double max_norm,
                                    const weft_clip_options *options, double *total,
                                    weft_stream *stream, weft_work **work)
{
    static const char what[] = "weft_clip_gradient_norm";

    WF_TRY(clip_by_norm(what, context, count, tensors, max_norm, options, stream, total));
    return record(context, stream, work, what);
}

weft_status weft_clip_gradient_norm_wait(weft_context *context, size_t count,
                                         weft_tensor *const *tensors, double max_norm,
                                         const weft_clip_options *options, weft_stream *stream,
                                         double *norm)
{
    static const char what[] = "weft_clip_gradient_norm_wait";
    void *total = NULL;
    weft_status status, freed;

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    WF_TRY(weft_stream_check(context, stream, what));
    if (norm == NULL) return wf_fail_null(what, "norm");
    WF_TRY(wf_fail_named(weft_alloc(context, sizeof *norm, WEFT_MEMORY_DEVICE, &total), what));
    status = weft_memory_fill(context, total, 0, sizeof *norm, stream);
    if (status == WEFT_OK)
        status = clip_by_norm(what, context, count, tensors, max_norm, options, stream, total);
    if (status == WEFT_OK) status = weft_memory_copy(context, total, norm, sizeof *norm, stream);
    if (status == WEFT_OK) status = weft_context_wait(context, stream, WEFT_FOREVER);
    freed = weft_free(context, total);
    return wf_fail_named(status != WEFT_OK ? status : freed, what);
}

weft_status weft_clip_gradient_value(weft_context *context, size_t count,
                                     weft_tensor *const *tensors, double max_value,
                                     weft_stream *stream, weft_work **work)
{
    static const char what[] = "weft_clip_gradient_value";
    const struct wf_clip_piece piece = {.is_written = true};
    struct wf_clip_job *job = NULL;
    weft_status status = WEFT_OK;

    WF_TRY(weft_object_check(context, "weft_context", what, "context"));
    WF_TRY(weft_stream_check(context, stream, what));
    if (!(max_value >= 0))
        return wf_fail(WEFT_ERR_INVALID, "%s: max_value is %g; expected 0 or more", what,
                       max_value);
    WF_TRY(check_tensors(context, count, tensors, PARTIALS_REFUSED, what));
    WF_TRY(wf_fail_named(wf_clip_check_distinct(context, (uint32_t)count, tensors), what));
    WF_TRY(wf_fail_named(wf_clip_begin(context, 1, max_value, stream, &job), what));
    job->by_value = true;
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        if (tensors[i] != NULL) status = wf_clip_add_tensor(job, tensors[i], 0, piece, stream);
    if (status == WEFT_OK) status = wf_clip_post_change(job, stream);
    if (status == WEFT_OK) status = wf_clip_unpack((uint32_t)count, tensors, stream);
    WF_TRY(wf_fail_named(wf_clip_end(job, stream, status), what));
    return record(context, stream, work, what);
}
