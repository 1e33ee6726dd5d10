/* shm_wait.c - waiting for another rank: spin, then yield, then sleep.
 *
 * Spinning answers within a cache miss but keeps a core from the rank waited for when ranks
 * outnumber cores; yielding hands the core over; sleeping costs a few microseconds to wake and
 * nothing meanwhile, and is all that helps where others want the cores (cpu_spin.h).  Every wait
 * ends: by its condition, by abort, by the time limit, or because the rank waited for failed, left
 * or is gone. */
#include "cpu_spin.h"
#include "shm.h"

#define SLEEP_NS       UINT64_C(20000000) /* at most, then look whether the peer lives */
#define POLLED_NS      UINT64_C(200000)   /* the same where nobody rings */
#define SPINS_PER_LOOK 64

static void sleep_on_bell(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting)
{
    struct cpu_shm_control *control = group->control;
    uint32_t bell = atomic_load(&control->bell);

    atomic_fetch_add(&control->sleepers, 1);
    if (!waiting->ready(waiting->argument) && !cpu_shm_has_failed(group))
        cpu_shm_sleep(control, bell, waiting->polled ? POLLED_NS : SLEEP_NS);
    atomic_fetch_sub(&control->sleepers, 1);
}

/* The rank waited for will not come: say why.  WEFT_OK while it still may, and when what we wait
 * for came just before it went. */
static weft_status look_at_peer(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting,
                                int32_t rank, bool thorough)
{
    const struct cpu_shm_peer *peer = &group->peers[rank];
    uint32_t state = atomic_load(&peer->control->state);
    bool gone = state == SHM_WORKING && thorough && !peer->same_process &&
                !cpu_process_alive(&peer->address.process);
    const char *doing = waiting->doing != NULL ? waiting->doing : group->doing;
    char name[64];

    if (state == SHM_WORKING && !gone) return WEFT_OK;
    if (waiting->ready(waiting->argument)) return WEFT_OK;
    cpu_shm_name(group, rank, name, sizeof name);
    if (gone) return cpu_shm_fail(group, WEFT_ERR_PEER, "%s: %s is gone", doing, name);
    if (state == SHM_LEFT)
        return cpu_shm_fail(group, WEFT_ERR_PEER, "%s: %s has left", doing, name);
    return cpu_shm_peer_failed(group, rank);
}

/* A rank that waits for another host has a shorter limit than ours, and will name the one that it
 * waits for.  Any other rank is the one that is late: it must be named before other hosts run out
 * of patience with this one. */
static int64_t limit_of(const struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting)
{
    if (waiting->near_timeout_ns <= 0 || waiting->rank < 0 ||
        atomic_load(&group->peers[waiting->rank].control->away) > 0)
        return waiting->timeout_ns;
    return waiting->near_timeout_ns;
}

static weft_status look_around(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting,
                               uint64_t waited, bool thorough)
{
    int32_t first = waiting->rank < 0 ? 0 : waiting->rank;
    int32_t last = waiting->rank < 0 ? group->size - 1 : waiting->rank;
    int64_t limit = limit_of(group, waiting);
    char name[64] = "any rank";

    for (int32_t p = first; p <= last; p++)
        if (p != group->rank) PLUG_TRY(look_at_peer(group, waiting, p, thorough));
    if (limit < 0 || waited < (uint64_t)limit) return WEFT_OK;
    if (waiting->forgiving)
        return plug_fail(WEFT_ERR_TIMEOUT, "%s: waited %.3f s", waiting->doing,
                         (double)waited * 1e-9);
    if (waiting->rank >= 0) cpu_shm_name(group, waiting->rank, name, sizeof name);
    return cpu_shm_fail(group, WEFT_ERR_TIMEOUT, "%s: waited %.3f s for %s",
                        waiting->doing != NULL ? waiting->doing : group->doing,
                        (double)waited * 1e-9, name);
}

static bool spin(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting, uint64_t start)
{
    do {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            if (waiting->ready(waiting->argument)) return true;
            cpu_relax();
        }
    } while (cpu_spin_has_room() && !cpu_shm_has_failed(group) && plug_now() - start < CPU_SPIN_NS);
    return false;
}

weft_status cpu_shm_wait_until(struct cpu_shm_group *group, const struct cpu_shm_waiting *waiting)
{
    uint64_t start = plug_now(), waited, looked = 0;
    bool thorough;
    weft_status status;

    if (spin(group, waiting, start)) return WEFT_OK;
    for (;;) {
        if (waiting->ready(waiting->argument)) return WEFT_OK;
        if (cpu_shm_has_failed(group)) return cpu_shm_fault(group);
        if (atomic_load(&group->under_way) > 0) group->progress(group);
        waited = plug_now() - start;
        thorough = waited - looked >= SLEEP_NS;
        if (thorough) looked = waited;
        status = look_around(group, waiting, waited, thorough);
        if (status != WEFT_OK) return status;
        if (waited < CPU_YIELD_NS && !cpu_is_crowded(start + waited))
            cpu_yield(start + waited);
        else
            sleep_on_bell(group, waiting);
    }
}

struct word_wait {
    const _Atomic(uint64_t) *word;
    uint64_t value;
};

static bool word_reached(void *argument)
{
    const struct word_wait *wait = argument;

    return atomic_load(wait->word) >= wait->value;
}

weft_status cpu_shm_wait_slow(struct cpu_shm_group *group, const _Atomic(uint64_t) *word,
                              uint64_t value, int32_t rank)
{
    struct word_wait wait = {word, value};
    struct cpu_shm_waiting waiting = {.ready = word_reached,
                                      .argument = &wait,
                                      .rank = rank,
                                      .timeout_ns = group->timeout_ns,
                                      .near_timeout_ns = group->near_timeout_ns};

    return cpu_shm_wait_until(group, &waiting);
}
