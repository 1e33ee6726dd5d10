/* tensors.c - tensors in work that other libraries post. */
#include "tensor/tensor.h"

#include "weft/extend.h"

#include <stdio.h>

/* ---- many tensors ---- */

static weft_status refuse_tensor(const weft_context *context, const weft_tensor *tensor,
                                 size_t index, const char *function, const char *argument)
{
    char what[64];

    WF_TRY(wf_context_check(context, function));
    snprintf(what, sizeof what, "%.40s[%zu]", argument, index);
    WF_TRY(wf_tensor_check(tensor, function, what));
    if (tensor->context == context) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "%s: %s belongs to another context", function, what);
}

/* True if TENSOR, which is not NULL, can surely be used in calls of CONTEXT: the common case.
 * USABLE is the mark of tensors. */
static inline bool surely_belongs(const weft_tensor *tensor, const weft_context *context,
                                  uint64_t usable)
{
    return __builtin_expect(
        tensor->made == usable && tensor->context == context && tensor->base == NULL, 1);
}

static bool belongs(const weft_tensor *tensor, const weft_context *context)
{
    return wf_tensor_is_usable(tensor) && tensor->context == context;
}

WF_HOT weft_status weft_tensors_check(weft_context *context, size_t count,
                                      weft_tensor *const *tensors, const char *function,
                                      const char *argument, const weft_spec **specs)
{
    const uint64_t usable = wf_made_now(WF_KIND_TENSOR);

    if (function == NULL || argument == NULL)
        return wf_fail_null("weft_tensors_check", function == NULL ? "function" : "argument");
    if (count == 0) return WEFT_OK;
    if (tensors == NULL) return wf_fail_null(function, argument);
    if (specs == NULL) return wf_fail_null("weft_tensors_check", "specs");
    for (size_t i = 0; i < count; i++) {
        const weft_tensor *tensor = tensors[i];

        if (tensor != NULL && !surely_belongs(tensor, context, usable) && !belongs(tensor, context))
            return refuse_tensor(context, tensor, i, function, argument);
        specs[i] = tensor != NULL ? tensor->spec : NULL;
    }
    return WEFT_OK;
}

/* Why weft_tensors_lend refuses its arguments. */
static weft_status refuse_lending(weft_context *context, int32_t rank, const void *tensors,
                                  const void *locals, size_t local_size)
{
    static const char what[] = "weft_tensors_lend";

    if (rank < 0 || rank >= context->size)
        return wf_fail(WEFT_ERR_INVALID, "%s: rank is %d; expected 0 to %d", what, rank,
                       context->size - 1);
    if (!context->is_simulated && rank != context->rank)
        return wf_fail(WEFT_ERR_UNSUPPORTED,
                       "%s: the shards of rank %d are not in the memory of rank %d; only a context "
                       "with simulated ranks holds all shards",
                       what, rank, context->rank);
    WF_TRY(wf_require(tensors, "weft_tensors_lend: tensors"));
    WF_TRY(wf_require(locals, "weft_tensors_lend: locals"));
    return wf_fail_named(wf_items_check("weft_tensor_local", local_size, sizeof(weft_tensor_local)),
                         what);
}

/* Lend TENSOR, number INDEX, which may be NULL. */
static weft_status lend_any(weft_context *context, int32_t rank, weft_tensor *tensor, size_t index,
                            bool is_written, weft_stream *stream, weft_tensor_local *out)
{
    const struct wf_local *one;

    *out = (weft_tensor_local){0};
    if (tensor == NULL) return WEFT_OK;
    if (!belongs(tensor, context))
        return refuse_tensor(context, tensor, index, "weft_tensors_lend", "tensors");
    one = wf_local_of(tensor, rank);
    wf_tensor_use(tensor, stream);
    *out = (weft_tensor_local){tensor->spec, &one->shard, one->strides, one->memory, is_written};
    return WEFT_OK;
}

/* Lend the shards FROM to TO - 1.  Of a real rank's tensor without gaps, only the first line of the
 * cache is read. */
