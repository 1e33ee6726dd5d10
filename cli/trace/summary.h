/* summary.h - predicted and measured times of steps, and the share of each kind of operation. */
#ifndef WEFT_CLI_TRACE_SUMMARY_H
#define WEFT_CLI_TRACE_SUMMARY_H

#include "trace/reader.h"

/* Add the summary of a file of BYTES called NAME to OUT, as a table or as JSON.  PROGRESS may be
 * NULL. */
weft_status trace_summarize(const char *name, const uint8_t *data, size_t bytes, bool as_json,
                            const struct trace_progress *progress,
                            struct wf_text *out) WF_NODISCARD;

#endif
