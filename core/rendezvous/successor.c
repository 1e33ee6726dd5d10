/* successor.c - the server at which the next generation of an elastic job meets.
 *
 * The rendezvous server of this generation opens it, in the same process, when the members have
 * confirmed. */
#include "elastic.h"

#include "weft/status.h"

#include <unistd.h>

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

        if (c == NULL || !wf_is_member(members, rank) || c->join.pid == (uint64_t)getpid())
            continue;
        if (wf_address_beside(c->fd, out)) return true;
    }
    return false;
}

static void list_numbers(struct wf_server *s, uint64_t members)
{
    struct wf_elastic *e = s->elastic;

    for (int32_t i = 0; i < WF_ROUND_MOST; i++) {
        e->now[i] = wf_is_member(members, i) ? wf_round_rank(members, s->options.size, i) : -1;
        if (e->now[i] >= 0 && e->newcomers[i] != NULL) wf_lobby_note(s, e->newcomers[i]);
    }
}

static weft_status start_successor(struct wf_server *s, const struct wf_round_message *go)
{
    struct wf_elastic *e = s->elastic;
    const struct wf_job_key *key = s->options.serving_rank < 0 ? &s->options.base : &s->options.key;
    struct wf_server_options options = {.size = __builtin_popcountll(go->members),
                                        .generation = go->round,
                                        .serving_rank = e->serving_rank,
                                        .grows = s->options.grows,
                                        .join_timeout_ns = s->options.join_timeout_ns,
                                        .key = wf_next_key(key, go->round),
                                        .base = s->options.base};
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

void wf_successor_open(struct wf_server *s, const struct wf_round_message *go)
{
    struct wf_elastic *e = s->elastic;
    int32_t serving = s->options.serving_rank;

    e->opened_round = go->round;
    e->number = 0;
    e->serving_rank = wf_is_member(go->members, serving)
                          ? wf_round_rank(go->members, s->options.size, serving)
                          : -1;
    list_numbers(s, go->members);
    if ((s->options.grows || __builtin_popcountll(go->members) > 1) &&
        start_successor(s, go) != WEFT_OK)
        wf_log(WF_LOG_WARNING, "the rendezvous of generation %llu cannot be opened: %s",
               (unsigned long long)go->round, weft_last_error());
}

/* ---- the end ---- */

void wf_successor_release(struct wf_server *s)
{
    struct wf_server *next = wf_server_take_successor(s);

    wf_server_release(&next);
}

void wf_successor_reap(struct wf_server *s)
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
