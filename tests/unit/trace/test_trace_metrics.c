/* Metrics: what is counted, how it is printed, and folders that cannot be written. */
#include "trace/metrics.h"

#include "support/allocfail.h"
#include "support/folder.h"
#include "support/suite.h"
#include "weft/status.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct wf_trace *make_trace(void)
{
    struct wf_trace_identity identity = {.job = 0xabc, .rank = 3, .size = 8, .backend = "fake"};
    struct wf_trace *trace = NULL;

    ck_assert_int_eq(wf_trace_create(&identity, 0, &trace), WEFT_OK);
    return trace;
}

static struct wf_metrics *begin(struct wf_trace *trace, const char *path, int64_t interval_ns)
{
    struct wf_metrics *metrics = NULL;

    ck_assert_int_eq(wf_metrics_begin(trace, path, interval_ns, &metrics), WEFT_OK);
    return metrics;
}

static struct wf_submitted submit(struct wf_trace *trace, const char *comm, uint64_t bytes)
{
    return wf_trace_submit(trace, NULL, WF_CALL_SUBMITTED,
                           &(weft_record){.operation = WEFT_RECORD_ALL_REDUCE,
                                          .sent = bytes,
                                          .received = 2 * bytes,
                                          .comm_name = wf_trace_intern(trace, comm)});
}

static const char *file_of(const struct folder *folder)
{
    return folder_path(folder, "weft.0000000000000abc.3.prom");
}

static char text[1 << 20];

static const char *read_file(const struct folder *folder)
{
    FILE *file = fopen(file_of(folder), "rb");
    size_t got;

    ck_assert_ptr_nonnull(file);
    got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    return text;
}

#define LABELS "{weft_job=\"0000000000000abc\",rank=\"3\""

/* The value of the line that begins with START. */
static double value_of(const struct folder *folder, const char *start)
{
    const char *at = strstr(read_file(folder), start);

    ck_assert_msg(at != NULL && (at == text || at[-1] == '\n'), "%s in %s", start, text);
    return strtod(at + strlen(start), NULL);
}

TEST(operations_are_counted)
{
    struct folder folder = folder_create();
    struct wf_trace *trace = make_trace();
    struct wf_metrics *metrics = begin(trace, folder.path, WF_METRICS_INTERVAL_NS);

    ck_assert_double_eq(value_of(&folder, "weft_inflight_operations" LABELS "} "), 0);
    wf_trace_finish(trace, submit(trace, "t\"p\\\xff\033", 1000));
    wf_trace_finish(trace, submit(trace, "t\"p\\\xff\033", 1024));
    (void)wf_trace_fail(trace, submit(trace, "t\"p\\\xff\033", 1), WEFT_ERR_PEER);
    (void)submit(trace, "dp", 8);
    atomic_store(&trace->scratch, 4096);
    (void)wf_trace_submit(trace, NULL, WF_CALL_REDISTRIBUTES,
                          &(weft_record){.operation = WEFT_RECORD_REDISTRIBUTE,
                                         .sent = 99,
                                         .flags = WEFT_RECORD_CACHED});
    (void)wf_trace_submit(
        trace, NULL, WF_CALL_PLANNED,
        &(weft_record){.operation = WEFT_RECORD_PLAN, .flags = WEFT_RECORD_CACHED});
    ck_assert_int_eq(wf_metrics_write(metrics), WEFT_OK);

#define TP LABELS ",comm=\"t\\\"p\\\\??\",op=\"all-reduce\""
    ck_assert_double_eq(value_of(&folder, "weft_operations_total" TP "} "), 3);
    ck_assert_double_eq(value_of(&folder, "weft_failed_operations_total" TP "} "), 1);
    ck_assert_double_eq(value_of(&folder, "weft_bytes_total" TP ",direction=\"sent\"} "), 2025);
    ck_assert_double_eq(value_of(&folder, "weft_bytes_total" TP ",direction=\"received\"} "), 4050);
    ck_assert_double_eq(value_of(&folder, "weft_operation_seconds_count" TP ",size=\"2048\"} "), 2);
    ck_assert_double_eq(
        value_of(&folder, "weft_operation_seconds_bucket" TP ",size=\"2048\",le=\"+Inf\"} "), 2);
    ck_assert_double_eq(value_of(&folder, "weft_plan_cache_hits_total" LABELS "} "), 1);
    ck_assert_double_eq(value_of(&folder, "weft_plan_cache_misses_total" LABELS "} "), 1);
    ck_assert_double_eq(value_of(&folder, "weft_inflight_operations" LABELS "} "), 1);
    ck_assert_double_eq(value_of(&folder, "weft_scratch_bytes" LABELS "} "), 4096);
    ck_assert_double_gt(value_of(&folder, "weft_last_progress_timestamp_seconds" LABELS "} "),
                        1.7e9);
    ck_assert_double_eq(
        value_of(&folder, "weft_operations_total" LABELS ",comm=\"\",op=\"redistribute\"} "), 1);
    ck_assert_double_eq(value_of(&folder, "weft_bytes_total" LABELS
                                          ",comm=\"\",op=\"redistribute\",direction=\"sent\"} "),
                        0);
    wf_metrics_end(metrics);
    wf_trace_destroy(trace);
    folder_remove(&folder);
}

