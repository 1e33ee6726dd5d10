/* verdict.c - what this rank does and finds, as the watcher and the other ranks see it. */
#include "progress.h"

#include <stdio.h>
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

struct kit_verdict *kit_verdict_of(struct kit *kit, int32_t rank)
{
    return &kit->progress->places[rank].verdicts[kit->cases_run % 2];
}

bool kit_is_avoided(const struct kit_progress *progress, const char *name)
{
    for (uint32_t i = 0; i < progress->avoid_count; i++)
        if (kit_case_matches(progress->avoid[i], name)) return true;
    return false;
}

void kit_place_set(struct kit *kit, const char *name)
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
    if (kit_is_avoided(kit->progress, name)) return false;
    kit_place_set(kit, name);
    return true;
}

void kit_aside_over(struct kit *kit)
{
    atomic_store(&kit->progress->places[kit->rank].started_ns, 0);
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
    struct kit_verdict *mine = kit_verdict_of(kit, kit->rank);
    va_list args;

    if (kit->case_failed) return;
    kit->case_failed = true;
    va_start(args, format);
    vsnprintf(mine->text, sizeof mine->text, format, args);
    va_end(args);
    atomic_store(&mine->failed, 1);
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
