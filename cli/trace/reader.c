/* reader.c - packets of a trace as events.  Memory is bounded by the size of the file. */
#include "trace/reader.h"

/* An interned text: FIELD of InternedData says which kind. */
struct interned {
    uint64_t sequence, number;
    uint32_t field;
    bool used;
    struct proto text;
};

struct reader {
    const char *name;
    const uint8_t *data;
    struct interned *table;
    size_t room, count;
};

#define FIELD_CATEGORY 1
#define FIELD_NAME     2
#define FIELD_NOTE     3
#define FIELD_TEXT     29
#define PACKET_TAG     0x0A /* the first byte of a trace: field 1, bytes */

enum { REPORT_BYTES = 1 << 20 };

/* WHERE points into the file. */
static weft_status fail_at(const struct reader *reader, const uint8_t *where, const char *what)
{
    return wf_fail(WEFT_ERR_PARSE, "%s, byte %llu: %s", reader->name,
                   (unsigned long long)(where - reader->data), what);
}

/* The first byte is not that of a trace. */
static weft_status fail_foreign(const struct reader *reader)
{
    return wf_fail(WEFT_ERR_PARSE, "%s is not a trace of weft; WEFT_TRACE writes traces",
                   reader->name);
}

/* ---- interned texts ---- */

static struct interned *find(const struct reader *reader, uint64_t sequence, uint32_t field,
                             uint64_t number)
{
    uint64_t hash = wf_hash_mix(wf_hash_mix(sequence, field), number);
    size_t at = (size_t)(hash >> 20) & (reader->room - 1);

    for (;; at = (at + 1) & (reader->room - 1)) {
        struct interned *entry = &reader->table[at];

        if (!entry->used ||
            (entry->sequence == sequence && entry->field == field && entry->number == number))
            return entry;
    }
}

static weft_status make_room(struct reader *reader)
{
    struct interned *old = reader->table;
    size_t before = reader->room, room = before > 0 ? 2 * before : 256;

    if (2 * (reader->count + 1) <= before) return WEFT_OK;
    reader->table = wf_calloc(room, sizeof *reader->table);
    if (reader->table == NULL) {
        reader->table = old;
        return wf_fail_memory(room * sizeof *reader->table);
    }
    reader->room = room;
    for (size_t i = 0; i < before; i++)
        if (old[i].used) *find(reader, old[i].sequence, old[i].field, old[i].number) = old[i];
    wf_free(old);
    return WEFT_OK;
}

static weft_status add_text(struct reader *reader, uint64_t sequence, uint32_t field,
                            struct proto entry)
{
    struct interned added = {.sequence = sequence, .field = field, .used = true};
    struct interned *place;
    struct proto_field f;
    int more;

    while ((more = proto_next(&entry, &f)) > 0) {
        if (f.number == 1 && f.wire == PROTO_NUMBER) added.number = f.value;
        if (f.number == 2 && f.wire == PROTO_BYTES) added.text = f.body;
    }
    if (more < 0) return fail_at(reader, entry.data + entry.at, "an interned text is damaged");
    WF_TRY(make_room(reader));
    place = find(reader, sequence, field, added.number);
    if (!place->used) reader->count++;
    *place = added;
    return WEFT_OK;
}

static weft_status add_texts(struct reader *reader, uint64_t sequence, struct proto data)
{
    struct proto_field f;
    int more;

    while ((more = proto_next(&data, &f)) > 0)
        if (f.wire == PROTO_BYTES) WF_TRY(add_text(reader, sequence, f.number, f.body));
    return more == 0 ? WEFT_OK
                     : fail_at(reader, data.data + data.at, "a packet of texts is damaged");
}

static weft_status look_up(const struct reader *reader, uint64_t sequence, uint32_t field,
                           const struct proto_field *from, const uint8_t *where, struct proto *out)
{
    const struct interned *entry;

    if (from->wire != PROTO_NUMBER) return fail_at(reader, where, "a text has no number");
    entry = reader->room > 0 ? find(reader, sequence, field, from->value) : NULL;
    if (entry == NULL || !entry->used)
        return fail_at(reader, where, "an event uses a text that the file does not have");
    *out = entry->text;
    return WEFT_OK;
}

/* ---- events ---- */

