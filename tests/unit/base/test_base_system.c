#include "base/base.h"
#include "support/suite.h"
#include "weft/status.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

START_TEST(time_never_runs_backwards)
{
    uint64_t last = wf_now_ns();

    for (int i = 0; i < 1000; i++) {
        uint64_t now = wf_now_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(a_nanosecond_is_a_nanosecond)
{
    const struct timespec pause = {0, 20 * 1000 * 1000};
    uint64_t begin = wf_now_ns();

    nanosleep(&pause, NULL);
    ck_assert_uint_ge(wf_now_ns() - begin, 20 * 1000 * 1000);
    ck_assert_uint_lt(wf_now_ns() - begin, UINT64_C(60) * 1000 * 1000 * 1000);
}
END_TEST

/* Copy the text of ERROR while the soft limit of RESOURCE is VALUE. */
static void text_under(__rlimit_resource_t resource, rlim_t value, int error, char out[256])
{
    struct rlimit before, small;

    ck_assert_int_eq(getrlimit(resource, &before), 0);
    small = (struct rlimit){value, before.rlim_max};
    ck_assert_int_eq(setrlimit(resource, &small), 0);
    snprintf(out, 256, "%s", wf_errno_text(error));
    ck_assert_int_eq(setrlimit(resource, &before), 0);
}

START_TEST(an_error_names_the_limit_that_is_its_cause)
{
    static const struct {
        __rlimit_resource_t resource;
        int error;
        rlim_t value;
        const char *text;
    } cases[] = {
        {RLIMIT_NOFILE, EMFILE, 60,
         "Too many open files; this process may have at most 60 open files (ulimit -n): raise the "
         "limit"},
        {RLIMIT_FSIZE, EFBIG, 1 << 30,
         "File too large; this process may write files of at most 1073741824 bytes (ulimit -f): "
         "raise the limit"},
        {RLIMIT_AS, ENOMEM, 1 << 30,
         "Cannot allocate memory; this process may have at most 1073741824 bytes of address space "
         "(ulimit -v): raise the limit"},
        {RLIMIT_AS, EAGAIN, 1 << 30,
         "Resource temporarily unavailable; this process may have at most 1073741824 bytes of "
         "address space (ulimit -v): raise the limit"},
        {RLIMIT_FSIZE, ENOENT, 1 << 30, "No such file or directory"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];

        text_under(cases[i].resource, cases[i].value, cases[i].error, text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

START_TEST(a_lack_of_memory_names_the_limit)
{
    struct rlimit before, small;
    weft_status status;

    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    small = (struct rlimit){1 << 30, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &small), 0);
    status = wf_fail_memory(8);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(status, WEFT_ERR_NO_MEMORY);
    ck_assert_str_eq(weft_last_error(),
                     "out of memory: cannot allocate 8 bytes; this process may have at most "
                     "1073741824 bytes of address space (ulimit -v): raise the limit");
}
END_TEST

SUITE(base_system, time_never_runs_backwards, a_nanosecond_is_a_nanosecond,
      an_error_names_the_limit_that_is_its_cause, a_lack_of_memory_names_the_limit)
