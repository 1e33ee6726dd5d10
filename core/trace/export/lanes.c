/* lanes.c - tracks whose slices begin and end as the host sees it. */
#include "export.h"
#include "protobuf.h"

#include <stdio.h>
#include <unistd.h>

#define PACKET_EVENT     11
#define EVENT_TYPE       9
#define EVENT_TRACK      11
#define EVENT_FLOW       47
#define EVENT_FLOW_ENDS  48
#define LANES_MOST       4096

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
    if (record->sequence == 0 || record->comm == 0) return 0;
    switch (record->operation) {
    case WEFT_OP_SEND: return mix_message(record, shape->group, export->rank, record->peer);
    case WEFT_OP_RECEIVE: return mix_message(record, shape->group, record->peer, export->rank);
    case WEFT_OP_COPY:
    case WEFT_OP_SYMM_BARRIER: /* has no number of its own */
    case WEFT_OP_REDISTRIBUTE:
    case WEFT_OP_PLAN: return 0;
    default: return wf_hash_mix(wf_hash_mix(3, shape->group), record->sequence) | 1;
    }
}

uint64_t wf_flow_submitted(const struct wf_export *export, uint64_t id)
{
    return wf_hash_mix(wf_hash_mix(4, (uint64_t)export->rank + 1), id) | 1;
}

uint64_t wf_bytes_in_flight(const weft_record *record)
{
    if (record->operation == WEFT_OP_REDISTRIBUTE || record->operation == WEFT_OP_PLAN ||
        record->operation == WEFT_OP_COPY)
        return 0;
    return record->sent > record->received ? record->sent : record->received;
}

/* ---- events ---- */

/* Begin an event on LANE, at NS or later. */
static inline uint8_t *begin_event(struct wf_export *export, struct wf_lane *lane, uint64_t ns,
                                   enum wf_event_type type, uint8_t **event, uint8_t **body)
{
    uint8_t *at;

    if (ns < lane->last_ns) ns = lane->last_ns;
    lane->last_ns = ns;
    at = wf_packet_begin(export, wf_output_room(&export->output), ns, body);
    at = wf_put_begin(at, PACKET_EVENT, event);
    at = wf_put_number(at, EVENT_TYPE, type);
    return wf_put_number(at, EVENT_TRACK, lane->uuid);
}

static inline void end_event(struct wf_export *export, uint8_t *event, uint8_t *body,
                             const uint8_t *at)
{
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
}

static void add_in_flight(struct wf_export *export, uint64_t ns, uint64_t more, uint64_t less)
{
    if (more == less) return;
    export->in_flight += more - less;
    wf_packets_counter(export, WF_TRACK_IN_FLIGHT, ns, export->in_flight);
}

/* End the slice on top of LANE. */
static void end_top(struct wf_export *export, struct wf_lane *lane, uint64_t ns)
{
    uint8_t *event, *body, *at = begin_event(export, lane, ns, WF_EVENT_END, &event, &body);

    end_event(export, event, body, at);
    lane->depth--;
    add_in_flight(export, lane->last_ns, 0, lane->open[lane->depth].bytes);
}

/* End slices whose records the ring no longer has: no end will be reported for them. */
static void end_lost(struct wf_export *export, struct wf_lane *lane, uint64_t id, uint64_t ns)
{
    while (lane->depth > 0 && lane->open[lane->depth - 1].id + export->trace->mask < id)
        end_top(export, lane, ns);
}

void wf_lane_begin(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                   uint64_t ns)
{
    const struct wf_shape *shape = wf_shape_find(export, record);
    uint64_t flow =
        record->operation == WEFT_OP_RECEIVE ? 0 : wf_flow_of(export, record, shape);
    uint64_t bytes = wf_bytes_in_flight(record);
    uint8_t *event, *body, *at;

    end_lost(export, lane, record->id, ns);
    if (lane->depth == WF_LANE_DEPTH) {
        export->missed++;
        return;
    }
    at = begin_event(export, lane, ns, WF_EVENT_BEGIN, &event, &body);
    memcpy(at, shape->encoded, sizeof shape->encoded);
    at += shape->bytes;
    if (record->sequence > 0) at = wf_put_note(at, WF_NOTE_SEQUENCE, record->sequence);
    if (flow != 0) at = wf_put_fixed(at, EVENT_FLOW, flow);
    end_event(export, event, body, at);
    lane->open[lane->depth++] = (struct wf_open_slice){record->id, bytes};
    add_in_flight(export, lane->last_ns, bytes, 0);
}

void wf_lane_end(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                 uint64_t ns)
{
    bool receives = record->operation == WEFT_OP_RECEIVE;
    uint32_t found = lane->depth, status = 0;
    uint64_t flow = 0;
    uint8_t *event, *body, *at;

    while (found > 0 && lane->open[found - 1].id != record->id)
        found--;
    if (found == 0) return;
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
    lane->depth--;
    add_in_flight(export, lane->last_ns, 0, lane->open[lane->depth].bytes);
}

void wf_lane_mark(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                  uint64_t ns)
{
    const struct wf_shape *shape = wf_shape_find(export, record);
    uint8_t *event, *body, *at = begin_event(export, lane, ns, WF_EVENT_INSTANT, &event, &body);

    memcpy(at, shape->encoded, shape->name_bytes);
    at = wf_put_fixed(at + shape->name_bytes, EVENT_FLOW, wf_flow_submitted(export, record->id));
    end_event(export, event, body, at);
}

void wf_lane_close(struct wf_export *export, struct wf_lane *lane, uint64_t ns)
{
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
    struct wf_lane *lane =
        export->track_count < LANES_MOST ? wf_calloc(1, sizeof *lane) : NULL;

    if (lane == NULL) {
        export->missed++;
        return NULL;
    }
    lane->key = key;
    lane->is_stream = is_stream;
    lane->uuid = wf_packets_track(export, name);
    lane->next = export->lanes;
    export->lanes = lane;
    return lane;
}

struct wf_lane *wf_lane_thread(struct wf_export *export)
{
    static __thread struct {
        uint64_t serial; /* of the export */
        struct wf_lane *lane;
    } recent;
    char thread[20] = "", name[64];
    uint64_t tid;

    if (__builtin_expect(recent.serial == export->serial, 1)) return recent.lane;
    tid = (uint64_t)gettid();
    recent.lane = find(export, tid, false);
    if (recent.lane == NULL) {
        (void)pthread_getname_np(pthread_self(), thread, sizeof thread);
        snprintf(name, sizeof name, "host calls (%s %llu)", thread, (unsigned long long)tid);
        recent.lane = add(export, tid, false, name);
    }
    recent.serial = recent.lane != NULL ? export->serial : 0;
    return recent.lane;
}

struct wf_lane *wf_lane_stream(struct wf_export *export, uint64_t stream)
{
    struct wf_lane *lane = find(export, stream, true);
    char name[64];

    if (lane != NULL) return lane;
    if (stream == 0)
        snprintf(name, sizeof name, "default stream (seen by the host)");
    else
        snprintf(name, sizeof name, "stream %#llx (seen by the host)", (unsigned long long)stream);
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
