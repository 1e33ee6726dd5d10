/* file.c - the text of a file that a command is given. */
#include "cli.h"

#include <errno.h>
#include <string.h>

bool cli_read_file(const struct cli_command *command, const char *path, struct wf_text *out,
                   int *exit_code)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char bytes[4096];
    size_t count;
    int error;

    *exit_code = CLI_ENVIRONMENT;
    if (file == NULL) {
        *exit_code = cli_fail_file(command, path, errno);
        return false;
    }
    wf_text_append(out, "", 0); /* an empty file is a text too */
    errno = 0;
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) {
        wf_text_append(out, bytes, count);
        if (memchr(bytes, '\0', count) != NULL) break; /* not text; it may be endless */
    }
    error = ferror(file) ? errno : 0;
    if (file != stdin) (void)fclose(file);
    if (error == 0 && wf_text_status(out) == WEFT_OK && strlen(out->data) == out->length)
        return true;
    if (error != 0)
        *exit_code = cli_fail_file(command, path, error);
    else if (wf_text_status(out) != WEFT_OK)
        *exit_code = cli_fail(command, WEFT_ERR_NO_MEMORY);
    else
        *exit_code = cli_fail(command, wf_fail(WEFT_ERR_PARSE, "%s is not text", path));
    return false;
}
