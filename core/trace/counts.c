/* counts.c - counters of operations, as an observer.
 *
 * The counters grow while somebody counts.  Each begin keeps their values of that moment, and each
 * end what they have grown by since. */
#include "counts.h"

#include <stdio.h>
#include <string.h>

struct wf_counter {
    struct wf_trace *trace;
    pthread_mutex_t lock;
    uint32_t slot;
    weft_record_counts *begun; /* NULL: nobody counts */
    struct wf_sums sums;
};

/* True if RECORD is an operation on data. */
static bool has_data(const weft_record *record)
{
    return record->operation != WEFT_RECORD_COPY && !wf_record_is_creation(record);
}

static struct wf_axes_sums *find_axes(struct wf_sums *sums, const char *axes)
{
    for (uint32_t i = 0; i < sums->axes_count; i++)
        if (strncmp(sums->axes[i].axes, axes, sizeof sums->axes[i].axes - 1) == 0)
            return &sums->axes[i];
    if (sums->axes_count == WF_COUNTED_AXES) return NULL;
    snprintf(sums->axes[sums->axes_count].axes, sizeof sums->axes[0].axes, "%s", axes);
    return &sums->axes[sums->axes_count++];
}

static void count_axes(struct wf_sums *sums, const char *axes, const weft_record *record)
{
    struct wf_axes_sums *count = find_axes(sums, axes);

    if (count == NULL) {
        sums->axes_missed++;
        return;
    }
    count->operations++;
    count->sent += record->sent;
    count->received += record->received;
}

static void count_submitted(void *user, const weft_record *record)
{
    struct wf_counter *counter = user;
    struct wf_sums *sums = &counter->sums;

    pthread_mutex_lock(&counter->lock);
    if (record->operation < WEFT_RECORD_OPERATION_COUNT) sums->operations[record->operation]++;
    if (record->step_kind < WF_COUNT(sums->steps)) sums->steps[record->step_kind]++;
    if (has_data(record)) {
        sums->sent += record->sent;
        sums->received += record->received;
        count_axes(
            sums,
            wf_trace_text(counter->trace, record->axes != 0 ? record->axes : record->comm_name),
            record);
    }
    pthread_mutex_unlock(&counter->lock);
}

static void count_redistribution(void *user, const weft_record *record)
{
    struct wf_counter *counter = user;

    pthread_mutex_lock(&counter->lock);
    counter->sums.operations[WEFT_RECORD_REDISTRIBUTE]++;
    if ((record->flags & WEFT_RECORD_IMPLICIT) != 0) counter->sums.implicit_moves++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) counter->sums.cache_hits++;
    pthread_mutex_unlock(&counter->lock);
}

static void count_plan(void *user, const weft_record *record)
{
    struct wf_counter *counter = user;

    pthread_mutex_lock(&counter->lock);
    counter->sums.operations[WEFT_RECORD_PLAN]++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) counter->sums.cache_misses++;
    pthread_mutex_unlock(&counter->lock);
}

static void count_finished(void *user, const weft_record *record)
{
    struct wf_counter *counter = user;

    if (record->state != WEFT_RECORD_FAILED) return;
    pthread_mutex_lock(&counter->lock);
    counter->sums.failed++;
    pthread_mutex_unlock(&counter->lock);
}

/* ---- beginning and ending ---- */

static weft_status observe(struct wf_trace *trace, struct wf_counter *counter)
{
    weft_observer observer = {.struct_size = sizeof observer,
                              .user = counter,
                              .submitted = count_submitted,
                              .finished = count_finished,
                              .planned = count_plan,
                              .redistributes = count_redistribution};

    return wf_observers_add(trace, &observer, &counter->slot);
}

static weft_status find_counter(struct wf_trace *trace, struct wf_counter **out)
{
    struct wf_counter *counter = atomic_load(&trace->counter), *none = NULL;

    if (counter == NULL) {
        counter = wf_calloc(1, sizeof *counter);
        if (counter == NULL) return wf_fail_memory(sizeof *counter);
        counter->trace = trace;
        pthread_mutex_init(&counter->lock, NULL);
        if (!atomic_compare_exchange_strong(&trace->counter, &none, counter)) {
            wf_counter_free(counter);
            counter = none;
        }
    }
    *out = counter;
    return WEFT_OK;
}

weft_status wf_counts_begin(struct wf_trace *trace, weft_context *context, weft_record_counts **out)
{
    weft_record_counts *counts = wf_calloc(1, sizeof *counts);
    struct wf_counter *counter = NULL;
    weft_status status;

    if (counts == NULL) return wf_fail_memory(sizeof *counts);
    status = find_counter(trace, &counter);
    if (status != WEFT_OK) {
        wf_free(counts);
        return status;
    }
    pthread_mutex_lock(&trace->counts_lock);
    if (counter->begun == NULL) {
        counter->sums = (struct wf_sums){0}; /* so that there is room for axes */
        status = observe(trace, counter);
    }
    if (status == WEFT_OK) {
        pthread_mutex_lock(&counter->lock);
        counts->before = counter->sums;
        pthread_mutex_unlock(&counter->lock);
        counts->context = context;
        counts->next = counter->begun;
        counter->begun = counts;
        *out = counts;
    } else {
        wf_free(counts);
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
static void pack_axes(struct wf_sums *sums)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < sums->axes_count; i++)
        if (sums->axes[i].operations > 0) sums->axes[used++] = sums->axes[i];
    sums->axes_count = used;
}

