/* journal.h - the steps of resharding that are done, in a file beside the output.
 *
 * A step is recorded when its bytes are on the disk.  So an interrupted run can be continued, also
 * after a power failure.  The journal is PATH.weft-journal; it is removed with the commit.  Of
 * several processes, each records its own steps: process 2 in PATH.weft-journal-2.  When a run is
 * resumed, with any number of processes, the first one takes the steps of all journals into its
 * own, and the others read that. */
#ifndef WEFT_FILE_JOURNAL_H
#define WEFT_FILE_JOURNAL_H

#include "checkpoint/io/output.h"
#include "checkpoint/reshard/reshard.h"

struct wf_journal {
    int fd; /* -1: none */
    char *path;
    uint64_t steps, words;
    _Atomic uint64_t *done; /* bit per step */
    _Atomic uint64_t *sums; /* checksum per step; NULL: none are kept */
    uint64_t *copy;         /* of `done`, while the files are flushed */
    uint64_t recorded;      /* steps in the file */
    uint64_t number;        /* of the last record in the file; 0: none */
    uint64_t others; /* of the first process: journals of other processes, to be removed too */
};

/* The plan that a journal belongs to. */
struct wf_journal_plan {
    uint64_t digest; /* of all that decides what is written, and of the source's files */
    uint64_t buffer, steps;
};

/* Read the plan of the journal at PATH.weft-journal.  WEFT_ERR_NOT_FOUND: it does not exist.
 * WEFT_ERR_PARSE: it is not a journal, or its process ended before the first record. */
weft_status wf_journal_peek(const char *path, struct wf_journal_plan *out) WF_NODISCARD;
/* Begin the journal of process PART of PARTS for PATH.  With RESUME, with the steps that all
 * journals of an earlier run of PLAN have.  The first process calls it before the others. */
weft_status wf_journal_begin(struct wf_journal *journal, const char *path, int32_t part,
                             int32_t parts, const struct wf_journal_plan *plan, bool sums,
                             bool resume) WF_NODISCARD;
bool wf_journal_has(const struct wf_journal *journal, uint64_t step);
/* Step STEP is written. */
void wf_journal_add(struct wf_journal *journal, uint64_t step, uint64_t sum);
/* Flush the files of OUTPUT, then record the steps that were added before.  After a failure,
 * nothing more is recorded. */
weft_status wf_journal_record(struct wf_journal *journal, struct wf_outputs *output) WF_NODISCARD;
/* Close the journal; unless KEEP, remove it.  The first process removes those of all others, also
 * of an earlier run. */
void wf_journal_end(struct wf_journal *journal, bool keep);

/* ---- digest.c ---- */

/* The digest of RESHARD's plan. */
weft_status wf_reshard_digest(const weft_reshard *reshard, uint64_t *out) WF_NODISCARD;

#endif
