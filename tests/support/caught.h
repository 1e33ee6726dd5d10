/* caught.h - captures standard error. */
#ifndef WEFT_TESTS_CAUGHT_H
#define WEFT_TESTS_CAUGHT_H

#include <check.h>
#include <stdio.h>
#include <unistd.h>

static char caught[8192];
static int real_stderr;
static FILE *caught_file;

static inline void catch_begin(void)
{
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    caught_file = tmpfile();
    ck_assert_ptr_nonnull(caught_file);
    dup2(fileno(caught_file), STDERR_FILENO);
}

/* The text written to standard error since catch_begin. */
static inline const char *catch_end(void)
{
    size_t length;

    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    rewind(caught_file);
    length = fread(caught, 1, sizeof caught - 1, caught_file);
    caught[length] = '\0';
    fclose(caught_file);
    return caught;
}

#endif
