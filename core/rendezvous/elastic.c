/* elastic.c - the rendezvous server of an elastic job: round.h over its connections.
 *
 * The next generation meets at a server of its own, which this one opens in the same process when
 * its members have confirmed.  Until they have met there, they keep their connections to this one,
 * which tells the other of ranks that are lost meanwhile. */
#include "round.h"
#include "server.h"

#include "weft/status.h"

#include <unistd.h>

struct wf_elastic {
    struct wf_round_server round;
    struct wf_elastic_terms terms;
    uint64_t *heard_ns;               /* by rank */
    uint64_t checked_ns;              /* when silence was last looked for */
    uint64_t waited_round, waited_ns; /* since when ranks wait for others in that round */
    uint64_t opened_round, number;    /* what the successor was opened for, and its address */
    int32_t serving_rank;             /* of the successor */
    int32_t *now;                     /* by rank: its number in the successor, or -1 */
    bool is_over;                     /* all members have left */
};

static int32_t number_within(uint64_t members, int32_t rank)
{
    return __builtin_popcountll(members & ((UINT64_C(1) << rank) - 1));
}

static bool is_bit_of(uint64_t members, int32_t rank)
{
    return rank >= 0 && (members >> rank & 1) != 0;
}

/* ---- the successor ---- */

struct wf_server *wf_server_successor(struct wf_server *s)
{
    return atomic_load(&s->successor);
}

struct wf_server *wf_server_take_successor(struct wf_server *s)
{
    return atomic_exchange(&s->successor, NULL);
}

struct wf_job_key wf_next_key(const struct wf_job_key *key, uint64_t generation)
{
    struct wf_job_key derived;
    uint8_t number[8];
    weft_blob pieces[] = {{"generation ", 11}, {number, sizeof number}};

    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(generation >> (8 * i));
    wf_hmac_sha256_pieces(key->bytes, sizeof key->bytes, pieces, WF_COUNT(pieces), derived.bytes);
    return derived;
}

/* An address beside that of a member in another process. */
static bool find_address(const struct wf_server *s, uint64_t members, struct wf_address *out)
{
    for (int32_t rank = 0; rank < s->options.size; rank++) {
        const struct wf_connection *c = s->members[rank];

        if (c == NULL || !is_bit_of(members, rank) || c->join.pid == (uint64_t)getpid()) continue;
        if (wf_address_beside(c->fd, out)) return true;
    }
    return false;
}

static void list_numbers(struct wf_server *s, uint64_t members)
{
    for (int32_t rank = 0; rank < s->options.size; rank++)
        s->elastic->now[rank] = is_bit_of(members, rank) ? number_within(members, rank) : -1;
}

static weft_status start_successor(struct wf_server *s, const struct wf_round_message *go)
{
    struct wf_elastic *e = s->elastic;
    struct wf_server_options options = {.size = __builtin_popcountll(go->members),
                                        .generation = go->round,
                                        .serving_rank = e->serving_rank,
                                        .join_timeout_ns = s->options.join_timeout_ns,
                                        .key = wf_next_key(&s->options.key, go->round)};
    struct wf_server *next = NULL, *old;
    struct wf_address address;
    weft_status status;

    if (!find_address(s, go->members, &address))
        return wf_fail(WEFT_ERR_SYSTEM, "no address for it is known");
    WF_TRY(wf_server_create(&options, &address, &next));
    if (s->options.serving_rank < 0) next->origin = s->origin != NULL ? s->origin : s;
    status = wf_server_start(next);
    if (status != WEFT_OK) {
        wf_server_release(&next);
        return status;
    }
    e->number = wf_address_number(&address);
    old = atomic_exchange(&s->successor, next);
    wf_server_release(&old);
    return WEFT_OK;
}

/* Open the successor for the members of GO. */
static void open_successor(struct wf_server *s, const struct wf_round_message *go)
{
    struct wf_elastic *e = s->elastic;
    int32_t serving = s->options.serving_rank;

    e->opened_round = go->round;
    e->number = 0;
    e->serving_rank = is_bit_of(go->members, serving) ? number_within(go->members, serving) : -1;
    list_numbers(s, go->members);
    if (__builtin_popcountll(go->members) > 1 && start_successor(s, go) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "the rendezvous of generation %llu cannot be opened: %s",
               (unsigned long long)go->round, weft_last_error());
}

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
        open_successor(s, message);
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
    if (is_bit_of(s->elastic->round.lost, rank)) return;
    wf_round_lose(&s->elastic->round, rank, send_message, s);
    end_waiting(s);
}

