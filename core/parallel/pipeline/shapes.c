/* shapes.c - what stages pass on: given, or learned from stage to stage. */
#include "pipeline.h"

#include "base/number.h"

#include <stdio.h>
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

static weft_status check_tensor(int32_t stage, uint32_t index, const weft_pipeline_tensor *t,
                                int64_t *bytes)
{
    bool valid = true, fits = true;
    struct wf_text text = {0};
    weft_status status;

    if (t->dtype >= WEFT_DTYPE_COUNT)
        return wf_fail(WEFT_ERR_INVALID,
                       "output %u of stage %d has dtype %u; expected a value of enum weft_dtype",
                       index, stage, t->dtype);
    if (t->dims < 0 || t->dims > WEFT_MAX_DIMS)
        return wf_fail(WEFT_ERR_INVALID,
                       "output %u of stage %d has %d dimensions; expected 0 to %d", index, stage,
                       t->dims, WEFT_MAX_DIMS);
    *bytes = (int64_t)wf_dtype_bytes(t->dtype);
    for (int32_t i = 0; valid && i < t->dims; i++)
        valid = t->shape[i] >= 0;
    for (int32_t i = 0; valid && fits && i < t->dims; i++)
        fits = wf_mul_i64(*bytes, t->shape[i], bytes) && *bytes <= INT64_MAX / 64;
    if (valid && fits) return WEFT_OK;
    wf_pipeline_tensor_print(&text, t);
    status =
        wf_fail(WEFT_ERR_INVALID, "output %u of stage %d is %s, which %s", index, stage,
                text.failed ? "wrong" : text.data, valid ? "is too large" : "has a negative size");
    wf_text_free(&text);
    return status;
}

/* Copy GIVEN without memory and without what is not used, so that equal values have equal bytes. */
static weft_status take_values(int32_t stage, const weft_pipeline_values *given,
                               struct wf_boundary *out)
{
    int64_t bytes[WEFT_PIPELINE_TENSORS];
    uint64_t at = 0;

    memset(out, 0, sizeof *out);
    if (given->count > WEFT_PIPELINE_TENSORS)
        return wf_fail(WEFT_ERR_INVALID, "stage %d passes on %u tensors; at most %d are possible",
                       stage, given->count, WEFT_PIPELINE_TENSORS);
    out->values.count = given->count;
    for (uint32_t i = 0; i < given->count; i++) {
        const weft_pipeline_tensor *from = &given->tensors[i];
        weft_pipeline_tensor *to = &out->values.tensors[i];

        WF_TRY(check_tensor(stage, i, from, &bytes[i]));
        to->dtype = from->dtype;
        to->dims = from->dims;
        memcpy(to->shape, from->shape, (size_t)from->dims * sizeof *from->shape);
        to->without_gradient = from->without_gradient || (!wf_dtype_is_float(from->dtype) &&
                                                          !wf_dtype_is_complex(from->dtype));
    }
    for (int pass = 0; pass < 2; pass++) { /* those with a gradient first */
        for (uint32_t i = 0; i < given->count; i++) {
            if (out->values.tensors[i].without_gradient != (pass == 1)) continue;
            out->offsets[i] = at;
            at += ((uint64_t)bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        if (pass == 0) out->grad_bytes = at > 0 ? at : 1;
    }
    out->bytes = at > 0 ? at : 1;
    return WEFT_OK;
}

static bool is_like(const struct wf_boundary *a, const struct wf_boundary *b)
{
    bool same = a->values.count == b->values.count;

    for (uint32_t i = 0; same && i < a->values.count; i++) {
        const weft_pipeline_tensor *one = &a->values.tensors[i], *other = &b->values.tensors[i];

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

/* Stage STAGE tells all ranks what it passes on. */
static weft_status learn(weft_pipeline *pipeline, int32_t stage)
{
    struct wf_boundary *boundary = &pipeline->boundaries[stage];
    int32_t owner = weft_schedule_rank_of(pipeline->schedule, stage);
    bool is_mine = owner == pipeline->comm->rank;
    weft_status status = is_mine ? ask(pipeline, stage) : WEFT_OK;
    weft_pipeline_values values;
    struct wf_gathered got;
    char step[48];

    snprintf(step, sizeof step, "shapes of stage %d", stage);
    WF_TRY(wf_pipeline_agree(
        pipeline, step, status,
        (weft_blob){is_mine ? (const void *)&boundary->values : "", is_mine ? sizeof values : 0},
        &got));
    if (got.blobs[owner].bytes == sizeof values) {
        memcpy(&values, got.blobs[owner].data, sizeof values);
        status = take_values(stage, &values, boundary);
    } else {
        status = wf_fail(WEFT_ERR_MISMATCH, "rank %d stated no shapes", owner);
    }
    wf_gathered_free(&got);
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
