/* cases.c - all ranks open a case, run it, and close it with one verdict. */
#include "conform/progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void kit_progress_fail(struct kit_progress *progress, int level, const char *name, int32_t rank,
                       const char *text)
{
    uint32_t at = atomic_load(&progress->failure_count);

    atomic_fetch_add(&progress->levels[level].failed, 1);
    if (at < KIT_MAX_FAILURES) {
        struct kit_failure *failure = &progress->failures[at];
        memcpy(failure->name, name, strnlen(name, sizeof failure->name - 1));
        memcpy(failure->text, text, strnlen(text, sizeof failure->text - 1));
        failure->rank = rank;
    }
    atomic_store(&progress->failure_count, at + 1);
}

static struct kit_verdict *verdict(struct kit *kit, int32_t rank)
{
    return &kit->progress->places[rank].verdicts[kit->cases_run % 2];
}

static bool avoided(const struct kit_progress *progress, const char *name)
{
    for (uint32_t i = 0; i < progress->avoid_count; i++)
        if (kit_case_matches(progress->avoid[i], name)) return true;
    return false;
}

/* Show the watcher what this rank is about to do. */
static void set_place(struct kit *kit, const char *name)
{
    struct kit_place *place = &kit->progress->places[kit->rank];

    atomic_store(&place->started_ns, 0);
    snprintf(place->case_name, sizeof place->case_name, "%s", name);
    atomic_store(&place->case_number, kit->case_number);
    kit_allow_again(kit);
    atomic_store(&place->started_ns, wf_now_ns());
}

bool kit_aside(struct kit *kit, const char *name)
{
    if (avoided(kit->progress, name)) return false;
    set_place(kit, name);
    return true;
}

void kit_aside_over(struct kit *kit)
{
    atomic_store(&kit->progress->places[kit->rank].started_ns, 0);
}

bool kit_begin(struct kit *kit, const char *format, ...)
{
    char name[KIT_NAME_BYTES];
    va_list args;
    int used = snprintf(name, sizeof name, "%s/", kit_levels[kit->level].name);

    va_start(args, format);
    vsnprintf(name + used, sizeof name - (size_t)used, format, args);
    va_end(args);
    if (kit->over) return false;
    if (kit->options->only != NULL && !kit->any_case && !kit_case_matches(kit->options->only, name))
        return false;
    if (kit->options->without != NULL && kit_case_matches(kit->options->without, name))
        return false;
    kit->case_number++;
    if (kit->case_number <= kit->progress->resume_after) return false;
    if (avoided(kit->progress, name)) {
        if (kit->rank == 0) atomic_fetch_add(&kit->progress->levels[kit->level].lost, 1);
        return false;
    }
    kit->cases_run++;
    atomic_store(&verdict(kit, kit->rank)->failed, 0);
    set_place(kit, name);
    kit->case_failed = false;
    return true;
}

void kit_allow(struct kit *kit, int64_t limit_ns)
{
    uint64_t limit = (uint64_t)(limit_ns * kit->options->patience);

    atomic_store(&kit->progress->places[kit->rank].deadline_ns, wf_now_ns() + limit);
}

void kit_allow_again(struct kit *kit)
{
    kit_allow(kit, 2 * kit->options->timeout_ns + 3 * KIT_SECOND);
}

void kit_fail(struct kit *kit, const char *format, ...)
{
    struct kit_verdict *mine = verdict(kit, kit->rank);
    va_list args;

    if (kit->case_failed) return;
    kit->case_failed = true;
    va_start(args, format);
    vsnprintf(mine->text, sizeof mine->text, format, args);
    va_end(args);
    atomic_store(&mine->failed, 1);
}

/* Synchronize the first SIZE ranks and count the verdict. */
static bool close_case(struct kit *kit, int32_t size)
{
    struct kit_place *place = &kit->progress->places[kit->rank];
    int32_t first = -1;

    kit_synchronize(kit, kit->groups[0].ranks, size);
    for (int32_t rank = size; rank-- > 0;)
        if (atomic_load(&verdict(kit, rank)->failed)) first = rank;
    if (kit->rank == 0 && first >= 0)
        kit_progress_fail(kit->progress, kit->level, place->case_name, first,
                          verdict(kit, first)->text);
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

void kit_skip(struct kit *kit, const char *format, ...)
{
    struct kit_level_result *result = &kit->progress->levels[kit->level];
    va_list args;

    if (kit->rank != 0) return;
    va_start(args, format);
    vsnprintf(result->skipped, sizeof result->skipped, format, args);
    va_end(args);
}

bool kit_expect(struct kit *kit, const char *what, weft_status status, weft_status want)
{
    if (status == want) return true;
    if (status == WEFT_OK)
        kit_fail(kit, "%s: expected WEFT_%s, got WEFT_OK", what, weft_status_name(want));
    else
        kit_fail(kit, "%s: expected WEFT_%s, got WEFT_%s (%s)", what, weft_status_name(want),
                 weft_status_name(status), weft_last_error());
    return false;
}

bool kit_check(struct kit *kit, bool holds, const char *format, ...)
{
    char text[KIT_TEXT_BYTES];
    va_list args;

    if (holds) return true;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    kit_fail(kit, "%s", text);
    return false;
}
