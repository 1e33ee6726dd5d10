/* job.c - the work on elements, in stream order.
 *
 * The host does it for backends without kernels for it.  If it cannot use the device's memory,
 * pieces are copied to memory that it can use and back, one after the other. */
#include "clip.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 1024, LANES = 8 }; /* elements that are cast at a time; sums that do not wait */

/* ---- sums ---- */

static double power_of(double value, double p)
{
    double size = fabs(value);

    if (p == 2) return size * size;
    return p == 1 ? size : pow(size, p);
}

/* A and B combined. */
static double combine(double a, double b, double p)
{
    if (!isinf(p)) return a + b;
    return a > b ? a : b;
}

static double size_of(double value)
{
    return isnan(value) ? (double)INFINITY : fabs(value);
}

#define SUM_OF(name, type)                                                                         \
    static double name(const type *elements, uint64_t count, double p)                             \
    {                                                                                              \
        double lanes[LANES] = {0}, sum = 0;                                                        \
        uint64_t i = 0;                                                                            \
                                                                                                   \
        if (p == 2)                                                                                \
            for (; i + LANES <= count; i += LANES)                                                 \
                for (int lane = 0; lane < LANES; lane++)                                           \
                    lanes[lane] += (double)elements[i + (uint64_t)lane] *                          \
                                   (double)elements[i + (uint64_t)lane];                           \
        for (int lane = 0; lane < LANES; lane++)                                                   \
            sum += lanes[lane];                                                                    \
        for (; i < count; i++)                                                                     \
            sum = isinf(p) ? combine(sum, size_of((double)elements[i]), p)                         \
                           : sum + power_of((double)elements[i], p);                               \
        return sum;                                                                                \
    }

SUM_OF(sum_f32, float)
SUM_OF(sum_f64, double)

/* The sum of powers of PIECE, whose elements are at MEMORY. */
static double sum_piece(const struct wf_clip_piece *piece, const void *memory)
{
    size_t bytes = wf_dtype_bytes(piece->dtype);
    double p = piece->job->p, sum = 0;
    float block[BLOCK];

    if (piece->dtype == WEFT_DTYPE_F32) return sum_f32(memory, piece->count, p);
    if (piece->dtype == WEFT_DTYPE_F64) return sum_f64(memory, piece->count, p);
    for (uint64_t at = 0; at < piece->count; at += BLOCK) {
        uint64_t some = piece->count - at < BLOCK ? piece->count - at : BLOCK;

        wf_elements_cast(piece->dtype, WEFT_DTYPE_F32, (const char *)memory + at * bytes, block,
                         (size_t)some);
        sum = combine(sum, sum_f32(block, some, p), p);
    }
    return sum;
}

static void add_piece(const struct wf_clip_piece *piece, const void *memory)
{
    double *sum = &piece->job->sums[piece->sum];

    *sum = combine(*sum, sum_piece(piece, memory), piece->job->p);
}

static void clear_sums(void *argument)
{
    const struct wf_clip_job *job = argument;

    for (uint32_t i = 0; i < job->sum_count; i++)
        job->sums[i] = 0;
}

static void sum_all(void *argument)
{
    const struct wf_clip_job *job = argument;

    clear_sums(argument);
    for (uint32_t i = 0; i < job->count; i++)
        if (job->pieces[i].is_read) add_piece(&job->pieces[i], job->pieces[i].memory);
}

static void sum_staged(void *argument)
{
    const struct wf_clip_piece *piece = argument;

    add_piece(piece, piece->job->stage);
}

/* ---- changes ---- */

static double changed(const struct wf_clip_job *job, double value)
{
    if (!job->by_value) return value * job->factor;
    if (value > job->most) return job->most;
    return value < -job->most ? -job->most : value;
}

static void change_f32(const struct wf_clip_job *job, float *elements, uint64_t count)
{
    float factor = (float)job->factor;

    if (!job->by_value)
        for (uint64_t i = 0; i < count; i++)
            elements[i] *= factor;
    else
        for (uint64_t i = 0; i < count; i++)
            elements[i] = (float)changed(job, (double)elements[i]);
}

