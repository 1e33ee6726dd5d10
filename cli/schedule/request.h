/* request.h - the schedule that the options of a command ask for. */
#ifndef WEFT_CLI_SCHEDULE_REQUEST_H
#define WEFT_CLI_SCHEDULE_REQUEST_H

#include "common/cli.h"

/* Make the schedule NAME for RANKS ranks with the options --chunks and --microbatches; MICROBATCHES
 * without the latter.  False after printing an error, with *EXIT_CODE set: CLI_USAGE, unless the
 * machine lacks something.  The caller releases *OUT. */
bool schedule_make(const struct cli_command *command, const struct cli_args *args, const char *name,
                   int32_t ranks, int64_t microbatches, weft_schedule **out, int *exit_code);

/* WORD names a file of a schedule: "-", and words with a dot or a slash. */
bool schedule_is_file(const char *word);
/* Read the schedule of the file PATH, without --chunks and --microbatches.  The rest as in
 * schedule_make. */
bool schedule_read(const struct cli_command *command, const struct cli_args *args, const char *path,
                   weft_schedule **out, int *exit_code);

#endif
