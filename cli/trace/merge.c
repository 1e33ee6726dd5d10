/* merge.c - moves the times of all packets to one clock.
 *
 * A file states how far the rendezvous server's clock was ahead of its rank's clock, at the start
 * and at the end.  Between the two, the offset is a line. */
#include "trace/merge.h"

#include <string.h>

#define SEQUENCE_FIELD 10
#define CLOCKS_FIELD   6
#define TIME_FIELD     8
#define MOST_OFFSET_NS (INT64_C(1) << 60)

/* ---- clocks ---- */

static double offset_at(const struct trace_facts *facts, double time)
{
    const struct trace_clock *a = &facts->clocks[0], *b = &facts->clocks[1];
    double part;

    if (facts->clock_count == 0) return 0;
    if (facts->clock_count == 1 || b->time <= a->time) return (double)a->offset_ns;
    part = (time - (double)a->time) / (double)(b->time - a->time);
    if (part < 0) part = 0;
    if (part > 1) part = 1;
    return (double)a->offset_ns + part * ((double)b->offset_ns - (double)a->offset_ns);
}

static uint64_t bound_of(const struct trace_facts *facts)
{
    uint64_t bound = 0;

    for (uint32_t i = 0; i < facts->clock_count; i++)
        if (facts->clocks[i].bound_ns > bound) bound = facts->clocks[i].bound_ns;
    return bound;
}

/* TIME of FACTS' rank on the clock of REFERENCE, or of the server if it is NULL. */
static uint64_t move_time(const struct trace_facts *facts, const struct trace_facts *reference,
                          uint64_t time)
{
    double shift = offset_at(facts, (double)time);
    double moved;

    if (reference == facts) return time;
    if (reference != NULL) {
        double guess = (double)time + shift - offset_at(reference, (double)time + shift);

        shift -= offset_at(reference, guess);
    }
    moved = (double)time + shift;
    if (moved < 1) return 1;
    /* The sum of whole numbers keeps all digits of the time. */
    return time + (uint64_t)(int64_t)shift;
}

/* ---- checks ---- */

static weft_status check_clocks(const struct trace_file *file)
{
    for (uint32_t i = 0; i < file->facts.clock_count; i++) {
        int64_t offset = file->facts.clocks[i].offset_ns;

        if (offset > MOST_OFFSET_NS || offset < -MOST_OFFSET_NS)
            return wf_fail(WEFT_ERR_PARSE, "%s: its clock offset, %lld ns, is impossible",
                           file->name, (long long)offset);
    }
    return WEFT_OK;
}

static weft_status fail_jobs(const struct trace_file *a, const struct trace_file *b)
{
    char one[64], other[64];

    proto_show(&a->facts.job, one, sizeof one);
    proto_show(&b->facts.job, other, sizeof other);
    return wf_fail(WEFT_ERR_MISMATCH, "%s and %s are of different jobs, %s and %s", a->name,
                   b->name, one, other);
}

static weft_status compare(const struct trace_file *a, const struct trace_file *b)
{
    if (a->facts.job.bytes != b->facts.job.bytes ||
        (a->facts.job.bytes > 0 &&
         memcmp(a->facts.job.data, b->facts.job.data, a->facts.job.bytes) != 0))
        return fail_jobs(a, b);
    if (a->facts.size != b->facts.size)
        return wf_fail(WEFT_ERR_MISMATCH, "%s is of a job of %d rank%s, %s of %d", a->name,
                       a->facts.size, WF_PLURAL(a->facts.size), b->name, b->facts.size);
    if (a->facts.rank == b->facts.rank)
        return wf_fail(WEFT_ERR_MISMATCH, "%s and %s are both of rank %d", a->name, b->name,
                       a->facts.rank);
    return WEFT_OK;
}

weft_status trace_merge_check(const struct trace_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (files[i].facts.has_many)
            return wf_fail(WEFT_ERR_INVALID,
                           "%s has several ranks: it is merged already; give the ranks' own files",
                           files[i].name);
        WF_TRY(check_clocks(&files[i]));
        for (size_t j = 0; j < i; j++)
            WF_TRY(compare(&files[j], &files[i]));
    }
    return WEFT_OK;
}

