/* cpu_bell.c - a futex and the number of threads that sleep on it.
 *
 * A waiter increments the number of sleepers and then reads the condition.  A ringer stores the
 * condition and then reads the number of sleepers.  These four accesses are sequentially
 * consistent, so at least one of the two threads sees the other's store.
 *
 * Before it sleeps, a thread spins for a while if a processor is left for it: to wake a thread
 * takes longer than most waits between streams. */
#include "cpu_bell.h"

#include "cpu_spin.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS_PER_LOOK 64

void cpu_bell_ring(struct cpu_bell *bell)
{
    if (atomic_load(&bell->sleepers) == 0) return;
    atomic_fetch_add(&bell->strokes, 1);
    syscall(SYS_futex, &bell->strokes, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Sleep until a ring after the one numbered STROKES, or until DEADLINE.  May return early. */
static void sleep_on(struct cpu_bell *bell, uint32_t strokes, uint64_t deadline)
{
    struct timespec limit = {.tv_sec = (time_t)(deadline / 1000000000u),
                             .tv_nsec = (long)(deadline % 1000000000u)};

    syscall(SYS_futex, &bell->strokes, FUTEX_WAIT_BITSET_PRIVATE, strokes,
            deadline == UINT64_MAX ? NULL : &limit, NULL, FUTEX_BITSET_MATCH_ANY);
}

static bool spin(bool (*ready)(const void *), const void *argument, uint64_t deadline)
{
    uint64_t start = plug_now(), now = start;
    bool came = false;

    if (!cpu_spin_begin()) return false;
    while (!came && now < deadline && now - start < CPU_YIELD_NS) {
        for (int i = 0; i < SPINS_PER_LOOK && !came; i++) {
            cpu_relax();
            came = ready(argument);
        }
        now = plug_now();
        if (!came && now - start >= CPU_SPIN_NS) sched_yield();
    }
    cpu_spin_end();
    return came;
}

bool cpu_bell_wait(struct cpu_bell *bell, bool (*ready)(const void *), const void *argument,
                   uint64_t deadline)
{
    bool came = ready(argument) || spin(ready, argument, deadline);

    while (!came && (deadline == UINT64_MAX || plug_now() < deadline)) {
        uint32_t strokes = atomic_load(&bell->strokes);

        atomic_fetch_add(&bell->sleepers, 1);
        came = ready(argument);
        if (!came) sleep_on(bell, strokes, deadline);
        atomic_fetch_sub(&bell->sleepers, 1);
        came = came || ready(argument);
    }
    return came;
}

uint64_t cpu_deadline(int64_t timeout_ns)
{
    uint64_t now = plug_now();

    if (timeout_ns < 0 || (uint64_t)timeout_ns > UINT64_MAX - now) return UINT64_MAX;
    return now + (uint64_t)timeout_ns;
}
