/* kernels.c - kernels of a context, and its moves, for other libraries. */
#include "exec/context/kept.h"
#include "exec/host/host.h"
#include "plan/plan.h"

#include "weft/extend.h"

bool weft_context_checks(const weft_context *context)
{
    return context != NULL && context->config->check;
}

weft_status weft_moves_enter(weft_context *context, const char *function)
{
    WF_TRY(wf_require(function, "weft_moves_enter: function"));
    return wf_applying_enter(context, function);
}

weft_status weft_moves_leave(weft_context *context, weft_status status)
{
    WF_TRY(wf_context_check(context, "weft_moves_leave"));
    if (!wf_applying_leave(context))
        return wf_fail(WEFT_ERR_INVALID, "weft_moves_leave: weft_moves_enter was not called");
    return status;
}

const weft_kernel_table *weft_context_kernels(weft_context *context, void **device)
{
    if (context == NULL || device == NULL) return NULL;
    *device = wf_kernels_device(context);
    return wf_kernels_of(context);
}

weft_status weft_memory_cast(weft_context *context, enum weft_dtype from, enum weft_dtype to,
                             uint64_t count, const void *source, void *target, weft_stream *stream)
{
    static const char what[] = "weft_memory_cast";
    weft_status status;

    WF_TRY(wf_context_check(context, what));
    if (count > 0 && (source == NULL || target == NULL))
        return wf_fail_null(what, source == NULL ? "source" : "target");
    WF_TRY(wf_stream_check(context, stream, what));
    if (from == to)
        return weft_memory_copy(context, source, target, count * wf_dtype_bytes(from), stream);
    if (wf_cast_kind(from, to) == WF_CAST_REFUSED)
        return wf_fail_named(wf_cast_refuse(from, to), what);
    status = wf_kernels_of(context)->cast(wf_kernels_device(context), from, to, count, source,
                                          target, stream);
    if (status != WEFT_ERR_UNSUPPORTED) return wf_fail_named(status, what);
    wf_host_log_casts(context);
    return wf_fail_named(wf_host_cast(context, from, to, count, source, target, stream), what);
}
