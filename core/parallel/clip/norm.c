/* norm.c - the norm of tensors on any meshes.
 *
 * The sums of powers of all tensors that the same axes of one mesh split are one number on each
 * rank: a tensor without dimensions that is partial on these axes and replicated on the others.
 * Moving it to all ranks reduces it, and all these moves are one batch. */
#include "clip.h"

#include <math.h>

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

    for (int32_t a = 0; a < spec->layout.mesh->axes; a++)
        if (spec->layout.placements[a].kind != WEFT_PLACE_REPLICATE) axes |= 1U << a;
    return axes;
}

static uint32_t find_bucket(struct clipping *c, const weft_spec *spec)
{
    uint32_t axes = split_axes(spec), i = 0;

    while (i < c->bucket_count &&
           !(c->buckets[i].mesh == spec->layout.mesh && c->buckets[i].axes == axes))
        i++;
    if (i == c->bucket_count)
        c->buckets[c->bucket_count++] = (struct bucket){.mesh = spec->layout.mesh, .axes = axes};
    return i;
}

/* The mesh of all ranks that have a gradient. */
static weft_status make_union(const struct clipping *c, weft_mesh **out)
{
    int32_t size = c->context->size, count = 0;
    int32_t *ranks = wf_calloc((size_t)size, sizeof *ranks);
    weft_mesh_options options = {.struct_size = sizeof options, .ranks = ranks};
    weft_status status;

    if (ranks == NULL) return wf_fail_memory((size_t)size * sizeof *ranks);
    for (int32_t rank = 0; rank < size; rank++) {
        bool has = false;

        for (uint32_t i = 0; i < c->bucket_count && !has; i++)
            has = wf_mesh_index(c->buckets[i].mesh, rank) >= 0;
        if (has) ranks[count++] = rank;
    }
    status = weft_mesh_create(1, &count, &options, out);
    wf_free(ranks);
    return status;
}

static weft_status make_scalar(const struct clipping *c, const weft_mesh *mesh, uint32_t axes,
                               weft_tensor **out)
{
    weft_placement placements[WEFT_MAX_AXES] = {{0}};
    weft_spec *spec = NULL;
    weft_status status;

    for (int32_t a = 0; a < mesh->axes; a++)
        if ((axes >> a & 1) != 0)
            placements[a] = (weft_placement){.kind = WEFT_PLACE_PARTIAL,
                                             .reduction = isinf(c->options.p) ? WEFT_REDUCE_MAX
                                                                              : WEFT_REDUCE_SUM};
    WF_TRY(weft_spec_create(mesh, WEFT_DTYPE_F64, 0, NULL, placements, &spec));
    status = wf_tensor_make(c->context, spec, NULL, c->stream, "weft_clip_grad_norm", out);
    weft_spec_release(&spec);
    return status;
}

/* Copy the sums of each rank here between the job and the scalars of all buckets. */
static weft_status copy_sums(const struct clipping *c, bool back)
{
    const weft_device_table *table = c->context->plugin->device;
    int32_t locals = c->context->is_simulated ? c->context->size : 1;

    for (uint32_t b = 0; b < c->bucket_count; b++) {
        const weft_tensor *scalar = back ? c->buckets[b].everywhere : c->buckets[b].sum;

        for (int32_t i = 0; i < locals; i++) {
            double *sum = &c->job->sums[b * (uint32_t)locals + (uint32_t)i];
            void *memory = scalar->locals[i].memory;

            if (scalar->locals[i].shard.elements == 0) continue;
            if (back) sum = &c->job->sums[b]; /* of whichever rank */
            WF_TRY(table->copy(c->context->device, back ? (void *)sum : memory,
                               back ? memory : (void *)sum, sizeof *sum, c->stream));
            if (back) break;
        }
    }
    return WEFT_OK;
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
        status = weft_tensors_move_into(c->bucket_count, scalars, scalars + c->bucket_count,
                                        c->stream, NULL);
    if (status == WEFT_OK) status = copy_sums(c, true);
    weft_mesh_release(&all);
    wf_free(scalars);
    return status;
}

