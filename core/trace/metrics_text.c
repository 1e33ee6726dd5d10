/* metrics_text.c - metrics in the text format of Prometheus, and their file. */
#include "metrics.h"
#include "rank_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- text ---- */

static void begin_metric(struct wf_text *out, const char *name, const char *type, const char *help)
{
    wf_text_add(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* A value of a label.  A reader refuses the whole file if a value is not UTF-8. */
static void add_escaped(struct wf_text *out, const char *text)
{
    for (size_t length; *text != '\0'; text += length > 0 ? length : 1) {
        length = wf_utf8_length(text);
        if (*text == '\n')
            wf_text_add(out, "\\n");
        else if (*text == '"' || *text == '\\')
            wf_text_add(out, "\\%c", *text);
        else if (length == 0 || wf_utf8_control(text, length) != 0)
            wf_text_char(out, '?');
        else
            wf_text_append(out, text, length);
    }
}

/* The labels of every line: files of all ranks of a host are read together. */
static void begin_labels(const struct wf_metrics *metrics, struct wf_text *out, const char *name)
{
    const struct wf_segment *segment = metrics->trace->segment;

    wf_text_add(out, "%s{weft_job=\"%016" PRIx64 "\",rank=\"%d\"", name, segment->job,
                segment->rank);
}

static void add_kind(const struct wf_metrics *metrics, struct wf_text *out, uint32_t comm_name,
                     uint8_t operation)
{
    const char *name = weft_record_operation_name((enum weft_record_operation)operation);

    wf_text_add(out, ",comm=\"");
    add_escaped(out, operation < WEFT_RECORD_OPERATION_COUNT
                         ? wf_trace_text(metrics->trace, comm_name)
                         : "other");
    wf_text_add(out, "\",op=\"%s\"", name != NULL ? name : "other");
}

/* A counter by communicator and operation; OFFSET is that of its field. */
static void add_counter(const struct wf_metrics *metrics, struct wf_text *out, const char *name,
                        const char *label, size_t offset)
{
    for (uint32_t i = 0; i < metrics->op_count; i++) {
        const struct wf_metrics_op *op = &metrics->ops[i];
        uint64_t value;

        memcpy(&value, (const char *)op + offset, sizeof value);
        begin_labels(metrics, out, name);
        add_kind(metrics, out, op->comm_name, op->operation);
        wf_text_add(out, "%s} %" PRIu64 "\n", label, value);
    }
}

static void add_single(const struct wf_metrics *metrics, struct wf_text *out, const char *name,
                       const char *type, const char *help, uint64_t value)
{
    begin_metric(out, name, type, help);
    begin_labels(metrics, out, name);
    wf_text_add(out, "} %" PRIu64 "\n", value);
}

static void begin_time(const struct wf_metrics *metrics, struct wf_text *out, const char *name,
                       const struct wf_metrics_time *time)
{
    begin_labels(metrics, out, name);
    add_kind(metrics, out, time->comm_name, time->operation);
    wf_text_add(out, ",size=\"%" PRIu64 "\"", UINT64_C(1) << time->size);
}

static void add_histogram(const struct wf_metrics *metrics, struct wf_text *out,
                          const struct wf_metrics_time *time)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < WF_METRICS_BUCKETS; i++) {
        sum += time->buckets[i];
        begin_time(metrics, out, "weft_operation_seconds_bucket", time);
        wf_text_add(out, ",le=\"%.6g\"} %" PRIu64 "\n", (double)wf_metrics_limit(i) / 1e9, sum);
    }
    begin_time(metrics, out, "weft_operation_seconds_bucket", time);
    wf_text_add(out, ",le=\"+Inf\"} %" PRIu64 "\n", time->count);
    begin_time(metrics, out, "weft_operation_seconds_sum", time);
    wf_text_add(out, "} %.9g\n", time->seconds);
    begin_time(metrics, out, "weft_operation_seconds_count", time);
    wf_text_add(out, "} %" PRIu64 "\n", time->count);
}

/* Operations that the recorder has and that have not ended. */
static uint64_t count_pending(const struct wf_trace *trace)
{
    uint64_t newest = atomic_load(&trace->segment->next), pending = 0;
    weft_record record;

    for (uint64_t back = 0; back <= trace->mask && back < newest; back++)
        if (wf_trace_read(trace, newest - back, &record) && record.state == WEFT_RECORD_SUBMITTED &&
            record.operation != WEFT_RECORD_REDISTRIBUTE && record.operation != WEFT_RECORD_PLAN)
            pending++;
    return pending;
}

