/* status.c - names of statuses, and the last error of the calling thread. */
#include "base.h"
#undef wf_fail
#undef wf_fail_context
#undef wf_fail_named
#undef wf_fail_memory

#include "weft/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifndef WEFT_VERSION_STRING
#error "the build defines WEFT_VERSION_STRING"
#endif

static _Thread_local struct {
    char text[2048];
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
    va_list args;

    va_start(args, format);
    wf_printv(text, sizeof text, format, args);
    va_end(args);
    set_error(NULL, 0, text);
    if (status != WEFT_OK) wf_log(WF_LOG_DEBUG, "%s: %s", weft_status_name(status), text);
    return status;
}

weft_status weft_fail(weft_status status, const char *format, ...)
{
    char text[sizeof last.text];
    va_list args;

    if (format == NULL) return wf_fail(status, "%s", weft_status_text(status));
    va_start(args, format);
    wf_printv(text, sizeof text, format, args);
    va_end(args);
    return wf_fail(status, "%s", text);
}

void wf_fail_vendor(weft_status status, const char *vendor, int64_t code, const char *text)
{
    set_error(vendor, code, text != NULL ? text : weft_status_text(status));
}

weft_status wf_fail_context(weft_status status, const char *format, ...)
{
    char text[sizeof last.text];
    va_list args;
    int used;

    va_start(args, format);
    used = wf_printv(text, sizeof text, format, args);
    va_end(args);
    if (used < 0) used = 0;
    if ((size_t)used < sizeof text)
        snprintf(text + used, sizeof text - (size_t)used, ": %s", last.text);
    snprintf(last.text, sizeof last.text, "%s", text);
    return status;
}

static bool is_word(char c)
{
    return (wf_lower(c) >= 'a' && wf_lower(c) <= 'z') || (c >= '0' && c <= '9');
}

/* True if TEXT has FUNCTION as a whole word: weft_move is not named by weft_move_clear. */
static bool is_named(const char *text, const char *function)
{
    size_t length = strlen(function);

    for (const char *at = strstr(text, function); at != NULL; at = strstr(at + 1, function))
        if (at[length] != '_' && !is_word(at[length])) return true;
    return false;
}

weft_status wf_fail_named(weft_status status, const char *function)
{
    if (status == WEFT_OK || is_named(last.text, function)) return status;
    return wf_fail_context(status, "%s", function);
}

weft_status wf_fail_about(weft_status status, const char *function, const char *about)
{
    size_t length = strlen(function);
    bool begins = strncmp(last.text, function, length) == 0 && last.text[length] == ':' &&
                  last.text[length + 1] == ' ';

    if (begins) memmove(last.text, last.text + length + 2, strlen(last.text + length + 2) + 1);
    return wf_fail_named(wf_fail_context(status, "%s", about), function);
}

uint64_t wf_failure_count(void)
{
    return last.count;
}

static bool is_error(weft_status status)
{
    for (size_t i = 0; i < WF_COUNT(statuses); i++)
        if (statuses[i].status == status) return status < 0;
    return false;
}

weft_status wf_fail_callback(weft_status status, uint64_t before, const char *what)
{
    if (!is_error(status))
        return wf_fail(WEFT_ERR_INVALID, "%s returned %d, which is not an error of weft", what,
                       (int)status);
    if (last.count == before)
        return wf_fail(status, "%s returned %s: %s", what, weft_status_name(status),
                       weft_status_text(status));
    return wf_fail_context(status, "%s returned %s", what, weft_status_name(status));
}

weft_status wf_fail_memory(size_t bytes)
{
    return wf_fail(WEFT_ERR_NO_MEMORY, "out of memory: cannot allocate %zu bytes%s", bytes,
                   wf_limit_text(ENOMEM));
}

weft_status wf_fail_null(const char *function, const char *argument)
{
    return wf_fail(WEFT_ERR_INVALID, "%s: %s is NULL", function, argument);
}
