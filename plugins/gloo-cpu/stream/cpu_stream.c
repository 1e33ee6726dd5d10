/* cpu_stream.c - a thread that runs the tasks of a queue. */
#include "cpu_stream.h"

#include "cpu_bell.h"
#include "cpu_queue.h"

#include <pthread.h>
#include <string.h>

struct cpu_stream {
    pthread_t thread;
    struct cpu_queue queue;
    struct cpu_bell work_came, work_ended;
    _Atomic(uint64_t) given, ended; /* number of tasks */
    _Atomic(bool) closing;
    _Atomic(bool) failed;   /* ERROR is set and does not change any more */
    struct cpu_error error; /* the first error */
};

static _Thread_local struct cpu_stream *current;

weft_status cpu_error_report(const struct cpu_error *error)
{
    if (error->status == WEFT_OK) return WEFT_OK;
    return plug_fail(error->status, "%s", error->text);
}

static weft_status report(const struct cpu_stream *stream)
{
    return atomic_load(&stream->failed) ? cpu_error_report(&stream->error) : WEFT_OK;
}

const struct cpu_error *cpu_stream_error(void)
{
    return current != NULL && atomic_load(&current->failed) ? &current->error : NULL;
}

static void work_off(struct cpu_stream *stream, struct cpu_task *task)
{
    _Atomic(uint64_t) *under_way = task->under_way;
    struct cpu_error error;

    error.status = WEFT_OK;
    task->work(task->argument, &error);
    if (under_way != NULL) atomic_fetch_sub(under_way, 1);
    if (error.status != WEFT_OK && !atomic_load(&stream->failed)) {
        stream->error = error;
        atomic_store(&stream->failed, true);
    }
    cpu_queue_done(&stream->queue, task);
    atomic_fetch_add(&stream->ended, 1);
    cpu_bell_ring(&stream->work_ended);
}

static bool has_work(const void *argument)
{
    const struct cpu_stream *stream = argument;

    return !cpu_queue_is_empty(&stream->queue) || atomic_load(&stream->closing);
}

static void *serve(void *argument)
{
    struct cpu_stream *stream = argument;
    struct cpu_task *task;

    current = stream;
    do {
        cpu_bell_wait(&stream->work_came, has_work, stream, UINT64_MAX);
        task = cpu_queue_take(&stream->queue);
        if (task != NULL) work_off(stream, task);
    } while (task != NULL);
    return NULL;
}

weft_status cpu_stream_create(void *device, void **out)
{
    struct cpu_stream *stream = plug_alloc(sizeof *stream);
    weft_status status;
    int error;

    (void)device;
    if (stream == NULL) return plug_fail_memory(sizeof *stream);
    status = cpu_queue_begin(&stream->queue);
    if (status != WEFT_OK) {
        plug_free(stream);
        return status;
    }
    error = pthread_create(&stream->thread, NULL, serve, stream);
    if (error != 0) {
        cpu_queue_free(&stream->queue);
        plug_free(stream);
        return plug_fail_errno(WEFT_ERR_SYSTEM, error, "cannot start the thread of a stream");
    }
    pthread_setname_np(stream->thread, "weft-stream");
    *out = stream;
    return WEFT_OK;
}

void cpu_stream_destroy(void *device, void *handle)
{
    struct cpu_stream *stream = handle;

    (void)device;
    if (stream == NULL) return;
    atomic_store(&stream->closing, true);
    cpu_bell_ring(&stream->work_came);
    pthread_join(stream->thread, NULL);
    cpu_queue_free(&stream->queue);
    plug_free(stream);
}

weft_status cpu_stream_query(void *device, void *handle)
{
    struct cpu_stream *stream = handle;

    (void)device;
    if (stream == NULL) return WEFT_OK;
    /* Also after a failure: a caller that gets an error may free the memory of all tasks. */
    if (atomic_load(&stream->ended) < atomic_load(&stream->given)) return WEFT_IN_PROGRESS;
    return report(stream);
}

