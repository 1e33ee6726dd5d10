/* record.c - records that start, finish and fail, and their words. */
#include "trace.h"

#include "weft/cost.h"

#include <stdio.h>

static bool is_observed(const struct wf_trace *trace)
{
    return atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0;
}

void wf_trace_start(struct wf_trace *trace, struct wf_submitted submitted)
{
    uint64_t now = wf_ticks();

    if (WF_LOAD(submitted.record, id) != submitted.id) return;
    WF_STORE(submitted.record, started, now);
    if (is_observed(trace))
        wf_observers_call(trace, WF_CALL_STARTED, submitted.record, submitted.id);
}

/* Set the end of RECORD, which was submitted as ID.  Of several threads, one does it. */
static void end_record(struct wf_trace *trace, weft_record *record, uint64_t id, weft_status status,
                       uint64_t now)
{
    uint8_t submitted = WEFT_RECORD_SUBMITTED;
    uint8_t state = status == WEFT_OK ? WEFT_RECORD_FINISHED : WEFT_RECORD_FAILED;

    if (status != WEFT_OK) {
        WF_STORE(record, status, status);
        if (WF_LOAD(record, waits_for) < 0)
            WF_STORE(record, waits_for, wf_trace_wait_of(trace, WF_LOAD(record, comm)));
    } else if (WF_LOAD(record, finished) == 0) {
        WF_STORE(record, finished, now);
    }
    if (__atomic_compare_exchange_n(&record->state, &submitted, state, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED) &&
        is_observed(trace))
        wf_observers_call(trace, WF_CALL_FINISHED, record, id);
}

weft_status wf_trace_fail(struct wf_trace *trace, struct wf_submitted submitted, weft_status status)
{
    if (WF_LOAD(submitted.record, id) == submitted.id)
        end_record(trace, submitted.record, submitted.id, status, 0);
    return status;
}

/* ---- records that end together ---- */

/* Another thread writes a record within a fraction of a microsecond, unless it is stopped. */
#define TRIES 1000

/* True if RECORD is the one with ID. */
static bool is_record(const weft_record *record, uint64_t id)
{
    for (int i = 0; i < TRIES; i++) {
        uint64_t found = __atomic_load_n(&record->id, __ATOMIC_ACQUIRE);

        if (found != WF_WRITING) return found == id;
    }
    return false;
}

/* End the records of a chain that are on STREAM, or with ALL all of them: with success, or with
 * FAILED those whose communicator has failed.  A finished record ends the walk, so that all walks
 * together are as long as the chain. */
static void end_chain(struct wf_trace *trace, uint64_t id, uint64_t stream, bool all, bool failed)
{
    uint64_t now = wf_ticks();

    for (uint64_t i = 0; i <= trace->mask && id != 0; i++) {
        weft_record *record = &trace->records[id & trace->mask];
        weft_status status = WEFT_OK;
        uint8_t state;

        if (!is_record(record, id)) return; /* overwritten, and so are those before it */
        state = WF_LOAD(record, state);
        if (all || WF_LOAD(record, stream) == stream) {
            if (state == WEFT_RECORD_FINISHED) return;
            if (failed) status = wf_trace_failure_of(trace, WF_LOAD(record, comm));
            if (state == WEFT_RECORD_SUBMITTED && failed == (status != WEFT_OK))
                end_record(trace, record, id, status, now);
        }
        id = WF_LOAD(record, reserved);
    }
}

void wf_trace_start_chain(struct wf_trace *trace, uint64_t newest)
{
    uint64_t id = newest;

    for (uint64_t i = 0; i <= trace->mask && id != 0; i++) {
        weft_record *record = &trace->records[id & trace->mask];

        if (!is_record(record, id)) return;
        if (WF_LOAD(record, state) == WEFT_RECORD_SUBMITTED)
            wf_trace_start(trace, (struct wf_submitted){record, id});
        id = WF_LOAD(record, reserved);
    }
}

void wf_trace_finish_chain(struct wf_trace *trace, uint64_t newest, uint64_t stream, bool all)
{
    end_chain(trace, newest, stream, all, false);
}

