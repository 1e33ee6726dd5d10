/* lobby.c - connections of newcomers to an elastic job, and which of them have been given a place.
 *
 * Newcomers connect to the launcher's first server.  Servers of later generations run in the same
 * process, on threads of their own, and get the connections of those that still wait. */
#include "server.h"

#include <string.h>

bool wf_lobby_pass(struct wf_server *s, struct wf_connection *c)
{
    struct wf_server *next = atomic_load(&s->successor);
    struct wf_command command = {.kind = WF_COMMAND_LOBBY, .newcomer = c};

    if (next == NULL) next = s->origin; /* which has freed the server between them */
    c->moves = false;
    c->place = -1;
    return next != NULL && wf_server_order(next, &command);
}

void wf_lobby_note(struct wf_server *s, const struct wf_connection *c)
{
    struct wf_server *first = s->origin != NULL ? s->origin : s;
    int32_t number = c->join.rank;

    pthread_mutex_lock(&first->entered_lock);
    wf_text_append(&first->entered, (const char *)&number, sizeof number);
    pthread_mutex_unlock(&first->entered_lock);
}

bool wf_server_has_entered(struct wf_server *s, int32_t number)
{
    bool found = false;

    pthread_mutex_lock(&s->entered_lock);
    for (size_t at = 0; at < s->entered.length; at += sizeof number)
        found = found || memcmp(s->entered.data + at, &number, sizeof number) == 0;
    pthread_mutex_unlock(&s->entered_lock);
    return found;
}
