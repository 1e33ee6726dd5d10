/* progress.h - the state that the ranks and the watcher share, in one anonymous mapping.
 *
 * A rank writes only its own entry; rank 0 also writes the results.  The watcher reads the texts of
 * an entry only after its rank is dead or has passed the counter that publishes them. */
#ifndef WEFT_KIT_PROGRESS_H
#define WEFT_KIT_PROGRESS_H

#include "kit.h"

#include <stdatomic.h>

#define KIT_MAX_LEVELS   16
#define KIT_MAX_FAILURES 64
#define KIT_NAME_BYTES   200
#define KIT_TEXT_BYTES   600
#define KIT_BOX_BYTES    65536

/* One rank's verdict on a case; two of them, used in turn, so that a rank that is one case ahead
 * does not overwrite what others still read. */
struct kit_verdict {
    _Atomic uint32_t failed;
    char text[KIT_TEXT_BYTES];
};

struct kit_place {
    _Atomic uint64_t started_ns;  /* number of the open case; 0 between cases */
    _Atomic uint64_t deadline_ns; /* time at which the open case counts as a hang */
    _Atomic uint64_t case_number;
    _Atomic uint32_t finished; /* the rank has run all its cases */
    _Atomic uint32_t dying;    /* the rank kills itself on purpose */
    _Atomic uint32_t waiting;  /* the rank waits for others, outside the plugin */
    _Atomic uint64_t entered;  /* case_number of the last collective this rank has called */
    char case_name[KIT_NAME_BYTES];
    struct kit_verdict verdicts[2];
};

struct kit_level_result {
    _Atomic uint32_t passed, failed, lost; /* lost: skipped after a crash or hang */
    _Atomic uint32_t done;
    char skipped[KIT_NAME_BYTES]; /* why, or "" */
};

struct kit_failure {
    char name[KIT_NAME_BYTES];
    char text[KIT_TEXT_BYTES];
    int32_t rank; /* -1: not a single rank */
};

struct kit_progress {
    struct kit_place places[KIT_MAX_RANKS];
    _Atomic uint32_t
        meetings[KIT_MAX_RANKS][KIT_MAX_RANKS]; /* [a][b]: how often a has waited for b */
    struct kit_level_result levels[KIT_MAX_LEVELS];
    _Atomic uint32_t failure_count; /* may exceed the capacity of `failures` */
    struct kit_failure failures[KIT_MAX_FAILURES];

    /* Written by the watcher before it starts a team. */
    uint64_t resume_after; /* cases up to this number were done by earlier teams */
    uint32_t avoid_count;
    char avoid[16][KIT_NAME_BYTES]; /* patterns of cases that are not run again */

    char stopped[KIT_NAME_BYTES];                /* why the run ended early, or "" */
    uint64_t job;                                /* the same */
    struct kit_plugin plugin;                    /* by rank 0, after loading */
    uint8_t boxes[KIT_MAX_RANKS][KIT_BOX_BYTES]; /* for kit_gather */
};

/* ---- verdict.c: for the frame itself ---- */

struct kit_verdict *kit_verdict_of(struct kit *kit, int32_t rank);
/* True if an earlier team crashed or hung in NAME. */
bool kit_is_avoided(const struct kit_progress *progress, const char *name);
/* Show the watcher what this rank is about to do. */
void kit_place_set(struct kit *kit, const char *name);
/* Count a failure of the level at index LEVEL, and keep it if there is room. */
void kit_progress_fail(struct kit_progress *progress, int level, const char *name, int32_t rank,
                       const char *text);

#endif
