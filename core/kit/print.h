/* print.h - numbers in texts, without the locale of the program.
 *
 * A program may set a locale (setlocale(LC_ALL, "")) in which 1.5 is "1,5".  The texts of weft are
 * read by other ranks, by tools and by weft, so they do not follow it.  This is the only place that
 * prints and reads numbers with a point; ci/checks/no_locale.py finds others.
 *
 * This source needs only the C library.  libweft and the plugins compile it. */
#ifndef WEFT_KIT_PRINT_H
#define WEFT_KIT_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf and vsnprintf.  They allocate and lock no more than these. */
int kit_print(char *out, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int kit_printv(char *out, size_t bytes, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Print FORMAT, the last parameter of the function that this is in, and the arguments behind it to
 * the array TEXT. */
#define KIT_PRINT_REST(text, format)                                                               \
    do {                                                                                           \
        va_list kit_rest;                                                                          \
        va_start(kit_rest, format);                                                                \
        kit_printv(text, sizeof(text), format, kit_rest);                                          \
        va_end(kit_rest);                                                                          \
    } while (0)
/* As strtod and strtof. */
double kit_read_double(const char *text, char **end);
float kit_read_float(const char *text, char **end);

#endif
