/* The limit of the size of files is the soft one; without a limit any size is allowed. */
#include "plug_limits.h"

#include "support/suite.h"

#include <sys/resource.h>

START_TEST(the_limit_of_files_is_the_soft_one)
{
    struct rlimit before, small;
    uint64_t found;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1 << 20, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    found = plug_file_limit();
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_uint_eq(found, 1 << 20);
    if (before.rlim_cur == RLIM_INFINITY) ck_assert(plug_file_limit() == UINT64_MAX);
}
END_TEST

SUITE(plug_limits, the_limit_of_files_is_the_soft_one)