static bool begin(struct wf_server *s, const struct wf_elastic_terms *terms)
{
    uint64_t generation = s->options.generation > 0 ? s->options.generation : 1;
    struct wf_elastic *e = s->elastic;

    if (e == NULL) {
        e = wf_calloc(1, sizeof *e);
        if (e == NULL) return false;
        e->heard_ns = wf_calloc((size_t)s->options.size, sizeof *e->heard_ns);
        e->now = wf_calloc((size_t)s->options.size, sizeof *e->now);
        s->elastic = e;
        if (e->heard_ns == NULL || e->now == NULL) {
            wf_elastic_release(s);
            return false;
        }
    }
    e->terms = *terms;
    e->is_over = false;
    e->waited_round = e->opened_round = 0;
    wf_round_open(&e->round, generation, s->options.size, terms->ranks_min);
    for (int32_t rank = 0; rank < s->options.size; rank++) {
        bool may_come = s->options.standby && !s->came[rank];

        e->heard_ns[rank] = wf_now_ns();
        if (s->members[rank] == NULL && !may_come) lose(s, rank);
    }
    return true;
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
    wf_elastic_heard(s, c->rank, wf_now_ns());
    return true;
}

/* C's rank knows of lost ranks, which may never have come to this server. */
static void learn(struct wf_server *s, const struct wf_connection *c, uint64_t lost)
{
    for (int32_t rank = 0; rank < s->options.size; rank++)
        if (is_bit_of(lost, rank) && s->members[rank] == NULL && rank != c->rank) lose(s, rank);
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
         message.kind != WF_ROUND_CONFIRM))
        return false;
    wf_elastic_heard(s, c->rank, wf_now_ns());
    if (has_met(s)) return true; /* the frame of a rank that has not left yet */
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

void wf_elastic_lost(struct wf_server *s, int32_t rank, const char *text)
{
    struct wf_server *next = atomic_load(&s->successor);
    struct wf_elastic *e = s->elastic;

    if (e == NULL) return;
    if (!has_met(s)) {
        if (next != NULL && e->now[rank] >= 0) wf_server_report_gone(next, e->now[rank], text);
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

void wf_elastic_heard(struct wf_server *s, int32_t rank, uint64_t now_ns)
{
    if (s->elastic != NULL) s->elastic->heard_ns[rank] = now_ns;
}

static bool is_silent(const struct wf_server *s, int32_t rank, uint64_t now_ns)
{
    const struct wf_elastic *e = s->elastic;

    return s->members[rank] != NULL && now_ns > e->heard_ns[rank] + e->terms.silent_ns;
}

/* If this process did not run for a while, nothing is known about the others. */
static void forgive(struct wf_server *s, uint64_t now_ns)
{
    struct wf_elastic *e = s->elastic;
    bool has_slept = now_ns - e->checked_ns > e->terms.silent_ns / 2;

    for (int32_t rank = 0; rank < s->options.size && has_slept; rank++)
        e->heard_ns[rank] = now_ns;
    e->checked_ns = now_ns;
}

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

/* A rank that serves may be the one that is cut off: it expels at most half of the ranks. */
static void expel_silent(struct wf_server *s, uint64_t now_ns)
{
    int32_t silent = 0;

    for (int32_t rank = 0; rank < s->options.size; rank++)
        silent += is_silent(s, rank, now_ns);
    if (s->options.serving_rank >= 0 && 2 * silent > s->present) return;
    for (int32_t rank = 0; rank < s->options.size && silent > 0; rank++)
        if (is_silent(s, rank, now_ns))
            expel(s, rank, "it is stopped or cannot be reached, and has been silent for",
                  s->elastic->terms.silent_ns);
}

/* Ranks wait for others that do not ask for the next generation. */
static void expel_late(struct wf_server *s)
{
    const struct wf_round_server *round = &s->elastic->round;
    uint64_t late = round->members & ~round->lost & ~round->answered, asked = round->round;

    for (int32_t rank = 0; rank < s->options.size; rank++)
        if (is_bit_of(late, rank) && s->members[rank] != NULL && round->round == asked)
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
    if (now_ns >= late_ns) expel_late(s);
    return late_ns > now_ns && late_ns < next_ns ? late_ns : next_ns;
}

/* ---- the end ---- */

void wf_elastic_release(struct wf_server *s)
{
    struct wf_server *next = wf_server_take_successor(s);

    wf_server_release(&next);
    if (s->elastic == NULL) return;
    wf_free(s->elastic->heard_ns);
    wf_free(s->elastic->now);
    wf_free(s->elastic);
    s->elastic = NULL;
}

void wf_elastic_reap(struct wf_server *s)
{
    struct wf_server *next = atomic_load(&s->successor), *after;

    while (next != NULL && atomic_load(&next->has_moved)) {
        after = wf_server_take_successor(next);
        for (int32_t rank = 0; rank < s->options.size; rank++) {
            int32_t now = s->elastic->now[rank];

            s->elastic->now[rank] = now >= 0 ? next->elastic->now[now] : -1;
        }
        atomic_store(&s->successor, after);
        wf_server_release(&next);
        next = after;
    }
}
