/* norm.c - the norm of tensors on any meshes.
 *
 * The sums of powers of all tensors that the same axes of one mesh split are one number on each
 * rank: a tensor without dimensions that is partial on these axes and replicated on the others.
 * Moving it to all ranks reduces it, and all these moves are one batch. */
#include "clip.h"

#include <math.h>
#include <string.h>

/* Tensors that the same axes of one mesh split. */
struct bucket {
    const weft_mesh *mesh;
    uint32_t axes;
    weft_tensor *sum, *everywhere;
};

struct clipping {
    weft_context *context;
    weft_clip_options options;
    weft_stream *stream;
    uint32_t count;
    weft_tensor **norms; /* whose elements are counted: the tensors, or reduced copies; retained */
    struct bucket *buckets;
    uint32_t bucket_count;
    struct wf_clip_job *job;
};

/* ---- buckets ---- */

static uint32_t split_axes(const weft_spec *spec)
{
    uint32_t axes = 0;

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind != WEFT_PLACE_REPLICATE) axes |= 1U << a;
    return axes;
}

static uint32_t find_bucket(struct clipping *c, const weft_spec *spec)
{
    const weft_mesh *mesh = weft_spec_mesh(spec);
    uint32_t axes = split_axes(spec), i = 0;

    while (i < c->bucket_count && !(c->buckets[i].mesh == mesh && c->buckets[i].axes == axes))
        i++;
    if (i == c->bucket_count)
        c->buckets[c->bucket_count++] = (struct bucket){.mesh = mesh, .axes = axes};
    return i;
}

/* The mesh of all ranks that have a gradient. */
static weft_status make_union(const struct clipping *c, weft_mesh **out)
{
    int32_t size = weft_size(c->context), count = 0;
    int32_t *ranks = wf_calloc((size_t)size, sizeof *ranks);
    weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    weft_status status;

    if (ranks == NULL) return wf_fail_memory((size_t)size * sizeof *ranks);
    for (uint32_t i = 0; i < c->bucket_count; i++)
        for (int32_t at = 0; at < weft_mesh_size(c->buckets[i].mesh); at++)
            ranks[weft_mesh_rank_at(c->buckets[i].mesh, at)] = 1; /* it has one */
    for (int32_t rank = 0; rank < size; rank++)
        if (ranks[rank] != 0) ranks[count++] = rank; /* COUNT is at most RANK */
    status = weft_mesh_create(1, &count, &options, out);
    wf_free(ranks);
    return status;
}

static weft_status make_scalar(const struct clipping *c, const weft_mesh *mesh, uint32_t axes,
                               weft_tensor **out)
{
    const weft_tensor_options options = {.struct_size = sizeof options, .stream = c->stream};
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    weft_spec *spec = NULL;
    weft_status status;

    for (int32_t a = 0; a < weft_mesh_axes(mesh); a++)
        if ((axes >> a & 1) != 0)
            placements[a] = (weft_placement){.kind = WEFT_PLACE_PARTIAL,
                                             .reduction = isinf(c->options.p) ? WEFT_REDUCE_MAX
                                                                              : WEFT_REDUCE_SUM};
    WF_TRY(weft_spec_create(mesh, WEFT_DTYPE_F64, 0, NULL, placements, &spec));
    status = weft_tensor_create(c->context, spec, &options, out);
    weft_spec_release(&spec);
    return status;
}

/* Copy one number on the stream. */
static weft_status copy_number(const struct clipping *c, const void *from, void *to)
{
    return c->job->table->copy(c->job->device, to, from, sizeof(double), c->stream);
}

/* Copy the sums of each rank here between the job and the scalars of all buckets. */
static weft_status copy_sums(const struct clipping *c, bool back)
{
    int32_t locals = wf_here_count(c->context);

    for (uint32_t b = 0; b < c->bucket_count; b++) {
        const weft_tensor *scalar = back ? c->buckets[b].everywhere : c->buckets[b].sum;

        for (int32_t i = 0; i < locals; i++) {
            double *sum = &c->job->sums[b * (uint32_t)locals + (uint32_t)i];
            weft_tensor_local_info local;

            WF_TRY(wf_here_get(scalar, i, &local));
            if (local.shard.elements == 0) continue;
            if (back) sum = &c->job->sums[b]; /* of whichever rank */
            WF_TRY(back ? copy_number(c, local.memory, sum) : copy_number(c, sum, local.memory));
            if (back) break;
        }
    }
    return WEFT_OK;
}

