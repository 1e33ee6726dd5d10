/* shm_ring.c - a rank that sleeps until another rank rings its bell. */
#include "shm.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long futex(const _Atomic(uint32_t) *word, int operation, uint32_t value,
                  const struct timespec *limit)
{
    return syscall(SYS_futex, word, operation, value, limit, NULL, 0);
}

void cpu_shm_ring(struct cpu_shm_group *group, int32_t rank)
{
    struct cpu_shm_control *control = group->peers[rank].control;

    if (control == NULL || atomic_load(&control->sleepers) == 0) return;
    atomic_fetch_add(&control->bell, 1);
    futex(&control->bell, FUTEX_WAKE, INT32_MAX, NULL);
}

void cpu_shm_ring_all(struct cpu_shm_group *group)
{
    for (int32_t p = 0; group->peers != NULL && p < group->size; p++)
        cpu_shm_ring(group, p);
}

void cpu_shm_sleep(struct cpu_shm_control *control, uint32_t bell, uint64_t longest_ns)
{
    struct timespec limit = {.tv_nsec = (long)longest_ns};

    futex(&control->bell, FUTEX_WAIT, bell, &limit);
}
