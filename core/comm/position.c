/* position.c - the position of every rank in a communicator, to explain a wait that does not end.
 */
#include "position.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

#define ASK_NS     (WF_SECOND_NS / 2)
#define LOGGED_OPS 8
#define SUSPECTS   4 /* ranks in a message */
#define HOPS       8 /* communicators by way of which ranks wait for each other */
/* In a larger job only the ranks of the communicator are asked: each rank may ask, and the server
 * could not answer all of them in time. */
#define JOB_MOST 256

struct position {
    bool answered;
    uint32_t where; /* enum wf_where */
    uint64_t posted, finished;
    char last[120];
    weft_status failed; /* the rank's error on the communicator; WEFT_OK: none */
    char why[512];
    weft_blob calls;     /* of calls.h */
    char elsewhere[288]; /* its unfinished operation on another communicator, or "" */
    weft_blob there;     /* that communicator, a struct place */
};

/* An operation of a communicator that a rank waits in. */
struct place {
    uint64_t number, posted;
    char name[96];
    int32_t count, ranks[JOB_MOST]; /* of the world */
};

static uint64_t load(_Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

/* The error of COMM, which this rank may not have reported yet: it may be that of work on a stream.
 * The context's lock is held. */
static void put_error(weft_comm *comm, struct wf_text *out)
{
    weft_status status = atomic_load_explicit(&comm->cause, memory_order_acquire);
    const char *text = comm->cause_text;

    if (status == WEFT_OK) {
        status = comm->table->async_error(comm->handle);
        text = weft_last_error();
    }
    wf_put_u32(out, (uint32_t)status);
    wf_put_string(out, status != WEFT_OK ? text : "");
}

struct step {
    const weft_comm *whole;
    char text[WF_STEP_TEXT];
};

/* The communicator that fails together with COMM. */
static const weft_comm *find_whole(const weft_comm *comm)
{
    return comm->owner != NULL && !comm->fails_alone ? comm->owner : comm;
}

static void describe_step(void *self, const struct wf_contribution *contribution)
{
    const struct wf_agreement *agreement = contribution->self;
    struct step *step = self;

    if (agreement->comm == NULL || find_whole(agreement->comm) != step->whole) return;
    snprintf(step->text, sizeof step->text, "%s%s%s", agreement->label,
             agreement->about != NULL ? ": " : "",
             agreement->about != NULL ? agreement->about : "");
}

/* Add the step in which this rank waits for ASKER: a step of COMM, of its owner or of another group
 * of it.  "": it waits in no such step. */
static void put_step(const weft_comm *comm, int32_t asker, struct wf_text *out)
{
    struct step step = {.whole = find_whole(comm)};

    if (comm->context->client != NULL)
        wf_client_each_wait(comm->context->client, asker, describe_step, &step);
    wf_put_string(out, step.text);
}

/* How many of the POSTED operations are complete, as far as this rank knows.  A wait for a stream
 * completes the record of an operation, not its entry in COMM's own list. */
static uint64_t count_finished(const weft_comm *comm, uint64_t posted)
{
    const struct wf_trace *trace = comm->context->trace;
    uint64_t finished = atomic_load(&comm->recent.finished);
    weft_record record;

    if (finished >= posted || trace == NULL ||
        !wf_trace_read(trace, atomic_load(&comm->last_record), &record) ||
        record.comm != comm->number || wf_record_is_creation(&record))
        return finished;
    return record.state == WEFT_RECORD_FINISHED ? posted : finished;
}

void wf_position_put(weft_comm *comm, int32_t asker, struct wf_text *out)
{
    uint64_t posted = atomic_load(&comm->recent.posted);
    struct wf_text last = {0};

    wf_put_u32(out, WF_WHERE_KNOWN);
    wf_recent_print(&comm->recent, posted, &last);
    wf_put_u64(out, posted);
    wf_put_u64(out, count_finished(comm, posted));
    wf_put_blob(out, last.data, last.length);
    wf_runs_report(comm, out);
    put_step(comm, asker, out);
    put_error(comm, out);
    wf_calls_put(comm, out);
    wf_text_free(&last);
}

/* Add operation POSTED of COMM, in which this rank may wait, as a struct place. */
static void put_place(const weft_comm *comm, uint64_t posted, struct wf_text *out)
{
    int32_t count = comm->size <= JOB_MOST ? comm->size : 0;

    wf_put_u64(out, comm->number);
    wf_put_u64(out, posted);
    wf_put_string(out, comm->name);
    wf_put_u32(out, (uint32_t)count);
    for (int32_t i = 0; i < count; i++)
        wf_put_u32(out, (uint32_t)comm->world_ranks[i]);
}

static bool take_place(weft_blob blob, struct place *out)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};

    out->number = wf_take_u64(&reader);
    out->posted = wf_take_u64(&reader);
    wf_take_string(&reader, out->name, sizeof out->name);
    out->count = (int32_t)wf_take_u32(&reader);
    if (reader.failed || out->count < 1 || out->count > JOB_MOST) return false;
    for (int32_t i = 0; i < out->count; i++)
        out->ranks[i] = (int32_t)wf_take_u32(&reader);
    return !reader.failed;
}

