/* size.c - sizes in bytes, as people write them. */
#include "common/cli.h"

#include <inttypes.h>
#include <string.h>

size_t cli_scan_size(const char *text, int64_t *out)
{
    static const char units[] = "KMGT";
    struct wf_scan scan = {text, 0};
    int64_t value, factor = 1;
    const char *unit;

    if (wf_scan_int(&scan, "a size", &value) != WEFT_OK || value == 0) return 0;
    unit = wf_scan_peek(&scan) != '\0' ? strchr(units, wf_scan_peek(&scan)) : NULL;
    if (unit != NULL) {
        factor = INT64_C(1) << 10 * (unit - units + 1);
        scan.at++;
        wf_scan_char(&scan, 'i');
    }
    wf_scan_char(&scan, 'B');
    if (!wf_mul_i64(value, factor, &value)) return 0;
    *out = value;
    return scan.at;
}

bool cli_size(const struct cli_command *command, const struct cli_args *args, const char *name,
              int64_t fallback, int64_t *out)
{
    const char *text = cli_value(command, args, name);
    int64_t value = fallback;
    size_t taken = text != NULL ? cli_scan_size(text, &value) : 0;

    if (text != NULL && (taken == 0 || text[taken] != '\0')) {
        fprintf(stderr, "weft %s: --%s is \"%s\"; expected a size such as 65536, 64KiB or 1GiB\n",
                command->name, name, text);
        return false;
    }
    *out = value;
    return true;
}
