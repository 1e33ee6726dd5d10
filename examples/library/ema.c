/* ema.c - the object: its life, and what the ranks agree on. */
#include "own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weft_status ema_named(weft_status status, const char *function)
{
    size_t length = strlen(function);

    if (status == WEFT_OK || strncmp(weft_last_error(), function, length) == 0) return status;
    return weft_fail_reword(status, "%s: %s", function, weft_last_error());
}

weft_status ema_check(ema *averages, weft_stream *stream, const char *function)
{
    TRY(weft_object_check(averages, "ema", function, "averages"));
    if (averages->cause[0] != '\0')
        return weft_fail(WEFT_ERR_INVALID, "%s: %s", function, averages->cause);
    return weft_stream_check(averages->context, stream, function);
}

void ema_ranks_here(const ema *averages, int32_t *first, int32_t *end)
{
    bool all = weft_is_simulated(averages->context);

    *first = all ? 0 : weft_rank(averages->context);
    *end = all ? weft_size(averages->context) : *first + 1;
}

/* ---- the end of the context ---- */

static void drop_spares(ema *averages)
{
    for (size_t i = 0; i < averages->count; i++) {
        weft_tensor *spare = atomic_exchange(&averages->entries[i].spare, NULL);

        if (spare == NULL) continue;
        weft_tensor_reuse(spare);
        weft_tensor_set_keeper(spare, NULL, NULL);
        weft_tensor_release(&spare);
    }
}

static void free_memory(ema *averages, const char *reason)
{
    drop_spares(averages);
    for (size_t i = 0; i < averages->count; i++)
        weft_tensor_vacate(averages->averages[i], reason);
    if (weft_context_wait(averages->context, NULL, WEFT_FOREVER) != WEFT_OK ||
        weft_free(averages->context, averages->device) != WEFT_OK ||
        weft_free(averages->context, averages->host) != WEFT_OK)
        weft_log(WEFT_LOG_WARNING, "ema: %s", weft_last_error());
    averages->device = averages->host = NULL;
}

/* The other ranks wait for this one in the save. */
static void leave(void *user)
{
    ema_save_join(user);
}

static void end(void *user, const char *cause)
{
    ema *averages = user;

    ema_save_join(averages);
    snprintf(averages->cause, sizeof averages->cause, "%s", cause);
    free_memory(averages, averages->cause);
}

static const weft_dependent_calls calls = {.struct_size = sizeof calls, .leave = leave, .end = end};

ema *ema_find(weft_context *context)
{
    return weft_dependent_find(weft_world(context), &calls);
}

/* ---- creation ---- */

static weft_status read_options(const ema_options *options, ema_options *out)
{
    *out = (ema_options){.struct_size = sizeof *out, .decay = 0.999};
    if (options == NULL) return WEFT_OK;
    if (options->struct_size != sizeof *out)
        return weft_fail(WEFT_ERR_VERSION, "ema_options.struct_size is %zu; expected %zu",
                         options->struct_size, sizeof *out);
    if (options->decay != 0) out->decay = options->decay;
    if (out->decay > 0 && out->decay < 1) return WEFT_OK;
    return weft_fail(WEFT_ERR_INVALID, "decay is %g; expected a number between 0 and 1",
                     out->decay);
}

static weft_status check_kernels(weft_context *context)
{
    void *device;
    const weft_kernel_table *kernels = weft_context_kernels(context, &device);

    if (kernels->scale != NULL && kernels->reduce != NULL) return WEFT_OK;
    return weft_fail(WEFT_ERR_UNSUPPORTED, "the backend has no kernels that scale and add");
}

/* Make the entry of PARAMETER, of layout SPEC. */
static weft_status add(ema *averages, weft_tensor *parameter, const weft_spec *spec)
{
    struct entry *entry = &averages->entries[averages->count];
    weft_spec *f32;
    weft_status status;

    TRY(weft_spec_with_dtype(spec, WEFT_DTYPE_F32, &f32));
    status = weft_tensor_create_vacant(averages->context, f32, weft_tensor_name(parameter),
                                       "the averages rest in host memory", &entry->average);
    weft_spec_release(&f32);
    if (status != WEFT_OK) return status;
    entry->parameter = weft_tensor_retain(parameter);
    averages->averages[averages->count++] = entry->average;
    averages->bytes += (weft_tensor_bytes(entry->average) + 63) / 64 * 64;
    return WEFT_OK;
}

