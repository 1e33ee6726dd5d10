/* records.h - answers to recorded calls: `weft op --records`. */
#ifndef WEFT_CLI_RECORDS_H
#define WEFT_CLI_RECORDS_H

#include "common/cli.h"

/* Append the answer to the record LINE, an object on a line of its own: that of `weft op --json`
 * with its id, or the id and an error. */
weft_status op_record_answer(const char *line, const weft_cost_table *costs, struct wf_text *out);

/* Answer each line of PATH; "-" is standard input.  Returns the exit code. */
int op_records_answer(const struct cli_command *command, const char *path,
                      const weft_cost_table *costs);

#endif
