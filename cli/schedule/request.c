/* request.c - see request.h. */
#include "schedule/request.h"

bool schedule_make(const struct cli_command *command, const struct cli_args *args, const char *name,
                   int32_t ranks, int64_t microbatches, weft_schedule **out, int *exit_code)
{
    int64_t chunks, count;
    weft_status status;

    *exit_code = CLI_USAGE;
    if (!cli_int(command, args, "chunks", 0, INT32_MAX, 0, &chunks)) return false;
    if (!cli_int(command, args, "microbatches", 1, INT32_MAX, microbatches, &count)) return false;
    status = weft_schedule_create(name, ranks, (int32_t)chunks, (int32_t)count, out);
    if (status == WEFT_OK) return true;
    *exit_code = cli_fail(command, status);
    if (*exit_code == CLI_NO) *exit_code = CLI_USAGE;
    return false;
}
