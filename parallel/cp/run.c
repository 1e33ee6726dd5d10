/* run.c - one pass of an attention. */
#include "cp.h"

#include "base/range.h"

#include <stdio.h>
#include <string.h>

/* A tensor of a pass, and where its shard goes. */
struct argument {
    const char *name;
    weft_tensor *tensor;
    weft_cp_local *local;
    int64_t heads;
    bool is_lse, is_backward, is_written;
    uint64_t bytes; /* that are compared with those of other shards */
};

enum { ARGUMENTS = 9 };

static void list_arguments(const weft_cp *cp, const weft_cp_tensors *t, struct wf_cp_shards *s,
                           bool backward, struct argument *out)
{
    int64_t heads = cp->sizes.heads, keys = cp->sizes.key_heads;
    const struct argument all[ARGUMENTS] = {
        {"q", t->q, &s->q, heads, false, false, false, 0},
        {"k", t->k, &s->k, keys, false, false, false, 0},
        {"v", t->v, &s->v, keys, false, false, false, 0},
        {"out", t->out, &s->out, heads, false, false, !backward, 0},
        {"lse", t->lse, &s->lse, heads, true, false, !backward, 0},
        {"d_out", t->d_out, &s->d_out, heads, false, true, false, 0},
        {"d_q", t->d_q, &s->d_q, heads, false, true, true, 0},
        {"d_k", t->d_k, &s->d_k, keys, false, true, true, 0},
        {"d_v", t->d_v, &s->d_v, keys, false, true, true, 0},
    };

    memcpy(out, all, sizeof all);
}

/* What a pass writes overlaps nothing else. */
static weft_status check_overlap(const struct argument *all, size_t count, const char *function)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count && all[i].is_written; j++)
            if (i != j && wf_ranges_overlap(all[i].local->memory, all[i].bytes,
                                            all[j].local->memory, all[j].bytes))
                return wf_fail(WEFT_ERR_INVALID,
                               "%s: weft_cp_tensors.%s, which is written (%llu bytes at %p), and "
                               "weft_cp_tensors.%s (%llu bytes at %p) overlap",
                               function, all[i].name, (unsigned long long)all[i].bytes,
                               all[i].local->memory, all[j].name, (unsigned long long)all[j].bytes,
                               all[j].local->memory);
    return WEFT_OK;
}

static weft_status refuse_shape(const char *name, const struct wf_held *held, int32_t dims,
                                const int64_t *shape, enum weft_dtype dtype, const char *function)
{
    char got[128] = "", want[128] = "";

    for (int32_t d = 0; d < held->dims; d++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%lld", d == 0 ? "" : ",",
                 (long long)held->shape[d]);
    for (int32_t d = 0; d < dims; d++)
        snprintf(want + strlen(want), sizeof want - strlen(want), "%s%lld", d == 0 ? "" : ",",
                 (long long)shape[d]);
    return wf_fail(WEFT_ERR_INVALID,
                   "%s: the shard of weft_cp_tensors.%s is %s[%s]; it must be %s[%s]", function,
                   name, weft_dtype_name(held->dtype), got, weft_dtype_name(dtype), want);
}

/* Check the shard of A and set *A->local to it. */
static weft_status take_shard(const weft_cp *cp, struct argument *a, const char *function)
{
    const struct wf_cp_sizes *s = &cp->sizes;
    bool is_second = a->is_lse || s->sequence_dim == 2;
    int64_t length = cp->held[cp->coordinate], depth = a->is_lse ? 1 : s->depth;
    int64_t shape[4] = {s->batch, is_second ? a->heads : length, is_second ? length : a->heads,
                        depth};
    int32_t dims = a->is_lse ? 3 : 4;
    enum weft_dtype dtype = a->is_lse ? WEFT_DTYPE_F32 : (enum weft_dtype)s->dtype;
    weft_cp_local dense = wf_cp_dense(is_second ? 2 : 1, a->heads, length, depth, NULL);
    char name[32];
    struct wf_held held;

    snprintf(name, sizeof name, "weft_cp_tensors.%s", a->name);
    WF_TRY(wf_held_of(cp->context, a->tensor, a->is_written, function, name, &held));
    if (held.dtype != dtype || held.dims != dims ||
        memcmp(held.shape, shape, (size_t)dims * sizeof *shape) != 0)
        return refuse_shape(a->name, &held, dims, shape, dtype, function);
    if (a->is_lse) WF_TRY(wf_held_require_dense(&held, function, name));
    if (!a->is_lse && depth > 1 && held.strides[3] != 1)
        return wf_fail(WEFT_ERR_INVALID, "%s: the depth of %s has stride %lld; it must be 1",
                       function, name, (long long)held.strides[3]);
    *a->local = (weft_cp_local){held.memory, s->batch > 1 ? held.strides[0] : dense.batch,
                                a->heads > 1 ? held.strides[is_second ? 1 : 2] : dense.head,
                                length > 1 ? held.strides[is_second ? 2 : 1] : dense.sequence};
    a->bytes = held.is_dense ? wf_held_span(&held)
                             : (held.elements > 0 ? (uint64_t)depth * wf_dtype_bytes(dtype) : 0);
    return WEFT_OK;
}

static weft_status take_shards(const weft_cp *cp, const weft_cp_tensors *t, struct wf_cp_shards *s,
                               bool backward, const char *function)
{
    struct argument all[ARGUMENTS];
    size_t count = 0;

    list_arguments(cp, t, s, backward, all);
    while (count < ARGUMENTS && (backward || !all[count].is_backward))
        count++;
    for (size_t i = 0; i < count; i++)
        WF_TRY(take_shard(cp, &all[i], function));
    return check_overlap(all, count, function);
}

static void end_work(const weft_cp *cp, weft_stream *stream, const char *what)
{
    if (weft_context_wait(cp->context, stream, WEFT_FOREVER) != WEFT_OK)
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
    struct wf_cp_pass pass = {
        .cp = cp, .kernel = kernel, .user = user, .stream = stream, .backward = backward};
    weft_cp_tensors t = {0};
    weft_status status;

    WF_TRY(wf_cp_check(cp, function));
    if (tensors == NULL) return wf_fail_null(function, "tensors");
    if (kernel == NULL) return wf_fail_null(function, "kernel");
    WF_TRY(wf_fail_named(wf_options_read("weft_cp_tensors", tensors, &t, sizeof t), function));
    WF_TRY(weft_stream_check(cp->context, stream, function));
    WF_TRY(take_shards(cp, &t, &pass.t, backward, function));
    WF_TRY(wf_fail_named(weft_comm_async_error(cp->comm), function));
    status = wf_cp_use(cp, stream);
    if (status == WEFT_OK) status = wf_cp_sync(cp, stream);
    if (status == WEFT_OK) status = cp->way->run(&pass);
    if (status == WEFT_OK) return WEFT_OK;
    status = weft_comm_fail(cp->comm, function, status);
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
