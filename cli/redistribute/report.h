/* report.h - the output of `weft redistribute` and `weft sim`. */
#ifndef WEFT_CLI_REDISTRIBUTE_REPORT_H
#define WEFT_CLI_REDISTRIBUTE_REPORT_H

#include "redistribute/job.h"
#include "redistribute/work.h"

struct report {
    const struct request *request;
    int64_t ranks;
    bool simulated;
    struct job_outcome outcome;
    enum plan_form form; /* PLAN_JSON: print JSON */
    struct wf_text plan; /* in that form; freed by the caller */
    struct work *work;   /* of which the check is the last part */
};

/* Check RESULTS, write them to the directory of --dump if it is given, and print.  Returns the
 * exit code. */
int report_results(const struct cli_command *command, const struct cli_args *args,
                   const struct report *report, const struct shards *results);

#endif
