/* device.c - the work on elements, by kernels of the device.
 *
 * Pieces are spans of a list that the device has prepared; a job with spans of the same sizes uses
 * the list again. */
#include "clip.h"

#include "base/number.h"

#include <math.h>

static bool has_spans(const weft_kernel_table *kernels)
{
    return kernels != NULL && kernels->spans_create != NULL && kernels->spans_destroy != NULL &&
           kernels->spans_powers != NULL && kernels->spans_limit != NULL &&
           kernels->spans_clamp != NULL;
}

weft_status wf_clip_ask_device(weft_context *context, bool *out)
{
    const weft_kernel_table *kernels = weft_context_plugin(context)->kernel;
    weft_span spans[WEFT_DTYPE_COUNT];
    uint64_t count = 0;
    weft_status status;
    void *list = NULL;

    *out = false;
    if (!has_spans(kernels)) return WEFT_OK;
    for (uint32_t dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++)
        if (wf_dtype_is_float(dtype)) spans[count++] = (weft_span){.count = 1, .dtype = dtype};
    status = kernels->spans_create(weft_context_device(context), count, spans, 1, &list);
    if (status == WEFT_ERR_UNSUPPORTED) return WEFT_OK;
    WF_TRY(status);
    kernels->spans_destroy(list);
    *out = true;
    return WEFT_OK;
}

/* The pieces of a job that are read, or that are written. */
struct chosen {
    weft_span *spans;
    void **memory;
    uint64_t count;
    uint32_t sums;
    void *list;
};

static void drop(struct chosen *chosen)
{
    wf_free(chosen->spans);
    wf_free(chosen->memory);
}

/* The caller drops *OUT, whatever is returned. */
static weft_status choose(const struct wf_clip_job *job, bool is_written, struct chosen *out)
{
    *out = (struct chosen){.spans = wf_calloc((size_t)job->count + 1, sizeof *out->spans),
                           .memory = wf_calloc((size_t)job->count + 1, sizeof *out->memory),
                           .sums = job->sum_count};
    if (out->spans == NULL || out->memory == NULL)
        return wf_fail_memory((size_t)job->count * sizeof *out->spans);
    for (uint32_t i = 0; i < job->count; i++) {
        const struct wf_clip_piece *piece = &job->pieces[i];

        if (!(is_written ? piece->is_written : piece->is_read)) continue;
        out->memory[out->count] = piece->memory;
        out->spans[out->count++] =
            (weft_span){.count = piece->count, .dtype = piece->dtype, .sum = piece->sum};
        if (piece->sum >= out->sums) out->sums = piece->sum + 1;
    }
    return wf_clip_list(job->state, out->count, out->spans, out->sums, &out->list);
}

weft_status wf_clip_device_sums(const struct wf_clip_job *job, weft_stream *stream)
{
    struct chosen read;
    weft_status status = choose(job, false, &read);

    if (status == WEFT_OK)
        status = job->kernels->spans_powers(read.list, read.memory, job->p, job->sums, stream);
    drop(&read);
    return status;
}

weft_status wf_clip_device_total(const struct wf_clip_job *job, weft_stream *stream)
{
    uint32_t count = job->reduced_count;
    double *total = job->sums + job->sum_count;
    const void **sums;
    weft_status status;

    if (count == 0) return job->table->fill(job->device, total, 0, sizeof *total, stream);
    sums = wf_calloc(count, sizeof(*sums));
    if (sums == NULL) return wf_fail_memory(count * sizeof(*sums));
    for (uint32_t i = 0; i < count; i++)
        sums[i] = &job->sums[i];
    status = job->kernels->reduce(job->device, WEFT_DTYPE_F64,
                                  isinf(job->p) ? WEFT_REDUCE_MAX : WEFT_REDUCE_SUM, 1, count, sums,
                                  total, stream);
    wf_free(sums);
    return status;
}

static weft_status limit(const struct wf_clip_job *job, const struct chosen *written,
                         weft_stream *stream)
{
    const weft_norm_limit how = {
        .struct_size = sizeof how, .nonfinite = job->nonfinite, .p = job->p, .most = job->most};

    return job->kernels->spans_limit(written->list, written->memory, &how,
                                     job->sums + job->sum_count, job->norm, stream);
}

weft_status wf_clip_device_change(const struct wf_clip_job *job, weft_stream *stream)
{
    struct chosen written;
    weft_status status = choose(job, true, &written);

    if (status == WEFT_OK)
        status = job->by_value
                     ? job->kernels->spans_clamp(written.list, written.memory, job->most, stream)
                     : limit(job, &written, stream);
    drop(&written);
    return status;
}
