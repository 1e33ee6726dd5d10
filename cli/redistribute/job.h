/* job.h - a redistribution on ranks that the command starts: fill the source, run, return the
 * results, measure. */
#ifndef WEFT_CLI_REDISTRIBUTE_JOB_H
#define WEFT_CLI_REDISTRIBUTE_JOB_H

#include "common/tally.h"
#include "redistribute/planned.h"
#include "redistribute/shards.h"
#include "redistribute/work.h"
#include "timing/loop.h"

/* How job_run returns the plan. */
enum plan_form { PLAN_NONE, PLAN_LINES, PLAN_JSON };

struct job {
    const struct request *request;
    bool costs_given;    /* else the cost table of the backend is used */
    const char *backend; /* NULL: WEFT_BACKEND */
    int32_t ranks;
    bool packed;
    bool counted;   /* count the operations of one run */
    uint64_t iters; /* timed runs; 0: as many as fit BUDGET_NS */
    uint64_t budget_ns;
    struct shards results; /* the result of each rank of the target's mesh; empty: not wanted */
    enum plan_form form;
    struct work *work; /* what rank 0 fills is added to it; NULL: not wanted */
};

struct job_outcome {
    struct bench_times times;
    uint64_t limit_ns; /* time of memcpy for the bytes that must be read and written */
    uint64_t scratch;  /* bytes on the rank that needs most */
    bool one_sided;    /* ranks read each other's memory; else messages are packed */
    char backend[64];
    struct tally tally; /* operations of one run, if they are counted */
};

/* The largest rank of both meshes, plus 1. */
int64_t job_ranks_needed(const struct request *request);
/* The size of a memcpy that reads and writes as many bytes as a rank must for its shard of TO.
 * Contributions that several ranks reduce count once. */
uint64_t job_copied_bytes(const weft_spec *from, const weft_spec *to);
/* Add PLANNED in FORM: a line per step, or the members of planned_add_members. */
weft_status job_describe(const struct planned *planned, enum plan_form form, struct wf_text *out);
/* Run JOB and add its plan to PLAN, which the caller frees; NULL for PLAN_NONE. */
weft_status job_run(const struct job *job, struct job_outcome *out, struct wf_text *plan);

#endif
