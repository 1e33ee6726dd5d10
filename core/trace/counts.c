/* counts.c - counters of operations, as an observer.
 *
 * The counters grow while somebody counts.  Each begin keeps their values of that moment, and its
 * end returns what they have grown by. */
#include "trace.h"

#include <stdio.h>
#include <string.h>

/* A count that has begun. */
struct begun {
    struct begun *next;
    const weft_counts *caller; /* identifies it */
    weft_counts before;
};

struct wf_counts {
    struct wf_trace *trace;
    pthread_mutex_t lock;
    uint32_t slot;
    struct begun *begun; /* NULL: nobody counts */
    weft_counts sums;
};

/* True if RECORD is an operation on data. */
static bool has_data(const weft_record *record)
{
    return record->operation != WEFT_OP_COPY && !wf_record_is_creation(record);
}

static weft_axis_count *find_axes(weft_counts *sums, const char *axes)
{
    for (uint32_t i = 0; i < sums->axis_count; i++)
        if (strncmp(sums->axes[i].axes, axes, sizeof sums->axes[i].axes - 1) == 0)
            return &sums->axes[i];
    if (sums->axis_count == WEFT_COUNTED_AXES) return NULL;
    snprintf(sums->axes[sums->axis_count].axes, sizeof sums->axes[0].axes, "%s", axes);
    return &sums->axes[sums->axis_count++];
}

static void count_axes(weft_counts *sums, const char *axes, const weft_record *record)
{
    weft_axis_count *count = find_axes(sums, axes);

    if (count == NULL) {
        sums->axes_missed++;
        return;
    }
    count->operations++;
    count->sent += record->sent;
    count->received += record->received;
}

static void count_submitted(void *self, const weft_record *record)
{
    struct wf_counts *counts = self;
    weft_counts *sums = &counts->sums;

    pthread_mutex_lock(&counts->lock);
    if (record->operation < WEFT_OP_COUNT) sums->operations[record->operation]++;
    if (record->step_kind < WF_COUNT(sums->steps)) sums->steps[record->step_kind]++;
    if (has_data(record)) {
        sums->sent += record->sent;
        sums->received += record->received;
        count_axes(
            sums,
            wf_trace_text(counts->trace, record->axes != 0 ? record->axes : record->comm_name),
            record);
    }
    pthread_mutex_unlock(&counts->lock);
}

static void count_redistribution(void *self, const weft_record *record)
{
    struct wf_counts *counts = self;

    pthread_mutex_lock(&counts->lock);
    counts->sums.operations[WEFT_OP_REDISTRIBUTE]++;
    if ((record->flags & WEFT_RECORD_IMPLICIT) != 0) counts->sums.implicit_moves++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) counts->sums.cache_hits++;
    pthread_mutex_unlock(&counts->lock);
}

static void count_plan(void *self, const weft_record *record)
{
    struct wf_counts *counts = self;

    pthread_mutex_lock(&counts->lock);
    counts->sums.operations[WEFT_OP_PLAN]++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) counts->sums.cache_misses++;
    pthread_mutex_unlock(&counts->lock);
}

static void count_finished(void *self, const weft_record *record)
{
    struct wf_counts *counts = self;

    if (record->state != WEFT_RECORD_FAILED) return;
    pthread_mutex_lock(&counts->lock);
    counts->sums.failed++;
    pthread_mutex_unlock(&counts->lock);
}

/* ---- beginning and ending ---- */

static weft_status observe(struct wf_trace *trace, struct wf_counts *counts)
{
    weft_observer observer = {.struct_size = sizeof observer,
                              .self = counts,
                              .submitted = count_submitted,
                              .finished = count_finished,
                              .planned = count_plan,
                              .redistributes = count_redistribution};

    return wf_observers_add(trace, &observer, &counts->slot);
}

/* The counters of TRACE, which are made on first use and stay. */
static weft_status find_counts(struct wf_trace *trace, struct wf_counts **out)
{
    struct wf_counts *counts = atomic_load(&trace->counts), *none = NULL;

    if (counts == NULL) {
        counts = wf_calloc(1, sizeof *counts);
        if (counts == NULL) return wf_fail_memory(sizeof *counts);
        counts->trace = trace;
        pthread_mutex_init(&counts->lock, NULL);
        if (!atomic_compare_exchange_strong(&trace->counts, &none, counts)) {
            wf_counts_free(counts);
            counts = none;
        }
    }
    *out = counts;
    return WEFT_OK;
}

