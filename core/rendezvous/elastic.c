/* elastic.c - the rendezvous server of an elastic job: round.h over its connections.
 *
 * Members keep their connections to this server until they have met at its successor, which this
 * one tells of ranks that are lost meanwhile. */
#include "elastic.h"

#include "launch.h"

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

/* True if the members have met at the successor. */
static bool has_met(struct wf_server *s)
{
    struct wf_server *next = atomic_load(&s->successor);

    return next != NULL && next->running;
}

/* The connection of process I, a rank or a newcomer; NULL: it is not here. */
static struct wf_connection *connection_of(const struct wf_server *s, int32_t i)
{
    return i < s->options.size ? s->members[i] : s->elastic->newcomers[i];
}

/* ---- messages ---- */

static void send_message(void *user, int32_t to, const struct wf_round_message *message)
{
    struct wf_server *s = user;
    struct wf_elastic *e = s->elastic;
    struct wf_connection *c = connection_of(s, to);
    struct wf_text payload = {0};

    if (message->kind == WF_ROUND_GO && e->opened_round != message->round)
        s->open_successor(s, message);
    if (c == NULL) return;
    wf_put_u32(&payload, message->kind);
    wf_put_u64(&payload, message->round);
    wf_put_u64(&payload, message->members);
    wf_put_u64(&payload, message->step);
    wf_put_u64(&payload, message->kind == WF_ROUND_GO ? e->number : 0);
    wf_put_u32(&payload, (uint32_t)e->serving_rank);
    wf_put_u32(&payload, (uint32_t)s->options.size);
    wf_put_u32(&payload, (uint32_t)to);
    wf_connection_send(c, WF_FRAME_ROUND, 0, &payload);
    wf_connection_write(c);
    wf_text_free(&payload);
}

/* The job waits for newcomers for as long as ranks may take to join, if any can come. */
static void see_waiting(struct wf_server *s)
{
    struct wf_elastic *e = s->elastic;

    if (e->round.phase != WF_ROUND_WAITING)
        e->wait_ns = 0;
    else if (!s->options.grows)
        wf_round_give_up(&e->round, send_message, s);
    else if (e->wait_ns == 0)
        e->wait_ns = wf_now_ns();
}

static void lose(struct wf_server *s, int32_t i)
{
    if (wf_is_member(s->elastic->round.lost, i)) return;
    wf_round_lose(&s->elastic->round, i, send_message, s);
    see_waiting(s);
}

void wf_elastic_free(struct wf_server *s)
{
    if (s->elastic == NULL) return;
    wf_text_free(&s->elastic->choices);
    wf_free(s->elastic);
    s->elastic = NULL;
}

/* ---- newcomers ---- */

/* The settings of the newcomer at C differ from the job's. */
static void refuse_choices(struct wf_connection *c)
{
    char text[1024];

    snprintf(text, sizeof text, "for a place in the job (here rank 0; this process is rank 1), %s",
             weft_last_error());
    wf_connection_refuse(c, WEFT_ERR_MISMATCH, text);
    c->is_newcomer = false;
}

static int32_t find_place(const struct wf_server *s)
{
    const struct wf_elastic *e = s->elastic;
    uint64_t taken = e->round.members | e->round.lost;

    for (int32_t i = s->options.size; i < WF_ROUND_MOST; i++)
        if (e->newcomers[i] == NULL && !wf_is_member(taken, i)) return i;
    return -1;
}

