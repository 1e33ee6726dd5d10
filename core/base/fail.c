/* fail.c - error texts that say more than a function's own: where it happened, and what is known of
 * the cause. */
#include "base.h"
#undef wf_fail
#undef wf_fail_context
#undef wf_fail_named
#undef wf_fail_memory

#include "weft/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

weft_status wf_fail_context(weft_status status, const char *format, ...)
{
    char text[WF_ERROR_BYTES];

    KIT_PRINT_REST(text, format);
    return wf_fail_reword(status, "%s: %s", text, weft_last_error());
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
    if (status == WEFT_OK || is_named(weft_last_error(), function)) return status;
    return wf_fail_context(status, "%s", function);
}

weft_status wf_fail_about(weft_status status, const char *function, const char *about)
{
    char text[WF_ERROR_BYTES];
    const char *last = weft_last_error();
    size_t length = strlen(function);
    bool begins =
        strncmp(last, function, length) == 0 && last[length] == ':' && last[length + 1] == ' ';

    snprintf(text, sizeof text, "%s", begins ? last + length + 2 : last);
    return wf_fail_named(wf_fail_reword(status, "%s: %s", about, text), function);
}

static bool is_error(weft_status status)
{
    return status < 0 && strcmp(weft_status_name(status), "unknown") != 0;
}

weft_status wf_fail_callback(weft_status status, uint64_t before, const char *what)
{
    if (!is_error(status))
        return wf_fail(WEFT_ERR_INVALID, "%s returned %d, which is not an error of weft", what,
                       (int)status);
    if (wf_failure_count() == before)
        return wf_fail(status, "%s returned %s: %s", what, weft_status_name(status),
                       weft_status_text(status));
    return wf_fail_context(status, "%s returned %s", what, weft_status_name(status));
}

weft_status wf_fail_memory(size_t bytes)
{
    return wf_fail(WEFT_ERR_NO_MEMORY, "out of memory: cannot allocate %zu bytes%s", bytes,
                   kit_limit_text(ENOMEM));
}

weft_status wf_fail_null(const char *function, const char *argument)
{
    return wf_fail(WEFT_ERR_INVALID, "%s: %s is NULL", function, argument);
}
