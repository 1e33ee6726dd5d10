/* usage.c - see usage.h.
 *
 * An operation of several ranks moves data once all of them have begun it: until then a rank
 * waits.  The slices of one operation have one flow, by which they are matched. */
#include "trace/usage.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists ---- */

static weft_status find_rank(struct usage *usage, int32_t rank, uint32_t *out)
{
    for (*out = 0; *out < usage->rank_count; (*out)++)
        if (usage->ranks[*out].rank == rank) return WEFT_OK;
    WF_TRY(wf_grow(&usage->ranks, sizeof *usage->ranks, usage->rank_count, &usage->rank_room));
    usage->ranks[usage->rank_count++] = (struct usage_rank){.rank = rank, .first = UINT64_MAX};
    return WEFT_OK;
}

static bool is_same(const struct proto *a, const struct proto *b)
{
    return a->bytes == b->bytes && (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

/* The power of two that BYTES does not exceed. */
static uint64_t round_up(uint64_t bytes)
{
    uint64_t most = 1;

    while (most < bytes && most < UINT64_C(1) << 62)
        most *= 2;
    return bytes > 0 ? most : 0;
}

static weft_status find_row(struct usage *usage, const struct trace_event *event, uint32_t *out)
{
    uint64_t bytes = event->bytes > event->sent ? event->bytes : event->sent;
    struct usage_row row = {.kind = event->category,
                            .along = event->axes.bytes > 0 ? event->axes : event->comm};

    row.bytes = round_up(bytes > event->received ? bytes : event->received);
    for (*out = 0; *out < usage->row_count; (*out)++) {
        const struct usage_row *found = &usage->rows[*out];

        if (found->bytes == row.bytes && is_same(&found->kind, &row.kind) &&
            is_same(&found->along, &row.along))
            return WEFT_OK;
    }
    WF_TRY(wf_grow(&usage->rows, sizeof *usage->rows, usage->row_count, &usage->row_room));
    usage->rows[usage->row_count++] = row;
    return WEFT_OK;
}

/* ---- slices ---- */

weft_status usage_begin(struct usage *usage, const struct trace_event *event,
                        struct usage_mark *out)
{
    int32_t rank = event->writer > 0 ? (int32_t)(event->writer - 1) : 0;

    *out = (struct usage_mark){.flow = event->flow};
    WF_TRY(find_rank(usage, rank, &out->rank));
    return find_row(usage, event, &out->row);
}

weft_status usage_end(struct usage *usage, const struct usage_mark *mark, struct usage_span span,
                      uint64_t own_ns, bool is_bottom)
{
    struct usage_rank *rank = &usage->ranks[mark->rank];
    struct usage_row *row = &usage->rows[mark->row];

    row->count++;
    row->own_ns += own_ns;
    rank->own_ns += own_ns;
    if (span.begin < rank->first) rank->first = span.begin;
    if (span.end > rank->last) rank->last = span.end;
    if (is_bottom) {
        WF_TRY(wf_grow(&rank->spans, sizeof *rank->spans, rank->span_count, &rank->span_room));
        rank->spans[rank->span_count++] = span;
    }
    if (mark->flow == 0) return WEFT_OK;
    WF_TRY(
        wf_grow(&usage->shared, sizeof *usage->shared, usage->shared_count, &usage->shared_room));
    usage->shared[usage->shared_count++] = (struct usage_shared){
        .flow = mark->flow, .begin = span.begin, .own_ns = own_ns, mark->rank, mark->row};
    return WEFT_OK;
}

/* ---- sums ---- */

static int compare_spans(const void *a, const void *b)
{
    const struct usage_span *x = a, *y = b;

    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Spans of several tracks overlap: count each moment once. */
static void join_spans(struct usage_rank *rank)
{
    uint64_t covered = 0;

    if (rank->span_count > 0)
        qsort(rank->spans, rank->span_count, sizeof *rank->spans, compare_spans);
    for (size_t i = 0; i < rank->span_count; i++) {
        uint64_t begin = rank->spans[i].begin > covered ? rank->spans[i].begin : covered;

        if (rank->spans[i].end <= begin) continue;
        rank->weft_ns += rank->spans[i].end - begin;
        covered = rank->spans[i].end;
    }
}

static int compare_shared(const void *a, const void *b)
{
    const struct usage_shared *x = a, *y = b;

    if (x->flow != y->flow) return x->flow < y->flow ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The COUNT slices of one operation, in the order of their begins. */
static void count_waits(struct usage *usage, const struct usage_shared *slices, size_t count)
{
    uint64_t last = slices[count - 1].begin;

    for (size_t i = 0; i < count; i++) {
        uint64_t waited = last - slices[i].begin;

        if (waited > slices[i].own_ns) waited = slices[i].own_ns;
        usage->ranks[slices[i].rank].waiting_ns += waited;
        usage->rows[slices[i].row].waiting_ns += waited;
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct usage_row *x = a, *y = b;

    return x->own_ns > y->own_ns ? -1 : x->own_ns < y->own_ns;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct usage_rank *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

void usage_settle(struct usage *usage)
{
    for (size_t i = 0; i < usage->rank_count; i++)
        join_spans(&usage->ranks[i]);
    if (usage->shared_count > 0)
        qsort(usage->shared, usage->shared_count, sizeof *usage->shared, compare_shared);
    for (size_t i = 0, next; i < usage->shared_count; i = next) {
        for (next = i + 1; next < usage->shared_count; next++)
            if (usage->shared[next].flow != usage->shared[i].flow) break;
        count_waits(usage, &usage->shared[i], next - i);
    }
    if (usage->row_count > 0)
        qsort(usage->rows, usage->row_count, sizeof *usage->rows, compare_rows);
    if (usage->rank_count > 0)
        qsort(usage->ranks, usage->rank_count, sizeof *usage->ranks, compare_ranks);
}

bool usage_knows_waits(const struct usage *usage)
{
    return usage->rank_count > 1;
}

/* ---- printing ---- */

static uint64_t wall_of(const struct usage_rank *rank)
{
    return rank->last > rank->first ? rank->last - rank->first : 0;
}

static double share_of(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void add_padded(struct wf_text *out, bool known, uint64_t ns)
{
    struct wf_text time = {0};

    if (known) wf_text_time(&time, ns);
    wf_text_add(out, " %10s", !known ? "-" : time.failed ? "" : time.data);
    wf_text_free(&time);
}

static void add_times(struct wf_text *out, const struct usage *usage, uint64_t own_ns,
                      uint64_t waiting_ns)
{
    bool known = usage_knows_waits(usage);

    add_padded(out, known, waiting_ns);
    add_padded(out, known, own_ns - waiting_ns);
}

static uint64_t wall_of_all(const struct usage *usage)
{
    uint64_t wall = 0;

    for (size_t i = 0; i < usage->rank_count; i++)
        wall += wall_of(&usage->ranks[i]);
    return wall;
}

void usage_print_text(const struct usage *usage, struct wf_text *out)
{
    uint64_t wall = wall_of_all(usage);

    if (usage->rank_count == 0) return;
    wf_text_add(out, "\ntime of each rank, from its first operation to its last\n"
                     "  rank       wall    in weft   share    waiting     moving\n");
    for (size_t i = 0; i < usage->rank_count; i++) {
        const struct usage_rank *rank = &usage->ranks[i];

        wf_text_add(out, "  %4d", rank->rank);
        add_padded(out, true, wall_of(rank));
        add_padded(out, true, rank->weft_ns);
        wf_text_add(out, " %5.1f %%", 100 * share_of(rank->weft_ns, wall_of(rank)));
        add_times(out, usage, rank->own_ns, rank->waiting_ns);
        wf_text_char(out, '\n');
    }
    wf_text_add(out, "\nby operation, communicator and size\n"
                     "   share    count       time    waiting     moving\n");
    for (size_t i = 0; i < usage->row_count; i++) {
        const struct usage_row *row = &usage->rows[i];
        char kind[64], along[128];

        proto_show(&row->kind, kind, sizeof kind);
        proto_show(&row->along, along, sizeof along);
        wf_text_add(out, "  %5.1f %% %7llu", 100 * share_of(row->own_ns, wall),
                    (unsigned long long)row->count);
        add_padded(out, true, row->own_ns);
        add_times(out, usage, row->own_ns, row->waiting_ns);
        wf_text_add(out, "  %s%s%s", kind, along[0] != '\0' ? " " : "", along);
        if (row->bytes > 0) wf_text_add(out, " up to ");
        if (row->bytes > 0) wf_text_bytes(out, row->bytes);
        wf_text_char(out, '\n');
    }
    if (!usage_knows_waits(usage))
        wf_text_add(out, "How long a rank waited for others is known from all ranks' traces: "
                         "`weft trace merge`.\n");
}

static void add_json_times(struct wf_json *json, const struct usage *usage, uint64_t own_ns,
                           uint64_t waiting_ns)
{
    if (usage_knows_waits(usage)) {
        wf_json_uint(json, "waiting_ns", waiting_ns);
        wf_json_uint(json, "moving_ns", own_ns - waiting_ns);
    } else {
        wf_json_null(json, "waiting_ns");
        wf_json_null(json, "moving_ns");
    }
}

void usage_print_json(const struct usage *usage, struct wf_json *json)
{
    char text[128];

    wf_json_begin(json, "ranks", '[');
    for (size_t i = 0; i < usage->rank_count; i++) {
        const struct usage_rank *rank = &usage->ranks[i];

        wf_json_begin(json, NULL, '{');
        wf_json_int(json, "rank", rank->rank);
        wf_json_uint(json, "wall_ns", wall_of(rank));
        wf_json_uint(json, "weft_ns", rank->weft_ns);
        wf_json_real(json, "share", share_of(rank->weft_ns, wall_of(rank)));
        add_json_times(json, usage, rank->own_ns, rank->waiting_ns);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
    wf_json_begin(json, "uses", '[');
    for (size_t i = 0; i < usage->row_count; i++) {
        const struct usage_row *row = &usage->rows[i];

        wf_json_begin(json, NULL, '{');
        proto_show(&row->kind, text, sizeof text);
        wf_json_string(json, "kind", text);
        proto_show(&row->along, text, sizeof text);
        wf_json_string(json, "along", text[0] != '\0' ? text : NULL);
        wf_json_uint(json, "bytes_most", row->bytes);
        wf_json_uint(json, "count", row->count);
        wf_json_uint(json, "time_ns", row->own_ns);
        add_json_times(json, usage, row->own_ns, row->waiting_ns);
        wf_json_end(json, '}');
    }
    wf_json_end(json, ']');
}

void usage_free(struct usage *usage)
{
    for (size_t i = 0; i < usage->rank_count; i++)
        wf_free(usage->ranks[i].spans);
    wf_free(usage->ranks);
    wf_free(usage->rows);
    wf_free(usage->shared);
}