TEST(limits_are_1_2_5)
{
    ck_assert_uint_eq(wf_metrics_limit(0), 1000);
    ck_assert_uint_eq(wf_metrics_limit(1), 2000);
    ck_assert_uint_eq(wf_metrics_limit(2), 5000);
    ck_assert_uint_eq(wf_metrics_limit(3), 10000);
    ck_assert_uint_eq(wf_metrics_limit(WF_METRICS_BUCKETS - 1), UINT64_C(100000000000));
}

/* A record of DURATION in ticks, as an observer gets it. */
static void observe(struct wf_metrics *metrics, uint64_t ticks)
{
    const weft_record record = {.operation = WEFT_RECORD_BARRIER,
                                .state = WEFT_RECORD_FINISHED,
                                .submitted = 1000,
                                .finished = 1000 + ticks};

    metrics->trace->observers[metrics->slot].observer.finished(metrics, &record);
}

TEST(times_are_in_the_bucket_above_them)
{
    struct folder folder = folder_create();
    struct wf_trace *trace = make_trace();
    struct wf_metrics *metrics = begin(trace, folder.path, WF_METRICS_INTERVAL_NS);

    metrics->ns_per_tick = 1;
    for (uint32_t i = 0; i < WF_METRICS_BUCKETS; i++) {
        observe(metrics, wf_metrics_limit(i));
        observe(metrics, wf_metrics_limit(i) + 1);
    }
    ck_assert_uint_eq(metrics->times[0].count, 2 * WF_METRICS_BUCKETS);
    ck_assert_uint_eq(metrics->times[0].buckets[0], 1);
    for (uint32_t i = 1; i < WF_METRICS_BUCKETS; i++)
        ck_assert_uint_eq(metrics->times[0].buckets[i], 2); /* one is above all */
    wf_metrics_end(metrics);
    wf_trace_destroy(trace);
    folder_remove(&folder);
}

TEST(many_communicators_share_the_last_counter)
{
    struct folder folder = folder_create();
    struct wf_trace *trace = make_trace();
    struct wf_metrics *metrics = begin(trace, folder.path, WF_METRICS_INTERVAL_NS);
    char name[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "comm %d", i);
        wf_trace_finish(trace, submit(trace, name, 8));
    }
    wf_metrics_end(metrics);
    ck_assert_double_eq(
        value_of(&folder, "weft_operations_total" LABELS ",comm=\"comm 254\",op=\"all-reduce\"} "),
        1);
    ck_assert_double_eq(
        value_of(&folder, "weft_operations_total" LABELS ",comm=\"other\",op=\"other\"} "),
        1000 - 255);
    wf_trace_destroy(trace);
    folder_remove(&folder);
}

