/* timing.c - events around operations on streams.
 *
 * All memory and all events are made at the beginning.  An operation for which no entry is free has
 * no times. */
#include "timing.h"

#define ENTRIES    2048
#define QUEUES     64
#define SKIPPED    16 /* submissions that do not look after one that saw no complete event */
#define ANCHOR_NS  WF_SECOND_NS /* between two anchors */
#define FIRST_WAIT (10 * WF_SECOND_NS)
#define LATER_WAIT (WF_SECOND_NS / 1000)
#define NARROW_NS  20000
#define DRIFT_PPM  20

enum stage {
    STAGE_BEGUN,   /* the backend does not have it yet */
    STAGE_GROUPED, /* the backend starts it when the group ends */
    STAGE_POSTED,  /* both events are recorded */
    STAGE_CONTAINER,
    STAGE_VOID /* it has no times */
};

struct timed {
    struct timed *next, *before;
    void *begin, *end;     /* events */
    const weft_comm *comm; /* of a group */
    enum stage stage;
    weft_record record;
};

/* The operations on one stream, in order. */
struct queue {
    const void *stream;
    struct timed *first, *last;
    uint32_t skips;
    weft_record container; /* the redistribution that began last; an id of 0: none */
};

struct wf_timing {
    weft_context *context;
    const weft_device_table *table;
    pthread_mutex_t lock;
    void *stream;             /* of the anchors */
    void *anchor, *candidate; /* events */
    uint64_t anchor_ns;       /* CLOCK_MONOTONIC at the anchor */
    uint64_t width_ns;        /* time within which it was recorded; UINT64_MAX: never */
    uint64_t renew_ns;        /* when the next one is due */
    struct timed *entries, *unused;
    uint32_t queue_count;
    struct queue queues[QUEUES];
};

/* ---- the anchor ---- */

/* How far the times of the anchor may be wrong NOW_NS: clocks drift apart. */
static uint64_t error_at(const struct wf_timing *timing, uint64_t now_ns)
{
    if (timing->width_ns == UINT64_MAX) return UINT64_MAX;
    return timing->width_ns + (now_ns - timing->anchor_ns) / 1000000 * DRIFT_PPM;
}

/* Record a candidate, and read the clock before and after.  The narrower one is the anchor. */
static bool try_anchor(struct wf_timing *timing, int64_t limit_ns)
{
    void *device = timing->context->device, *old = timing->anchor;
    uint64_t before = wf_now_ns(), after;

    if (timing->table->event_record(device, timing->candidate, timing->stream) != WEFT_OK ||
        timing->table->event_wait(device, timing->candidate, limit_ns) != WEFT_OK)
        return false;
    after = wf_now_ns();
    if (after - before > error_at(timing, after)) return true;
    timing->anchor = timing->candidate;
    timing->candidate = old;
    timing->anchor_ns = before + (after - before) / 2;
    timing->width_ns = after - before;
    return true;
}

/* Renew the anchor after a second: events count in single precision, and clocks drift. */
static bool set_anchor(struct wf_timing *timing, int64_t limit_ns)
{
    bool is_set = true;

    for (int i = 0; i < 5 && is_set && (i == 0 || timing->width_ns > NARROW_NS); i++)
        is_set = try_anchor(timing, limit_ns);
    timing->renew_ns = wf_now_ns() + (uint64_t)ANCHOR_NS;
    return timing->width_ns != UINT64_MAX;
}

/* ---- entries ---- */

/* Create the events of the entries.  Fewer entries are used if that fails. */
static bool make_events(struct wf_timing *timing)
{
    void *device = timing->context->device;

    for (uint32_t i = 0; i < ENTRIES; i++) {
        struct timed *timed = &timing->entries[i];

        if (timing->table->event_create(device, &timed->begin) != WEFT_OK) timed->begin = NULL;
        if (timing->table->event_create(device, &timed->end) != WEFT_OK) timed->end = NULL;
        if (timed->begin == NULL || timed->end == NULL) break;
        timed->next = timing->unused;
        timing->unused = timed;
    }
    return timing->unused != NULL;
}

static struct queue *find_queue(struct wf_timing *timing, const void *stream)
{
    for (uint32_t i = 0; i < timing->queue_count; i++)
        if (timing->queues[i].stream == stream) return &timing->queues[i];
    return NULL;
}

static struct queue *get_queue(struct wf_timing *timing, const void *stream)
{
    struct queue *queue = find_queue(timing, stream);

    if (queue != NULL || timing->queue_count == QUEUES) return queue;
    queue = &timing->queues[timing->queue_count++];
    *queue = (struct queue){.stream = stream};
    return queue;
}

static void append(struct queue *queue, struct timed *timed)
{
    timed->next = NULL;
    timed->before = queue->last;
    if (queue->last != NULL)
        queue->last->next = timed;
    else
        queue->first = timed;
    queue->last = timed;
}

static void pop(struct wf_timing *timing, struct queue *queue)
{
    struct timed *timed = queue->first;

    queue->first = timed->next;
    if (queue->first != NULL)
        queue->first->before = NULL;
    else
        queue->last = NULL;
    timed->next = timing->unused;
    timing->unused = timed;
}

