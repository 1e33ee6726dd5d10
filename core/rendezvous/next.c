/* next.c - a rank's end of the rendezvous: the call for the next generation of an elastic job. */
#include "client.h"

#include "weft/status.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

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
                       client->options.rank, (unsigned long long)wf_client_generation(client));
    if (client->member.phase == WF_MEMBER_ENDED)
        return wf_fail(WEFT_ERR_PEER, "the job ends: fewer than %d ranks are left%s%s",
                       client->options.terms.ranks_min, first != NULL ? "; first, a rank " : "",
                       first != NULL ? first->text : "");
    return wf_fail(WEFT_ERR_PEER, "%s", client->links[wf_client_asks(client)].why);
}

static weft_status fail_late(const struct wf_client *client)
{
    int32_t late[WF_ROUND_MOST], count = 0;
    struct wf_text text = {0};
    weft_status status;

    for (int32_t rank = 0; rank < client->options.size; rank++)
        if (client->late >> rank & 1) late[count++] = rank;
    wf_ranks_print(&text, late, count);
    wf_text_add(&text, " of %d did not call weft_context_next within ", client->options.size);
    wf_text_time(&text, client->options.terms.answer_ns);
    status = wf_fail(WEFT_ERR_TIMEOUT, "%s, and may not be expelled: %s; another call waits on",
                     text.failed ? "other ranks" : text.data,
                     client->options.terms.silent_ns == 0
                         ? "silent_ns turns it off"
                         : "so many ranks are silent that this one may be cut off");
    wf_text_free(&text);
    return status;
}

/* Wait until the members are told to meet.  The lock is held. */
static weft_status wait_for_go(struct wf_client *client)
{
    uint64_t limit_ns = client->options.terms.answer_ns;
    uint64_t until_ns = limit_ns < (uint64_t)INT64_MAX ? wf_now_ns() + limit_ns : UINT64_MAX;

    while (!client->was_told && !client->stays && !has_ended(client) && client->late == 0) {
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
    if (client->was_told || client->stays) return WEFT_OK;
    return has_ended(client) ? describe_end(client) : fail_late(client);
}

/* The lock is held. */
static weft_status read_decision(struct wf_client *client, struct wf_decision *out)
{
    int asks = wf_client_asks(client);
    const struct wf_job_key *key = client->links[asks].rank < 0 ? &client->options.base
                                   : asks == WF_LINK_SERVER     ? &client->options.key
                                                                : &client->standby_key;
    struct wf_server *local = asks == WF_LINK_SERVER ? client->options.server : client->standby;

    *out = (struct wf_decision){
        .generation = client->member.generation,
        .step = client->member.step,
        .members = client->member.members,
        .rank = wf_round_rank(client->member.members, client->options.size, client->options.rank),
        .size = __builtin_popcountll(client->member.members),
        .serving_rank = client->meets_at,
        .key = wf_next_key(key, client->member.generation),
        .base = client->options.base};
    if (out->size == 1 && client->number == 0) return WEFT_OK; /* nobody can come */
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

static weft_status await_decision(struct wf_client *client, uint64_t step,
                                  void (*call)(struct wf_round_member *, uint64_t, wf_round_send *,
                                               void *),
                                  struct wf_decision *out)
{
    weft_status status;

    pthread_mutex_lock(&client->lock);
    client->waits = true;
    client->late = 0;
    client->stays = false;
    /* A call that ended before may have missed the decision that it waited for. */
    if (client->member.phase != WF_MEMBER_RUNNING) client->was_told = false;
    if (!client->was_told) call(&client->member, step, wf_client_send_round, client);
    status = wait_for_go(client);
    client->waits = false;
    if (status == WEFT_OK && client->was_told)
        status = read_decision(client, out);
    else if (status == WEFT_OK)
        *out = (struct wf_decision){.generation = wf_client_generation(client), .stays = true};
    if (status == WEFT_OK) client->was_told = false;
    pthread_mutex_unlock(&client->lock);
    return status;
}

weft_status wf_client_next(struct wf_client *client, uint64_t step, struct wf_decision *out)
{
    return await_decision(client, step, wf_round_call, out);
}

weft_status wf_client_grow(struct wf_client *client, uint64_t step, struct wf_decision *out)
{
    return await_decision(client, step, wf_round_grow, out);
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
