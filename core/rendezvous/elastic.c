/* elastic.c - the rendezvous server of an elastic job: round.h over its connections.
 *
 * Members keep their connections to this server until they have met at its successor, which this
 * one tells of ranks that are lost meanwhile. */
#include "elastic.h"

#include "weft/status.h"

/* True if the members have met at the successor. */
static bool has_met(struct wf_server *s)
{
    struct wf_server *next = atomic_load(&s->successor);

    return next != NULL && next->running;
}

/* ---- messages ---- */

static void send_message(void *user, int32_t to, const struct wf_round_message *message)
{
    struct wf_server *s = user;
    struct wf_elastic *e = s->elastic;
    struct wf_text payload = {0};

    if (message->kind == WF_ROUND_GO && e->opened_round != message->round)
        s->open_successor(s, message);
    if (to >= s->options.size || s->members[to] == NULL) return;
    wf_put_u32(&payload, message->kind);
    wf_put_u64(&payload, message->round);
    wf_put_u64(&payload, message->members);
    wf_put_u64(&payload, message->step);
    wf_put_u64(&payload, message->kind == WF_ROUND_GO ? e->number : 0);
    wf_put_u32(&payload, (uint32_t)e->serving_rank);
    wf_connection_send(s->members[to], WF_FRAME_ROUND, 0, &payload);
    wf_connection_write(s->members[to]);
    wf_text_free(&payload);
}

/* No process can take the place of a lost one. */
static void end_waiting(struct wf_server *s)
{
    if (s->elastic->round.phase == WF_ROUND_WAITING)
        wf_round_give_up(&s->elastic->round, send_message, s);
}

static void lose(struct wf_server *s, int32_t rank)
{
    if (wf_is_member(s->elastic->round.lost, rank)) return;
    wf_round_lose(&s->elastic->round, rank, send_message, s);
    end_waiting(s);
}

void wf_elastic_free(struct wf_server *s)
{
    if (s->elastic == NULL) return;
    wf_free(s->elastic->heard_ns);
    wf_free(s->elastic->questions);
    wf_free(s->elastic->now);
    wf_free(s->elastic);
    s->elastic = NULL;
}

static bool begin(struct wf_server *s, const struct wf_elastic_terms *terms)
{
    uint64_t generation = s->options.generation > 0 ? s->options.generation : 1;
    struct wf_elastic *e = s->elastic;

    if (e == NULL) {
        e = wf_calloc(1, sizeof *e);
        if (e == NULL) return false;
        e->heard_ns = wf_calloc((size_t)s->options.size, sizeof *e->heard_ns);
        e->questions = wf_calloc((size_t)s->options.size, sizeof *e->questions);
        e->now = wf_calloc((size_t)s->options.size, sizeof *e->now);
        s->elastic = e;
        if (e->heard_ns == NULL || e->questions == NULL || e->now == NULL) {
            wf_elastic_free(s);
            return false;
        }
    }
    e->terms = *terms;
    e->is_over = e->gave_way = false;
    e->apart = 0;
    e->waited_round = e->opened_round = 0;
    e->checked_ns = wf_now_ns();
    wf_round_open(&e->round, generation, s->options.size, terms->ranks_min);
    for (int32_t rank = 0; rank < s->options.size; rank++) {
        bool may_come = s->options.standby && !s->came[rank];

        e->heard_ns[rank] = e->checked_ns;
        e->questions[rank] = 0;
        if (s->members[rank] == NULL && !may_come) lose(s, rank);
    }
    return true;
}

/* ---- signs of life ---- */

/* RANK may have moved to another server while this one did not hear it.  Its beats of before may
 * still arrive, but it answers no beat any more. */
static void question(struct wf_server *s, int32_t rank)
{
    struct wf_elastic *e = s->elastic;

    if (s->members[rank] == NULL) return;
    e->questions[rank] = ++e->last_question;
    wf_connection_send(s->members[rank], WF_FRAME_BEAT, e->last_question, NULL);
    wf_connection_write(s->members[rank]);
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

    for (int32_t rank = 0; rank < s->options.size && has_slept; rank++) {
        e->heard_ns[rank] = now_ns;
        question(s, rank);
    }
    e->checked_ns = now_ns;
}

