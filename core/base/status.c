/* status.c - names of statuses, and the last error of the calling thread. */
#include "base.h"
#undef wf_fail

#include "weft/status.h"

#include <stdio.h>
#include <string.h>

#ifndef WEFT_VERSION_STRING
#error "the build defines WEFT_VERSION_STRING"
#endif

static _Thread_local struct {
    char text[WF_ERROR_BYTES];
    char vendor[32];
    int64_t code;
    uint64_t count; /* texts set so far */
} last;

static const struct {
    weft_status status;
    const char *name, *text;
} statuses[] = {
#define ROW(name, value, text) {value, #name, text},
    WEFT_STATUS_LIST(ROW)
#undef ROW
};

const char *weft_status_name(weft_status status)
{
    for (size_t i = 0; i < WF_COUNT(statuses); i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "unknown";
}

const char *weft_status_text(weft_status status)
{
    for (size_t i = 0; i < WF_COUNT(statuses); i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "unknown";
}

const char *weft_last_error(void)
{
    return last.text;
}

const char *weft_last_error_vendor(int64_t *code)
{
    if (code != NULL) *code = last.code;
    return last.vendor[0] != '\0' ? last.vendor : NULL;
}

const char *weft_version(void)
{
    return WEFT_VERSION_STRING;
}

static void set_error(const char *vendor, int64_t code, const char *text)
{
    size_t length = strnlen(text, sizeof last.text - 1);

    last.count++;
    memmove(last.text, text, length); /* TEXT may be last.text itself */
    last.text[length] = '\0';
    if (vendor != last.vendor)
        snprintf(last.vendor, sizeof last.vendor, "%s", vendor != NULL ? vendor : "");
    last.code = vendor != NULL ? code : 0;
}

weft_status wf_fail(weft_status status, const char *format, ...)
{
    char text[sizeof last.text];

    KIT_PRINT_REST(text, format);
    set_error(NULL, 0, text);
    if (status != WEFT_OK) wf_log(WF_LOG_DEBUG, "%s: %s", weft_status_name(status), text);
    return status;
}

weft_status weft_fail(weft_status status, const char *format, ...)
{
    char text[sizeof last.text];

    if (format == NULL) return wf_fail(status, "%s", weft_status_text(status));
    KIT_PRINT_REST(text, format);
    return wf_fail(status, "%s", text);
}

void wf_fail_vendor(weft_status status, const char *vendor, int64_t code, const char *text)
{
    set_error(vendor, code, text != NULL ? text : weft_status_text(status));
}

weft_status wf_fail_reword(weft_status status, const char *format, ...)
{
    char text[sizeof last.text];

    KIT_PRINT_REST(text, format);
    snprintf(last.text, sizeof last.text, "%s", text);
    return status;
}

uint64_t wf_failure_count(void)
{
    return last.count;
}
