/* shapes.c - what stages pass on: given, or learned from stage to stage. */
#include "pipeline.h"

#include "base/number.h"

#include <string.h>

#define ALIGNMENT 256u /* of each tensor in the memory of a slot, bytes */

bool wf_pipeline_tensor_fits(const weft_pipeline_tensor *have, const weft_pipeline_tensor *want)
{
    bool same = have->dtype == want->dtype && have->dims == want->dims;

    for (int32_t i = 0; same && i < want->dims; i++)
        same = have->shape[i] == want->shape[i];
    return same;
}

void wf_pipeline_tensor_print(struct wf_text *out, const weft_pipeline_tensor *tensor)
{
    const char *name = wf_dtype_name(tensor->dtype);

    if (name == NULL || tensor->dims < 0 || tensor->dims > WEFT_MAX_DIMS) {
        wf_text_add(out, "dtype %u with %d dimensions", tensor->dtype, tensor->dims);
        return;
    }
    wf_text_add(out, "%s[", name);
    for (int32_t i = 0; i < tensor->dims; i++)
        wf_text_add(out, "%s%lld", i > 0 ? "," : "", (long long)tensor->shape[i]);
    wf_text_add(out, "]");
}

/* ---- one boundary ---- */

static weft_status check_tensor(int32_t stage, size_t index, const weft_pipeline_tensor *t,
                                int64_t *bytes)
{
    bool valid = true, fits = true;
    struct wf_text text = {0};
    weft_status status;

    if (t->dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_INVALID,
                       "output %zu of stage %d has dtype %u; expected a value of enum weft_dtype",
                       index, stage, t->dtype);
    if (t->dims < 0 || t->dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID,
                       "output %zu of stage %d has %d dimensions; expected 0 to %d", index, stage,
                       t->dims, WEFT_MAX_DIMS);
    *bytes = (int64_t)wf_dtype_bytes(t->dtype);
    for (int32_t i = 0; valid && i < t->dims; i++)
        valid = t->shape[i] >= 0;
    for (int32_t i = 0; valid && fits && i < t->dims; i++)
        fits = wf_mul_i64(*bytes, t->shape[i], bytes) && *bytes <= INT64_MAX / 64;
    if (valid && fits) return WEFT_OK;
    wf_pipeline_tensor_print(&text, t);
    status =
        wf_fail(WEFT_ERR_INVALID, "output %zu of stage %d is %s, which %s", index, stage,
                text.failed ? "wrong" : text.data, valid ? "is too large" : "has a negative size");
    wf_text_free(&text);
    return status;
}

static void clear_boundary(struct wf_boundary *boundary)
{
    wf_free(boundary->tensors);
    wf_free(boundary->offsets);
    memset(boundary, 0, sizeof *boundary);
}

void wf_boundaries_free(weft_pipeline *pipeline)
{
    for (int32_t s = 0; pipeline->boundaries != NULL && s < pipeline->stages; s++)
        clear_boundary(&pipeline->boundaries[s]);
    wf_free(pipeline->boundaries);
}

/* Set the offsets of OUT, which has the sizes of its tensors there: those with a gradient come
 * first. */
static void place(struct wf_boundary *out)
{
    uint64_t at = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < out->values.count; i++) {
            uint64_t bytes = out->offsets[i];

            if (out->tensors[i].without_gradient != (pass == 1)) continue;
            out->offsets[i] = at;
            at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        if (pass == 0) out->grad_bytes = at > 0 ? at : 1;
    }
    out->bytes = at > 0 ? at : 1;
}

/* Copy COUNT tensors without memory and without what is not used, so that equal values have equal
 * bytes. */
static weft_status take_tensors(int32_t stage, size_t count, const weft_pipeline_tensor *tensors,
                                struct wf_boundary *out)
{
    uint64_t all = 0;

    clear_boundary(out);
    out->tensors = wf_calloc(count + 1, sizeof *out->tensors);
    out->offsets = wf_calloc(count + 1, sizeof *out->offsets);
    if (out->tensors == NULL || out->offsets == NULL)
        return wf_fail_memory((count + 1) * sizeof *out->tensors);
    out->values =
        (weft_pipeline_values){count, count > 0 ? out->tensors : NULL, sizeof *out->tensors};
    for (size_t i = 0; i < count; i++) {
        const weft_pipeline_tensor *from = &tensors[i];
        weft_pipeline_tensor *to = &out->tensors[i];
        int64_t bytes = 0;

        WF_TRY(check_tensor(stage, i, from, &bytes));
        to->dtype = from->dtype;
        to->dims = from->dims;
        memcpy(to->shape, from->shape, (size_t)from->dims * sizeof *from->shape);
        to->without_gradient = from->without_gradient || (!wf_dtype_is_float(from->dtype) &&
                                                          !wf_dtype_is_complex(from->dtype));
        out->offsets[i] = (uint64_t)bytes;
        all += (uint64_t)bytes + ALIGNMENT;
        if (all > INT64_MAX / 2)
            return wf_fail(WEFT_ERR_INVALID, "the outputs of stage %d have 2^62 bytes or more",
                           stage);
    }
    place(out);
    return WEFT_OK;
}

