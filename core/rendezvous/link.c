/* link.c - the thread of a rank's end of the rendezvous.
 *
 * It owns the connections: it sends the frames that callers queue, passes answers to them, and
 * receives reports of failures while the program does other work. */
#include "client.h"

#include "weft/status.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

/* Base of the ids of LOOK frames; no other request has such an id.  The number of the link that has
 * ended is added to it. */
#define LOOK_ID (UINT64_C(1) << 63)

/* ---- frames that arrive ---- */

/* The number of ranks of the request that FRAME answers; 0: the answer has no blobs. */
static int32_t count_asked(struct wf_client *client, int link, const struct wf_frame *frame)
{
    int32_t count = 0;

    if (client->watched != 0 && frame->id == client->watched) return client->question.count;
    pthread_mutex_lock(&client->lock);
    for (const struct wf_waiter *w = client->waiters; w != NULL; w = w->next)
        if (w->id == frame->id && w->link == link) count = w->count;
    pthread_mutex_unlock(&client->lock);
    return count;
}

static void answer(struct wf_client *client, int link, const struct wf_frame *frame)
{
    pthread_mutex_lock(&client->lock);
    for (struct wf_waiter *w = client->waiters; w != NULL; w = w->next) {
        if (w->id != frame->id || w->link != link || w->done) continue;
        wf_text_append(&w->payload, (const char *)frame->payload, frame->bytes);
        w->done = true;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* The time of arrival follows the answer, because the waiting thread wakes up later. */
static void answer_clock(struct wf_client *client, int link, const struct wf_frame *frame)
{
    uint64_t now_ns = wf_now_ns();

    pthread_mutex_lock(&client->lock);
    for (struct wf_waiter *w = client->waiters; w != NULL; w = w->next) {
        if (w->id != frame->id || w->link != link || w->done || !w->is_clock) continue;
        wf_text_append(&w->payload, (const char *)frame->payload, frame->bytes);
        wf_put_u64(&w->payload, now_ns);
        w->done = true;
    }
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* The server has answered a LOOK with ID. */
static void handle_look(struct wf_client *client, int link, uint64_t id, struct wf_reader *reader)
{
    bool is_here = wf_take_u32(reader) == 1;
    struct wf_link *other = &client->links[WF_LINKS - 1 - link];

    if (id == LOOK_ID + WF_LINKS - 1 - (uint64_t)link) {
        other->deadline_ns = 0;
        other->confirmed = is_here;
    }
    if (is_here) wf_held_deny(client, id);
}

/* The standby has lost the rank that serves. */
static void close_server(struct wf_client *client)
{
    struct wf_connection *server = client->links[WF_LINK_SERVER].connection;

    if (server == NULL || server->broken) return;
    wf_client_leave_server(client);
    server->broken = true;
}

static void handle_gone(struct wf_client *client, int link, struct wf_reader *reader)
{
    int32_t rank = (int32_t)wf_take_u32(reader);
    bool left = wf_take_u32(reader) != 0;
    int32_t missed = (int32_t)wf_take_u32(reader);
    weft_blob record;
    char text[512];

    wf_take_string(reader, text, sizeof text);
    record = wf_take_blob(reader);
    if (reader->failed || rank < 0 || rank >= client->options.size) return;
    if (link == WF_LINK_STANDBY && rank == client->options.rank) return;
    if (link == WF_LINK_STANDBY && rank == client->links[WF_LINK_SERVER].rank && !left &&
        client->options.terms.silent_ns > 0)
        close_server(client); /* it may be stopped, so that its connection stays open */
    if (link == WF_LINK_STANDBY && client->links[WF_LINK_SERVER].stage != WF_LINK_LOST &&
        wf_held_add(client, rank, left, missed, text, record))
        return;
    wf_client_note_gone(client, rank, left, text, record);
}

static void handle_abort(struct wf_client *client, struct wf_reader *reader)
{
    uint64_t comm = wf_take_u64(reader);
    weft_status status = wf_take_status(reader);
    uint64_t complete = wf_take_u64(reader);
    char text[1024];

    wf_take_string(reader, text, sizeof text);
    if (reader->failed || !wf_abort_may_be(status)) return;
    pthread_mutex_lock(&client->lock);
    if (status != WEFT_ERR_ABORTED && client->cause[0] == '\0')
        snprintf(client->cause, sizeof client->cause, "%s", text);
    pthread_mutex_unlock(&client->lock);
    client->options.events.abort(client->options.events.self, comm, status, text, complete);
    wf_client_notify(client);
}

static void handle_ask(struct wf_client *client, int link, struct wf_reader *reader, uint64_t id)
{
    struct wf_text where = {0}, payload = {0};
    uint64_t comm = wf_take_u64(reader);
    int32_t asker = (int32_t)wf_take_u32(reader);

    client->options.events.where(client->options.events.self, comm, asker, &where);
    wf_put_blob(&payload, where.data, where.length);
    pthread_mutex_lock(&client->lock);
    wf_connection_send(client->links[link].connection, WF_FRAME_TELL, id, &payload);
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&where);
    wf_text_free(&payload);
}

static void answer_beat(struct wf_client *client, int link, uint64_t id)
{
    pthread_mutex_lock(&client->lock);
    if (!client->links[link].over)
        wf_connection_send(client->links[link].connection, WF_FRAME_BEAT, id, NULL);
    pthread_mutex_unlock(&client->lock);
}

/* LINK takes no more requests; TEXT is the reason. */
static void end(struct wf_client *client, int link, const char *text)
{
    struct wf_link *l = &client->links[link];

    pthread_mutex_lock(&client->lock);
    if (!l->over) snprintf(l->why, sizeof l->why, "%s", text);
    l->over = true;
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

/* Describe why the link to RANK has ended: RANK's departure, or TEXT, and what happened before. */
static void explain_end(struct wf_client *client, int32_t rank, const char *text, char *out,
                        size_t bytes)
{
    const struct wf_departure *first, *own;

    pthread_mutex_lock(&client->lock);
    first = client->first_lost;
    own = rank >= 0 && rank < client->options.size ? client->departed[rank] : NULL;
    if (own != NULL && (first == NULL || first == own))
        snprintf(out, bytes, "rank %d %s", rank, own->text);
    else if (own != NULL)
        snprintf(out, bytes, "rank %d %s; after it, rank %d ended, which served the rendezvous",
                 first->rank, first->text, rank);
    else if (first != NULL && client->cause[0] != '\0')
        snprintf(out, bytes, "%s; before it, rank %d was lost, and this error was reported: %s",
                 text, first->rank, client->cause);
    else if (first != NULL)
        snprintf(out, bytes, "%s; before it, rank %d was lost", text, first->rank);
    else if (client->cause[0] != '\0')
        snprintf(out, bytes, "%s; before it: %s", text, client->cause);
    else
        snprintf(out, bytes, "%s", text);
    pthread_mutex_unlock(&client->lock);
}

static void handle_leave(struct wf_client *client, int link)
{
    char why[sizeof client->links[link].why];

    explain_end(client, client->links[link].rank, "the rendezvous has ended", why, sizeof why);
    pthread_mutex_lock(&client->lock);
    client->links[link].left = true;
    pthread_mutex_unlock(&client->lock);
    end(client, link, why);
}

/* Close the connection of LINK because of what arrived, which the last error describes. */
static void reject(struct wf_client *client, int link)
{
    wf_connection_reject(client->links[link].connection);
    wf_log(WF_LOG_WARNING, "this rank closes its connection to the rendezvous: %s",
           weft_last_error());
}

static void handle_answer(struct wf_client *client, int link, const struct wf_frame *frame)
{
    int32_t count = count_asked(client, link, frame);

    if (count > 0 && wf_answer_check(frame, count) != WEFT_OK)
        reject(client, link);
    else if (!wf_client_handle_watched(client, frame))
        answer(client, link, frame);
}

void wf_client_handle(struct wf_client *client, int link, const struct wf_frame *frame)
{
    struct wf_reader reader = wf_frame_reader(frame);

    switch (frame->type) {
    case WF_FRAME_GATHERED:
    case WF_FRAME_TELL:
    case WF_FRAME_PASSED:
        if (frame->id >= LOOK_ID)
            handle_look(client, link, frame->id, &reader);
        else
            handle_answer(client, link, frame);
        break;
    case WF_FRAME_CLOCK:
        answer_clock(client, link, frame);
        break;
    case WF_FRAME_GONE:
        handle_gone(client, link, &reader);
        break;
    case WF_FRAME_ABORT:
        handle_abort(client, &reader);
        break;
    case WF_FRAME_ASK:
        handle_ask(client, link, &reader, frame->id);
        break;
    case WF_FRAME_LEAVE:
        handle_leave(client, link);
        break;
    case WF_FRAME_ROUND:
        wf_client_handle_round(client, link, &reader);
        break;
    case WF_FRAME_BEAT:
        answer_beat(client, link, frame->id);
        break;
    default:
        break;
    }
}

/* ---- the ends of links ---- */

/* The server at LINK has ended without a LEAVE frame. */
static void lose(struct wf_client *client, int link)
{
    struct wf_link *l = &client->links[link];
    const char *closed = l->connection->why;
    char words[512], why[sizeof l->why], text[512];
    bool expected;

    snprintf(text, sizeof text, "is gone: it served the rendezvous, and its connection closed%s%s",
             closed != NULL ? ": " : "", closed != NULL ? closed : "");
    pthread_mutex_lock(&client->lock);
    expected = client->leaving || l->over;
    pthread_mutex_unlock(&client->lock);
    explain_end(client, -1, text, words, sizeof words);
    if (!expected) wf_client_note_gone(client, l->rank, false, words, (weft_blob){"", 0});
    explain_end(client, l->rank, "the rendezvous no longer answers", why, sizeof why);
    end(client, link, why);
}

static void handle_all(struct wf_client *client, int link)
{
    struct wf_connection *c = client->links[link].connection;
    struct wf_frame frame;
    weft_status status = WEFT_IN_PROGRESS;

    if (c == NULL || c->broken) return;
    if (link == WF_LINK_STANDBY && !wf_client_join_standby(client)) return;
    while (!c->broken && (status = wf_frame_next(&c->in, &frame)) == WEFT_OK) {
        pthread_mutex_lock(&client->lock);
        client->links[link].silent = false;
        pthread_mutex_unlock(&client->lock);
        wf_client_handle(client, link, &frame);
        wf_frame_drop(&c->in, &frame);
    }
    if (!c->broken && status != WEFT_IN_PROGRESS) reject(client, link);
}

/* The link has ended.  Its server may have ended because of another rank, so ask the other server
 * first which ranks are gone.  Returns false if that is not needed or not possible. */
static bool ask_other(struct wf_client *client, int link)
{
    struct wf_link *l = &client->links[link];

    /* Only this thread sets `over`. */
    return !l->over && l->rank != client->options.rank &&
           wf_client_look(client, WF_LINKS - 1 - link, l->rank, LOOK_ID + (uint64_t)link);
}

/* The connection to the standby has closed, but its rank is still connected to the server. */
static void lose_standby(struct wf_client *client)
{
    static const char why[] = "the connection to the standby of the rendezvous has closed";

    wf_log(WF_LOG_NOTICE, "%s, which rank %d serves; the job continues without it", why,
           WF_STANDBY_RANK);
    end(client, WF_LINK_STANDBY, why);
}

/* True if the server was lost, and the standby may still admit this rank, which then asks it. */
static bool is_joining(struct wf_client *client)
{
    const struct wf_link *standby = &client->links[WF_LINK_STANDBY];
    bool expected;

    pthread_mutex_lock(&client->lock);
    expected = client->leaving || client->links[WF_LINK_SERVER].over;
    pthread_mutex_unlock(&client->lock);
    return !expected && wf_link_is_open(standby) && wf_now_ns() < standby->deadline_ns &&
           (standby->stage == WF_LINK_HANDSHAKE || standby->stage == WF_LINK_PROVING);
}

/* Handle the end of a link.  Returns false if the link has not ended, or its end is handled. */
static bool see_end(struct wf_client *client, int link)
{
    struct wf_link *l = &client->links[link];

    if (l->connection == NULL || wf_link_is_open(l) || l->stage == WF_LINK_LOST) return false;
    if (link == WF_LINK_SERVER && is_joining(client)) return true;
    if (l->stage == WF_LINK_OPEN && ask_other(client, link)) {
        l->stage = WF_LINK_ASKED;
        l->deadline_ns = wf_now_ns() + (uint64_t)WF_CLIENT_LOOK_NS;
    }
    if (l->stage == WF_LINK_ASKED && wf_link_is_open(&client->links[WF_LINKS - 1 - link]) &&
        wf_now_ns() < l->deadline_ns)
        return true;
    l->stage = WF_LINK_LOST;
    /* A standby that does not know of the end of the server's rank reports later departures. */
    if (link == WF_LINK_SERVER && wf_held_has(client, l->rank))
        (void)wf_client_release_held(client);
    if (link == WF_LINK_STANDBY && l->confirmed)
        lose_standby(client);
    else
        lose(client, link);
    if (link == WF_LINK_SERVER) (void)wf_client_release_held(client);
    if (link == WF_LINK_SERVER) wf_client_follow_standby(client);
    return false;
}

/* ---- the loop ---- */

/* Wait until bytes arrive or are to be sent, at most MOST milliseconds; -1: no limit. */
static void wait_for_bytes(struct wf_client *client, int most)
{
    struct pollfd fds[WF_LINKS + 1];
    uint64_t count;

    pthread_mutex_lock(&client->lock);
    for (int link = 0; link < WF_LINKS; link++) {
        struct wf_connection *c = client->links[link].connection;

        fds[link] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (!wf_link_is_open(&client->links[link])) continue;
        wf_connection_write(c);
        fds[link].fd = c->fd;
        if (c->sent < c->out.length) fds[link].events |= POLLOUT;
    }
    pthread_mutex_unlock(&client->lock);
    fds[WF_LINKS] = (struct pollfd){.fd = client->wake, .events = POLLIN};
    if (poll(fds, WF_LINKS + 1, most) < 0) return;
    if ((fds[WF_LINKS].revents & POLLIN) && read(client->wake, &count, sizeof count) < 0) return;
    /* The server's link is read last and handled first: the server has then reported every loss
     * that may have caused a departure reported by the standby. */
    for (int link = WF_LINKS - 1; link >= 0; link--)
        if (fds[link].fd >= 0) wf_connection_read(client->links[link].connection);
}

static bool has_ended(const struct wf_link *link)
{
    return link->connection == NULL || link->stage == WF_LINK_LOST;
}

void *wf_client_listen(void *argument)
{
    struct wf_client *client = argument;
    char prefix[24];
    bool asking;
    int most, beat;

    pthread_setname_np(pthread_self(), "weft-client");
    snprintf(prefix, sizeof prefix, "rank %d", client->options.rank);
    wf_log_set_prefix(prefix);
    for (;;) {
        wf_client_see_quiet(client, false);
        for (int link = 0; link < WF_LINKS; link++)
            handle_all(client, link); /* first what came together with the last of the handshake */
        asking = wf_client_release_held(client);
        for (int link = 0; link < WF_LINKS; link++)
            asking |= see_end(client, link);
        if (has_ended(&client->links[WF_LINK_SERVER]) && has_ended(&client->links[WF_LINK_STANDBY]))
            break; /* nothing is held any more */
        most = wf_client_watch_now(client);
        beat = wf_client_beat(client);
        if (beat >= 0 && (most < 0 || beat < most)) most = beat;
        wait_for_bytes(client, asking ? 10 : most);
    }
    wf_client_end_watch(client);
    wf_client_see_quiet(client, true);
    return NULL;
}
