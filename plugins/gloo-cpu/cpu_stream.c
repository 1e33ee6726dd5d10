/* cpu_stream.c - a thread that works through a queue. */
#include "stream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct task {
    struct task *next;
    wf_cpu_work work;
    _Alignas(16) unsigned char argument[];
};

struct wf_cpu_stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* work came, or all is done */
    struct task *first, *last;
    uint64_t pending; /* queued and running */
    bool closing;
    struct wf_cpu_error error;
};

static _Thread_local struct wf_cpu_stream *current;

void wf_cpu_condition_create(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

uint64_t wf_cpu_deadline(int64_t timeout_ns)
{
    uint64_t now = wf_cpu_now();

    if (timeout_ns < 0 || (uint64_t)timeout_ns > UINT64_MAX - now) return UINT64_MAX;
    return now + (uint64_t)timeout_ns;
}

bool wf_cpu_condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t deadline)
{
    struct timespec limit = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};

    if (deadline == UINT64_MAX) return pthread_cond_wait(condition, lock) == 0;
    return pthread_cond_timedwait(condition, lock, &limit) == 0;
}

weft_status wf_cpu_error_report(const struct wf_cpu_error *error)
{
    if (error->status == WEFT_OK) return WEFT_OK;
    return wf_cpu_fail(error->status, "%s", error->text);
}

struct wf_cpu_stream *wf_cpu_stream_current(void)
{
    return current;
}

const struct wf_cpu_error *wf_cpu_stream_error(const struct wf_cpu_stream *stream)
{
    return &stream->error;
}

static void work_off(struct wf_cpu_stream *stream, struct task *task)
{
    struct wf_cpu_error error = {.status = WEFT_OK};

    task->work(task->argument, &error);
    pthread_mutex_lock(&stream->lock);
    if (error.status != WEFT_OK && stream->error.status == WEFT_OK) stream->error = error;
    if (--stream->pending == 0) pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    wf_cpu_free(task);
}

static void *serve(void *argument)
{
    struct wf_cpu_stream *stream = argument;
    struct task *task;

    current = stream;
    for (;;) {
        pthread_mutex_lock(&stream->lock);
        while (stream->first == NULL && !stream->closing)
            pthread_cond_wait(&stream->changed, &stream->lock);
        task = stream->first;
        if (task != NULL) {
            stream->first = task->next;
            if (stream->first == NULL) stream->last = NULL;
        }
        pthread_mutex_unlock(&stream->lock);
        if (task == NULL) return NULL;
        work_off(stream, task);
    }
}

weft_status wf_cpu_stream_create(void *device, void **out)
{
    struct wf_cpu_stream *stream = wf_cpu_alloc(sizeof *stream);
    int error;

    (void)device;
    if (stream == NULL) return wf_cpu_fail_memory(sizeof *stream);
    pthread_mutex_init(&stream->lock, NULL);
    wf_cpu_condition_create(&stream->changed);
    error = pthread_create(&stream->thread, NULL, serve, stream);
    if (error != 0) {
        pthread_cond_destroy(&stream->changed);
        pthread_mutex_destroy(&stream->lock);
        wf_cpu_free(stream);
        return wf_cpu_fail_errno(WEFT_ERR_SYSTEM, error, "no thread for a stream");
    }
    pthread_setname_np(stream->thread, "weft-stream");
    *out = stream;
    return WEFT_OK;
}

void wf_cpu_stream_destroy(void *device, void *handle)
{
    struct wf_cpu_stream *stream = handle;

    (void)device;
    if (stream == NULL) return;
    pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_cond_destroy(&stream->changed);
    pthread_mutex_destroy(&stream->lock);
    wf_cpu_free(stream);
}

weft_status wf_cpu_stream_query(void *device, void *handle)
{
    struct wf_cpu_stream *stream = handle;
    struct wf_cpu_error error;
    bool pending;

    (void)device;
    if (stream == NULL) return WEFT_OK;
    pthread_mutex_lock(&stream->lock);
    error = stream->error;
    pending = stream->pending > 0;
    pthread_mutex_unlock(&stream->lock);
    if (error.status != WEFT_OK) return wf_cpu_error_report(&error);
    return pending ? WEFT_IN_PROGRESS : WEFT_OK;
}

weft_status wf_cpu_stream_wait(void *device, void *handle, int64_t timeout_ns)
{
    struct wf_cpu_stream *stream = handle;
    uint64_t deadline = wf_cpu_deadline(timeout_ns), pending;
    struct wf_cpu_error error;

    (void)device;
    if (stream == NULL) return WEFT_OK;
    pthread_mutex_lock(&stream->lock);
    while (stream->pending > 0)
        if (!wf_cpu_condition_wait(&stream->changed, &stream->lock, deadline)) break;
    pending = stream->pending;
    error = stream->error;
    pthread_mutex_unlock(&stream->lock);
    if (pending > 0)
        return wf_cpu_fail(WEFT_ERR_TIMEOUT, "stream: %llu tasks not done after %.3f s",
                           (unsigned long long)pending, (double)timeout_ns * 1e-9);
    return wf_cpu_error_report(&error);
}

weft_status wf_cpu_stream_run(void *handle, wf_cpu_work work, void *argument, size_t bytes)
{
    struct wf_cpu_stream *stream = handle;
    struct task *task;

    if (stream == NULL) {
        struct wf_cpu_error error = {.status = WEFT_OK};

        work(argument, &error);
        return wf_cpu_error_report(&error);
    }
    task = wf_cpu_alloc(sizeof *task + bytes);
    if (task == NULL) return wf_cpu_fail_memory(sizeof *task + bytes);
    task->work = work;
    memcpy(task->argument, argument, bytes);
    pthread_mutex_lock(&stream->lock);
    if (stream->last != NULL)
        stream->last->next = task;
    else
        stream->first = task;
    stream->last = task;
    stream->pending++;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return WEFT_OK;
}

struct call {
    void (*fn)(void *);
    void *argument;
};

static void run_call(void *argument, struct wf_cpu_error *error)
{
    struct call *call = argument;

    (void)error;
    call->fn(call->argument);
}

weft_status wf_cpu_stream_call(void *device, void *stream, void (*fn)(void *), void *argument)
{
    struct call call = {fn, argument};

    (void)device;
    if (fn == NULL) return wf_cpu_fail(WEFT_ERR_INVALID, "stream_call: the function is NULL");
    return wf_cpu_stream_run(stream, run_call, &call, sizeof call);
}
