/* next.c - a rank's end of the rendezvous: the next generation of an elastic job. */
#include "client.h"

#include "weft/status.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static bool is_elastic(const struct wf_client *client)
{
    return client->options.terms.ranks_min > 0;
}

static uint64_t generation_of(const struct wf_client *client)
{
    return client->options.generation > 0 ? client->options.generation : 1;
}

/* ---- beats ---- */

void wf_client_send_terms(struct wf_client *client, int link)
{
    const struct wf_elastic_terms *terms = &client->options.terms;
    struct wf_text payload = {0};

    if (!is_elastic(client)) return;
    if (link == WF_LINK_SERVER) wf_round_enter(&client->member, generation_of(client), 0);
    wf_put_u32(&payload, (uint32_t)terms->ranks_min);
    wf_put_u64(&payload, terms->silent_ns);
    wf_put_u64(&payload, terms->answer_ns);
    wf_connection_send(client->links[link].connection, WF_FRAME_ELASTIC, 0, &payload);
    wf_text_free(&payload);
}

int wf_client_beat(struct wf_client *client)
{
    uint64_t now_ns, pause_ns = client->options.terms.silent_ns / 8;

    if (!is_elastic(client) || pause_ns == 0) return -1;
    now_ns = wf_now_ns();
    if (now_ns >= client->beat_ns) {
        client->beat_ns = now_ns + pause_ns;
        pthread_mutex_lock(&client->lock);
        for (int link = 0; link < WF_LINKS; link++)
            if (!client->links[link].over && wf_link_is_open(&client->links[link]))
                wf_connection_send(client->links[link].connection, WF_FRAME_BEAT, 0, NULL);
        pthread_mutex_unlock(&client->lock);
    }
    return (int)((client->beat_ns - now_ns) / 1000000) + 1;
}

/* ---- messages ---- */

/* The lock is held. */
static uint64_t lost_ranks(const struct wf_client *client)
{
    uint64_t lost = 0;

    for (int32_t rank = 0; rank < client->options.size; rank++)
        if (client->departed[rank] != NULL) lost |= UINT64_C(1) << rank;
    return lost;
}

/* The lock is held. */
static void send_message(void *user, int32_t to, const struct wf_round_message *message)
{
    struct wf_client *client = user;
    struct wf_link *link = &client->links[wf_client_asks(client)];
    struct wf_text payload = {0};

    (void)to;
    wf_put_u32(&payload, message->kind);
    wf_put_u64(&payload, message->round);
    wf_put_u64(&payload, lost_ranks(client));
    wf_put_u64(&payload, message->step);
    if (!link->over) {
        wf_connection_send(link->connection, WF_FRAME_ROUND, 0, &payload);
        wf_connection_write(link->connection);
        wf_client_wake(client);
    }
    wf_text_free(&payload);
}

static struct wf_round_message read_message(struct wf_reader *reader)
{
    struct wf_round_message message = {.kind = wf_take_u32(reader)};

    message.round = wf_take_u64(reader);
    message.members = wf_take_u64(reader);
    message.step = wf_take_u64(reader);
    return message;
}

