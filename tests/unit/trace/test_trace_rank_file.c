#include "trace/rank_file.h"

#include "support/folder.h"
#include "support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

TEST(a_name_has_the_rank)
{
    char out[8];

    ck_assert(wf_rank_file_name("a.%r.b", 12, out, sizeof out));
    ck_assert_str_eq(out, "a.12.b");
    ck_assert(wf_rank_file_name("a", 3, out, sizeof out));
    ck_assert_str_eq(out, "a.3");
    ck_assert(wf_rank_file_name("%r%r", 3, out, sizeof out)); /* only the first */
    ck_assert_str_eq(out, "3%r");
    ck_assert(!wf_rank_file_name("abcdef", 3, out, sizeof out));
}

TEST(a_file_beyond_the_limit_is_an_error_not_a_signal)
{
    struct folder folder = folder_create();
    struct rlimit before, small;
    int file = open(folder_path(&folder, "a"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    char have[8] = "";
    int set, large, fits;

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(wf_rank_file_write(file, 0, "abc", 3), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){5, before.rlim_max};
    set = setrlimit(RLIMIT_FSIZE, &small); /* check's own files have more bytes */
    large = wf_rank_file_write(file, 3, "def", 3);
    fits = wf_rank_file_write(file, 3, "de", 2);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert(set == 0 && large == EFBIG && fits == 0);
    ck_assert_int_eq(pread(file, have, sizeof have, 0), 5);
    ck_assert_str_eq(have, "abcde");
    close(file);
    ck_assert_int_eq(wf_rank_file_write(-1, 0, "a", 1), EBADF);
    folder_remove(&folder);
}
