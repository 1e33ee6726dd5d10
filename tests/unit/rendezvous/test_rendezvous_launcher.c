#include "support/suite.h"
#include "weft/weft.h"

#include <stdlib.h>
#include <string.h>

static void forget_launchers(void)
{
    static const char *const names[] = {"WEFT_LAUNCHER", "WEFT_RANK", "WEFT_SIZE",
                                        "WEFT_LOCAL_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

TEST(a_process_reads_its_identity)
{
    weft_launch_info launch = {.struct_size = sizeof launch};

    forget_launchers();
    setenv("WEFT_LAUNCHER", "none", 1);
    ck_assert_int_eq(weft_launch_get(&launch), WEFT_OK);
    ck_assert_str_eq(launch.launcher, "none");
    ck_assert(launch.rank == 0 && launch.size == 1 && launch.local_rank == -1);
    setenv("WEFT_LAUNCHER", "weft", 1);
    setenv("WEFT_RANK", "2", 1);
    setenv("WEFT_SIZE", "4", 1);
    setenv("WEFT_LOCAL_RANK", "1", 1);
    ck_assert_int_eq(weft_launch_get(&launch), WEFT_OK);
    ck_assert_str_eq(launch.launcher, "weft");
    ck_assert(launch.rank == 2 && launch.size == 4 && launch.local_rank == 1);
    setenv("WEFT_RANK", "4", 1);
    ck_assert_int_eq(weft_launch_get(&launch), WEFT_ERR_INVALID);
    ck_assert_int_eq(launch.rank, 2);
    forget_launchers();
}

TEST(no_more_than_the_callers_struct_is_written)
{
    weft_launch_info launch = {.struct_size = offsetof(weft_launch_info, rank), .rank = 77};

    forget_launchers();
    setenv("WEFT_LAUNCHER", "none", 1);
    ck_assert_int_eq(weft_launch_get(&launch), WEFT_OK);
    ck_assert_str_eq(launch.launcher, "none");
    ck_assert_int_eq(launch.rank, 77);
    launch.struct_size = 0;
    ck_assert_int_eq(weft_launch_get(&launch), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_launch_get(NULL), WEFT_ERR_INVALID);
    forget_launchers();
}

TEST(a_rendezvous_has_an_address_and_a_token)
{
    weft_rendezvous_options options = {.struct_size = sizeof options, .size = 2};
    weft_rendezvous *first = NULL, *second = NULL;

    ck_assert_msg(weft_rendezvous_open(&options, &first) == WEFT_OK, "%s", weft_last_error());
    ck_assert_int_eq(weft_rendezvous_open(&options, &second), WEFT_OK);
    ck_assert_ptr_nonnull(strchr(weft_rendezvous_address(first), ':'));
    ck_assert_str_ne(weft_rendezvous_address(first), weft_rendezvous_address(second));
    ck_assert_uint_eq(strlen(weft_rendezvous_token(first)), 32);
    ck_assert_str_ne(weft_rendezvous_token(first), weft_rendezvous_token(second));
    ck_assert_int_eq(weft_rendezvous_serve(first), WEFT_OK);
    weft_rendezvous_report_gone(first, 1, "is gone: a test");
    weft_rendezvous_report_gone(first, 2, "no such rank");
    weft_rendezvous_report_gone(first, -1, NULL);
    weft_rendezvous_close(&first);
    weft_rendezvous_close(&second);
    ck_assert_ptr_null(first);
}

TEST(what_cannot_be_is_refused)
{
    weft_rendezvous_options options = {.struct_size = sizeof options, .size = 0};
    weft_rendezvous *rendezvous = NULL;

    ck_assert_int_eq(weft_rendezvous_open(&options, &rendezvous), WEFT_ERR_INVALID);
    options.size = 2;
    options.listen = "[::1";
    ck_assert_int_ne(weft_rendezvous_open(&options, &rendezvous), WEFT_OK);
    options.struct_size = 0;
    ck_assert_int_eq(weft_rendezvous_open(&options, &rendezvous), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_rendezvous_open(NULL, &rendezvous), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_rendezvous_open(&options, NULL), WEFT_ERR_INVALID);
    ck_assert_int_eq(weft_rendezvous_serve(NULL), WEFT_ERR_INVALID);
    ck_assert_ptr_null(rendezvous);
    ck_assert_ptr_null(weft_rendezvous_address(NULL));
    ck_assert_ptr_null(weft_rendezvous_token(NULL));
    weft_rendezvous_report_gone(NULL, 0, "nothing");
    weft_rendezvous_close(&rendezvous);
    weft_rendezvous_close(NULL);
}
