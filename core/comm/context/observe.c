/* observe.c - the trace of a context: its life, its observers, its counters and its dumps. */
#include "comm/recording.h"

#include "rendezvous/launch.h"
#include "trace/counts.h"
#include "trace/dump/dump.h"
#include "trace/metrics.h"
#include "trace/rank_file.h"
#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* An observer of a context.  CONTEXT is NULL after the context's end. */
struct weft_observation {
    weft_observation *next;
    weft_context *context;
    uint32_t slot;
    atomic_bool is_over; /* released in its own callback, where the context may be locked */
};

/* ---- the life of the trace ---- */

/* Let all communicators record, or none. */
static void switch_records(weft_context *context)
{
    struct wf_trace *trace;

    pthread_mutex_lock(&context->lock); /* the last of several changes sees them all */
    trace = wf_trace_is_active(context->trace) ? context->trace : NULL;
    atomic_store(&context->tracing, trace);
    for (weft_comm *comm = context->comms; comm != NULL; comm = comm->next)
        atomic_store(&comm->tracing, trace);
    pthread_mutex_unlock(&context->lock);
}

/* The file that WEFT_COUNTS names, or NULL. */
static const char *counts_file(const weft_context *context)
{
    const char *file = context->config->counts;

    return file != NULL && file[0] != '\0' ? file : NULL;
}

void wf_tracing_clock(weft_context *context)
{
    struct wf_export *export = context->trace != NULL ? context->trace->export : NULL;
    struct wf_clock_offset clock = {.at_ns = wf_now_ns()};
    const char *host;

    if (export == NULL) return;
    host = context->config->host_id;
    if (context->client != NULL &&
        wf_client_clock(context->client,
                        host != NULL ? wf_identity(host).host : wf_clock_identity(),
                        &clock) != WEFT_OK)
        return; /* the server has ended */
    wf_export_clock(export, clock.at_ns, clock.offset_ns, clock.bound_ns);
}

_Static_assert(WF_CONFIG_RECORDER_MOST == WF_RECORDS_MOST,
               "the values that WEFT_RECORDER may have");

/* Two variables may not name one file, because a rank would write both contents to it. */
static weft_status check_files(const weft_context *context)
{
    const struct wf_config *config = context->config;
    const struct {
        const char *variable, *pattern;
    } files[] = {{"WEFT_TRACE", config->trace},
                 {"WEFT_DUMP", config->dump},
                 {"WEFT_COUNTS", config->counts}};
    char names[WF_COUNT(files)][1024];

    for (size_t i = 0; i < WF_COUNT(files); i++) {
        if (files[i].pattern == NULL ||
            !wf_rank_file_name(files[i].pattern, context->rank, names[i], sizeof names[i]))
            names[i][0] = '\0';
        for (size_t k = 0; k < i; k++)
            if (names[i][0] != '\0' && strcmp(names[k], names[i]) == 0)
                return wf_fail(WEFT_ERR_INVALID,
                               "weft_init: %s is \"%s\" and %s is \"%s\", so that both are the "
                               "file %s; set different names",
                               files[k].variable, files[k].pattern, files[i].variable,
                               files[i].pattern, names[i]);
    }
    return WEFT_OK;
}

weft_status wf_tracing_begin(weft_context *context)
{
    struct wf_trace_identity identity = {.job = context->job,
                                         .rank = context->rank,
                                         .size = context->size,
                                         .backend =
                                             context->plugin != NULL ? context->plugin->name : ""};

    WF_TRY(check_files(context));
    WF_TRY(wf_trace_create(&identity, (uint64_t)context->config->recorder, &context->trace));
    if (counts_file(context) != NULL)
        WF_TRY(wf_counts_begin(context->trace, context, &context->counts));
    if (context->config->metrics != NULL)
        WF_TRY(wf_metrics_begin(context->trace, context->config->metrics, WF_METRICS_INTERVAL_NS,
                                &context->trace->metrics));
    if (context->config->trace != NULL)
        wf_export_begin(context->trace, context->config->trace, &identity);
    wf_tracing_clock(context);
    WF_TRY(wf_dump_begin(context->trace, context->config->dump));
    switch_records(context);
    return WEFT_OK;
}

/* ranges_wanted may read the environment. */
void wf_tracing_mark_ranges(weft_context *context)
{
    const weft_device_table *table = context->plugin->device;
    uint32_t wanted;

    if (context->trace == NULL) return; /* a newcomer: it is called again */
    if (!WF_HAS(table, ranges_wanted) || !WF_HAS(table, range_begin) || !WF_HAS(table, range_end))
        return;
    wf_environment_lock();
    wanted = table->ranges_wanted();
    wf_environment_unlock();
    if (wanted == 0) return;
    wf_ranges_mark(context->trace, table);
    switch_records(context);
}

static void write_counts(weft_context *context)
{
    weft_record_counts *counts = context->counts;

    if (counts == NULL) return;
    wf_counts_end(context->trace, counts);
    if (context->is_made &&
        wf_counts_append(&counts->grown, counts_file(context), context->rank) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "WEFT_COUNTS: %s", weft_last_error());
    wf_free(counts);
    context->counts = NULL;
}