static weft_status add_all(ema *averages, size_t count, weft_tensor *const *parameters)
{
    const weft_spec **specs = calloc(count + 1, sizeof *specs);
    weft_status status;

    if (specs == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for %zu layouts", count);
    status =
        weft_tensors_check(averages->context, count, parameters, "ema_create", "parameters", specs);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = specs[i] != NULL
                     ? add(averages, parameters[i], specs[i])
                     : weft_fail(WEFT_ERR_INVALID, "ema_create: parameters[%zu] is NULL", i);
    free(specs);
    return status;
}

static void free_all(ema *averages)
{
    weft_dependent_release(&averages->dependent);
    if (averages->cause[0] == '\0') free_memory(averages, "the averages were released");
    for (size_t i = 0; i < averages->count; i++) {
        weft_tensor_release(&averages->entries[i].average);
        weft_tensor_release(&averages->entries[i].parameter);
    }
    ema_save_free(averages);
    free(averages->entries);
    free(averages->averages);
    free(averages->locals);
    free(averages);
}

/* The part of the creation without communication. */
static weft_status make(weft_context *context, size_t count, weft_tensor *const *parameters,
                        const ema_options *options, weft_stream *stream, ema **out)
{
    ema *made = calloc(1, sizeof *made);
    ema_options known;

    *out = made;
    if (made == NULL) return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for the averages");
    made->context = context;
    made->entries = calloc(count + 1, sizeof *made->entries);
    made->averages = calloc(count + 1, sizeof *made->averages);
    made->locals = calloc(count + 1, sizeof *made->locals);
    if (made->entries == NULL || made->averages == NULL || made->locals == NULL)
        return weft_fail(WEFT_ERR_NO_MEMORY, "no memory for %zu averages", count);
    TRY(read_options(options, &known));
    made->decay = known.decay;
    TRY(weft_stream_check(context, stream, "ema_create"));
    TRY(check_kernels(context));
    TRY(add_all(made, count, parameters));
    TRY(weft_alloc(context, made->bytes, WEFT_MEMORY_PINNED, &made->host));
    TRY(weft_dependent_create(weft_world(context), &calls, made, &made->dependent));
    return ema_begin(made, stream);
}

/* The values that all ranks must pass alike. */
struct digest {
    double decay;
    uint64_t count, layouts;
};

static struct digest digest_of(const ema *averages)
{
    struct digest digest = {.count = averages->count, .decay = averages->decay};

    for (size_t i = 0; i < averages->count; i++)
        digest.layouts = digest.layouts * 1099511628211U ^
                         weft_spec_hash(weft_tensor_spec(averages->averages[i]));
    return digest;
}

/* STATUS is that of MADE on this rank.  An error of one rank becomes the error of all ranks.  The
 * values that the ranks passed must be equal. */
static weft_status agree(weft_context *context, const ema *made, weft_status status)
{
    struct digest digest = {0}, other;
    weft_comm *world = weft_world(context);
    weft_answers *answers;

    if (status == WEFT_OK && made != NULL) digest = digest_of(made);
    if (weft_is_simulated(context)) return status;
    TRY(weft_agree(world, "ema_create", status, &digest, sizeof digest, NULL, &answers));
    for (int32_t rank = 0; rank < weft_comm_size(world) && status == WEFT_OK; rank++) {
        bool alike = weft_answers_bytes(answers, rank) == sizeof other;

        if (alike) memcpy(&other, weft_answers_data(answers, rank), sizeof other);
        if (!alike || other.decay != digest.decay || other.count != digest.count ||
            other.layouts != digest.layouts)
            status = weft_fail(WEFT_ERR_MISMATCH,
                               "rank %d has another decay, or parameters of other layouts, than "
                               "rank %d",
                               rank, weft_comm_rank(world));
    }
    weft_answers_release(&answers);
    return status;
}

weft_status ema_create(weft_context *context, size_t count, weft_tensor *const *parameters,
                       const ema_options *options, weft_stream *stream, ema **out)
{
    weft_open_record record;
    weft_status status;
    ema *made = NULL;

    TRY(weft_object_check(context, "weft_context", "ema_create", "context"));
    weft_record_begin(weft_world(context), WEFT_RECORD_CREATE, "ema_create", &record);
    status = out != NULL ? make(context, count, parameters, options, stream, &made)
                         : weft_fail(WEFT_ERR_INVALID, "out is NULL");
    status = weft_record_end(&record, ema_named(agree(context, made, status), "ema_create"));
    if (status != WEFT_OK) {
        if (made != NULL) free_all(made);
        return status;
    }
    weft_object_begin(&made->object, "ema");
    weft_log(WEFT_LOG_INFO, "ema: averages of %zu parameters, %llu bytes on rank %d", count,
             (unsigned long long)made->bytes, weft_rank(context));
    *out = made;
    return WEFT_OK;
}

void ema_release(ema **averages)
{
    ema *object = averages != NULL ? *averages : NULL;

    if (object == NULL || !weft_object_end(&object->object, "ema", "ema_release")) return;
    *averages = NULL;
    ema_save_join(object);
    if (object->save.status != WEFT_OK && !object->save.was_told)
        weft_log(WEFT_LOG_WARNING, "ema_release: %s", object->save.error);
    free_all(object);
}
