#include "base/base.h"
#include "support/suite.h"

#include <time.h>

TEST(time_never_runs_backwards)
{
    uint64_t last = wf_now_ns();

    for (int i = 0; i < 1000; i++) {
        uint64_t now = wf_now_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}

TEST(a_nanosecond_is_a_nanosecond)
{
    const struct timespec pause = {0, 20 * 1000 * 1000};
    uint64_t begin = wf_now_ns();

    nanosleep(&pause, NULL);
    ck_assert_uint_ge(wf_now_ns() - begin, 20 * 1000 * 1000);
    ck_assert_uint_lt(wf_now_ns() - begin, UINT64_C(60) * 1000 * 1000 * 1000);
}
