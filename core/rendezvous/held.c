/* held.c - departures that only the standby has reported.
 *
 * A rank's two connections do not close at the same moment, so the standby may report a rank that
 * ended because of a loss before it reports the loss.  The server's reports are in order, and ranks
 * act on them.  They act on the standby's reports once the server ends or does not answer.  If the
 * server answers that the rank is still connected, only the rank's connection to the standby is
 * lost. */
#include "client.h"

#include <stdio.h>

/* Base of the ids of LOOK frames about reports; the rank is added to it. */
#define HELD_ID (UINT64_C(3) << 62)
/* How long a report is held before the server is asked. */
#define ASK_NS (WF_SECOND_NS / 4)

struct wf_held {
    struct wf_held *next;
    int32_t rank;
    bool left, asked, denied;
    uint64_t ask_ns, deadline_ns;
    char text[512];
    struct wf_text record;
};

bool wf_held_add(struct wf_client *client, int32_t rank, bool left, const char *text,
                 weft_blob record)
{
    struct wf_held **last = &client->held, *held = wf_calloc(1, sizeof *held);

    if (held == NULL) return false;
    held->rank = rank;
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
        if (!held->asked && wf_now_ns() >= held->ask_ns)
            held->asked =
                wf_client_look(client, WF_LINK_SERVER, held->rank, HELD_ID + (uint64_t)held->rank);
        at = &held->next;
    }
}

bool wf_client_release_held(struct wf_client *client)
{
    struct wf_held *held;

    settle_held(client);
    while ((held = client->held) != NULL) {
        if (client->links[WF_LINK_SERVER].stage != WF_LINK_LOST && wf_now_ns() < held->deadline_ns)
            return true;
        client->held = held->next;
        wf_client_note_gone(client, held->rank, held->left, held->text,
                            (weft_blob){held->record.data, held->record.length});
        free_held(held);
    }
    return false;
}