/* Add the last operation on a communicator other than the one numbered NUMBER that is not known to
 * be complete: this rank may wait in it.  The context's lock is held. */
static void put_elsewhere(const weft_context *context, uint64_t number, struct wf_text *out)
{
    struct wf_text text = {0}, place = {0};

    for (weft_comm *comm = context->comms; comm != NULL && text.length == 0; comm = comm->next) {
        uint64_t posted = atomic_load(&comm->recent.posted);

        if (comm->number == number || count_finished(comm, posted) >= posted) continue;
        wf_text_add(&text, "#%llu, ", (unsigned long long)posted);
        wf_recent_print(&comm->recent, posted, &text);
        wf_text_add(&text, ", on %s", comm->name);
        put_place(comm, posted, &place);
    }
    wf_put_blob(out, text.data, text.length);
    wf_put_blob(out, place.data, place.length);
    wf_text_free(&text);
    wf_text_free(&place);
}

void wf_position_report(void *self, uint64_t number, int32_t asker, struct wf_text *out)
{
    weft_context *context = self;
    weft_comm *comm;

    pthread_mutex_lock(&context->lock);
    comm = context->comms;
    while (comm != NULL && comm->number != number)
        comm = comm->next;
    if (comm != NULL)
        wf_position_put(comm, asker, out);
    else
        wf_put_u32(out, WF_WHERE_UNKNOWN);
    put_elsewhere(context, number, out);
    pthread_mutex_unlock(&context->lock);
}

static void read_position(weft_blob blob, struct position *out)
{
    struct wf_reader reader = {blob.data, (size_t)blob.bytes, false};

    *out = (struct position){.answered = blob.bytes > 0};
    out->where = wf_take_u32(&reader);
    if (out->where > WF_WHERE_GONE) out->where = WF_WHERE_UNKNOWN;
    if (out->where == WF_WHERE_KNOWN) {
        out->posted = wf_take_u64(&reader);
        out->finished = wf_take_u64(&reader);
        wf_take_string(&reader, out->last, sizeof out->last);
        (void)wf_take_blob(&reader); /* the runs of plans */
        (void)wf_take_blob(&reader); /* the step that it waits in */
        out->failed = wf_take_status(&reader);
        wf_take_string(&reader, out->why, sizeof out->why);
        if (reader.failed) out->failed = WEFT_OK;
        out->calls = wf_take_blob(&reader);
    }
    if (reader.left == 0) return;
    wf_take_string(&reader, out->elsewhere, sizeof out->elsewhere);
    out->there = wf_take_blob(&reader);
}

/* True if a rank at position P has begun an operation in another communicator that is not known to
 * be complete: it may wait there.  An operation of this communicator may be as incomplete, if it is
 * on a stream. */
static bool may_wait_elsewhere(const struct position *p)
{
    return p->answered && p->elsewhere[0] != '\0';
}

static void print_position(const struct position *p, struct wf_text *out)
{
    if (!p->answered) {
        wf_text_add(out, "does not answer (stopped, unreachable, or its host is down)");
    } else if (p->where == WF_WHERE_GONE) {
        wf_text_add(out, "is gone");
    } else if (p->where == WF_WHERE_UNKNOWN) {
        wf_text_add(out, "does not have this communicator (any more)");
    } else if (p->posted == 0) {
        wf_text_add(out, "has posted no operation");
    } else {
        wf_text_add(out, "is at #%llu, %s%s", (unsigned long long)p->posted, p->last,
                    p->finished == p->posted ? " (done)" : "");
    }
    if (p->elsewhere[0] != '\0' && p->finished == p->posted)
        wf_text_add(out, " (it is at %s)", p->elsewhere);
}

/* True if a rank at position P may be what a rank with POSTED operations waits for. */
static bool is_suspect(const struct position *p, uint64_t posted)
{
    return !p->answered || p->where != WF_WHERE_KNOWN || p->posted < posted;
}

