/* cpu_event.c - marks in streams.
 *
 * Each record gives the event a new number; it is done when that number has been reached.  Queued
 * marks and waits hold a reference, so an event may be destroyed while they are pending. */
#include "stream.h"

#include <string.h>

struct wf_cpu_event {
    pthread_mutex_t lock;
    pthread_cond_t reached;
    uint64_t recorded, done; /* numbers of records; done <= recorded */
    uint64_t time_ns;        /* when DONE was reached */
    uint64_t users;
    struct wf_cpu_error error; /* of the stream, up to the mark */
};

struct mark {
    struct wf_cpu_event *event;
    uint64_t number;
};

static void hold(struct wf_cpu_event *event)
{
    pthread_mutex_lock(&event->lock);
    event->users++;
    pthread_mutex_unlock(&event->lock);
}

static void drop(struct wf_cpu_event *event)
{
    uint64_t users;

    pthread_mutex_lock(&event->lock);
    users = --event->users;
    pthread_mutex_unlock(&event->lock);
    if (users > 0) return;
    pthread_cond_destroy(&event->reached);
    pthread_mutex_destroy(&event->lock);
    wf_cpu_free(event);
}

weft_status wf_cpu_event_create(void *device, void **out)
{
    struct wf_cpu_event *event = wf_cpu_alloc(sizeof *event);

    (void)device;
    if (event == NULL) return wf_cpu_fail_memory(sizeof *event);
    pthread_mutex_init(&event->lock, NULL);
    wf_cpu_condition_create(&event->reached);
    event->users = 1;
    *out = event;
    return WEFT_OK;
}

void wf_cpu_event_destroy(void *device, void *event)
{
    (void)device;
    if (event != NULL) drop(event);
}

static void reach(void *argument, struct wf_cpu_error *error)
{
    struct mark *mark = argument;
    struct wf_cpu_event *event = mark->event;
    struct wf_cpu_stream *stream = wf_cpu_stream_current();

    (void)error;
    pthread_mutex_lock(&event->lock);
    if (mark->number > event->done) {
        event->done = mark->number;
        event->time_ns = wf_cpu_now();
        if (stream != NULL)
            event->error = *wf_cpu_stream_error(stream);
        else
            event->error.status = WEFT_OK;
    }
    pthread_cond_broadcast(&event->reached);
    pthread_mutex_unlock(&event->lock);
    drop(event);
}

weft_status wf_cpu_event_record(void *device, void *handle, void *stream)
{
    struct wf_cpu_event *event = handle;
    struct mark mark = {.event = event};
    weft_status status;

    (void)device;
    pthread_mutex_lock(&event->lock);
    event->users++;
    mark.number = ++event->recorded;
    pthread_mutex_unlock(&event->lock);
    status = wf_cpu_stream_run(stream, reach, &mark, sizeof mark);
    if (status != WEFT_OK) reach(&mark, NULL);
    return status;
}

static weft_status wait_for(struct wf_cpu_event *event, uint64_t number, int64_t timeout_ns)
{
    uint64_t deadline = timeout_ns == 0 ? 0 : wf_cpu_deadline(timeout_ns);
    struct wf_cpu_error error;
    bool done;

    pthread_mutex_lock(&event->lock);
    if (number == 0) number = event->recorded;
    while (event->done < number && deadline > 0)
        if (!wf_cpu_condition_wait(&event->reached, &event->lock, deadline)) break;
    done = event->done >= number;
    error = event->error;
    pthread_mutex_unlock(&event->lock);
    if (!done) return WEFT_IN_PROGRESS;
    return wf_cpu_error_report(&error);
}

weft_status wf_cpu_event_query(void *device, void *event)
{
    (void)device;
    return wait_for(event, 0, 0);
}

weft_status wf_cpu_event_wait(void *device, void *event, int64_t timeout_ns)
{
    weft_status status = wait_for(event, 0, timeout_ns);

    (void)device;
    if (status != WEFT_IN_PROGRESS) return status;
    return wf_cpu_fail(WEFT_ERR_TIMEOUT, "event: not reached after %.3f s",
                       (double)timeout_ns * 1e-9);
}

/* The failure of the other stream stays there: this one only waits. */
static void wait_mark(void *argument, struct wf_cpu_error *error)
{
    struct mark *mark = argument;

    (void)error;
    pthread_mutex_lock(&mark->event->lock);
    while (mark->event->done < mark->number)
        pthread_cond_wait(&mark->event->reached, &mark->event->lock);
    pthread_mutex_unlock(&mark->event->lock);
    drop(mark->event);
}

weft_status wf_cpu_stream_wait_event(void *device, void *stream, void *handle)
{
    struct wf_cpu_event *event = handle;
    struct mark mark = {.event = event};
    weft_status status;

    (void)device;
    hold(event);
    pthread_mutex_lock(&event->lock);
    mark.number = event->recorded;
    pthread_mutex_unlock(&event->lock);
    status = wf_cpu_stream_run(stream, wait_mark, &mark, sizeof mark);
    if (status != WEFT_OK) drop(event);
    return status;
}

static void read_event(struct wf_cpu_event *event, bool *done, uint64_t *time_ns)
{
    pthread_mutex_lock(&event->lock);
    *done = event->recorded > 0 && event->done == event->recorded;
    *time_ns = event->time_ns;
    pthread_mutex_unlock(&event->lock);
}

weft_status wf_cpu_event_elapsed(void *device, void *from, void *to, int64_t *nanoseconds)
{
    bool from_done, to_done;
    uint64_t begin, end;

    (void)device;
    read_event(from, &from_done, &begin);
    read_event(to, &to_done, &end);
    if (!from_done || !to_done)
        return wf_cpu_fail(WEFT_ERR_INVALID, "event_elapsed: the %s event is not reached",
                           from_done ? "second" : "first");
    *nanoseconds = (int64_t)end - (int64_t)begin;
    return WEFT_OK;
}
