/* pieces.c - shards in pieces, and threads that read or write them. */
#include "store.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MOST_JOBS = 1024, DEFAULT_JOBS = 16 };

/* ---- the list ---- */

static int32_t default_jobs(const weft_context *context)
{
    int64_t processors = sysconf(_SC_NPROCESSORS_ONLN),
            share = processors / weft_local_size(context);

    return (int32_t)wf_max_i64(1, wf_min_i64(share, DEFAULT_JOBS));
}

weft_status wf_pieces_begin(struct wf_pieces *pieces, struct wf_store_call *call, size_t count,
                            int32_t jobs, const char *option)
{
    if (jobs < 0 || jobs > MOST_JOBS)
        return wf_fail(WEFT_ERR_INVALID, "%s is %d; from 0 to %d are valid", option, jobs,
                       MOST_JOBS);
    *pieces = (struct wf_pieces){.call = call,
                                 .shards = wf_calloc(count, sizeof *pieces->shards),
                                 .jobs = jobs > 0 ? jobs : default_jobs(call->context)};
    return pieces->shards != NULL ? WEFT_OK : wf_fail_memory(count * sizeof *pieces->shards);
}

static weft_status add_piece(struct wf_pieces *pieces, const struct wf_store_piece *piece)
{
    WF_TRY(wf_grow(&pieces->list, sizeof *pieces->list, pieces->count, &pieces->capacity));
    pieces->list[pieces->count++] = *piece;
    pieces->bytes += piece->bytes;
    return WEFT_OK;
}

weft_status wf_pieces_add(struct wf_pieces *pieces, const weft_spec *spec, size_t index,
                          int32_t replicas, int32_t replica)
{
    struct wf_store_shard *shard = &pieces->shards[pieces->shard_count];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], elements;
    size_t unit = wf_dtype_bytes(weft_spec_dtype(spec));
    weft_shard held;

    weft_spec_shard(spec, weft_rank(pieces->call->context), &held);
    *shard = (struct wf_store_shard){.spec = spec, .index = index};
    if (held.elements > 0 &&
        !wf_cut_make(&shard->cut, (uint32_t)(8 * unit), held.dims, held.shape, WF_STORE_PIECE))
        return wf_fail(WEFT_ERR_INTERNAL, "a shard cannot be cut");
    for (uint64_t i = 0; i < shard->cut.pieces; i++) {
        if ((i + index) % (uint64_t)replicas != (uint64_t)replica) continue;
        elements = 1;
        wf_cut_box(&shard->cut, held.dims, held.shape, i, offset, sizes);
        for (int32_t d = 0; d < held.dims; d++)
            elements *= sizes[d];
        WF_TRY(add_piece(pieces, &(struct wf_store_piece){.shard = pieces->shard_count,
                                                          .number = i,
                                                          .bytes = (uint64_t)elements * unit,
                                                          .at = pieces->bytes}));
    }
    pieces->shard_count++;
    return WEFT_OK;
}

static bool has_gaps(const weft_tensor *tensor)
{
    const weft_shard *shard = weft_tensor_shard(tensor);
    const int64_t *strides = weft_tensor_strides(tensor);
    int64_t dense[WEFT_MAX_DIMS];

    wf_row_major(shard->dims, shard->shape, dense);
    for (int32_t d = 0; d < shard->dims; d++)
        if (shard->shape[d] > 1 && strides[d] != dense[d]) return true;
    return false;
}

weft_status wf_shard_take_memory(struct wf_store_shard *shard, const weft_tensor *tensor)
{
    uint64_t bytes = weft_spec_shard_bytes(shard->spec, weft_rank(weft_tensor_context(tensor)));

    shard->memory = weft_tensor_memory(tensor);
    if (!has_gaps(tensor)) return WEFT_OK;
    shard->packed_bytes = bytes;
    shard->memory = shard->packed = wf_alloc((size_t)bytes);
    return shard->packed != NULL ? WEFT_OK : wf_fail_memory((size_t)bytes);
}

void wf_pieces_free(struct wf_pieces *pieces)
{
    for (size_t i = 0; i < pieces->shard_count; i++)
        wf_free(pieces->shards[i].packed);
    wf_free(pieces->shards);
    wf_free(pieces->list);
    *pieces = (struct wf_pieces){0};
}

