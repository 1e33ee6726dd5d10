/* job.h - a redistribution run by ranks that the command starts: fill, run, hand back, time. */
#ifndef WEFT_CLI_REDISTRIBUTE_JOB_H
#define WEFT_CLI_REDISTRIBUTE_JOB_H

#include "redistribute/planned.h"
#include "redistribute/shards.h"
#include "timing/loop.h"

/* How job_run returns the plan. */
enum plan_form { PLAN_NONE, PLAN_LINES, PLAN_JSON };

struct job {
    const struct request *request;
    bool costs_given;    /* else the table that fits the backend */
    const char *backend; /* NULL: WEFT_BACKEND */
    int32_t ranks;
    bool packed;
    uint64_t iters; /* timed runs; 0: as many as fit BUDGET_NS */
    uint64_t budget_ns;
    struct shards results; /* what every rank of the target's mesh got; empty: not wanted */
    enum plan_form form;
};

struct job_outcome {
    struct bench_times times;
    uint64_t limit_ns; /* what memcpy takes for the bytes that must be read and written */
    uint64_t scratch;  /* bytes, on the rank that needs most */
    bool one_sided;    /* ranks read each other's memory, else messages are packed */
    char backend[64];
};

/* The most ranks that either mesh has a number for. */
int64_t job_ranks_needed(const struct request *request);
/* Bytes that a rank must read and write for its shard of TO, as a memcpy that does both:
 * contributions that several ranks want reduced count once. */
uint64_t job_copied_bytes(const weft_spec *from, const weft_spec *to);
/* Add PLANNED in FORM: a line per step, or the members of planned_add_members. */
weft_status job_describe(const struct planned *planned, enum plan_form form, struct wf_text *out);
/* Run JOB and add its plan to PLAN, which the caller frees; NULL for PLAN_NONE. */
weft_status job_run(const struct job *job, struct job_outcome *out, struct wf_text *plan);

#endif
