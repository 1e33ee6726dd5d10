/* member.c - a rank's end of the rendezvous: a member of round.h over the client's links. */
#include "client.h"

#include <stdio.h>

/* ---- beats ---- */

void wf_client_send_terms(struct wf_client *client, int link)
{
    const struct wf_elastic_terms *terms = &client->options.terms;
    struct wf_text payload = {0};

    if (!wf_client_is_elastic(client)) return;
    if (link == WF_LINK_SERVER) wf_round_enter(&client->member, wf_client_generation(client), 0);
    wf_put_u32(&payload, (uint32_t)terms->ranks_min);
    wf_put_u64(&payload, terms->silent_ns);
    wf_put_u64(&payload, terms->answer_ns);
    wf_put_u32(&payload, (uint32_t)terms->ranks_max);
    wf_put_blob(&payload, client->options.choices.data, client->options.choices.bytes);
    wf_connection_send(client->links[link].connection, WF_FRAME_ELASTIC, 0, &payload);
    wf_text_free(&payload);
}

int wf_client_beat(struct wf_client *client)
{
    uint64_t now_ns, pause_ns = client->options.terms.silent_ns / 8;

    if (!wf_client_is_elastic(client) || pause_ns == 0) return -1;
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

void wf_round_message_put(struct wf_text *out, const struct wf_round_message *message,
                          uint64_t lost)
{
    wf_put_u32(out, message->kind);
    wf_put_u64(out, message->round);
    wf_put_u64(out, lost);
    wf_put_u64(out, message->step);
}

/* The lock is held. */
static void send_by(struct wf_client *client, int number, const struct wf_round_message *message)
{
    struct wf_link *link = &client->links[number];
    struct wf_text payload = {0};

    wf_round_message_put(&payload, message, lost_ranks(client));
    if (!link->over) {
        wf_connection_send(link->connection, WF_FRAME_ROUND, 0, &payload);
        wf_connection_write(link->connection);
        wf_client_wake(client);
    }
    wf_text_free(&payload);
}

void wf_client_send_round(void *user, int32_t to, const struct wf_round_message *message)
{
    struct wf_client *client = user;

    (void)to;
    send_by(client, wf_client_asks(client), message);
}

/* If the network is cut, the message arrives when it is whole again, mostly before the end of the
 * connection.  The lock is held. */
static void send_moved(struct wf_client *client, int number)
{
    struct wf_round_message moved = {.kind = WF_ROUND_MOVED, .round = wf_client_generation(client)};

    send_by(client, number, &moved);
}

void wf_client_leave_server(struct wf_client *client)
{
    pthread_mutex_lock(&client->lock);
    send_moved(client, WF_LINK_SERVER);
    pthread_mutex_unlock(&client->lock);
}

void wf_client_move_on(struct wf_client *client)
{
    pthread_mutex_lock(&client->lock);
    for (int link = 0; link < WF_LINKS; link++)
        send_moved(client, link);
    pthread_mutex_unlock(&client->lock);
}

struct wf_round_message wf_round_message_take(struct wf_reader *reader)
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
    bool waited;

    pthread_mutex_lock(&client->lock);
    waited = client->member.called;
    wf_round_hear(&client->member, message, wf_client_send_round, client);
    if (message->kind == WF_ROUND_STAY && waited && !client->member.called) client->stays = true;
    if (message->kind == WF_ROUND_ASK) client->was_asked = true;
    if (message->kind == WF_ROUND_LATE && message->round == client->member.round)
        client->late = message->members;
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
    struct wf_round_message message = wf_round_message_take(reader);
    uint64_t number = wf_take_u64(reader);
    int32_t meets_at = (int32_t)wf_take_u32(reader);
    char text[96];
    int asked;

    if (reader->failed || !wf_client_is_elastic(client)) return;
    pthread_mutex_lock(&client->lock);
    asked = wf_client_asks(client);
    pthread_mutex_unlock(&client->lock);
    if (link != asked) return;
    hear(client, &message, number, meets_at);
    if (message.kind == WF_ROUND_ASK) client->options.events.asked(client->options.events.self);
    if (message.kind != WF_ROUND_EXPEL) return;
    snprintf(text, sizeof text, "was expelled from the job in generation %llu",
             (unsigned long long)wf_client_generation(client));
    wf_client_note_gone(client, client->options.rank, false, text, (weft_blob){"", 0});
}

void wf_client_follow_standby(struct wf_client *client)
{
    pthread_mutex_lock(&client->lock);
    if (wf_client_is_elastic(client) && wf_client_asks(client) == WF_LINK_STANDBY &&
        client->member.phase < WF_MEMBER_EXPELLED) {
        uint64_t step = client->member.step;

        wf_round_enter(&client->member, wf_client_generation(client), 0);
        client->was_told = false;
        if (client->waits) wf_round_call(&client->member, step, wf_client_send_round, client);
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
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
