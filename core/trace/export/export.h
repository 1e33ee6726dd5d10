/* export.h - a rank's operations as a file of Perfetto's TrackEvent packets (WEFT_TRACE).
 *
 *     protobuf.h   the wire format
 *     output.c     the file and its buffer
 *     pace.c       ticks -> nanoseconds, without a clock call per record
 *     packets.c    packets, tracks and interned texts
 *     shapes.c     the constant part of slices, encoded once
 *     lanes.c      tracks of threads, and of streams as the host sees them
 *     device.c     tracks of streams with times that were measured on the device
 *     names.c      names of streams
 *     export.c     the observer; lock.c its lock
 *
 * Everything here but the life of the export happens under its lock. */
#ifndef WEFT_TRACE_EXPORT_EXPORT_H
#define WEFT_TRACE_EXPORT_EXPORT_H

#include "trace/trace.h"

#include <string.h>

/* ---- output.c ---- */

#define WF_OUTPUT_BYTES (1u << 18) /* fits into a processor's cache */
#define WF_PACKET_MOST  4096       /* bytes of any packet */

struct wf_output {
    int file; /* -1: nothing is written any more */
    uint8_t *buffer;
    size_t used;
    uint64_t written; /* bytes of the file */
    char path[1024];
};

/* Create the file PATTERN of RANK.  After a failure, a message was logged. */
bool wf_output_open(struct wf_output *output, const char *pattern, int32_t rank);
/* Write the buffer.  A failure ends the output, with one message. */
void wf_output_flush(struct wf_output *output);
void wf_output_close(struct wf_output *output);

/* Room for a packet. */
static inline uint8_t *wf_output_room(struct wf_output *output)
{
    if (__builtin_expect(WF_OUTPUT_BYTES - output->used < WF_PACKET_MOST, 0))
        wf_output_flush(output);
    return output->buffer + output->used;
}

/* ---- pace.c ---- */

/* A line from ticks to nanoseconds, which is renewed so that it follows CLOCK_MONOTONIC. */
struct wf_pace {
    struct wf_instant first;
    uint64_t ticks, ns;   /* where the line begins */
    uint64_t scale;       /* nanoseconds per tick, times 2^32 */
    uint64_t renew_ticks; /* when it is renewed */
    uint64_t interval_ns; /* between two renewals */
};

void wf_pace_begin(struct wf_pace *pace);
void wf_pace_renew(struct wf_pace *pace);

/* DISTANCE, modulo 2^64, times SCALE / 2^32. */
static inline uint64_t wf_pace_scale(uint64_t distance, uint64_t scale)
{
    __extension__ typedef unsigned __int128 wide;
    bool back = (int64_t)distance < 0;
    uint64_t scaled = (uint64_t)((wide)(back ? -distance : distance) * scale >> 32);

    return back ? -scaled : scaled;
}

static inline uint64_t wf_pace_convert(struct wf_pace *pace, uint64_t ticks)
{
    if (__builtin_expect(ticks >= pace->renew_ticks, 0)) wf_pace_renew(pace);
    return pace->ns + wf_pace_scale(ticks - pace->ticks, pace->scale);
}

/* The ticks at NS. */
uint64_t wf_pace_invert(const struct wf_pace *pace, uint64_t ns);

/* ---- shapes.c ---- */

#define WF_SHAPES      1024
#define WF_SHAPE_BYTES 232
#define WF_SHAPE_FLAGS (WEFT_RECORD_IMPLICIT | WEFT_RECORD_CACHED)

/* The constant part of the slices of an operation that repeats. */
struct wf_shape_key {
    uint64_t comm, sent, received, plan;
    uint32_t comm_name, axes, label;
    int32_t peer;
    uint16_t step;
    uint8_t operation, step_kind, dtype, reduction, flags, zero;
};

struct wf_shape {
    struct wf_shape_key key;
    uint64_t group;             /* identifies the communicator among all ranks; 0: not known */
    uint16_t name_bytes, bytes; /* of ENCODED: the name, and all */
    bool used;
    uint8_t encoded[WF_SHAPE_BYTES]; /* fields of a TrackEvent */
};

/* ---- packets.c ---- */

