/* averages.c - the memory and the elements of the averages. */
#include "own.h"

#include <string.h>

/* ---- memory ---- */

/* The averages have their elements in MEMORY. */
static weft_status occupy(ema *averages, char *memory, weft_stream *stream)
{
    for (size_t i = 0; i < averages->count; i++) {
        TRY(weft_tensor_occupy(averages->averages[i], memory, stream));
        memory += (weft_tensor_bytes(averages->averages[i]) + 63) / 64 * 64;
    }
    return WEFT_OK;
}

static weft_status give_up_memory(ema *averages, const char *reason, weft_stream *stream)
{
    void *memory = averages->device;

    for (size_t i = 0; i < averages->count; i++)
        weft_tensor_vacate(averages->averages[i], reason);
    averages->device = NULL;
    return weft_free_on(averages->context, memory, stream);
}

weft_status ema_wake(ema *averages, weft_stream *stream)
{
    weft_context *context = averages->context;
    weft_status status;

    if (averages->device != NULL) return WEFT_OK;
    TRY(weft_alloc_on(context, averages->bytes, stream, &averages->device));
    status = weft_memory_copy(context, averages->host, averages->device, averages->bytes, stream);
    if (status == WEFT_OK) status = occupy(averages, averages->device, stream);
    if (status != WEFT_OK && give_up_memory(averages, "no memory", stream) != WEFT_OK)
        weft_log(WEFT_LOG_WARNING, "ema: %s", weft_last_error());
    return status;
}

weft_status ema_rest(ema *averages, weft_stream *stream)
{
    TRY(ema_check(averages, stream, "ema_rest"));
    if (averages->device == NULL) return WEFT_OK;
    TRY(weft_memory_copy(averages->context, averages->device, averages->host, averages->bytes,
                         stream));
    return give_up_memory(averages, "the averages rest in host memory", stream);
}

weft_tensor *ema_average(ema *averages, size_t index)
{
    if (ema_check(averages, NULL, "ema_average") != WEFT_OK) return NULL;
    return index < averages->count ? averages->averages[index] : NULL;
}

/* ---- updates ---- */

/* The COUNT elements at AVERAGE, f32, become decay * average + (1 - decay) * PARAMETER; SCRATCH is
 * for as many. */
static weft_status blend(const ema *averages, enum weft_dtype dtype, uint64_t count,
                         const void *parameter, void *average, void *scratch, weft_stream *stream)
{
    float decay = (float)averages->decay, rest = (float)(1 - averages->decay);
    const void *terms[] = {average, scratch};
    void *device;
    const weft_kernel_table *kernels = weft_context_kernels(averages->context, &device);

    TRY(weft_memory_cast(averages->context, dtype, WEFT_DTYPE_F32, count, parameter, scratch,
                         stream));
    TRY(kernels->scale(device, WEFT_DTYPE_F32, count, &rest, scratch, stream));
    TRY(kernels->scale(device, WEFT_DTYPE_F32, count, &decay, average, stream));
    return kernels->reduce(device, WEFT_DTYPE_F32, WEFT_REDUCE_SUM, count, 2, terms, average,
                           stream);
}

/* Update the shard LOCAL, of rank RANK, of the average of PARAMETER. */
static weft_status update_shard(const ema *averages, weft_tensor *parameter, int32_t rank,
                                const weft_tensor_local *local, weft_stream *stream)
{
    uint64_t count = (uint64_t)local->shard->elements;
    weft_status status, freed;
    void *elements, *scratch;

    TRY(weft_tensor_pack(parameter, rank, stream, &elements)); /* it may have gaps */
    TRY(weft_alloc_on(averages->context, count * sizeof(float), stream, &scratch));
    status = blend(averages, weft_spec_dtype(weft_tensor_spec(parameter)), count, elements,
                   local->memory, scratch, stream);
    freed = weft_free_on(averages->context, scratch, stream);
    return status != WEFT_OK ? status : freed;
}

static weft_status update_rank(ema *averages, int32_t rank, weft_stream *stream)
{
    TRY(weft_tensors_lend(averages->context, rank, averages->count, averages->averages, 0, stream,
                          averages->locals, sizeof *averages->locals));
    for (size_t i = 0; i < averages->count; i++)
        if (averages->locals[i].shard->elements > 0)
            TRY(update_shard(averages, averages->entries[i].parameter, rank, &averages->locals[i],
                             stream));
    return WEFT_OK;
}

/* All ranks have made as many updates as this one. */
static weft_status check_updates(const ema *averages)
{
    weft_comm *world = weft_world(averages->context);
    uint64_t theirs;
    weft_answers *answers;
    weft_status status = WEFT_OK;

    TRY(weft_agree(world, "ema_update", WEFT_OK, &averages->updates, sizeof averages->updates, NULL,
                   &answers));
    for (int32_t rank = 0; rank < weft_comm_size(world); rank++) {
        memcpy(&theirs, weft_answers_data(answers, rank), sizeof theirs);
        if (theirs != averages->updates)
            status = weft_fail(WEFT_ERR_MISMATCH,
                               "ema_update: rank %d has made %llu updates, this rank %llu", rank,
                               (unsigned long long)theirs, (unsigned long long)averages->updates);
    }
    weft_answers_release(&answers);
    return status;
}

static weft_status update(ema *averages, weft_stream *stream)
{
    int32_t first, end;

    TRY(ema_wake(averages, stream));
    ema_ranks_here(averages, &first, &end);
    for (int32_t rank = first; rank < end; rank++)
        TRY(update_rank(averages, rank, stream));
    averages->updates++;
    return WEFT_OK;
}

