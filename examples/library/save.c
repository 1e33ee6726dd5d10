/* save.c - the averages are written by a thread of each rank while the program continues.
 *
 * The threads of all ranks agree at the end: the averages are saved, or all ranks have the error.
 * Their steps follow the step of ema_save, so they meet no call of the program. */
#include "own.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t elements_of(const weft_tensor *average)
{
    return weft_tensor_bytes(average) / sizeof(float);
}

static weft_status write_one(ema *averages, size_t index, const float *elements)
{
    const char *name = weft_tensor_name(averages->entries[index].parameter);
    struct save *save = &averages->save;
    uint64_t failures = weft_failure_count();
    weft_status status =
        save->writer(save->user, name, elements, elements_of(averages->averages[index]));

    if (status == WEFT_OK || weft_failure_count() != failures) return status;
    return weft_fail(status, "the writer has failed with average %zu (\"%s\")", index, name);
}

static weft_status write_all(ema *averages)
{
    struct save *save = &averages->save;
    const float *elements = save->elements;

    TRY(weft_context_bind_thread(averages->context));
    for (size_t i = 0; i < averages->count; i++) {
        TRY(write_one(averages, i, elements));
        elements += elements_of(averages->averages[i]);
        weft_agree_progress(save->agreed, "ema_save"); /* the others wait on */
    }
    return WEFT_OK;
}

static void *save_main(void *user)
{
    ema *averages = user;
    struct save *save = &averages->save;
    weft_agree_options options = {.struct_size = sizeof options, .after = save->agreed};
    weft_answers *all = NULL;
    weft_open_record record;
    weft_status status;

    weft_record_continue(&save->record, "ema_save, in the background", &record);
    status = weft_agree(weft_world(averages->context), "ema_save", write_all(averages), NULL, 0,
                        &options, &all);
    weft_answers_release(&all);
    save->status = weft_record_end(&record, status);
    if (status != WEFT_OK) snprintf(save->error, sizeof save->error, "%s", weft_last_error());
    return NULL;
}

/* Copy all averages to memory of the host. */
static weft_status copy_all(ema *averages, weft_stream *stream)
{
    float *elements = malloc((size_t)averages->bytes + 1);

    averages->save.elements = elements;
    if (elements == NULL)
        return weft_fail(WEFT_ERR_NO_MEMORY, "ema_save: no memory for %llu bytes",
                         (unsigned long long)averages->bytes);
    TRY(ema_wake(averages, stream));
    for (size_t i = 0; i < averages->count; i++) {
        uint64_t bytes = weft_tensor_bytes(averages->averages[i]);

        TRY(weft_tensor_to_host(averages->averages[i], elements, bytes, stream));
        elements += bytes / sizeof *elements;
    }
    return WEFT_OK;
}

weft_status ema_save(ema *averages, ema_writer writer, void *user, weft_stream *stream)
{
    weft_status status;
    weft_comm *world;
    struct save *save;

    TRY(ema_check(averages, stream, "ema_save"));
    world = weft_world(averages->context);
    TRY(weft_object_check(world, "weft_comm", "ema_save", "world")); /* not of simulated ranks */
    ema_save_join(averages);
    ema_save_free(averages);
    save = &averages->save;
    *save = (struct save){.writer = writer, .user = user};
    weft_record_begin(world, WEFT_RECORD_SAVE, "ema_save", &save->record);
    status = writer != NULL ? copy_all(averages, stream)
                            : weft_fail(WEFT_ERR_INVALID, "ema_save: writer is NULL");
    status = weft_agree(world, "ema_save", status, NULL, 0, NULL, &save->agreed);
    weft_record_set_bytes(&save->record, averages->bytes);
    TRY(weft_record_end(&save->record, status));
    save->has_thread = pthread_create(&save->thread, NULL, save_main, averages) == 0;
    if (!save->has_thread) save_main(averages);
    return WEFT_OK;
}

void ema_save_join(ema *averages)
{
    if (averages->save.has_thread) pthread_join(averages->save.thread, NULL);
    averages->save.has_thread = false;
}

weft_status ema_save_wait(ema *averages)
{
    TRY(weft_object_check(averages, "ema", "ema_save_wait", "averages"));
    ema_save_join(averages);
    averages->save.was_told = true;
    if (averages->save.status == WEFT_OK) return WEFT_OK;
    return weft_fail(averages->save.status, "%s", averages->save.error);
}

void ema_save_free(ema *averages)
{
    free(averages->save.elements);
    averages->save.elements = NULL;
    weft_answers_release(&averages->save.agreed);
}