/* Numbers of the annotations' names. */
#define WF_ANNOTATION_LIST(X)                                                                      \
    X(BYTES, "bytes")                                                                              \
    X(SENT, "sent bytes")                                                                          \
    X(RECEIVED, "received bytes")                                                                  \
    X(DTYPE, "dtype")                                                                              \
    X(COMM, "communicator")                                                                        \
    X(AXES, "axes")                                                                                \
    X(PEER, "peer")                                                                                \
    X(PLAN, "plan")                                                                                \
    X(STEP, "step")                                                                                \
    X(PREDICTED, "predicted ns")                                                                   \
    X(LABEL, "label")                                                                              \
    X(IMPLICIT, "implicit")                                                                        \
    X(CACHED, "cached")                                                                            \
    X(SEQUENCE, "sequence")                                                                        \
    X(STATUS, "status")                                                                            \
    X(FORMAT, "format")                                                                            \
    X(JOB, "job")                                                                                  \
    X(RANK, "rank")                                                                                \
    X(SIZE, "size")                                                                                \
    X(HOST, "host")                                                                                \
    X(BACKEND, "backend")                                                                          \
    X(OFFSET, "offset ns")                                                                         \
    X(BOUND, "bound ns")                                                                           \
    X(MISSED, "missed slices")                                                                     \
    X(RANKS, "ranks")                                                                              \
    X(CARRIER, "carrier")

enum wf_annotation {
    WF_NOTE_NONE,
#define WF_ANNOTATION_ENUM(name, text) WF_NOTE_##name,
    WF_ANNOTATION_LIST(WF_ANNOTATION_ENUM)
#undef WF_ANNOTATION_ENUM
        WF_NOTE_COUNT
};

#define WF_TRACE_FORMAT 1

enum wf_event_type { WF_EVENT_BEGIN = 1, WF_EVENT_END, WF_EVENT_INSTANT, WF_EVENT_COUNTER };

/* Texts that packets refer to by number.  When there are too many, the numbers begin again. */
#define WF_TEXTS_MOST  4096
#define WF_TEXT_PLACES 8192

struct wf_interned_text {
    uint64_t hash;
    uint32_t number; /* 0: free */
};

/* The newest; when there are too many, they are forgotten. */
#define WF_PREDICTIONS_MOST  8192
#define WF_PREDICTION_PLACES 16384

struct wf_prediction {
    uint64_t plan, ns;
    uint32_t step; /* from 1; 0: the whole plan */
    bool used;
};

#define WF_LANE_DEPTH  128
#define WF_LANE_SHAPES 8
#define WF_TRACK_HEAD  16

/* A slice that has begun. */
struct wf_open_slice {
    weft_record record; /* a copy, as submitted */
    uint64_t in_flight; /* bytes of the rank, with this one */
};

/* A track whose slices begin and end as the host sees it.  The lane of a thread changes in that
 * thread only, without the lock.  The begin of a slice is written when it, or a slice or an instant
 * inside it, has ended. */
struct wf_lane {
    struct wf_lane *next;
    uint64_t key; /* the thread's number, or the stream */
    bool is_stream;
    uint64_t track; /* its number */
    uint64_t last_ns;
    uint8_t head[WF_TRACK_HEAD]; /* the track of an event, encoded */
    uint8_t head_bytes;
    uint32_t depth, written; /* open slices, and those of them whose begin is written */
    const struct wf_shape *recent[WF_LANE_SHAPES];
    struct wf_open_slice open[WF_LANE_DEPTH];
};

#define WF_DEVICE_DEPTH 16

/* A track of a stream with times of the device.  The end of a slice is written when the next one
 * shows that nothing else is inside. */
struct wf_device_lane {
    struct wf_device_lane *next;
    uint64_t stream, track, last_ns;
    uint8_t head[WF_TRACK_HEAD]; /* the track of an event, encoded */
    uint8_t head_bytes;
    uint64_t parent; /* id of the redistribution that is open at the bottom; 0: none */
    uint32_t depth;
    struct {
        uint64_t end_ns;
        uint64_t flow; /* that ends with it; 0: none */
    } open[WF_DEVICE_DEPTH];
};

struct wf_export {
    atomic_bool is_locked;
    struct wf_trace *trace;
    uint32_t slot;   /* of the observer */
    uint64_t serial; /* of all exports of the process */
    int32_t rank;
    bool device_times; /* work on streams is timed by events */
    struct wf_output output;
    struct wf_pace pace;
    uint8_t head[12]; /* the fields of every packet that are constant */
    uint8_t head_bytes;
    uint64_t track_base, track_count; /* uuids */
    _Atomic uint64_t in_flight;       /* bytes */
    uint64_t scratch;                 /* bytes that were written last */
    uint64_t flush_ns;                /* when the file is written next */
    uint64_t counter_ns[2];           /* time of the last value of each counter */
    uint8_t counter_heads[2][WF_TRACK_HEAD];
    uint8_t counter_head_bytes;
    _Atomic uint64_t missed;        /* slices that had no place */
    struct wf_interned_text *texts; /* WF_TEXT_PLACES */
    uint32_t text_count;
    struct wf_prediction *predictions; /* WF_PREDICTION_PLACES */
    uint32_t prediction_count;
    struct wf_shape *shapes;
    struct wf_lane *lanes;
    uint32_t lane_count;
    struct wf_device_lane *devices;
};

