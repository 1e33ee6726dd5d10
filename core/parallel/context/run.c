/* run.c - one pass of an attention. */
#include "cp.h"

#include <stdio.h>

struct argument {
    const char *name;
    const void *memory;
    bool is_backward;
};

static weft_status check_memory(const weft_cp *cp, const weft_cp_tensors *t, bool backward,
                                const char *function)
{
    const struct argument arguments[] = {
        {"q", t->q, false},     {"k", t->k, false},     {"v", t->v, false},
        {"out", t->out, false}, {"lse", t->lse, false}, {"d_out", t->d_out, true},
        {"d_q", t->d_q, true},  {"d_k", t->d_k, true},  {"d_v", t->d_v, true},
    };

    for (size_t i = 0; i < WF_COUNT(arguments) && cp->held[cp->coordinate] > 0; i++)
        if (arguments[i].memory == NULL && (backward || !arguments[i].is_backward))
            return wf_fail(WEFT_ERR_INVALID, "%s: weft_cp_tensors.%s is NULL", function,
                           arguments[i].name);
    return WEFT_OK;
}

/* The communicator has failed, and the rotations with it.  They no longer use the caller's memory,
 * and the error of the call is the last one. */
static void end_rotations(weft_cp *cp, weft_status status)
{
    char text[1024];

    snprintf(text, sizeof text, "%s", weft_last_error());
    if (weft_stream_wait(cp->context, cp->side, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "rotations ended: %s", weft_last_error());
    (void)wf_fail(status, "%s", text);
}

static weft_status run(weft_cp *cp, const weft_cp_tensors *tensors,
                       weft_status (*kernel)(void *user, const weft_cp_call *call), void *user,
                       weft_stream *stream, bool backward)
{
    const char *function = backward ? "weft_cp_backward" : "weft_cp_forward";
    struct wf_cp_pass pass = {cp, {0}, kernel, user, stream, backward};
    weft_status status;

    WF_TRY(wf_cp_check(cp, function));
    if (tensors == NULL) return wf_fail_null(function, "tensors");
    if (kernel == NULL) return wf_fail_null(function, "kernel");
    WF_TRY(wf_fail_named(wf_options_read("weft_cp_tensors", tensors, &pass.t, sizeof pass.t),
                         function));
    WF_TRY(wf_stream_check(cp->context, stream, function));
    WF_TRY(check_memory(cp, &pass.t, backward, function));
    WF_TRY(wf_fail_named(wf_comm_cause(cp->comm), function));
    status = wf_cp_use(cp, stream);
    if (status == WEFT_OK) status = wf_cp_sync(cp, stream);
    if (status == WEFT_OK) status = cp->way->run(&pass);
    if (status == WEFT_OK) return WEFT_OK;
    status = wf_comm_give_up(cp->comm, status, function);
    end_rotations(cp, status);
    return status;
}

weft_status weft_cp_forward(weft_cp *cp, const weft_cp_tensors *tensors,
                            weft_status (*kernel)(void *user, const weft_cp_call *call), void *user,
                            weft_stream *stream)
{
    return run(cp, tensors, kernel, user, stream, false);
}

weft_status weft_cp_backward(weft_cp *cp, const weft_cp_tensors *tensors,
                             weft_status (*kernel)(void *user, const weft_cp_call *call),
                             void *user, weft_stream *stream)
{
    return run(cp, tensors, kernel, user, stream, true);
}
