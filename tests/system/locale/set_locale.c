/* set_locale.c - a library to preload: the program sets the locale of its environment, as many do,
 * and its numbers then have a comma. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void set_locale(void)
{
    if (setlocale(LC_ALL, "") != NULL && strcmp(localeconv()->decimal_point, ",") == 0) return;
    fputs("set_locale: the environment has no locale with a comma\n", stderr);
    abort();
}
