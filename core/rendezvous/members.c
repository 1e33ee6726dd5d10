/* members.c - the rendezvous server's members: their frames and their departures. */
#include "server.h"

#include "weft/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* First serial of a standby's gathers.  The server before it does not reach this number. */
#define STANDBY_SERIAL (UINT64_C(1) << 39)

/* ---- frames to members ---- */

void wf_members_deliver(struct wf_server *s, uint16_t type, int32_t rank, uint64_t id,
                        const struct wf_text *payload)
{
    if (s->members[rank] != NULL) wf_connection_send(s->members[rank], type, id, payload);
}

/* Send at once, so that the frame arrives even if this process ends now. */
static void deliver_now(struct wf_server *s, uint16_t type, int32_t rank, uint64_t id,
                        const struct wf_text *payload)
{
    wf_members_deliver(s, type, rank, id, payload);
    if (s->members[rank] != NULL) wf_connection_write(s->members[rank]);
}

/* To RANKS but for EXCEPT. */
static void tell(struct wf_server *s, uint16_t type, const int32_t *ranks, int32_t count,
                 int32_t except, const struct wf_text *payload)
{
    for (int32_t turn = 0; turn <= wf_turn_of(0); turn++)
        for (int32_t i = 0; i < count; i++)
            if (ranks[i] != except && wf_turn_of(ranks[i]) == turn)
                deliver_now(s, type, ranks[i], 0, payload);
}

static void deliver_gathered(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    deliver_now(self, WF_FRAME_GATHERED, rank, id, payload);
}

static void deliver_told(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    wf_members_deliver(self, WF_FRAME_TELL, rank, id, payload);
}

/* Make the table of ranks empty, as before the first rank has joined. */
static weft_status begin_joining(struct wf_server *s)
{
    struct wf_gathers *fresh;

    WF_TRY(wf_gathers_create(s->options.size, (struct wf_gather_sink){s, deliver_gathered},
                             s->options.standby ? STANDBY_SERIAL : 0, &fresh));
    wf_gathers_release(&s->gathers);
    wf_inquiries_free(&s->inquiries);
    s->gathers = fresh;
    s->running = s->options.standby;
    s->join_deadline_ns = UINT64_MAX;
    s->first_lost = -1;
    memset(s->came, 0, (size_t)s->options.size * sizeof *s->came);
    wf_random_bytes(&s->job, sizeof s->job);
    return WEFT_OK;
}

weft_status wf_members_create(struct wf_server *s)
{
    s->members = wf_calloc((size_t)s->options.size, sizeof(struct wf_connection *));
    s->came = wf_calloc((size_t)s->options.size, sizeof *s->came);
    s->failure.reported = wf_calloc((size_t)s->options.size, sizeof *s->failure.reported);
    if (s->members == NULL || s->came == NULL || s->failure.reported == NULL)
        return wf_fail_memory((size_t)s->options.size * sizeof(struct wf_connection *));
    s->inquiries.sink = (struct wf_gather_sink){s, deliver_told};
    return begin_joining(s);
}

static void free_looks(struct wf_server *s)
{
    while (s->looks != NULL) {
        struct wf_look *look = s->looks;

        s->looks = look->next;
        wf_free(look);
    }
}

void wf_members_release(struct wf_server *s)
{
    free_looks(s);
    wf_gathers_release(&s->gathers);
    wf_inquiries_free(&s->inquiries);
    wf_free(s->members);
    wf_free(s->came);
    wf_free(s->absent);
    wf_free(s->failure.reported);
    wf_free(s->failure.text);
}

/* ---- ranks that do not join ---- */

void wf_members_fail_join(struct wf_server *s, weft_status status, const char *text)
{
    wf_free(s->failure.text);
    s->failure.text = wf_strdup(text);
    s->failure.status = status;
    s->failure.at_ns = wf_now_ns();
    for (int32_t rank = 0; rank < s->options.size; rank++) {
        s->failure.reported[rank] = s->members[rank] != NULL;
        if (s->members[rank] == NULL) continue;
        wf_connection_refuse(s->members[rank], status, text);
        s->members[rank] = NULL;
        s->came[rank] = false;
    }
    s->present = 0;
    s->join_deadline_ns = UINT64_MAX;
}

