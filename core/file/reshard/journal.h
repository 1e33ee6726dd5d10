/* journal.h - the steps of resharding that are done, in a file beside the output.
 *
 * A step is recorded when its bytes are on the disk.  So an interrupted run can be continued, also
 * after a power failure.  The journal is PATH.weft-journal; it is removed with the commit. */
#ifndef WEFT_FILE_JOURNAL_H
#define WEFT_FILE_JOURNAL_H

#include "file/output.h"
#include "file/reshard/reshard.h"

struct wf_journal {
    int fd; /* -1: none */
    char *path;
    uint64_t steps, words;
    _Atomic uint64_t *done; /* bit per step */
    _Atomic uint64_t *sums; /* checksum per step; NULL: none are kept */
    uint64_t *copy;         /* of `done`, while the files are flushed */
    uint64_t recorded;      /* steps in the file */
};

/* The plan that a journal belongs to. */
struct wf_journal_plan {
    uint64_t digest; /* of all that decides what is written, and of the source's files */
    uint64_t buffer, steps;
};

/* Read the plan of the journal at PATH.weft-journal.  WEFT_ERR_NOT_FOUND: it does not exist. */
weft_status wf_journal_peek(const char *path, struct wf_journal_plan *out) WF_NODISCARD;
/* Begin a journal for PATH, or with RESUME go on with that of PLAN. */
weft_status wf_journal_begin(struct wf_journal *journal, const char *path,
                             const struct wf_journal_plan *plan, bool sums,
                             bool resume) WF_NODISCARD;
bool wf_journal_has(const struct wf_journal *journal, uint64_t step);
/* Step STEP is written. */
void wf_journal_add(struct wf_journal *journal, uint64_t step, uint64_t sum);
/* Flush the files of OUTPUT, then record the steps that were added before. */
weft_status wf_journal_record(struct wf_journal *journal,
                              const struct wf_outputs *output) WF_NODISCARD;
/* Close the journal; unless KEEP, remove it. */
void wf_journal_end(struct wf_journal *journal, bool keep);

/* ---- digest.c ---- */

/* The digest of RESHARD's plan. */
weft_status wf_reshard_digest(const weft_reshard *reshard, uint64_t *out) WF_NODISCARD;

#endif
