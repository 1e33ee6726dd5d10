/* gpu_stream.c - streams of the simulated device, one thread each, and its events. */
#include "gpu.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct work {
    struct work *next;
    void (*run)(void *self);
    max_align_t self[];
};

struct sg_stream {
    int device;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct work *first, **last;
    bool is_busy, is_ending;
    struct sg_stream *next; /* of all streams */
};

/* The last record of an event; several waiters may refer to one. */
struct mark {
    atomic_int holders, is_done;
    double milliseconds;
};

static pthread_mutex_t marks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reached = PTHREAD_COND_INITIALIZER; /* of any mark */

struct sg_event {
    pthread_mutex_t lock;
    struct mark *mark;
};

static pthread_mutex_t defaults_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sg_stream *all;
static struct sg_stream *defaults[SG_MAX_DEVICES];
static _Thread_local int current;
static atomic_int broken;

/* ---- the device ---- */

long sg_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text != NULL && text[0] != '\0' ? strtol(text, NULL, 0) : otherwise;
}

int sg_device_count(void)
{
    return (int)sg_setting("STANDIN_DEVICES", 8);
}

int sg_current(void)
{
    return current;
}

void sg_set_current(int device)
{
    current = device;
}

int sg_broken(void)
{
    return atomic_load(&broken);
}

void sg_break(int code)
{
    atomic_store(&broken, code);
}

const char *sg_error_name(int code)
{
    static _Thread_local char text[32];

    snprintf(text, sizeof text, "STANDIN_ERROR_%d", code);
    return text;
}

const char *sg_error_text(int code)
{
    switch (code) {
    case SG_OK:
        return "no error";
    case SG_OUT_OF_MEMORY:
        return "out of memory";
    case SG_NO_DEVICE:
        return "no device is detected";
    case SG_LAUNCH_FAILED:
        return "unspecified launch failure";
    default:
        return "some error";
    }
}

/* ---- streams ---- */

static void *serve(void *given)
{
    struct sg_stream *stream = given;
    struct work *work;

    sg_set_current(stream->device);
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        while (stream->first == NULL && !stream->is_ending)
            pthread_cond_wait(&stream->changed, &stream->lock);
        work = stream->first;
        if (work == NULL) break;
        stream->first = work->next;
        if (stream->first == NULL) stream->last = &stream->first;
        stream->is_busy = true;
        pthread_mutex_unlock(&stream->lock);
        if (sg_broken() == SG_OK) work->run(work->self);
        free(work);
        pthread_mutex_lock(&stream->lock);
        stream->is_busy = false;
        pthread_cond_broadcast(&stream->changed);
    }
    pthread_mutex_unlock(&stream->lock);
    return NULL;
}

int sg_stream_create(struct sg_stream **out)
{
    struct sg_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL) return SG_OUT_OF_MEMORY;
    stream->device = sg_current();
    stream->last = &stream->first;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_cond_init(&stream->changed, NULL);
    if (pthread_create(&stream->thread, NULL, serve, stream) != 0) {
        free(stream);
        return SG_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&all_lock);
    stream->next = all;
    all = stream;
    pthread_mutex_unlock(&all_lock);
    *out = stream;
    return SG_OK;
}

