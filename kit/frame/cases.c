/* cases.c - all ranks open a case, run it, and close it with one verdict. */
#include "progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kit_begin(struct kit *kit, const char *format, ...)
{
    char name[KIT_NAME_BYTES];
    va_list args;
    int used = snprintf(name, sizeof name, "%s/", kit->level_name);

    va_start(args, format);
    vsnprintf(name + used, sizeof name - (size_t)used, format, args);
    va_end(args);
    if (kit->over) return false;
    if (kit->options->only != NULL && !kit->any_case && !kit_case_matches(kit->options->only, name))
        return false;
    if (kit->options->skip != NULL && kit_case_matches(kit->options->skip, name)) return false;
    kit->case_number++;
    if (kit->case_number <= kit->progress->resume_after) return false;
    if (kit_is_avoided(kit->progress, name)) {
        if (kit->rank == 0) atomic_fetch_add(&kit->progress->levels[kit->level].lost, 1);
        return false;
    }
    kit->cases_run++;
    atomic_store(&kit_verdict_of(kit, kit->rank)->failed, 0);
    kit_place_set(kit, name);
    kit->case_failed = false;
    return true;
}

/* Synchronize the first SIZE ranks and count the verdict. */
static bool close_case(struct kit *kit, int32_t size)
{
    struct kit_place *place = &kit->progress->places[kit->rank];
    int32_t first = -1;

    kit_synchronize(kit, kit->groups[0].ranks, size);
    for (int32_t rank = size; rank-- > 0;)
        if (atomic_load(&kit_verdict_of(kit, rank)->failed)) first = rank;
    if (kit->rank == 0 && first >= 0)
        kit_progress_fail(kit->progress, kit->level, place->case_name, first,
                          kit_verdict_of(kit, first)->text);
    else if (kit->rank == 0)
        atomic_fetch_add(&kit->progress->levels[kit->level].passed, 1);
    atomic_store(&place->started_ns, 0);
    kit->case_failed = true; /* no case is open, so kit_fail has no effect */
    return first < 0;
}

bool kit_end(struct kit *kit)
{
    bool passed = close_case(kit, kit->size);

    if (!passed) kit_comms_drop(kit);
    return passed;
}

void kit_end_without(struct kit *kit, int32_t dead)
{
    close_case(kit, dead);
    kit->over = true;
}

_Noreturn void kit_die(struct kit *kit)
{
    atomic_store(&kit->progress->places[kit->rank].dying, 1);
    raise(SIGKILL);
    abort();
}

uint64_t kit_case_seed(const struct kit *kit)
{
    const char *name = kit->progress->places[kit->rank].case_name;

    return wf_hash(kit->options->seed, name, strlen(name));
}
