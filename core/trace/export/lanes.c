/* lanes.c - tracks whose slices begin and end as the host sees it. */
#include "export.h"
#include "protobuf.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACKET_EVENT    11
#define EVENT_TYPE      9
#define EVENT_TRACK     11
#define EVENT_FLOW      47
#define EVENT_FLOW_ENDS 48
#define LANES_MOST      4096
#define COUNTED_BYTES   4096 /* less is over before its two values are written */

/* ---- what records mean ---- */

static uint64_t mix_message(const weft_record *record, uint64_t group, int32_t source,
                            int32_t target)
{
    uint64_t pair = (uint64_t)(uint32_t)source << 32 | (uint32_t)target;

    return wf_hash_mix(wf_hash_mix(wf_hash_mix(2, group), record->sequence), pair) | 1;
}

uint64_t wf_flow_of(const struct wf_export *export, const weft_record *record,
                    const struct wf_shape *shape)
{
    if (record->sequence == 0 || shape->group == 0) return 0;
    switch (record->operation) {
    case WEFT_RECORD_SEND:
        return mix_message(record, shape->group, export->rank, record->peer);
    case WEFT_RECORD_RECEIVE:
        return mix_message(record, shape->group, record->peer, export->rank);
    case WEFT_RECORD_COPY:
    case WEFT_RECORD_SYMM_BARRIER: /* has no number of its own */
    case WEFT_RECORD_REDISTRIBUTE:
    case WEFT_RECORD_PLAN:
        return 0;
    case WEFT_RECORD_CREATE:
    case WEFT_RECORD_RELEASE:
    case WEFT_RECORD_LOAD:
    case WEFT_RECORD_SAVE:
        return record->axes != 0 ? 0
                                 : wf_hash_mix(wf_hash_mix(5, shape->group), record->sequence) | 1;
    case WEFT_RECORD_AGREE:
        return record->axes != 0 ? 0
                                 : wf_hash_mix(wf_hash_mix(6, shape->group), record->sequence) | 1;
    default:
        return wf_hash_mix(wf_hash_mix(3, shape->group), record->sequence) | 1;
    }
}

uint64_t wf_flow_submitted(const struct wf_export *export, uint64_t id)
{
    return wf_hash_mix(wf_hash_mix(4, (uint64_t) export->rank + 1), id) | 1;
}

uint64_t wf_bytes_in_flight(const weft_record *record)
{
    uint64_t bytes;

    if (record->operation == WEFT_RECORD_REDISTRIBUTE || record->operation == WEFT_RECORD_PLAN ||
        record->operation == WEFT_RECORD_COPY || wf_record_is_creation(record))
        return 0;
    bytes = record->sent > record->received ? record->sent : record->received;
    return bytes >= COUNTED_BYTES ? bytes : 0;
}

/* ---- events ---- */

/* Begin an event on LANE, at NS or later. */
static inline __attribute__((always_inline)) uint8_t *begin_event(struct wf_export *export,
                                                                  struct wf_lane *lane, uint64_t ns,
                                                                  enum wf_event_type type,
                                                                  uint8_t **event, uint8_t **body)
{
    uint8_t *at;

    if (ns < lane->last_ns) ns = lane->last_ns;
    lane->last_ns = ns;
    at = wf_packet_begin(export, wf_output_room(&export->output), ns, body);
    at = wf_put_begin(at, PACKET_EVENT, event);
    *at++ = EVENT_TYPE << 3;
    *at++ = (uint8_t)type;
    memcpy(at, lane->head, sizeof lane->head);
    return at + lane->head_bytes;
}

static inline void end_event(struct wf_export *export, uint8_t *event, uint8_t *body,
                             const uint8_t *at)
{
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
}

/* The shape of RECORD; LANE remembers recent ones. */
static inline const struct wf_shape *find_shape(struct wf_export *export, struct wf_lane *lane,
                                                const weft_record *record)
{
    const struct wf_shape **recent =
        &lane->recent[(record->operation + record->step) % WF_LANE_SHAPES];

    if (*recent == NULL || !wf_shape_is_of(*recent, record))
        *recent = wf_shape_find(export, record);
    return *recent;
}

