/* report.h - what `weft reshard` prints: the plan, how far it is, and the result. */
#ifndef WEFT_CLI_RESHARD_REPORT_H
#define WEFT_CLI_RESHARD_REPORT_H

#include "common/cli.h"
#include "weft/file.h"

struct reshard_report {
    const struct cli_command *command;
    const char *path; /* of the target */
    bool as_json;
    bool is_silent;             /* another rank prints */
    uint64_t begun_ns, told_ns; /* the run; the last line or event */
};

/* The plan of a dry run, with its files and the predicted time.  Returns an exit code. */
int reshard_report_plan(const struct reshard_report *report, weft_reshard *plan,
                        const weft_reshard_info *info, uint64_t predicted_ns);
/* A run begins. */
void reshard_report_begin(struct reshard_report *report, const weft_reshard_info *info);
/* DONE of TOTAL bytes are written, of which RESUMED are of an earlier run: a line that is replaced
 * on a terminal, a line of a log, or an event.  Lines come after a second, then every ten; events
 * every second. */
void reshard_report_progress(struct reshard_report *report, uint64_t done, uint64_t resumed,
                             uint64_t total);
/* The run has ended.  Returns an exit code. */
int reshard_report_done(const struct reshard_report *report, const weft_reshard_info *info,
                        uint64_t nanoseconds);
/* The run has failed with STATUS, or was interrupted. */
void reshard_report_failed(const struct reshard_report *report, const weft_reshard_info *info,
                           weft_status status, bool interrupted);

#endif
