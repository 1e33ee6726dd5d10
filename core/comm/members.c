/* members.c - the rendezvous server's view of the ranks: who comes, what they say, who goes. */
#include "server.h"

#include "weft/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- to all ---- */

static void deliver(struct wf_server *s, uint16_t type, int32_t rank, uint64_t id,
                    const struct wf_text *payload)
{
    if (s->members[rank] != NULL) wf_connection_send(s->members[rank], type, id, payload);
}

static void deliver_gathered(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    deliver(self, WF_FRAME_GATHERED, rank, id, payload);
}

static void deliver_told(void *self, int32_t rank, uint64_t id, const struct wf_text *payload)
{
    deliver(self, WF_FRAME_TELL, rank, id, payload);
}

/* An empty table of ranks, as before the first has come. */
static weft_status begin_joining(struct wf_server *s)
{
    struct wf_meetings *fresh;

    WF_TRY(
        wf_meetings_create(s->options.size, (struct wf_meeting_sink){s, deliver_gathered}, &fresh));
    wf_meetings_release(&s->meetings);
    wf_inquiries_free(&s->inquiries);
    s->meetings = fresh;
    s->running = false;
    s->join_deadline_ns = UINT64_MAX;
    memset(s->came, 0, (size_t)s->options.size * sizeof *s->came);
    wf_random_bytes(&s->job, sizeof s->job);
    return WEFT_OK;
}

weft_status wf_members_create(struct wf_server *s)
{
    s->members = wf_calloc((size_t)s->options.size, sizeof(struct wf_connection *));
    s->came = wf_calloc((size_t)s->options.size, sizeof *s->came);
    if (s->members == NULL || s->came == NULL)
        return wf_fail_memory((size_t)s->options.size * sizeof(struct wf_connection *));
    s->inquiries.sink = (struct wf_meeting_sink){s, deliver_told};
    return begin_joining(s);
}

void wf_members_release(struct wf_server *s)
{
    wf_meetings_release(&s->meetings);
    wf_inquiries_free(&s->inquiries);
    wf_free(s->members);
    wf_free(s->came);
    wf_free(s->absent);
}

/* ---- coming ---- */

/* The ranks that came are sent away with the same reason, and may try again. */
static void fail_join(struct wf_server *s, weft_status status, const char *text)
{
    for (int32_t rank = 0; rank < s->options.size; rank++) {
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
        wf_text_add(&text, " of %d never came to the rendezvous within ", s->options.size);
        wf_text_time(&text, (uint64_t)s->options.join_timeout_ns);
        if (s->out_of_files)
            wf_text_add(&text, "; the process that serves it ran out of file descriptors: raise "
                               "`ulimit -n`");
    }
    fail_join(s, WEFT_ERR_TIMEOUT, text.failed || text.data == NULL ? "out of memory" : text.data);
    wf_text_free(&text);
    wf_free(missing);
}

static void announce_ready(struct wf_server *s)
{
    struct wf_text payload = {0};

    s->running = true;
    s->join_deadline_ns = UINT64_MAX;
    wf_put_u64(&payload, s->job);
    wf_put_u32(&payload, (uint32_t)s->options.serving_rank);
    for (int32_t rank = 0; rank < s->options.size; rank++)
        deliver(s, WF_FRAME_READY, rank, 0, &payload);
    wf_text_free(&payload);
}

/* May who proved the token be the rank it says?  If not, it has been refused. */
static bool may_join(struct wf_server *s, struct wf_connection *c)
{
    const struct wf_join *join = &c->join;
    char text[160];

    if (join->size != s->options.size || join->rank < 0 || join->rank >= s->options.size) {
        snprintf(text, sizeof text, "rank %d of %d came to a rendezvous of %d ranks", join->rank,
                 join->size, s->options.size);
        wf_connection_refuse(c, WEFT_ERR_MISMATCH, text);
        return false;
    }
    if (s->members[join->rank] != NULL) {
        snprintf(text, sizeof text, "two processes say they are rank %d: %" PRIu64 " and %" PRIu64,
                 join->rank, s->members[join->rank]->join.pid, join->pid);
        wf_connection_refuse(c, WEFT_ERR_MISMATCH, text);
        return false;
    }
    if (s->running) {
        snprintf(text, sizeof text, "ranks of the last job have not all left yet");
        wf_connection_refuse(c, WEFT_IN_PROGRESS, text);
        return false;
    }
    if (s->absent != NULL) {
        wf_connection_refuse(c, WEFT_ERR_PEER, s->absent);
        return false;
    }
    return true;
}

