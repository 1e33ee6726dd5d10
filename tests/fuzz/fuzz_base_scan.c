/* The scanner reads any text without passing its end, and a parsed number prints as it was. */
#include "fuzz.h"

#include "base/base.h"

#include <inttypes.h>
#include <string.h>

static void take_number(struct wf_scan *scan)
{
    struct wf_scan before = *scan;
    int64_t value = -1;

    if (wf_scan_int(scan, "a number", &value) == WEFT_OK) {
        const char *digits = before.text + before.at;
        char again[32];
        snprintf(again, sizeof again, "%" PRId64, value);
        while (*digits == '0' && digits + strlen(again) < before.text + scan->at)
            digits++; /* leading zeros */
        FUZZ_ASSERT(value >= 0);
        FUZZ_ASSERT(strncmp(digits, again, strlen(again)) == 0);
    } else {
        FUZZ_ASSERT(value == -1 && scan->at == before.at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *value = fuzz_string(data, size);
    struct wf_scan scan = {value, 0};
    const char *start;
    size_t length;

    while (!wf_scan_end(&scan)) {
        size_t at = scan.at;
        wf_scan_space(&scan);
        take_number(&scan);
        if (wf_scan_name(&scan, &start, &length))
            FUZZ_ASSERT(start + length == value + scan.at && length > 0);
        if (!wf_scan_word(&scan, "->") && scan.at == at)
            FUZZ_ASSERT(wf_scan_char(&scan, wf_scan_peek(&scan)));
        FUZZ_ASSERT(scan.at > at && scan.at <= strlen(value));
    }
    free(value);
    return 0;
}
