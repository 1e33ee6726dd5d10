/* run.c - one pass of an attention. */
#include "cp.h"

#include "base/range.h"

#include <stdio.h>
#include <string.h>

struct argument {
    const char *name;
    const void *memory;
    uint64_t bytes, element; /* bytes of all, and of an element */
    bool is_backward, is_written;
};

enum { ARGUMENTS = 9 };

static void list_arguments(const weft_cp *cp, const weft_cp_tensors *t, bool backward,
                           struct argument *out)
{
    const weft_cp_sizes *s = &cp->sizes;
    uint64_t held = (uint64_t)cp->held[cp->coordinate],
             rows = (uint64_t)(s->batch * s->heads) * held,
             q = rows * (uint64_t)s->depth * cp->element,
             k = (uint64_t)(s->batch * s->key_heads * s->depth) * held * cp->element,
             e = cp->element;
    const struct argument all[ARGUMENTS] = {
        {"q", t->q, q, e, false, false},
        {"k", t->k, k, e, false, false},
        {"v", t->v, k, e, false, false},
        {"out", t->out, q, e, false, !backward},
        {"lse", t->lse, rows * sizeof(float), sizeof(float), false, !backward},
        {"d_out", t->d_out, q, e, true, false},
        {"d_q", t->d_q, q, e, true, true},
        {"d_k", t->d_k, k, e, true, true},
        {"d_v", t->d_v, k, e, true, true},
    };

    memcpy(out, all, sizeof all);
}

/* What a pass writes overlaps nothing else. */
static weft_status check_overlap(const struct argument *all, size_t count, const char *function)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && all[i].is_written; j++)
            if (i != j &&
                wf_ranges_overlap(all[i].memory, all[i].bytes, all[j].memory, all[j].bytes))
                return wf_fail(WEFT_ERR_INVALID,
                               "%s: weft_cp_tensors.%s, which is written (%llu bytes at %p), and "
                               "weft_cp_tensors.%s (%llu bytes at %p) overlap",
                               function, all[i].name, (unsigned long long)all[i].bytes,
                               all[i].memory, all[j].name, (unsigned long long)all[j].bytes,
                               all[j].memory);
    return WEFT_OK;
}

static weft_status check_memory(const weft_cp *cp, const weft_cp_tensors *t, bool backward,
                                const char *function)
{
    struct argument all[ARGUMENTS];
    size_t count = 0;

    list_arguments(cp, t, backward, all);
    while (count < ARGUMENTS && (backward || !all[count].is_backward))
        count++;
    for (size_t i = 0; i < count; i++) {
        if (all[i].bytes == 0) continue;
        if (all[i].memory == NULL)
            return wf_fail(WEFT_ERR_INVALID, "%s: weft_cp_tensors.%s is NULL", function,
                           all[i].name);
        if ((uintptr_t)all[i].memory % all[i].element != 0)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s: weft_cp_tensors.%s at %p is not aligned to its elements of %llu "
                           "bytes",
                           function, all[i].name, all[i].memory,
                           (unsigned long long)all[i].element);
    }
    return check_overlap(all, count, function);
}

static void end_work(const weft_cp *cp, weft_stream *stream, const char *what)
{
    if (weft_stream_wait(cp->context, stream, WEFT_FOREVER) != WEFT_OK)
        wf_log(WF_LOG_DEBUG, "%s ended: %s", what, weft_last_error());
}

/* The communicator has failed, and the work on both streams ends.  Then nothing uses the caller's
 * memory, and the error of the call is the last one. */
static void end_pass(const struct wf_cp_pass *pass, weft_status status)
{
    char text[1024];

    snprintf(text, sizeof text, "%s", weft_last_error());
    end_work(pass->cp, pass->cp->side, "rotations");
    end_work(pass->cp, pass->stream, "the pass");
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
    end_pass(&pass, status);
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