static void admit(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    struct wf_text payload = {0};
    uint8_t proof[WF_SHA256_BYTES];

    if (!may_join(s, c)) return;
    wf_join_server_proof(&s->options.key, &c->join, proof);
    wf_put_blob(&payload, proof, sizeof proof);
    wf_connection_send(c, WF_FRAME_ADMITTED, 0, &payload);
    wf_text_free(&payload);
    c->stage = WF_STAGE_MEMBER;
    c->deadline_ns = UINT64_MAX;
    c->rank = c->join.rank;
    s->members[c->rank] = c;
    s->came[c->rank] = true;
    s->present++;
    if (s->join_deadline_ns == UINT64_MAX)
        s->join_deadline_ns = now_ns + (uint64_t)s->options.join_timeout_ns;
    if (s->present == s->options.size) announce_ready(s);
}

static void hear_hello(struct wf_connection *c, uint64_t now_ns)
{
    const uint8_t *bytes = (const uint8_t *)c->in.bytes.data;
    uint8_t answer[WF_HELLO_BYTES];

    if (c->in.bytes.length < WF_HELLO_BYTES) {
        if (!wf_join_may_be_hello(bytes, c->in.bytes.length)) c->broken = true;
        return;
    }
    if (!wf_join_read_hello(bytes, c->join.client_nonce)) {
        c->broken = true;
        return;
    }
    wf_random_bytes(c->join.server_nonce, sizeof c->join.server_nonce);
    wf_join_hello(c->join.server_nonce, answer);
    wf_text_append(&c->out, (const char *)answer, sizeof answer);
    memmove(c->in.bytes.data, bytes + WF_HELLO_BYTES, c->in.bytes.length - WF_HELLO_BYTES);
    c->in.bytes.length -= WF_HELLO_BYTES;
    c->stage = WF_STAGE_PROOF;
    c->deadline_ns = now_ns + WF_STAGE_LIMIT_NS;
}

static void hear_proof(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    const uint8_t *bytes = (const uint8_t *)c->in.bytes.data;

    if (c->in.bytes.length < WF_PROOF_BYTES) return;
    if (!wf_join_read_proof(&s->options.key, bytes, &c->join)) {
        wf_connection_refuse(c, WEFT_ERR_INVALID, "the token is not this job's");
        return;
    }
    c->in.taken = WF_PROOF_BYTES;
    admit(s, c, now_ns);
}

/* ---- going ---- */

static void take_out(struct wf_server *s, int32_t rank)
{
    s->members[rank] = NULL;
    s->present--;
    if (s->present > 0) return;
    if (s->running && begin_joining(s) != WEFT_OK)
        wf_log(WF_WARNING, "the rendezvous cannot begin anew: %s", weft_last_error());
    s->join_deadline_ns = UINT64_MAX;
}

/* A rank that has not come yet never will. */
static void miss(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_text why = {0};

    wf_text_add(&why, "rank %d %s", rank, text);
    if (s->absent != NULL || wf_text_take(&why, &s->absent) != WEFT_OK) {
        wf_text_free(&why);
        return;
    }
    if (!s->running) fail_join(s, WEFT_ERR_PEER, s->absent);
}

void wf_members_gone(struct wf_server *s, int32_t rank, bool left, const char *text,
                     weft_blob farewell)
{
    struct wf_text payload = {0};

    if (rank < 0 || rank >= s->options.size) return;
    if (s->members[rank] == NULL) {
        if (!s->came[rank]) miss(s, rank, text);
        return;
    }
    s->members[rank]->rank = -1;
    s->members[rank]->stage = WF_STAGE_PARTING;
    s->members[rank]->deadline_ns = wf_now_ns() + WF_STAGE_LIMIT_NS;
    if (s->running) {
        wf_put_u32(&payload, (uint32_t)rank);
        wf_put_u32(&payload, left);
        wf_put_string(&payload, text);
        wf_put_blob(&payload, farewell.data, farewell.bytes);
        wf_meetings_gone(s->meetings, rank, text);
    }
    take_out(s, rank);
    for (int32_t other = 0; s->running && other < s->options.size; other++)
        deliver(s, WF_FRAME_GONE, other, 0, &payload);
    wf_text_free(&payload);
    if (!s->running) s->came[rank] = false;
    if (!s->running && s->present > 0) {
        char why[256];

        snprintf(why, sizeof why, "rank %d %s", rank, text);
        fail_join(s, WEFT_ERR_PEER, why);
    }
}

void wf_members_lost(struct wf_server *s, struct wf_connection *c)
{
    if (c->rank >= 0)
        wf_members_gone(s, c->rank, false,
                        "is gone: its connection closed without a goodbye, so it crashed, was "
                        "killed, or exited without weft_context_release",
                        (weft_blob){"", 0});
}

/* ---- saying ---- */

/* Ranks listed in a frame; -1 if they cannot be. */
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