static void write_begin(struct wf_export *export, struct wf_lane *lane,
                        const struct wf_open_slice *open)
{
    const weft_record *record = &open->record;
    const struct wf_shape *shape = find_shape(export, lane, record);
    uint64_t ns = wf_pace_convert(&export->pace, record->submitted);
    uint64_t flow =
        record->operation == WEFT_RECORD_RECEIVE ? 0 : wf_flow_of(export, record, shape);
    uint8_t *event, *body, *at = begin_event(export, lane, ns, WF_EVENT_BEGIN, &event, &body);

    memcpy(at, shape->encoded, 64); /* most shapes */
    if (shape->bytes > 64) memcpy(at + 64, shape->encoded + 64, sizeof shape->encoded - 64);
    at += shape->bytes;
    if (record->sequence > 0) at = wf_put_note(at, WF_NOTE_SEQUENCE, record->sequence);
    if (flow != 0) at = wf_put_fixed(at, EVENT_FLOW, flow);
    end_event(export, event, body, at);
    if (wf_bytes_in_flight(record) > 0)
        wf_packets_counter(export, WF_TRACK_IN_FLIGHT, lane->last_ns, open->in_flight);
}

void wf_lane_write(struct wf_export *export, struct wf_lane *lane)
{
    while (lane->written < lane->depth)
        write_begin(export, lane, &lane->open[lane->written++]);
}

/* The slice on top of LANE, whose end is written, is not open any more. */
static void pop(struct wf_export *export, struct wf_lane *lane)
{
    uint64_t bytes = wf_bytes_in_flight(&lane->open[--lane->depth].record), before;

    lane->written = lane->depth;
    if (bytes == 0) return;
    before = atomic_fetch_sub_explicit(&export->in_flight, bytes, memory_order_relaxed);
    wf_packets_counter(export, WF_TRACK_IN_FLIGHT, lane->last_ns, before - bytes);
}

/* End the slice on top of LANE, whose begin is written. */
static void end_top(struct wf_export *export, struct wf_lane *lane, uint64_t ns)
{
    uint8_t *event, *body, *at = begin_event(export, lane, ns, WF_EVENT_END, &event, &body);

    end_event(export, event, body, at);
    pop(export, lane);
}

/* End slices whose records the recorder no longer has: no end will be reported for them. */
static void end_lost(struct wf_export *export, struct wf_lane *lane, const weft_record *record)
{
    if (!lane->is_stream) wf_export_lock(export);
    wf_lane_write(export, lane);
    while (lane->depth > 0 &&
           lane->open[lane->depth - 1].record.id + export->trace->mask < record->id)
        end_top(export, lane, wf_pace_convert(&export->pace, record->submitted));
    if (!lane->is_stream) wf_export_unlock(export);
}

void wf_lane_push(struct wf_export *export, struct wf_lane *lane, const weft_record *record)
{
    uint64_t bytes = wf_bytes_in_flight(record);
    struct wf_open_slice *open;

    if (lane->depth > 0 && lane->open[lane->depth - 1].record.id + export->trace->mask < record->id)
        end_lost(export, lane, record);
    if (lane->depth == WF_LANE_DEPTH) {
        atomic_fetch_add_explicit(&export->missed, 1, memory_order_relaxed);
        return;
    }
    open = &lane->open[lane->depth++];
    memcpy(&open->record, record, sizeof open->record);
    if (bytes > 0)
        open->in_flight =
            atomic_fetch_add_explicit(&export->in_flight, bytes, memory_order_relaxed) + bytes;
}

void wf_lane_end(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                 uint64_t ns)
{
    bool receives = record->operation == WEFT_RECORD_RECEIVE;
    uint32_t found = lane->depth, status = 0;
    uint8_t *event, *body, *at;
    uint64_t flow = 0;

    while (found > 0 && lane->open[found - 1].record.id != record->id)
        found--;
    if (found == 0) return;
    wf_lane_write(export, lane);
    while (lane->depth > found)
        end_top(export, lane, ns);
    if (!receives && record->state != WEFT_RECORD_FAILED) {
        end_top(export, lane, ns);
        return;
    }
    if (receives) flow = wf_flow_of(export, record, wf_shape_find(export, record));
    if (record->state == WEFT_RECORD_FAILED)
        status = wf_packets_intern(export, WF_INTERN_TEXT, weft_status_name(record->status));
    at = begin_event(export, lane, ns, WF_EVENT_END, &event, &body);
    at = wf_put_text_note(at, WF_NOTE_STATUS, status);
    if (flow != 0) at = wf_put_fixed(at, EVENT_FLOW_ENDS, flow);
    end_event(export, event, body, at);
    pop(export, lane);
}

