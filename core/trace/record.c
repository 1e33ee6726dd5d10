/* record.c - records that start, finish and fail, and their words. */
#include "trace.h"

#include <stdio.h>

static bool is_observed(const struct wf_trace *trace)
{
    return atomic_load_explicit(&trace->observing, memory_order_relaxed) != 0;
}

void wf_trace_start(struct wf_trace *trace, struct wf_submitted submitted)
{
    if (WF_LOAD(submitted.record, id) != submitted.id) return;
    WF_STORE(submitted.record, started, wf_ticks());
    if (is_observed(trace)) wf_observers_call(trace, WF_CALL_STARTED, submitted.record);
}

weft_status wf_trace_fail(struct wf_trace *trace, struct wf_submitted submitted, weft_status status)
{
    weft_record *record = submitted.record;

    if (WF_LOAD(record, id) != submitted.id) return status;
    WF_STORE(record, status, status);
    __atomic_store_n(&record->state, WEFT_RECORD_FAILED, __ATOMIC_RELEASE);
    if (is_observed(trace)) wf_observers_call(trace, WF_CALL_FINISHED, record);
    return status;
}

/* Each record is finished once, so all walks together are as long as the chain. */
void wf_trace_finish_chain(struct wf_trace *trace, uint64_t newest, const void *stream, bool all)
{
    uint64_t now = wf_ticks(), id = newest;

    for (uint64_t i = 0; i <= trace->mask && id != 0; i++) {
        weft_record *record = &trace->records[id & trace->mask];
        uint8_t submitted = WEFT_RECORD_SUBMITTED;

        if (WF_LOAD(record, id) != id) return; /* overwritten, and so are those before it */
        if (all || WF_LOAD(record, stream) == (uint64_t)(uintptr_t)stream) {
            if (WF_LOAD(record, state) != WEFT_RECORD_SUBMITTED) return;
            if (WF_LOAD(record, finished) == 0) WF_STORE(record, finished, now);
            if (__atomic_compare_exchange_n(&record->state, &submitted, WEFT_RECORD_FINISHED, false,
                                            __ATOMIC_RELEASE, __ATOMIC_RELAXED) &&
                is_observed(trace))
                wf_observers_call(trace, WF_CALL_FINISHED, record);
        }
        id = WF_LOAD(record, previous);
    }
}

void wf_trace_set_wait(struct wf_trace *trace, uint64_t id, int32_t rank)
{
    weft_record *record = &trace->records[id & trace->mask];

    if (WF_LOAD(record, id) == id) WF_STORE(record, waits_for, rank);
}

bool wf_trace_read(const struct wf_trace *trace, uint64_t id, weft_record *out)
{
    return wf_record_copy(&trace->records[id & trace->mask], id, out);
}

/* Every field is read on its own: the record may change meanwhile, and then its id does. */
bool wf_record_copy(const weft_record *record, uint64_t id, weft_record *out)
{
    if (id == 0 || __atomic_load_n(&record->id, __ATOMIC_ACQUIRE) != id) return false;
#define COPY(field) out->field = WF_LOAD(record, field)
    COPY(comm), COPY(sequence), COPY(sent), COPY(received), COPY(plan), COPY(submitted);
    COPY(started), COPY(finished), COPY(stream), COPY(previous), COPY(binding), COPY(step);
    COPY(operation), COPY(step_kind), COPY(dtype), COPY(reduction), COPY(state), COPY(flags);
    COPY(peer), COPY(waits_for), COPY(comm_name), COPY(axes), COPY(label), COPY(status);
    COPY(parent);
#undef COPY
    out->id = id;
    atomic_thread_fence(memory_order_acquire);
    return __atomic_load_n(&record->id, __ATOMIC_RELAXED) == id;
}

const char *weft_operation_name(enum weft_operation operation)
{
#define NAME(name, value, text) [value] = text,
    static const char *const names[WEFT_OP_COUNT] = {WEFT_OPERATION_LIST(NAME)};
#undef NAME

    return (uint32_t)operation < WEFT_OP_COUNT ? names[operation] : NULL;
}

size_t wf_record_describe(const weft_record *record, const char *along, char *buffer,
                          size_t capacity)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const char *name = weft_operation_name((enum weft_operation)record->operation);
    uint64_t bytes = record->sent > record->received ? record->sent : record->received;
    double size = (double)bytes;
    size_t unit = 0;
    int length;

    for (; size >= 1024 && unit + 1 < WF_COUNT(units); unit++)
        size /= 1024;
    if (bytes == 0)
        length = snprintf(buffer, capacity, "%s%s%s", name != NULL ? name : "unknown operation",
                          along[0] != '\0' ? " " : "", along);
    else
        length = snprintf(buffer, capacity, "%s%s%s %.*f %s",
                          name != NULL ? name : "unknown operation", along[0] != '\0' ? " " : "",
                          along, unit > 0 ? 1 : 0, size, units[unit]);
    return length > 0 ? (size_t)length : 0;
}