/* Seconds since 1970 of TICKS. */
static double wall_time(uint64_t ticks)
{
    struct timespec now;
    uint64_t ns = weft_ticks_to_ns(ticks);

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
           ((double)wf_now_ns() - (double)ns) / 1e9;
}

void wf_metrics_print(const struct wf_metrics *metrics, struct wf_text *out)
{
    const struct wf_segment *segment = metrics->trace->segment;

    begin_metric(out, "weft_info", "gauge", "The rank: its job's size and its backend.");
    begin_labels(metrics, out, "weft_info");
    wf_text_add(out, ",backend=\"");
    add_escaped(out, segment->backend);
    wf_text_add(out, "\",ranks=\"%d\"} 1\n", segment->size);
    begin_metric(out, "weft_operations_total", "counter", "Operations that were submitted.");
    add_counter(metrics, out, "weft_operations_total", "", offsetof(struct wf_metrics_op, count));
    begin_metric(out, "weft_failed_operations_total", "counter", "Operations that failed.");
    add_counter(metrics, out, "weft_failed_operations_total", "",
                offsetof(struct wf_metrics_op, failed));
    begin_metric(out, "weft_bytes_total", "counter", "Bytes of this rank's inputs and outputs.");
    add_counter(metrics, out, "weft_bytes_total", ",direction=\"sent\"",
                offsetof(struct wf_metrics_op, sent));
    add_counter(metrics, out, "weft_bytes_total", ",direction=\"received\"",
                offsetof(struct wf_metrics_op, received));
    begin_metric(out, "weft_operation_seconds", "histogram",
                 "Time from the start of an operation until the host knows its end.");
    for (uint32_t i = 0; i < metrics->time_count; i++)
        add_histogram(metrics, out, &metrics->times[i]);
    add_single(metrics, out, "weft_plan_cache_hits_total", "counter",
               "Moves whose bound plan was in the cache.", metrics->cache_hits);
    add_single(metrics, out, "weft_plan_cache_misses_total", "counter",
               "Moves whose plan was made and bound.", metrics->cache_misses);
    add_single(metrics, out, "weft_scratch_bytes", "gauge", "Bytes that are allocated for scratch.",
               atomic_load_explicit(&metrics->trace->scratch, memory_order_relaxed));
    add_single(metrics, out, "weft_inflight_operations", "gauge", "Operations that have not ended.",
               count_pending(metrics->trace));
    begin_metric(out, "weft_last_progress_timestamp_seconds", "gauge",
                 "When the last operation ended.");
    begin_labels(metrics, out, "weft_last_progress_timestamp_seconds");
    wf_text_add(out, "} %.3f\n", metrics->progress != 0 ? wall_time(metrics->progress) : 0.0);
}

/* ---- the file ---- */

/* The file appears complete: it is written under another name, which the node exporter ignores. */
static weft_status write_file(const struct wf_metrics *metrics, const struct wf_text *text)
{
    const struct wf_segment *segment = metrics->trace->segment;
    char name[64], draft[72];
    int file, error;

    snprintf(name, sizeof name, "weft.%016" PRIx64 ".%d.prom", segment->job, segment->rank);
    snprintf(draft, sizeof draft, ".%s.tmp", name);
    /* One that a killed rank has left, or that another user has made: opening it might block. */
    unlinkat(metrics->folder, draft, 0);
    file =
        openat(metrics->folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file < 0)
        return wf_fail(WEFT_ERR_SYSTEM, "%s/%s cannot be created: %s", metrics->path, draft,
                       kit_error_text(errno));
    error = wf_rank_file_write(file, 0, text->data, text->length);
    if (close(file) != 0 && error == 0) error = errno;
    if (error == 0 && renameat(metrics->folder, draft, metrics->folder, name) != 0) error = errno;
    if (error == 0) return WEFT_OK;
    unlinkat(metrics->folder, draft, 0);
    return wf_fail(WEFT_ERR_SYSTEM, "%s/%s cannot be written: %s", metrics->path, name,
                   kit_error_text(error));
}

weft_status wf_metrics_write(struct wf_metrics *metrics)
{
    struct wf_text text = {0};
    weft_status status;

    pthread_mutex_lock(&metrics->lock);
    wf_metrics_print(metrics, &text);
    pthread_mutex_unlock(&metrics->lock);
    status = wf_text_status(&text);
    if (status == WEFT_OK) status = write_file(metrics, &text);
    wf_text_free(&text);
    return status;
}
