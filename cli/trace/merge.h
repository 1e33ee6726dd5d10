/* merge.h - several ranks' traces as one, on one clock. */
#ifndef WEFT_CLI_TRACE_MERGE_H
#define WEFT_CLI_TRACE_MERGE_H

#include "trace/reader.h"

struct trace_file {
    const char *name;
    uint8_t *data;
    size_t bytes;
    struct trace_facts facts;
};

/* Check that the FILES, whose facts are read, can be merged: one job, each rank once. */
weft_status trace_merge_check(const struct trace_file *files, size_t count) WF_NODISCARD;
/* Add the packets of FILES to OUT, with times of rank 0's clock, or of the server's without rank 0.
 * PROGRESS may be NULL.  *BOUND_NS is the largest error of a time. */
weft_status trace_merge(const struct trace_file *files, size_t count,
                        const struct trace_progress *progress, struct wf_text *out,
                        uint64_t *bound_ns) WF_NODISCARD;

#endif