/* A lock of half the cost of a mutex.  It is held for a fraction of a microsecond, except while the
 * file is written. */
void wf_export_wait(struct wf_export *export);
static inline void wf_export_lock(struct wf_export *export)
{
    if (atomic_exchange_explicit(&export->is_locked, true, memory_order_acquire))
        wf_export_wait(export);
}

static inline void wf_export_unlock(struct wf_export *export)
{
    atomic_store_explicit(&export->is_locked, false, memory_order_release);
}

/* uuids of the tracks that every rank has. */
enum { WF_TRACK_RANK, WF_TRACK_IN_FLIGHT, WF_TRACK_SCRATCH, WF_TRACK_FIRST };
#define WF_TRACKS (1u << 24) /* of a rank; the next uuids are another rank's */

/* NS as eight bytes of seven bits: valid for 2^56 ns, which are two years. */
static inline uint8_t *wf_put_time(uint8_t *at, uint64_t ns)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    ns &= (UINT64_C(1) << 56) - 1;
    ns = (ns & 0x000000000fffffff) | (ns & 0x00fffffff0000000) << 4;
    ns = (ns & 0x00003fff00003fff) | (ns & 0x0fffc0000fffc000) << 2;
    ns = (ns & 0x007f007f007f007f) | (ns & 0x3f803f803f803f80) << 1;
    ns |= 0x0080808080808080;
    memcpy(at, &ns, 8);
#else
    for (int i = 0; i < 8; i++)
        at[i] = (uint8_t)((ns >> 7 * i & 127) | (i < 7 ? 128 : 0));
#endif
    return at + 8;
}

/* Begin a packet at AT, at time NS; 0: without a time.  *BODY is for wf_packet_end. */
static inline __attribute__((always_inline)) uint8_t *
wf_packet_begin(const struct wf_export *export, uint8_t *at, uint64_t ns, uint8_t **body)
{
    at[0] = 0x0a; /* Trace.packet */
    *body = at += 1 + 2;
    if (ns > 0) {
        *at++ = 8 << 3; /* timestamp */
        at = wf_put_time(at, ns);
    }
    memcpy(at, export->head, sizeof export->head);
    return at + export->head_bytes;
}

static inline void wf_packet_end(struct wf_export *export, uint8_t *body, const uint8_t *at)
{
    size_t bytes = (size_t)(at - body);

    body[-2] = (uint8_t)(bytes | 128);
    body[-1] = (uint8_t)(bytes >> 7);
    export->output.used = (size_t)(at - export->output.buffer);
}

/* Begin the state of the sequence, or begin it again: earlier numbers of texts are not valid. */
void wf_packets_restart(struct wf_export *export);
/* The packets that begin the file. */
void wf_packets_begin(struct wf_export *export, const struct wf_trace_identity *identity);
/* A new track NAME below the rank's.  HEAD gets the field of its events that identifies it, and
 * *NUMBER its number.  Returns the bytes of HEAD. */
uint8_t wf_packets_track(struct wf_export *export, const char *name, uint8_t head[WF_TRACK_HEAD],
                         uint64_t *number);
/* Track NUMBER is called NAME. */
void wf_packets_describe(struct wf_export *export, uint64_t number, const char *name);
void wf_packets_counter(struct wf_export *export, int track, uint64_t ns, uint64_t value);
/* Annotations of an event, behind AT: a message of field 4 with the name's number in field 1. */
static inline __attribute__((always_inline)) uint8_t *
wf_put_note(uint8_t *at, enum wf_annotation name, uint64_t value)
{
    uint8_t *from = at;

    at[0] = 4 << 3 | 2;
    at[2] = 1 << 3;
    at[3] = (uint8_t)name;
    at[4] = 3 << 3;
    at += 5;
    for (; value >= 128; value >>= 7)
        *at++ = (uint8_t)(value | 128);
    *at++ = (uint8_t)value;
    from[1] = (uint8_t)(at - from - 2);
    return at;
}
uint8_t *wf_put_signed_note(uint8_t *at, enum wf_annotation name, int64_t value);
/* TEXT is interned, in a packet of its own, before the event's packet begins. */
uint8_t *wf_put_text_note(uint8_t *at, enum wf_annotation name, uint32_t text);
uint32_t wf_packets_intern(struct wf_export *export, uint32_t field, const char *text);
#define WF_INTERN_CATEGORY 1
#define WF_INTERN_NAME     2
#define WF_INTERN_TEXT     29

