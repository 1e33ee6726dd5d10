/* packets.c - packets of a trace: those that begin the file, tracks, counters, interned texts.  The
 * numbers are those of Perfetto's protos. */
#include "export.h"
#include "protobuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* TracePacket */
#define PACKET_CLOCKS      6
#define PACKET_SEQUENCE    10
#define PACKET_EVENT       11
#define PACKET_INTERNED    12
#define PACKET_FLAGS       13
#define PACKET_DEFAULTS    59
#define PACKET_TRACK       60
#define DEFAULT_CLOCK      58
#define FLAG_CLEARED       1
#define FLAG_NEEDS_STATE   2
#define CLOCK_OF_REALTIME  1
#define CLOCK_OF_MONOTONIC 3
#define CLOCK_OF_BOOTTIME  6
/* InternedData */
#define INTERNED_NOTE_NAME 3
/* TrackDescriptor */
#define TRACK_UUID    1
#define TRACK_NAME    2
#define TRACK_PROCESS 3
#define TRACK_PARENT  5
#define TRACK_COUNTER 8
#define UNIT_BYTES    3
/* TrackEvent */
#define EVENT_NOTES 4
#define EVENT_TYPE  9
#define EVENT_NAME  23
#define EVENT_TRACK 11
#define EVENT_VALUE 30
#define NOTE_NAME   1
#define NOTE_INT    4
#define NOTE_TEXT   17

/* ---- annotations ---- */

static uint8_t *begin_note(uint8_t *at, enum wf_annotation name)
{
    *at++ = EVENT_NOTES << 3 | 2;
    at++; /* the length: below 128 */
    *at++ = NOTE_NAME << 3;
    *at++ = (uint8_t)name;
    return at;
}

static uint8_t *end_note(uint8_t *from, uint8_t *at)
{
    from[1] = (uint8_t)(at - from - 2);
    return at;
}

uint8_t *wf_put_signed_note(uint8_t *at, enum wf_annotation name, int64_t value)
{
    return end_note(at, wf_put_number(begin_note(at, name), NOTE_INT, (uint64_t)value));
}

uint8_t *wf_put_text_note(uint8_t *at, enum wf_annotation name, uint32_t text)
{
    return text == 0 ? at : end_note(at, wf_put_number(begin_note(at, name), NOTE_TEXT, text));
}

/* ---- texts ---- */

/* TEXT of LENGTH bytes, which may be any, as UTF-8 without control characters. */
static uint8_t *put_shown(uint8_t *at, uint32_t number, const char *text, size_t length)
{
    at = wf_put_chars(at, number, text, length);
    *at = '\0';
    wf_text_clean((char *)at - length, length);
    return at;
}

uint32_t wf_packets_intern(struct wf_export *export, uint32_t field, const char *text)
{
    size_t length = strnlen(text, 512);
    uint64_t hash = wf_hash(field, text, length);
    uint8_t *body, *data, *entry, *at;
    uint32_t slot;

    if (length == 0) return 0;
    slot = (uint32_t)hash % WF_TEXT_PLACES;
    for (; export->texts[slot].number != 0; slot = (slot + 1) % WF_TEXT_PLACES)
        if (export->texts[slot].hash == hash) return export->texts[slot].number;
    if (export->text_count == WF_TEXTS_MOST) return 0;
    export->texts[slot] = (struct wf_interned_text){hash, ++export->text_count};
    at = wf_packet_begin(export, wf_output_room(&export->output), 0, &body);
    at = wf_put_begin(at, PACKET_INTERNED, &data);
    at = wf_put_begin(at, field, &entry);
    at = wf_put_number(at, 1, export->text_count);
    at = put_shown(at, 2, text, length);
    wf_put_end(entry, at);
    wf_put_end(data, at);
    wf_packet_end(export, body, at);
    return export->text_count;
}

/* ---- the beginning ---- */