bool wf_elastic_take_terms(struct wf_server *s, struct wf_connection *c,
                           const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);
    struct wf_elastic_terms terms = {.ranks_min = (int32_t)wf_take_u32(&reader)};

    terms.silent_ns = wf_take_u64(&reader);
    terms.answer_ns = wf_take_u64(&reader);
    if (reader.failed || terms.ranks_min < 1 || s->options.size > WF_ROUND_MOST) return false;
    if (s->elastic == NULL || s->elastic->is_over) {
        if (!begin(s, &terms)) return false;
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

    for (int32_t rank = 0; rank < s->options.size; rank++) {
        if (e->questions[rank] != 0) silence.doubtful |= UINT64_C(1) << rank;
        if (s->members[rank] == NULL) continue;
        silence.present |= UINT64_C(1) << rank;
        if (!wf_address_same_host(s->members[rank]->fd)) silence.far |= UINT64_C(1) << rank;
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
         message.kind != WF_ROUND_CONFIRM && message.kind != WF_ROUND_MOVED))
        return false;
    heard(s, c->rank, wf_now_ns());
    if (has_met(s)) return true; /* the frame of a rank that has not left yet */
    if (message.kind == WF_ROUND_MOVED) give_way(s);
    if (e->gave_way) send_away(s, c->rank);
    if (e->gave_way) return true;
    learn(s, c, lost);
    if (message.kind == WF_ROUND_ANSWER && message.round == e->round.round &&
        e->waited_round != message.round) {
        e->waited_round = message.round;
        e->waited_ns = wf_now_ns();
    }
    wf_round_take(&e->round, c->rank, &message, send_message, s);
    end_waiting(s);
    return true;
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

static void expel(struct wf_server *s, int32_t rank, const char *why, uint64_t limit_ns)
{
    struct wf_round_message message = {.kind = WF_ROUND_EXPEL, .round = s->elastic->round.round};
    struct wf_text text = {0};

    send_message(s, rank, &message);
    wf_text_add(&text, "was expelled: %s ", why);
    wf_text_time(&text, limit_ns);
    wf_members_expel(s, s->members[rank], text.failed ? "was expelled" : text.data);
    wf_text_free(&text);
}

static void expel_silent(struct wf_server *s, uint64_t now_ns)
{
    struct wf_round_silence silence = listen_for(s, now_ns);
    uint64_t silent = wf_round_silent(&silence);

    for (int32_t rank = 0; rank < s->options.size && silent != 0; rank++)
        if (wf_is_member(silent, rank) && s->members[rank] != NULL)
            expel(s, rank, "it is stopped or cannot be reached, and has been silent for",
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

    for (int32_t rank = 0; rank < s->options.size; rank++)
        if (wf_is_member(round->answered, rank)) send_message(s, rank, &message);
    s->elastic->waited_ns = now_ns;
}

/* Ranks wait for others that do not ask for the next generation. */
static void expel_late(struct wf_server *s)
{
    const struct wf_round_server *round = &s->elastic->round;
    uint64_t late = late_ranks(round), asked = round->round;

    for (int32_t rank = 0; rank < s->options.size; rank++)
        if (wf_is_member(late, rank) && s->members[rank] != NULL && round->round == asked)
            expel(s, rank, "the others waited for it to call weft_context_next for",
                  s->elastic->terms.answer_ns);
}

uint64_t wf_elastic_expire(struct wf_server *s, uint64_t now_ns)
{
    struct wf_elastic *e = s->elastic;
    uint64_t next_ns = UINT64_MAX, late_ns;

    if (e->is_over || has_met(s)) return next_ns;
    if (e->terms.silent_ns > 0) {
        forgive(s, now_ns);
        expel_silent(s, now_ns);
        next_ns = now_ns + e->terms.silent_ns / 8;
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