/* ---- the norm ---- */

static bool is_partial(const weft_tensor *tensor)
{
    const struct wf_layout *layout = &tensor->spec->layout;

    for (int32_t a = 0; a < layout->mesh->axes; a++)
        if (layout->placements[a].kind == WEFT_PLACE_PARTIAL) return true;
    return false;
}

/* Gradients without partials: reduced copies of those that have some. */
static weft_status reduce_partials(struct clipping *c, weft_tensor *const *tensors)
{
    for (uint32_t i = 0; i < c->count; i++) {
        const struct wf_layout *layout;
        weft_placement placements[WEFT_MAX_AXES];
        weft_spec *spec = NULL;
        weft_status status;

        if (tensors[i] == NULL) continue;
        if (!is_partial(tensors[i])) {
            c->norms[i] = weft_tensor_retain(tensors[i]);
            continue;
        }
        layout = &tensors[i]->spec->layout;
        for (int32_t a = 0; a < layout->mesh->axes; a++)
            placements[a] = layout->placements[a].kind == WEFT_PLACE_PARTIAL
                                ? (weft_placement){.kind = WEFT_PLACE_REPLICATE}
                                : layout->placements[a];
        WF_TRY(weft_spec_create(layout->mesh, (enum weft_dtype)layout->dtype, layout->dims,
                                layout->shape, placements, &spec));
        status = wf_tensor_move(tensors[i], spec, c->stream, "weft_clip_grad_norm", WEFT_OK,
                                &c->norms[i]);
        weft_spec_release(&spec);
        WF_TRY(status);
    }
    return WEFT_OK;
}

static weft_status add_pieces(struct clipping *c, weft_tensor *const *tensors)
{
    uint32_t locals = c->context->is_simulated ? (uint32_t)c->context->size : 1;

    for (uint32_t i = 0; i < c->count; i++) {
        struct wf_clip_piece piece = {.is_read = true, .is_written = c->norms[i] == tensors[i]};
        uint32_t bucket;

        if (tensors[i] == NULL) continue;
        bucket = find_bucket(c, c->norms[i]->spec);
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
    const weft_device_table *table = c->context->plugin->device;
    double *total = &c->job->sums[c->job->sum_count];
    void *memory = NULL;
    weft_status status, given;

    if (c->options.stages == NULL) return WEFT_OK;
    if (c->job->on_device) return reduce_stages(c, total);
    WF_TRY(wf_memory_take(c->context, sizeof *total, c->stream, "weft_clip_grad_norm", &memory));
    status = table->copy(c->context->device, memory, total, sizeof *total, c->stream);
    if (status == WEFT_OK) status = reduce_stages(c, memory);
    if (status == WEFT_OK)
        status = table->copy(c->context->device, total, memory, sizeof *total, c->stream);
    given = wf_memory_give(c->context, memory, c->stream, "weft_clip_grad_norm");
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

/* The error of WEFT_CLIP_ERROR, when the norm is known.  The gradients have not changed then. */
static weft_status check_finite(const struct clipping *c)
{
    const weft_device_table *table = c->context->plugin->device;
    const struct wf_clip_job *job = c->job;

    if (c->options.nonfinite != WEFT_CLIP_ERROR) return WEFT_OK;
    if (job->seen != job->norm)
        WF_TRY(table->copy(c->context->device, job->seen, job->norm, sizeof *job->norm, c->stream));
    WF_TRY(table->stream_wait(c->context->device, c->stream, c->context->timeout_ns));
    if (isfinite(*job->seen)) return WEFT_OK;
    return wf_fail(WEFT_ERR_INVALID, "the norm of the gradients is %s",
                   isnan(*job->seen) ? "not a number" : "infinite");
}

static weft_status post_all(struct clipping *c, weft_tensor *const *tensors, double *total)
{
    const weft_device_table *table = c->context->plugin->device;

    WF_TRY(post_total(c));
    WF_TRY(wf_clip_post_change(c->job, c->stream));
    if (total != NULL)
        WF_TRY(table->copy(c->context->device, total, c->job->norm, sizeof *total, c->stream));
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