static void change_piece(const struct wf_clip_piece *piece, void *memory)
{
    const struct wf_clip_job *job = piece->job;
    size_t bytes = wf_dtype_bytes(piece->dtype);
    float block[BLOCK];

    if (!job->by_value && job->factor == 0 && job->nonfinite == WEFT_NONFINITE_ZERO) {
        memset(memory, 0, piece->count * bytes);
        return;
    }
    if (piece->dtype == WEFT_DTYPE_F32) {
        change_f32(job, memory, piece->count);
        return;
    }
    if (piece->dtype == WEFT_DTYPE_F64) {
        for (uint64_t i = 0; i < piece->count; i++)
            ((double *)memory)[i] = changed(job, ((double *)memory)[i]);
        return;
    }
    for (uint64_t at = 0; at < piece->count; at += BLOCK) {
        uint64_t some = piece->count - at < BLOCK ? piece->count - at : BLOCK;
        char *elements = (char *)memory + at * bytes;

        wf_elements_cast(piece->dtype, WEFT_DTYPE_F32, elements, block, (size_t)some);
        change_f32(job, block, some);
        wf_elements_cast(WEFT_DTYPE_F32, piece->dtype, block, elements, (size_t)some);
    }
}

static bool changes(const struct wf_clip_job *job)
{
    return job->by_value || !(job->factor >= 1);
}

static void change_all(void *argument)
{
    const struct wf_clip_job *job = argument;

    for (uint32_t i = 0; changes(job) && i < job->count; i++)
        if (job->pieces[i].is_written) change_piece(&job->pieces[i], job->pieces[i].memory);
}

static void change_staged(void *argument)
{
    const struct wf_clip_piece *piece = argument;

    if (changes(piece->job)) change_piece(piece, piece->job->stage);
}

/* ---- the norm ---- */

static void find_total(void *argument)
{
    const struct wf_clip_job *job = argument;
    double total = 0;

    for (uint32_t i = 0; i < job->reduced_count; i++)
        total = combine(total, job->sums[i], job->p);
    job->sums[job->sum_count] = total;
}

static void find_factor(void *argument)
{
    struct wf_clip_job *job = argument;
    double *norm = job->norm;

    if (job->p == 2)
        *norm = sqrt(*norm);
    else if (!isinf(job->p))
        *norm = pow(*norm, 1 / job->p);
    job->factor = job->most / (*norm + 1e-6);
    if (isfinite(*norm) || job->nonfinite == WEFT_NONFINITE_SCALE) return;
    job->factor = job->nonfinite == WEFT_NONFINITE_ZERO ? 0 : 1;
}

/* ---- posting ---- */

weft_status wf_clip_add(struct wf_clip_job *job, struct wf_clip_piece piece)
{
    if (job->count == job->room) {
        uint32_t room = 2 * job->room + 16;
        struct wf_clip_piece *pieces = wf_realloc(job->pieces, room * sizeof *pieces);

        if (pieces == NULL) return wf_fail_memory(room * sizeof *pieces);
        job->pieces = pieces;
        job->room = room;
    }
    piece.job = job;
    job->pieces[job->count++] = piece;
    return WEFT_OK;
}

static weft_status post(const struct wf_clip_job *job, void (*call)(void *), void *argument,
                        weft_stream *stream)
{
    return job->table->stream_call(job->device, stream, call, argument);
}

static weft_status copy(const struct wf_clip_job *job, const void *from, void *to, uint64_t bytes,
                        weft_stream *stream)
{
    return job->table->copy(job->device, to, from, bytes, stream);
}