/* Keep the annotations that the tool uses. */
static void keep_note(const struct proto *name, const struct proto *text, uint64_t value,
                      struct trace_event *event)
{
    const struct {
        const char *name;
        struct proto *text;
        uint64_t *number;
    } notes[] = {{"plan", &event->plan, NULL},
                 {"label", &event->label, NULL},
                 {"job", &event->job, NULL},
                 {"host", &event->host, NULL},
                 {"step", NULL, &event->step},
                 {"predicted ns", NULL, &event->predicted_ns},
                 {"bytes", NULL, &event->bytes},
                 {"format", NULL, &event->format},
                 {"rank", NULL, &event->rank},
                 {"size", NULL, &event->size},
                 {"bound ns", NULL, &event->bound_ns},
                 {"communicator", &event->comm, NULL},
                 {"axes", &event->axes, NULL},
                 {"sent bytes", NULL, &event->sent},
                 {"received bytes", NULL, &event->received}};

    for (size_t i = 0; i < WF_COUNT(notes); i++) {
        if (!proto_is(name, notes[i].name)) continue;
        if (notes[i].text != NULL) *notes[i].text = *text;
        if (notes[i].number != NULL) *notes[i].number = value;
    }
    if (proto_is(name, "rank")) event->has_rank = true;
    if (!proto_is(name, "offset ns")) return;
    event->offset_ns = (int64_t)value;
    event->has_offset = true;
}

static weft_status read_note(const struct reader *reader, uint64_t sequence, struct proto note,
                             struct trace_event *event)
{
    struct proto name = {0}, text = {0};
    uint64_t value = 0;
    struct proto_field f;
    int more;

    while ((more = proto_next(&note, &f)) > 0) {
        if (f.number == 1)
            WF_TRY(look_up(reader, sequence, FIELD_NOTE, &f, note.data, &name));
        else if (f.number == 17)
            WF_TRY(look_up(reader, sequence, FIELD_TEXT, &f, note.data, &text));
        else if (f.number == 10 && f.wire == PROTO_BYTES)
            name = f.body;
        else if (f.number == 6 && f.wire == PROTO_BYTES)
            text = f.body;
        else if (f.wire == PROTO_NUMBER)
            value = f.value;
    }
    if (more < 0) return fail_at(reader, note.data + note.at, "an annotation is damaged");
    keep_note(&name, &text, value, event);
    return WEFT_OK;
}

static weft_status read_event_field(const struct reader *reader, uint64_t sequence,
                                    const struct proto_field *f, const uint8_t *where,
                                    struct trace_event *event)
{
    if (f->number == 9 && f->wire == PROTO_NUMBER)
        event->type = f->value > TRACE_COUNTER ? 0 : (uint32_t)f->value;
    else if (f->number == 11 && f->wire == PROTO_NUMBER)
        event->track = f->value;
    else if ((f->number == 47 || f->number == 48) && f->wire == PROTO_FIXED64)
        event->flow = f->value;
    else if (f->number == 23 && f->wire == PROTO_BYTES)
        event->name = f->body;
    else if (f->number == 10)
        return look_up(reader, sequence, FIELD_NAME, f, where, &event->name);
    else if (f->number == 3)
        return look_up(reader, sequence, FIELD_CATEGORY, f, where, &event->category);
    else if (f->number == 4 && f->wire == PROTO_BYTES)
        return read_note(reader, sequence, f->body, event);
    return WEFT_OK;
}

static weft_status read_event(const struct reader *reader, uint64_t sequence, uint64_t time,
                              struct proto data, const struct trace_visitor *visitor)
{
    struct trace_event event = {.time = time, .writer = sequence};
    struct proto_field f;
    int more;

    while ((more = proto_next(&data, &f)) > 0)
        WF_TRY(read_event_field(reader, sequence, &f, data.data, &event));
    if (more < 0) return fail_at(reader, data.data + data.at, "an event is damaged");
    if (event.type == 0) return fail_at(reader, data.data, "an event has no known type");
    return visitor->event(visitor->self, &event);
}