/* ---- complete work ---- */

/* Give the times of TIMED to the trace, and to its record if the recorder still has it. */
static void report(struct wf_timing *timing, struct queue *queue, struct timed *timed,
                   uint64_t started, uint64_t finished)
{
    struct wf_trace *trace = timing->context->trace;
    weft_record *record = &trace->records[timed->record.id & trace->mask];
    const weft_record *container = &queue->container;
    bool contained = container->id != 0 && (uint32_t)container->id == timed->record.parent;

    wf_export_slice(trace->export, &timed->record, started, finished, contained ? container : NULL);
    if (WF_LOAD(record, id) != timed->record.id) return;
    WF_STORE(record, started, timed->record.started);
    WF_STORE(record, finished, timed->record.finished);
    WF_STORE(record, flags, (uint8_t)(timed->record.flags | WEFT_RECORD_DEVICE_TIMES));
}

/* Take the times of TIMED, whose end event is complete. */
static void measure(struct wf_timing *timing, struct queue *queue, struct timed *timed)
{
    void *device = timing->context->device;
    int64_t begin = 0, end = 0;

    if (wf_now_ns() >= timing->renew_ns) (void)set_anchor(timing, LATER_WAIT);
    if (timing->table->event_elapsed(device, timing->anchor, timed->begin, &begin) == WEFT_OK &&
        timing->table->event_elapsed(device, timing->anchor, timed->end, &end) == WEFT_OK)
        report(timing, queue, timed, timing->anchor_ns + (uint64_t)begin,
               timing->anchor_ns + (uint64_t)end);
    else
        wf_export_drop(timing->context->trace->export, &timed->record);
}

/* True if the operation of TIMED failed before the backend had it. */
static bool has_failed(const struct wf_timing *timing, const struct timed *timed)
{
    const struct wf_trace *trace = timing->context->trace;
    const weft_record *record = &trace->records[timed->record.id & trace->mask];

    return WF_LOAD(record, id) != timed->record.id || WF_LOAD(record, state) == WEFT_RECORD_FAILED;
}

/* Handle the first entry of QUEUE.  False: it is not complete. */
static bool take_first(struct wf_timing *timing, struct queue *queue)
{
    struct timed *timed = queue->first;
    weft_status status;

    if (timed->stage == STAGE_CONTAINER) {
        queue->container = timed->record;
    } else if (timed->stage == STAGE_POSTED) {
        status = timing->table->event_query(timing->context->device, timed->end);
        if (status == WEFT_IN_PROGRESS) return false;
        if (status == WEFT_OK)
            measure(timing, queue, timed);
        else /* it failed, or a device graph has captured it */
            wf_export_drop(timing->context->trace->export, &timed->record);
    } else if (timed->stage == STAGE_VOID || has_failed(timing, timed)) {
        wf_export_drop(timing->context->trace->export, &timed->record);
    } else {
        return false;
    }
    pop(timing, queue);
    return true;
}

static void collect(struct wf_timing *timing, struct queue *queue)
{
    while (queue->first != NULL && take_first(timing, queue))
        continue;
    queue->skips = SKIPPED;
}

void wf_timing_collect(struct wf_timing *timing, const void *stream, bool any)
{
    pthread_mutex_lock(&timing->lock);
    for (uint32_t i = 0; i < timing->queue_count; i++)
        if (any || timing->queues[i].stream == stream) collect(timing, &timing->queues[i]);
    pthread_mutex_unlock(&timing->lock);
}

/* ---- new work ---- */

/* A free entry for STREAM at the end of its queue, or NULL.  The lock is held. */
static struct timed *take_entry(struct wf_timing *timing, const void *stream,
                                struct wf_submitted record)
{
    struct queue *queue = get_queue(timing, stream);
    struct timed *timed;

    if (queue == NULL) return NULL;
    if (queue->skips > 0)
        queue->skips--;
    else
        collect(timing, queue);
    for (uint32_t i = 0; timing->unused == NULL && i < timing->queue_count; i++)
        collect(timing, &timing->queues[i]);
    timed = timing->unused;
    if (timed == NULL || !wf_record_copy(record.record, record.id, &timed->record)) return NULL;
    timing->unused = timed->next;
    timed->stage = STAGE_BEGUN;
    append(queue, timed);
    return timed;
}

void wf_timing_submit(struct wf_timing *timing, const weft_comm *comm, const void *stream,
                      struct wf_submitted record)
{
    struct timed *timed;

    pthread_mutex_lock(&timing->lock);
    timed = take_entry(timing, stream, record);
    if (timed != NULL) {
        timed->comm = comm;
        if (timing->table->event_record(timing->context->device, timed->begin,
                                        (void *)(uintptr_t)stream) != WEFT_OK)
            timed->stage = STAGE_VOID;
    }
    wf_export_post(timing->context->trace->export, timed != NULL ? &timed->record : NULL);
    pthread_mutex_unlock(&timing->lock);
}

