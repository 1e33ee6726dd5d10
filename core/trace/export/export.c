/* export.c - the observer that writes a trace. */
#include "export.h"
#include "protobuf.h"

#define PACKET_EVENT 11
#define EVENT_TYPE   9
#define EVENT_NAME   23
#define EVENT_TRACK  11
#define FLUSH_NS     1000000000u /* a rank that is killed loses no more */

/* ---- callbacks ---- */

static bool is_on_stream(const weft_record *record)
{
    return (record->flags & WEFT_RECORD_ON_STREAM) != 0;
}

/* At NS, write the counter of scratch if it has changed, and the file if its time has come. */
static inline void see_time(struct wf_export *export, uint64_t ns)
{
    uint64_t scratch = atomic_load_explicit(&export->trace->scratch, memory_order_relaxed);

    if (__builtin_expect(scratch != export->scratch, 0)) {
        export->scratch = scratch;
        wf_packets_counter(export, WF_TRACK_SCRATCH, ns, scratch);
    }
    if (__builtin_expect(ns >= export->flush_ns, 0)) {
        wf_output_flush(&export->output);
        export->flush_ns = ns + FLUSH_NS;
    }
}

/* RECORD was handed to a stream. */
static void see_posted(struct wf_export *export, struct wf_lane *thread, const weft_record *record)
{
    struct wf_lane *lane;
    uint64_t ns;

    wf_export_lock(export);
    ns = wf_pace_convert(&export->pace, record->submitted);
    wf_lane_mark(export, thread, record, ns);
    lane = export->device_times ? NULL : wf_lane_stream(export, record->stream);
    if (lane != NULL) {
        wf_lane_push(export, lane, record);
        wf_lane_write(export, lane);
    }
    see_time(export, ns);
    wf_export_unlock(export);
}

static WF_HOT void see_submitted(void *user, const weft_record *record)
{
    struct wf_export *export = user;
    struct wf_lane *lane = wf_lane_thread(export);

    if (lane == NULL) return;
    if (is_on_stream(record))
        see_posted(export, lane, record);
    else
        wf_lane_push(export, lane, record);
}

static WF_HOT void see_finished(void *user, const weft_record *record)
{
    struct wf_export *export = user;
    struct wf_lane *lane = NULL;
    uint64_t ticks = record->finished, ns;

    if (ticks == 0) ticks = wf_ticks(); /* it failed */
    if (is_on_stream(record) && export->device_times) return;
    if (!is_on_stream(record)) lane = wf_lane_thread(export);
    wf_export_lock(export);
    ns = wf_pace_convert(&export->pace, ticks);
    if (is_on_stream(record)) lane = wf_lane_find_stream(export, record->stream);
    if (lane != NULL) wf_lane_end(export, lane, record, ns);
    see_time(export, ns);
    wf_export_unlock(export);
}

/* The program may end now: what is known is written. */
static void see_failed(void *user, uint64_t comm, weft_status status, const char *text)
{
    struct wf_export *export = user;

    (void)comm, (void)status, (void)text;
    wf_export_lock(export);
    wf_output_flush(&export->output);
    wf_export_unlock(export);
}

/* Change the bytes in flight, as the host knows them, now. */
static void count_in_flight(struct wf_export *export, uint64_t more, uint64_t less)
{
    if (more == less) return;
    atomic_fetch_add_explicit(&export->in_flight, more - less, memory_order_relaxed);
    wf_packets_counter(export, WF_TRACK_IN_FLIGHT, wf_pace_convert(&export->pace, wf_ticks()),
                       atomic_load_explicit(&export->in_flight, memory_order_relaxed));
}

void wf_export_post(struct wf_export *export, const weft_record *record)
{
    wf_export_lock(export);
    if (record != NULL) {
        (void)wf_device_lane(export, record->stream); /* now, so that later calls do not allocate */
        (void)wf_shape_find(export, record);
        count_in_flight(export, wf_bytes_in_flight(record), 0);
    } else {
        atomic_fetch_add(&export->missed, 1);
    }
    wf_export_unlock(export);
}

void wf_export_drop(struct wf_export *export, const weft_record *record)
{
    wf_export_lock(export);
    count_in_flight(export, 0, wf_bytes_in_flight(record));
    atomic_fetch_add(&export->missed, 1);
    wf_export_unlock(export);
}

void wf_export_slice(struct wf_export *export, weft_record *record, uint64_t started,
                     uint64_t finished, const weft_record *parent)
{
    uint64_t submitted;

    wf_export_lock(export);
    submitted = wf_pace_convert(&export->pace, record->submitted);
    if (started < submitted) started = submitted; /* within the anchor's error */
    if (finished < started) finished = started;
    wf_device_slice(export, record, started, finished, parent);
    count_in_flight(export, 0, wf_bytes_in_flight(record));
    record->started = wf_pace_invert(&export->pace, started);
    record->finished = wf_pace_invert(&export->pace, finished);
    wf_export_unlock(export);
}