static inline weft_status lend(weft_context *context, int32_t rank, size_t from, size_t to,
                               weft_tensor *const *tensors, bool is_written, weft_stream *stream,
                               weft_tensor_local *locals)
{
    const uint64_t usable = wf_made_now(WF_KIND_TENSOR);
    const bool is_simulated = context->is_simulated;

    for (size_t i = from; i < to; i++) {
        weft_tensor *tensor = tensors[i];
        weft_tensor_local *out = &locals[i];

        if (is_simulated || tensor == NULL || !surely_belongs(tensor, context, usable) ||
            !tensor->is_dense) {
            WF_TRY(lend_any(context, rank, tensor, i, is_written, stream, out));
            continue;
        }
        tensor->stream = stream;
        out->spec = tensor->spec;
        out->shard = &tensor->own.shard;
        out->strides = tensor->own.strides;
        out->memory = tensor->held;
        out->is_written = is_written;
    }
    return WEFT_OK;
}

WF_HOT weft_status weft_tensors_lend(weft_context *context, int32_t rank, size_t count,
                                     weft_tensor *const *tensors, size_t written,
                                     weft_stream *stream, weft_tensor_local *locals,
                                     size_t local_size)
{
    static const char what[] = "weft_tensors_lend";

    WF_TRY(wf_context_check(context, what));
    WF_TRY(wf_stream_check(context, stream, what));
    if (count == 0) return WEFT_OK;
    if (tensors == NULL || locals == NULL || local_size != sizeof *locals ||
        (context->is_simulated ? rank < 0 || rank >= context->size : rank != context->rank))
        return refuse_lending(context, rank, tensors, locals, local_size);
    if (written > count) written = count;
    WF_TRY(lend(context, rank, 0, written, tensors, false, stream, locals));
    return lend(context, rank, written, count, tensors, true, stream, locals);
}

/* ---- tensors with gaps ---- */

/* Set *OUT to the shard of RANK. */
static weft_status find_local(weft_tensor *tensor, int32_t rank, weft_stream *stream,
                              const char *function, struct wf_local **out)
{
    weft_tensor_local_info info = {.struct_size = sizeof info};

    WF_TRY(wf_tensor_check(tensor, function, "tensor"));
    WF_TRY(wf_stream_check(tensor->context, stream, function));
    if (rank != tensor->own.rank || tensor->list != NULL)
        WF_TRY(wf_fail_named(weft_tensor_local_of(tensor, rank, &info), function));
    *out = wf_local_of(tensor, rank);
    return WEFT_OK;
}

weft_status weft_tensor_pack(weft_tensor *tensor, int32_t rank, weft_stream *stream, void **out)
{
    static const char what[] = "weft_tensor_pack";
    struct wf_local *local = NULL;
    void *packed = NULL;

    WF_TRY(find_local(tensor, rank, stream, what, &local));
    if (out == NULL) return wf_fail_null(what, "out");
    WF_TRY(wf_tensor_fail(tensor, wf_local_pack(tensor, local, stream, &packed), what));
    wf_tensor_use(tensor, stream);
    *out = packed;
    return WEFT_OK;
}

static weft_status unpack(weft_tensor *tensor, struct wf_local *local, weft_stream *stream)
{
    void *packed = NULL;

    if (local->is_dense || local->shard.elements == 0) return WEFT_OK;
    if (local->dense.memory == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "the shard of rank %d has gaps and was not packed; call weft_tensor_pack",
                       local->rank);
    WF_TRY(wf_local_begin(tensor, local, stream, &packed));
    WF_TRY(wf_local_unpack(tensor, local, stream));
    wf_tensor_use(tensor, stream);
    return WEFT_OK;
}

weft_status weft_tensor_unpack(weft_tensor *tensor, int32_t rank, weft_stream *stream)
{
    static const char what[] = "weft_tensor_unpack";
    struct wf_local *local = NULL;

    WF_TRY(find_local(tensor, rank, stream, what, &local));
    WF_TRY(wf_tensor_check_writable(tensor, what));
    return wf_tensor_fail(tensor, unpack(tensor, local, stream), what);
}