static struct wf_sums growth(const struct wf_sums *before, const struct wf_sums *now)
{
    struct wf_sums out = *now;

    subtract(out.operations, before->operations, WF_COUNT(out.operations));
    subtract(out.steps, before->steps, WF_COUNT(out.steps));
    out.sent -= before->sent;
    out.received -= before->received;
    out.implicit_moves -= before->implicit_moves;
    out.cache_hits -= before->cache_hits;
    out.cache_misses -= before->cache_misses;
    out.failed -= before->failed;
    out.axes_missed -= before->axes_missed;
    for (uint32_t i = 0; i < before->axes_count; i++) {
        out.axes[i].operations -= before->axes[i].operations;
        out.axes[i].sent -= before->axes[i].sent;
        out.axes[i].received -= before->axes[i].received;
    }
    pack_axes(&out);
    return out;
}

/* End the counting of COUNTS, which are in the list of COUNTER. */
static void end(struct wf_counter *counter, weft_record_counts *counts)
{
    weft_record_counts **at = &counter->begun;

    while (*at != counts)
        at = &(*at)->next;
    *at = counts->next;
    pthread_mutex_lock(&counter->lock);
    counts->grown = growth(&counts->before, &counter->sums);
    pthread_mutex_unlock(&counter->lock);
    counts->context = NULL;
}

void wf_counts_end(struct wf_trace *trace, weft_record_counts *counts)
{
    struct wf_counter *counter = atomic_load(&trace->counter);

    pthread_mutex_lock(&trace->counts_lock);
    end(counter, counts);
    if (counter->begun == NULL) wf_observers_remove(trace, counter->slot);
    pthread_mutex_unlock(&trace->counts_lock);
}

void wf_counter_free(struct wf_counter *counter)
{
    if (counter == NULL) return;
    while (counter->begun != NULL)
        end(counter, counter->begun);
    pthread_mutex_destroy(&counter->lock);
    wf_free(counter);
}

/* ---- what was counted ---- */

uint64_t weft_record_counts_operations(const weft_record_counts *counts,
                                       enum weft_record_operation operation)
{
    bool is_known = (uint32_t)operation < WF_COUNT(counts->grown.operations);

    return counts != NULL && is_known ? counts->grown.operations[operation] : 0;
}

uint64_t weft_record_counts_steps(const weft_record_counts *counts, enum weft_step_kind kind)
{
    bool is_known = (uint32_t)kind < WF_COUNT(counts->grown.steps);

    return counts != NULL && is_known ? counts->grown.steps[kind] : 0;
}

weft_status weft_record_counts_get(const weft_record_counts *counts, weft_record_counts_info *out)
{
    weft_record_counts_info info;
    weft_status status;

    if (counts == NULL || out == NULL)
        return wf_fail_null("weft_record_counts_get", counts == NULL ? "counts" : "out");
    info = (weft_record_counts_info){
        .sent = counts->grown.sent,
        .received = counts->grown.received,
        .implicit_moves = counts->grown.implicit_moves,
        .cache_hits = counts->grown.cache_hits,
        .cache_misses = counts->grown.cache_misses,
        .failed = counts->grown.failed,
        .axes_missed = counts->grown.axes_missed,
    };
    status = wf_info_write("weft_record_counts_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_record_counts_get");
}

size_t weft_record_counts_axes_count(const weft_record_counts *counts)
{
    return counts != NULL ? counts->grown.axes_count : 0;
}

weft_status weft_record_counts_axes_get(const weft_record_counts *counts, size_t index,
                                        weft_record_axes_info *out)
{
    const struct wf_axes_sums *sums;
    weft_record_axes_info info;
    weft_status status;

    if (counts == NULL || out == NULL)
        return wf_fail_null("weft_record_counts_axes_get", counts == NULL ? "counts" : "out");
    if (index >= counts->grown.axes_count)
        return wf_fail(
            WEFT_ERR_INVALID,
            "weft_record_counts_axes_get: index is %zu, but data travelled along %u set%s "
            "of axes",
            index, counts->grown.axes_count, WF_PLURAL(counts->grown.axes_count));
    sums = &counts->grown.axes[index];
    info = (weft_record_axes_info){.axes = sums->axes,
                                   .operations = sums->operations,
                                   .sent = sums->sent,
                                   .received = sums->received};
    status = wf_info_write("weft_record_axes_info", &info, sizeof info, out);
    return wf_fail_named(status, "weft_record_counts_axes_get");
}