static void forget(struct sg_stream *stream)
{
    pthread_mutex_lock(&all_lock);
    for (struct sg_stream **at = &all; *at != NULL; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    pthread_mutex_unlock(&all_lock);
}

int sg_stream_destroy(struct sg_stream *stream)
{
    if (stream == NULL) return SG_INVALID_HANDLE;
    forget(stream);
    pthread_mutex_lock(&stream->lock);
    stream->is_ending = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    pthread_join(stream->thread, NULL);
    pthread_mutex_destroy(&stream->lock);
    pthread_cond_destroy(&stream->changed);
    free(stream);
    return SG_OK;
}

/* The default streams exist until the process ends. */
static struct sg_stream *resolve(struct sg_stream *stream)
{
    int device = sg_current();

    if (stream != NULL) return stream;
    pthread_mutex_lock(&defaults_lock);
    if (defaults[device] == NULL && sg_stream_create(&defaults[device]) != SG_OK) abort();
    stream = defaults[device];
    pthread_mutex_unlock(&defaults_lock);
    return stream;
}

/* A rank that waits asks again and again.  It may not take the processor from the threads that do
 * the work, so an answer of "not ready" takes up to a millisecond.  LOCK is held. */
static void wait_a_little(pthread_cond_t *changed, pthread_mutex_t *lock)
{
    struct timespec limit;

    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += 1000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    pthread_cond_clockwait(changed, lock, CLOCK_MONOTONIC, &limit);
}

static bool is_idle(struct sg_stream *stream, bool waits)
{
    bool idle;

    pthread_mutex_lock(&stream->lock);
    if (waits && (stream->first != NULL || stream->is_busy))
        wait_a_little(&stream->changed, &stream->lock);
    idle = stream->first == NULL && !stream->is_busy;
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

int sg_stream_query(struct sg_stream *given)
{
    struct sg_stream *stream = resolve(given);

    if (sg_broken() != SG_OK) return sg_broken();
    return is_idle(stream, true) ? SG_OK : SG_NOT_READY;
}

int sg_stream_sync(struct sg_stream *given)
{
    struct sg_stream *stream = resolve(given);

    pthread_mutex_lock(&stream->lock);
    while (stream->first != NULL || stream->is_busy)
        pthread_cond_wait(&stream->changed, &stream->lock);
    pthread_mutex_unlock(&stream->lock);
    return sg_broken();
}

/* Streams of other devices are created and destroyed meanwhile. */
void sg_device_sync(void)
{
    int device = sg_current();
    bool idle = false;

    while (!idle) {
        idle = true;
        pthread_mutex_lock(&all_lock);
        for (struct sg_stream *stream = all; stream != NULL; stream = stream->next)
            if (stream->device == device && !is_idle(stream, false)) idle = false;
        pthread_mutex_unlock(&all_lock);
        if (!idle) nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

int sg_enqueue(struct sg_stream *given, void (*run)(void *self), const void *self, size_t bytes)
{
    struct sg_stream *stream = resolve(given);
    struct work *work;

    if (sg_is_calling()) return SG_NOT_PERMITTED;
    work = calloc(1, sizeof *work + bytes);
    if (work == NULL) return SG_OUT_OF_MEMORY;
    if (sg_broken() != SG_OK) {
        free(work);
        return sg_broken();
    }
    work->run = run;
    memcpy(work->self, self, bytes);
    pthread_mutex_lock(&stream->lock);
    *stream->last = work;
    stream->last = &work->next;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
    return SG_OK;
}

/* ---- events ---- */

static struct mark *hold(struct mark *mark)
{
    if (mark != NULL) atomic_fetch_add(&mark->holders, 1);
    return mark;
}

static void drop(struct mark *mark)
{
    if (mark != NULL && atomic_fetch_sub(&mark->holders, 1) == 1) free(mark);
}

static struct mark *mark_of(struct sg_event *event)
{
    struct mark *mark;

    pthread_mutex_lock(&event->lock);
    mark = hold(event->mark);
    pthread_mutex_unlock(&event->lock);
    return mark;
}

int sg_event_create(struct sg_event **out)
{
    struct sg_event *event = calloc(1, sizeof *event);

    if (event == NULL) return SG_OUT_OF_MEMORY;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return SG_OK;
}

int sg_event_destroy(struct sg_event *event)
{
    if (event == NULL) return SG_INVALID_HANDLE;
    drop(event->mark);
    pthread_mutex_destroy(&event->lock);
    free(event);
    return SG_OK;
}

static bool is_reached(struct mark *mark)
{
    if (atomic_load(&mark->is_done)) return true;
    pthread_mutex_lock(&marks_lock);
    if (!atomic_load(&mark->is_done)) wait_a_little(&reached, &marks_lock);
    pthread_mutex_unlock(&marks_lock);
    return atomic_load(&mark->is_done);
}

static void reach(void *self)
{
    struct mark *mark = *(struct mark **)self;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    mark->milliseconds = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    pthread_mutex_lock(&marks_lock);
    atomic_store(&mark->is_done, 1);
    pthread_cond_broadcast(&reached);
    pthread_mutex_unlock(&marks_lock);
    drop(mark);
}

int sg_event_record(struct sg_event *event, struct sg_stream *stream)
{
    struct mark *mark = calloc(1, sizeof *mark);
    int result;

    if (mark == NULL) return SG_OUT_OF_MEMORY;
    atomic_store(&mark->holders, 2);
    result = sg_enqueue(stream, reach, &mark, sizeof mark);
    if (result != SG_OK) {
        free(mark);
        return result;
    }
    pthread_mutex_lock(&event->lock);
    drop(event->mark);
    event->mark = mark;
    pthread_mutex_unlock(&event->lock);
    return SG_OK;
}

int sg_event_query(struct sg_event *event)
{
    struct mark *mark = mark_of(event);
    bool done = mark == NULL || is_reached(mark);

    drop(mark);
    if (sg_broken() != SG_OK) return sg_broken();
    return done ? SG_OK : SG_NOT_READY;
}

static void await(void *self)
{
    struct mark *mark = *(struct mark **)self;

    while (!is_reached(mark) && sg_broken() == SG_OK) {
    }
    drop(mark);
}

int sg_stream_wait_event(struct sg_stream *stream, struct sg_event *event)
{
    struct mark *mark = mark_of(event);
    int result = SG_OK;

    if (mark != NULL) result = sg_enqueue(stream, await, &mark, sizeof mark);
    if (result != SG_OK) drop(mark);
    return result;
}

int sg_event_elapsed(float *milliseconds, struct sg_event *from, struct sg_event *to)
{
    struct mark *a = mark_of(from), *b = mark_of(to);
    int result = SG_INVALID_HANDLE;

    if (a != NULL && b != NULL) result = SG_NOT_READY;
    if (result == SG_NOT_READY && atomic_load(&a->is_done) && atomic_load(&b->is_done)) {
        *milliseconds = (float)(b->milliseconds - a->milliseconds);
        result = SG_OK;
    }
    drop(a);
    drop(b);
    return result;
}