weft_status wf_clip_post_sums(struct wf_clip_job *job, weft_stream *stream)
{
    if (job->on_device) return wf_clip_device_sums(job, stream);
    if (job->stage == NULL) return post(job, sum_all, job, stream);
    WF_TRY(post(job, clear_sums, job, stream));
    for (uint32_t i = 0; i < job->count; i++) {
        struct wf_clip_piece *piece = &job->pieces[i];

        if (!piece->is_read) continue;
        WF_TRY(copy(job, piece->memory, job->stage, piece->count * wf_dtype_bytes(piece->dtype),
                    stream));
        WF_TRY(post(job, sum_staged, piece, stream));
    }
    return WEFT_OK;
}

weft_status wf_clip_post_total(struct wf_clip_job *job, weft_stream *stream)
{
    return job->on_device ? wf_clip_device_total(job, stream) : post(job, find_total, job, stream);
}

static void free_job(void *argument)
{
    struct wf_clip_job *job = argument;

    wf_free(job->pieces);
    wf_free(job);
}

weft_status wf_clip_post_change(struct wf_clip_job *job, weft_stream *stream)
{
    if (job->on_device) return wf_clip_device_change(job, stream);
    if (!job->by_value) WF_TRY(post(job, find_factor, job, stream));
    if (job->stage == NULL) return post(job, change_all, job, stream);
    for (uint32_t i = 0; i < job->count; i++) {
        struct wf_clip_piece *piece = &job->pieces[i];
        uint64_t bytes = piece->count * wf_dtype_bytes(piece->dtype);

        if (!piece->is_written) continue;
        WF_TRY(copy(job, piece->memory, job->stage, bytes, stream));
        WF_TRY(post(job, change_staged, piece, stream));
        WF_TRY(copy(job, job->stage, piece->memory, bytes, stream));
    }
    return WEFT_OK;
}

weft_status wf_clip_begin(weft_context *context, double p, double most, weft_stream *stream,
                          struct wf_clip_job **out)
{
    const weft_plugin *plugin = weft_context_plugin(context);
    struct wf_clip_state *state = NULL;
    struct wf_clip_job *job;

    WF_TRY(wf_clip_enter(context, stream, &state));
    job = wf_calloc(1, sizeof *job);
    if (job == NULL) return wf_fail_memory(sizeof *job);
    job->context = context;
    job->state = state;
    job->table = plugin->device;
    job->kernels = plugin->kernel;
    job->device = weft_context_device(context);
    job->p = p;
    job->most = most;
    job->on_device = state->on_device;
    job->stage = state->stage;
    *out = job;
    return WEFT_OK;
}

weft_status wf_clip_take_sums(struct wf_clip_job *job, weft_stream *stream)
{
    void *sums = NULL;

    WF_TRY(wf_clip_give_sums(job->state, job->sum_count + 1));
    job->seen = job->state->sums;
    if (!job->on_device) {
        job->sums = job->state->sums;
        job->norm = job->seen = job->sums + job->sum_count;
        return WEFT_OK;
    }
    WF_TRY(weft_alloc_on(job->context, (job->sum_count + 2) * sizeof *job->sums, stream, &sums));
    job->sums = sums;
    job->norm = job->sums + job->sum_count + 1;
    return WEFT_OK;
}

/* The device has copied what it needs of JOB. */
static weft_status end_on_device(struct wf_clip_job *job, weft_stream *stream)
{
    weft_status status = WEFT_OK;

    if (job->sums != NULL) status = weft_free_on(job->context, job->sums, stream);
    free_job(job);
    return status;
}

weft_status wf_clip_end(struct wf_clip_job *job, weft_stream *stream, weft_status status)
{
    struct wf_clip_state *state = job->state;
    weft_status ended;

    if (job->on_device) {
        ended = end_on_device(job, stream);
        if (status == WEFT_OK) status = ended;
        return status == WEFT_OK ? wf_clip_leave(state, stream) : status;
    }
    if (status == WEFT_OK) status = post(job, free_job, job, stream);
    if (status == WEFT_OK) return wf_clip_leave(state, stream);
    ended =
        job->table->stream_wait(job->device, stream, weft_comm_timeout(weft_world(job->context)));
    if (ended != WEFT_ERR_TIMEOUT) free_job(job);
    return status;
}