static uint8_t *put_clock(uint8_t *at, uint32_t number, clockid_t clock)
{
    struct timespec now;
    uint8_t *body;

    if (clock_gettime(clock, &now) != 0) return at;
    at = wf_put_begin(at, 1, &body);
    at = wf_put_number(at, 1, number);
    at = wf_put_number(at, 2, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    wf_put_end(body, at);
    return at;
}

/* The state of the sequence begins: times are of CLOCK_MONOTONIC unless a packet says otherwise. */
static void put_state(struct wf_export *export)
{
    uint8_t *body, *part, *at = wf_output_room(&export->output);

    *at = 0x0a;
    body = at += 1 + WF_PROTO_LENGTH;
    at = wf_put_number(at, PACKET_SEQUENCE, (uint64_t) export->rank + 1);
    at = wf_put_number(at, PACKET_FLAGS, FLAG_CLEARED);
    at = wf_put_begin(at, PACKET_DEFAULTS, &part);
    at = wf_put_number(at, DEFAULT_CLOCK, CLOCK_OF_MONOTONIC);
    wf_put_end(part, at);
    wf_packet_end(export, body, at);
}

static void put_clocks(struct wf_export *export)
{
    uint8_t *body, *part, *at = wf_packet_begin(export, wf_output_room(&export->output), 0, &body);

    at = wf_put_begin(at, PACKET_CLOCKS, &part);
    at = put_clock(at, CLOCK_OF_MONOTONIC, CLOCK_MONOTONIC);
    at = put_clock(at, CLOCK_OF_BOOTTIME, CLOCK_BOOTTIME);
    at = put_clock(at, CLOCK_OF_REALTIME, CLOCK_REALTIME);
    at = wf_put_number(at, 2, CLOCK_OF_MONOTONIC);
    wf_put_end(part, at);
    wf_packet_end(export, body, at);
}

static void put_note_names(struct wf_export *export)
{
    static const char *const names[] = {"",
#define NAME(name, text) text,
                                        WF_ANNOTATION_LIST(NAME)
#undef NAME
    };
    uint8_t *body, *data, *at = wf_packet_begin(export, wf_output_room(&export->output), 0, &body);

    at = wf_put_begin(at, PACKET_INTERNED, &data);
    for (uint32_t i = 1; i < WF_NOTE_COUNT; i++) {
        uint8_t *entry;

        at = wf_put_begin(at, INTERNED_NOTE_NAME, &entry);
        at = wf_put_number(at, 1, i);
        at = wf_put_text(at, 2, names[i]);
        wf_put_end(entry, at);
    }
    wf_put_end(data, at);
    wf_packet_end(export, body, at);
}

void wf_packets_restart(struct wf_export *export)
{
    memset(export->texts, 0, WF_TEXT_PLACES * sizeof *export->texts);
    export->text_count = 0;
    put_state(export);
    put_note_names(export);
}

/* ---- tracks ---- */

/* A descriptor of track NUMBER begins.  *PART and *BODY are for end_track. */
static uint8_t *begin_track(struct wf_export *export, uint64_t number, const char *name,
                            uint8_t **part, uint8_t **body)
{
    uint8_t *at = wf_packet_begin(export, wf_output_room(&export->output), 0, body);

    at = wf_put_begin(at, PACKET_TRACK, part);
    at = wf_put_number(at, TRACK_UUID, export->track_base + number);
    if (number == WF_TRACK_RANK) return at;
    at = put_shown(at, TRACK_NAME, name, strlen(name));
    return wf_put_number(at, TRACK_PARENT, export->track_base + WF_TRACK_RANK);
}

static void end_track(struct wf_export *export, uint8_t *part, uint8_t *body, uint8_t *at)
{
    wf_put_end(part, at);
    wf_packet_end(export, body, at);
}

/* Perfetto keeps process 0 for idle processors, so a rank's process is its number plus one. */
static void put_rank(struct wf_export *export, const struct wf_trace_identity *identity)
{
    const struct wf_segment *segment = export->trace->segment;
    uint8_t *body, *part, *process, *at;
    char name[160];

    snprintf(name, sizeof name, "rank %d (%s, %s)", identity->rank, segment->host,
             segment->backend[0] != '\0' ? segment->backend : "no backend");
    at = begin_track(export, WF_TRACK_RANK, NULL, &part, &body);
    at = wf_put_begin(at, TRACK_PROCESS, &process);
    at = wf_put_number(at, 1, (uint64_t)identity->rank + 1);
    at = put_shown(at, 6, name, strlen(name));
    wf_put_end(process, at);
    end_track(export, part, body, at);
}

static void put_counter_track(struct wf_export *export, uint64_t number, const char *name)
{
    uint8_t *body, *part, *counter, *at = begin_track(export, number, name, &part, &body);

    at = wf_put_begin(at, TRACK_COUNTER, &counter);
    at = wf_put_number(at, 3, UNIT_BYTES);
    wf_put_end(counter, at);
    end_track(export, part, body, at);
}

/* The track of an event, as a field. */
static uint8_t put_head(const struct wf_export *export, uint64_t number, uint8_t *head)
{
    return (uint8_t)(wf_put_number(head, EVENT_TRACK, export->track_base + number) - head);
}

void wf_packets_describe(struct wf_export *export, uint64_t number, const char *name)
{
    uint8_t *body, *part, *at = begin_track(export, number, name, &part, &body);

    end_track(export, part, body, at);
}

uint8_t wf_packets_track(struct wf_export *export, const char *name, uint8_t head[WF_TRACK_HEAD],
                         uint64_t *number)
{
    *number = export->track_count++;
    wf_packets_describe(export, *number, name);
    return put_head(export, *number, head);
}

void wf_packets_counter(struct wf_export *export, int track, uint64_t ns, uint64_t value)
{
    int which = track - WF_TRACK_IN_FLIGHT;
    uint8_t *body, *event, *at;

    if (ns < export->counter_ns[which]) ns = export->counter_ns[which];
    export->counter_ns[which] = ns;
    at = wf_packet_begin(export, wf_output_room(&export->output), ns, &body);
    *at++ = PACKET_EVENT << 3 | 2;
    event = ++at; /* the length: below 128 */
    *at++ = EVENT_TYPE << 3;
    *at++ = WF_EVENT_COUNTER;
    memcpy(at, export->counter_heads[which], WF_TRACK_HEAD);
    at = wf_put_number(at + export->counter_head_bytes, EVENT_VALUE, value);
    event[-1] = (uint8_t)(at - event);
    wf_packet_end(export, body, at);
}

/* ---- facts: instants on the rank's track ---- */

void wf_packets_begin(struct wf_export *export, const struct wf_trace_identity *identity)
{
    const struct wf_segment *segment = export->trace->segment;
    uint8_t *body, *event, *at;
    uint32_t host, backend, job_text;
    char job[24];

    export->track_base = ((uint64_t)identity->rank + 1) << 24;
    export->track_count = WF_TRACK_FIRST;
    at = wf_put_number(export->head, PACKET_SEQUENCE, (uint64_t)identity->rank + 1);
    at = wf_put_number(at, PACKET_FLAGS, FLAG_NEEDS_STATE);
    export->head_bytes = (uint8_t)(at - export->head);
    wf_packets_restart(export);
    put_clocks(export);
    put_rank(export, identity);
    put_counter_track(export, WF_TRACK_IN_FLIGHT, "bytes in flight");
    put_counter_track(export, WF_TRACK_SCRATCH, "scratch");
    for (uint64_t i = 0; i < 2; i++)
        export->counter_head_bytes =
            put_head(export, WF_TRACK_IN_FLIGHT + i, export->counter_heads[i]);
    host = wf_packets_intern(export, WF_INTERN_TEXT, segment->host);
    backend = wf_packets_intern(export, WF_INTERN_TEXT, segment->backend);
    snprintf(job, sizeof job, "%016" PRIx64, identity->job);
    job_text = wf_packets_intern(export, WF_INTERN_TEXT, job);
    at = wf_packet_begin(export, wf_output_room(&export->output), export->pace.ns, &body);
    at = wf_put_begin(at, PACKET_EVENT, &event);
    at = wf_put_number(at, EVENT_TYPE, WF_EVENT_INSTANT);
    at = wf_put_number(at, EVENT_TRACK, export->track_base);
    at = wf_put_text(at, EVENT_NAME, "weft trace");
    at = wf_put_note(at, WF_NOTE_FORMAT, WF_TRACE_FORMAT);
    at = wf_put_text_note(at, WF_NOTE_JOB, job_text);
    at = wf_put_note(at, WF_NOTE_RANK, (uint64_t)identity->rank);
    at = wf_put_note(at, WF_NOTE_SIZE, (uint64_t)identity->size);
    at = wf_put_text_note(at, WF_NOTE_HOST, host);
    at = wf_put_text_note(at, WF_NOTE_BACKEND, backend);
    wf_put_end(event, at);
    wf_packet_end(export, body, at);
}
