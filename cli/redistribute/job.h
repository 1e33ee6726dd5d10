/* job.h - a redistribution run by ranks that the command starts: fill, run, hand back, time. */
#ifndef WEFT_CLI_REDISTRIBUTE_JOB_H
#define WEFT_CLI_REDISTRIBUTE_JOB_H

#include "redistribute/request.h"
#include "redistribute/shards.h"
#include "timing/loop.h"

struct job {
    const struct request *request;
    bool costs_given;    /* else the table that fits the backend */
    const char *backend; /* NULL: WEFT_BACKEND */
    int32_t ranks;
    bool packed;
    uint64_t iters; /* timed runs; 0: as many as fit BUDGET_NS */
    uint64_t budget_ns;
    struct shards results; /* what every rank of the target's mesh got; empty: not wanted */
};

struct job_outcome {
    struct bench_times times;
    uint64_t limit_ns; /* what memcpy takes for the bytes that must be read and written */
    uint64_t scratch;  /* bytes, on the rank that needs most */
    bool one_sided;    /* ranks read each other's memory, else messages are packed */
    char backend[64];
    char plan[2048];
};

/* The most ranks that either mesh has a number for. */
int64_t job_ranks_needed(const struct request *request);
/* Bytes that a rank must read and write for its shard of TO, as a memcpy that does both:
 * contributions that several ranks want reduced count once. */
uint64_t job_copied_bytes(const weft_spec *from, const weft_spec *to);
weft_status job_run(struct job *job, struct job_outcome *out);

#endif
