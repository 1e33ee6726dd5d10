/* print.c - see print.h. */
#include "print.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t plain; /* "C"; 0 changes nothing: there was no memory */

static void make_plain(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* The calling thread uses the plain locale until it calls uselocale with what is returned. */
static locale_t begin(void)
{
    pthread_once(&once, make_plain);
    return uselocale(plain);
}

int kit_printv(char *out, size_t bytes, const char *format, va_list args)
{
    locale_t before = begin();
    int length = vsnprintf(out, bytes, format, args);

    uselocale(before);
    return length;
}

int kit_print(char *out, size_t bytes, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = kit_printv(out, bytes, format, args);
    va_end(args);
    return length;
}

double kit_read_double(const char *text, char **end)
{
    locale_t before = begin();
    double value = strtod(text, end);

    uselocale(before);
    return value;
}

float kit_read_float(const char *text, char **end)
{
    locale_t before = begin();
    float value = strtof(text, end);

    uselocale(before);
    return value;
}