static void hear_gather(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                        int32_t *ranks, uint64_t now_ns)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_contribution contribution;
    char label[160], text[1600];
    weft_status status;

    status = wf_contribution_take(&reader, ranks, s->options.size, label, sizeof label, text,
                                  sizeof text, &contribution);
    if (status == WEFT_OK)
        status = wf_meetings_post(s->meetings, now_ns, c->rank, frame->id, &contribution);
    if (status != WEFT_OK) {
        wf_log(WF_WARNING, "the rendezvous ends rank %d's connection: %s", c->rank,
               weft_last_error());
        c->broken = true;
    }
}

static void hear_abort(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                       int32_t *ranks)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_text payload = {0};
    uint64_t comm = wf_take_u64(&reader);
    int32_t count = take_ranks(s, &reader, ranks);
    char text[512];

    wf_take_string(&reader, text, sizeof text);
    if (count < 0 || reader.failed) {
        c->broken = true;
        return;
    }
    wf_put_u64(&payload, comm);
    wf_put_string(&payload, text);
    for (int32_t i = 0; i < count; i++)
        if (ranks[i] != c->rank) deliver(s, WF_FRAME_ABORT, ranks[i], 0, &payload);
    wf_text_free(&payload);
}

static void hear_ask(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                     int32_t *ranks, uint64_t now_ns)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_text payload = {0}, gone = {0};
    uint64_t comm = wf_take_u64(&reader), timeout_ns = wf_take_u64(&reader), number;
    int32_t count = take_ranks(s, &reader, ranks);

    if (count < 0 || wf_inquiry_open(&s->inquiries, now_ns + timeout_ns, c->rank, frame->id, ranks,
                                     count, &number) != WEFT_OK) {
        c->broken = true;
        return;
    }
    wf_put_u32(&gone, WF_WHERE_GONE);
    wf_put_u64(&payload, comm);
    for (int32_t i = 0; i < count; i++) {
        if (s->members[ranks[i]] == NULL)
            wf_inquiry_answer(&s->inquiries, number, ranks[i], (weft_blob){gone.data, gone.length});
        else
            deliver(s, WF_FRAME_ASK, ranks[i], number, &payload);
    }
    wf_text_free(&gone);
    wf_text_free(&payload);
}

static void hear_tell(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    weft_blob answer = wf_take_blob(&reader);

    if (reader.failed)
        c->broken = true;
    else
        wf_inquiry_answer(&s->inquiries, frame->id, c->rank, answer);
}

static void hear_frame(struct wf_server *s, struct wf_connection *c, const struct wf_frame *frame,
                       uint64_t now_ns)
{
    int32_t *ranks = wf_alloc((size_t)s->options.size * sizeof *ranks);

    if (ranks == NULL || !s->running) {
        c->broken = true;
    } else if (frame->type == WF_FRAME_GATHER) {
        hear_gather(s, c, frame, ranks, now_ns);
    } else if (frame->type == WF_FRAME_ABORT) {
        hear_abort(s, c, frame, ranks);
    } else if (frame->type == WF_FRAME_ASK) {
        hear_ask(s, c, frame, ranks, now_ns);
    } else if (frame->type == WF_FRAME_TELL) {
        hear_tell(s, c, frame);
    } else if (frame->type == WF_FRAME_LEAVE) {
        wf_members_gone(s, c->rank, true, "has left the job",
                        (weft_blob){frame->payload, frame->bytes});
    } else {
        c->broken = true;
    }
    wf_free(ranks);
}

void wf_members_hear(struct wf_server *s, struct wf_connection *c, uint64_t now_ns)
{
    struct wf_frame frame;
    weft_status status;

    if (c->stage == WF_STAGE_HELLO && c->in.bytes.length > 0) hear_hello(c, now_ns);
    if (c->stage == WF_STAGE_PROOF && !c->broken) hear_proof(s, c, now_ns);
    while (c->stage == WF_STAGE_MEMBER && !c->broken) {
        status = wf_frame_next(&c->in, &frame);
        if (status == WEFT_IN_PROGRESS) return;
        if (status != WEFT_OK) {
            c->broken = true;
            return;
        }
        hear_frame(s, c, &frame, now_ns);
        wf_frame_drop(&c->in, &frame);
    }
}

uint64_t wf_members_expire(struct wf_server *s, uint64_t now_ns)
{
    uint64_t meetings, inquiries, earliest;

    if (s->join_deadline_ns <= now_ns) time_out_join(s);
    meetings = wf_meetings_expire(s->meetings, now_ns);
    inquiries = wf_inquiries_expire(&s->inquiries, now_ns);
    earliest = meetings < inquiries ? meetings : inquiries;
    return earliest < s->join_deadline_ns ? earliest : s->join_deadline_ns;
}
