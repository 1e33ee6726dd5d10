/* claim.c - the numbers of records.
 *
 * The thread that makes the first record is the claimer: it counts without an atomic addition, as
 * long as it is alone.  When another thread makes a record, all threads count atomically from then
 * on.  The claimer says that it is claiming before it looks whether it still is the claimer, but
 * has no barrier in between.  The other thread makes that barrier for it, with a system call that
 * returns when every thread of the process has passed one.  Where the system refuses the call, all
 * threads count atomically from the beginning. */
#include "trace.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Their addresses are the claimer: when there are several, and until the first one knows. */
static const char shared, ending;

static bool call_barrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* With several threads, the registration takes some ten milliseconds. */
void wf_claims_prepare(void)
{
    struct stat tasks;

    if (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3) /* ".", ".." and one thread */
        (void)call_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

/* False: the process is not registered, or the system does not know the call. */
static bool make_barrier(void)
{
    return call_barrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

/* Let all threads claim.  The lock is held. */
static void share(struct wf_trace *trace)
{
    atomic_store(&trace->claimer, &ending);
    (void)make_barrier(); /* as it did when there was no claimer */
    while (atomic_load(&trace->claiming))
        sched_yield();
    atomic_store(&trace->claimer, &shared);
}

uint64_t wf_trace_claim_shared(struct wf_trace *trace)
{
    if (atomic_load_explicit(&trace->claimer, memory_order_acquire) != &shared) {
        const void *claimer;

        pthread_mutex_lock(&trace->lock);
        claimer = atomic_load(&trace->claimer);
        if (claimer == NULL)
            atomic_store(&trace->claimer, make_barrier() ? wf_thread() : &shared);
        else if (claimer != &shared && claimer != wf_thread())
            share(trace);
        claimer = atomic_load(&trace->claimer);
        pthread_mutex_unlock(&trace->lock);
        if (claimer == wf_thread()) return wf_trace_claim_id(trace);
    }
    return atomic_fetch_add_explicit(&trace->segment->next, 1, memory_order_relaxed) + 1;
}
