/* fail.c - core/base fails through the library, so that weft_last_error has the texts of both.
 *
 * The tool compiles core/base into itself, without status.c, and links libweft. */
#include "base/base.h"
#undef wf_fail
#undef wf_fail_context
#undef wf_fail_memory

#include "weft/status.h"

#include <errno.h>
#include <stdio.h>

enum { TEXT_BYTES = 2048 };

weft_status wf_fail(weft_status status, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return weft_fail(status, "%s", text);
}

weft_status wf_fail_context(weft_status status, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return weft_fail(status, "%s: %s", text, weft_last_error());
}

weft_status wf_fail_memory(size_t bytes)
{
    return weft_fail(WEFT_ERR_NO_MEMORY, "out of memory: cannot allocate %zu bytes%s", bytes,
                     wf_limit_text(ENOMEM));
}
