/* size.c - see size.h. */
#include "base/text/size.h"

#include "base/base.h"

#include <string.h>

size_t wf_scan_size(const char *text, int64_t *out)
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