void wf_elastic_seat(struct wf_server *s, struct wf_connection *c)
{
    struct wf_elastic *e = s->elastic;
    weft_blob choices[2];

    c->moves = has_met(s);
    if (c->moves || e == NULL || c->choices.length == 0) return;
    choices[0] = (weft_blob){e->choices.data, e->choices.length};
    choices[1] = (weft_blob){c->choices.data, c->choices.length};
    if (wf_choices_compare(choices, 2) != WEFT_OK) {
        refuse_choices(c);
        return;
    }
    c->place = find_place(s);
    if (c->place < 0) {
        wf_connection_refuse(c, WEFT_ERR_UNSUPPORTED,
                             "too many processes wait for a place in this "
                             "generation of the job");
        c->is_newcomer = false;
        return;
    }
    e->newcomers[c->place] = c;
    e->heard_ns[c->place] = wf_now_ns();
    e->questions[c->place] = 0;
    wf_round_join(&e->round, c->place, send_message, s);
    see_waiting(s);
}

void wf_elastic_unseat(struct wf_server *s, struct wf_connection *c)
{
    struct wf_elastic *e = s->elastic;
    struct wf_server *next = atomic_load(&s->successor);

    if (e == NULL || c->place < 0 || e->newcomers[c->place] != c) return;
    e->newcomers[c->place] = NULL;
    if (has_met(s)) return;
    if (next != NULL && e->now[c->place] >= 0)
        wf_server_report_gone(next, e->now[c->place],
                              "is gone: it had been given a place, and its connection closed");
    lose(s, c->place);
}

/* The next generation has met without those that still wait. */
static void send_on(struct wf_server *s)
{
    for (int32_t i = s->options.size; i < WF_ROUND_MOST; i++) {
        struct wf_connection *c = s->elastic->newcomers[i];

        if (c == NULL || wf_is_member(s->elastic->round.members, i)) continue;
        s->elastic->newcomers[i] = NULL;
        c->moves = true;
    }
}

static bool begin(struct wf_server *s, const struct wf_elastic_terms *terms, weft_blob choices)
{
    uint64_t generation = s->options.generation > 0 ? s->options.generation : 1;
    struct wf_elastic *e = s->elastic;

    if (e == NULL) {
        e = wf_calloc(1, sizeof *e);
        if (e == NULL) return false;
        s->elastic = e;
    }
    e->terms = *terms;
    wf_text_free(&e->choices);
    wf_text_append(&e->choices, choices.data, (size_t)choices.bytes);
    memset(e->newcomers, 0, sizeof e->newcomers);
    e->is_over = e->gave_way = false;
    e->apart = 0;
    e->waited_round = e->opened_round = 0;
    e->checked_ns = wf_now_ns();
    e->wait_ns = 0;
    wf_round_open(&e->round, generation, s->options.size, terms->ranks_min, terms->ranks_max);
    for (int32_t rank = 0; rank < s->options.size; rank++) {
        bool may_come = s->options.standby && !s->came[rank];

        e->heard_ns[rank] = e->checked_ns;
        e->questions[rank] = 0;
        if (s->members[rank] == NULL && !may_come) lose(s, rank);
    }
    for (size_t i = 0; i < s->count; i++) {
        s->connections[i]->place = -1;
        if (s->connections[i]->is_newcomer) wf_elastic_seat(s, s->connections[i]);
    }
    return true;
}

/* ---- signs of life ---- */

/* RANK may have moved to another server while this one did not hear it.  Its beats of before may
 * still arrive, but it answers no beat any more. */
static void question(struct wf_server *s, int32_t rank)
{
    struct wf_elastic *e = s->elastic;
    struct wf_connection *c = connection_of(s, rank);

    if (c == NULL) return;
    e->questions[rank] = ++e->last_question;
    wf_connection_send(c, WF_FRAME_BEAT, e->last_question, NULL);
    wf_connection_write(c);
}

static bool has_been_silent(const struct wf_elastic *e, int32_t rank, uint64_t now_ns)
{
    uint64_t heard_ns = e->heard_ns[rank];

    return now_ns > heard_ns && now_ns - heard_ns >= e->terms.silent_ns / 2;
}

static void heard(struct wf_server *s, int32_t rank, uint64_t now_ns)
{
    if (s->elastic->terms.silent_ns > 0 && has_been_silent(s->elastic, rank, now_ns))
        question(s, rank);
    s->elastic->heard_ns[rank] = now_ns;
}