/* The first COUNT tasks of a stream. */
struct beginning {
    const struct cpu_stream *stream;
    uint64_t count;
};

static bool has_ended(const void *argument)
{
    const struct beginning *beginning = argument;

    return atomic_load(&beginning->stream->ended) >= beginning->count;
}

weft_status cpu_stream_wait(void *device, void *handle, int64_t timeout_ns)
{
    struct cpu_stream *stream = handle;
    struct beginning all = {.stream = stream};

    (void)device;
    if (stream == NULL) return WEFT_OK;
    all.count = atomic_load(&stream->given);
    if (!cpu_bell_wait(&stream->work_ended, has_ended, &all, cpu_deadline(timeout_ns)))
        return plug_fail(WEFT_ERR_TIMEOUT, "stream: %llu tasks not complete after %.3f s",
                         (unsigned long long)(all.count - atomic_load(&stream->ended)),
                         (double)timeout_ns * 1e-9);
    return report(stream);
}

static size_t padded(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Copy ARGUMENT and the lent arrays into TASK.  The copy of ARGUMENT points to the copies. */
static void fill_task(struct cpu_task *task, const void *argument, size_t bytes,
                      const struct cpu_lent *lent, size_t lent_count)
{
    size_t at = padded(bytes);

    memcpy(task->argument, argument, bytes);
    for (size_t i = 0; i < lent_count; i++) {
        void *array, *copy = task->argument + at;

        if (lent[i].bytes == 0) continue;
        memcpy(&array, (const char *)argument + lent[i].pointer, sizeof array);
        memcpy(copy, array, lent[i].bytes);
        memcpy(task->argument + lent[i].pointer, &copy, sizeof copy);
        at += padded(lent[i].bytes);
    }
}

weft_status cpu_stream_run_counted(void *handle, _Atomic(uint64_t) *under_way, cpu_work work,
                                   void *argument, size_t bytes, const struct cpu_lent *lent,
                                   size_t lent_count)
{
    struct cpu_stream *stream = handle;
    size_t room = padded(bytes);
    struct cpu_task *task;

    if (stream == NULL) {
        struct cpu_error error;

        error.status = WEFT_OK;
        work(argument, &error);
        return cpu_error_report(&error);
    }
    for (size_t i = 0; i < lent_count; i++)
        room += padded(lent[i].bytes);
    task = cpu_queue_task(&stream->queue, room);
    if (task == NULL) return plug_fail_memory(sizeof *task + room);
    task->work = work;
    task->under_way = under_way;
    if (under_way != NULL) atomic_fetch_add(under_way, 1);
    fill_task(task, argument, bytes, lent, lent_count);
    atomic_fetch_add(&stream->given, 1);
    cpu_queue_give(&stream->queue, task);
    cpu_bell_ring(&stream->work_came);
    return WEFT_OK;
}

weft_status cpu_stream_run_lent(void *stream, cpu_work work, void *argument, size_t bytes,
                                const struct cpu_lent *lent, size_t lent_count)
{
    return cpu_stream_run_counted(stream, NULL, work, argument, bytes, lent, lent_count);
}

weft_status cpu_stream_run(void *stream, cpu_work work, void *argument, size_t bytes)
{
    return cpu_stream_run_lent(stream, work, argument, bytes, NULL, 0);
}

struct call {
    void (*fn)(void *);
    void *argument;
};

static void run_call(void *argument, struct cpu_error *error)
{
    struct call *call = argument;

    (void)error;
    call->fn(call->argument);
}

weft_status cpu_stream_call(void *device, void *stream, void (*fn)(void *), void *argument)
{
    struct call call = {fn, argument};

    (void)device;
    if (fn == NULL) return plug_fail(WEFT_ERR_INVALID, "stream_call: the function is NULL");
    return cpu_stream_run(stream, run_call, &call, sizeof call);
}