/* Free observations that were released in their own callback. */
static void drop_released(weft_context *context)
{
    weft_observation **at = &context->observations;

    pthread_mutex_lock(&context->lock);
    while (*at != NULL) {
        weft_observation *observation = *at;

        if (atomic_load(&observation->is_over)) {
            *at = observation->next;
            wf_free(observation);
        } else {
            at = &observation->next;
        }
    }
    pthread_mutex_unlock(&context->lock);
}

void wf_tracing_end(weft_context *context)
{
    if (context->trace == NULL) return;
    write_counts(context);
    drop_released(context);
    pthread_mutex_lock(&context->lock);
    for (weft_observation *o = context->observations; o != NULL; o = o->next)
        o->context = NULL;
    context->observations = NULL;
    pthread_mutex_unlock(&context->lock);
    wf_metrics_end(context->trace->metrics);
    wf_export_end(context->trace);
    wf_trace_destroy(context->trace);
    context->trace = NULL;
}

/* ---- observers ---- */

weft_status weft_observe(weft_context *context, const weft_observer *observer,
                         weft_observation **out)
{
    weft_observer given = {0};
    weft_observation *observation;
    weft_status status;

    WF_TRY(wf_context_check(context, "weft_observe"));
    if (observer == NULL || out == NULL)
        return wf_fail_null("weft_observe", observer == NULL ? "observer" : "out");
    status = wf_options_read("weft_observer", observer, &given, sizeof given);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_observe");
    observation = wf_alloc(sizeof *observation);
    if (observation == NULL) return wf_fail_memory(sizeof *observation);
    observation->context = context;
    atomic_store(&observation->is_over, false);
    drop_released(context);
    status = wf_observers_add(context->trace, &given, &observation->slot);
    if (status != WEFT_OK) {
        wf_free(observation);
        return wf_fail_named(status, "weft_observe");
    }
    pthread_mutex_lock(&context->lock);
    observation->next = context->observations;
    context->observations = observation;
    pthread_mutex_unlock(&context->lock);
    switch_records(context);
    *out = observation;
    return WEFT_OK;
}

/* True if a thread, maybe this one, holds the context's lock. */
static bool is_locked(weft_context *context)
{
    if (pthread_mutex_trylock(&context->lock) != 0) return true;
    pthread_mutex_unlock(&context->lock);
    return false;
}

void weft_observation_release(weft_observation **held)
{
    weft_observation *observation;
    weft_context *context;
    bool may_lock;

    if (held == NULL || *held == NULL) return;
    observation = *held;
    *held = NULL;
    context = observation->context;
    if (context == NULL || !wf_is_usable(context->made, WF_KIND_CONTEXT)) {
        wf_free(observation);
        return;
    }
    may_lock = !wf_observers_is_inside(context->trace) || !is_locked(context);
    wf_observers_remove(context->trace, observation->slot);
    atomic_store(&observation->is_over, true);
    if (!may_lock) return; /* it is freed later, and records are made until then */
    drop_released(context);
    switch_records(context);
}

/* ---- counters ---- */

weft_status weft_record_counts_create(weft_context *context, weft_record_counts **out)
{
    weft_status status;

    WF_TRY(wf_context_check(context, "weft_record_counts_create"));
    if (out == NULL) return wf_fail_null("weft_record_counts_create", "out");
    status = wf_counts_begin(context->trace, context, out);
    if (status != WEFT_OK) return wf_fail_context(status, "weft_record_counts_create");
    switch_records(context);
    return WEFT_OK;
}

weft_status weft_record_counts_end(weft_record_counts *counts)
{
    weft_context *context;

    if (counts == NULL) return wf_fail_null("weft_record_counts_end", "counts");
    context = counts->context;
    if (context == NULL)
        return wf_fail(WEFT_ERR_INVALID,
                       "weft_record_counts_end: the counting has ended; weft_record_counts_create "
                       "begins another one");
    WF_TRY(wf_context_check(context, "weft_record_counts_end"));
    wf_counts_end(context->trace, counts);
    switch_records(context);
    return WEFT_OK;
}

void weft_record_counts_release(weft_record_counts **held)
{
    weft_record_counts *counts;

    if (held == NULL || *held == NULL) return;
    counts = *held;
    *held = NULL;
    if (counts->context != NULL && wf_is_usable(counts->context->made, WF_KIND_CONTEXT))
        (void)!weft_record_counts_end(counts);
    wf_free(counts);
}

/* ---- texts ---- */

const char *weft_trace_text(weft_context *context, uint32_t text)
{
    if (context == NULL || !wf_is_usable(context->made, WF_KIND_CONTEXT)) return NULL;
    return wf_trace_text(context->trace, text);
}

weft_status weft_record_print(weft_context *context, const weft_record *record, char *text,
                              size_t size, size_t *needed)
{
    WF_TRY(wf_context_check(context, "weft_record_print"));
    if (record == NULL) return wf_fail_null("weft_record_print", "record");
    return wf_record_print(
        "weft_record_print", record,
        wf_trace_text(context->trace, record->axes != 0 ? record->axes : record->comm_name), text,
        size, needed);
}

/* ---- dumps ---- */

weft_status weft_dump(weft_context *context, const char *prefix)
{
    WF_TRY(wf_context_check(context, "weft_dump"));
    return wf_dump_call(context->trace, prefix);
}
