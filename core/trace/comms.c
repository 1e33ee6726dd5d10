/* comms.c - the communicators of a rank, as its recorder lists them. */
#include "trace.h"

#include <stdio.h>
#include <string.h>

/* Bytes of a list of ranks; a longer one ends with ",...". */
#define LIST_MOST 2047
#define LIST_END  ",..."

/* "0-3,8": consecutive ranks joined. */
static void list_ranks(const int32_t *ranks, int32_t count, char out[LIST_MOST + 1])
{
    size_t used = 0;

    out[0] = '\0';
    for (int32_t first = 0, last; first < count; first = last + 1) {
        char next[32];

        last = first;
        while (last + 1 < count && ranks[last + 1] == ranks[last] + 1)
            last++;
        snprintf(next, sizeof next, last > first ? "%s%d-%d" : "%s%d", first > 0 ? "," : "",
                 ranks[first], ranks[last]);
        if (used + strlen(next) + strlen(LIST_END) > LIST_MOST) {
            snprintf(out + used, LIST_MOST + 1 - used, LIST_END);
            return;
        }
        used += (size_t)snprintf(out + used, LIST_MOST + 1 - used, "%s", next);
    }
}

static struct wf_segment_comm *find_comm(struct wf_trace *trace, uint64_t number)
{
    for (size_t i = 0; i < WF_SEGMENT_COMMS; i++)
        if (atomic_load(&trace->segment->comms[i].number) == number)
            return &trace->segment->comms[i];
    return NULL;
}

uint32_t wf_trace_list_ranks(struct wf_trace *trace, const int32_t *ranks, int32_t count)
{
    char text[LIST_MOST + 1];

    list_ranks(ranks, count, text);
    return wf_trace_intern_long(trace, text, LIST_MOST);
}

void wf_trace_add_comm(struct wf_trace *trace, uint64_t number, uint32_t name, const int32_t *ranks,
                       int32_t size, int32_t rank)
{
    uint32_t list = wf_trace_list_ranks(trace, ranks, size);
    struct wf_segment_comm *comm;

    pthread_mutex_lock(&trace->lock);
    comm = find_comm(trace, 0);
    if (comm != NULL) {
        atomic_store(&comm->name, name);
        atomic_store(&comm->ranks, list);
        atomic_store(&comm->rank, rank);
        atomic_store(&comm->size, size);
        atomic_store(&comm->failed, WEFT_OK);
        atomic_store(&comm->waits_for, -1);
        atomic_store(&comm->carrier, 0);
        atomic_store(&comm->number, number);
    }
    pthread_mutex_unlock(&trace->lock);
}

void wf_trace_set_carrier(struct wf_trace *trace, uint64_t number, uint32_t carrier)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    if (comm != NULL) atomic_store(&comm->carrier, carrier);
}

void wf_trace_fail_comm(struct wf_trace *trace, uint64_t number, weft_status status,
                        const char *text)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    if (comm != NULL) atomic_store(&comm->failed, status);
    atomic_store(&trace->dump_due, true);
    if (atomic_load(&trace->observing) != 0) wf_observers_fail(trace, number, status, text);
}

void wf_trace_set_wait(struct wf_trace *trace, uint64_t number, uint64_t id, int32_t rank)
{
    struct wf_segment_comm *comm = find_comm(trace, number);
    weft_record *record = &trace->records[id & trace->mask];

    if (comm != NULL) atomic_store(&comm->waits_for, rank);
    if (id != 0 && WF_LOAD(record, id) == id && WF_LOAD(record, state) == WEFT_RECORD_SUBMITTED)
        WF_STORE(record, waits_for, rank);
}

int32_t wf_trace_wait_of(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm = number != 0 ? find_comm(trace, number) : NULL;

    return comm != NULL ? atomic_load(&comm->waits_for) : -1;
}

weft_status wf_trace_failure_of(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm = number != 0 ? find_comm(trace, number) : NULL;

    return comm != NULL ? (weft_status)atomic_load(&comm->failed) : WEFT_OK;
}

void wf_trace_set_limit(struct wf_trace *trace, uint64_t number, int64_t limit_ns)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    if (comm != NULL) atomic_store(&trace->limits[comm - trace->segment->comms], limit_ns);
}

int64_t wf_trace_limit_of(const struct wf_trace *trace, uint64_t number)
{
    for (size_t i = 0; number != 0 && i < WF_SEGMENT_COMMS; i++)
        if (atomic_load(&trace->segment->comms[i].number) == number)
            return atomic_load(&trace->limits[i]);
    return 0;
}

/* Keep COMM for dumps.  The number is written last, because a signal handler may look. */
static void keep_released(struct wf_trace *trace, const struct wf_segment_comm *comm)
{
    struct wf_segment_comm *kept = &trace->released[trace->released_count++ % WF_RELEASED_COMMS];

    atomic_store(&kept->number, 0);
    atomic_store(&kept->name, atomic_load(&comm->name));
    atomic_store(&kept->ranks, atomic_load(&comm->ranks));
    atomic_store(&kept->rank, atomic_load(&comm->rank));
    atomic_store(&kept->size, atomic_load(&comm->size));
    atomic_store(&kept->failed, atomic_load(&comm->failed));
    atomic_store(&kept->waits_for, atomic_load(&comm->waits_for));
    atomic_store(&kept->number, atomic_load(&comm->number));
}

void wf_trace_remove_comm(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm;

    pthread_mutex_lock(&trace->lock);
    comm = find_comm(trace, number);
    if (comm != NULL) {
        keep_released(trace, comm);
        atomic_store(&comm->number, 0);
    }
    pthread_mutex_unlock(&trace->lock);
}

uint32_t wf_trace_comm_ranks(struct wf_trace *trace, uint64_t number)
{
    struct wf_segment_comm *comm = find_comm(trace, number);

    return comm != NULL ? atomic_load(&comm->ranks) : 0;
}