/* The text of a move does not name the function that made it, which the program has not called. */
static weft_status reword(weft_status status)
{
    static const char made_by[] = "weft_tensors_move_into: ";
    const char *text = weft_last_error();
    size_t length = sizeof made_by - 1;

    if (status == WEFT_OK || strncmp(text, made_by, length) != 0) return status;
    return wf_fail_reword(status, "%s", text + length);
}

/* Reduce the sums of all ranks. */
static weft_status reduce_sums(struct clipping *c)
{
    weft_tensor **scalars = wf_calloc(2 * (size_t)c->bucket_count, sizeof(*scalars));
    weft_mesh *all = NULL;
    weft_status status;

    if (scalars == NULL) return wf_fail_memory(2 * c->bucket_count * sizeof(*scalars));
    status = make_union(c, &all);
    for (uint32_t i = 0; i < c->bucket_count && status == WEFT_OK; i++) {
        struct bucket *bucket = &c->buckets[i];

        status = make_scalar(c, bucket->mesh, bucket->axes, &bucket->sum);
        if (status == WEFT_OK) status = make_scalar(c, all, 0, &bucket->everywhere);
        scalars[i] = bucket->sum;
        scalars[c->bucket_count + i] = bucket->everywhere;
    }
    if (status == WEFT_OK) status = copy_sums(c, false);
    if (status == WEFT_OK)
        status = reword(weft_tensors_move_into(c->bucket_count, scalars, scalars + c->bucket_count,
                                               NULL, c->stream, NULL));
    if (status == WEFT_OK) status = copy_sums(c, true);
    weft_mesh_release(&all);
    wf_free(scalars);
    return status;
}

/* ---- the norm ---- */