TEST(file_is_written_now_and_then)
{
    struct folder folder = folder_create();
    struct wf_trace *trace = make_trace();
    struct wf_metrics *metrics = begin(trace, folder.path, 1000000);
    double last = 0;

    for (int i = 1; i <= 5; i++) {
        double now;

        wf_trace_finish(trace, submit(trace, "tp", 8));
        do { /* the thread writes it */
            const char *at = strstr(read_file(&folder), "weft_operations_total" LABELS);

            now = at != NULL ? strtod(strchr(at, ' ') + 1, NULL) : 0;
            ck_assert_double_ge(now, last);
            ck_assert_ptr_nonnull(strstr(text, "weft_last_progress")); /* it is complete */
        } while (now < i);
        last = now;
    }
    wf_metrics_end(metrics);
    wf_trace_destroy(trace);
    folder_remove(&folder);
}

static int count_files(const struct folder *folder)
{
    DIR *entries = opendir(folder->path);
    int count = 0;

    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries))
        count += strstr(entry->d_name, "weft") != NULL;
    closedir(entries);
    return count;
}

TEST(missing_folder_is_reported_and_ignored)
{
    struct wf_trace *trace = make_trace();

    ck_assert_ptr_null(begin(trace, "/no/such/folder", WF_METRICS_INTERVAL_NS));
    ck_assert_ptr_null(begin(trace, "/dev/null", WF_METRICS_INTERVAL_NS));
    ck_assert(!wf_trace_is_active(trace));
    wf_trace_destroy(trace);
}

TEST(full_disk_leaves_the_last_file)
{
    struct folder folder = folder_create();
    struct wf_trace *trace = make_trace();
    struct wf_metrics *metrics = begin(trace, folder.path, WF_METRICS_INTERVAL_NS);
    struct rlimit before, small = {100, 100};
    weft_status status;
    int set;

    wf_trace_finish(trace, submit(trace, "tp", 8));
    ck_assert_int_eq(wf_metrics_write(metrics), WEFT_OK);
    wf_trace_finish(trace, submit(trace, "tp", 8));
    /* The limit stands for a disk that is full.  SIGXFSZ would end this process. */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    set = setrlimit(RLIMIT_FSIZE, &small); /* check's own files have more bytes */
    status = wf_metrics_write(metrics);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert(set == 0 && status == WEFT_ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr(weft_last_error(), file_of(&folder)));
    ck_assert_double_eq(
        value_of(&folder, "weft_operations_total" LABELS ",comm=\"tp\",op=\"all-reduce\"} "), 1);
    ck_assert_int_eq(count_files(&folder), 1);

    /* A pipe in the place of the unfinished file: opening it would block. */
    ck_assert_int_eq(mkfifo(folder_path(&folder, ".weft.0000000000000abc.3.prom.tmp"), 0600), 0);
    ck_assert_int_eq(wf_metrics_write(metrics), WEFT_OK);
    ck_assert_int_eq(count_files(&folder), 1);

    folder_remove(&folder); /* and now the folder is gone */
    ck_assert_int_eq(wf_metrics_write(metrics), WEFT_ERR_SYSTEM);
    wf_trace_finish(trace, submit(trace, "tp", 8));
    wf_metrics_end(metrics);
    wf_trace_destroy(trace);
}

struct making {
    struct wf_trace *trace;
    struct wf_metrics *metrics;
    const char *path;
};

static weft_status make(void *argument)
{
    struct making *making = argument;

    return wf_metrics_begin(making->trace, making->path, WF_METRICS_INTERVAL_NS, &making->metrics);
}

static void unmake(void *argument)
{
    struct making *making = argument;

    wf_metrics_end(making->metrics);
    making->metrics = NULL;
}

TEST(missing_memory_is_no_crash)
{
    struct folder folder = folder_create();
    struct making making = {.trace = make_trace(), .path = folder.path};

    for (uint64_t n = 1; n <= 4; n++) { /* text that has no memory is a file that is not written */
        weft_status status;

        wf_mem_fail_at(n);
        status = make(&making);
        wf_mem_fail_at(0);
        ck_assert(status == WEFT_OK || status == WEFT_ERR_NO_MEMORY);
        if (status == WEFT_OK) unmake(&making);
    }
    wf_trace_destroy(making.trace);
    folder_remove(&folder);
}