static bool has_begun(const struct wf_counts *counts, const weft_counts *caller)
{
    const struct begun *begun = counts->begun;

    while (begun != NULL && begun->caller != caller)
        begun = begun->next;
    return begun != NULL;
}

weft_status wf_counts_begin(struct wf_trace *trace, const weft_counts *caller)
{
    struct begun *begun = wf_alloc(sizeof *begun);
    struct wf_counts *counts = NULL;
    weft_status status;

    if (begun == NULL) return wf_fail_memory(sizeof *begun);
    status = find_counts(trace, &counts);
    if (status != WEFT_OK) {
        wf_free(begun);
        return status;
    }
    pthread_mutex_lock(&trace->counts_lock);
    if (has_begun(counts, caller)) {
        status = wf_fail(WEFT_ERR_INVALID, "these counts have begun already; each begin needs "
                                           "another struct");
    } else if (counts->begun == NULL) {
        counts->sums = (weft_counts){0}; /* so that there is room for axes */
        status = observe(trace, counts);
    }
    if (status == WEFT_OK) {
        pthread_mutex_lock(&counts->lock);
        *begun = (struct begun){counts->begun, caller, counts->sums};
        pthread_mutex_unlock(&counts->lock);
        counts->begun = begun;
    } else {
        wf_free(begun);
    }
    pthread_mutex_unlock(&trace->counts_lock);
    return status;
}

static void subtract(uint64_t *from, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        from[i] -= numbers[i];
}

/* Remove entries that have not grown. */
static void pack_axes(weft_counts *counts)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < counts->axis_count; i++)
        if (counts->axes[i].operations > 0) counts->axes[used++] = counts->axes[i];
    memset(&counts->axes[used], 0, (WEFT_COUNTED_AXES - used) * sizeof counts->axes[0]);
    counts->axis_count = used;
}

static weft_counts growth(const weft_counts *before, const weft_counts *now)
{
    weft_counts out = *now;

    out.struct_size = sizeof out;
    subtract(out.operations, before->operations, WF_COUNT(out.operations));
    subtract(out.steps, before->steps, WF_COUNT(out.steps));
    out.sent -= before->sent;
    out.received -= before->received;
    out.implicit_moves -= before->implicit_moves;
    out.cache_hits -= before->cache_hits;
    out.cache_misses -= before->cache_misses;
    out.failed -= before->failed;
    out.axes_missed -= before->axes_missed;
    for (uint32_t i = 0; i < before->axis_count; i++) {
        out.axes[i].operations -= before->axes[i].operations;
        out.axes[i].sent -= before->axes[i].sent;
        out.axes[i].received -= before->axes[i].received;
    }
    pack_axes(&out);
    return out;
}

static struct begun *take(struct wf_counts *counts, const weft_counts *caller)
{
    struct begun **at = &counts->begun, *found;

    while (*at != NULL && (*at)->caller != caller)
        at = &(*at)->next;
    found = *at;
    if (found != NULL) *at = found->next;
    return found;
}

weft_status wf_counts_end(struct wf_trace *trace, const weft_counts *caller, weft_counts *out)
{
    struct wf_counts *counts = atomic_load(&trace->counts);
    struct begun *begun = NULL;

    pthread_mutex_lock(&trace->counts_lock);
    if (counts != NULL) begun = take(counts, caller);
    if (begun != NULL) {
        pthread_mutex_lock(&counts->lock);
        *out = growth(&begun->before, &counts->sums);
        pthread_mutex_unlock(&counts->lock);
        if (counts->begun == NULL) wf_observers_remove(trace, counts->slot);
    }
    pthread_mutex_unlock(&trace->counts_lock);
    if (begun == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "these counts have not begun on this context; call weft_counts_begin with "
                       "the same struct before");
    wf_free(begun);
    return WEFT_OK;
}

void wf_counts_free(struct wf_counts *counts)
{
    if (counts == NULL) return;
    for (struct begun *next; counts->begun != NULL; counts->begun = next) {
        next = counts->begun->next;
        wf_free(counts->begun);
    }
    pthread_mutex_destroy(&counts->lock);
    wf_free(counts);
}