/* ---- facts ---- */

/* An instant NAME on the rank's track begins. */
static uint8_t *begin_fact(struct wf_export *export, const char *name, uint64_t ns, uint8_t **event,
                           uint8_t **body)
{
    uint8_t *at = wf_packet_begin(export, wf_output_room(&export->output), ns, body);

    at = wf_put_begin(at, PACKET_EVENT, event);
    at = wf_put_number(at, EVENT_TYPE, WF_EVENT_INSTANT);
    at = wf_put_number(at, EVENT_TRACK, export->track_base);
    return wf_put_text(at, EVENT_NAME, name);
}

void wf_export_clock(struct wf_export *export, uint64_t ns, int64_t offset_ns, uint64_t bound_ns)
{
    uint8_t *event, *body, *at;

    wf_export_lock(export);
    at = begin_fact(export, "clock", ns, &event, &body);
    at = wf_put_signed_note(at, WF_NOTE_OFFSET, offset_ns);
    at = wf_put_note(at, WF_NOTE_BOUND, bound_ns);
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
    wf_output_flush(&export->output); /* the file states what it is, whatever becomes of the rank */
    wf_export_unlock(export);
}

void wf_export_comm(struct wf_export *export, uint32_t name, uint32_t ranks, uint32_t carrier)
{
    uint32_t texts[3] = {name, ranks, carrier};
    uint8_t *event, *body, *at;

    wf_export_lock(export);
    wf_shapes_make_room(export);
    for (size_t i = 0; i < WF_COUNT(texts); i++)
        texts[i] =
            wf_packets_intern(export, WF_INTERN_TEXT, wf_trace_text(export->trace, texts[i]));
    at = begin_fact(export, "communicator", wf_pace_convert(&export->pace, wf_ticks()), &event,
                    &body);
    at = wf_put_text_note(at, WF_NOTE_COMM, texts[0]);
    at = wf_put_text_note(at, WF_NOTE_RANKS, texts[1]);
    at = wf_put_text_note(at, WF_NOTE_CARRIER, texts[2]);
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
    wf_export_unlock(export);
}

void wf_export_time_streams(struct wf_export *export)
{
    export->device_times = true;
}

/* ---- its life ---- */

static void destroy(struct wf_export *export)
{
    wf_output_close(&export->output);
    wf_lanes_free(export);
    wf_free(export->shapes);
    wf_free(export->texts);
    wf_free(export->predictions);
    wf_free(export);
}

/* All of its memory but that of lanes. */
static bool make_tables(struct wf_export *export)
{
    export->shapes = wf_calloc(WF_SHAPES, sizeof *export->shapes);
    export->texts = wf_calloc(WF_TEXT_PLACES, sizeof *export->texts);
    export->predictions = wf_calloc(WF_PREDICTION_PLACES, sizeof *export->predictions);
    if (export->shapes != NULL && export->texts != NULL && export->predictions != NULL) return true;
    wf_log(WF_LOG_WARNING, "WEFT_TRACE: there is no memory; this rank writes no trace");
    return false;
}

void wf_export_begin(struct wf_trace *trace, const char *pattern,
                     const struct wf_trace_identity *identity)
{
    static _Atomic uint64_t serials;
    weft_observer observer = {.struct_size = sizeof observer,
                              .submitted = see_submitted,
                              .finished = see_finished,
                              .planned = see_submitted,
                              .redistributes = see_submitted,
                              .failed = see_failed};
    struct wf_export *export = wf_calloc(1, sizeof *export);

    if (export == NULL) {
        wf_log(WF_LOG_WARNING, "WEFT_TRACE: there is no memory; this rank writes no trace");
        return;
    }
    export->trace = trace;
    export->output.file = -1;
    export->rank = identity->rank;
    export->serial = atomic_fetch_add(&serials, 1) + 1;
    observer.user = export;
    if (!make_tables(export) || !wf_output_open(&export->output, pattern, identity->rank) ||
        wf_observers_add(trace, &observer, &export->slot) != WEFT_OK) {
        destroy(export);
        return;
    }
    wf_pace_begin(&export->pace);
    wf_export_lock(export);
    wf_packets_begin(export, identity);
    wf_export_unlock(export);
    wf_observers_keep(trace, export->slot);
    trace->export = export;
}

void wf_export_end(struct wf_trace *trace)
{
    struct wf_export *export = trace->export;
    struct wf_lane *lane;
    uint8_t *event, *body, *at;
    uint64_t ns;

    if (export == NULL) return;
    wf_observers_remove(trace, export->slot);
    trace->export = NULL;
    ns = wf_pace_convert(&export->pace, wf_ticks());
    for (lane = export->lanes; lane != NULL; lane = lane->next)
        wf_lane_close(export, lane, ns);
    wf_devices_close(export);
    at = begin_fact(export, "weft trace ends", ns, &event, &body);
    at = wf_put_note(at, WF_NOTE_MISSED, export->missed);
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
    destroy(export);
}
