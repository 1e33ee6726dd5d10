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

/* Read --stages, the layers of each stage: "5,6*10,5" is 5, ten times 6, and 5.  Without the option
 * *OUT is NULL.  False after printing an error.  The caller frees *OUT with wf_free. */
bool schedule_stages(const struct cli_command *command, const struct cli_args *args, uint32_t **out,
                     size_t *count);

#endif
