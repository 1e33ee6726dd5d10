/* caught.h - captures standard error. */
#ifndef WEFT_TESTS_CAUGHT_H
#define WEFT_TESTS_CAUGHT_H

#include <check.h>
#include <stdio.h>
#include <unistd.h>

static char caught[8192];
static int real_stderr;
static FILE *file;

static inline void catch_begin(void)
{
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    file = tmpfile();
    ck_assert_ptr_nonnull(file);
    dup2(fileno(file), STDERR_FILENO);
}

/* The text written to standard error since catch_begin. */
static inline const char *catch_end(void)
{
    size_t length;

    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    rewind(file);
    length = fread(caught, 1, sizeof caught - 1, file);
    caught[length] = '\0';
    fclose(file);
    return caught;
}

#endif
