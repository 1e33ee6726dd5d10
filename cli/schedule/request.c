/* request.c - see request.h. */
#include "schedule/request.h"

#include <string.h>

bool schedule_is_file(const char *word)
{
    return strcmp(word, "-") == 0 || strpbrk(word, "./") != NULL;
}

bool schedule_read(const struct cli_command *command, const struct cli_args *args, const char *path,
                   weft_schedule **out, int *exit_code)
{
    static const char *const sizes[] = {"chunks", "microbatches"};
    struct wf_text text = {0};
    weft_status status;

    for (size_t i = 0; i < WF_COUNT(sizes); i++)
        if (cli_has(command, args, sizes[i])) {
            cli_complain(command, "--%s is for a schedule by name; a file has its own sizes",
                         sizes[i]);
            *exit_code = CLI_USAGE;
            return false;
        }
    if (!cli_read_file(command, path, &text, exit_code)) {
        wf_text_free(&text);
        return false;
    }
    status = weft_schedule_parse(text.data, out);
    wf_text_free(&text);
    if (status != WEFT_OK) *exit_code = cli_fail(command, status);
    return status == WEFT_OK;
}

/* The text begins with the name of the library's function.  Users know the option, or the argument
 * if the command has no such option. */
static weft_status name_the_option(const struct cli_command *command, weft_status status)
{
    static const char function[] = "weft_schedule_create: ";
    const char *option = "", *text = weft_last_error();
    char copy[512];

    for (const struct cli_option *o = command->options; o->name != NULL; o++)
        if (strcmp(o->name, "schedule") == 0) option = "--schedule: ";
    if (strncmp(text, function, strlen(function)) == 0) text += strlen(function);
    snprintf(copy, sizeof copy, "%s", text);
    return wf_fail(status, "%s%s", option, copy);
}

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
    *exit_code = cli_fail(command, name_the_option(command, status));
    if (*exit_code == CLI_NO) *exit_code = CLI_USAGE;
    return false;
}
