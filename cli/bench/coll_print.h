/* coll_print.h - the output of `weft bench coll`. */
#ifndef WEFT_CLI_BENCH_COLL_PRINT_H
#define WEFT_CLI_BENCH_COLL_PRINT_H

#include "bench/coll.h"
#include "common/cli.h"

/* Print all rows as tables or as JSON.  Returns the exit code of the command. */
int coll_print(const struct cli_command *command, const struct coll_request *request,
               const struct coll_row *rows, int count, bool as_json);

#endif
