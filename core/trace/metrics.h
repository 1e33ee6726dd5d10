/* metrics.h - counters of a rank as a file that Prometheus' node exporter reads (WEFT_METRICS).
 *
 *     metrics.c       counting, as an observer, and the thread that writes
 *     metrics_text.c  the text and its file */
#ifndef WEFT_TRACE_METRICS_H
#define WEFT_TRACE_METRICS_H

#include "trace.h"

#define WF_METRICS_INTERVAL_NS INT64_C(30000000000)

#define WF_METRICS_OPS     256 /* pairs of communicator and operation; others are one pair */
#define WF_METRICS_TIMES   512 /* those with a size each; others are not in the histograms */
#define WF_METRICS_BUCKETS 25  /* 1, 2, 5, 10 ... us to 100 s */

/* Operations of one kind on communicators with one name. */
struct wf_metrics_op {
    uint32_t comm_name; /* a text */
    uint8_t operation;
    uint64_t count, failed, sent, received;
};

/* How long operations of one kind and size took. */
struct wf_metrics_time {
    uint32_t comm_name;
    uint8_t operation;
    uint8_t size;                                /* up to 2^SIZE bytes */
    uint64_t buckets[WF_METRICS_BUCKETS], count; /* BUCKETS are not cumulative */
    double seconds;
};

struct wf_metrics {
    struct wf_trace *trace;
    uint32_t slot;        /* of the observer */
    pthread_mutex_t lock; /* of what follows */
    struct wf_metrics_op ops[WF_METRICS_OPS];
    struct wf_metrics_time times[WF_METRICS_TIMES];
    uint32_t op_count, time_count;
    uint64_t cache_hits, cache_misses;
    uint64_t progress; /* ticks of the last finish; 0: none */
    double ns_per_tick;

    int folder;      /* -1: none */
    char path[256];  /* for messages */
    bool has_failed; /* a message says so */
    int64_t interval_ns;
    pthread_t thread;
    bool has_thread, ends;
    pthread_cond_t wake;
};

/* Count the operations of TRACE and write them to a file in the folder PATH: now, every
 * INTERVAL_NS, and at the end.  If that is not possible, a warning says why, and *OUT may be NULL.
 * Only missing memory is an error. */
weft_status wf_metrics_begin(struct wf_trace *trace, const char *path, int64_t interval_ns,
                             struct wf_metrics **out) WF_NODISCARD;
/* Write the file for the last time.  Accepts NULL. */
void wf_metrics_end(struct wf_metrics *metrics);

/* The upper limit of bucket INDEX, in nanoseconds. */
uint64_t wf_metrics_limit(uint32_t index);
/* Append the metrics to OUT.  The lock is held. */
void wf_metrics_print(const struct wf_metrics *metrics, struct wf_text *out);
/* Write the file.  The text of a failure has its path. */
weft_status wf_metrics_write(struct wf_metrics *metrics) WF_NODISCARD;

#endif
