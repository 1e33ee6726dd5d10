/* coll_print.h - what `weft bench coll` shows. */
#ifndef WEFT_CLI_BENCH_COLL_PRINT_H
#define WEFT_CLI_BENCH_COLL_PRINT_H

#include "bench/coll.h"
#include "common/cli.h"

/* All rows, as tables or as JSON.  Returns the command's exit code. */
int coll_print(const struct cli_command *command, const struct coll_request *request,
               const struct coll_row *rows, int count, bool as_json);

#endif