static void add_suspect(struct wf_text *out, int *shown, int32_t rank, const struct position *p,
                        bool outside)
{
    if (*shown == SUSPECTS) return;
    wf_text_add(out, "%srank %d%s ", (*shown)++ > 0 ? "; " : "", rank,
                outside ? ", outside the communicator," : "");
    print_position(p, out);
}

/* RANK of the communicator has failed: is its error the cause on all ranks? */
static void note_error(const struct position *p, int32_t rank, struct wf_answers *out)
{
    if (out->shared != WEFT_OK) return;
    if (p->failed != WEFT_ERR_TIMEOUT && p->failed != WEFT_ERR_MISMATCH) return;
    out->shared = p->failed;
    wf_text_add(&out->why, "rank %d failed: %s", rank, p->why);
}

/* RANK may be what others wait for: the first one that does not wait itself is.  Set *THERE to
 * where the first of those that wait does so. */
static void note_suspect(const struct position *p, int32_t rank, struct wf_answers *out,
                         struct place *there)
{
    bool waits = may_wait_elsewhere(p);

    if (waits && there->count == 0 && !take_place(p->there, there)) there->count = 0;
    if (out->suspect < 0 || (out->suspect_waits && !waits)) {
        out->suspect = rank;
        out->suspect_waits = waits;
    }
}

/* The ranks of COMM come first in RANKS.  A rank outside it matters only if it does not answer:
 * ranks of COMM may wait for it. */
static void print_all(const weft_comm *comm, const int32_t *ranks, const struct wf_gathered *got,
                      uint64_t posted, struct wf_answers *out, struct place *there)
{
    int silent = 0, behind = 0;

    for (int32_t i = 0; i < got->count; i++) {
        bool outside = i >= comm->size;
        struct position p;

        read_position(got->blobs[i], &p);
        if (i == comm->rank || (outside && p.answered)) continue;
        wf_text_add(&out->lines, "  rank %d%s ", ranks[i],
                    outside ? ", outside the communicator," : "");
        print_position(&p, &out->lines);
        wf_text_char(&out->lines, '\n');
        if (!outside) note_error(&p, ranks[i], out);
        if (!outside && out->differ.length == 0 && p.calls.bytes > 0)
            (void)wf_calls_compare(comm, p.calls, ranks[i], UINT64_MAX, &out->differ);
        if (is_suspect(&p, posted)) note_suspect(&p, ranks[i], out, there);
        if (!p.answered)
            add_suspect(&out->silent, &silent, ranks[i], &p, outside);
        else if (is_suspect(&p, posted))
            add_suspect(&out->behind, &behind, ranks[i], &p, outside);
    }
}

/* The ranks of COMM, then the other ranks of the job; *COUNT is how many. */
static int32_t *list_asked(const weft_comm *comm, int32_t *count)
{
    int32_t size = comm->context->size <= JOB_MOST ? comm->context->size : comm->size;
    int32_t *ranks = wf_alloc((size_t)size * sizeof *ranks);

    *count = comm->size;
    if (ranks == NULL) return NULL;
    memcpy(ranks, comm->world_ranks, (size_t)comm->size * sizeof *ranks);
    for (int32_t rank = 0; *count < size; rank++)
        if (weft_comm_find_rank(comm, rank) < 0) ranks[(*count)++] = rank;
    return ranks;
}

/* The suspects of AT among its ranks, who have answered GOT.  Set *NEXT to where the first of those
 * that wait does so.  Returns true if one does not wait: OUT names it. */
static bool judge(const struct place *at, const struct wf_gathered *got, struct wf_answers *out,
                  struct place *next)
{
    struct position p;

    next->count = 0;
    for (int32_t i = 0; i < got->count && i < at->count; i++) {
        read_position(got->blobs[i], &p);
        if (!is_suspect(&p, at->posted)) continue;
        if (may_wait_elsewhere(&p)) {
            if (next->count == 0 && !take_place(p.there, next)) next->count = 0;
            continue;
        }
        out->suspect = at->ranks[i];
        out->suspect_waits = false;
        wf_text_add(&out->behind, "; rank %d holds them up: on %s it ", at->ranks[i], at->name);
        print_position(&p, &out->behind);
        return true;
    }
    return false;
}

/* All suspects wait in other communicators, the first one at AT: ask the ranks there, and so on,
 * for the one that does not wait. */