static void time_out_join(struct wf_server *s)
{
    struct wf_text text = {0};
    int32_t *missing = wf_alloc((size_t)s->options.size * sizeof *missing), count = 0;

    for (int32_t rank = 0; missing != NULL && rank < s->options.size; rank++)
        if (s->members[rank] == NULL) missing[count++] = rank;
    if (missing != NULL) {
        wf_ranks_print(&text, missing, count);
        wf_text_add(&text, " of %d did not join the job within ", s->options.size);
        wf_text_time(&text, (uint64_t)s->options.join_timeout_ns);
        if (s->out_of_files)
            wf_text_add(&text, "; the process that serves it could not open more files%s",
                        kit_limit_text(EMFILE));
    }
    wf_members_fail_join(s, WEFT_ERR_TIMEOUT,
                         text.failed || text.data == NULL ? "out of memory" : text.data);
    wf_text_free(&text);
    wf_free(missing);
}

/* ---- departures ---- */

/* "is gone: ...", and the likely cause. */
static void explain_departure(const struct wf_server *s, const struct wf_connection *c,
                              const char *text, struct wf_text *out)
{
    wf_text_add(out, "%s", text);
    if (c->fault != NULL)
        wf_text_add(out, "; it had reported: %.300s", c->fault);
    else if (s->first_lost >= 0)
        wf_text_add(out, "; before it, rank %d was lost", s->first_lost);
    if (c->fault == NULL && c->heard != NULL)
        wf_text_add(out, "; before, it was sent this error: %.300s", c->heard);
}

/* RANK is gone from a running job.  Rank 0 is sent this last: its process may serve the rendezvous,
 * and may end because of the report. */
static void announce_gone(struct wf_server *s, int32_t rank, bool left, int32_t missed,
                          const char *text, weft_blob record)
{
    struct wf_text payload = {0};

    wf_put_u32(&payload, (uint32_t)rank);
    wf_put_u32(&payload, left);
    wf_put_u32(&payload, (uint32_t)missed);
    wf_put_string(&payload, text);
    wf_put_blob(&payload, record.data, record.bytes);
    for (int32_t other = s->options.size - 1; other > 0; other--)
        deliver_now(s, WF_FRAME_GONE, other, 0, &payload);
    wf_gathers_gone(s->gathers, rank, text);
    deliver_now(s, WF_FRAME_GONE, 0, 0, &payload);
    wf_text_free(&payload);
}

/* RANK is gone before all ranks have joined. */
static void abandon_join(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_text why = {0};

    s->came[rank] = false;
    s->join_deadline_ns = s->present > 0 ? s->join_deadline_ns : UINT64_MAX;
    if (s->present == 0) return;
    wf_text_add(&why, "rank %d %s", rank, text);
    wf_members_fail_join(s, WEFT_ERR_PEER, why.failed ? "out of memory" : why.data);
    s->failure.reported[rank] = true;
    wf_text_free(&why);
}

/* Remove a member.  RECORD is its departure record for the other ranks. */
static void remove_member(struct wf_server *s, struct wf_connection *c, bool left, const char *text,
                          weft_blob record)
{
    struct wf_text why = {0};
    int32_t rank = c->rank;

    explain_departure(s, c, text, &why);
    if (!why.failed) text = why.data;
    c->rank = -1;
    c->leaving = false;
    c->stage = WF_STAGE_PARTING;
    c->deadline_ns = wf_now_ns() + WF_STAGE_LIMIT_NS;
    s->members[rank] = NULL;
    s->present--;
    if (!left && s->first_lost < 0 && s->running) s->first_lost = rank;
    if (s->running)
        announce_gone(s, rank, left, c->missed, text, record);
    else
        abandon_join(s, rank, text);
    wf_elastic_lost(s, rank, c->fd, text);
    wf_text_free(&why);
    if (s->present == 0 && s->running && !s->options.standby && begin_joining(s) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "the rendezvous cannot accept a new job: %s", weft_last_error());
}

