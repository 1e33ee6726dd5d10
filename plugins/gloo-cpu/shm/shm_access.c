/* shm_access.c - direct access to memory of other ranks of this process.
 *
 * Ranks of one process access each other's private memory directly.  A rank may free its memory
 * after a failed call, so each rank counts its accesses to every other rank, and a rank whose call
 * has failed waits until no other rank accesses its memory.
 *
 * A rank changes its count, then reads the state of the memory's owner.  The owner sets its state
 * to SHM_FAILED, then reads the counts.  All four are seq_cst, so the rank finds the owner failed,
 * or the owner finds the access.  A thread waits for no rank during an access, so the owner's wait
 * lasts as long as one copy.  Nothing is counted between processes: there the kernel reads private
 * memory, and a process may be stopped during an access. */
#include "shm.h"

#include <sched.h>
#include <time.h>

#define YIELDS   64
#define SLEEP_NS 50000

/* How many threads of FROM access memory of TO. */
static _Atomic(uint32_t) *count_of(const struct cpu_shm_group *group, int32_t from, int32_t to)
{
    unsigned char *words = group->peers[from].control->slots + SHM_SLOTS * group->slot_bytes;

    return (_Atomic(uint32_t) *)(words + (size_t)group->size * sizeof(uint64_t)) + to;
}

static bool is_near(const struct cpu_shm_group *group, int32_t rank)
{
    return rank != group->rank && group->peers[rank].same_process;
}

weft_status cpu_shm_access_begin_near(struct cpu_shm_group *group, int32_t rank)
{
    if (!is_near(group, rank)) return WEFT_OK;
    atomic_fetch_add(count_of(group, group->rank, rank), 1);
    if (atomic_load(&group->peers[rank].control->state) != SHM_FAILED) return WEFT_OK;
    cpu_shm_access_end_near(group, rank);
    return cpu_shm_peer_failed(group, rank);
}

void cpu_shm_access_end_near(struct cpu_shm_group *group, int32_t rank)
{
    if (is_near(group, rank)) atomic_fetch_sub(count_of(group, group->rank, rank), 1);
}

/* End the accesses to the buffers of ranks FIRST to LAST - 1 in the collective. */
static void leave(struct cpu_shm_group *group, int32_t first, int32_t last)
{
    for (int32_t p = first; p < last; p++)
        if (is_near(group, p) && cpu_shm_where(cpu_shm_slot(group, p)) >= SHM_BY_REFERENCE)
            cpu_shm_access_end_near(group, p);
}

weft_status cpu_shm_enter_near(struct cpu_shm_group *group, int32_t rank)
{
    int32_t first = rank < 0 ? 0 : rank, last = rank < 0 ? group->size : rank + 1;

    for (int32_t p = first; p < last; p++) {
        weft_status status = WEFT_OK;

        if (is_near(group, p) && cpu_shm_where(cpu_shm_slot(group, p)) >= SHM_BY_REFERENCE)
            status = cpu_shm_access_begin_near(group, p);
        if (status == WEFT_OK) continue;
        leave(group, first, p);
        return status;
    }
    return WEFT_OK;
}

void cpu_shm_leave_near(struct cpu_shm_group *group, int32_t rank)
{
    leave(group, rank < 0 ? 0 : rank, rank < 0 ? group->size : rank + 1);
}

void cpu_shm_access_wait(struct cpu_shm_group *group)
{
    if (!group->shares_process || atomic_load(&group->fault.status) == WEFT_OK) return;
    for (int32_t p = 0; p < group->size; p++)
        for (int i = 0; is_near(group, p) && atomic_load(count_of(group, p, group->rank)) > 0; i++)
            if (i < YIELDS)
                sched_yield();
            else
                nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
}