void wf_elastic_beat(struct wf_server *s, int32_t rank, uint64_t answered, uint64_t now_ns)
{
    if (s->elastic == NULL) return;
    heard(s, rank, now_ns);
    if (answered != 0 && answered == s->elastic->questions[rank]) s->elastic->questions[rank] = 0;
}

/* If this process did not run for a while, nothing is known about the others. */
static void forgive(struct wf_server *s, uint64_t now_ns)
{
    struct wf_elastic *e = s->elastic;
    bool has_slept = now_ns - e->checked_ns > e->terms.silent_ns / 2;

    for (int32_t i = 0; i < WF_ROUND_MOST && has_slept; i++) {
        e->heard_ns[i] = now_ns;
        question(s, i);
    }
    e->checked_ns = now_ns;
}

bool wf_elastic_take_terms(struct wf_server *s, struct wf_connection *c,
                           const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_elastic_terms terms = {.ranks_min = (int32_t)wf_take_u32(&reader)};
    weft_blob choices;

    terms.silent_ns = wf_take_u64(&reader);
    terms.answer_ns = wf_take_u64(&reader);
    terms.ranks_max = (int32_t)wf_take_u32(&reader);
    choices = wf_take_blob(&reader);
    if (reader.failed || terms.ranks_min < 1 || s->options.size > WF_ROUND_MOST) return false;
    if (s->elastic == NULL || s->elastic->is_over) {
        if (!begin(s, &terms, choices)) return false;
    }
    heard(s, c->rank, wf_now_ns());
    return true;
}

/* ---- cuts of the network ---- */

/* If a rank serves, another one is its standby. */
static struct wf_round_silence listen_for(const struct wf_server *s, uint64_t now_ns)
{
    const struct wf_elastic *e = s->elastic;
    struct wf_round_silence silence = {.present = e->apart,
                                       .far = e->apart,
                                       .heard_ns = e->heard_ns,
                                       .now_ns = now_ns,
                                       .limit_ns = e->terms.silent_ns,
                                       .may_be_cut = s->options.serving_rank >= 0};

    for (int32_t i = 0; i < WF_ROUND_MOST; i++) {
        const struct wf_connection *c = connection_of(s, i);

        if (e->questions[i] != 0) silence.doubtful |= UINT64_C(1) << i;
        if (c == NULL) continue;
        silence.present |= UINT64_C(1) << i;
        if (!wf_address_same_host(c->fd)) silence.far |= UINT64_C(1) << i;
    }
    return silence;
}

/* RANK's connection FD has closed.  Beyond a cut, the other server may have decided for RANK, so
 * that the end of its connection arrives when the network is whole again. */
static bool may_have_moved(struct wf_server *s, int32_t rank, int fd)
{
    struct wf_elastic *e = s->elastic;
    uint64_t now_ns = wf_now_ns();
    bool was_heard = e->questions[rank] == 0 && !has_been_silent(e, rank, now_ns);
    struct wf_round_silence silence;

    if (e->terms.silent_ns == 0 || was_heard || wf_address_same_host(fd)) return false;
    e->apart |= UINT64_C(1) << rank;
    silence = listen_for(s, now_ns);
    if (wf_round_is_cut_off(&silence)) return true;
    e->apart &= ~(UINT64_C(1) << rank);
    return false;
}

static void send_away(struct wf_server *s, int32_t rank)
{
    struct wf_round_message message = {.kind = WF_ROUND_EXPEL, .round = s->elastic->round.round};

    send_message(s, rank, &message);
}

/* The other server has decided: the ranks that only this one hears are expelled. */
static void give_way(struct wf_server *s)
{
    if (s->options.serving_rank < 0) return; /* there is no other */
    s->elastic->gave_way = true;
    s->elastic->round.phase = WF_ROUND_ENDED;
    for (int32_t rank = 0; rank < s->options.size; rank++)
        send_away(s, rank);
}