void wf_members_lost(struct wf_server *s, struct wf_connection *c)
{
    struct wf_text text = {0};

    if (c->rank < 0) return;
    if (c->why != NULL)
        wf_text_add(&text, "is gone: the rendezvous closed its connection: %s", c->why);
    else
        wf_text_add(&text, "is gone: it crashed, was killed, or exited without "
                           "weft_context_release (its connection closed)");
    remove_member(s, c, false, text.failed ? "is gone" : text.data, (weft_blob){"", 0});
    wf_text_free(&text);
}

void wf_members_expel(struct wf_server *s, struct wf_connection *c, const char *text)
{
    wf_log(WF_LOG_NOTICE, "rank %d %s", c->rank, text);
    remove_member(s, c, false, text, (weft_blob){"", 0});
}

void wf_members_leave(struct wf_server *s, struct wf_connection *c)
{
    struct wf_frame frame;
    struct wf_text record = {0};

    if (c->rank < 0 || wf_frame_next(&c->in, &frame) != WEFT_OK) return;
    wf_text_append(&record, (const char *)frame.payload, frame.bytes);
    wf_frame_drop(&c->in, &frame);
    remove_member(s, c, true, "has left the job", (weft_blob){record.data, record.length});
    wf_text_free(&record);
}

void wf_members_ended(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_text why = {0};

    if (rank < 0 || rank >= s->options.size) return;
    wf_elastic_ended(s, rank, text);
    wf_text_add(&why, "rank %d %s", rank, text);
    if (s->absent != NULL || wf_text_take(&why, &s->absent) != WEFT_OK) wf_text_free(&why);
    if (s->members[rank] != NULL)
        remove_member(s, s->members[rank], false, text, (weft_blob){"", 0});
    else if (!s->running && s->absent != NULL)
        wf_members_fail_join(s, WEFT_ERR_PEER, s->absent);
}

/* ---- frames from members ---- */

/* C sent a frame that a rank must not send; the last error is the reason. */
static void reject(struct wf_connection *c)
{
    wf_connection_reject(c);
    wf_log(WF_LOG_WARNING, "the rendezvous closes rank %d's connection: %s", c->rank,
           weft_last_error());
}

static void reject_contents(struct wf_connection *c, const struct wf_frame *frame)
{
    (void)wf_fail(WEFT_ERR_PARSE,
                  "it sent a message of type %u that cannot be read; all ranks must "
                  "run the same version of weft",
                  (unsigned)frame->type);
    reject(c);
}

/* Read the list of ranks in a frame.  Returns their number, or -1 if the list is invalid. */
static int32_t take_ranks(struct wf_server *s, struct wf_reader *reader, int32_t *ranks)
{
    int32_t count = (int32_t)wf_take_u32(reader);

    if (count < 1 || count > s->options.size) return -1;
    for (int32_t i = 0; i < count; i++) {
        ranks[i] = (int32_t)wf_take_u32(reader);
        if (ranks[i] < 0 || ranks[i] >= s->options.size) return -1;
    }
    return reader->failed ? -1 : count;
}

static void handle_gather(struct wf_server *s, struct wf_connection *c,
                          const struct wf_frame *frame, int32_t *ranks, uint64_t now_ns)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_contribution contribution;
    char label[160], text[1600];
    weft_status status;

    status = wf_contribution_take(&reader, ranks, s->options.size, label, sizeof label, text,
                                  sizeof text, &contribution);
    if (status == WEFT_OK)
        status = wf_gathers_post(s->gathers, now_ns, c->rank, frame->id, &contribution);
    if (status != WEFT_OK) reject(c);
}

/* The first error of another rank that RANKS are sent may be why they depart. */
static void note_heard(struct wf_server *s, const int32_t *ranks, int32_t count, int32_t except,
                       const char *text)
{
    for (int32_t i = 0; i < count; i++) {
        struct wf_connection *c = s->members[ranks[i]];

        if (c != NULL && ranks[i] != except && c->heard == NULL) c->heard = wf_strdup(text);
    }
}