static void hear(struct wf_client *client, const struct wf_round_message *message, uint64_t number,
                 int32_t meets_at)
{
    pthread_mutex_lock(&client->lock);
    wf_round_hear(&client->member, message, send_message, client);
    if (message->kind == WF_ROUND_ASK) client->was_asked = true;
    if (message->kind == WF_ROUND_GO && client->member.generation == message->round) {
        client->was_told = true;
        client->number = number;
        client->meets_at = meets_at;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

void wf_client_handle_round(struct wf_client *client, int link, struct wf_reader *reader)
{
    struct wf_round_message message = read_message(reader);
    uint64_t number = wf_take_u64(reader);
    int32_t meets_at = (int32_t)wf_take_u32(reader);
    char text[96];
    int asked;

    if (reader->failed || !is_elastic(client)) return;
    pthread_mutex_lock(&client->lock);
    asked = wf_client_asks(client);
    pthread_mutex_unlock(&client->lock);
    if (link != asked) return;
    hear(client, &message, number, meets_at);
    if (message.kind == WF_ROUND_ASK) client->options.events.asked(client->options.events.self);
    if (message.kind != WF_ROUND_EXPEL) return;
    snprintf(text, sizeof text, "was expelled from the job in generation %llu",
             (unsigned long long)generation_of(client));
    wf_client_note_gone(client, client->options.rank, false, text, (weft_blob){"", 0});
}

void wf_client_follow_standby(struct wf_client *client)
{
    pthread_mutex_lock(&client->lock);
    if (is_elastic(client) && wf_client_asks(client) == WF_LINK_STANDBY &&
        client->member.phase < WF_MEMBER_EXPELLED) {
        uint64_t step = client->member.step;

        wf_round_enter(&client->member, generation_of(client), 0);
        client->was_told = false;
        if (client->waits) wf_round_call(&client->member, step, send_message, client);
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* ---- the call ---- */

bool wf_client_wants_next(struct wf_client *client)
{
    bool wants;

    pthread_mutex_lock(&client->lock);
    wants = client->was_asked || client->first_lost != NULL;
    pthread_mutex_unlock(&client->lock);
    return wants;
}

static bool has_ended(const struct wf_client *client)
{
    return client->member.phase >= WF_MEMBER_EXPELLED || client->links[wf_client_asks(client)].over;
}

static weft_status describe_end(const struct wf_client *client)
{
    const struct wf_departure *first = client->first_lost;

    if (client->member.phase == WF_MEMBER_EXPELLED)
        return wf_fail(WEFT_ERR_PEER,
                       "rank %d was expelled in generation %llu of the job: the others went on "
                       "without it",
                       client->options.rank, (unsigned long long)generation_of(client));
    if (client->member.phase == WF_MEMBER_ENDED)
        return wf_fail(WEFT_ERR_PEER, "the job ends: fewer than %d ranks are left%s%s",
                       client->options.terms.ranks_min, first != NULL ? "; first, a rank " : "",
                       first != NULL ? first->text : "");
    return wf_fail(WEFT_ERR_PEER, "%s", client->links[wf_client_asks(client)].why);
}

/* Wait until the members are told to meet.  The lock is held. */
static weft_status wait_for_go(struct wf_client *client)
{
    uint64_t limit_ns = client->options.terms.answer_ns;
    uint64_t until_ns = limit_ns < (uint64_t)INT64_MAX ? wf_now_ns() + limit_ns : UINT64_MAX;

    while (!client->was_told && !has_ended(client)) {
        struct timespec until = {(time_t)(until_ns / WF_SECOND_NS),
                                 (long)(until_ns % WF_SECOND_NS)};
        int code = until_ns == UINT64_MAX
                       ? pthread_cond_wait(&client->changed, &client->lock)
                       : pthread_cond_timedwait(&client->changed, &client->lock, &until);
        bool answers;
        int link;

        if (code != ETIMEDOUT) continue;
        link = wf_client_asks(client);
        pthread_mutex_unlock(&client->lock);
        answers = wf_client_answers(client, link);
        pthread_mutex_lock(&client->lock);
        if (!answers && !client->was_told && !has_ended(client))
            return wf_fail(WEFT_ERR_TIMEOUT, "the rendezvous does not answer");
        until_ns = wf_now_ns() + limit_ns;
    }
    return client->was_told ? WEFT_OK : describe_end(client);
}

static int32_t number_within(uint64_t members, int32_t rank)
{
    return __builtin_popcountll(members & ((UINT64_C(1) << rank) - 1));
}

/* The lock is held. */
static weft_status read_decision(struct wf_client *client, struct wf_decision *out)
{
    int asks = wf_client_asks(client);
    const struct wf_job_key *key =
        asks == WF_LINK_SERVER ? &client->options.key : &client->standby_key;
    struct wf_server *local = asks == WF_LINK_SERVER ? client->options.server : client->standby;

    *out = (struct wf_decision){.generation = client->member.generation,
                                .step = client->member.step,
                                .members = client->member.members,
                                .rank = number_within(client->member.members, client->options.rank),
                                .size = __builtin_popcountll(client->member.members),
                                .serving_rank = client->meets_at,
                                .key = wf_next_key(key, client->member.generation)};
    if (out->size == 1) return WEFT_OK;
    if (local != NULL) {
        out->server = wf_server_successor(local);
        if (out->server != NULL) return WEFT_OK;
    } else if (client->number != 0 && wf_address_of_peer(client->links[asks].connection->fd,
                                                         client->number, &out->address)) {
        out->is_address = true;
        return WEFT_OK;
    }
    return wf_fail(WEFT_ERR_SYSTEM, "the rendezvous of generation %llu cannot be reached",
                   (unsigned long long)out->generation);
}

weft_status wf_client_next(struct wf_client *client, uint64_t step, struct wf_decision *out)
{
    weft_status status;

    pthread_mutex_lock(&client->lock);
    client->waits = true;
    client->was_told = false;
    wf_round_call(&client->member, step, send_message, client);
    status = wait_for_go(client);
    client->waits = false;
    if (status == WEFT_OK) status = read_decision(client, out);
    pthread_mutex_unlock(&client->lock);
    return status;
}

/* ---- the end of the events ---- */

static void ignore_gone(void *self, const struct wf_departure *departure)
{
    (void)self;
    (void)departure;
}

static void ignore_abort(void *self, uint64_t comm, weft_status status, const char *text,
                         uint64_t complete)
{
    (void)self;
    (void)comm;
    (void)status;
    (void)text;
    (void)complete;
}

static void ignore_where(void *self, uint64_t comm, int32_t asker, struct wf_text *out)
{
    (void)self;
    (void)comm;
    (void)asker;
    wf_put_u32(out, WF_WHERE_UNKNOWN);
}

static void ignore_asked(void *self)
{
    (void)self;
}

void wf_client_see_quiet(struct wf_client *client, bool is_over)
{
    static const struct wf_client_events none = {
        .gone = ignore_gone, .abort = ignore_abort, .where = ignore_where, .asked = ignore_asked};

    if (!is_over && !atomic_load_explicit(&client->wants_quiet, memory_order_relaxed)) return;
    pthread_mutex_lock(&client->lock);
    client->options.events = none;
    client->is_quiet = true;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

void wf_client_quiet(struct wf_client *client)
{
    atomic_store(&client->wants_quiet, true);
    wf_client_wake(client);
    pthread_mutex_lock(&client->lock);
    while (!client->is_quiet)
        pthread_cond_wait(&client->changed, &client->lock);
    pthread_mutex_unlock(&client->lock);
}

/* ---- the members have met ---- */

struct wf_server *wf_client_take_server(struct wf_client *client)
{
    struct wf_server *local;
    int asks;

    pthread_mutex_lock(&client->lock);
    asks = wf_client_asks(client);
    local = asks == WF_LINK_SERVER ? client->options.server : client->standby;
    pthread_mutex_unlock(&client->lock);
    return local != NULL ? wf_server_take_successor(local) : NULL;
}
