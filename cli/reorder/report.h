/* report.h - what a pass has changed in a graph. */
#ifndef WEFT_CLI_REORDER_REPORT_H
#define WEFT_CLI_REORDER_REPORT_H

#include "common/cli.h"

/* Append the report of REORDER, which PASS has made of the nodes of GRAPH under the memory limit
 * LIMIT, 0 for none. */
weft_status reorder_add_text(const weft_graph *graph, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out) WF_NODISCARD;
weft_status reorder_add_json(const weft_graph *graph, const weft_reorder *reorder, const char *pass,
                             uint64_t limit, struct wf_text *out) WF_NODISCARD;

#endif
