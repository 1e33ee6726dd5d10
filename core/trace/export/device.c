/* device.c - tracks of streams with times that were measured on the device.
 *
 * Slices arrive in the order in which they began.  One that begins before the end of another is
 * inside it, and ends with it at the latest, so that slices nest and times on a track never go
 * back. */
#include "export.h"
#include "protobuf.h"

#define PACKET_EVENT    11
#define EVENT_TYPE      9
#define EVENT_FLOW      47
#define EVENT_FLOW_ENDS 48

static uint8_t *begin_event(struct wf_export *export, struct wf_device_lane *lane, uint64_t ns,
                            enum wf_event_type type, uint8_t **event, uint8_t **body)
{
    uint8_t *at;

    if (ns < lane->last_ns) ns = lane->last_ns;
    lane->last_ns = ns;
    at = wf_packet_begin(export, wf_output_room(&export->output), ns, body);
    at = wf_put_begin(at, PACKET_EVENT, event);
    at = wf_put_number(at, EVENT_TYPE, type);
    memcpy(at, lane->head, sizeof lane->head);
    return at + lane->head_bytes;
}

static void end_event(struct wf_export *export, uint8_t *event, uint8_t *body, const uint8_t *at)
{
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
}

static void end_top(struct wf_export *export, struct wf_device_lane *lane)
{
    uint8_t *event, *body, *at;
    uint64_t flow;

    lane->depth--;
    flow = lane->open[lane->depth].flow;
    at = begin_event(export, lane, lane->open[lane->depth].end_ns, WF_EVENT_END, &event, &body);
    if (flow != 0) at = wf_put_fixed(at, EVENT_FLOW_ENDS, flow);
    end_event(export, event, body, at);
}

/* End the slices above the first BOTTOM that end before NS. */
static void end_before(struct wf_export *export, struct wf_device_lane *lane, uint32_t bottom,
                       uint64_t ns)
{
    while (lane->depth > bottom && lane->open[lane->depth - 1].end_ns <= ns)
        end_top(export, lane);
}

static void end_all(struct wf_export *export, struct wf_device_lane *lane)
{
    end_before(export, lane, 0, UINT64_MAX);
    lane->parent = 0;
}

static void begin_slice(struct wf_export *export, struct wf_device_lane *lane,
                        const weft_record *record, uint64_t started, uint64_t finished)
{
    const struct wf_shape *shape = wf_shape_find(export, record);
    uint64_t flow = wf_flow_of(export, record, shape);
    bool receives = record->operation == WEFT_RECORD_RECEIVE;
    uint8_t *event, *body, *at;

    at = begin_event(export, lane, started, WF_EVENT_BEGIN, &event, &body);
    memcpy(at, shape->encoded, shape->bytes);
    at += shape->bytes;
    if (record->sequence > 0) at = wf_put_note(at, WF_NOTE_SEQUENCE, record->sequence);
    at = wf_put_fixed(at, EVENT_FLOW, wf_flow_submitted(export, record->id));
    if (flow != 0 && !receives) at = wf_put_fixed(at, EVENT_FLOW, flow);
    end_event(export, event, body, at);
    lane->open[lane->depth].end_ns = finished;
    lane->open[lane->depth].flow = receives ? flow : 0;
    lane->depth++;
}

struct wf_device_lane *wf_device_lane(struct wf_export *export, uint64_t stream)
{
    struct wf_device_lane *lane = export->devices;
    char name[96];

    while (lane != NULL && lane->stream != stream)
        lane = lane->next;
    if (lane != NULL) return lane;
    lane = export->track_count < WF_TRACKS ? wf_calloc(1, sizeof *lane) : NULL;
    if (lane == NULL) return NULL;
    wf_stream_label(export, stream, "", name, sizeof name);
    lane->stream = stream;
    lane->head_bytes = wf_packets_track(export, name, lane->head, &lane->track);
    lane->next = export->devices;
    export->devices = lane;
    return lane;
}

/* Make PARENT, or nothing if it is NULL, the slice that contains the next one. */
static void set_parent(struct wf_export *export, struct wf_device_lane *lane,
                       const weft_record *parent, uint64_t started, uint64_t finished)
{
    uint64_t id = parent != NULL ? parent->id : 0;

    if (id != lane->parent) {
        end_all(export, lane);
        if (parent == NULL) return;
        begin_slice(export, lane, parent, started, finished);
        lane->parent = id;
    }
    if (id != 0 && lane->open[0].end_ns < finished) lane->open[0].end_ns = finished;
}

void wf_device_slice(struct wf_export *export, const weft_record *record, uint64_t started,
                     uint64_t finished, const weft_record *parent)
{
    struct wf_device_lane *lane = wf_device_lane(export, record->stream);

    if (lane == NULL) {
        export->missed++;
        return;
    }
    set_parent(export, lane, parent, started, finished);
    end_before(export, lane, lane->parent != 0 ? 1 : 0, started);
    if (lane->depth == WF_DEVICE_DEPTH) {
        export->missed++;
        return;
    }
    if (lane->depth > 0 && lane->open[lane->depth - 1].end_ns < finished)
        finished = lane->open[lane->depth - 1].end_ns;
    begin_slice(export, lane, record, started, finished);
}

/* End the lane at *AT. */
static void remove_lane(struct wf_export *export, struct wf_device_lane **at)
{
    struct wf_device_lane *lane = *at;

    end_all(export, lane);
    *at = lane->next;
    wf_free(lane);
}

void wf_device_remove(struct wf_export *export, uint64_t stream)
{
    struct wf_device_lane **at = &export->devices;

    while (*at != NULL && (*at)->stream != stream)
        at = &(*at)->next;
    if (*at != NULL) remove_lane(export, at);
}

void wf_devices_close(struct wf_export *export)
{
    while (export->devices != NULL)
        remove_lane(export, &export->devices);
}