/* ---- frames ---- */

/* C's rank knows of lost ranks, which may never have come to this server. */
static void learn(struct wf_server *s, const struct wf_connection *c, uint64_t lost)
{
    for (int32_t rank = 0; rank < s->options.size; rank++)
        if (wf_is_member(lost, rank) && s->members[rank] == NULL && rank != c->rank) lose(s, rank);
}

/* A rank, or a newcomer with a place. */
static int32_t process_of(const struct wf_connection *c)
{
    return c->is_newcomer ? c->place : c->rank;
}

bool wf_elastic_take(struct wf_server *s, const struct wf_connection *c,
                     const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_round_message message = {.kind = wf_take_u32(&reader)};
    struct wf_elastic *e = s->elastic;
    uint64_t lost;

    message.round = wf_take_u64(&reader);
    lost = wf_take_u64(&reader);
    message.step = wf_take_u64(&reader);
    if (e == NULL || reader.failed ||
        (message.kind != WF_ROUND_WANT && message.kind != WF_ROUND_ANSWER &&
         message.kind != WF_ROUND_CONFIRM && message.kind != WF_ROUND_MOVED &&
         message.kind != WF_ROUND_GROW))
        return false;
    heard(s, process_of(c), wf_now_ns());
    if (has_met(s)) return true; /* the frame of a rank that has not left yet */
    if (message.kind == WF_ROUND_MOVED) give_way(s);
    if (e->gave_way) send_away(s, process_of(c));
    if (e->gave_way) return true;
    learn(s, c, lost);
    if (message.kind == WF_ROUND_ANSWER && message.round == e->round.round &&
        e->waited_round != message.round) {
        e->waited_round = message.round;
        e->waited_ns = wf_now_ns();
    }
    wf_round_take(&e->round, process_of(c), &message, send_message, s);
    see_waiting(s);
    return true;
}

bool wf_elastic_take_newcomer(struct wf_server *s, struct wf_connection *c,
                              const struct wf_frame *frame, uint64_t now_ns)
{
    if (frame->type == WF_FRAME_LOBBY && c->choices.length == 0) {
        wf_text_append(&c->choices, (const char *)frame->payload, frame->bytes);
        wf_elastic_seat(s, c);
        return !c->choices.failed && c->choices.length > 0;
    }
    if (frame->type == WF_FRAME_BEAT) {
        if (c->place >= 0) wf_elastic_beat(s, c->place, frame->id, now_ns);
        return true;
    }
    return frame->type == WF_FRAME_ROUND && c->place >= 0 && wf_elastic_take(s, c, frame);
}

/* ---- ranks that are gone ---- */

void wf_elastic_lost(struct wf_server *s, int32_t rank, int fd, const char *text)
{
    struct wf_server *next = atomic_load(&s->successor);
    struct wf_elastic *e = s->elastic;

    if (e == NULL) return;
    if (!has_met(s)) {
        if (next != NULL && e->now[rank] >= 0) wf_server_report_gone(next, e->now[rank], text);
        if (may_have_moved(s, rank, fd)) give_way(s);
        lose(s, rank);
    } else {
        send_on(s);
    }
    e->is_over = s->present == 0;
    if (!e->is_over || !has_met(s)) return;
    atomic_store(&s->has_moved, true);
    if (s->origin != NULL) wf_server_reap(s->origin);
}

void wf_elastic_ended(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_server *next = atomic_load(&s->successor);

    if (s->elastic != NULL && next != NULL && s->elastic->now[rank] >= 0)
        wf_server_report_gone(next, s->elastic->now[rank], text);
}

/* ---- silence ---- */