void wf_trace_fail_chain(struct wf_trace *trace, uint64_t newest, uint64_t stream)
{
    end_chain(trace, newest, stream, false, true);
}

void wf_trace_fail_since(struct wf_trace *trace, uint64_t first, uint64_t comm, weft_status status)
{
    uint64_t last = atomic_load_explicit(&trace->segment->next, memory_order_relaxed);

    if (last > trace->mask && first < last - trace->mask - 1) first = last - trace->mask - 1;
    for (uint64_t id = first + 1; id <= last; id++) {
        weft_record *record = &trace->records[id & trace->mask];

        if (is_record(record, id) && WF_LOAD(record, comm) == comm &&
            WF_LOAD(record, state) == WEFT_RECORD_SUBMITTED)
            end_record(trace, record, id, status, 0);
    }
}

bool wf_trace_read(const struct wf_trace *trace, uint64_t id, weft_record *out)
{
    return wf_record_copy(&trace->records[id & trace->mask], id, out);
}

/* Every field is read on its own: the record may change meanwhile, and then its id does. */
bool wf_record_copy(const weft_record *record, uint64_t id, weft_record *out)
{
    if (id == 0 || __atomic_load_n(&record->id, __ATOMIC_ACQUIRE) != id) return false;
    /* First, because it is the last that an end of the record sets. */
    out->state = __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
#define COPY(field) out->field = WF_LOAD(record, field)
    COPY(comm), COPY(sequence), COPY(sent), COPY(received), COPY(plan), COPY(submitted);
    COPY(started), COPY(finished), COPY(stream), COPY(reserved), COPY(binding), COPY(step);
    COPY(operation), COPY(step_kind), COPY(dtype), COPY(reduction), COPY(flags);
    COPY(peer), COPY(waits_for), COPY(comm_name), COPY(axes), COPY(label), COPY(status);
    COPY(parent);
#undef COPY
    if (out->state == WEFT_RECORD_SUBMITTED) out->finished = 0;
    out->id = id;
    atomic_thread_fence(memory_order_acquire);
    return __atomic_load_n(&record->id, __ATOMIC_RELAXED) == id;
}

const char *weft_record_operation_name(enum weft_record_operation operation)
{
#define NAME(name, value, text) [value] = text,
    static const char *const names[WEFT_RECORD_OPERATION_COUNT] = {
        WEFT_RECORD_OPERATION_LIST(NAME)};
#undef NAME

    return (uint32_t)operation < WEFT_RECORD_OPERATION_COUNT ? names[operation] : NULL;
}

/* A step of a plan has the name of its kind, whichever way it runs. */
const char *wf_record_kind(const weft_record *record)
{
    const char *name =
        record->step_kind != WEFT_NO_STEP_KIND
            ? weft_step_name((enum weft_step_kind)record->step_kind)
            : weft_record_operation_name((enum weft_record_operation)record->operation);

    return name != NULL ? name : "unknown operation";
}

size_t wf_record_describe(const weft_record *record, const char *along, char *buffer,
                          size_t capacity)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const char *name = wf_record_kind(record), *gap = along[0] != '\0' ? " " : "";
    uint64_t bytes = record->sent > record->received ? record->sent : record->received;
    double size = (double)bytes;
    size_t unit = 0;
    int length;

    for (; size >= 1024 && unit + 1 < WF_COUNT(units); unit++)
        size /= 1024;
    if (wf_record_is_creation(record) && record->axes != 0) gap = " by ranks ";
    if (bytes == 0)
        length = snprintf(buffer, capacity, "%s%s%s", name, gap, along);
    else
        length = kit_print(buffer, capacity, "%s%s%s %.*f %s", name, gap, along, unit > 0 ? 1 : 0,
                           size, units[unit]);
    return length > 0 ? (size_t)length : 0;
}

weft_status wf_record_print(const char *function, const weft_record *record, const char *along,
                            char *text, size_t size, size_t *needed)
{
    size_t length;

    if (text == NULL && size > 0) return wf_fail_null(function, "text");
    length = wf_record_describe(record, along, text, size);
    if (needed != NULL) *needed = length;
    return WEFT_OK;
}