weft_status ema_update(ema *averages, weft_stream *stream)
{
    TRY(ema_check(averages, stream, "ema_update"));
    if (weft_context_checks(averages->context) && !weft_is_simulated(averages->context))
        TRY(check_updates(averages));
    TRY(weft_moves_enter(averages->context, "ema_update")); /* nobody moves parameters meanwhile */
    return ema_named(weft_moves_leave(averages->context, update(averages, stream)), "ema_update");
}

/* ---- copies of averages ---- */

/* Set TENSOR, which may have gaps, to the elements of AVERAGE. */
static weft_status set(const ema *averages, weft_tensor *average, weft_tensor *tensor,
                       weft_stream *stream)
{
    enum weft_dtype dtype = weft_spec_dtype(weft_tensor_spec(tensor));
    weft_tensor_local local;
    int32_t first, end;
    void *elements;

    ema_ranks_here(averages, &first, &end);
    for (int32_t rank = first; rank < end; rank++) {
        TRY(weft_tensors_lend(averages->context, rank, 1, &average, 1, stream, &local,
                              sizeof local));
        if (local.shard->elements == 0) continue;
        TRY(weft_tensor_pack(tensor, rank, stream, &elements));
        TRY(weft_memory_cast(averages->context, WEFT_DTYPE_F32, dtype,
                             (uint64_t)local.shard->elements, local.memory, elements, stream));
        TRY(weft_tensor_unpack(tensor, rank, stream));
    }
    return weft_tensor_use(tensor, stream);
}

static weft_status restore(ema *averages, weft_stream *stream)
{
    for (size_t i = 0; i < averages->count; i++)
        if (weft_tensor_is_read_only(averages->entries[i].parameter))
            return weft_fail(WEFT_ERR_INVALID, "parameter %zu (\"%s\") is read-only", i,
                             weft_tensor_name(averages->entries[i].parameter));
    TRY(ema_wake(averages, stream));
    for (size_t i = 0; i < averages->count; i++)
        TRY(set(averages, averages->averages[i], averages->entries[i].parameter, stream));
    return WEFT_OK;
}

weft_status ema_restore(ema *averages, weft_stream *stream)
{
    TRY(ema_check(averages, stream, "ema_restore"));
    TRY(weft_moves_enter(averages->context, "ema_restore"));
    return ema_named(weft_moves_leave(averages->context, restore(averages, stream)), "ema_restore");
}

/* A rank that fails before its moves would let the others wait in theirs. */
static weft_status copy(ema *averages, weft_tensor *const *targets, weft_stream *stream)
{
    weft_status status = ema_wake(averages, stream);

    if (status != WEFT_OK) return weft_comm_fail(weft_world(averages->context), "ema_copy", status);
    return weft_tensors_move_into(averages->count, averages->averages, targets, NULL, stream, NULL);
}

weft_status ema_copy(ema *averages, weft_tensor *const *targets, weft_stream *stream)
{
    TRY(ema_check(averages, stream, "ema_copy"));
    TRY(weft_moves_enter(averages->context, "ema_copy"));
    return weft_moves_leave(averages->context, copy(averages, targets, stream));
}

weft_status ema_begin(ema *averages, weft_stream *stream)
{
    double decay = averages->decay;
    weft_status status;

    TRY(weft_memory_fill(averages->context, averages->host, 0, averages->bytes, NULL));
    averages->decay = 0; /* the first update takes all of the parameters */
    status = update(averages, stream);
    averages->decay = decay;
    averages->updates = 0;
    return status;
}

/* ---- snapshots ---- */

/* The program has released SNAPSHOT.  [any thread] */
static bool keep(void *user, weft_tensor *snapshot)
{
    struct entry *entry = user;
    weft_tensor *none = NULL;

    return atomic_compare_exchange_strong(&entry->spare, &none, snapshot);
}

/* Work on STREAM may use SPARE after the work that uses it now. */
static weft_status wait_for(weft_context *context, const weft_tensor *spare, weft_stream *stream)
{
    weft_work *last;
    weft_status status;

    if (weft_tensor_stream(spare) == stream) return WEFT_OK;
    TRY(weft_work_record(context, weft_tensor_stream(spare), &last));
    status = weft_stream_wait_work(stream, last);
    weft_work_release(&last);
    return status;
}

static weft_status take_spare(ema *averages, struct entry *entry, weft_stream *stream,
                              weft_tensor **out)
{
    weft_tensor_options options = {.struct_size = sizeof options,
                                   .name = weft_tensor_name(entry->parameter),
                                   .stream = stream};

    *out = atomic_exchange(&entry->spare, NULL);
    if (*out != NULL) {
        weft_tensor_reuse(*out);
        return wait_for(averages->context, *out, stream);
    }
    TRY(weft_tensor_create(averages->context, weft_tensor_spec(entry->parameter), &options, out));
    weft_tensor_set_keeper(*out, keep, entry);
    return WEFT_OK;
}

weft_status ema_snapshot(ema *averages, size_t index, weft_stream *stream, weft_tensor **out)
{
    weft_tensor *taken = NULL;
    weft_status status;

    TRY(ema_check(averages, stream, "ema_snapshot"));
    if (index >= averages->count || out == NULL)
        return weft_fail(WEFT_ERR_INVALID, "ema_snapshot: out is NULL, or index is %zu of %zu",
                         index, averages->count);
    status = ema_wake(averages, stream);
    if (status == WEFT_OK) status = take_spare(averages, &averages->entries[index], stream, &taken);
    if (status == WEFT_OK) status = set(averages, averages->averages[index], taken, stream);
    if (status != WEFT_OK) {
        weft_tensor_release(&taken);
        return ema_named(status, "ema_snapshot");
    }
    *out = taken;
    return WEFT_OK;
}
