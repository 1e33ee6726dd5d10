/* meeting.c - the ranks of a team synchronize outside the plugin, through memory that they share.
 */
#include "progress.h"

#include <sched.h>
#include <string.h>
#include <time.h>

void kit_nap(int64_t nanoseconds)
{
    nanosleep(
        &(struct timespec){.tv_sec = nanoseconds / KIT_SECOND, .tv_nsec = nanoseconds % KIT_SECOND},
        NULL);
}

void kit_pause(uint32_t tries)
{
    if (tries < 64) return;
    if (tries < 1024)
        sched_yield();
    else
        kit_nap(50000);
}

void kit_synchronize(struct kit *kit, const int32_t *ranks, int32_t size)
{
    struct kit_progress *progress = kit->progress;

    atomic_store(&progress->places[kit->rank].waiting, 1);
    for (int32_t i = 0; i < size; i++)
        atomic_store(&progress->meetings[kit->rank][ranks[i]], ++kit->met[ranks[i]]);
    for (int32_t i = 0; i < size; i++) {
        const _Atomic uint32_t *theirs = &progress->meetings[ranks[i]][kit->rank];
        for (uint32_t tries = 0; (int32_t)(atomic_load(theirs) - kit->met[ranks[i]]) < 0; tries++)
            kit_pause(tries);
    }
    atomic_store(&progress->places[kit->rank].waiting, 0);
}

void kit_gather(struct kit *kit, const struct kit_group *group, const void *mine, void *all,
                uint64_t bytes)
{
    uint8_t *out = all;

    for (uint64_t at = 0; at < bytes; at += KIT_BOX_BYTES) {
        uint64_t part = bytes - at < KIT_BOX_BYTES ? bytes - at : KIT_BOX_BYTES;
        memcpy(kit->progress->boxes[kit->rank], (const uint8_t *)mine + at, part);
        kit_synchronize(kit, group->ranks, group->size);
        for (int32_t i = 0; i < group->size; i++)
            memcpy(out + (uint64_t)i * bytes + at, kit->progress->boxes[group->ranks[i]], part);
        kit_synchronize(kit, group->ranks, group->size);
    }
}