static void view_piece(const struct wf_pieces *pieces, size_t number, struct wf_piece_view *out)
{
    const struct wf_store_piece *piece = &pieces->list[number];
    const struct wf_store_shard *shard = &pieces->shards[piece->shard];
    int64_t offset[WEFT_MAX_DIMS], sizes[WEFT_MAX_DIMS], at = 0;

    wf_part_of_shard(&out->part, shard->spec, weft_rank(pieces->call->context));
    wf_cut_box(&shard->cut, out->part.dims, out->part.shape, piece->number, offset, sizes);
    for (int32_t d = 0; d < out->part.dims; d++)
        at += offset[d] * out->part.strides[d];
    wf_part_narrow(&out->part, offset, sizes);
    out->piece = piece;
    out->shard = shard;
    out->memory = shard->memory + at * (int64_t)wf_dtype_bytes(weft_spec_dtype(shard->spec));
}

/* ---- stages ---- */

static weft_status begin_stage(struct wf_stage *stage, weft_context *context, bool uses_device)
{
    weft_device_info device = {.struct_size = sizeof device};
    void *memory = NULL;
    weft_status status;

    *stage = (struct wf_stage){.context = context};
    if (!uses_device) return WEFT_OK;
    WF_TRY(weft_device_get(context, &device));
    if ((device.features & WEFT_FEATURE_HOST_MEMORY) != 0) return WEFT_OK;
    WF_TRY(weft_context_bind_thread(context));
    status = weft_alloc(context, WF_STORE_PIECE, WEFT_MEMORY_PINNED, &memory);
    stage->is_pinned = status == WEFT_OK;
    if (status == WEFT_ERR_UNSUPPORTED) {
        memory = wf_alloc(WF_STORE_PIECE);
        status = memory != NULL ? WEFT_OK : wf_fail_memory(WF_STORE_PIECE);
    }
    stage->memory = memory;
    return status == WEFT_OK ? weft_stream_create(context, &stage->stream) : status;
}

static void end_stage(struct wf_stage *stage)
{
    weft_stream_release(&stage->stream);
    if (!stage->is_pinned)
        wf_free(stage->memory);
    else if (weft_free(stage->context, stage->memory) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "a stage was not freed: %s", weft_last_error());
}

weft_status wf_stage_copy(const struct wf_stage *stage, const void *source, void *target,
                          uint64_t bytes)
{
    weft_context *context = stage->context;
    weft_status status = weft_memory_copy(context, source, target, bytes, stage->stream);
    weft_status waited = weft_context_wait(context, stage->stream, WEFT_FOREVER);

    return status != WEFT_OK ? status : waited;
}

/* ---- threads ---- */

struct work {
    const struct wf_pieces *pieces;
    bool uses_device;
    wf_piece_action *action;
    void *state;
    atomic_size_t next;
    atomic_bool stop;
    pthread_mutex_t guard;
    weft_status status; /* of the first failure */
    char error[2048];
};

static weft_status do_pieces(struct work *work)
{
    struct wf_stage stage;
    weft_status status = begin_stage(&stage, work->pieces->call->context, work->uses_device);

    while (status == WEFT_OK && !atomic_load(&work->stop)) {
        size_t number = atomic_fetch_add(&work->next, 1);
        struct wf_piece_view view;
        if (number >= work->pieces->count) break;
        view_piece(work->pieces, number, &view);
        status = work->action(work->state, &view, &stage);
        wf_store_goes_on(work->pieces->call);
    }
    if (status != WEFT_OK) {
        atomic_store(&work->stop, true);
        pthread_mutex_lock(&work->guard);
        if (work->status == WEFT_OK) {
            work->status = status;
            snprintf(work->error, sizeof work->error, "%s", weft_last_error());
        }
        pthread_mutex_unlock(&work->guard);
    }
    end_stage(&stage);
    return status;
}

static void *job_main(void *argument)
{
    return do_pieces(argument) == WEFT_OK ? argument : NULL;
}

weft_status wf_pieces_run(const struct wf_pieces *pieces, bool uses_device, wf_piece_action *action,
                          void *state)
{
    struct work work = {
        .pieces = pieces, .uses_device = uses_device, .action = action, .state = state};
    int64_t jobs = wf_min_i64(pieces->jobs, (int64_t)pieces->count);

    if (pieces->count == 0) return WEFT_OK;
    pthread_mutex_init(&work.guard, NULL);
    wf_jobs_run((int32_t)jobs, job_main, &work);
    pthread_mutex_destroy(&work.guard);
    return work.status == WEFT_OK ? WEFT_OK : wf_fail(work.status, "%s", work.error);
}