/* ---- shapes.c ---- */

const struct wf_shape *wf_shape_find(struct wf_export *export, const weft_record *record);
/* The texts of one event can be interned.  Earlier numbers may not be valid any more. */
void wf_shapes_make_room(struct wf_export *export);
/* True if SHAPE is that of RECORD. */
static inline bool wf_shape_is_of(const struct wf_shape *shape, const weft_record *record)
{
    const struct wf_shape_key *key = &shape->key;

    return key->comm == record->comm && key->sent == record->sent &&
           key->received == record->received && key->plan == record->plan &&
           key->comm_name == record->comm_name && key->axes == record->axes &&
           key->label == record->label && key->peer == record->peer && key->step == record->step &&
           key->operation == record->operation && key->step_kind == record->step_kind &&
           key->dtype == record->dtype && key->reduction == record->reduction &&
           key->flags == (record->flags & WF_SHAPE_FLAGS);
}

/* ---- lanes.c ---- */

/* The flow between the ranks that take part in RECORD, of SHAPE; 0: none. */
uint64_t wf_flow_of(const struct wf_export *export, const weft_record *record,
                    const struct wf_shape *shape);
/* The flow from the submission of record ID to its slice on the stream. */
uint64_t wf_flow_submitted(const struct wf_export *export, uint64_t id);
/* Bytes that RECORD has in flight. */
uint64_t wf_bytes_in_flight(const weft_record *record);

struct wf_recent_lane {
    uint64_t serial; /* of the export; 0: none */
    struct wf_lane *lane;
};
extern __thread struct wf_recent_lane wf_recent_lane;

/* The lane of the calling thread.  NULL: there is no memory.  The lock is not held. */
struct wf_lane *wf_lane_find_thread(struct wf_export *export);
static inline struct wf_lane *wf_lane_thread(struct wf_export *export)
{
    if (__builtin_expect(wf_recent_lane.serial == export->serial, 1)) return wf_recent_lane.lane;
    return wf_lane_find_thread(export);
}
/* The lane of a stream as the host sees it.  NULL: there is no memory. */
struct wf_lane *wf_lane_stream(struct wf_export *export, uint64_t stream);
/* The same, or NULL if nothing was on it. */
struct wf_lane *wf_lane_find_stream(const struct wf_export *export, uint64_t stream);
/* The stream was released: its open slices end at NS. */
void wf_lane_remove_stream(struct wf_export *export, uint64_t stream, uint64_t ns);
/* RECORD begins.  The lane of a stream needs the lock, that of a thread does not. */
void wf_lane_push(struct wf_export *export, struct wf_lane *lane, const weft_record *record);
/* Write the begins of the open slices. */
void wf_lane_write(struct wf_export *export, struct wf_lane *lane);
/* RECORD has finished or failed at NS.  Nothing happens if its slice is not open. */
void wf_lane_end(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                 uint64_t ns);
/* An instant: RECORD was handed to its stream. */
void wf_lane_mark(struct wf_export *export, struct wf_lane *lane, const weft_record *record,
                  uint64_t ns);
/* End the slices that are open. */
void wf_lane_close(struct wf_export *export, struct wf_lane *lane, uint64_t ns);
void wf_lanes_free(struct wf_export *export);

/* ---- names.c ---- */

#define WF_SEEN_BY_HOST " (seen by the host)"

/* "stream copies", with SUFFIX behind it. */
void wf_stream_label(const struct wf_export *export, uint64_t stream, const char *suffix, char *out,
                     size_t bytes);

/* ---- device.c ---- */

/* The lane of STREAM, or NULL without memory. */
struct wf_device_lane *wf_device_lane(struct wf_export *export, uint64_t stream);
/* The stream was released. */
void wf_device_remove(struct wf_export *export, uint64_t stream);
/* RECORD ran from STARTED to FINISHED, in nanoseconds of CLOCK_MONOTONIC.  PARENT is the
 * redistribution that contains it, or NULL. */
void wf_device_slice(struct wf_export *export, const weft_record *record, uint64_t started,
                     uint64_t finished, const weft_record *parent);
void wf_devices_close(struct wf_export *export);

#endif
