/* plugin.c - one plugin, by name or by path. */
#include "common/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A copy of the path in WEFT_BACKEND whose file has the plugin NAME, NULL if no path has it. */
static char *find_path(const char *name)
{
    const char *list = cli_variable("WEFT_BACKEND");
    struct wf_text file = {0};
    char *path = NULL;

    wf_text_add(&file, "/libweft_plugin_%s.so", name);
    while (list != NULL && *list != '\0' && !file.failed && path == NULL) {
        size_t length = strcspn(list, ",");

        if (*list == '/' && length >= file.length &&
            memcmp(list + length - file.length, file.data, file.length) == 0)
            path = strndup(list, length);
        list += length + (list[length] == ',');
    }
    wf_text_free(&file);
    return path;
}

bool cli_plugin(const struct cli_command *command, const char *argument, char **out, int *exit_code)
{
    if (strpbrk(argument, "/.") != NULL) { /* a name has neither */
        *out = realpath(argument, NULL);
        if (*out == NULL) {
            cli_fail_file(command, argument, errno);
            *exit_code = CLI_NO;
        }
        return *out != NULL;
    }
    *out = find_path(argument);
    if (*out == NULL) *out = strdup(argument);
    if (*out == NULL) {
        cli_complain(command, "out of memory");
        *exit_code = CLI_ENVIRONMENT;
    }
    return *out != NULL;
}
