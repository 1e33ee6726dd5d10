/* fail.c - errors and log lines of code on top of libweft go through the library, so that
 * weft_last_error and the log have the texts of all. */
#include "base/base.h"
#undef wf_fail

#include "weft/extend.h"
#include "weft/status.h"

weft_status wf_fail(weft_status status, const char *format, ...)
{
    char text[WF_ERROR_BYTES];

    KIT_PRINT_REST(text, format);
    return weft_fail(status, "%s", text);
}

weft_status wf_fail_reword(weft_status status, const char *format, ...)
{
    char text[WF_ERROR_BYTES];

    KIT_PRINT_REST(text, format);
    return weft_fail_reword(status, "%s", text);
}

uint64_t wf_failure_count(void)
{
    return weft_failure_count();
}

void wf_log(int level, const char *format, ...)
{
    char text[WF_ERROR_BYTES];

    KIT_PRINT_REST(text, format);
    weft_log((enum weft_log_level)level, "%s", text);
}