static bool is_partial(const weft_tensor *tensor)
{
    const weft_spec *spec = weft_tensor_spec(tensor);

    for (int32_t a = 0; a < weft_mesh_axes(weft_spec_mesh(spec)); a++)
        if (weft_spec_placements(spec)[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

/* Gradients without partials: reduced copies of those that have some. */
static weft_status reduce_partials(struct clipping *c, weft_tensor *const *tensors)
{
    for (uint32_t i = 0; i < c->count; i++) {
        weft_spec *spec = NULL;
        weft_status status;

        if (tensors[i] == NULL) continue;
        if (!is_partial(tensors[i])) {
            c->norms[i] = weft_tensor_retain(tensors[i]);
            continue;
        }
        WF_TRY(weft_spec_gradient(weft_tensor_spec(tensors[i]), &spec)); /* R for each partial */
        status = weft_tensor_move(tensors[i], spec, NULL, c->stream, &c->norms[i]);
        weft_spec_release(&spec);
        WF_TRY(status);
    }
    return WEFT_OK;
}

static weft_status add_pieces(struct clipping *c, weft_tensor *const *tensors)
{
    uint32_t locals = (uint32_t)wf_here_count(c->context);

    for (uint32_t i = 0; i < c->count; i++) {
        struct wf_clip_piece piece = {.is_read = true, .is_written = c->norms[i] == tensors[i]};
        uint32_t bucket;

        if (tensors[i] == NULL) continue;
        bucket = find_bucket(c, weft_tensor_spec(c->norms[i]));
        WF_TRY(wf_clip_add_tensor(c->job, c->norms[i], bucket * locals, piece, c->stream));
        if (piece.is_written) continue;
        piece = (struct wf_clip_piece){.is_written = true};
        WF_TRY(wf_clip_add_tensor(c->job, tensors[i], 0, piece, c->stream));
    }
    c->job->sum_count = c->bucket_count * locals;
    c->job->reduced_count = c->bucket_count;
    return WEFT_OK;
}

static weft_status reduce_stages(const struct clipping *c, void *sum)
{
    return weft_all_reduce(c->options.stages, sum, sum, 1, WEFT_DTYPE_F64,
                           isinf(c->options.p) ? WEFT_REDUCE_MAX : WEFT_REDUCE_SUM, c->stream);
}

/* Add the sums of the other stages to that of this one, in device memory. */
static weft_status add_stages(const struct clipping *c)
{
    double *total = &c->job->sums[c->job->sum_count];
    void *memory = NULL;
    weft_status status, given;

    if (c->options.stages == NULL) return WEFT_OK;
    if (c->job->on_device) return reduce_stages(c, total);
    WF_TRY(weft_alloc_on(c->context, sizeof *total, c->stream, &memory));
    status = copy_number(c, total, memory);
    if (status == WEFT_OK) status = reduce_stages(c, memory);
    if (status == WEFT_OK) status = copy_number(c, memory, total);
    given = weft_free_on(c->context, memory, c->stream);
    return status != WEFT_OK ? status : given;
}

/* Post everything that leads to the sum of all powers. */
static weft_status post_total(struct clipping *c)
{
    WF_TRY(wf_clip_take_sums(c->job, c->stream));
    WF_TRY(wf_clip_post_sums(c->job, c->stream));
    if (c->bucket_count > 0) WF_TRY(reduce_sums(c));
    WF_TRY(wf_clip_post_total(c->job, c->stream));
    return add_stages(c);
}

/* The error of `nonfinite_is_error`, when the norm is known.  The gradients have not changed then.
 */
static weft_status check_finite(const struct clipping *c)
{
    const struct wf_clip_job *job = c->job;

    if (!c->options.nonfinite_is_error) return WEFT_OK;
    if (job->seen != job->norm) WF_TRY(copy_number(c, job->norm, job->seen));
    WF_TRY(
        job->table->stream_wait(job->device, c->stream, weft_comm_timeout(weft_world(c->context))));
    if (isfinite(*job->seen)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the norm of the gradients is %s",
                   isnan(*job->seen) ? "not a number" : "infinite");
}

static weft_status post_all(struct clipping *c, weft_tensor *const *tensors, double *total)
{
    WF_TRY(post_total(c));
    WF_TRY(wf_clip_post_change(c->job, c->stream));
    if (total != NULL) WF_TRY(copy_number(c, c->job->norm, total));
    WF_TRY(check_finite(c));
    return wf_clip_unpack(c->count, tensors, c->stream);
}

static void clear(struct clipping *c)
{
    for (uint32_t i = 0; c->norms != NULL && i < c->count; i++)
        weft_tensor_release(&c->norms[i]);
    for (uint32_t i = 0; i < c->bucket_count; i++) {
        weft_tensor_release(&c->buckets[i].sum);
        weft_tensor_release(&c->buckets[i].everywhere);
    }
    wf_free(c->norms);
    wf_free(c->buckets);
}

static weft_status clip(struct clipping *c, weft_tensor *const *tensors, double max_norm,
                        double *total)
{
    weft_status status;

    c->norms = wf_calloc((size_t)c->count + 1, sizeof(*c->norms));
    c->buckets = wf_calloc((size_t)c->count + 1, sizeof *c->buckets);
    if (c->norms == NULL || c->buckets == NULL)
        return wf_fail_memory(c->count * sizeof *c->buckets);
    WF_TRY(reduce_partials(c, tensors));
    WF_TRY(wf_clip_begin(c->context, c->options.p, max_norm, c->stream, &c->job));
    c->job->nonfinite = c->options.nonfinite;
    status = add_pieces(c, tensors);
    if (status == WEFT_OK) status = post_all(c, tensors, total);
    return wf_clip_end(c->job, c->stream, status);
}

weft_status wf_clip_by_norm(weft_context *context, uint32_t count, weft_tensor *const *tensors,
                            double max_norm, const weft_clip_options *options, weft_stream *stream,
                            double *total)
{
    struct clipping c = {.context = context, .options = *options, .stream = stream, .count = count};
    weft_status status = clip(&c, tensors, max_norm, total);

    clear(&c);
    return status;
}