static void follow(struct wf_client *client, uint64_t number, struct place *at,
                   struct wf_answers *out)
{
    struct place *next = wf_alloc(sizeof *next);

    for (int hop = 0; next != NULL && hop < HOPS && at->count > 0; hop++) {
        struct wf_gathered got;
        bool found;

        if (at->number == number) {
            wf_text_add(&out->behind, "; these ranks wait for each other");
            break;
        }
        if (wf_client_ask(client, at->number, at->ranks, at->count, ASK_NS, &got) != WEFT_OK) break;
        found = judge(at, &got, out, next);
        wf_gathered_free(&got);
        if (found) break;
        *at = *next;
    }
    wf_free(next);
}

static void ask(weft_comm *comm, const int32_t *ranks, int32_t count, struct wf_answers *out,
                struct place *there)
{
    struct wf_client *client = comm->context->client;
    uint64_t posted = load(&comm->recent.posted);
    struct wf_gathered got;

    if (wf_client_ask(client, comm->number, ranks, count, ASK_NS, &got) == WEFT_OK) {
        if (got.count == count) print_all(comm, ranks, &got, posted, out, there);
        wf_gathered_free(&got);
        if (out->suspect_waits) follow(client, comm->number, there, out);
    } else {
        out->failed = true;
        wf_text_add(&out->lines, "  the other ranks cannot be asked: %s\n", weft_last_error());
    }
}

void wf_position_ask(weft_comm *comm, struct wf_answers *out)
{
    struct place *there;
    int32_t *ranks, count;

    *out = (struct wf_answers){.suspect = -1};
    if (comm->context->client == NULL || comm->size == 1) return;
    there = wf_calloc(1, sizeof *there);
    ranks = list_asked(comm, &count);
    if (there != NULL && ranks != NULL) ask(comm, ranks, count, out, there);
    wf_free(ranks);
    wf_free(there);
}

void wf_answers_free(struct wf_answers *answers)
{
    wf_text_free(&answers->lines);
    wf_text_free(&answers->silent);
    wf_text_free(&answers->behind);
    wf_text_free(&answers->why);
    wf_text_free(&answers->differ);
}

static void print_own(weft_comm *comm, struct wf_text *out)
{
    uint64_t posted = atomic_load(&comm->recent.posted), finished = load(&comm->recent.finished);
    bool is_done = count_finished(comm, posted) >= posted; /* the last one */

    wf_text_add(out, "%s (%d rank%s): rank %d has posted %llu operation%s\n", comm->name,
                comm->size, WF_PLURAL(comm->size), comm->context->rank, (unsigned long long)posted,
                WF_PLURAL(posted));
    for (uint64_t n = posted > LOGGED_OPS ? posted - LOGGED_OPS + 1 : 1; n <= posted; n++) {
        wf_text_add(out, "  #%llu ", (unsigned long long)n);
        wf_recent_print(&comm->recent, n, out);
        wf_text_add(out, "%s\n", n <= finished || (n == posted && is_done) ? " (done)" : "");
    }
}

/* Log each line of TEXT, which it takes apart. */
static void log_lines(struct wf_text *text)
{
    char *rest = text->data, *end;

    for (; rest != NULL && *rest != '\0'; rest = end) {
        end = rest + strcspn(rest, "\n");
        if (*end != '\0') *end++ = '\0';
        wf_log(WF_LOG_WARNING, "%s", rest);
    }
}

static void print_report(weft_comm *comm, struct wf_text *out)
{
    struct wf_answers answers;

    print_own(comm, out);
    wf_position_ask(comm, &answers);
    wf_text_append(out, answers.lines.data, answers.lines.length);
    wf_answers_free(&answers);
}

weft_status weft_comm_report_print(weft_comm *comm, char *text, size_t size, size_t *needed)
{
    struct wf_text report = {0};

    WF_TRY(wf_comm_check(comm, "weft_comm_report_print"));
    if (text == NULL && size > 0) return wf_fail_null("weft_comm_report_print", "text");
    print_report(comm, &report);
    return wf_text_copy_out(&report, text, size, needed);
}

void wf_position_log(weft_comm *comm)
{
    struct wf_text report = {0};

    print_report(comm, &report);
    log_lines(&report);
    wf_text_free(&report);
}

void wf_position_log_answers(weft_comm *comm, const struct wf_text *lines)
{
    struct wf_text text = {0};

    print_own(comm, &text);
    wf_text_append(&text, lines->data, lines->length);
    log_lines(&text);
    wf_text_free(&text);
}
