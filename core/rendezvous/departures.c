/* departures.c - reports of ranks that are gone.
 *
 * A rank's two connections do not close at the same moment, so the standby may report a rank that
 * ended because of a loss before it reports the loss.  The server's reports are in order, and ranks
 * act on them.  Reports of the standby are held: ranks act on them once the server ends or does not
 * answer.  If the server answers that the rank is still connected, only the rank's connection to
 * the standby is lost.
 *
 * A rank that learns of a loss asks the standby about it at once (a LOOK), and may then end because
 * of the loss.  The standby's report therefore has the rank that was asked about, whose loss comes
 * first: the kernel may need seconds to close the other connections of a process that was killed,
 * and the server's process may end before it has reported the loss to all ranks. */
#include "client.h"

#include <stdio.h>

/* Base of the ids of LOOK frames about reports; the rank is added to it. */
#define HELD_ID (UINT64_C(3) << 62)
/* How long a report is held before the server is asked. */
#define ASK_NS (WF_SECOND_NS / 4)
/* The id of LOOK frames whose answer is not needed. */
#define TOLD_ID (UINT64_C(5) << 61)

void wf_departure_free(struct wf_departure *departure)
{
    if (departure == NULL) return;
    wf_text_free(&departure->record);
    wf_free(departure);
}

void wf_client_notify(struct wf_client *client)
{
    pthread_mutex_lock(&client->lock);
    pthread_cond_broadcast(&client->changed);
    pthread_mutex_unlock(&client->lock);
}

void wf_client_note_gone(struct wf_client *client, int32_t rank, bool left, const char *text,
                         weft_blob record)
{
    struct wf_departure *departure;
    bool news, first;

    if (rank < 0) return; /* the server is not a rank */
    departure = wf_calloc(1, sizeof *departure);
    if (departure == NULL) return; /* out of memory: waits end at their time limit */
    departure->rank = rank;
    departure->left = left;
    snprintf(departure->text, sizeof departure->text, "%s", text);
    wf_text_append(&departure->record, record.data, (size_t)record.bytes);
    pthread_mutex_lock(&client->lock);
    news = client->departed[rank] == NULL;
    if (news) client->departed[rank] = departure;
    first = news && !left && client->first_lost == NULL;
    if (first) client->first_lost = departure;
    pthread_mutex_unlock(&client->lock);
    if (!news) {
        wf_departure_free(departure);
        return;
    }
    if (first) (void)wf_client_look(client, WF_LINK_STANDBY, rank, TOLD_ID);
    client->options.events.gone(client->options.events.self, departure);
    wf_client_notify(client);
}

bool wf_client_look(struct wf_client *client, int link, int32_t rank, uint64_t id)
{
    struct wf_link *l = &client->links[link];
    struct wf_text payload = {0};
    bool asks;

    wf_put_u32(&payload, (uint32_t)rank);
    pthread_mutex_lock(&client->lock);
    asks = !client->leaving && !l->over && wf_link_is_open(l);
    if (asks) {
        wf_connection_send(l->connection, WF_FRAME_LOOK, id, &payload);
        wf_connection_write(l->connection); /* this process may end before the thread runs */
    }
    pthread_mutex_unlock(&client->lock);
    wf_text_free(&payload);
    return asks;
}

/* ---- reports of the standby ---- */

struct wf_held {
    struct wf_held *next;
    int32_t rank, missed;
    bool left, asked, denied;
    uint64_t ask_ns, deadline_ns;
    char text[512];
    struct wf_text record;
};

bool wf_held_add(struct wf_client *client, int32_t rank, bool left, int32_t missed,
                 const char *text, weft_blob record)
{
    struct wf_held **last = &client->held, *held = wf_calloc(1, sizeof *held);

    if (held == NULL) return false;
    held->rank = rank;
    held->missed = missed;
    held->left = left;
    held->ask_ns = wf_now_ns() + (uint64_t)ASK_NS;
    held->deadline_ns = held->ask_ns + (uint64_t)WF_CLIENT_LOOK_NS;
    snprintf(held->text, sizeof held->text, "%s", text);
    wf_text_append(&held->record, record.data, (size_t)record.bytes);
    while (*last != NULL)
        last = &(*last)->next;
    *last = held;
    return true;
}

void wf_held_deny(struct wf_client *client, uint64_t id)
{
    for (struct wf_held *held = client->held; held != NULL; held = held->next)
        if (id == HELD_ID + (uint64_t)held->rank) held->denied = true;
}

bool wf_held_has(const struct wf_client *client, int32_t rank)
{
    const struct wf_held *held = client->held;

    while (held != NULL && held->rank != rank)
        held = held->next;
    return held != NULL;
}

static void free_held(struct wf_held *held)
{
    wf_text_free(&held->record);
    wf_free(held);
}

/* Ask the server about HELD.  This thread may ask late, so the time for the answer begins now. */
static void ask_about(struct wf_client *client, struct wf_held *held)
{
    held->asked =
        wf_client_look(client, WF_LINK_SERVER, held->rank, HELD_ID + (uint64_t)held->rank);
    if (held->asked) held->deadline_ns = wf_now_ns() + (uint64_t)WF_CLIENT_LOOK_NS;
}

/* Ask the server about reports that are held.  Drop reports that it has made or denied. */
static void settle_held(struct wf_client *client)
{
    struct wf_held **at = &client->held, *held;

    while ((held = *at) != NULL) {
        if (held->denied || client->departed[held->rank] != NULL) {
            *at = held->next;
            free_held(held);
            continue;
        }
        if (!held->asked && wf_now_ns() >= held->ask_ns) ask_about(client, held);
        at = &held->next;
    }
}

/* The rank that HELD is about had found the loss of another one, which comes first. */
static void note_missed(struct wf_client *client, const struct wf_held *held)
{
    char text[80];

    if (held->missed >= client->options.size || held->missed == client->options.rank) return;
    snprintf(text, sizeof text, "is gone: rank %d reported the loss before it ended", held->rank);
    wf_client_note_gone(client, held->missed, false, text, (weft_blob){"", 0});
}

bool wf_client_release_held(struct wf_client *client)
{
    struct wf_held *held;

    settle_held(client);
    while ((held = client->held) != NULL) {
        if (client->links[WF_LINK_SERVER].stage != WF_LINK_LOST && wf_now_ns() < held->deadline_ns)
            return true;
        client->held = held->next;
        note_missed(client, held);
        wf_client_note_gone(client, held->rank, held->left, held->text,
                            (weft_blob){held->record.data, held->record.length});
        free_held(held);
    }
    return false;
}
