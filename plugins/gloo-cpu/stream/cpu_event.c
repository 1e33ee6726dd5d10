/* cpu_event.c - events: marks in streams.
 *
 * A mark is pending from its record until its stream reaches it.  An event refers to its newest
 * mark.  An event that is recorded again while a mark is pending uses another mark.  Each mark is
 * therefore written by one stream at a time, without a lock.  An event owns its marks.  It is freed
 * when it is destroyed and no queued task refers to it. */
#include "cpu_stream.h"

#include "cpu_bell.h"

#include <pthread.h>

struct mark {
    struct mark *next;
    _Atomic(uint64_t) begun, ended; /* number of records and completions; pending while they
                                       differ */
    _Atomic(uint64_t) time_ns;      /* of the completion */
    _Atomic(bool) failed;           /* the stream failed before it reached the mark; ERROR
                                       describes the failure */
    struct cpu_error error;         /* protected by the event's lock */
};

struct cpu_event {
    _Atomic(struct mark *) marks, newest;
    _Atomic(uint64_t) users;
    struct cpu_bell reached;
    pthread_mutex_t lock; /* protects the errors only */
};

/* The TURN-th use of a mark. */
struct passage {
    struct cpu_event *event;
    struct mark *mark;
    uint64_t turn;
};

static void hold(struct cpu_event *event)
{
    atomic_fetch_add(&event->users, 1);
}

static void drop(struct cpu_event *event)
{
    struct mark *next;

    if (atomic_fetch_sub(&event->users, 1) > 1) return;
    for (struct mark *mark = atomic_load(&event->marks); mark != NULL; mark = next) {
        next = mark->next;
        plug_free(mark);
    }
    pthread_mutex_destroy(&event->lock);
    plug_free(event);
}

static weft_status add_mark(struct cpu_event *event, uint64_t begun, struct mark **out)
{
    struct mark *mark = plug_alloc(sizeof *mark);

    if (mark == NULL) return plug_fail_memory(sizeof *mark);
    atomic_store(&mark->begun, begun);
    mark->next = atomic_load(&event->marks);
    while (!atomic_compare_exchange_weak(&event->marks, &mark->next, mark))
        continue;
    *out = mark;
    return WEFT_OK;
}

weft_status cpu_event_create(void *device, void **out)
{
    struct cpu_event *event = plug_alloc(sizeof *event);
    struct mark *mark;
    weft_status status;

    (void)device;
    if (event == NULL) return plug_fail_memory(sizeof *event);
    status = add_mark(event, 0, &mark);
    if (status != WEFT_OK) {
        plug_free(event);
        return status;
    }
    pthread_mutex_init(&event->lock, NULL);
    atomic_store(&event->newest, mark);
    atomic_store(&event->users, 1);
    *out = event;
    return WEFT_OK;
}

void cpu_event_destroy(void *device, void *event)
{
    (void)device;
    if (event != NULL) drop(event);
}

static bool begin(struct mark *mark, uint64_t *turn)
{
    uint64_t begun = atomic_load(&mark->begun);

    if (atomic_load(&mark->ended) != begun) return false;
    *turn = begun + 1;
    return atomic_compare_exchange_strong(&mark->begun, &begun, *turn);
}

/* Begin a mark that is not pending. */
static weft_status begin_any(struct cpu_event *event, struct passage *passage)
{
    for (struct mark *mark = atomic_load(&event->marks); mark != NULL; mark = mark->next)
        if (begin(mark, &passage->turn)) {
            passage->mark = mark;
            return WEFT_OK;
        }
    passage->turn = 1;
    return add_mark(event, 1, &passage->mark);
}

static void note_error(struct passage *passage, const struct cpu_error *error)
{
    if (error != NULL) {
        pthread_mutex_lock(&passage->event->lock);
        passage->mark->error = *error;
        pthread_mutex_unlock(&passage->event->lock);
    }
    atomic_store(&passage->mark->failed, error != NULL);
}

static void pass(void *argument, struct cpu_error *error)
{
    struct passage *passage = argument;

    (void)error;
    note_error(passage, cpu_stream_error());
    atomic_store(&passage->mark->time_ns, plug_now());
    atomic_store(&passage->mark->ended, passage->turn);
    cpu_bell_ring(&passage->event->reached);
    drop(passage->event);
}

weft_status cpu_event_record(void *device, void *handle, void *stream)
{
    struct cpu_event *event = handle;
    struct passage passage = {.event = event};
    weft_status status;

    (void)device;
    PLUG_TRY(begin_any(event, &passage));
    hold(event);
    atomic_store(&event->newest, passage.mark);
    status = cpu_stream_run(stream, pass, &passage, sizeof passage);
    if (status != WEFT_OK) pass(&passage, NULL);
    return status;
}

static bool has_passed(const void *argument)
{
    const struct passage *passage = argument;

    return atomic_load(&passage->mark->ended) >= passage->turn;
}

/* The newest mark in its current use. */
static struct passage newest_of(struct cpu_event *event)
{
    struct passage passage = {.event = event, .mark = atomic_load(&event->newest)};

    passage.turn = atomic_load(&passage.mark->begun);
    return passage;
}

static weft_status report(const struct passage *passage)
{
    struct cpu_error error;

    if (!atomic_load(&passage->mark->failed)) return WEFT_OK;
    pthread_mutex_lock(&passage->event->lock);
    error = passage->mark->error;
    pthread_mutex_unlock(&passage->event->lock);
    return cpu_error_report(&error);
}

weft_status cpu_event_query(void *device, void *event)
{
    struct passage passage = newest_of(event);

    (void)device;
    return has_passed(&passage) ? report(&passage) : WEFT_IN_PROGRESS;
}

weft_status cpu_event_wait(void *device, void *handle, int64_t timeout_ns)
{
    struct cpu_event *event = handle;
    struct passage passage = newest_of(event);

    (void)device;
    if (!has_passed(&passage) &&
        !cpu_bell_wait(&event->reached, has_passed, &passage, cpu_deadline(timeout_ns)))
        return plug_fail(WEFT_ERR_TIMEOUT, "event: not complete after %.3f s",
                         (double)timeout_ns * 1e-9);
    return report(&passage);
}

/* The failure of the other stream stays there.  This stream only waits. */
static void wait_until_passed(void *argument, struct cpu_error *error)
{
    struct passage *passage = argument;

    (void)error;
    cpu_bell_wait(&passage->event->reached, has_passed, passage, UINT64_MAX);
    drop(passage->event);
}

weft_status cpu_stream_wait_event(void *device, void *stream, void *handle)
{
    struct cpu_event *event = handle;
    struct passage passage = newest_of(event);
    weft_status status;

    (void)device;
    hold(event);
    status = cpu_stream_run(stream, wait_until_passed, &passage, sizeof passage);
    if (status != WEFT_OK) drop(event);
    return status;
}

weft_status cpu_event_elapsed(void *device, void *from, void *to, int64_t *nanoseconds)
{
    struct passage ends[] = {newest_of(from), newest_of(to)};

    (void)device;
    for (int i = 0; i < 2; i++)
        if (ends[i].turn == 0 || !has_passed(&ends[i]))
            return plug_fail(WEFT_ERR_INVALID, "event_elapsed: the %s event is not complete",
                             i == 0 ? "first" : "second");
    *nanoseconds =
        (int64_t)atomic_load(&ends[1].mark->time_ns) - (int64_t)atomic_load(&ends[0].mark->time_ns);
    return WEFT_OK;
}
