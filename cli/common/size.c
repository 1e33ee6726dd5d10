/* size.c - sizes in bytes, as people write them. */
#include "common/cli.h"

#include "base/text/size.h"

#include <string.h>

bool cli_size(const struct cli_command *command, const struct cli_args *args, const char *name,
              int64_t fallback, int64_t *out)
{
    const char *text = cli_value(command, args, name);
    int64_t value = fallback;
    size_t taken = text != NULL ? wf_scan_size(text, &value) : 0;

    if (text != NULL && (taken == 0 || text[taken] != '\0')) {
        fprintf(stderr, "weft %s: --%s is \"%s\"; expected a size such as 65536, 64KiB or 1GiB\n",
                command->name, name, text);
        return false;
    }
    *out = value;
    return true;
}
