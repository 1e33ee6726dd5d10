/* The limit of the size of files is the soft one; without a limit any size is allowed.  Texts of
 * errors name the limit that caused them. */
#include "kit/limits.h"

#include "support/suite.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

TEST(the_limit_of_files_is_the_soft_one)
{
    struct rlimit before, small;
    uint64_t found;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1 << 20, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    found = kit_file_limit();
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_uint_eq(found, 1 << 20);
    if (before.rlim_cur == RLIM_INFINITY) ck_assert(kit_file_limit() == UINT64_MAX);
}

/* The text of ERROR while the soft limit of RESOURCE is VALUE. */
static const char *text_under(__rlimit_resource_t resource, rlim_t value, int error)
{
    static char text[512];
    struct rlimit before, small;

    ck_assert_int_eq(getrlimit(resource, &before), 0);
    small = (struct rlimit){value, before.rlim_max};
    ck_assert_int_eq(setrlimit(resource, &small), 0);
    snprintf(text, sizeof text, "%s", kit_error_text(error));
    ck_assert_int_eq(setrlimit(resource, &before), 0);
    return text;
}

TEST(a_text_names_the_limit_its_value_and_how_to_raise_it)
{
    rlim_t space = (rlim_t)1 << 46; /* a limit that a sanitizer's memory fits into */

    ck_assert_str_eq(text_under(RLIMIT_NOFILE, 24, EMFILE),
                     "Too many open files; raise the limit of open files, which is 24 (ulimit -n)");
    ck_assert_str_eq(text_under(RLIMIT_FSIZE, 1 << 20, EFBIG),
                     "File too large; raise the limit of the size of files, which is 1024 KiB "
                     "(ulimit -f)");
    ck_assert_str_eq(text_under(RLIMIT_AS, space, ENOMEM),
                     "Cannot allocate memory; raise the limit of address space, which is "
                     "68719476736 KiB (ulimit -v)");
    ck_assert_ptr_nonnull(strstr(text_under(RLIMIT_NPROC, 99, EAGAIN),
                                 "; raise the limit of processes and threads, which is 99 "
                                 "(ulimit -u)"));
    ck_assert_ptr_nonnull(strstr(kit_error_text(ENFILE), "fs.file-max"));
}

TEST(a_text_without_a_limit_is_the_system_s)
{
    ck_assert_str_eq(kit_error_text(ENOENT), "No such file or directory");
    ck_assert_str_eq(text_under(RLIMIT_FSIZE, RLIM_INFINITY, EFBIG), "File too large");
}
