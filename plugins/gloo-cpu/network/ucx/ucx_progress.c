/* ucx_progress.c - waiting.
 *
 * The first thread that waits makes progress for all, and the others sleep until something changes.
 * It spins, then yields, then sleeps until UCX has an event.  It never holds the lock between two
 * steps, so that other threads can start messages.  A thread that waits for requests of others
 * (ucx_serve.c) only makes progress while no other thread does, and sleeps at once. */
#include "ucx.h"

#include "cpu_spin.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#define SLEEP_NS INT64_C(20000000) /* at most; events that UCX does not report are rare */

int64_t ucx_deadline(int64_t timeout_ns)
{
    int64_t now = (int64_t)plug_now();

    if (timeout_ns < 0) return -1;
    return timeout_ns < INT64_MAX - now ? now + timeout_ns : INT64_MAX;
}

void ucx_wake(struct net_group *group)
{
    ssize_t ignored = write(group->wake[1], "", 1); /* a full pipe wakes, too */

    (void)ignored;
}

/* How long to sleep, in nanoseconds. */
static int64_t nap(int64_t deadline)
{
    int64_t left = deadline < 0 ? SLEEP_NS : deadline - (int64_t)plug_now();

    if (left < 0) return 0;
    return left < SLEEP_NS ? left : SLEEP_NS;
}

void ucx_follow(struct net_group *group, pthread_cond_t *changed, int64_t deadline)
{
    struct timespec until;
    int64_t end;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    end = (int64_t)until.tv_nsec + nap(deadline);
    until.tv_sec += end / 1000000000;
    until.tv_nsec = end % 1000000000;
    (void)pthread_cond_timedwait(changed, &group->lock, &until);
}

static void sleep_until_event(struct net_group *group, int64_t deadline)
{
    struct pollfd files[2] = {{.fd = group->efd, .events = POLLIN},
                              {.fd = group->wake[0], .events = POLLIN}};
    ucs_status_t status = ucx.ucp_worker_arm(group->worker);
    struct timespec time = {.tv_nsec = (long)nap(deadline)};
    char bytes[64];

    if (status != UCS_OK) return; /* UCX has events */
    group->sleepers++;
    pthread_mutex_unlock(&group->lock);
    (void)ppoll(files, 2, &time, NULL);
    pthread_mutex_lock(&group->lock);
    group->sleepers--;
    if (files[1].revents != 0)
        while (read(group->wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes) {
        }
}

static void let_others_in(struct net_group *group, bool spins, uint64_t now)
{
    pthread_mutex_unlock(&group->lock);
    if (spins)
        cpu_relax();
    else
        cpu_yield(now);
    pthread_mutex_lock(&group->lock);
}

static void make_progress(struct net_group *group, bool (*done)(const void *), const void *argument,
                          int64_t deadline, bool yields)
{
    uint64_t spin_ns = cpu_spin_has_room_for_kernel() ? CPU_SPIN_NS : 0, idle_since = 0;
    uint64_t turn = group->turn;

    while (group->turn == turn) {
        uint64_t now, idle;
        bool moved = ucx.ucp_worker_progress(group->worker) != 0;

        if (done(argument) || group->is_dead) return;
        now = plug_now();
        if (deadline >= 0 && (int64_t)now >= deadline) return;
        if (moved || idle_since == 0) idle_since = now;
        idle = now - idle_since;
        if (!yields && idle < spin_ns + CPU_YIELD_NS && !cpu_is_crowded(now))
            let_others_in(group, idle < spin_ns, now);
        else if (yields && moved)
            let_others_in(group, true, now);
        else
            sleep_until_event(group, deadline);
    }
}

void ucx_lead(struct net_group *group, bool (*done)(const void *), const void *argument,
              int64_t deadline, bool yields)
{
    uint64_t turn = ++group->turn;

    group->has_leader = true;
    group->leader_yields = yields;
    make_progress(group, done, argument, deadline, yields);
    if (group->turn != turn) return; /* another thread leads */
    group->has_leader = group->leader_yields = false;
    if (group->followers > 0) pthread_cond_broadcast(&group->changed);
    if (group->serves) pthread_cond_signal(&group->server);
}

bool ucx_wait(struct net_group *group, bool (*done)(const void *), const void *argument,
              int64_t deadline)
{
    while (!done(argument)) {
        if (group->is_dead) return false;
        if (group->has_leader && !group->leader_yields) {
            group->followers++;
            ucx_follow(group, &group->changed, deadline);
            group->followers--;
        } else {
            ucx_lead(group, done, argument, deadline, false);
        }
        if (deadline >= 0 && (int64_t)plug_now() >= deadline) return done(argument);
    }
    return true;
}
