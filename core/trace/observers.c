/* observers.c - callbacks for records, and ranges for tools of the backend's vendor.
 *
 * A range encloses the call that submits an operation, not its work on a stream.  The plugin gives
 * it to the tool.
 *
 * A slot is used while its bit is set.  A caller counts itself in before it looks at the bit, and
 * removal clears the bit before it looks at the count; both are sequentially consistent, so at
 * least one of them sees the other. */
#include "trace.h"

#include <sched.h>

/* The callback that this thread runs; TRACE is NULL outside.  Operations that it begins have no
 * callbacks, or there would be no end. */
static _Thread_local struct {
    const struct wf_trace *trace;
    uint32_t slot;
} running;

weft_status wf_observers_add(struct wf_trace *trace, const weft_observer *observer, uint32_t *slot)
{
    weft_status status = WEFT_OK;
    uint32_t used, free_slot;

    pthread_mutex_lock(&trace->lock);
    used = atomic_load(&trace->observing);
    for (free_slot = 0; free_slot < WF_OBSERVERS && (used >> free_slot & 1) != 0;)
        free_slot++;
    if (free_slot == WF_OBSERVERS) {
        status = wf_fail(WEFT_ERR_NO_MEMORY,
                         "the context has %d observers, the maximum; WEFT_TRACE, WEFT_METRICS and "
                         "counting use one each; release one with weft_observation_release",
                         WF_OBSERVERS);
    } else {
        trace->observers[free_slot].observer = *observer;
        atomic_fetch_or(&trace->observing, 1u << free_slot);
        *slot = free_slot;
    }
    pthread_mutex_unlock(&trace->lock);
    return status;
}

void wf_observers_keep(struct wf_trace *trace, uint32_t slot)
{
    pthread_mutex_lock(&trace->lock);
    trace->lasting |= 1u << slot;
    pthread_mutex_unlock(&trace->lock);
}

void wf_observers_remove(struct wf_trace *trace, uint32_t slot)
{
    uint32_t own = running.trace == trace && running.slot == slot ? 1 : 0;

    pthread_mutex_lock(&trace->lock);
    atomic_fetch_and(&trace->observing, ~(1u << slot));
    if (trace->lasting >> slot & 1) trace->lasting &= ~(1u << slot);
    while (atomic_load(&trace->observers[slot].running) > own)
        sched_yield();
    pthread_mutex_unlock(&trace->lock);
}

bool wf_observers_is_inside(const struct wf_trace *trace)
{
    return running.trace == trace;
}

/* Enter SLOT; false if it is not used, or if this thread runs a callback. */
static bool enter(struct wf_trace *trace, uint32_t slot)
{
    if (running.trace != NULL) return false;
    atomic_fetch_add(&trace->observers[slot].running, 1);
    if ((atomic_load(&trace->observing) >> slot & 1) != 0) {
        running.trace = trace;
        running.slot = slot;
        return true;
    }
    atomic_fetch_sub(&trace->observers[slot].running, 1);
    return false;
}

static void leave(struct wf_trace *trace, uint32_t slot)
{
    running.trace = NULL;
    atomic_fetch_sub(&trace->observers[slot].running, 1);
}

static void call(const weft_observer *observer, enum wf_callback callback,
                 const weft_record *record)
{
    void (*function)(void *, const weft_record *) = NULL;

    switch (callback) {
    case WF_CALL_SUBMITTED:
        function = observer->submitted;
        break;
    case WF_CALL_STARTED:
        function = observer->started;
        break;
    case WF_CALL_FINISHED:
        function = observer->finished;
        break;
    case WF_CALL_PLANNED:
        function = observer->planned;
        break;
    case WF_CALL_REDISTRIBUTES:
        function = observer->redistributes;
        break;
    }
    if (function != NULL) function(observer->user, record);
}

/* ---- ranges ---- */

void wf_ranges_mark(struct wf_trace *trace, const weft_device_table *table)
{
    trace->ranges = table;
    atomic_fetch_or(&trace->observing, WF_MARKS_RANGES);
}

/* Begin the range of RECORD; NULL: the recorder no longer has it. */
static void begin_range(const struct wf_trace *trace, const weft_record *record)
{
    weft_range range = {
        .struct_size = sizeof range, .name = "unknown operation", .category = "unknown operation"};
    char name[384];

    if (record != NULL) {
        uint32_t along = record->axes != 0 ? record->axes : record->comm_name;

        (void)wf_record_describe(record, wf_trace_text(trace, along), name, sizeof name);
        range.name = name;
        range.category = wf_record_kind(record);
        range.bytes = record->sent > record->received ? record->sent : record->received;
    }
    trace->ranges->range_begin(&range);
}

static bool is_submission(enum wf_callback callback)
{
    return callback != WF_CALL_STARTED && callback != WF_CALL_FINISHED;
}

/* ---- calls ---- */

void wf_observers_call(struct wf_trace *trace, enum wf_callback callback, const weft_record *record,
                       uint64_t id)
{
    uint32_t used = atomic_load_explicit(&trace->observing, memory_order_relaxed);
    weft_record copy;
    bool copied = wf_record_copy(record, id, &copy);

    /* Not an observer: a range that ends must have begun, and removal has no part in it. */
    if ((used & WF_MARKS_RANGES) != 0 && is_submission(callback))
        begin_range(trace, copied ? &copy : NULL);
    if (!copied) return;
    used &= WF_MARKS_RANGES - 1;
    for (uint32_t slot = 0; used >> slot != 0; slot++) {
        if ((used & trace->lasting) >> slot & 1) {
            call(&trace->observers[slot].observer, callback, &copy);
            continue;
        }
        if ((used >> slot & 1) == 0 || !enter(trace, slot)) continue;
        call(&trace->observers[slot].observer, callback, &copy);
        leave(trace, slot);
    }
}

void wf_observers_fail(struct wf_trace *trace, uint64_t comm, weft_status status, const char *text)
{
    for (uint32_t slot = 0; slot < WF_OBSERVERS; slot++) {
        const weft_observer *observer = &trace->observers[slot].observer;

        if (!enter(trace, slot)) continue;
        if (observer->failed != NULL) observer->failed(observer->user, comm, status, text);
        leave(trace, slot);
    }
}
