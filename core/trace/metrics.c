/* metrics.c - counts operations for WEFT_METRICS, as an observer.  A thread writes the file, so
 * that a slow disk does not delay an operation, and a job that hangs is seen to hang. */
#include "metrics.h"

#include "weft/status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- counting ---- */

/* The counters of RECORD's kind.  When all are taken, the last one is that of all others. */
static struct wf_metrics_op *find_op(struct wf_metrics *metrics, const weft_record *record)
{
    struct wf_metrics_op *op;

    for (uint32_t i = 0; i < metrics->op_count; i++) {
        op = &metrics->ops[i];
        if (op->comm_name == record->comm_name && op->operation == record->operation) return op;
    }
    if (metrics->op_count == WF_METRICS_OPS) return &metrics->ops[WF_METRICS_OPS - 1];
    op = &metrics->ops[metrics->op_count++];
    *op = (struct wf_metrics_op){.comm_name = record->comm_name, .operation = record->operation};
    if (metrics->op_count == WF_METRICS_OPS)
        *op = (struct wf_metrics_op){.operation = WEFT_RECORD_OPERATION_COUNT};
    return op;
}

/* The smallest N with 2^N >= the bytes of RECORD. */
static uint8_t size_of(const weft_record *record)
{
    uint64_t bytes = record->sent > record->received ? record->sent : record->received;
    uint8_t size = 0;

    while (size < 63 && UINT64_C(1) << size < bytes)
        size++;
    return size;
}

/* NULL: there is no room. */
static struct wf_metrics_time *find_time(struct wf_metrics *metrics, const weft_record *record)
{
    uint8_t size = size_of(record);
    struct wf_metrics_time *time;

    for (uint32_t i = 0; i < metrics->time_count; i++) {
        time = &metrics->times[i];
        if (time->comm_name == record->comm_name && time->operation == record->operation &&
            time->size == size)
            return time;
    }
    if (metrics->time_count == WF_METRICS_TIMES) return NULL;
    time = &metrics->times[metrics->time_count++];
    *time = (struct wf_metrics_time){
        .comm_name = record->comm_name, .operation = record->operation, .size = size};
    return time;
}

uint64_t wf_metrics_limit(uint32_t index)
{
    static const uint64_t steps[] = {1000, 2000, 5000};
    uint64_t limit = steps[index % 3];

    for (uint32_t i = 0; i < index / 3; i++)
        limit *= 10;
    return limit;
}

static uint32_t bucket_of(uint64_t ns)
{
    uint64_t limit = wf_metrics_limit(0);
    uint32_t bucket = 0;

    for (; bucket < WF_METRICS_BUCKETS && ns > limit; bucket++)
        limit = bucket % 3 == 1 ? limit / 2 * 5 : limit * 2;
    return bucket;
}

static void count_time(struct wf_metrics *metrics, const weft_record *record)
{
    struct wf_metrics_time *time = find_time(metrics, record);
    uint64_t begun = record->started != 0 ? record->started : record->submitted;
    uint64_t ticks = record->finished > begun ? record->finished - begun : 0;
    double ns = (double)ticks * metrics->ns_per_tick;
    uint32_t bucket = bucket_of((uint64_t)ns);

    if (time == NULL) return;
    time->count++;
    time->seconds += ns / 1e9;
    if (bucket < WF_METRICS_BUCKETS) time->buckets[bucket]++;
}

static void on_submitted(void *user, const weft_record *record)
{
    struct wf_metrics *metrics = user;
    struct wf_metrics_op *op;

    pthread_mutex_lock(&metrics->lock);
    op = find_op(metrics, record);
    op->count++;
    op->sent += record->sent;
    op->received += record->received;
    pthread_mutex_unlock(&metrics->lock);
}

static void on_finished(void *user, const weft_record *record)
{
    struct wf_metrics *metrics = user;

    pthread_mutex_lock(&metrics->lock);
    if (record->state == WEFT_RECORD_FAILED) {
        find_op(metrics, record)->failed++;
    } else {
        count_time(metrics, record);
        if (record->finished > metrics->progress) metrics->progress = record->finished;
    }
    pthread_mutex_unlock(&metrics->lock);
}

/* A redistribution's bytes are those of its steps. */
static void on_redistribution(void *user, const weft_record *record)
{
    struct wf_metrics *metrics = user;

    pthread_mutex_lock(&metrics->lock);
    find_op(metrics, record)->count++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) metrics->cache_hits++;
    pthread_mutex_unlock(&metrics->lock);
}