static weft_status read_packet(struct reader *reader, struct proto packet,
                               const struct trace_visitor *visitor)
{
    struct proto events = packet, texts = {0}, event = {0};
    uint64_t time = 0, sequence = 0;
    struct proto_field f;
    int more;

    while ((more = proto_next(&packet, &f)) > 0) {
        if (f.number == 8 && f.wire == PROTO_NUMBER) time = f.value;
        if (f.number == 10 && f.wire == PROTO_NUMBER) sequence = f.value;
        if (f.number == 12 && f.wire == PROTO_BYTES) texts = f.body;
        if (f.number == 11 && f.wire == PROTO_BYTES) event = f.body;
    }
    if (more < 0) return fail_at(reader, packet.data + packet.at, "a packet is damaged");
    if (time > INT64_MAX) return fail_at(reader, events.data, "a packet has an impossible time");
    if (texts.data != NULL) WF_TRY(add_texts(reader, sequence, texts));
    return event.data != NULL ? read_event(reader, sequence, time, event, visitor) : WEFT_OK;
}

void trace_report(const struct trace_progress *progress, size_t at, size_t bytes, size_t *reported)
{
    if (progress == NULL || (at < bytes && at - *reported < REPORT_BYTES)) return;
    progress->add(progress->self, at - *reported);
    *reported = at;
}

weft_status trace_read(const char *name, const uint8_t *data, size_t bytes,
                       const struct trace_visitor *visitor)
{
    struct reader reader = {.name = name, .data = data};
    struct proto file = {data, bytes, 0};
    weft_status status = WEFT_OK;
    struct proto_field f;
    size_t reported = 0;
    int more = 0;

    while (status == WEFT_OK && (more = proto_next(&file, &f)) > 0) {
        trace_report(visitor->progress, file.at, bytes, &reported);
        if ((f.number != 1 || f.wire != PROTO_BYTES) && f.from > 0)
            status = fail_at(&reader, data + f.from, "this is not a packet of a trace");
        else if (f.number != 1 || f.wire != PROTO_BYTES)
            status = fail_foreign(&reader);
        else
            status = read_packet(&reader, f.body, visitor);
    }
    if (status == WEFT_OK && more < 0 && file.at == 0 && bytes > 0 && data[0] != PACKET_TAG)
        status = fail_foreign(&reader);
    else if (status == WEFT_OK && more < 0)
        status = fail_at(&reader, data + file.at,
                         "the packet that begins here is damaged, or ends after the file's end");
    wf_free(reader.table);
    return status;
}

/* ---- facts ---- */

struct fact_reader {
    const char *name;
    struct trace_facts *facts;
};

static weft_status note_fact(void *self, const struct trace_event *event)
{
    const char *name = ((struct fact_reader *)self)->name;
    struct trace_facts *facts = ((struct fact_reader *)self)->facts;

    if (event->type != TRACE_INSTANT) return WEFT_OK;
    if (proto_is(&event->name, "weft trace") && event->has_rank) {
        if (event->format != 1)
            return wf_fail(WEFT_ERR_PARSE, "%s has format %llu; this tool reads format 1", name,
                           (unsigned long long)event->format);
        if (event->size > INT32_MAX || event->rank >= event->size)
            return wf_fail(WEFT_ERR_PARSE, "%s is of rank %llu of a job of %llu ranks", name,
                           (unsigned long long)event->rank, (unsigned long long)event->size);
        facts->has_many = facts->has_begun;
        facts->has_begun = true;
        facts->job = event->job;
        facts->host = event->host;
        facts->rank = (int32_t)event->rank;
        facts->size = (int32_t)event->size;
    } else if (proto_is(&event->name, "weft trace ends")) {
        facts->has_ended = true;
    } else if (proto_is(&event->name, "clock") && event->has_offset) {
        facts->clocks[facts->clock_count > 0] =
            (struct trace_clock){event->time, event->offset_ns, event->bound_ns};
        facts->clock_count = facts->clock_count > 0 ? 2 : 1;
    }
    return WEFT_OK;
}

weft_status trace_read_facts(const char *name, const uint8_t *data, size_t bytes,
                             const struct trace_progress *progress, struct trace_facts *out)
{
    struct fact_reader facts = {name, out};
    struct trace_visitor visitor = {&facts, note_fact, progress};

    *out = (struct trace_facts){0};
    WF_TRY(trace_read(name, data, bytes, &visitor));
    if (!out->has_begun)
        return wf_fail(WEFT_ERR_PARSE, "%s is not a trace of weft; WEFT_TRACE writes traces%s",
                       name, bytes == 0 ? "; the file is empty" : "");
    return WEFT_OK;
}
