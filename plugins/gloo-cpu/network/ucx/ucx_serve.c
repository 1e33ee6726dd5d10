/* ucx_serve.c - waiting for requests, by a thread that gives way to the threads that wait for
 * messages. */
#include "ucx.h"

#include "plug_host.h"

#include <time.h>

#define GAP_NS 1000000 /* at most, after the last other thread has stopped making progress */

/* A peer of which a message of KIND waits, or -1. */
static int32_t find_request(const struct net_group *group, uint32_t kind)
{
    for (int32_t rank = 0; rank < group->size; rank++)
        for (const struct ucx_arrival *arrival = group->peers[rank].arrivals; arrival != NULL;
             arrival = arrival->next)
            if (arrival->header.kind == kind) return rank;
    return -1;
}

struct awaiting {
    const struct net_group *group;
    uint32_t kind;
};

static bool has_ended(const struct net_group *group)
{
    return atomic_load(&group->aborted) || group->serves_no_more || group->has_failed ||
           group->has_hung_up || group->is_dead;
}

static bool is_wanted(const void *argument)
{
    const struct awaiting *awaiting = argument;

    return has_ended(awaiting->group) || find_request(awaiting->group, awaiting->kind) >= 0;
}

bool ucx_await(struct net_group *group, uint32_t kind, int32_t *peer)
{
    const struct awaiting awaiting = {group, kind};
    bool has;

    pthread_mutex_lock(&group->lock);
    group->serves = true;
    while (!is_wanted(&awaiting)) {
        if (group->has_leader)
            ucx_follow(group, &group->server, (int64_t)plug_now() + GAP_NS);
        else
            ucx_lead(group, is_wanted, &awaiting, -1, true);
    }
    group->serves = false;
    has = !has_ended(group);
    if (has) *peer = find_request(group, kind);
    pthread_mutex_unlock(&group->lock);
    return has;
}

void ucx_end_await(struct net_group *group)
{
    pthread_mutex_lock(&group->lock);
    group->serves_no_more = true;
    pthread_cond_broadcast(&group->server);
    pthread_mutex_unlock(&group->lock);
    ucx_wake(group);
}
