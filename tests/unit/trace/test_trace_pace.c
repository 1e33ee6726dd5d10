/* Times of a trace follow the clock and never go back; numbers survive their encoding. */
#include "trace/export/export.h"
#include "trace/export/protobuf.h"

#include "support/suite.h"

TEST(times_follow_the_clock)
{
    struct wf_pace pace;
    uint64_t last = 0, end;

    wf_pace_begin(&pace);
    end = wf_now_ns() + 100000000;
    while (wf_now_ns() < end) { /* several renewals */
        uint64_t before = wf_now_ns(), ns = wf_pace_convert(&pace, wf_ticks()), after = wf_now_ns();

        ck_assert_uint_ge(ns, last);
        ck_assert_uint_ge(ns + 10000000, before);
        ck_assert_uint_le(ns, after + 10000000);
        last = ns;
    }
}

TEST(times_become_ticks_and_back)
{
    struct wf_pace pace;

    wf_pace_begin(&pace);
    pace.renew_ticks = UINT64_MAX;
    for (uint64_t ns = pace.ns; ns < pace.ns + 1000000000; ns += 99999999) {
        uint64_t back = wf_pace_convert(&pace, wf_pace_invert(&pace, ns));

        ck_assert_uint_le(back, ns + 1);
        ck_assert_uint_ge(back + 100, ns); /* a tick may take 40 ns */
    }
}

TEST(a_line_that_is_ahead_does_not_go_back)
{
    struct wf_pace pace;
    uint64_t before;

    wf_pace_begin(&pace);
    pace.ns += 1000000000; /* a second ahead */
    before = wf_pace_convert(&pace, pace.ticks);
    wf_pace_renew(&pace);
    ck_assert_uint_ge(wf_pace_convert(&pace, pace.ticks), before);
    pace.ns -= 3000000000; /* now late */
    wf_pace_renew(&pace);
    ck_assert_uint_ge(pace.ns + 1000000000, wf_now_ns());
}

static uint64_t read_varint(const uint8_t *at)
{
    uint64_t value = 0;

    for (int shift = 0;; shift += 7, at++) {
        value |= (uint64_t)(*at & 127) << shift;
        if (*at < 128) return value;
    }
}

TEST(numbers_survive_their_encoding)
{
    uint8_t bytes[16];

    for (int bit = 0; bit < 64; bit++)
        for (int less = 0; less < 2; less++) {
            uint64_t value = (UINT64_C(1) << bit) - (uint64_t)less;

            ck_assert_int_le(wf_put_varint(bytes, value) - bytes, 10);
            ck_assert_uint_eq(read_varint(bytes), value);
            if (bit > 56 || (bit == 56 && less == 0)) continue;
            ck_assert_int_eq(wf_put_time(bytes, value) - bytes, 8);
            ck_assert_uint_eq(read_varint(bytes), value);
        }
}