void wf_timing_contain(struct wf_timing *timing, const void *stream, struct wf_submitted record)
{
    struct timed *timed;

    pthread_mutex_lock(&timing->lock);
    timed = take_entry(timing, stream, record);
    if (timed != NULL) timed->stage = STAGE_CONTAINER;
    pthread_mutex_unlock(&timing->lock);
}

/* Record the end of TIMED, which the backend has. */
static void end(struct wf_timing *timing, const void *stream, struct timed *timed)
{
    weft_status status =
        timing->table->event_record(timing->context->device, timed->end, (void *)(uintptr_t)stream);

    timed->stage = status == WEFT_OK ? STAGE_POSTED : STAGE_VOID;
}

void wf_timing_post(struct wf_timing *timing, const weft_comm *comm, const void *stream,
                    struct wf_submitted record)
{
    struct queue *queue;
    struct timed *timed = NULL;

    pthread_mutex_lock(&timing->lock);
    queue = find_queue(timing, stream);
    if (queue != NULL) timed = queue->last;
    while (timed != NULL && timed->record.id != record.id)
        timed = timed->before;
    if (timed != NULL && timed->stage == STAGE_BEGUN) {
        if (comm != NULL && comm->group_depth > 0)
            timed->stage = STAGE_GROUPED;
        else
            end(timing, stream, timed);
    }
    pthread_mutex_unlock(&timing->lock);
}

/* The last operation of a group ends first, so that its time is inside that of the others. */
void wf_timing_post_group(struct wf_timing *timing, const weft_comm *comm, bool started)
{
    pthread_mutex_lock(&timing->lock);
    for (uint32_t i = 0; i < timing->queue_count; i++)
        for (struct timed *t = timing->queues[i].last; t != NULL; t = t->before) {
            if (t->stage != STAGE_GROUPED || t->comm != comm) continue;
            if (started)
                end(timing, timing->queues[i].stream, t);
            else
                t->stage = STAGE_VOID;
        }
    pthread_mutex_unlock(&timing->lock);
}

/* Take the times of QUEUE, and give up what is not complete. */
static void finish(struct wf_timing *timing, struct queue *queue)
{
    collect(timing, queue);
    for (; queue->first != NULL; pop(timing, queue))
        if (queue->first->stage != STAGE_CONTAINER)
            wf_export_drop(timing->context->trace->export, &queue->first->record);
}

void wf_timing_forget(struct wf_timing *timing, const void *stream)
{
    struct queue *queue;

    pthread_mutex_lock(&timing->lock);
    queue = find_queue(timing, stream);
    if (queue != NULL) {
        finish(timing, queue);
        *queue = timing->queues[--timing->queue_count];
    }
    pthread_mutex_unlock(&timing->lock);
}

/* ---- its life ---- */

static void destroy(struct wf_timing *timing)
{
    void *device = timing->context->device;

    for (uint32_t i = 0; timing->entries != NULL && i < ENTRIES; i++) {
        if (timing->entries[i].begin != NULL)
            timing->table->event_destroy(device, timing->entries[i].begin);
        if (timing->entries[i].end != NULL)
            timing->table->event_destroy(device, timing->entries[i].end);
    }
    if (timing->anchor != NULL) timing->table->event_destroy(device, timing->anchor);
    if (timing->candidate != NULL) timing->table->event_destroy(device, timing->candidate);
    if (timing->stream != NULL) timing->table->stream_destroy(device, timing->stream);
    pthread_mutex_destroy(&timing->lock);
    wf_free(timing->entries);
    wf_free(timing);
}

static bool prepare(struct wf_timing *timing)
{
    void *device = timing->context->device;

    timing->entries = wf_calloc(ENTRIES, sizeof *timing->entries);
    if (timing->entries == NULL) return false;
    if (!make_events(timing)) return false;
    if (timing->table->stream_create(device, &timing->stream) != WEFT_OK) {
        timing->stream = NULL;
        return false;
    }
    if (timing->table->event_create(device, &timing->anchor) != WEFT_OK) timing->anchor = NULL;
    if (timing->table->event_create(device, &timing->candidate) != WEFT_OK)
        timing->candidate = NULL;
    return timing->anchor != NULL && timing->candidate != NULL && set_anchor(timing, FIRST_WAIT);
}

void wf_timing_begin(weft_context *context)
{
    struct wf_timing *timing;

    if (context->trace->export == NULL || !WF_HAS(context->plugin->device, event_elapsed)) return;
    timing = wf_calloc(1, sizeof *timing);
    if (timing == NULL) return;
    timing->context = context;
    timing->table = context->plugin->device;
    timing->width_ns = UINT64_MAX;
    pthread_mutex_init(&timing->lock, NULL);
    if (!prepare(timing)) {
        wf_log(WF_LOG_NOTICE,
               "WEFT_TRACE: work on streams has the times at which the host noticed its end: %s",
               weft_last_error());
        destroy(timing);
        return;
    }
    wf_export_time_streams(context->trace->export);
    context->timing = timing;
}

void wf_timing_end(weft_context *context)
{
    struct wf_timing *timing = context->timing;

    if (timing == NULL) return;
    for (uint32_t i = 0; i < timing->queue_count; i++)
        finish(timing, &timing->queues[i]);
    destroy(timing);
    context->timing = NULL;
}