static void on_plan(void *user, const weft_record *record)
{
    struct wf_metrics *metrics = user;

    pthread_mutex_lock(&metrics->lock);
    find_op(metrics, record)->count++;
    if ((record->flags & WEFT_RECORD_CACHED) != 0) metrics->cache_misses++;
    pthread_mutex_unlock(&metrics->lock);
}

/* ---- the thread ---- */

/* Write the file.  Only the first failure is reported. */
static void write_or_warn(struct wf_metrics *metrics)
{
    weft_status status = wf_metrics_write(metrics);

    if (status == WEFT_OK || metrics->has_failed) return;
    metrics->has_failed = true;
    wf_log(WF_LOG_WARNING, "WEFT_METRICS: %s; the job goes on", weft_last_error());
}

static void *write_now_and_then(void *argument)
{
    struct wf_metrics *metrics = argument;
    struct timespec until;

    pthread_mutex_lock(&metrics->lock);
    while (!metrics->ends) {
        uint64_t due = wf_now_ns() + (uint64_t)metrics->interval_ns;
        int code = 0;

        until.tv_sec = (time_t)(due / 1000000000);
        until.tv_nsec = (long)(due % 1000000000);
        while (!metrics->ends && code == 0)
            code = pthread_cond_timedwait(&metrics->wake, &metrics->lock, &until);
        if (metrics->ends) break;
        pthread_mutex_unlock(&metrics->lock);
        write_or_warn(metrics);
        pthread_mutex_lock(&metrics->lock);
    }
    pthread_mutex_unlock(&metrics->lock);
    return NULL;
}

/* The thread takes no signals, which are the program's. */
static void start_thread(struct wf_metrics *metrics)
{
    sigset_t all, before;
    int code;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&metrics->thread, NULL, write_now_and_then, metrics);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    metrics->has_thread = code == 0;
    if (code != 0)
        wf_log(WF_LOG_WARNING,
               "WEFT_METRICS: no thread can be started (%s); metrics are written at the end only",
               kit_error_text(code));
}

/* ---- beginning and end ---- */

static void make_lock(struct wf_metrics *metrics)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&metrics->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&metrics->wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void drop(struct wf_metrics *metrics)
{
    if (metrics->folder >= 0) close(metrics->folder);
    pthread_mutex_destroy(&metrics->lock);
    pthread_cond_destroy(&metrics->wake);
    wf_free(metrics);
}

static weft_status observe(struct wf_metrics *metrics)
{
    weft_observer observer = {.struct_size = sizeof observer,
                              .user = metrics,
                              .submitted = on_submitted,
                              .finished = on_finished,
                              .planned = on_plan,
                              .redistributes = on_redistribution};

    return wf_observers_add(metrics->trace, &observer, &metrics->slot);
}

weft_status wf_metrics_begin(struct wf_trace *trace, const char *path, int64_t interval_ns,
                             struct wf_metrics **out)
{
    struct wf_metrics *metrics = wf_calloc(1, sizeof *metrics);
    struct wf_instant first = wf_instant_begun(), last = wf_instant_apart(first);
    weft_status status;

    if (metrics == NULL) return wf_fail_memory(sizeof *metrics);
    metrics->trace = trace;
    metrics->interval_ns = interval_ns;
    metrics->ns_per_tick = (double)(last.ns - first.ns) / (double)(last.ticks - first.ticks);
    snprintf(metrics->path, sizeof metrics->path, "%s", path);
    make_lock(metrics);
    metrics->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (metrics->folder < 0) {
        wf_log(WF_LOG_WARNING,
               "WEFT_METRICS: the folder %s cannot be opened: %s; no metrics are written, and the "
               "job goes on",
               path, kit_error_text(errno));
        drop(metrics);
        *out = NULL;
        return WEFT_OK;
    }
    status = observe(metrics);
    if (status != WEFT_OK) {
        drop(metrics);
        return status;
    }
    write_or_warn(metrics);
    start_thread(metrics);
    *out = metrics;
    return WEFT_OK;
}

void wf_metrics_end(struct wf_metrics *metrics)
{
    if (metrics == NULL) return;
    pthread_mutex_lock(&metrics->lock);
    metrics->ends = true;
    pthread_cond_signal(&metrics->wake);
    pthread_mutex_unlock(&metrics->lock);
    if (metrics->has_thread) pthread_join(metrics->thread, NULL);
    wf_observers_remove(metrics->trace, metrics->slot);
    write_or_warn(metrics);
    drop(metrics);
}
