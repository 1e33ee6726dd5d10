#include "support/suite.h"
#include "trace/trace.h"

TEST(ticks_become_nanoseconds_of_the_clock)
{
    uint64_t before = wf_now_ns(), ticks = wf_ticks(), after = wf_now_ns();
    uint64_t ns = weft_ticks_to_ns(ticks);

    ck_assert_uint_ge(ns + 1000000, before); /* a millisecond of tolerance */
    ck_assert_uint_le(ns, after + 1000000);
    ck_assert_uint_eq(weft_ticks_to_ns(0), 0);
}

TEST(a_line_extends_in_both_directions)
{
    struct wf_instant first = {1000, 5000}, last = {2000, 7000};

    ck_assert_uint_eq(wf_ticks_convert(first, last, 1500), 6000);
    ck_assert_uint_eq(wf_ticks_convert(first, last, 3000), 9000);
    ck_assert_uint_eq(wf_ticks_convert(first, last, 500), 4000);
    ck_assert_uint_eq(wf_ticks_convert(first, last, 0), 0);
    ck_assert_uint_eq(wf_ticks_convert(first, first, 1500), 5000);
}