static weft_status take_values(int32_t stage, const weft_pipeline_values *given,
                               struct wf_boundary *out)
{
    void *copy = NULL;
    weft_status status;

    if (given->count > 0 && given->tensors == NULL)
        return wf_fail(WEFT_ERR_INVALID, "stage %d passes on %zu tensors, and `tensors` is NULL",
                       stage, given->count);
    if (given->count > 0)
        WF_TRY(wf_items_read("weft_pipeline_tensor", given->count, given->tensors,
                             given->tensor_size, sizeof *given->tensors, &copy));
    status = take_tensors(stage, given->count, copy != NULL ? copy : given->tensors, out);
    wf_free(copy);
    return status;
}

static bool is_like(const struct wf_boundary *a, const struct wf_boundary *b)
{
    bool same = a->values.count == b->values.count;

    for (size_t i = 0; same && i < a->values.count; i++) {
        const weft_pipeline_tensor *one = &a->tensors[i], *other = &b->tensors[i];

        same =
            wf_pipeline_tensor_fits(one, other) && one->without_gradient == other->without_gradient;
    }
    return same;
}

/* ---- all of them ---- */

/* The shapes that stage STAGE of this rank states. */
static weft_status ask(weft_pipeline *pipeline, int32_t stage)
{
    static const weft_pipeline_values none;
    const weft_pipeline_options *o = &pipeline->options;
    weft_pipeline_values in = stage > 0 ? pipeline->boundaries[stage - 1].values : none, out;
    uint64_t failures = wf_failure_count();
    weft_status status;

    memset(&out, 0, sizeof out);
    status = o->shapes(o->user, stage, &in, &out);
    if (status != WEFT_OK)
        return wf_fail_context(wf_fail_callback(status, failures, "the callback"),
                               "the shapes of stage %d", stage);
    return take_values(stage, &out, &pipeline->boundaries[stage]);
}

/* Take the tensors that rank OWNER has sent. */
static weft_status take_stated(int32_t stage, int32_t owner, const weft_answers *got,
                               struct wf_boundary *out)
{
    size_t bytes = weft_answers_bytes(got, owner);
    weft_pipeline_tensor *tensors; /* an answer need not be aligned */
    weft_status status;

    if (bytes % sizeof *tensors != 0)
        return wf_fail(WEFT_ERR_MISMATCH, "rank %d stated no shapes", owner);
    tensors = wf_alloc(bytes + 1);
    if (tensors == NULL) return wf_fail_memory(bytes + 1);
    if (bytes > 0) memcpy(tensors, weft_answers_data(got, owner), bytes);
    status = take_tensors(stage, bytes / sizeof *tensors, tensors, out);
    wf_free(tensors);
    return status;
}

/* Stage STAGE tells all ranks what it passes on. */
static weft_status learn(weft_pipeline *pipeline, int32_t stage)
{
    struct wf_boundary *boundary = &pipeline->boundaries[stage];
    int32_t owner = weft_schedule_rank_of(pipeline->schedule, stage);
    bool is_mine = owner == pipeline->rank;
    weft_status status = is_mine ? ask(pipeline, stage) : WEFT_OK;
    weft_answers *got = NULL;

    WF_TRY(weft_agree(pipeline->comm, "weft_pipeline_create", status, boundary->tensors,
                      boundary->values.count * sizeof *boundary->tensors, NULL, &got));
    if (!is_mine) status = take_stated(stage, owner, got, boundary);
    weft_answers_release(&got);
    return status;
}

weft_status wf_pipeline_shapes(weft_pipeline *pipeline)
{
    const weft_pipeline_options *o = &pipeline->options;

    for (int32_t s = 0; s + 1 < pipeline->stages; s++) {
        int32_t like = 0;

        if (o->values != NULL)
            WF_TRY(take_values(s, &o->values[s], &pipeline->boundaries[s]));
        else
            WF_TRY(learn(pipeline, s));
        while (!is_like(&pipeline->boundaries[like], &pipeline->boundaries[s]))
            like++;
        pipeline->boundaries[s].like = like;
    }
    return WEFT_OK;
}