/* ---- packets ---- */

static void put_varint(struct wf_text *out, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        wf_text_char(out, (char)(value | 128));
    wf_text_char(out, (char)value);
}

static void put_bytes(struct wf_text *out, uint32_t field, const char *data, size_t bytes)
{
    put_varint(out, (uint64_t)field << 3 | PROTO_BYTES);
    put_varint(out, bytes);
    wf_text_append(out, data, bytes);
}

static void put_number(struct wf_text *out, uint32_t field, uint64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, value);
}

/* Add PACKET of FACTS' file to OUT.  The clocks of the system are those of the reference only.
 * *LAST becomes the latest time. */
static void put_packet(const struct trace_facts *facts, const struct trace_facts *reference,
                       struct proto packet, struct wf_text *body, struct wf_text *out,
                       uint64_t *last)
{
    struct proto_field f;
    uint64_t time;
    bool has_clocks = false;

    body->length = 0;
    while (proto_next(&packet, &f) > 0) {
        if (f.number == CLOCKS_FIELD) has_clocks = true;
        if (f.number != TIME_FIELD || f.wire != PROTO_NUMBER) {
            wf_text_append(body, (const char *)packet.data + f.from, packet.at - f.from);
            continue;
        }
        time = move_time(facts, reference, f.value);
        if (time > *last) *last = time;
        put_number(body, TIME_FIELD, time);
    }
    if (has_clocks && facts != reference) return;
    if (body->failed) out->failed = true;
    put_bytes(out, 1, body->data, body->length);
}

static void put_note(struct wf_text *out, const char *name, uint64_t value)
{
    struct wf_text note = {0};

    put_bytes(&note, 10, name, strlen(name));
    put_number(&note, 3, value);
    if (note.failed) out->failed = true;
    put_bytes(out, 4, note.data, note.length);
    wf_text_free(&note);
}

/* State the bound in the merged trace, on the track of RANK. */
static void put_bound(int32_t rank, uint64_t time, size_t ranks, uint64_t bound_ns,
                      struct wf_text *out)
{
    struct wf_text event = {0}, packet = {0};

    put_number(&event, 9, TRACE_INSTANT);
    put_number(&event, 11, ((uint64_t)rank + 1) << 24);
    put_bytes(&event, 23, "weft merge", strlen("weft merge"));
    put_note(&event, "merged ranks", ranks);
    put_note(&event, "bound ns", bound_ns);
    put_number(&packet, TIME_FIELD, time);
    put_number(&packet, SEQUENCE_FIELD, (uint64_t)rank + 1);
    put_bytes(&packet, 11, event.data, event.length);
    if (event.failed || packet.failed) out->failed = true;
    put_bytes(out, 1, packet.data, packet.length);
    wf_text_free(&event);
    wf_text_free(&packet);
}

weft_status trace_merge(const struct trace_file *files, size_t count,
                        const struct trace_progress *progress, struct wf_text *out,
                        uint64_t *bound_ns)
{
    const struct trace_facts *reference = NULL;
    struct wf_text body = {0};
    uint64_t own = 0, last = 1;

    for (size_t i = 0; i < count; i++)
        if (files[i].facts.rank == 0) reference = &files[i].facts;
    if (reference != NULL) own = bound_of(reference);
    *bound_ns = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bound = wf_add_capped(bound_of(&files[i].facts), own);
        struct proto file = {files[i].data, files[i].bytes, 0};
        struct proto_field f;
        size_t reported = 0;

        if (&files[i].facts != reference && bound > *bound_ns) *bound_ns = bound;
        while (proto_next(&file, &f) > 0) {
            put_packet(&files[i].facts, reference, f.body, &body, out, &last);
            trace_report(progress, file.at, file.bytes, &reported);
        }
    }
    put_bound(files[0].facts.rank, last, count, *bound_ns, out);
    wf_text_free(&body);
    return wf_text_status(out);
}