static void handle_abort(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                         int32_t *ranks)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_text payload = {0};
    uint64_t comm = wf_take_u64(&reader);
    weft_status status = wf_take_status(&reader);
    uint64_t complete = wf_take_u64(&reader);
    int32_t count = take_ranks(s, &reader, ranks);
    char text[1024];

    wf_take_string(&reader, text, sizeof text);
    if (count < 0 || reader.failed || !wf_abort_may_be(status)) {
        reject_contents(c, frame);
        return;
    }
    if (status != WEFT_ERR_ABORTED && c->fault == NULL) c->fault = wf_strdup(text);
    if (status != WEFT_ERR_ABORTED) note_heard(s, ranks, count, c->rank, text);
    wf_put_u64(&payload, comm);
    wf_put_u32(&payload, (uint32_t)status);
    wf_put_u64(&payload, complete);
    wf_put_string(&payload, text);
    tell(s, WF_FRAME_ABORT, ranks, count, c->rank, &payload);
    wf_text_free(&payload);
    if (frame->id != 0) deliver_now(s, WF_FRAME_PASSED, c->rank, frame->id, NULL);
}

static void handle_ask(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                       int32_t *ranks, uint64_t now_ns)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_text payload = {0}, gone = {0};
    uint64_t comm = wf_take_u64(&reader), timeout_ns = wf_take_u64(&reader), number;
    int32_t count = take_ranks(s, &reader, ranks);

    if (count < 0 || timeout_ns > INT64_MAX) {
        reject_contents(c, frame);
        return;
    }
    if (wf_inquiry_open(&s->inquiries, now_ns + timeout_ns, c->rank, frame->id, ranks, count,
                        &number) != WEFT_OK) {
        reject(c);
        return;
    }
    wf_put_u32(&gone, WF_WHERE_GONE);
    wf_put_u64(&payload, comm);
    wf_put_u32(&payload, (uint32_t)c->rank);
    for (int32_t i = 0; i < count; i++) {
        /* A rank that has not come to the standby yet may be stopped. */
        if (s->members[ranks[i]] == NULL && s->came[ranks[i]])
            wf_inquiry_answer(&s->inquiries, number, ranks[i], (weft_blob){gone.data, gone.length});
        else
            wf_members_deliver(s, WF_FRAME_ASK, ranks[i], number, &payload);
    }
    wf_text_free(&gone);
    wf_text_free(&payload);
}

static void handle_tell(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    weft_blob answer = wf_take_blob(&reader);

    if (reader.failed)
        reject_contents(c, frame);
    else
        wf_inquiry_answer(&s->inquiries, frame->id, c->rank, answer);
}

static void handle_look(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                        uint64_t now_ns)
{
    struct wf_reader reader = wf_frame_reader(frame);
    int32_t rank = (int32_t)wf_take_u32(&reader);

    struct wf_look *look = s->looks;

    if (reader.failed || rank < 0 || rank >= s->options.size || rank == c->rank) {
        reject_contents(c, frame);
        return;
    }
    if (c->missed < 0) c->missed = rank;
    while (look != NULL && (look->asker != c->rank || look->rank != rank))
        look = look->next;
    if (look == NULL) {
        look = wf_alloc(sizeof *look);
        if (look == NULL) return; /* the rank does not wait long for the answer */
        look->next = s->looks;
        s->looks = look;
    }
    *look = (struct wf_look){look->next, c->rank, rank, frame->id, now_ns + (uint64_t)WF_LOOK_NS};
}

void wf_members_answer_looks(struct wf_server *s, uint64_t now_ns)
{
    struct wf_look **at = &s->looks, *look;

    while ((look = *at) != NULL) {
        bool is_here = s->members[look->rank] != NULL;
        struct wf_text payload = {0};

        if (is_here && s->members[look->asker] != NULL && now_ns < look->deadline_ns) {
            at = &look->next;
            continue;
        }
        wf_put_u32(&payload, is_here);
        wf_members_deliver(s, WF_FRAME_PASSED, look->asker, look->id, &payload);
        wf_text_free(&payload);
        *at = look->next;
        wf_free(look);
    }
}

