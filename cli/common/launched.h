/* launched.h - this process as one rank of a launcher's job. */
#ifndef WEFT_CLI_LAUNCHED_H
#define WEFT_CLI_LAUNCHED_H

#include "common/cli.h"

struct cli_launched {
    int32_t rank, size;    /* 0 of 1 without a launcher */
    weft_context *context; /* NULL without a launcher */
    uint64_t *memory;      /* the backend's, for sums */
};

/* Join the job, if a launcher started this process. */
weft_status cli_launched_join(struct cli_launched *out);
/* Replace each of COUNT values by its sum over all ranks. */
weft_status cli_launched_sum(const struct cli_launched *launched, size_t count, uint64_t *values);
/* Leave the job.  After a failure the process ends without a release, so that other ranks fail
 * too. */
weft_status cli_launched_leave(struct cli_launched *launched);

#endif