void wf_lane_mark(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                  uint64_t ns)
{
    const struct wf_shape *shape;
    uint8_t *event, *body, *at;

    wf_lane_write(export, lane); /* before a shape is found: it may use the same place */
    shape = wf_shape_find(export, record);
    at = begin_event(export, lane, ns, WF_EVENT_INSTANT, &event, &body);
    memcpy(at, shape->encoded, shape->name_bytes);
    at = wf_put_fixed(at + shape->name_bytes, EVENT_FLOW, wf_flow_submitted(export, record->id));
    end_event(export, event, body, at);
}

void wf_lane_close(struct wf_export *export, struct wf_lane *lane, uint64_t ns)
{
    wf_lane_write(export, lane);
    while (lane->depth > 0)
        end_top(export, lane, ns);
}

/* ---- finding them ---- */

static struct wf_lane *find(const struct wf_export *export, uint64_t key, bool is_stream)
{
    for (struct wf_lane *lane = export->lanes; lane != NULL; lane = lane->next)
        if (lane->key == key && lane->is_stream == is_stream) return lane;
    return NULL;
}

static struct wf_lane *add(struct wf_export *export, uint64_t key, bool is_stream, const char *name)
{
    bool has_room = export->lane_count < LANES_MOST && export->track_count < WF_TRACKS;
    struct wf_lane *lane = has_room ? wf_calloc(1, sizeof *lane) : NULL;

    if (lane == NULL) {
        atomic_fetch_add(&export->missed, 1);
        return NULL;
    }
    lane->key = key;
    lane->is_stream = is_stream;
    lane->head_bytes = wf_packets_track(export, name, lane->head, &lane->track);
    lane->next = export->lanes;
    export->lanes = lane;
    export->lane_count++;
    return lane;
}

__thread struct wf_recent_lane wf_recent_lane;

struct wf_lane *wf_lane_find_thread(struct wf_export *export)
{
    struct wf_recent_lane *recent = &wf_recent_lane;
    uint64_t tid = (uint64_t)syscall(SYS_gettid);
    char thread[20] = "", name[64];

    wf_export_lock(export);
    recent->lane = find(export, tid, false);
    if (recent->lane == NULL) {
        (void)pthread_getname_np(pthread_self(), thread, sizeof thread);
        snprintf(name, sizeof name, "host calls (%s %llu)", thread, (unsigned long long)tid);
        recent->lane = add(export, tid, false, name);
    }
    wf_export_unlock(export);
    recent->serial = recent->lane != NULL ? export->serial : 0;
    return recent->lane;
}

struct wf_lane *wf_lane_find_stream(const struct wf_export *export, uint64_t stream)
{
    return find(export, stream, true);
}

void wf_lane_remove_stream(struct wf_export *export, uint64_t stream, uint64_t ns)
{
    struct wf_lane **at = &export->lanes, *lane = find(export, stream, true);

    if (lane == NULL) return;
    wf_lane_close(export, lane, ns);
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
    export->lane_count--;
    wf_free(lane);
}

struct wf_lane *wf_lane_stream(struct wf_export *export, uint64_t stream)
{
    struct wf_lane *lane = find(export, stream, true);
    char name[96];

    if (lane != NULL) return lane;
    wf_stream_label(export, stream, WF_SEEN_BY_HOST, name, sizeof name);
    return add(export, stream, true, name);
}

void wf_lanes_free(struct wf_export *export)
{
    while (export->lanes != NULL) {
        struct wf_lane *next = export->lanes->next;

        wf_free(export->lanes);
        export->lanes = next;
    }
}