static void handle_clock(struct wf_server *s, const struct wf_connection *c, uint64_t id)
{
    struct wf_text payload = {0};

    wf_put_u64(&payload, wf_now_ns());
    wf_put_u64(&payload, s->clock);
    deliver_now(s, WF_FRAME_CLOCK, c->rank, id, &payload);
    wf_text_free(&payload);
}

static void handle_frame(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                         uint64_t now_ns)
{
    int32_t *ranks = wf_alloc((size_t)s->options.size * sizeof *ranks);

    if (ranks == NULL) {
        (void)wf_fail_memory((size_t)s->options.size * sizeof *ranks);
        reject(c);
    } else if (!s->running) {
        (void)wf_fail(WEFT_ERR_PARSE, "a frame of type %u came before all ranks had joined",
                      (unsigned)frame->type);
        reject(c);
    } else if (frame->type == WF_FRAME_GATHER) {
        handle_gather(s, c, frame, ranks, now_ns);
    } else if (frame->type == WF_FRAME_ABORT) {
        handle_abort(s, c, frame, ranks);
    } else if (frame->type == WF_FRAME_ASK) {
        handle_ask(s, c, frame, ranks, now_ns);
    } else if (frame->type == WF_FRAME_TELL) {
        handle_tell(s, c, frame);
    } else if (frame->type == WF_FRAME_LOOK) {
        handle_look(s, c, frame, now_ns);
    } else if (frame->type == WF_FRAME_CLOCK) {
        handle_clock(s, c, frame->id);
    } else if (frame->type == WF_FRAME_ELASTIC) {
        if (!wf_elastic_take_terms(s, c, frame)) reject_contents(c, frame);
    } else if (frame->type == WF_FRAME_ROUND) {
        if (!wf_elastic_take(s, c, frame)) reject_contents(c, frame);
    } else if (frame->type == WF_FRAME_BEAT) {
        wf_elastic_beat(s, c->rank, frame->id, now_ns);
    } else {
        (void)wf_fail(WEFT_ERR_PARSE,
                      "a frame of type %u, which only servers send, came from a client",
                      (unsigned)frame->type);
        reject(c);
    }
    wf_free(ranks);
}

void wf_members_handle(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    struct wf_frame frame;
    weft_status status;

    if (c->stage < WF_STAGE_MEMBER) wf_admission_handle(s, c, now_ns);
    while (c->stage == WF_STAGE_MEMBER && !c->broken) {
        status = wf_frame_next(&c->in, &frame);
        if (status == WEFT_IN_PROGRESS) return;
        if (status != WEFT_OK) {
            reject(c);
            return;
        }
        if (c->is_newcomer && c->moves) return; /* the next server handles it */
        if (c->is_newcomer) {
            if (!wf_elastic_take_newcomer(s, c, &frame, now_ns)) c->broken = true;
            wf_frame_drop(&c->in, &frame);
            continue;
        }
        if (frame.type == WF_FRAME_LEAVE) {
            c->leaving = true;
            return;
        }
        handle_frame(s, c, &frame, now_ns);
        wf_frame_drop(&c->in, &frame);
    }
}

uint64_t wf_members_expire(struct wf_server *s, uint64_t now_ns)
{
    uint64_t gathers, inquiries, earliest, expels = UINT64_MAX;

    if (s->join_deadline_ns <= now_ns) time_out_join(s);
    gathers = wf_gathers_expire(s->gathers, now_ns);
    inquiries = wf_inquiries_expire(&s->inquiries, now_ns);
    earliest = gathers < inquiries ? gathers : inquiries;
    for (const struct wf_look *look = s->looks; look != NULL; look = look->next)
        if (look->deadline_ns < earliest) earliest = look->deadline_ns;
    if (s->elastic != NULL) expels = wf_elastic_expire(s, now_ns);
    if (expels < earliest) earliest = expels;
    return earliest < s->join_deadline_ns ? earliest : s->join_deadline_ns;
}
