/* print.c - texts and numbers without the locale of the program. */
#include "base/base.h"

#include "kit/limits.h"
#include "kit/print.h"

int wf_printv(char *out, size_t bytes, const char *format, va_list args)
{
    return kit_printv(out, bytes, format, args);
}

const char *wf_limit_text(int error)
{
    return kit_limit_text(error);
}

const char *wf_error_text(int error)
{
    return kit_error_text(error);
}

int wf_print(char *out, size_t bytes, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = kit_printv(out, bytes, format, args);
    va_end(args);
    return length;
}

double wf_read_double(const char *text, char **end)
{
    return kit_read_double(text, end);
}

float wf_read_float(const char *text, char **end)
{
    return kit_read_float(text, end);
}

bool wf_same_letters(const char *a, const char *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (wf_lower(a[i]) != wf_lower(b[i])) return false;
        if (a[i] == '\0') break;
    }
    return true;
}