/* Process I. */
static void expel(struct wf_server *s, int32_t i, const char *why, uint64_t limit_ns)
{
    struct wf_round_message message = {.kind = WF_ROUND_EXPEL, .round = s->elastic->round.round};
    struct wf_connection *c = connection_of(s, i);
    struct wf_text text = {0};

    send_message(s, i, &message);
    if (c->is_newcomer) {
        wf_log(WF_LOG_NOTICE, "process %llu is given no place in the job: it does not answer",
               (unsigned long long)c->join.pid);
        c->broken = true;
        return;
    }
    wf_text_add(&text, "was expelled: %s ", why);
    wf_text_time(&text, limit_ns);
    wf_members_expel(s, c, text.failed ? "was expelled" : text.data);
    wf_text_free(&text);
}

static void expel_silent(struct wf_server *s, uint64_t now_ns)
{
    struct wf_round_silence silence = listen_for(s, now_ns);
    uint64_t silent = wf_round_silent(&silence);

    for (int32_t i = 0; i < WF_ROUND_MOST && silent != 0; i++)
        if (wf_is_member(silent, i) && connection_of(s, i) != NULL)
            expel(s, i, "it is stopped or cannot be reached, and has been silent for",
                  s->elastic->terms.silent_ns);
}

static uint64_t late_ranks(const struct wf_round_server *round)
{
    return round->members & ~round->lost & ~round->answered;
}

/* A rank that does not ask for the next generation while others wait for it may be expelled. */
static bool may_expel_late(const struct wf_server *s, uint64_t now_ns)
{
    struct wf_round_silence silence = listen_for(s, now_ns);

    return silence.limit_ns > 0 && !wf_round_is_cut_off(&silence);
}

/* Ranks wait for others that do not ask for the next generation, and none is expelled. */
static void report_late(struct wf_server *s, uint64_t now_ns)
{
    const struct wf_round_server *round = &s->elastic->round;
    struct wf_round_message message = {
        .kind = WF_ROUND_LATE, .round = round->round, .members = late_ranks(round)};

    for (int32_t i = 0; i < WF_ROUND_MOST; i++)
        if (wf_is_member(round->answered, i)) send_message(s, i, &message);
    s->elastic->waited_ns = now_ns;
}

/* Ranks wait for others that do not ask for the next generation. */
static void expel_late(struct wf_server *s)
{
    const struct wf_round_server *round = &s->elastic->round;
    uint64_t late = late_ranks(round), asked = round->round;

    for (int32_t i = 0; i < WF_ROUND_MOST; i++)
        if (wf_is_member(late, i) && connection_of(s, i) != NULL && round->round == asked)
            expel(s, i, "the others waited for it to call weft_context_next for",
                  s->elastic->terms.answer_ns);
}

uint64_t wf_elastic_expire(struct wf_server *s, uint64_t now_ns)
{
    struct wf_elastic *e = s->elastic;
    uint64_t next_ns = UINT64_MAX, late_ns;

    if (e->is_over || has_met(s)) return next_ns;
    if (e->wait_ns != 0) {
        next_ns = e->wait_ns + (uint64_t)s->options.join_timeout_ns;
        if (now_ns >= next_ns) wf_round_give_up(&e->round, send_message, s);
        see_waiting(s);
    }
    if (e->terms.silent_ns > 0) {
        forgive(s, now_ns);
        expel_silent(s, now_ns);
        if (now_ns + e->terms.silent_ns / 8 < next_ns) next_ns = now_ns + e->terms.silent_ns / 8;
    }
    if (e->terms.answer_ns == UINT64_MAX || e->round.phase != WF_ROUND_ASKED ||
        e->waited_round != e->round.round)
        return next_ns;
    late_ns = e->waited_ns + e->terms.answer_ns;
    if (now_ns >= late_ns && may_expel_late(s, now_ns)) {
        expel_late(s);
    } else if (now_ns >= late_ns) {
        report_late(s, now_ns);
        late_ns = now_ns + e->terms.answer_ns;
    }
    return late_ns > now_ns && late_ns < next_ns ? late_ns : next_ns;
}
